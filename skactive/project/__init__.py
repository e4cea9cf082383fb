"""A table that people label: its questions, settings, session and results.

The commands use the names that are not in `__all__`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._encode import encode_table
    from ._project import Project
    from ._settings import ProjectSettings

_HOME = {
    "Project": "_project",
    "ProjectSettings": "_settings",
    "AUDIT_EVERY": "_project",
    "PREDICTED": "_record",
    "Trainer": "_model",
    "encode_table": "_encode",
    "say_cost": "_settings",
    "write_output": "_record",
    "write_predictions": "_table",
}

__all__ = ["Project", "ProjectSettings", "encode_table"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
