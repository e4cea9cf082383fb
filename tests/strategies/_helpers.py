"""Views of small pools with given predictions, and strategies that record calls."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression

from skactive.testing._strategy_cases import GivenProba
from skactive.view import PoolView

RNG = np.random.default_rng(0)
X = RNG.normal(size=(15, 4))
POOL = RNG.normal(size=(40, 4))
CODES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
Y = np.array(["low", "mid", "top"])[CODES]
TARGETS = 2 * X[:, 0] + X[:, 1]
SEED = 5


def view_of(strategy, model=None, y=Y, X_pool=POOL, X_labeled=X, seed=SEED, **fit):
    """View of a pool under a model that was trained on the labeled rows."""
    model = clone(LogisticRegression() if model is None else model)
    return PoolView(
        X_pool,
        estimator=model.fit(X_labeled, y, **fit),
        X_labeled=X_labeled,
        y_labeled=np.asarray(y),
        requires=strategy.requires,
        optional=strategy.optional,
        rng=np.random.default_rng(seed),
    )


def pick(strategy, n=5, **kwargs):
    picks = strategy.select(view_of(strategy, **kwargs), n)
    assert np.unique(picks).size == n
    return picks


class Recorder(BaseEstimator):
    """Answers with the last candidates, or drawn ones, and notes what it was asked."""

    calls = []

    def __init__(self, answer="last", missing_label=np.nan, random_state=None):
        self.answer = answer
        self.missing_label = missing_label
        self.random_state = random_state

    def query(self, X, y, candidates=None, batch_size=1, return_utilities=False):
        return self._answer(**{k: v for k, v in locals().items() if k != "self"})

    def _answer(self, **given):
        Recorder.calls.append({"strategy": self, **given})
        if self.answer == "twice":
            return given["candidates"][[0] * given["batch_size"]]
        candidates = given["candidates"]
        if self.answer == "drawn":
            candidates = np.random.default_rng(self.random_state).permutation(
                candidates
            )
        return candidates[-given["batch_size"] :]


class ModelRecorder(Recorder):
    def query(
        self,
        X,
        y,
        clf,
        fit_clf=True,
        sample_weight=None,
        candidates=None,
        batch_size=1,
        return_utilities=False,
    ):
        return self._answer(**{k: v for k, v in locals().items() if k != "self"})


class EnsembleRecorder(Recorder):
    def query(
        self,
        X,
        y,
        ensemble,
        fit_ensemble=True,
        candidates=None,
        batch_size=1,
        return_utilities=False,
    ):
        return self._answer(**{k: v for k, v in locals().items() if k != "self"})


class ClassesRecorder(Recorder):
    def __init__(self, classes, missing_label=np.nan, random_state=None):
        super().__init__("last", missing_label, random_state)
        self.classes = classes


class HandsOn(Recorder):
    """As their wrappers, which take the arguments of the strategy inside."""

    def __init__(self, query_strategy, missing_label=np.nan, random_state=None):
        super().__init__("last", missing_label, random_state)
        self.query_strategy = query_strategy

    def query(self, X, y, candidates=None, batch_size=1, **query_kwargs):
        return self._answer(
            X=X, y=y, candidates=candidates, batch_size=batch_size, **query_kwargs
        )


class TheirClassifier(ClassifierMixin, BaseEstimator):
    """A classifier with their parameters, which needs no wrapping."""

    def __init__(self, classes=None, missing_label="none", random_state=None):
        self.classes = classes
        self.missing_label = missing_label
        self.random_state = random_state


class GivenFeatures(GivenProba):
    """The coordinates alone are the features."""

    def transform(self, X):
        return X[:, len(self.classes_) :]


def make_view(strategy, proba, features, seed=0, convert=np.asarray):
    """A view of candidates whose probabilities and features are given."""
    X = np.hstack([proba, features])
    k = proba.shape[1]
    y = np.arange(k)
    model = GivenFeatures().fit(X[:1], y)
    return PoolView(
        convert(X),
        estimator=model,
        X_labeled=X[:1],
        y_labeled=y[:1],
        requires=strategy.requires,
        rng=np.random.default_rng(seed),
    )


def make_pool(n, k=3, d=4, seed=0, shift=0.3):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k), n), rng.normal(size=(n, d)) + shift
