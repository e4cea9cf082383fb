"""A progress bar for interactive use."""

import multiprocessing
import sys

_DELAY = 3.0  # seconds before a bar appears on its own


def progress_bar(verbose, **settings):
    """Return a tqdm bar on stderr, or a hidden one; `settings` are passed to tqdm.

    "auto" shows a bar after 3 seconds on an interactive terminal and in a notebook, and
    removes it at the end. It is hidden in worker processes, and in scripts whose stderr
    is redirected. 0 and False never show a bar.
    """
    from tqdm import tqdm

    if verbose == "auto":
        in_notebook = _in_notebook()
        settings |= {"delay": _DELAY, "leave": False}
        settings |= {"disable": not (in_notebook or _on_terminal())}
        if in_notebook:
            from tqdm.autonotebook import tqdm
    else:
        settings |= {"disable": not verbose}
    return tqdm(**settings)


def _on_terminal():
    """Whether stderr is a terminal, and this is not a worker process."""
    is_main = multiprocessing.current_process().name == "MainProcess"
    return is_main and hasattr(sys.stderr, "isatty") and sys.stderr.isatty()


def _in_notebook():
    """Whether IPython runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and "IPKernelApp" in shell.config
