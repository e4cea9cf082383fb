"""The parser of the command line, made from commands.toml, and its messages."""

import argparse
import sys
import tomllib
from pathlib import Path

from .. import __version__
from .._utils._format import visible

_TABLE = Path(__file__).with_name("commands.toml")
_ONE_OF = {"--classes", "--classes-file"}  # at most one may be named


class UsageError(Exception):
    """An error in the command line."""


def say(message, end="\n"):
    """Print a message that is not the result."""
    print(visible(message), file=sys.stderr, end=end, flush=True)


def show_line(message):
    """Print a line, or a table, of the result."""
    print(visible(message))


def one_or_several(names):
    """Return the name of one column, or a list of names."""
    return names[0] if len(names) == 1 else names


def encoder_options(settings):
    """Return the parameters of `BertFeatures` that the options of a command name."""
    names = ("max_length", "prompt", "dimensions")
    return {name: getattr(settings, name) for name in names}


class _Once(argparse.Action):
    """Store the value of an option that may be given once."""

    def __call__(self, parser, namespace, values, option_string=None):
        if self.option_strings and self.dest in parser.given:
            raise argparse.ArgumentError(self, "is given twice. Give it once")
        parser.given.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """Parser whose errors are reported by `main` in one line."""

    def __init__(self, **options):
        super().__init__(**options)
        self.register("action", None, _Once)

    def parse_known_args(self, args=None, namespace=None):
        """Return the namespace and the rest of the arguments."""
        self.given = set()
        return super().parse_known_args(args, namespace)

    def error(self, message):
        raise UsageError(f"{message.rstrip('.')}. See `{self.prog} --help`.")


def make_parser():
    """Return the parser of all commands."""
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    parser = Parser(prog="skactive", description="Active learning for text.")
    parser.add_argument(
        "--version", action="version", version=f"skactive {__version__}"
    )
    parser.add_argument(
        "--traceback", action="store_true", help="show where an error came from"
    )
    parser.set_defaults(run=None, shown={})
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_commands(commands, table["commands"], table["shared"])
    return parser


def _add_commands(commands, table, shared):
    """Add the commands of a table, and the actions below them."""
    for name, about in table.items():
        command = commands.add_parser(
            name, help=about["help"], description=about["description"]
        )
        shown: dict[str, str] = {}
        command.set_defaults(run=about.get("run"), shown=shown)
        if "actions" in about:
            actions = {"title": "actions", "metavar": "ACTION", "required": True}
            place = command.add_subparsers(**actions)
            _add_commands(place, about["actions"], shared)
        for title, options in about.get("groups", {}).items():
            is_own = title in ("arguments", "options")  # argparse has such groups
            place = command if is_own else command.add_argument_group(title)
            included = {x: shared[x] for x in options.pop("include", ())}
            _add_options(place, included | options)
            # An error names an argument; a person typed an option.
            for option, keywords in (included | options).items():
                argument = option.lstrip("-").replace("-", "_")
                shown[argument] = option if option[0] == "-" else keywords["metavar"]
        if "machine" in shown:  # whose annotator calls it so
            shown["url"] = shown["machine"]


def _add_options(place, options):
    one_of = place
    if options.keys() >= _ONE_OF:
        one_of = place.add_mutually_exclusive_group()
    for name, about in options.items():
        keywords = dict(about)
        if keywords.pop("flag", False):
            keywords["action"] = "store_true"
        if kind := keywords.pop("type", None):
            keywords["type"] = _TYPES[kind]
            keywords.setdefault("metavar", "N")
        (one_of if name in _ONE_OF else place).add_argument(name, **keywords)


def as_names(text):
    """Return different names that are separated by commas, list of str."""
    names = [name.strip() for name in text.split(",")]
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(
            f"must be at least two different names, separated by commas, got {text!r}"
        )
    return names


def _as_seconds(text):
    """Return a positive number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return value


def _as_share(text):
    """Return a number between 0 and 1."""
    value = _as_seconds(text)
    if value >= 1:
        raise argparse.ArgumentTypeError(f"must be below 1, such as 0.95, got {text!r}")
    return value


def _as_points(text):
    """Return a share from points, such as 0.03 from 3."""
    value = _as_seconds(text) / 100
    if value >= 0.5:
        raise argparse.ArgumentTypeError(f"must be below 50 points, got {text!r}")
    return value


def _as_count_or_zero(text):
    """Return an integer of at least 0."""
    return 0 if text == "0" else _as_count(text)


def _as_count(text):
    """Return a positive integer."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return value


_TYPES = {
    "count": _as_count,
    "count_or_zero": _as_count_or_zero,
    "names": as_names,
    "number": float,
    "path": Path,
    "points": _as_points,
    "seconds": _as_seconds,
    "share": _as_share,
}
