"""Fine-tuning that takes a moment, and texts that can be learnt."""

import numpy as np

from skactive.bert import BertClassifier, BertRegressor

WORDS = ["film", "match", "stocks", "team", "game", "minute", "friday", "long"]
X = [f"{first} {word}" for word in WORDS for first in ("the joy of a", "a dull slow")]
CODES = np.arange(len(X)) % 2
Y = np.array(["good", "bad"])[CODES]
NUMBERS = np.where(CODES, 5300.0, 5000.0) + np.arange(len(X))
INDICATOR = np.eye(4, dtype=int)[np.arange(len(X)) % 4]


def classifier(folder, **params):
    return BertClassifier(folder, **_settings(params))


def regressor(folder, **params):
    return BertRegressor(folder, **_settings(params))


def _settings(params):
    quick = {"max_epochs": 2, "batch_size": 4, "lr": 3e-3, "random_state": 0}
    return {**quick, "device": "cpu", **params}


def replaced(values, i, value):
    values = list(values)
    values[i] = value
    return values


def outputs(estimator):
    """All that an estimator says of X."""
    names = ("predict", "predict_proba", "transform")
    return [getattr(estimator, name)(X) for name in names if hasattr(estimator, name)]


def assert_equal_outputs(first, second):
    for one, other in zip(outputs(first), outputs(second), strict=True):
        np.testing.assert_array_equal(one, other)
