"""BERT as scikit-learn estimators. Importing this package imports no torch."""

from importlib import import_module

# Private names that other folders use are imported as themselves.
from ._encoding import EncodingRun as EncodingRun
from ._estimators import BertClassifier, BertRegressor
from ._features import BatchEncoder, BertFeatures
from ._module import encode as encode
from ._pretrained import Checkpoint as Checkpoint
from ._pretrained import digest_file as digest_file
from ._pretrained import open_checkpoint as open_checkpoint
from ._pretrained import quiet as quiet
from ._sentences import SentenceModules as SentenceModules
from ._store import clear_cache, set_cache_limit

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
