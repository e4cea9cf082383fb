"""Labeled texts: a data set on every machine, and tables of the user's own."""

from ._load import load_docstrings, load_table

__all__ = ["load_docstrings", "load_table"]
