"""BERT as scikit-learn estimators. Importing this package imports no torch."""

from .._encoders._store import clear_cache, set_cache_limit
from .._utils._lazy import import_when_used, need_bert
from ..features import BatchEncoder, BertFeatures
from ._adapted import AdaptedFeatures
from ._estimators import BertClassifier, BertRegressor

__all__ = [
    "AdaptedFeatures",
    "BatchEncoder",
    "BertClassifier",
    "BertFeatures",
    "BertRegressor",
    "DenseHead",
    "clear_cache",
    "set_cache_limit",
]


_WITH_TORCH = {"DenseHead": "_heads", "copy_trained": "_training"}

_get, __dir__ = import_when_used(__name__, _WITH_TORCH, __all__)


def __getattr__(name):
    if name in _WITH_TORCH:
        need_bert(f"skactive.bert.{name}", "skorch")
    return _get(name)
