"""The parser of the command line `skactive`, and its entry point."""

import argparse
import re
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from .. import __version__
from ._label_parser import add_encode, add_label, add_predict
from ._options import (
    TABLE,
    add_columns,
    add_count,
    add_model,
    add_out,
    as_count,
    as_count_or_zero,
    as_names,
    as_seconds,
)
from ._signals import interrupt_at_sigterm


class UsageError(Exception):
    """An error in the command line."""


_REPORTED = (UsageError, ValueError, TypeError, OSError, ImportError, RuntimeError)


class _Parser(argparse.ArgumentParser):
    """Parser whose errors are reported by `main` in one line."""

    def error(self, message):
        raise UsageError(f"{message.rstrip('.')}. See `{self.prog} --help`.")


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
        with interrupt_at_sigterm(), warnings.catch_warnings():
            warnings.showwarning = _WarningPrinter()
            # A class that no text has so far is usual at the start.
            warnings.filterwarnings("ignore", "Label (not )?[0-9]+ is present in all")
            return run(args)
    except _REPORTED as exc:
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
    add_label(commands)
    add_encode(commands)
    add_predict(commands)
    _add_label_studio(commands)
    _add_strategies(commands)
    _add_demo(commands)
    _add_simulate(commands)
    _add_report(commands)
    return parser


def _add_label_studio(commands):
    parser = commands.add_parser(
        "label-studio",
        help="have Label Studio show the most useful texts first",
        description="Label in Label Studio: its tasks are the pool, the batches of a "
        "session are shown there first, and the answers come back. The token of an "
        "account is read from an environment variable.",
    )
    parser.set_defaults(run=None)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, what in _ACTIONS.items():
        description = f"{what[0].upper()}{what[1:]}."
        action = actions.add_parser(name, help=what, description=description)
        server = action.add_argument_group("server")
        server.add_argument("--url", metavar="URL", required=True)
        server.add_argument(
            "--token-env",
            metavar="VAR",
            default="LABEL_STUDIO_API_KEY",
            help="environment variable with the token (default: %(default)s)",
        )
        if name == "create":
            _add_new_project(action)
        else:
            _add_bridge(action, server, name)
        action.set_defaults(run=("_label_studio", f"run_{name}"))


_ACTIONS = {
    "create": "make a project from a table",
    "pull": "record the answers so far",
    "push": "let the next batch be asked first",
    "run": "pull and push until all is labeled or Ctrl-C, then save a model",
    "backend": "show the predictions of the model in the page, as an ML backend",
}


def _add_new_project(action):
    data = action.add_argument_group("data")
    data.add_argument("file", metavar="FILE", help=TABLE)
    data.add_argument(
        "--text",
        metavar="COL",
        nargs="+",
        required=True,
        help="its column of texts, or two for pairs",
    )
    data.add_argument(
        "--label", metavar="COL", help="a column of classes, which become annotations"
    )
    data.add_argument(
        "--classes",
        metavar="A,B,C",
        type=as_names,
        help="the classes, separated by commas (default: those of the column)",
    )
    data.add_argument(
        "--multi-label", action="store_true", help="a text can have several classes"
    )
    data.add_argument("--title", help="name of the project (default: that of the file)")


def _add_bridge(action, server, name):
    server.add_argument("--project", metavar="ID", type=as_count, required=True)
    server.add_argument(
        "--question",
        metavar="NAME",
        help="the control <Choices> to answer, if the project has several",
    )
    work = action.add_argument_group("work")
    work.add_argument(
        "--folder",
        metavar="FOLDER",
        required=True,
        help="where answers, features and the model are kept",
    )
    if name in ("push", "run"):
        add_count(work, "--batch-size", 50, "texts chosen at a time")
        work.add_argument(
            "--left",
            metavar="N",
            type=as_count_or_zero,
            help="choose the next batch when so many texts of the last one wait "
            "(default: a quarter)",
        )
        work.add_argument(
            "--strategy",
            metavar="NAME",
            help="(default: that of the folder, or margin)",
        )
    add_model(work)
    if name in ("run", "backend"):
        work.add_argument(
            "--interval",
            metavar="SECONDS",
            type=as_seconds,
            default=5.0,
            help="time between two looks for answers (default: %(default)s)",
        )
    if name == "run":
        add_count(work, "--n-labels", None, "stop at so many labels")
        work.add_argument(
            "--no-fine-tuning",
            action="store_true",
            help="save the model of the session instead of fine-tuning the encoder",
        )
    if name == "backend":
        add_count(work, "--every", 10, "new labels after which a model is trained")
        work.add_argument(
            "--host", default="127.0.0.1", help="address (default: %(default)s)"
        )
        add_count(work, "--port", None, "port (default: a free one)")
        work.add_argument(
            "--auth-env",
            metavar="VAR",
            help="environment variable with user:password for basic authentication",
        )


def _add_strategies(commands):
    strategies = commands.add_parser(
        "strategies",
        help="list the installed query strategies",
        description="List the installed query strategies with their requirements and "
        "distributions, and whether they can be loaded.",
    )
    strategies.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="name, or distribution:name, of a strategy to list (default: all)",
    )
    strategies.add_argument(
        "--check",
        action="store_true",
        help="also run the conformance checks; they take a few seconds per strategy",
    )
    strategies.set_defaults(run=("_strategies", "run_strategies"), parser=strategies)


def _add_demo(commands):
    demo = commands.add_parser(
        "demo",
        help="compare strategies on docstrings of the installed libraries",
        description="Run `skactive simulate` on a built-in data set: docstrings of "
        "installed Python libraries, labeled by library. Nothing is downloaded. It "
        "takes a few minutes on two cores.",
    )
    data = demo.add_argument_group("data")
    add_count(data, "--pool-size", 5000, "largest number of texts in the pool")
    add_count(
        data, "--test", 1500, "largest number of test texts, at most a third of all"
    )
    _add_loop(demo, seeds=10)
    add_out(demo, "skactive-demo")
    demo.set_defaults(run=("_simulate", "run_demo"), parser=demo)


def _add_simulate(commands):
    simulate = commands.add_parser(
        "simulate",
        help="compare strategies on a labeled table of your own",
        description="Simulate labeling of a labeled table by several strategies, and "
        "compare them with random sampling. Finished runs are kept in the folder, so "
        "the same command continues after an interruption.",
    )
    simulate.add_argument("file", metavar="FILE", help=TABLE)
    data = simulate.add_argument_group("data")
    add_columns(data)
    data.add_argument(
        "--test-file",
        metavar="FILE",
        help="a table of test texts; by default a part of FILE is held out",
    )
    add_count(data, "--pool-size", 10_000, "largest number of texts in the pool")
    add_count(
        data, "--test", 2000, "largest number of test texts, at most a third of all"
    )
    _add_loop(simulate, seeds=5)
    add_out(simulate, "skactive-runs")
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
        "--scoring", metavar="NAME", help="the score to report (default: the first)"
    )
    report.set_defaults(run=("_simulate", "run_report"))


def _add_loop(parser, *, seeds):
    loop = parser.add_argument_group("loop")
    add_model(loop)
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
        help="names as `skactive strategies` lists them, separated by spaces or "
        "commas, to compare with random (default: entropy margin), and for numbers "
        "greedy_sampling coreset",
    )
    loop.add_argument(
        "--scoring",
        nargs="+",
        metavar="NAME",
        help="scores, by scikit-learn's names (default: accuracy f1_macro; for several "
        "classes, f1_micro f1_macro; for numbers, r2 neg_root_mean_squared_error "
        "spearman)",
    )
    add_count(loop, "--initial", 50, "first labels, chosen at random")
    add_count(loop, "--rounds", 9, "rounds of queries")
    add_count(loop, "--batch-size", 50, "labels per round")
    add_count(
        loop, "--seeds", seeds, "number of repetitions with different first labels"
    )
    add_count(loop, "--n-jobs", 1, "runs in parallel")


if __name__ == "__main__":
    sys.exit(main())
