"""Front ends of a labeling session: a local page, a terminal and a notebook widget."""

from ._desk import Desk

__all__ = ["Desk"]
