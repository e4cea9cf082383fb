"""Experiments: every learner with every strategy, seed and data set, in parallel."""

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from numbers import Integral
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError

from .._storage._fingerprint import describe
from .._utils._containers import count_items, take_rows
from .._utils._format import progress_bar
from .._utils._labels import TARGETS, as_labels, is_indicator
from .._utils._pipelines import split_estimator
from .._utils._plugins import read_declared
from .._utils._sklearn import MOST, HasMethods, Interval, validate_params
from ..registry import resolve
from ..stopping import Run
from ..view import check_capability, check_target
from ._folder import NAMES, RunFolder, fingerprint, format_key, make_plan
from ._scoring import Scores, check_labels
from ._simulate import (
    CONSTRAINTS,
    choose_initial,
    find_cached_steps,
    format_name,
    precompute_features,
    simulate,
    take_pool,
)


@validate_params(
    {
        **CONSTRAINTS,
        "n_jobs": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Integral, None, -1, closed="right"),
            None,
        ],
        "folder": [str, os.PathLike, None],
    }
)
def run_experiment(
    learners: Any,
    data: Any,
    *,
    strategies: Any = None,
    seeds: int | Sequence[int] = 5,
    n_initial: int = 50,
    n_rounds: int = 9,
    initial: "Literal['random', 'stratified', 'first'] | ArrayLike | None" = None,
    batch_size: int | None = None,
    pool_size: int | None = None,
    scoring: str | Callable | list | tuple | set | dict | None = None,
    noise: float | Callable | None = None,
    cost: "ArrayLike | Callable | None" = None,
    stopping: Any = None,
    final_estimator: BaseEstimator | None = None,
    n_jobs: int | None = None,
    folder: str | os.PathLike | None = None,
    verbose: int | Literal["auto"] = 0,
) -> list[Run]:
    """Simulate every learner with every strategy, seed and data set.

    Parameters
    ----------
    learners : ActiveLearner or dict of str to ActiveLearner
        The learners to simulate, by name.
    data : tuple or dict of str to tuple
        `(X, y)` or `(X, y, X_test, y_test)`, by name.
    strategies : None, str or strategy, sequence of them, or dict by name, default=None
        Strategies that replace those of the learners. By default, each learner keeps
        its own.
    seeds : int or sequence of int, default=5
        The seeds, or their number, at most 1,000,000: the `random_state` of each run.
        Within a seed, all strategies begin with the same labels.
    n_initial, n_rounds, initial, batch_size, pool_size, scoring, noise, cost, \
stopping, final_estimator
        As in :func:`skactive.simulate`. For data sets of several sizes, `cost` must be
        a function of an item.
    n_jobs : int or None, default=None
        Number of runs in parallel. Defaults to 1, or to the value of
        :func:`joblib.parallel_config`. Any joblib backend works.
    folder : str, path-like or None, default=None
        A folder that keeps the runs. Each finished run is a line of `runs.jsonl`,
        written only by the calling process. If called again, the experiment reads the
        finished runs and runs the others.
    verbose : int, bool or "auto", default=0
        Whether a bar on stderr shows the finished runs. "auto" shows it on an
        interactive terminal and in a notebook if the runs take more than 3 seconds.

    Returns
    -------
    runs : list of Run
        Ordered by data set, learner, strategy and seed. `info` holds "data",
        "learner", "strategy" and "seed".

    Raises
    ------
    ValueError
        If a name is used twice, a strategy is unknown, the labels are invalid, or
        `folder` holds a run of the same names with other settings.
    TypeError
        If a strategy requires a capability that the model of a learner lacks.

        All errors are raised before the first run.

    See Also
    --------
    skactive.simulate : One of the runs.
    read_runs : Read the runs in a folder.

    Notes
    -----
    Worker processes share no memory. If a pipeline begins with
    :class:`skactive.bert.BertFeatures`, use a folder as `cache`: the calling process
    then encodes each data set once, before the first run, and the workers read the
    features. `cache="memory"` is shared by one job or by threads; other workers encode
    separately. The ledger of each run counts the precomputation as if it were the only
    run.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.simulation import run_experiment
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(LogisticRegression(max_iter=500), batch_size=5)
    >>> runs = run_experiment(
    ...     learner,
    ...     {"iris": (X[::2], y[::2], X[1::2], y[1::2])},
    ...     strategies=["random", "margin"],
    ...     seeds=2,
    ...     n_initial=5,
    ...     n_rounds=3,
    ... )
    >>> for run in runs:
    ...     print(run.info["strategy"], run.info["seed"], run.n_labeled.tolist())
    random 0 [5, 10, 15, 20]
    random 1 [5, 10, 15, 20]
    margin 0 [5, 10, 15, 20]
    margin 1 [5, 10, 15, 20]
    """
    learners = by_name(learners, "learners")
    check_learners(learners)
    data = {
        name: check_data(name, parts, learners)
        for name, parts in by_name(data, "data").items()
    }
    settings = {
        "n_initial": n_initial,
        "n_rounds": n_rounds,
        "initial": initial,
        "batch_size": batch_size,
        "pool_size": pool_size,
        "scoring": scoring,
        "noise": noise,
        "cost": cost,
        "stopping": stopping,
        "final_estimator": final_estimator,
    }
    tasks = _make_tasks(learners, data, strategies, list_seeds(seeds))
    check_requirements(tasks, data)
    for (_, _, X_test, y_test), learner in product(data.values(), learners.values()):
        Scores(learner, X_test, y_test, scoring)

    with RunFolder(folder, _make_plans(folder, tasks, data, settings)) as run_folder:
        runs = run_folder.read_runs()
        todo = {key: task for key, task in tasks.items() if key not in runs}
        seconds = _encode(todo, data, pool_size, n_jobs)
        calls = [
            delayed(_simulate)(key, learner, data[key[0]], settings, seconds[key])
            for key, learner in todo.items()
        ]
        with progress_bar(verbose, total=len(tasks), unit="run") as bar:
            bar.update(len(runs))
            for key, run in _in_parallel(calls, n_jobs):
                run_folder.add(key, run)
                runs[key] = run
                bar.set_postfix_str(", ".join(map(str, key)))
                bar.update()
    return [runs[key] for key in tasks]


def _make_tasks(learners, data, strategies, seeds):
    """Return a learner for each run, by the names of the run."""
    named = None if strategies is None else name_strategies(strategies)
    tasks = {}
    for on, by in product(data, learners):
        own = named or name_strategies(learners[by].strategy)
        for (name, strategy), seed in product(own.items(), seeds):
            learner = clone(learners[by])
            learner.set_params(strategy=strategy, random_state=seed)
            tasks[on, by, name, seed] = learner
    return tasks


def _make_plans(folder, tasks, data, settings):
    """Return what each run depends on, by key; nothing without a folder."""
    if folder is None:
        return {}
    hashes = {name: fingerprint(*parts) for name, parts in data.items()}
    return {
        key: make_plan(learner, data=hashes[key[0]], **settings)
        for key, learner in tasks.items()
    }


def _simulate(key, learner, data, settings, seconds):
    """Run one simulation, in any process."""
    X, y, X_test, y_test = data
    try:
        run = simulate(learner, X, y, X_test=X_test, y_test=y_test, **settings)
    except Exception as exc:
        exc.add_note(f"This happened in the run of {format_key(key)}.")
        raise
    run.info.update(zip(NAMES, key, strict=True))
    seconds += run.ledger["precomputation"]
    run.ledger = {**run.ledger, "precomputation": seconds}
    return key, run


def _in_parallel(calls, n_jobs):
    """Yield the results of the calls as soon as they are available."""
    try:
        parallel = Parallel(n_jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:  # some backends only give all results at once: ask for a few
        size = effective_n_jobs(n_jobs)
        for start in range(0, len(calls), size):
            yield from Parallel(n_jobs)(calls[start : start + size])
    else:
        yield from parallel(calls)


def _encode(tasks, data, pool_size, n_jobs):
    """Encode each data set once if all workers can read the features."""
    backend, _ = get_active_backend()
    shared = getattr(backend, "supports_sharedmem", False)
    shared = shared or effective_n_jobs(n_jobs) == 1
    seconds, measured = {}, {}
    for key, learner in tasks.items():
        steps = find_cached_steps(learner.estimator)
        if not steps or (not shared and steps[-1].cache == "memory"):
            seconds[key] = 0.0
            continue
        same = key[0], str([describe(step) for step in steps])
        if same not in measured:
            X, y, X_test, _ = data[key[0]]
            X, _ = take_pool(X, y, pool_size)
            measured[same] = precompute_features(learner.estimator, X, X_test)
        seconds[key] = measured[same]
    return seconds


_FEW = 50  # items, for a model that is trained only to see what it can do


def by_name(value, argument):
    """Return a dict of a single value or of values by name."""
    if not isinstance(value, Mapping):
        return {"data" if argument == "data" else "learner": value}
    if not value or not all(isinstance(name, str) for name in value):
        raise ValueError(
            f"{argument!r} must hold at least one, by names that are str; got "
            f"{list(value)}."
        )
    return dict(value)


def check_learners(learners):
    """Refuse objects that are not learners."""
    for name, learner in learners.items():
        if not HasMethods(["query", "teach", "get_params"]).is_satisfied_by(learner):
            raise ValueError(
                "'learners' must be an ActiveLearner, or a dict of several by name; "
                f"got {learner!r} as {name!r}."
            )


def check_data(name, parts, learners):
    """Return `(X, y, X_test, y_test)`, the last two None where they are missing."""
    if not isinstance(parts, tuple | list) or len(parts) not in (2, 4):
        came = type(parts).__name__
        if isinstance(parts, tuple | list):
            came += f" of {len(parts)}"
        raise ValueError(
            "'data' must be (X, y) or (X, y, X_test, y_test), or a dict of such "
            f"tuples; got a {came} as {name!r}."
        )
    X, y, X_test, y_test = parts if len(parts) == 4 else (*parts, None, None)
    try:
        for learner in learners.values():
            check_labels(X, y, X_test, y_test, learner.estimator)
    except (TypeError, ValueError) as exc:
        exc.add_note(f"This is about the data {name!r}.")
        raise
    return X, y, X_test, y_test


def check_requirements(tasks, data):
    """Refuse strategies that require a capability that a model lacks."""
    fitted, faults, seen = {}, [], set()
    for (on, by, name, _), learner in tasks.items():
        if (on, by, name) in seen:
            continue
        seen.add((on, by, name))
        X, y = data[on][:2]
        strategy = resolve(learner.strategy)
        try:
            _check(strategy, name, learner.estimator, X, y)
        except (TypeError, NotFittedError):
            # Some models show only once they are fitted what they can do.
            if (on, by) not in fitted:
                fitted[on, by] = _fit_on_few(learner.estimator, X, y)
            if fitted[on, by] is None:
                continue
            try:
                _check(strategy, name, fitted[on, by], X, y)
            except TypeError as exc:
                faults.append(f"{name!r} with the learner {by!r} on {on!r}: {exc}")
    if faults:
        raise TypeError(
            "'strategies' must suit every learner. Leave these out, or run each "
            f"learner in an experiment of its own: {' '.join(faults)}"
        )


def _check(strategy, name, estimator, X, y):
    front, final = split_estimator(estimator)
    arguments = {"name": name, "final": final, "front": front, "model": estimator}
    arguments |= {"X": X, "y_labeled": as_labels(y, count_items(X))}
    check_target(read_declared(strategy, "targets", TARGETS), **arguments)
    for capability in read_declared(strategy, "requires", None) or ():
        check_capability(capability, **arguments)


def _fit_on_few(estimator, X, y):
    """Return a clone trained on a few items; None if that fails."""
    labels = as_labels(y, count_items(X))
    has_classes = is_classifier(estimator) and (
        labels.ndim == 1 or is_indicator(labels)
    )
    kind = "stratified" if has_classes else "random"
    n = min(_FEW, len(labels))
    few = choose_initial(kind, n, labels, np.random.default_rng(0))
    try:
        return clone(estimator).fit(take_rows(X, few), labels[few])
    except Exception:
        return None


def name_strategies(strategies):
    """Return a dict of existing strategies, from one, several, or a dict."""
    if isinstance(strategies, Mapping):
        named = by_name(strategies, "strategies")
    else:
        if isinstance(strategies, str) or not isinstance(strategies, list | tuple):
            strategies = [strategies]
        names = [format_name(strategy) for strategy in strategies]
        twice = {name for name in names if names.count(name) > 1}
        if twice or not names:
            raise ValueError(
                "'strategies' must hold at least one, and none twice; got "
                f"{', '.join(names) or 'none'}. Name them in a dict."
            )
        named = dict(zip(names, strategies, strict=True))
    for strategy in named.values():
        resolve(strategy, argument="strategies")
    return named


def list_seeds(seeds):
    """Return the list of seeds, from their number or a sequence."""
    if (
        isinstance(seeds, Integral)
        and not isinstance(seeds, bool)
        and 0 < seeds <= MOST
    ):
        return list(range(seeds))
    try:
        listed = [int(operator.index(seed)) for seed in seeds]
    except TypeError:
        listed = []
    if not listed or len(set(listed)) < len(listed) or min(listed) < 0:
        raise ValueError(
            f"'seeds' must be a number of seeds from 1 to {MOST}, or different ints of "
            f"at least 0; got {seeds!r}."
        )
    return listed
