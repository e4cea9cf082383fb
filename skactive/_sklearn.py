"""The only file that imports what scikit-learn keeps private."""

from __future__ import annotations

from functools import cache

from sklearn.base import BaseEstimator
from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_params,
)
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "BaseComposition",
    "HasMethods",
    "Interval",
    "LinearClassifierMixin",  # noqa: F822
    "QuickParamsMixin",
    "StrOptions",
    "check_sample_weight",
    "fit_context",
    "is_linear_classifier",
    "num_samples",
    "safe_indexing",
    "validate_params",
]


class QuickParamsMixin:
    """Reads the names of a class's parameters once, not with every `get_params`.

    In a loop of one label a round, `clone` and the checks of parameters ask for them a
    dozen times.
    """

    @classmethod
    @cache
    def _get_param_names(cls):
        return BaseEstimator._get_param_names.__func__(cls)


def is_linear_classifier(estimator):
    """Whether an estimator predicts by scikit-learn's linear decision function.

    Parameters
    ----------
    estimator : estimator

    Returns
    -------
    is_linear_classifier : bool
    """
    return isinstance(estimator, __getattr__("LinearClassifierMixin"))


def __getattr__(name):
    if name == "LinearClassifierMixin":  # slow to import, so when it is asked for
        from sklearn.linear_model._base import LinearClassifierMixin

        return LinearClassifierMixin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
