"""The only file that imports what scikit-learn keeps private."""

from __future__ import annotations

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "BaseComposition",
    "HasMethods",
    "Interval",
    "StrOptions",
    "check_sample_weight",
    "fit_context",
    "is_linear_classifier",
    "num_samples",
    "safe_indexing",
]


def is_linear_classifier(estimator):
    """Whether an estimator predicts by scikit-learn's linear decision function.

    Parameters
    ----------
    estimator : estimator

    Returns
    -------
    is_linear_classifier : bool
    """
    from sklearn.linear_model._base import LinearClassifierMixin  # slow to import

    return isinstance(estimator, LinearClassifierMixin)
