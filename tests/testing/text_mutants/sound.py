"""A transformer, a classifier and a regressor of texts that pass every check."""

import zlib

import numpy as np
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skactive._utils._labels import as_labels
from skactive._utils._sklearn import check_sample_weight
from skactive._utils._texts import as_texts
from skactive.bert._classifier import encode_labels

WIDTH = 8


def count_words(texts):
    """Count the words of each text in a few buckets."""
    rows = np.zeros((len(texts), WIDTH))
    for row, text in zip(rows, texts, strict=True):
        for word in text.split():
            row[zlib.crc32(word.encode()) % WIDTH] += 1
    return rows


class _Sound(BaseEstimator):
    def __init__(self, scale=2.5, words=None, random_state=None):
        self.scale = scale
        self.words = words
        self.random_state = random_state

    def read(self, X):
        """Read the texts of a prediction."""
        return as_texts(X)

    def read_to_fit(self, X):
        """Read the texts of `fit`."""
        return as_texts(X)

    def read_targets(self, y, n):
        """Read the targets of `fit`."""
        return as_labels(y, n)

    def rows(self, X):
        """Make what a prediction is computed from."""
        check_is_fitted(self)
        return count_words(self.read(X)) / self.scale

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Sound):
    def fit(self, X, y=None):
        self.mean_ = count_words(self.read_to_fit(X)).mean(axis=0)
        self._n_features_out = WIDTH
        return self

    def transform(self, X):
        return self.rows(X) - self.mean_


class Classifier(ClassifierMixin, _Sound):
    """The class whose texts' mean is nearest, more or less."""

    def fit(self, X, y, sample_weight=None):
        texts = self.read_to_fit(X)
        classes, codes = encode_labels(self.read_targets(y, len(texts)))
        weights = check_sample_weight(sample_weight, texts)
        rng = check_random_state(self.random_state)
        rows = count_words(texts) / self.scale
        rows += rng.normal(scale=0.01, size=rows.shape)
        self.means_ = np.array(
            [
                np.average(rows[codes == code], axis=0, weights=weights[codes == code])
                for code in range(len(classes))
            ]
        )
        self.classes_ = classes
        return self

    def decision_function(self, X):
        distances = self.rows(X)[:, None] - self.means_
        return -(distances**2).sum(axis=2)

    def predict_proba(self, X):
        return softmax(self.decision_function(X), axis=1)

    def predict(self, X):
        scores = self.decision_function(X)
        return self.classes_[scores.argmax(axis=1)]


class Regressor(RegressorMixin, _Sound):
    """Ridge regression."""

    def fit(self, X, y, sample_weight=None):
        texts = self.read_to_fit(X)
        y = self.read_targets(y, len(texts))
        if y.dtype.kind not in "fiub":
            raise ValueError(f"'y' must hold numbers, got {y.dtype}.")
        weights = check_sample_weight(sample_weight, texts)
        rows = count_words(texts) / self.scale
        gram = (rows * weights[:, None]).T @ rows + np.eye(WIDTH)
        self.weights_ = np.linalg.solve(gram, rows.T @ (weights * y))
        return self

    def predict(self, X):
        return self.rows(X) @ self.weights_
