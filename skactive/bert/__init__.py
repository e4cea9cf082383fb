"""BERT as scikit-learn estimators. Importing this package imports no torch."""

from importlib import import_module

from .._encoders._store import clear_cache, set_cache_limit
from ..features import BatchEncoder, BertFeatures
from ._estimators import BertClassifier, BertRegressor

__all__ = [
    "BatchEncoder",
    "BertClassifier",
    "BertFeatures",
    "BertRegressor",
    "DenseHead",
    "clear_cache",
    "set_cache_limit",
]


_WITH_TORCH = {"DenseHead": "_heads", "copy_trained": "_training"}


def __getattr__(name):
    if name in _WITH_TORCH:
        return getattr(import_module(f".{_WITH_TORCH[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
