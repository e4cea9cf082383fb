"""Take a pipeline apart: what makes features, and what decides on them."""

from __future__ import annotations

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

__all__ = ["carries_over", "continue_from", "split_estimator"]


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


def carries_over(estimator):
    """Whether an estimator is trained from where the last model stopped.

    Parameters
    ----------
    estimator : estimator
        Not fitted.

    Returns
    -------
    carries_over : bool
        The estimator, or the last step of a pipeline, has `warm_start` on and a method
        `continue_from`. What scikit-learn calls a warm start is not enough: for some
        it means not to train again what is there.
    """
    last = _last_step(estimator)
    return bool(getattr(last, "warm_start", False)) and hasattr(last, "continue_from")


def continue_from(estimator, fitted):
    """Let an estimator begin where the last model stopped, if it wants to.

    Parameters
    ----------
    estimator : estimator
        About to be fitted.
    fitted : estimator or None
        The last model.
    """
    if carries_over(estimator) and fitted is not None:
        _last_step(estimator).continue_from(_last_step(fitted))


def _last_step(estimator):
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator
