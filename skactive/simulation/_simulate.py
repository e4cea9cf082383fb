"""The loop: ask, label, train, score, and keep the record."""

import os
from numbers import Integral
from time import perf_counter

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from tqdm import tqdm

from .._utils._containers import NothingToAskError, count_items, take_rows
from .._utils._labels import as_labels
from .._utils._pipelines import carries_over
from .._utils._random import base_seed, round_rng
from .._utils._sklearn import HasMethods, validate_params
from ..stopping._base import should_stop
from ..stopping._names import get_stopping_rule
from ._initial import Oracle, choose_initial
from ._resume import (
    Checkpoint,
    Progress,
    fingerprint,
    make_plan,
    name_estimator,
    name_initial,
    name_value,
    to_text,
)
from ._run import Run
from ._scoring import Scores, check_labels, check_test_data

# `run_experiment` has these arguments as well.
CONSTRAINTS = {
    "scoring": [str, callable, list, tuple, set, frozenset, dict, None],
    "final_estimator": [HasMethods(["fit", "get_params"]), None],
    "verbose": ["verbose"],
}


@validate_params(
    {
        **CONSTRAINTS,
        "learner": [HasMethods(["query", "teach", "get_params"])],
        "precompute": ["boolean"],
        "checkpoint": [str, os.PathLike, None],
    },
    prefer_skip_nested_validation=False,
)
def simulate(
    learner,
    X,
    y,
    *,
    n_initial=50,
    n_rounds=9,
    X_test=None,
    y_test=None,
    scoring=None,
    initial=None,
    batch_size=None,
    pool_size=None,
    noise=None,
    stopping=None,
    final_estimator=None,
    precompute=True,
    checkpoint=None,
    verbose=0,
):
    """Label by a strategy, with `y` in place of a person.

    Parameters
    ----------
    learner : ActiveLearner
        It is cloned. Its `random_state` also chooses the initial items and the noise.
    X : container of n items
        The pool.
    y : array-like of shape (n,)
        The labels that a person would give. A classifier needs at least two classes,
        each of several items.
    n_initial : int, default=50
        How many items are labelled to begin with; 0 leaves the first round to the
        learner's `cold_start`.
    n_rounds : int, default=9
        How many times the learner asks. The loop ends early when nothing is left.
    X_test, y_test : container and array-like, default=None
        What to score on after each round; None scores nothing. All classes of
        `y_test` must be in `y`. A score is NaN only until the model has seen them.
    scoring : str, callable, list or dict of them, or None, default=None
        One metric or several, as in scikit-learn; the first is the run's primary one.
        None is the learner's own `score`.
    initial : {"random", "stratified", "first"}, array-like or None, default=None
        Which items to begin with: `n_initial` random ones (also None); as many of
        each class as their share of the pool demands and at least one of each, which
        needs labels that nobody has yet, so it is for simulations only; the first
        ones of the pool; or these positions, or this mask.
    batch_size : int or None, default=None
        How many labels to ask for in each round; None is the learner's `batch_size`.
    pool_size : int or None, default=None
        Label only the first so many items of `X`, or all if there are fewer.
    noise : float, callable or None, default=None
        The probability of a wrong label, of any other class, or a function
        `noise(positions, labels, rng) -> labels`; see
        `Oracle`. `y_test` stays as it is.
    stopping : rule, str or None, default=None
        Ends the loop early: a rule of :mod:`skactive.stopping`, or its name. A clone
        of it is started with `start()` and asked `check(run, learner, X)` after each
        round.
    final_estimator : estimator or None, default=None
        A model to train once on all labels after the loop; its scores are the run's
        `final_scores`.
    precompute : bool, default=True
        Whether steps of a pipeline that need no fit and keep their answers, such as
        :class:`skactive.bert.BertFeatures`, encode pool and test items before the
        loop, so that the ledger shows this apart. It changes no other result.
    checkpoint : str, path-like or None, default=None
        A folder that keeps each round. Called again with the same arguments after a
        kill, `simulate` goes on where it stopped, and the run is equal to that of an
        uninterrupted loop. One process at a time.
    verbose : int, default=0
        Above 0, progress is shown on stderr.

    Returns
    -------
    run : Run

    Raises
    ------
    ValueError
        If a number is negative, `n_initial` is more than the pool, `y` does not hold
        at least two classes of several items, `y_test` does not fit `X_test` and `y`,
        or `checkpoint` holds another simulation.
    TypeError
        If `y_test` holds labels of another kind than `y`, such as numbers for strings.

    Warns
    -----
    UserWarning
        If `y` holds a class for every second item or more.

    Examples
    --------
    >>> from skactive import ActiveLearner, simulate
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), batch_size=5, random_state=0
    ... )
    >>> run = simulate(
    ...     learner,
    ...     X,
    ...     y,
    ...     n_initial=5,
    ...     n_rounds=3,
    ...     X_test=X,
    ...     y_test=y,
    ...     scoring=["accuracy", "f1_macro"],
    ... )
    >>> run.n_labeled, run.metrics
    (array([ 5, 10, 15, 20]), ['accuracy', 'f1_macro'])
    """
    learner = clone(learner)
    check_count("n_rounds", n_rounds, 0)
    if batch_size is not None:
        check_count("batch_size", batch_size, 1)
        learner.set_params(batch_size=batch_size)
    given = as_labels(y, count_items(X))
    check_labels(given, learner.estimator)
    check_test_data(X_test, y_test, given, learner.estimator)
    X, y = _take_pool(X, given, pool_size)
    rule = _start(stopping)
    score = Scores(learner, X_test, y_test, scoring)
    seed = base_seed(learner.random_state)
    asked, oracle = begin(y, n_initial, initial, noise, seed)

    progress = Progress(seed)
    if checkpoint is not None:
        plan = make_plan(
            learner,
            data=fingerprint(X, y, X_test, y_test),
            n_initial=n_initial,
            n_rounds=n_rounds,
            initial=initial,
            scoring=scoring,
            noise=noise,
            stopping=stopping,
            final_estimator=final_estimator,
        )
        progress = Checkpoint(checkpoint, plan, seed)
        if progress.seed != seed:  # drawn, so the one drawn first holds
            asked, oracle = begin(y, n_initial, initial, noise, progress.seed)
    learner.set_params(random_state=progress.seed)

    with progress:
        progress.run.info = {
            "strategy": name_value(learner.strategy),
            "estimator": name_estimator(learner.estimator),
            "seed": progress.seed,
            "pool_size": len(y),
            "test_size": 0 if X_test is None else count_items(X_test),
            "initial": name_initial(initial),
            "n_initial": len(asked),
            "n_rounds": int(n_rounds),
            "batch_size": int(learner.batch_size),
            "noise": name_value(noise) if callable(noise) else float(noise or 0),
            "final_estimator": name_estimator(final_estimator),
        }
        if progress.ended:
            return progress.run
        if precompute:
            containers = [X] if X_test is None else [X, X_test]
            progress.precomputed(precompute_features(learner.estimator, containers))
        rounds = play(
            learner,
            X,
            oracle,
            asked,
            n_rounds,
            done=progress.run.rounds,
            # A rule may look at the model of every round, and a model depend on the
            # one before.
            retrain=rule is not None or carries_over(learner.estimator),
        )
        stopped_by = _record(rounds, progress, learner, X, score, rule, verbose)
        progress.end(stopped_by, *_train_last(learner, final_estimator, score))
    return progress.run


def begin(y, n_initial, initial, noise, seed):
    """Choose the first items and the person who labels."""
    rng = round_rng(seed, 0, "initial")
    return choose_initial(initial, n_initial, y, rng), Oracle(y, noise, seed)


def play(learner, X, oracle, asked, n_rounds, done=(), retrain=True):
    """Let a learner label a pool.

    Parameters
    ----------
    learner : ActiveLearner
        Not fitted yet; its `random_state` is an int.
    X : container of n items
    oracle : skactive.simulation._initial.Oracle
    asked : ndarray of int
        The first items.
    n_rounds : int
    done : list of dict, default=()
        Rounds of an earlier process, whose labels are taken over without a query.
    retrain : bool, default=True
        Whether to train after each round of `done` and yield it too; otherwise once,
        after the last one.

    Yields
    ------
    number : int
        Of the round, from 0, the initial labels.
    record : dict
        What happened in it, without scores.
    """
    done = list(done)
    unlabelled = np.ones(count_items(X), dtype=bool)
    first = 0
    if done and not retrain:
        first = len(done)
        positions = Run(done).asked
        unlabelled[positions] = False
        if len(positions):
            labels = [oracle.label(_asked(r), i) for i, r in enumerate(done)]
            labels = np.concatenate([part for part in labels if len(part)])
            learner._resume(take_rows(X, positions), labels, first - 1)

    for number in range(first, n_rounds + 1):
        query_seconds = 0.0
        if number < len(done):
            asked = _asked(done[number])
        elif number > 0:
            if not unlabelled.any():
                return
            start = perf_counter()
            try:
                asked = learner.query(X, candidates=unlabelled)
            except NothingToAskError:  # what is left repeats texts with a label
                return
            query_seconds = perf_counter() - start
        labels = oracle.label(asked, number)
        unlabelled[asked] = False
        start = perf_counter()
        if len(asked):
            learn = learner.fit if number == 0 else learner.teach
            learn(take_rows(X, asked), labels)
        yield (
            number,
            {
                "asked": asked.tolist(),
                "n_labeled": int(unlabelled.size - unlabelled.sum()),
                "fit_seconds": perf_counter() - start,
                "query_seconds": query_seconds,
            },
        )


def _record(rounds, progress, learner, X, score, rule, verbose):
    """Keep and score the new rounds; give the rule that ended them, or None."""
    n_done = len(progress.run.rounds)
    precomputation = progress.run.ledger["precomputation"]
    seen = Run(info=progress.run.info, ledger={"precomputation": precomputation})
    total = progress.run.info["n_rounds"] + 1
    with tqdm(total=total, unit="round", disable=not verbose) as bar:
        bar.update(0 if rule is not None else n_done)
        for number, record in rounds:
            if number >= n_done:
                progress.add_round({**record, "scores": score(learner)})
            bar.update()
            if rule is None:
                continue
            seen.append(progress.run.rounds[number])
            # Before there is a model, no rule has anything to judge.
            if hasattr(learner, "estimator_") and should_stop(rule, seen, learner, X):
                return rule.reason() if hasattr(rule, "reason") else to_text(rule)
    return None


def _train_last(learner, estimator, score):
    """Train another model on all labels; give its scores and the seconds it took."""
    if estimator is None or not hasattr(learner, "X_labeled_"):
        return {}, 0.0
    start = perf_counter()
    learner.set_params(estimator=clone(estimator)).refit()
    seconds = perf_counter() - start
    return score(learner), seconds


def _asked(record):
    return np.array(record["asked"], dtype=np.intp)


def _take_pool(X, y, pool_size):
    if pool_size is None:
        return X, y
    check_count("pool_size", pool_size, 1)
    if pool_size >= len(y):
        return X, y
    return take_rows(X, np.arange(pool_size)), y[:pool_size]


def _start(stopping):
    if stopping is None:
        return None
    if isinstance(stopping, str):
        stopping = get_stopping_rule(stopping)
    if isinstance(stopping, type) or not (
        hasattr(stopping, "start") and hasattr(stopping, "check")
    ):
        raise TypeError(
            "'stopping' must be a rule with the methods start() and check(run, "
            f"learner, X), such as those of skactive.stopping; got {stopping!r}."
        )
    rule = clone(stopping, safe=False)
    rule.start()
    return rule


def check_count(name, value, least):
    """Refuse what is no count."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name!r} must be an int of at least {least}, got {value!r}.")


def find_cached_steps(estimator):
    """Find the front steps whose output can be had before there are labels.

    Parameters
    ----------
    estimator : estimator
        Fitted or not.

    Returns
    -------
    steps : list of transformer
        The first steps of a pipeline, none of which needs a fit, up to the last one
        that keeps what it computes: its `cache` is not None.
    """
    steps = []
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps[:-1]:
            if step is None or step == "passthrough":
                continue
            if get_tags(step).requires_fit:
                break
            steps.append(step)
    while steps and getattr(steps[-1], "cache", None) is None:
        steps.pop()
    return steps


def precompute_features(estimator, containers):
    """Have a pipeline's cache hold the features of some items.

    Parameters
    ----------
    estimator : estimator
    containers : iterable of containers

    Returns
    -------
    seconds : float
        What it took; 0 where nothing can be had before the first labels.
    """
    steps = find_cached_steps(estimator)
    if not steps:
        return 0.0
    start = perf_counter()
    for X in containers:
        for step in steps:
            X = step.transform(X)
    return perf_counter() - start
