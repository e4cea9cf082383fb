"""Texts from files: a built-in data set, tables with labels, large pools."""

from .._storage._text_pool import TextPool
from ._docstrings import load_docstrings

# Private names that other folders use are imported as themselves.
from ._formats import find_dialect as find_dialect
from ._formats import is_untyped as is_untyped
from ._load import JOIN as JOIN
from ._load import LabelCells as LabelCells
from ._load import as_numbers as as_numbers
from ._load import check_finite as check_finite
from ._load import find_label_cells as find_label_cells
from ._load import load_table
from ._load import refuse_fractions as refuse_fractions
from ._load import to_indicator as to_indicator
from ._open_pool import open_pool
from ._reader import find_files as find_files
from ._reader import list_columns as list_columns
from ._reader import open_part as open_part
from ._reader import read_cells as read_cells
from ._writer import WRITERS as WRITERS
from ._writer import check_folder as check_folder
from ._writer import find_unwritable as find_unwritable
from ._writer import free_name as free_name
from ._writer import write_table as write_table

__all__ = ["TextPool", "load_docstrings", "load_table", "open_pool"]
