"""Query strategies by name, and the base classes of strategies.

A distribution offers strategies under the entry-point group ``skactive.strategies``,
and annotators under ``skactive.annotators``; the built-in ones use the same groups.
Listing imports nothing. Installing a plugin means trusting its code, and nothing is
fetched at run time.
"""

# Private names that other folders use are imported as themselves.
from ._base import OF_CLASSES as OF_CLASSES
from ._base import FunctionStrategy, PointwiseStrategy, Strategy
from ._base import find_requirements as find_requirements
from ._base import requires_for as requires_for
from ._names import available, get_strategy, get_strategy_names, register
from ._names import resolve as resolve
from ._names import unregister as unregister

__all__ = [
    "FunctionStrategy",
    "PointwiseStrategy",
    "Strategy",
    "available",
    "get_strategy",
    "get_strategy_names",
    "register",
]
