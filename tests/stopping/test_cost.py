"""The rule that compares the costs of labels and of errors."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, LabelingSession, simulate
from skactive.estimation._gain import gain_of_labels
from skactive.estimation._held_out import out_of_fold
from skactive.simulation import Run
from skactive.stopping import CostRule, as_callback

from ._helpers import _learner


@pytest.fixture
def pool():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=900)
    return rng.normal(size=(900, 30)) + 0.35 * y[:, None], np.array(["a", "b"])[y]


def run_until(rule, pool, n_rounds=25, **params):
    learner = ActiveLearner(
        LogisticRegression(), "margin", batch_size=20, random_state=0
    )
    return simulate(
        learner, *pool, n_initial=20, n_rounds=n_rounds, stopping=rule, **params
    )


def label_all(X, y, strategy, error_costs, n_future=0, seed=0):
    """Return labels and errors after each round of a loop, and the stop for each cost.

    The errors are counted from the truth: wrong predictions in the rest of the pool,
    and the share of those for the items after the pool times `n_future`.
    """
    n = len(X) // 2 if n_future else len(X)
    learner = ActiveLearner(
        LogisticRegression(), strategy, batch_size=50, random_state=seed
    )
    rules = {cost: CostRule(1.0, cost, n_future=n_future) for cost in error_costs}
    run, rest, errors, stops = Run(info={"seed": seed}), np.arange(n), [], {}
    while len(rest):
        queried = learner.query(X[:n], candidates=rest)
        learner.teach(X[queried], y[queried])
        rest = np.setdiff1d(rest, queried)
        run.append({"queried": queried})
        errors.append(sum(learner.predict(X[rest]) != y[rest]) if len(rest) else 0)
        if n_future:
            errors[-1] += n_future * np.mean(learner.predict(X[n:]) != y[n:])
        for cost in error_costs:
            if cost not in stops and rules[cost].check(run, learner, X[:n]):
                stops[cost] = len(errors) - 1
    last = len(errors) - 1
    return run.n_labeled, np.array(errors), [stops.get(c, last) for c in error_costs]


@pytest.mark.long
def test_it_compares_the_errors_prevented_with_the_labels(pool):
    X, y = pool
    learner = _learner().fit(X[:160], y[:160])
    run = Run([{"queried": range(160)}], info={"seed": 3})
    found = out_of_fold(LogisticRegression(), X[:160], y[:160], X[160:], seed=3)
    gain, interval = gain_of_labels(found, 100)
    assert gain > 0
    wrong = np.mean(found.proba.argmax(axis=1) != found.codes)
    for n_future in (0, 500):
        worth = wrong + gain * (740 - 100 + n_future) / 100  # of one label
        for factor, stops in ((0.99, False), (1.01, True)):
            rule = CostRule(factor * worth, 1.0, n_future=n_future)
            assert rule.check(run, learner, X) is stops
            assert rule.gains_ == [(gain, interval)]
            assert rule.prevented_ == [pytest.approx(worth)]
        rule = CostRule(0.99 * worth * 7, 7.0, n_future=n_future)
        assert not rule.check(run, learner, X)


def test_only_the_last_labels_tell_what_a_query_prevents():
    # The first 300 labels are all right, and those of the last 200 are wrong.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2)) + 4
    X[::2] *= -1
    y = (X[:, 0] > 0).astype(int)
    y[300:500] = rng.integers(2, size=200)
    learner = _learner().fit(X[:500], y[:500])
    run, rule = Run([{"queried": range(500)}]), CostRule(1.0, 1.0)
    rule.check(run, learner, X)
    assert 0.4 < rule.prevented_[0] < 0.6


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["random", "margin"])
def test_labels_that_teach_nothing_still_remove_errors(strategy):
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(1000, 1))
    y = np.where(rng.random(1000) < 0.3, X[:, 0] < 0, X[:, 0] > 0)
    n, errors, stops = label_all(X, y, strategy, (2, 10))
    assert n[stops[1]] == n[(n + 10 * errors).argmin()] == 1000
    assert n[stops[0]] == 150  # each label prevents 0.3 errors


@pytest.mark.slow
@pytest.mark.parametrize("n_future", [0, 1000])
@pytest.mark.parametrize("strategy", ["random", "margin"])
def test_the_stop_costs_little_more_than_the_best_one(strategy, n_future):
    ratios, error_costs = [], (2, 10)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        k, size = 2 + seed % 3, 2000 if n_future else 1000
        means = 0.8 * rng.normal(size=(k, 3, 12))
        truth, mode = rng.integers(k, size=size), rng.integers(3, size=size)
        X = means[truth, mode] + rng.normal(size=(size, 12))
        y = np.where(rng.random(size) < 0.05, rng.integers(k, size=size), truth)
        n, errors, stops = label_all(X, y, strategy, error_costs, n_future, seed)
        for cost, stop in zip(error_costs, stops, strict=True):
            costs = n + cost * errors
            ratios.append(costs[stop] / costs.min())
    assert np.mean(ratios) < 1.05
    assert np.max(ratios) < 1.3


@pytest.mark.long
@pytest.mark.slow
def test_expensive_errors_are_worth_more_labels(pool):
    n = [
        run_until(CostRule(1.0, cost), pool).n_labeled[-1] for cost in (0, 3.2, 4, 1e9)
    ]
    assert n[0] == 160  # the first estimate
    assert n == sorted(n)
    assert n[0] < n[1] < n[2] < n[3]
    assert run_until(CostRule(0, 1), pool, n_rounds=9).n_labeled[-1] == 200


@pytest.mark.long
@pytest.mark.slow
def test_the_labels_of_other_items_do_not_matter(pool):
    X, y = pool
    run = run_until(CostRule(1.0, 3.5), pool)
    assert 160 < run.n_labeled[-1] < 520
    other = np.where(y == "a", "b", "a")
    other[run.queried] = y[run.queried]
    again = run_until(CostRule(1.0, 3.5), (X, other))
    assert again.queried.tolist() == run.queried.tolist()


def test_it_does_not_stop_before_it_can_tell(pool):
    X, y = pool
    rule = CostRule(1e9, 1.0).start()

    class Untrainable(LogisticRegression):
        def fit(self, X, y):
            raise AssertionError

    learner = _learner().fit(X[:149], y[:149])
    learner.estimator = Untrainable()
    assert not rule.check(Run([{"queried": range(149)}]), learner, X)
    shuffled = np.random.default_rng(0).permutation(y)
    learner = _learner().fit(X[:200], shuffled[:200])
    assert not rule.check(Run([{"queried": range(200)}]), learner, X)
    learner = _learner().fit(X[:890], y[:890])
    assert not rule.check(Run([{"queried": range(890)}]), learner, X)
    assert not rule.check(Run([{"queried": range(900)}]), learner, X)
    assert rule.gains_ == []
    one = _learner().fit(X[:200], ["a"] * 200)
    assert not rule.check(Run([{"queried": range(200)}]), one, X)


def test_a_shorter_horizon_needs_fewer_labels(pool):
    run = run_until(CostRule(1.0, 0.0, horizon=20), pool)
    assert 40 <= run.n_labeled[-1] < 160


@pytest.mark.long
def test_it_stops_a_session_as_it_stops_a_simulation(pool, tmp_path):
    X, y = pool
    rule = CostRule(1.0, 3.5).start()
    learner = _learner().set_params(batch_size=20)
    with LabelingSession(clone(learner), X, tmp_path / "s") as session:
        while batch := session.ask():
            session.tell(batch.ids, y[list(batch.ids)])
            if rule.check(session.run, session.learner, X):
                break
        n = len(session.labels)
    run = simulate(learner, X, y, n_initial=0, n_rounds=40, stopping=CostRule(1.0, 3.5))
    assert 160 < run.n_labeled[-1] == n < 800


def test_bad_use_is_refused(pool):
    for bad in ((-1, 1), (1, "x"), (1, 1, 0)):
        with pytest.raises(ValueError, match="parameter of CostRule must be"):
            CostRule(*bad).start()
    with pytest.raises(ValueError, match="'n_future' parameter of CostRule must be"):
        CostRule(1, 1, n_future=-1).start()
    pytest.importorskip("sklearn.callback")
    with pytest.raises(TypeError, match="uses the labels that a loop queries"):
        as_callback(CostRule(1, 1), *pool)
