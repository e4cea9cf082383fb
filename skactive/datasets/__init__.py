"""Texts from files: a built-in data set, tables with labels, large pools."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Private names that other folders use are imported as themselves.
from ._formats import find_dialect as find_dialect
from ._formats import is_untyped as is_untyped
from ._reader import Column as Column
from ._reader import find_files as find_files
from ._reader import list_columns as list_columns
from ._reader import open_part as open_part
from ._reader import read_cells as read_cells
from ._writer import WRITERS as WRITERS
from ._writer import check_folder as check_folder
from ._writer import escape as escape
from ._writer import find_unwritable as find_unwritable
from ._writer import free_name as free_name
from ._writer import unescape as unescape
from ._writer import write_table as write_table

if TYPE_CHECKING:
    from .._storage._text_pool import TextPool
    from ._docstrings import load_docstrings
    from ._load import load_table
    from ._open_pool import open_pool

__all__ = ["TextPool", "load_docstrings", "load_table", "open_pool"]

# Imported when they are used, since tables are read and written without scikit-learn.
_HOME = {
    "TextPool": "._storage._text_pool",
    "load_docstrings": "_docstrings",
    "open_pool": "_open_pool",
    **dict.fromkeys(("JOIN", "LabelCells", "as_numbers", "check_finite"), "_load"),
    **dict.fromkeys(("find_label_cells", "load_table", "refuse_fractions"), "_load"),
    "to_indicator": "_load",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
