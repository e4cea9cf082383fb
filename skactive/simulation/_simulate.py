"""The simulation loop: query, label, train, score and record."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral, Real
from time import process_time
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from .._storage._fingerprint import collect_versions, to_text
from .._utils._bases import BaseEstimator, MetaEstimatorMixin, clone, fit_context
from .._utils._containers import NothingToAskError, count_items, take_rows
from .._utils._format import progress_bar
from .._utils._labels import as_labels
from .._utils._pipelines import carries_over, needs_training, takes_unlabeled
from .._utils._repeatable import base_seed, round_rng
from .._utils._sklearn import (
    HasMethods,
    Interval,
    StrOptions,
    check_count,
    validate_params,
)
from ..learner import ActiveLearner, DelegationMixin
from ..stopping import Run, get_stopping_rule, is_rule, should_stop
from ._folder import VERSIONED, RunRecorder
from ._oracle import Oracle, as_costs, choose_initial
from ._scoring import Scores, check_labels

# `run_experiment` has these arguments as well.
CONSTRAINTS = {
    "scoring": [str, callable, list, tuple, set, frozenset, dict, None],
    "noise": [Interval(Real, 0, 1, closed="both"), callable, None],
    "cost": ["array-like", callable, None],
    "final_estimator": [HasMethods(["fit", "get_params"]), None],
    "verbose": ["verbose", StrOptions({"auto"})],
}


@validate_params(
    {
        **CONSTRAINTS,
        "learner": [HasMethods(["query", "teach", "get_params"])],
        "precompute": ["boolean"],
        "folder": [str, os.PathLike, None],
    },
    prefer_skip_nested_validation=False,
)
def simulate(
    learner: ActiveLearner,
    X: Any,
    y: ArrayLike,
    *,
    n_initial: int = 50,
    n_rounds: int = 9,
    X_test: Any = None,
    y_test: ArrayLike | None = None,
    scoring: str | Callable | list | tuple | set | dict | None = None,
    initial: Literal["random", "stratified", "first"] | ArrayLike | None = None,
    batch_size: int | None = None,
    pool_size: int | None = None,
    noise: float | Callable | None = None,
    cost: ArrayLike | Callable | None = None,
    stopping: Any = None,
    final_estimator: Any = None,
    precompute: bool = True,
    folder: str | os.PathLike | None = None,
    verbose: int | Literal["auto"] = 0,
) -> Run:
    """Run the active-learning loop on labeled data, with `y` in place of a person.

    Parameters
    ----------
    learner : ActiveLearner
        The learner; it is cloned. Its `random_state` also determines the initial items
        and the noise.
    X : container of n items
        The pool.
    y : array-like of shape (n,) or (n, k)
        The true labels. A classifier needs at least two classes, each of several items.
    n_initial : int, default=50
        Number of items labeled before the first query. With 0, the first query uses the
        learner's `cold_start`.
    n_rounds : int, default=9
        Number of queries. The loop ends early when the pool is empty.
    X_test, y_test : container and array-like, default=None
        Test data to score on after each round. By default, nothing is scored. All
        classes of `y_test` must occur in `y`. A score is NaN until the model has seen
        the classes that the metric needs.
    scoring : str, callable, list or dict of them, or None, default=None
        One metric or several, as in scikit-learn; the first is the primary metric of
        the run. Also known are "label_ranking_average_precision", "neg_hamming_loss"
        and "spearman". Defaults to the learner's own `score`.
    initial : {"random", "stratified", "first"}, array-like or None, default=None
        The initial items: `n_initial` random ones (also None); a sample that is
        stratified by class, with at least one item of each class (of a regression by
        ten quantiles, of several labels per item with each label, the rarest first);
        the first ones of the pool; or the given positions or mask. "stratified" uses
        the labels of the whole pool, so it is for simulations only.
    batch_size : int or None, default=None
        Number of labels per round. Defaults to the learner's `batch_size`.
    pool_size : int or None, default=None
        Number of items of `X` that form the pool, from the first one. Defaults to all.
    noise : float, callable or None, default=None
        The probability of a wrong label, which is any other class (for several labels
        per item and for numbers, the label of another item), or a function
        `noise(positions, labels, rng) -> labels`. `y_test` has no noise. The function
        can refuse an item with None in place of its label: the item gets no label, is
        not queried again, and is listed as "refused" in the record of the round.
    cost : array-like of shape (n,), callable or None, default=None
        Cost of each item of `X` in any unit, such as minutes, or a function of one item
        that returns it. Items that are refused cost as much as others. `run.cost` holds
        the sum after each round. By default, each item costs 1.
    stopping : rule, str or None, default=None
        A rule of :mod:`skactive.stopping`, or its name, that can end the loop early. A
        clone of it is started with `start()` and called as `check(run, learner, X)`
        after each round.
    final_estimator : estimator or None, default=None
        A model that is trained once on all labels after the loop; its scores are the
        run's `final_scores`.
    precompute : bool, default=True
        Whether steps of a pipeline that need no fit and cache their output, such as
        :class:`skactive.bert.BertFeatures`, encode pool and test items before the loop,
        so that the ledger counts this separately. No other result changes.
    folder : str, path-like or None, default=None
        A folder that keeps each round, and the run at the end, as lines of
        `runs.jsonl`. If the process was killed, call `simulate` with the same arguments
        again: it continues after the last finished round, and the run equals that of an
        uninterrupted loop. One process at a time.
    verbose : int, bool or "auto", default=0
        Whether a bar on stderr shows the finished rounds. "auto" shows it on an
        interactive terminal and in a notebook if the loop takes more than 3 seconds.

    Returns
    -------
    run : Run

    Raises
    ------
    ValueError
        If a number is negative, `n_initial` exceeds the size of the pool, `y` does not
        hold at least two classes of several items, `y_test` does not fit `X_test` and
        `y`, or `folder` holds another simulation.
    TypeError
        If `y_test` holds labels of another kind than `y`, such as numbers instead of
        strings.

    Warns
    -----
    UserWarning
        If `y` holds more classes than half the number of items.

    Notes
    -----
    All seconds are processor seconds of this process, summed over its threads. Other
    programs on the machine do not change them. They leave out the worker processes of
    an estimator (`n_jobs`), and count a GPU only while the processor waits for it. If
    threads simulate several runs at once, each run counts the seconds of all.

    The ledger of the run counts encoding as "precomputation" only if the first step of
    the pipeline caches its output. Cached features take almost no time.
    The activations of frozen layers that :class:`skactive.bert.BertClassifier` caches
    are part of "fit". Scoring is not counted.

    If a simulation with a `folder` continues, the model of the last finished round
    is trained again; with a stopping rule, the models of all finished rounds, because
    the rule may depend on them. Functions among the arguments are compared by name.

    Examples
    --------
    >>> from skactive import ActiveLearner, simulate
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), batch_size=10, random_state=0
    ... )
    >>> test = {"X_test": X[1::2], "y_test": y[1::2]}
    >>> run = simulate(learner, X[::2], y[::2], n_initial=10, n_rounds=3, **test)
    >>> for n, score in zip(run.n_labeled, run.scores):
    ...     print(f"{n} labels: {score:.2f}")
    10 labels: 0.84
    20 labels: 0.93
    30 labels: 0.97
    40 labels: 0.96
    """
    # Everything is checked before the folder is made.
    check_count("n_rounds", n_rounds, 0)
    learner = clone(learner)
    if batch_size is not None:
        check_count("batch_size", batch_size, 1)
        learner.set_params(batch_size=batch_size)
    y, y_test = check_labels(X, y, X_test, y_test, learner.estimator)
    costs = as_costs(cost, X)
    X, y = take_pool(X, y, pool_size)
    rule = _start_rule(stopping)
    score = Scores(learner, X_test, y_test, scoring)
    recorder = RunRecorder(folder)
    seed = recorder.choose_seed(base_seed(learner.random_state))
    rng, numeric = round_rng(seed, 0, "initial"), is_regressor(learner.estimator)
    queried = choose_initial(initial, n_initial, y, rng, numeric)
    oracle = Oracle(y, noise, seed, costs, numeric)

    plan = {
        "n_initial": n_initial,
        "n_rounds": n_rounds,
        "initial": initial,
        "scoring": scoring,
        "noise": noise,
        "cost": costs,
        "stopping": stopping,
        "final_estimator": final_estimator,
    }
    with recorder.open(seed, learner, (X, y, X_test, y_test), **plan):
        learner.set_params(random_state=seed)
        run = recorder.run
        run.info = _describe_run(learner, y, X_test, queried, plan)
        if recorder.ended:
            return run
        if precompute:
            seconds = precompute_features(learner.estimator, X, X_test)
            recorder.record("precomputation", seconds=seconds)
        loop = learner, X, oracle, queried, n_rounds, recorder
        ended_by = run_loop(*loop, score=score, rule=rule, verbose=verbose)
        recorder.end(ended_by, **_train_final(learner, final_estimator, X, run, score))
    return run


def run_loop(
    learner, X, oracle, queried, n_rounds, recorder, *, score=None, rule=None, verbose=0
):
    """Run the loop on the pool `X`; return the rule that ended it as `str`, or None.

    `queried` (b,) holds the initial positions. Rounds that `recorder` has already are
    repeated without a query.
    """
    run = recorder.run
    n_done = len(run.rounds)
    unlabeled = np.ones(count_items(X), dtype=bool)
    first = 0
    if n_done and rule is None and not carries_over(learner.estimator):
        # No rule looks at the earlier models and none depends on the previous one, so a
        # single training replaces those of an earlier process.
        first = n_done
        unlabeled[run.queried] = False
        _take_over(learner, X, oracle, run, unlabeled)

    seen = Run(info=run.info, ledger={"precomputation": run.ledger["precomputation"]})
    rounds = range(first, n_rounds + 1)
    bar = {"total": n_rounds + 1, "initial": first, "unit": "round"}
    with progress_bar(verbose, iterable=rounds, **bar) as rounds:
        for number in rounds:
            # Choose what to label: a round of an earlier process is not queried again.
            start = process_time()
            if number < n_done:
                queried = _positions(run.rounds[number])
            elif number > 0:
                try:
                    queried = learner.query(X, candidates=unlabeled)
                except NothingToAskError:  # the rest repeats texts that have a label
                    break
            query_seconds = process_time() - start if number > 0 else 0.0

            # Label: the oracle knows the round, for its noise. What it refuses is not
            # queried again.
            labels, answered = oracle.label(queried, number)
            unlabeled[queried] = False

            # Train. Without initial items there is nothing to learn from yet.
            start = process_time()
            if len(labels):
                train = learner.fit if number == 0 else learner.teach
                pool = _pool_for(learner, X, unlabeled)
                train(take_rows(X, queried[answered]), labels, **pool)
            fit_seconds = process_time() - start

            # Score and record, before the next round begins.
            if number >= n_done:
                spent = run.rounds[-1]["cost"] if number else 0.0
                recorder.record(
                    "round",
                    round=number,
                    queried=queried.tolist(),
                    refused=queried[~answered].tolist(),
                    cost=spent + float(oracle.costs[queried].sum()),
                    fit_seconds=fit_seconds,
                    query_seconds=query_seconds,
                    scores={} if score is None else score(learner),
                )

            # Stop? Before there is a model, a rule has nothing to judge.
            seen.append(run.rounds[number])
            if rule is None or not hasattr(learner, "estimator_"):
                continue
            if should_stop(rule, seen, learner, X):
                return rule.reason() if hasattr(rule, "reason") else to_text(rule)
    return None


def _take_over(learner, X, oracle, run, unlabeled):
    """Train `learner` on the labels of all rounds of `run`, as its last round did."""
    rounds = [_positions(record) for record in run.rounds]
    answers = [oracle.label(queried, number) for number, queried in enumerate(rounds)]
    labels = [part for part, _ in answers if len(part)]
    if labels:
        pool = _pool_for(learner, X, unlabeled)
        answered = np.concatenate([part for _, part in answers])
        X = take_rows(X, run.queried[answered])
        n_rounds = sum(len(part) > 0 for part, _ in answers[1:])
        learner._resume(X, np.concatenate(labels), n_rounds, **pool)


def _pool_for(learner, X, unlabeled):
    """Return the unlabeled items of a pool for an estimator that learns from them."""
    if not takes_unlabeled(learner.estimator):
        return {}
    return {"X_unlabeled": take_rows(X, np.flatnonzero(unlabeled))}


def _positions(record):
    return np.array(record["queried"], dtype=np.intp)


def _train_final(learner, estimator, X, run, score):
    """Train the final model on all labels; return its scores and processor seconds."""
    if estimator is None or not hasattr(learner, "X_labeled_"):
        return {"final_scores": {}, "seconds": 0.0}
    start = process_time()
    unlabeled = np.ones(count_items(X), dtype=bool)
    unlabeled[run.queried] = False
    learner.set_params(estimator=clone(estimator))
    learner.refit(**_pool_for(learner, X, unlabeled))
    seconds = process_time() - start
    return {"final_scores": score(learner), "seconds": seconds}


def take_pool(X, y, pool_size):
    if pool_size is None:
        return X, y
    check_count("pool_size", pool_size, 1)
    if pool_size >= len(y):
        return X, y
    return take_rows(X, np.arange(pool_size)), y[:pool_size]


def _start_rule(stopping):
    if stopping is None:
        return None
    if isinstance(stopping, str):
        stopping = get_stopping_rule(stopping)
    if not is_rule(stopping):
        raise TypeError(
            "'stopping' must be a rule with the methods start() and check(run, "
            f"learner, X), got {stopping!r}. Use one of skactive.stopping."
        )
    rule = clone(stopping, safe=False)
    rule.start()
    return rule


def _describe_run(learner, y, X_test, queried, plan):
    """Return the `info` of a run."""
    initial, noise = plan["initial"], plan["noise"]
    final_estimator = plan["final_estimator"]
    versions = collect_versions(VERSIONED)
    if initial is not None and not isinstance(initial, str):
        initial = "given"
    return {
        "strategy": format_name(learner.strategy),
        "estimator": to_text(learner.estimator),
        "seed": learner.random_state,
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
        "pool_size": len(y),
        "test_size": 0 if X_test is None else count_items(X_test),
        "initial": initial or "random",
        "n_initial": len(queried),
        "n_rounds": int(plan["n_rounds"]),
        "batch_size": int(learner.batch_size),
        "noise": format_name(noise) if callable(noise) else float(noise or 0),
        "final_estimator": None
        if final_estimator is None
        else to_text(final_estimator),
    }


def format_name(value):
    """Return a name itself, the `__name__` of a function, or the repr of an object."""
    if isinstance(value, str):
        return value
    return getattr(value, "__name__", None) or to_text(value)


def find_cached_steps(estimator):
    """Return the first steps of a pipeline whose output can be computed without labels.

    None of them needs a fit, and the last one caches its output.
    """
    steps = []
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps[:-1]:
            if step is None or step == "passthrough":
                continue
            if needs_training(step):
                break
            steps.append(step)
    while steps and getattr(steps[-1], "cache", None) is None:
        steps.pop()
    return steps


def precompute_features(estimator, *containers):
    """Compute the features that a pipeline caches; return the processor seconds.

    Containers that are None are skipped.
    """
    steps = find_cached_steps(estimator)
    if not steps:
        return 0.0
    start = process_time()
    for X in containers:
        for step in steps if X is not None else ():
            X = step.transform(X)
    return process_time() - start


class SimulatedLearner(DelegationMixin, MetaEstimatorMixin, BaseEstimator):
    """Learner that spends a labeling budget on the data passed to `fit`.

    `ActiveLearner.fit` trains on all its data, so its score does not depend on the
    strategy. Here `fit(X, y)` uses `X` as the pool and `y` in place of a person, and
    ends with the model trained on the queried labels. So a grid search or a
    cross-validation compares strategies at equal budgets.

    Parameters
    ----------
    estimator : ActiveLearner
        The learner; its `batch_size` is the size of each round.
    n_initial : int, default=50
        Number of random items labeled before the first query.
    n_rounds : int, default=9
        Number of queries.

    Attributes
    ----------
    estimator_ : ActiveLearner
        The learner after the last round.
    run_ : Run
        The queried positions, without scores.
    classes_ : ndarray of shape (n_classes,)
        The classes among the queried labels.

    Examples
    --------
    Which strategy gives the better model for 30 labels?

    >>> from skactive import ActiveLearner
    >>> from skactive.simulation import SimulatedLearner
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), batch_size=5, random_state=0
    ... )
    >>> search = GridSearchCV(
    ...     SimulatedLearner(learner, n_initial=20, n_rounds=2),
    ...     {"estimator__strategy": ["random", "margin"]},
    ... )
    >>> search.fit(X, y).best_params_["estimator__strategy"]
    'margin'
    """

    _parameter_constraints = {
        "estimator": [HasMethods(["query", "teach"])],
        "n_initial": [Interval(Integral, 0, None, closed="left")],
        "n_rounds": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self, estimator: ActiveLearner, *, n_initial: int = 50, n_rounds: int = 9
    ):
        self.estimator = estimator
        self.n_initial = n_initial
        self.n_rounds = n_rounds

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Run the loop on a pool.

        Parameters
        ----------
        X : container of n items
            The pool.
        y : array-like of shape (n,)
            The true labels.

        Returns
        -------
        self : SimulatedLearner
        """
        learner = clone(self.estimator)
        seed = base_seed(learner.random_state)
        learner.set_params(random_state=seed)
        y = as_labels(y, count_items(X))
        rng = round_rng(seed, 0, "initial")
        queried = choose_initial("random", self.n_initial, y, rng)
        recorder = RunRecorder()
        run_loop(learner, X, Oracle(y), queried, self.n_rounds, recorder)
        self.run_ = recorder.run
        self.estimator_ = learner
        return self
