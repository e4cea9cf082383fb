"""Fresh copies of estimators, and what in them is not seeded."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator

from ._random import round_seed

__all__ = ["fresh_estimator", "seeded_clone", "unseeded"]


def seeded_clone(estimator, rng):
    """Clone an estimator and seed each `random_state` that is None.

    Parameters
    ----------
    estimator : estimator
        Left as it is.
    rng : numpy.random.Generator
        One number is drawn for each `random_state` to fill, in the order of names.

    Returns
    -------
    copy : estimator
        Unfitted; a `random_state` that was given is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._clones import seeded_clone
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression(C=3)
    >>> seeded_clone(model, np.random.default_rng(0)).random_state is None
    False
    >>> model.random_state is None
    True
    """
    copy = clone(estimator)
    copy.set_params(**{name: int(rng.integers(2**31)) for name in unseeded(copy)})
    return copy


def unseeded(estimator):
    """Names of the parameters `random_state`, nested ones too, that are None.

    Parameters
    ----------
    estimator : estimator

    Returns
    -------
    names : list of str
        Sorted.
    """
    return [
        name
        for name, value in sorted(estimator.get_params().items())
        if name.split("__")[-1] == "random_state" and value is None
    ]


def fresh_estimator(estimator, y, seed, n_rounds):
    """Clone an estimator for training and seed what in it is not seeded.

    Parameters
    ----------
    estimator : estimator
    y : ndarray of shape (m,) or (m, n_outputs)
        The labels to train on. If they are all of one class, a classifier, which would
        mostly refuse them, is replaced by a `DummyClassifier`.
    seed, n_rounds : int
        The base seed and the round, as in :func:`skactive._random.round_seed`.

    Returns
    -------
    estimator : estimator
    """
    frozen = isinstance(estimator, FrozenEstimator)
    single_class = y.ndim == 1 and np.all(y == y[0])
    if is_classifier(estimator) and single_class and not frozen:
        return DummyClassifier(strategy="most_frequent")
    estimator = clone(estimator)
    names = unseeded(estimator)
    seeds = {name: round_seed(seed, n_rounds, name, len(y)) for name in names}
    estimator.set_params(**seeds)
    return estimator  # a FrozenEstimator's set_params returns nothing
