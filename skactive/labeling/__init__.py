"""Front ends of a labeling session: a local page, a terminal and a notebook widget."""

from typing import Any

from ._desk import Desk

__all__ = ["Desk", "LabelingWidget"]


def __getattr__(name: str) -> Any:
    """Import the widget when it is used: anywidget is an extra."""
    if name == "LabelingWidget":
        from ._widget import LabelingWidget

        return LabelingWidget
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
