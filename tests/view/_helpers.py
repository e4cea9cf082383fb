"""A small pool, a step that counts its rows, and a classifier with draws."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 4))
y = np.arange(20) % 3


class Counting(TransformerMixin, BaseEstimator):
    """A front step that counts the rows it is given."""

    rows = 0

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        Counting.rows += len(X)
        return np.asarray(X) * 2


class Sampler(ClassifierMixin, BaseEstimator):
    """A classifier with posterior draws and gradient factors."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[np.zeros(len(X), dtype=int)]

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def sample_proba(self, X, n_draws, random_state):
        models = np.random.default_rng(random_state).random((n_draws, 3))
        proba = np.exp(models[None] * np.asarray(X)[:, None, :1])  # (n, t, k)
        return proba / proba.sum(axis=2, keepdims=True)

    def gradient_factors(self, X):
        return np.ones((len(X), 3)), np.asarray(X)
