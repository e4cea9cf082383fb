"""Take a pipeline apart: what makes features, and what decides on them."""

from __future__ import annotations

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

__all__ = ["split_estimator"]


def split_estimator(estimator):
    """Split an estimator into what makes features and what decides on them.

    Parameters
    ----------
    estimator : estimator
        Fitted or not. A fitted search stands for its `best_estimator_`, a
        `FrozenEstimator` for what it holds.

    Returns
    -------
    front : Pipeline or None
        All steps of a pipeline but the last; None for anything else.
    final : estimator
    """
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            break
    if not isinstance(estimator, Pipeline):
        return None, estimator
    front = estimator[:-1] if len(estimator) > 1 else None
    inner, final = split_estimator(estimator[-1])
    if inner is None:
        return front, final
    steps = [] if front is None else front.steps
    return Pipeline([*steps, ("last", inner)]), final
