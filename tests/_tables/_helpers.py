"""Files with given cells, and the cells of files, for tests."""

from pathlib import Path

from skactive._tables._reader import Cells, TableFile
from skactive._tables._writer import write_table


def read_columns(path):
    """Return all columns of a file, dict of key to list of cells."""
    table = TableFile(Path(path)).read()
    return {key: table.cells(key) for key in table.columns}


def write_columns(path, columns, **dialect):
    """Write columns as another program would, with formulas as they are."""
    source = Cells(Path(path), list(columns), [], "lines")
    is_tsv = source.path.suffix == ".tsv"
    source.columns, source.dialect = columns, {"delimiter": "\t"} if is_tsv else dialect
    write_table(path, columns, source=source)
