"""Base classes and decorators of scikit-learn, with types for type checkers."""

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import _fit_context
from sklearn.utils.metaestimators import available_if as _available_if

MYPY = False  # True for mypy, to which the classes of scikit-learn have no types
if MYPY:
    from ._base_stubs import *
else:
    from sklearn.base import *
    from sklearn.utils.metaestimators import _BaseComposition as BaseComposition

Method = TypeVar("Method", bound=Callable[..., Any])


def available_if(check: Callable[[Any], Any]) -> Callable[[Method], Method]:
    """Return the decorator of this name."""
    return _available_if(check)


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """Return the decorator of this name."""
    return _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)


def __getattr__(name):
    if name == "LinearClassifierMixin":  # slow to import, so when it is asked for
        from sklearn.linear_model._base import LinearClassifierMixin

        return LinearClassifierMixin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
