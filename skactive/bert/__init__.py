"""BERT as a scikit-learn transformer. Importing this package imports no torch."""

from skactive.bert.features import BertFeatures
from skactive.bert.memory import clear_cache, get_cache_limit, set_cache_limit

__all__ = ["BertFeatures", "clear_cache", "get_cache_limit", "set_cache_limit"]
