"""BERT as scikit-learn estimators. Importing this package imports no torch."""

from ._batches import BatchEncoder
from ._cache._memory import clear_cache, set_cache_limit
from ._classifier import BertClassifier
from ._features import BertFeatures
from ._regressor import BertRegressor

__all__ = [
    "BatchEncoder",
    "BertClassifier",
    "BertFeatures",
    "BertRegressor",
    "DenseHead",
    "clear_cache",
    "set_cache_limit",
]


def __getattr__(name):
    if name == "DenseHead":  # it needs torch
        from ._heads import DenseHead

        return DenseHead
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
