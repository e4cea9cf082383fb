"""A table that people label: its questions, settings, session and results."""

from importlib import import_module
from typing import Any

_HOME = {
    "Project": "_project",
    "save_model": "_project",
    "recall_choice": "_record",
    "PREDICTED": "_record",
    "make_folder": "_record",
    "plain_folder": "_record",
    "show": "_record",
    "write_output": "_record",
    "write_predictions": "_table",
}

__all__ = ["Project"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
