"""Several classes of a text in the cells of a table."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skactive._tables._labels import LabelCells, read_labels
from skactive._tables._reader import Cells, TableFile
from skactive.datasets import load_table

from ._helpers import write_columns

TEXTS = ["a", "b", "c", "d"]
EXPECTED = [[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]]
NAMES = ["anger", "joy", "love"]
ROWS = [[name for name, x in zip(NAMES, row, strict=True) if x] for row in EXPECTED]


def _columns(form):
    """Return the columns of a table with the labels of EXPECTED."""
    if form == "columns":
        flags = np.array(EXPECTED).T.tolist()
        return dict(zip(NAMES, flags, strict=True))
    if form == "joined":
        return {"y": ["love | anger", "|", " joy|", "|joy|love||anger"]}
    cells = [row[::-1] for row in ROWS]
    return {"y": cells if form == "lists" else [json.dumps(row) for row in cells]}


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".xlsx"])
@pytest.mark.parametrize("form", ["columns", "joined", "lists", "json"])
def test_every_form_gives_the_same_indicator_matrix(tmp_path, form, suffix):
    path = tmp_path / f"table{suffix}"
    columns = _columns(form)
    write_columns(path, {"text": TEXTS, **columns})
    label = list(columns) if form == "columns" else "y"
    options = {"separator": "|"} if form == "joined" else {}
    table = load_table(path, text="text", label=label, **options)
    assert table.data == TEXTS
    assert_array_equal(table.target, EXPECTED)
    assert (table.target.dtype.kind, table.target_names) == ("i", NAMES)


def test_columns_keep_their_order(tmp_path):
    write_columns(tmp_path / "t.csv", {"text": ["a"], "x": [1], "b": [0]})
    table = load_table(tmp_path / "t.csv", text="text", label=["x", "b"])
    assert table.target_names == ["x", "b"]
    assert table.target.tolist() == [[1, 0]]


def test_a_blank_cell_is_no_label_and_a_separator_is_no_class(tmp_path):
    path = tmp_path / "t.csv"
    write_columns(path, {"text": TEXTS, "y": ["a|b", "", "|", " "]})
    options = {"text": "text", "label": "y", "separator": "|"}
    with pytest.raises(ValueError, match=r"no value at 2 of 4 rows .* lines 3, 5"):
        load_table(path, **options)
    X, y = load_table(path, **options, missing_labels="drop", return_X_y=True)
    assert (X, y.tolist()) == (["a", "c"], [[1, 1], [0, 0]])
    y = load_table(path, **options, missing_labels="keep").target
    nan = np.nan
    assert_array_equal(y, [[1, 1], [nan, nan], [0, 0], [nan, nan]])


def test_columns_are_all_filled_or_all_blank(tmp_path):
    path = tmp_path / "t.csv"
    write_columns(path, {"text": ["a", "b"], "x": [1, None], "z": [0, None]})
    options = {"text": "text", "label": ["x", "z"]}
    table = load_table(path, **options, missing_labels="drop")
    assert table.target.tolist() == [[1, 0]]
    write_columns(path, {"text": ["a", "b"], "x": [1, None], "z": [0, 1]})
    with pytest.raises(ValueError, match=r"column 'x' .* line 3; got a blank cell"):
        load_table(path, **options)
    write_columns(path, {"text": ["a", "b"], "x": [1, 0], "z": [0, 2]})
    with pytest.raises(ValueError, match=r"column 'z' .* 0 or 1, got '2' at line 3"):
        load_table(path, **options)


@pytest.mark.parametrize(
    ("label", "separator", "match"),
    [
        (["x", "y"], "|", "'separator' must be None"),
        ("y", " ", "'separator' must be a str such as"),
        (["x", "x"], None, "'label' must name one column"),
        ([], None, "'label' must name one column"),
        (["x", "text"], None, "both name the column 'text'"),
        (None, "|", "'separator' needs labels"),
    ],
)
def test_invalid_arguments(tmp_path, label, separator, match):
    write_columns(tmp_path / "t.csv", {"text": ["a"], "x": [1], "y": [0]})
    with pytest.raises(ValueError, match=match):
        load_table(tmp_path / "t.csv", text="text", label=label, separator=separator)


def test_lists_hold_different_names(tmp_path):
    path = tmp_path / "t.jsonl"
    write_columns(path, {"text": ["a", "b"], "y": [["x"], ["y", "y"]]})
    with pytest.raises(ValueError, match=r"lists of different names .* at line 2"):
        load_table(path, text="text", label="y")
    write_columns(path, {"text": ["a", "b"], "y": [["x"], [1]]})
    with pytest.raises(ValueError, match="got int, str"):
        load_table(path, text="text", label="y")


def test_names_that_begin_with_a_bracket_are_single_labels(tmp_path):
    write_columns(tmp_path / "t.csv", {"text": ["a", "b"], "y": ["[x] y", "[1]"]})
    table = load_table(tmp_path / "t.csv", text="text", label="y")
    assert table.target.tolist() == ["[x] y", "[1]"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".xlsx"])
@pytest.mark.parametrize("form", ["columns", "joined", "lists", "json"])
def test_what_comes_out_has_the_form_that_went_in(tmp_path, form, suffix):
    path = tmp_path / f"table{suffix}"
    columns = {name: [*cells, None] for name, cells in _columns(form).items()}
    write_columns(path, {"text": [*TEXTS, "e"], **columns})
    label = list(columns) if form == "columns" else "y"
    separator = "|" if form == "joined" else None
    table = TableFile(path).read()
    columns = {name: table.cells(name) for name in table.columns}
    labels = read_labels(table, label, separator)
    rows, cells = labels.values, labels.cells
    assert [row and sorted(row) for row in rows] == [*ROWS, None]
    given = {i: {name: columns[name][i] for name in cells.columns} for i in range(4)}
    out = cells.write([*rows[:4], ["joy", "love"]], given)
    # Cells of the file stay as they are.
    assert {name: x[:4] for name, x in out.items()} == {
        name: columns[name][:4] for name in cells.columns
    }
    write_columns(path, {"text": [*TEXTS, "e"], **out})
    again = read_labels(TableFile(path).read(), label, separator)
    assert again.values[4] == ["joy", "love"]
    if form == "joined":
        assert out["y"][4] == "joy|love"
        assert cells.write([[], None], {})["y"] == ["|", None]


def test_a_new_class_gets_a_column(tmp_path):
    cells = LabelCells(["x"], None, tmp_path / "t.csv")
    table = Cells(tmp_path / "t.csv", ["x"], [2, 3], "lines")
    cells.read({"x": ["TRUE", "FALSE"]}, range(2), table)
    out = cells.write([["x", "new"], [], None], {})
    assert out == {"x": ["TRUE", "FALSE", None], "new": ["TRUE", "FALSE", None]}


def test_a_name_must_not_hold_the_separator(tmp_path):
    cells = LabelCells("y", "|", tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"the class 'a\|b' must not hold '\|'"):
        cells.write([["a|b"]], {})


def test_integers_in_lists_stay_integers(tmp_path):
    path = tmp_path / "t.jsonl"
    table = Cells(path, ["y"], [1, 2], "lines")
    table.columns = {"y": [[27, 3], []]}
    labels = read_labels(table, "y")
    assert labels.values == [["27", "3"], []]
    assert labels.cells.write([["27", "3"], None], {}) == {"y": [[27, 3], None]}
