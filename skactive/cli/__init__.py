"""The command `skactive`."""

from ._main import main

__all__ = ["main"]
