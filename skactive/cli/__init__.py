"""The command `skactive`."""

from importlib import import_module

__all__ = ["main"]


def __getattr__(name):
    if name == "main":
        return import_module("._main", __name__).main
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
