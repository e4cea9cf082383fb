"""BERT as scikit-learn estimators. Importing this package imports no torch."""

from skactive.bert.classifier import BertClassifier
from skactive.bert.features import BertFeatures
from skactive.bert.memory import clear_cache, get_cache_limit, set_cache_limit
from skactive.bert.regressor import BertRegressor, spearman_score

__all__ = [
    "BertClassifier",
    "BertFeatures",
    "BertRegressor",
    "clear_cache",
    "get_cache_limit",
    "set_cache_limit",
    "spearman_score",
]
