"""Every learner with every strategy, seed and data set, on several workers."""

from __future__ import annotations

import os
from itertools import product
from numbers import Integral

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import clone
from tqdm import tqdm

from .._containers import take_rows
from .._positions import count_items
from .._sklearn import Interval, validate_params
from ..simulation import simulate
from ..simulation.loop import CONSTRAINTS
from ..simulation.plan import describe
from ..simulation.precomputation import find_cached_steps, precompute_features
from .folder import NAMES, Results, spell
from .inputs import (
    by_name,
    check_data,
    check_learners,
    check_requirements,
    list_seeds,
    name_strategies,
)

__all__ = ["run_experiment"]


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
    learners,
    data,
    *,
    strategies=None,
    seeds=5,
    n_initial=50,
    n_rounds=9,
    initial=None,
    batch_size=None,
    pool_size=None,
    scoring=None,
    noise=None,
    stopping=None,
    final_estimator=None,
    n_jobs=None,
    folder=None,
    verbose=0,
):
    """Simulate every learner with every strategy, seed and data set.

    Parameters
    ----------
    learners : ActiveLearner or dict of str to ActiveLearner
        What is simulated, by name.
    data : tuple or dict of str to tuple
        `(X, y)` or `(X, y, X_test, y_test)`, by name.
    strategies : None, str or strategy, sequence of them, or dict by name, default=None
        In place of each learner's own, which None keeps.
    seeds : int or sequence of int, default=5
        How many seeds, from 0, or which ones: the `random_state` of each run. Within
        a seed, all strategies begin with the same labels.
    n_initial, n_rounds, initial, batch_size, pool_size, scoring, noise, stopping, \
final_estimator
        As in :func:`skactive.simulate`.
    n_jobs : int or None, default=None
        How many runs at a time; None is 1, or what :func:`joblib.parallel_config`
        says. Any backend that is registered with joblib will do.
    folder : str, path-like or None, default=None
        Each finished run is a line of `runs.jsonl` in this folder, written by this
        process alone and on the disk before the next is counted as done. Called
        again, the experiment takes over the runs that it finds and does the others.
    verbose : int, default=0
        Above 0, progress is shown on stderr.

    Returns
    -------
    runs : list of Run
        By data set, learner, strategy and seed, in the order given. `info` holds
        "data", "learner", "strategy" and "seed".

    Raises
    ------
    ValueError
        If a name is used twice, a strategy is unknown, labels are refused by
        :func:`skactive.simulate`, or `folder` holds a run of the same names with
        other settings.
    TypeError
        If a strategy needs what the model of a learner cannot give.

        All errors are raised before the first run.

    See Also
    --------
    skactive.simulate : One of the runs.
    read_runs : Read the folder.

    Notes
    -----
    Worker processes share no memory. Where a pipeline begins with
    :class:`skactive.bert.BertFeatures`, give it a folder as `cache`: this process then
    encodes each data set once, before the first run, and the workers read the
    features. With `cache="memory"` that works for one job and for threads; other
    workers each encode for themselves. Each run's ledger counts the precomputation as
    if it were the only run.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.experiments import run_experiment
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
    >>> [(run.info["strategy"], run.info["seed"]) for run in runs]
    [('random', 0), ('random', 1), ('margin', 0), ('margin', 1)]
    """
    learners = by_name(learners, "learners")
    check_learners(learners)
    data = {
        name: check_data(name, parts, learners)
        for name, parts in by_name(data, "data").items()
    }
    named = None if strategies is None else name_strategies(strategies)
    settings = {
        "n_initial": n_initial,
        "n_rounds": n_rounds,
        "initial": initial,
        "batch_size": batch_size,
        "pool_size": pool_size,
        "scoring": scoring,
        "noise": noise,
        "stopping": stopping,
        "final_estimator": final_estimator,
    }
    tasks = {}
    for on, by in product(data, learners):
        own = named or name_strategies(learners[by].strategy)
        for (name, strategy), seed in product(own.items(), list_seeds(seeds)):
            learner = clone(learners[by])
            learner.set_params(strategy=strategy, random_state=seed)
            tasks[on, by, name, seed] = learner
    check_requirements(tasks, data)

    with Results(folder, tasks, data, settings) as results:
        todo = {key: task for key, task in tasks.items() if key not in results.runs}
        seconds = _encode(todo, data, pool_size, n_jobs)
        calls = [
            delayed(_simulate)(key, learner, data[key[0]], settings, seconds[key])
            for key, learner in todo.items()
        ]
        with tqdm(total=len(tasks), unit="run", disable=not verbose) as bar:
            bar.update(len(tasks) - len(todo))
            for key, run in _in_parallel(calls, n_jobs):
                results.add(key, run)
                bar.set_postfix_str(", ".join(map(str, key)))
                bar.update()
    return [results.runs[key] for key in tasks]


def _simulate(key, learner, data, settings, seconds):
    """Do one run, in whatever process."""
    X, y, X_test, y_test = data
    try:
        run = simulate(learner, X, y, X_test=X_test, y_test=y_test, **settings)
    except Exception as exc:
        exc.add_note(f"This happened in the run of {spell(key)}.")
        raise
    run.info.update(zip(NAMES, key, strict=True))
    seconds += run.ledger["precomputation"]
    run.ledger = {**run.ledger, "precomputation": seconds}
    return key, run


def _in_parallel(calls, n_jobs):
    """Yield what the calls return as soon as it is there."""
    try:
        parallel = Parallel(n_jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:  # some backends only give all results at once: ask for a few
        size = effective_n_jobs(n_jobs)
        for start in range(0, len(calls), size):
            yield from Parallel(n_jobs)(calls[start : start + size])
    else:
        yield from parallel(calls)


def _encode(tasks, data, pool_size, n_jobs):
    """Encode each data set once, where all workers can read the features."""
    backend, _ = get_active_backend()
    shared = getattr(backend, "supports_sharedmem", False)
    shared = shared or effective_n_jobs(n_jobs) == 1
    seconds, known = {}, {}
    for key, learner in tasks.items():
        steps = find_cached_steps(learner.estimator)
        if not steps or (not shared and steps[-1].cache == "memory"):
            seconds[key] = 0.0
            continue
        same = key[0], str([describe(step) for step in steps])
        if same not in known:
            X, _, X_test, _ = data[key[0]]
            if pool_size is not None and pool_size < count_items(X):
                X = take_rows(X, np.arange(pool_size))
            containers = [X] if X_test is None else [X, X_test]
            known[same] = precompute_features(learner.estimator, containers)
        seconds[key] = known[same]
    return seconds
