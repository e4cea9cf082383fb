"""Candidates whose probabilities and features are given."""

import numpy as np

from skactive.testing._strategy_cases import GivenProba
from skactive.view import PoolView


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
