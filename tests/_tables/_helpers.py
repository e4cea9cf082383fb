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


# What people type or paste as classes, names that are known, and what it means: a name,
# its description and its examples. The page reads the same in JavaScript.
CODEBOOKS = [
    ("law: about courts", [], [("law", "about courts")]),
    ("law, sport,, arts ", [], [("law", ""), ("sport", ""), ("arts", "")]),
    (" law \n\nsport\r\n", [], [("law", ""), ("sport", "")]),
    ("law: civil: old\nlaw:\nq: ", [], [("law", ""), ("q", "")]),
    ("a:b: c, d\n: z\n12:30", [], [("a:b", "c, d"), ("12:30", "")]),
    ("law: civil, old: of courts", [], [("law", "civil, old: of courts")]),
    (
        "law: civil, old: of courts\nlaw: civil\nlaw: others",
        ["law: civil", "law: civil, old", "x"],
        [("law: civil, old", "of courts"), ("law: civil", ""), ("law", "others")],
    ),
    ("x: y: z\nx: yes", ["x: y"], [("x: y", "z"), ("x", "yes")]),
    (
        "law\tof courts\tguilty\ta fine \nsport:\tgames",
        [],
        [("law", "of courts", "guilty", "a fine"), ("sport", "games")],
    ),
    ("law\t\ta fine\n<b>: *x*", [], [("law", "", "a fine"), ("<b>", "*x*")]),
    ("__proto__: y\nété, 🙂", [], [("__proto__", "y"), ("été", ""), ("🙂", "")]),
]
