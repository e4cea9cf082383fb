"""The commands `skactive simulate` and `skactive report`."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from ._cli import (
    add_count,
    add_loop_options,
    check_names,
    load_labeled,
    open_model,
    prepare_folder,
    say,
)

__all__ = ["add_report", "add_simulate"]


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
    from .plotting._axes import import_figure

    import_figure()
    prepare_folder(args.out)

    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from .bert import BertFeatures
    from .experiments import run_experiment
    from .experiments.folder import OtherSettingsError
    from .learner import ActiveLearner

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
    from .report import write_report

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
