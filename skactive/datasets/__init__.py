"""Labeled texts: a built-in data set, and tables from files."""

from ._load import load_docstrings, load_table

__all__ = ["load_docstrings", "load_table"]
