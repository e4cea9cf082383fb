"""Texts from files: a built-in data set, tables with labels, large pools."""

from .._storage._text_pool import TextPool
from ._docstrings import load_docstrings
from ._load import load_table
from ._open_pool import open_pool

__all__ = ["TextPool", "load_docstrings", "load_table", "open_pool"]
