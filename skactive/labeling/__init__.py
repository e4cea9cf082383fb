"""Front ends of a labeling session: a local page, a terminal and a notebook widget."""

from typing import Any

from ..session import Desk

__all__ = ["Desk", "LabelingWidget", "serve"]


def __getattr__(name: str) -> Any:
    """Import the front ends when they are used: their packages are extras."""
    if name == "serve":
        from ._server import serve

        return serve
    if name == "LabelingWidget":
        from ._widget import LabelingWidget

        return LabelingWidget
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
