"""Fresh copies of estimators, seeded by a generator."""

from __future__ import annotations

from sklearn.base import clone

__all__ = ["seeded_clone"]


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
    params = copy.get_params()
    seeds = {
        name: int(rng.integers(2**31))
        for name in sorted(params)
        if name.split("__")[-1] == "random_state" and params[name] is None
    }
    return copy.set_params(**seeds)
