"""The entry point of the command line `skactive`."""

import logging
import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import signature
from typing import Any

from .._utils._system import interrupt_at_sigterm
from ._parser import UsageError, make_parser, say

_REPORTED = (UsageError, ValueError, TypeError, OSError, ImportError, RuntimeError)


def main(argv: Sequence[str] | None = None) -> int:
    r"""Run the command line.

    Parameters
    ----------
    argv : list of str, default=None
        The arguments. Defaults to `sys.argv[1:]`.

    Returns
    -------
    status : int
        0 for success, 2 for an invalid command line, 130 if interrupted by Ctrl-C or
        SIGTERM, and 1 for other errors, such as unusable data or a strategy that fails
        its checks. Errors are reported in one line on stderr.

    Examples
    --------
    Label a table with a saved model, as the command `skactive predict` does:

    >>> import contextlib, tempfile
    >>> from pathlib import Path
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive import save
    >>> from skactive.cli import main
    >>> model = make_pipeline(CountVectorizer(), MultinomialNB())
    >>> model = model.fit(["good film", "bad film"], ["like", "dislike"])
    >>> with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    ...     _ = save(model, "model")
    ...     _ = Path("new.csv").write_text("review\na good one\n")
    ...     status = main(["predict", "model", "new.csv", "--text", "review"])
    ...     print(Path("new.predicted.csv").read_text(), end="")
    new.predicted.csv: 1 predictions
    review,prediction,probability
    a good one,like,0.6667
    """
    traceback, shown = False, {}
    out: Any = sys.stdout
    errors = out.errors if hasattr(out, "reconfigure") else None
    if errors:  # a character that the terminal lacks is replaced by a question mark
        out.reconfigure(errors="replace")
    try:
        parser = make_parser()
        options = vars(parser.parse_args(argv))
        command, traceback = options.pop("run"), options.pop("traceback")
        shown = options.pop("shown")
        if command is None:
            parser.print_help()
            return 0
        # Commands are imported when they run, so that --help needs no scikit-learn.
        module, function = command.split(":")
        run = getattr(import_module(f".{module}", __package__), function)
        if "command" in signature(run).parameters:  # the same command continues
            words = sys.argv[1:] if argv is None else argv
            options["command"] = shlex.join(["skactive", *map(str, words)])
        with interrupt_at_sigterm(), _print_log(shown), warnings.catch_warnings():
            warnings.showwarning = _WarningPrinter()
            # A class that no text has so far is usual at the start.
            warnings.filterwarnings("ignore", "Label (not )?[0-9]+ is present in all")
            return run(**options)
    except _REPORTED as exc:
        if traceback:
            raise
        say(f"skactive: error: {name_options(_one_line(exc), shown)}")
        return 2 if isinstance(exc, UsageError) else 1
    except KeyboardInterrupt as exc:
        hint = f"; {exc}" if str(exc) else ""
        say(f"\nskactive: interrupted{hint}")
        return 130
    finally:
        if errors:
            out.reconfigure(errors=errors)


def name_options(message, shown):
    """Return a message with the options of a command in place of its arguments.

    `shown` is a dict of argument to option. An argument is named at the beginning, as
    'folder', or in advice, as `folder=NEW` or `regression=True`. A call of a function
    stays as it is.
    """
    start = re.match(r"'(\w+)' (?=must|needs|is )", message)
    if start and start[1] in shown:
        message = f"argument {shown[start[1]]}: {message[start.end() :]}"

    def name(match):
        option, value = shown.get(match[1]), match[2]
        if option is None:  # another name, or a call
            return match[0]
        return option if value in ("", "True") else f"{option} {value}"

    call, advice = r"\w+\([^)]*\)", r"(?<![\w-])(\w+)=(True|[^\s=.;,)]*)"
    return re.sub(f"{call}|{advice}", name, message)


class _Printer(logging.Handler):
    """Prints what a project logs; a share in the place of the last one."""

    def __init__(self, shown):
        super().__init__()
        self._shown = shown

    def emit(self, record):
        if record.levelno > logging.DEBUG:
            say(name_options(record.getMessage(), self._shown))
        elif sys.stderr.isatty():
            say(record.getMessage(), end="\r")


@contextmanager
def _print_log(shown):
    log, printer = logging.getLogger("skactive.project"), _Printer(shown)
    level = log.level
    log.setLevel(logging.DEBUG)
    log.addHandler(printer)
    try:
        yield
    finally:
        log.removeHandler(printer)
        log.setLevel(level)


def _one_line(exc):
    if isinstance(exc, ModuleNotFoundError) and exc.name:
        return (
            f"this needs the package {exc.name.partition('.')[0]}, which is not "
            "installed: `pip install skactive` installs what every command needs, and "
            '`pip install "skactive[bert]"` what encoders need. '
            "`skactive serve` and `skactive predict` need only onnxruntime, tokenizers "
            "and numpy for a folder that `skactive export` wrote."
        )
    return " ".join(str(exc).split()) or type(exc).__name__


class _WarningPrinter:
    """Prints warnings on stderr; those that differ in numbers only are printed once."""

    def __init__(self):
        self._printed = set()

    def __call__(self, message, *_):
        line = _one_line(message)
        if (kind := re.sub(r"[0-9]+", "", line)) not in self._printed:
            self._printed.add(kind)
            say(f"skactive: warning: {line}")


if __name__ == "__main__":
    sys.exit(main())
