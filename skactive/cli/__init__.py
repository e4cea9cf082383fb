"""The command `skactive`."""

from .._utils._lazy import import_when_used

__all__ = ["main"]

__getattr__, __dir__ = import_when_used(__name__, {"main": "_main"}, __all__)
