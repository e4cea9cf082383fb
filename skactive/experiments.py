"""Simulate learners, strategies, seeds and data sets against each other."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from itertools import product
from numbers import Integral

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import clone
from tqdm import tqdm

from ._containers import take_rows
from ._files import LineWriter, make_folder, read_lines
from ._labels import as_labels
from ._lock import Lock
from ._positions import count_items
from .registry import resolve
from .runs import Run
from .simulation import simulate
from .simulation.plan import (
    describe,
    find_changes,
    fingerprint,
    make_plan,
    to_text,
)
from .simulation.precomputation import find_cached_steps, precompute_features

__all__ = ["read_runs", "run_experiment"]

_FILE = "runs.jsonl"
_NAMES = ("data", "learner", "strategy", "seed")


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
        If a name is used twice, a strategy is unknown, or `folder` holds a run of the
        same names with other settings. All of this is found before any work.

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
    data = {name: _check_data(name, d) for name, d in _by_name(data, "data").items()}
    learners = _by_name(learners, "learners")
    named = None if strategies is None else _name_strategies(strategies)
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
        own = named or _name_strategies(learners[by].strategy)
        for (name, strategy), seed in product(own.items(), _list_seeds(seeds)):
            learner = clone(learners[by])
            learner.set_params(strategy=strategy, random_state=seed)
            tasks[on, by, name, seed] = learner

    with _Results(folder, tasks, data, settings) as results:
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


def read_runs(folder):
    """Read the runs that `run_experiment` keeps in a folder.

    Parameters
    ----------
    folder : str or path-like

    Returns
    -------
    runs : list of Run
        In the order in which they were finished.

    Raises
    ------
    FileNotFoundError
        If there are none.
    ValueError
        If the file is damaged, naming the line.
    """
    return [Run.from_dict(line["run"]) for line in _read_lines(folder)]


class _Results:
    """Runs done so far, each kept as a line of a file if there is a folder."""

    def __init__(self, folder, tasks, data, settings):
        self.runs = {}
        self._writer = self._lock = None
        if folder is None:
            return
        digests = {name: fingerprint(*parts) for name, parts in data.items()}
        self._plans = {
            key: make_plan(learner, data=digests[key[0]], **settings)
            for key, learner in tasks.items()
        }
        make_folder(folder)
        self._lock = Lock(os.path.join(folder, "lock"), repr(os.fspath(folder)))
        try:
            path = os.path.join(folder, _FILE)
            if os.path.exists(path):
                self._take_over(folder)
            self._writer = LineWriter(path)
        except BaseException:
            self._lock.release()
            raise

    def _take_over(self, folder):
        for line in _read_lines(folder):
            key = tuple(line["names"][name] for name in _NAMES)
            if key not in self._plans:
                continue  # of another experiment in the same folder
            if changes := find_changes(line["plan"], self._plans[key]):
                raise ValueError(
                    f"'folder' {os.fspath(folder)!r} holds a run of {_spell(key)} with "
                    f"other settings: {changes}. Go back to those, choose other names "
                    "for what has changed, or another folder."
                )
            self.runs[key] = Run.from_dict(line["run"])

    def add(self, key, run):
        if self._writer is not None:
            names = dict(zip(_NAMES, key, strict=True))
            line = {"names": names, "plan": self._plans[key], "run": run.to_dict()}
            self._writer.write(line)
        self.runs[key] = run

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self._writer is not None:
            self._writer.close()
            self._lock.release()


def _read_lines(folder):
    path = os.path.join(folder, _FILE)
    lines, _ = read_lines(path)  # a torn last line is a run not done
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, dict) or not {"names", "plan", "run"} <= set(line):
            raise ValueError(
                f"line {number} of {path!r} holds no run of an experiment. Restore the "
                "file, or choose another folder."
            )
    return lines


def _simulate(key, learner, data, settings, seconds):
    """Do one run, in whatever process."""
    X, y, X_test, y_test = data
    try:
        run = simulate(learner, X, y, X_test=X_test, y_test=y_test, **settings)
    except Exception as exc:
        exc.add_note(f"This happened in the run of {_spell(key)}.")
        raise
    run.info.update(zip(_NAMES, key, strict=True))
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


def _spell(key):
    return ", ".join(f"{n} {value!r}" for n, value in zip(_NAMES, key, strict=True))


def _by_name(value, argument):
    """Give a dict of what came alone or by name."""
    if not isinstance(value, Mapping):
        return {"data" if argument == "data" else "learner": value}
    if not value or not all(isinstance(name, str) for name in value):
        raise ValueError(
            f"{argument!r} must hold at least one, by names that are str; got "
            f"{list(value)}."
        )
    return dict(value)


def _check_data(name, parts):
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
        as_labels(y, count_items(X))
    except (TypeError, ValueError) as exc:
        exc.add_note(f"This is about the data {name!r}.")
        raise
    return X, y, X_test, y_test


def _name_strategies(strategies):
    if isinstance(strategies, Mapping):
        named = _by_name(strategies, "strategies")
    else:
        if isinstance(strategies, str) or not isinstance(strategies, list | tuple):
            strategies = [strategies]
        names = [
            s if isinstance(s, str) else getattr(s, "__name__", None) or to_text(s)
            for s in strategies
        ]
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


def _list_seeds(seeds):
    if isinstance(seeds, Integral) and not isinstance(seeds, bool) and seeds > 0:
        return list(range(seeds))
    try:
        listed = [int(operator.index(seed)) for seed in seeds]
    except TypeError:
        listed = []
    if not listed or len(set(listed)) < len(listed) or min(listed) < 0:
        raise ValueError(
            "'seeds' must be a number of seeds of at least 1, or different ints of at "
            f"least 0; got {seeds!r}."
        )
    return listed
