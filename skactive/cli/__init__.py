"""The command `skactive` and its reports."""

from importlib import import_module

_HOME = {
    "format_report": "_report",
    "main": "_main",
    "summarize_runs": "_report",
    "write_report": "_report",
}

__all__ = ["format_report", "main", "summarize_runs", "write_report"]


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
