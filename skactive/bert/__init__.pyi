"""The names of the package, for type checkers."""

from .._encoders._store import clear_cache as clear_cache
from .._encoders._store import set_cache_limit as set_cache_limit
from ..features import BatchEncoder as BatchEncoder
from ..features import BertFeatures as BertFeatures
from ._adapted import AdaptedFeatures as AdaptedFeatures
from ._estimators import BertClassifier as BertClassifier
from ._estimators import BertRegressor as BertRegressor
from ._heads import DenseHead as DenseHead
from ._training import copy_trained as copy_trained
