"""BLAS has one thread wherever a learner trains or chooses."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from skactive import ActiveLearner
from skactive.strategies import PointwiseStrategy

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 4))
Y = (X[:, 0] > 0).astype(int)


def blas_threads():
    return {
        lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"
    }


class SpyModel(LogisticRegression):
    def fit(self, X, y):
        self.seen_ = blas_threads()
        return super().fit(X, y)


class SpyStrategy(PointwiseStrategy):
    requires = frozenset()
    seen = ()

    def score(self, view):
        SpyStrategy.seen = blas_threads()
        return np.arange(len(view), dtype=float)


@pytest.fixture(autouse=True)
def two_blas_threads(monkeypatch):
    # Another test may have loaded a library after the last search for libraries.
    monkeypatch.setattr("skactive._utils._repeatable._GATE.controller", None)
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.mark.parametrize("n_labels", [20, 3000])
def test_blas_has_one_thread_while_a_learner_trains(n_labels):
    learner = ActiveLearner(SpyModel()).fit(X[:n_labels], Y[:n_labels])
    assert learner.estimator_.seen_ == {1}
    assert blas_threads() == {2}


@pytest.mark.parametrize("return_scores", [False, True])
def test_blas_has_one_thread_while_a_strategy_selects(return_scores):
    learner = ActiveLearner(LogisticRegression(), SpyStrategy()).fit(X[:20], Y[:20])
    learner.query(X, 5, return_scores=return_scores)
    assert SpyStrategy.seen == {1}
    assert blas_threads() == {2}
