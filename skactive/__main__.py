"""The `skactive` command: list strategies, run the demo, simulate, report."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from . import __version__
from ._cli import (
    UsageError,
    add_count,
    add_loop_options,
    check_names,
    load_labeled,
    one_line,
    open_model,
    prepare_folder,
    say,
)
from ._commands import add_report, add_simulate

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
    from .registry import available

    if args.markdown:
        from ._strategy_table import strategy_tables

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
    from ._strategy_table import summarize
    from .capabilities import check_declarations
    from .registry import get_strategy

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
    from .testing import check_strategy

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
    from .plotting._axes import import_figure

    import_figure()
    prepare_folder(args.out)

    from .demo import run_demo
    from .demo_report import format_report, save, summarize

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
        from .datasets import load_docstrings

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
