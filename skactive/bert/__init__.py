"""BERT as scikit-learn estimators. Importing this package imports no torch."""

from ._cache._memory import clear_cache, get_cache_limit, set_cache_limit
from ._classifier import BertClassifier
from ._features import BertFeatures
from ._regressor import BertRegressor, spearman_score

__all__ = [
    "BertClassifier",
    "BertFeatures",
    "BertRegressor",
    "clear_cache",
    "get_cache_limit",
    "set_cache_limit",
    "spearman_score",
]
