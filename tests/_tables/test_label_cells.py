"""Several classes of a text in the cells of a table."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skactive._tables._labels import LabelCells, describe_lookalikes, read_labels
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


# Tables that skactive wrote -----------------------------------------------------------


def _read(tmp_path, columns, label="label", texts=None, suffix=".csv", **options):
    """Return the Labels of a file with some columns, and what is said."""
    write_columns(tmp_path / f"t{suffix}", columns)
    table = TableFile(tmp_path / f"t{suffix}").read()
    if texts is not None:
        table.read_texts([texts])
    return read_labels(table, label, **options), table.messages


OWN = {
    "label": ["a", "b", "a", "b", None],
    "label_source": ["given", "person", "model", "model", "skipped"],
    "prediction": ["b", "b", "a", "a", "a"],
    "probability": ["0.9"] * 5,
}


def test_predictions_of_skactive_are_no_labels(tmp_path):
    labels, said = _read(tmp_path, OWN)
    assert labels.values == ["a", "b", None, None, None]
    assert labels.n_chosen == 1
    assert said == [
        "2 labels are predictions of a model, as the column 'label_source' says, and "
        "are left out",
        "1 of them differ from the column 'prediction': write 'person' into "
        "'label_source' to use them (line 5)",
    ]


def test_the_newest_sources_count(tmp_path):
    newest = ["given", "given", "person", "model", "model"]
    more = {"skactive_label_source": newest, "skactive_prediction": ["a"] * 5}
    labels, _ = _read(tmp_path, {**OWN, "label": ["a", "b", "b", "a", "a"], **more})
    assert labels.values == ["a", "b", "b", None, None]


@pytest.mark.parametrize(
    "change",
    [
        {"label_source": ["survey", "person", "model", "model", ""]},
        {"prediction": ["x", "x", "x", "x", "x"]},
    ],
)
def test_sources_of_something_else_are_not_used(tmp_path, change):
    labels, said = _read(tmp_path, {**OWN, **change})
    assert (labels.values, said) == (["a", "b", "a", "b", None], [])


@pytest.mark.parametrize("prefix", ["", "skactive_", "skactive_skactive_"])
@pytest.mark.parametrize(
    ("name", "partner"),
    [("prediction", "probability"), ("machine_label", "machine_confidence")],
)
def test_a_column_of_predictions_is_no_column_of_labels(
    tmp_path, prefix, name, partner
):
    columns = {prefix + name: ["a", "b"], prefix + partner: ["0.9", "0.8"]}
    with pytest.raises(ValueError, match=rf"'label' must be .* got '{prefix}{name}'"):
        _read(tmp_path, columns, prefix + name)
    labels, _ = _read(tmp_path, columns, prefix + name, predicted=True)
    assert labels.values == ["a", "b"]
    labels, _ = _read(tmp_path, {prefix + name: ["a", "b"]}, prefix + name)
    assert labels.values == ["a", "b"]


# What a person should look at ---------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "alike"),
    [
        (["yes", "Yes"], ["'yes' and 'Yes'"]),
        (["e\u0301", "\u00e9", "e"], ["'e\u0301' and '\u00e9'"]),
        (["a b", "a\u00a0b", "a  b", "ab"], ["'a b' and 'a\\xa0b' and 'a  b'"]),
        (["1.1", "1.10", "7"], ["'1.1' and '1.10'"]),
        (["a\u200bb", "ab"], ["'a\\u200bb' and 'ab'"]),
        (["\ufb01ne", "fine"], ["'\ufb01ne' and 'fine'"]),
        (["a", "b", "1", "2"], []),
    ],
)
def test_classes_that_look_the_same_are_said(names, alike):
    expected = [f"the classes {pair} look the same" for pair in alike]
    assert describe_lookalikes([*names, *names]) == expected


def test_names_of_nothing_are_classes_and_said():
    assert describe_lookalikes(["NaN", "x"]) == [
        "'NaN' is a class like any other; leave cells without a label blank"
    ]
    assert describe_lookalikes(["None", "NA"]) == []


def test_copies_of_a_text_with_different_labels_are_said(tmp_path):
    columns = {"text": ["a", "b", "a", "a", "c"], "label": ["x", "x", "y", "x", "y"]}
    labels, said = _read(tmp_path, columns, texts="text")
    assert labels.values == columns["label"]
    assert said == [
        "1 texts occur with different labels, and all of them count: the first at "
        "lines 2, 4"
    ]
    columns["label"] = ["x", "x", "x", None, "y"]
    assert _read(tmp_path, columns, texts="text")[1] == []


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".xlsx"])
def test_blank_labels_are_missing(tmp_path, suffix):
    cells = ["a", " ", "\u200b", "\u00a0\t", "\ufeffb\u00ad", None]
    columns = {"label": cells, "n": [*range(6)]}
    labels, said = _read(tmp_path, columns, suffix=suffix)
    assert labels.values == ["a", None, None, None, "b", None]
    assert said == ["1 labels of 'label' had spaces around them, which are removed"]
