"""Predictions of a model over HTTP."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._prediction_server import PredictionServer

# The packages of the extra `label` are imported when they are used; the front ends of
# labeling derive their servers from `HttpServer`.
_HOME = {"HttpServer": "_http", "PredictionServer": "_prediction_server"}

__all__ = ["PredictionServer"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
