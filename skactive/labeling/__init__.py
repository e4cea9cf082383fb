"""Front ends of a labeling session: a local page, a terminal and a notebook widget."""

from importlib import import_module
from typing import Any

# The front ends are imported when they are used, since their packages are extras.
_HOME = {
    "LabelingWidget": "_widget",
    "run_prompt": "_prompt",
    "serve": "_server",
}

__all__ = ["LabelingWidget", "run_prompt", "serve"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
