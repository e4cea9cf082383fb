"""`query(return_scores=True)`: why these items were chosen."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive._math import _scores as measures
from skactive.strategies import BALD, PointwiseStrategy

from ._helpers import POOL, SEED, X, make, y


def test_scores_are_those_of_the_strategy_best_first():
    learner = make("entropy").fit(X[SEED], y[SEED])
    positions, scores = learner.query(X, 7, candidates=POOL, return_scores=True)
    assert_array_equal(positions, learner.query(X, 7, candidates=POOL))
    expected = measures.entropy(learner.predict_proba(X[positions]))
    assert_allclose(scores, expected)
    assert (np.diff(scores) <= 0).all()


def test_scores_of_a_function():
    learner = make(lambda view: np.arange(len(view))).fit(X[SEED], y[SEED])
    positions, scores = learner.query(X, 2, return_scores=True)
    assert_array_equal(positions, [59, 58])
    assert_array_equal(scores, [59, 58])


@pytest.mark.parametrize("selection", ["top", "power"])
def test_scores_of_a_batch_that_is_drawn_by_its_scores(selection):
    learner = make(BALD(selection=selection)).fit(X[SEED], y[SEED])
    positions, scores = learner.query(X, 4, return_scores=True)
    assert_array_equal(positions, learner.query(X, 4))
    top, best = make(BALD()).fit(X[SEED], y[SEED]).query(X, 60, return_scores=True)
    assert_allclose(scores, best[np.argsort(top)][positions])


def test_scores_of_the_cold_start():
    positions, scores = make().query(X, 3, return_scores=True)
    assert_array_equal(positions, make().query(X, 3))
    assert (np.diff(scores) < 0).all()


@pytest.mark.parametrize("strategy", ["badge", "coreset", "subsample"])
def test_a_strategy_of_batches_has_no_scores(strategy):
    learner = make(strategy).fit(X[SEED], y[SEED])
    with pytest.raises(TypeError, match=r"'return_scores' must be False .*'margin'"):
        learner.query(X, 2, return_scores=True)


def test_a_pointwise_strategy_that_selects_otherwise_has_no_scores():
    class Backwards(PointwiseStrategy):
        def score(self, view):
            return np.arange(len(view))

        def select(self, view, n_queries):
            return np.arange(n_queries)

    learner = ActiveLearner(LogisticRegression(), Backwards()).fit(X[SEED], y[SEED])
    with pytest.raises(TypeError, match=r"such as 'Backwards\(\)'"):
        learner.query(X, 2, return_scores=True)


def test_return_scores_must_be_a_bool():
    with pytest.raises(TypeError, match="return_scores"):
        make().query(X, 2, return_scores="yes")
