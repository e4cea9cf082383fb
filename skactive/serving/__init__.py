"""Predictions of a model over HTTP."""

from .._utils._lazy import import_when_used

# The packages of the extra `label` are imported when they are used; the front ends of
# labeling derive their servers from `HttpServer`.
_HOME = {"HttpServer": "_http", "PredictionServer": "_prediction_server"}

__all__ = ["PredictionServer"]

__getattr__, __dir__ = import_when_used(__name__, _HOME, __all__)
