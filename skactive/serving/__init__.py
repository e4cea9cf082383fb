"""Predictions of a model over HTTP."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._http import HttpServer as HttpServer
    from ._prediction_server import PredictionServer

__all__ = ["PredictionServer"]


def __getattr__(name: str) -> Any:
    # The packages of the extra `label` are imported when they are used.
    if name == "PredictionServer":
        return import_module("._prediction_server", __name__).PredictionServer
    if name in ("HttpServer", "bind", "check_token"):
        return getattr(import_module("._http", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
