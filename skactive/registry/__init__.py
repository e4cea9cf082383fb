"""Query strategies by name, and the base classes of strategies.

A distribution offers strategies under the entry-point group ``skactive.strategies``,
and annotators under ``skactive.annotators``; the built-in ones use the same groups.
Listing imports nothing. Installing a plugin means trusting its code, and nothing is
fetched at run time.
"""

# Private names that other folders use are imported as themselves.
from ._base import CLASSES as CLASSES
from ._base import OF_CLASSES as OF_CLASSES
from ._base import SINGLE_LABEL as SINGLE_LABEL
from ._base import TARGETS as TARGETS
from ._base import FunctionStrategy as FunctionStrategy
from ._base import PointwiseStrategy, Strategy
from ._base import check_gives_scores as check_gives_scores
from ._base import find_requirements as find_requirements
from ._base import requires_for as requires_for
from ._names import ANNOTATORS as ANNOTATORS
from ._names import available, get_strategy, get_strategy_names, register
from ._names import find as find
from ._names import find_plugin as find_plugin
from ._names import load as load
from ._names import make as make
from ._names import refresh as refresh
from ._names import resolve as resolve
from ._names import unregister as unregister
from ._names import validate as validate

__all__ = [
    "PointwiseStrategy",
    "Strategy",
    "available",
    "get_strategy",
    "get_strategy_names",
    "register",
]
