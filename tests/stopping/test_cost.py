"""The rule that compares the costs of labels and of errors."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, LabelingSession, simulate
from skactive.simulation import Run
from skactive.stopping import CostRule, as_callback
from skactive.stopping._estimates import gain_of_labels
from skactive.stopping._out_of_fold import out_of_fold

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


def test_it_compares_the_errors_prevented_with_the_labels(pool):
    X, y = pool
    learner = _learner().fit(X[:160], y[:160])
    run = Run([{"asked": range(160)}], info={"seed": 3})
    found = out_of_fold(LogisticRegression(), X[:160], y[:160], X[160:], seed=3)
    gain, interval = gain_of_labels(found, 100)
    assert gain > 0
    worth = gain * 740 / 100  # of one label, if an error costs 1
    for factor, stops in ((0.99, False), (1.01, True)):
        rule = CostRule(factor * worth, 1.0)
        assert rule.check(run, learner, X) is stops
        assert rule.gains_ == [(gain, interval)]
    assert not CostRule(0.99 * worth * 7, 7.0).check(run, learner, X)


def test_expensive_errors_are_worth_more_labels(pool):
    n = [
        run_until(CostRule(1.0, cost), pool).n_labeled[-1] for cost in (0, 40, 160, 1e9)
    ]
    assert n[0] == 160  # the first estimate
    assert n == sorted(n)
    assert n[0] < n[1] < n[2] < n[3]
    assert run_until(CostRule(0, 1), pool, n_rounds=9).n_labeled[-1] == 200


def test_the_labels_of_other_items_do_not_matter(pool):
    X, y = pool
    run = run_until(CostRule(1.0, 80.0), pool)
    assert 160 < run.n_labeled[-1] < 520
    other = np.where(y == "a", "b", "a")
    other[run.asked] = y[run.asked]
    again = run_until(CostRule(1.0, 80.0), (X, other))
    assert again.asked.tolist() == run.asked.tolist()


def test_it_does_not_stop_before_it_can_tell(pool):
    X, y = pool
    rule = CostRule(1e9, 1.0).start()

    class Untrainable(LogisticRegression):
        def fit(self, X, y):
            raise AssertionError

    learner = _learner().fit(X[:149], y[:149])
    learner.estimator = Untrainable()
    assert not rule.check(Run([{"asked": range(149)}]), learner, X)
    shuffled = np.random.default_rng(0).permutation(y)
    learner = _learner().fit(X[:200], shuffled[:200])
    assert not rule.check(Run([{"asked": range(200)}]), learner, X)
    learner = _learner().fit(X[:890], y[:890])
    assert not rule.check(Run([{"asked": range(890)}]), learner, X)
    assert not rule.check(Run([{"asked": range(900)}]), learner, X)
    assert rule.gains_ == []
    one = _learner().fit(X[:200], ["a"] * 200)
    assert not rule.check(Run([{"asked": range(200)}]), one, X)


def test_a_shorter_horizon_needs_fewer_labels(pool):
    run = run_until(CostRule(1.0, 0.0, horizon=20), pool)
    assert 40 <= run.n_labeled[-1] < 160


def test_it_stops_a_session_as_it_stops_a_simulation(pool, tmp_path):
    X, y = pool
    rule = CostRule(1.0, 80.0).start()
    learner = _learner().set_params(batch_size=20)
    with LabelingSession(clone(learner), X, tmp_path / "s") as session:
        while batch := session.ask():
            session.tell(batch, y[list(batch.ids)])
            if rule.check(session.run, session.learner, X):
                break
        n = len(session.labels)
    run = simulate(
        learner, X, y, n_initial=0, n_rounds=40, stopping=CostRule(1.0, 80.0)
    )
    assert 160 < run.n_labeled[-1] == n < 800


def test_bad_use_is_refused(pool):
    for bad in ((-1, 1), (1, "x"), (1, 1, 0)):
        with pytest.raises(ValueError, match="parameter of CostRule must be"):
            CostRule(*bad).start()
    pytest.importorskip("sklearn.callback")
    with pytest.raises(TypeError, match="uses the labels that a loop queries"):
        as_callback(CostRule(1, 1), *pool)
