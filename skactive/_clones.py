"""Fresh copies of estimators, and what in them is not seeded."""

from __future__ import annotations

from sklearn.base import clone

__all__ = ["seeded_clone", "unseeded"]


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
