"""Loading tables of the user's own."""

import csv
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skactive.datasets import load_table

TEXTS = ["Good food", 'She said "no", twice', "Ünïcode\nin two lines"]


def _write(path, content, encoding="utf-8"):
    path.write_bytes(content.encode(encoding))
    return path


def _write_table(path, columns):
    """Write the columns in the format of the suffix."""
    names, rows = list(columns), list(zip(*columns.values(), strict=True))
    if path.suffix in (".csv", ".tsv"):
        delimiter = "," if path.suffix == ".csv" else "\t"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows([names, *rows])
    elif path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        _write(path, "\n".join(lines))
    else:
        pa = pytest.importorskip("pyarrow")
        pa.parquet = pytest.importorskip("pyarrow.parquet")
        pa.parquet.write_table(pa.table(columns), path)
    return path


@pytest.fixture(params=[".csv", ".jsonl", ".parquet"])
def suffix(request):
    return request.param


def test_every_format_gives_the_same(tmp_path, suffix):
    columns = {"id": ["a", "b", "c"], "text": TEXTS, "label": ["x", "y", "x"]}
    path = _write_table(tmp_path / f"table{suffix}", columns)
    table = load_table(path, text="text", label="label")
    assert table.data == TEXTS
    assert_array_equal(table.target, ["x", "y", "x"])
    assert table.target_names == ["x", "y"]
    assert "3 rows" in table.DESCR


def test_two_columns_give_pairs(tmp_path, suffix):
    columns = {"a": TEXTS, "b": ["x", "y", "z"]}
    path = _write_table(tmp_path / f"table{suffix}", columns)
    table = load_table(path, text=("a", "b"))
    assert table.data == list(zip(TEXTS, "xyz", strict=True))
    assert table.target is None
    assert table.target_names is None


def test_return_X_y(tmp_path, suffix):
    columns = {"text": TEXTS, "label": [2, 0, 1]}
    path = _write_table(tmp_path / f"table{suffix}", columns)
    X, y = load_table(str(path), text="text", label="label", return_X_y=True)
    assert X == TEXTS
    assert_array_equal(y, [2, 0, 1])
    assert y.dtype == np.int64


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", "0"], [1, -2, 0]),
        (["1", "2", "x"], ["1", "2", "x"]),
        (["01", "2", "3"], ["01", "2", "3"]),
        (["1.0", "2", "3"], ["1.0", "2", "3"]),
        (["1", "2", "9" * 30], ["1", "2", "9" * 30]),
    ],
)
def test_labels_of_csv_are_int_only_if_all_are_literals(tmp_path, cells, expected):
    path = _write_table(tmp_path / "t.csv", {"text": TEXTS, "label": cells})
    target = load_table(path, text="text", label="label").target
    assert target.tolist() == expected


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize(
    "labels", [[True, False, True], [5, 1, 2], ["1", "2", "3"], ["0.5", "1.0", "2"]]
)
def test_typed_labels_keep_their_type(tmp_path, suffix, labels):
    path = _write_table(tmp_path / f"t{suffix}", {"text": TEXTS, "label": labels})
    target = load_table(path, text="text", label="label").target
    assert target.tolist() == labels
    assert type(target.tolist()[0]) is type(labels[0])


def test_numbers_in_a_text_column_stay_text(tmp_path):
    path = _write(tmp_path / "t.csv", "text\n12\n13\n")
    assert load_table(path, text="text").data == ["12", "13"]


def test_quotes_in_tsv_are_text(tmp_path):
    path = _write(tmp_path / "t.tsv", 'text\tlabel\n"Stray quote\t1\nNo quote\t0\n')
    table = load_table(path, text="text", label="label")
    assert table.data == ['"Stray quote', "No quote"]
    assert_array_equal(table.target, [1, 0])


def test_byte_order_mark_windows_lines_and_empty_lines(tmp_path):
    path = _write(tmp_path / "t.csv", "text,n\r\nA,1\r\n\r\nB,2\r\n", "utf-8-sig")
    assert load_table(path, text="text").data == ["A", "B"]


def test_a_large_field_is_read_and_the_global_limit_stays(tmp_path):
    limit = csv.field_size_limit()
    text = "long " * 40_000
    path = _write(tmp_path / "t.csv", f"text\n{text}\n")
    assert load_table(path, text="text").data == [text]
    assert csv.field_size_limit() == limit


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file or .*missing.csv"):
        load_table(tmp_path / "missing.csv", text="text")


@pytest.mark.parametrize(
    ("name", "regression", "match"),
    [
        ("t.csv", True, "must hold numbers, got '1e999' at line 2"),
        ("t.jsonl", True, "must hold numbers, got inf at line 1"),
        ("t.jsonl", False, "labels of one type.*got inf at line 1"),
    ],
)
def test_an_infinite_label_is_refused(tmp_path, name, regression, match):
    rows = {"t.csv": "text,n\nA,1e999\nB,1.5\n"}
    rows["t.jsonl"] = '{"text": "A", "n": 1e999}\n{"text": "B", "n": 1.5}\n'
    path = _write(tmp_path / name, rows[name])
    with pytest.raises(ValueError, match=match):
        load_table(path, text="text", label="n", regression=regression)


def test_a_folder(tmp_path):
    (tmp_path / "data.csv").mkdir()
    with pytest.raises(FileNotFoundError, match=r"'path' is a folder"):
        load_table(tmp_path / "data.csv", text="text")


def test_an_unknown_suffix(tmp_path):
    match = r"must end in one of .csv, .tsv, .jsonl, .ndjson, .parquet.*got .*t.txt"
    with pytest.raises(ValueError, match=match):
        load_table(_write(tmp_path / "t.txt", ""), text="text")


def test_an_unknown_column(tmp_path, suffix):
    path = _write_table(tmp_path / f"t{suffix}", {"Text": TEXTS, "label": [0, 1, 0]})
    match = "no column 'labels'. Did you mean 'label'. Its columns: 'Text', 'label'"
    with pytest.raises(ValueError, match=match):
        load_table(path, text="Text", label="labels")
    with pytest.warns(UserWarning, match="the column 'Text' is read as 'text'"):
        assert load_table(path, text="text").data == TEXTS


def test_a_column_that_is_there_twice(tmp_path):
    path = _write(tmp_path / "t.csv", "text,text\na,b\n")
    with pytest.raises(ValueError, match=r"has 2 columns named 'text'. Rename"):
        load_table(path, text="text")


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("t.csv", "", "is empty: it has no header line"),
        ("t.csv", "text\n", "holds no rows"),
        ("t.jsonl", "\n", "holds no rows"),
    ],
)
def test_an_empty_file(tmp_path, name, content, match):
    with pytest.raises(ValueError, match=match):
        load_table(_write(tmp_path / name, content), text="text")


@pytest.mark.parametrize("row", ["a,b,c", "a"])
def test_a_row_of_another_length(tmp_path, row):
    # The first row spans two lines, so the bad one starts on line 4.
    path = _write(tmp_path / "t.csv", f'text,label\n"two\nlines",1\n{row}\n')
    n_fields = row.count(",") + 1
    match = f"line 4 of .* has {n_fields} fields, but the header has 2"
    with pytest.raises(ValueError, match=match):
        load_table(path, text="text")


def test_a_quote_that_is_never_closed(tmp_path):
    path = _write(tmp_path / "t.csv", 'text,label\n"a,1\nb,2\n')
    with pytest.raises(ValueError, match=r"malformed near line 3.*Quote fields"):
        load_table(path, text="text")


def test_a_line_that_is_not_json(tmp_path):
    path = _write(tmp_path / "t.jsonl", '{"text": "a"}\n\n{"text": \n')
    with pytest.raises(ValueError, match=r"line 3 of .* as JSON: Expecting value"):
        load_table(path, text="text")


def test_a_json_line_that_is_no_object(tmp_path):
    path = _write(tmp_path / "t.jsonl", '{"text": "a"}\n["b"]\n')
    with pytest.raises(
        ValueError, match=r"line 2 .* must be a JSON object .* got list"
    ):
        load_table(path, text="text")


@pytest.mark.parametrize("blank", ["", " ", "\u00a0\u200b", "\ufeff"])
def test_rows_without_a_text_are_left_out_by_line(tmp_path, blank):
    path = _write(tmp_path / "t.csv", f"text,label\na,1\n{blank},2\nc,3\n")
    with pytest.warns(UserWarning, match="rows without a text are left out: line 3"):
        X, y = load_table(path, text="text", label="label", return_X_y=True)
    assert (X, y.tolist()) == (["a", "c"], [1, 3])
    path = _write(tmp_path / "t.csv", "text,label\na,1\nb,2\nc,\n")
    with pytest.raises(ValueError, match=r"'label' .* no value at 1 of 3 rows .* 4"):
        load_table(path, text="text", label="label")
    path = _write(tmp_path / "t.csv", f"text,label\n{blank},1\n{blank},2\n")
    with pytest.raises(ValueError, match=r"column 'text' of .* has no text"):
        load_table(path, text="text")


def test_missing_values_of_json_are_null_nan_or_absent(tmp_path):
    lines = ['{"text": "a"}', '{"text": null}', "{}", '{"text": ""}', '{"text": NaN}']
    path = _write(tmp_path / "t.jsonl", "\n".join(lines))
    with pytest.warns(UserWarning, match="left out: lines 2, 3, 4, 5"):
        assert load_table(path, text="text").data == ["a"]


def test_missing_values_in_parquet_are_reported_by_row(tmp_path):
    columns = {"text": TEXTS, "label": [1.0, None, float("nan")]}
    path = _write_table(tmp_path / "t.parquet", columns)
    match = r"'label' .* 2 of 3 rows .*: rows \(counted from 0\) 1, 2"
    with pytest.raises(ValueError, match=match):
        load_table(path, text="text", label="label")


def test_many_missing_values_are_counted(tmp_path):
    path = _write(tmp_path / "t.jsonl", '{"text": "a"}\n' + "{}\n" * 9)
    with pytest.warns(UserWarning, match="lines 2, 3, 4, 5, 6 and 4 more"):
        load_table(path, text="text")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_text_column_without_texts(tmp_path, suffix):
    path = _write_table(tmp_path / f"t{suffix}", {"text": [1, 2], "label": [0, 1]})
    with pytest.raises(ValueError, match=r"'text' .* must hold text, got 1 at"):
        load_table(path, text="text")


CODES = ["1.1", "1.10", "007.1", "7.1", "01", "1"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_codes_stay_what_they_are(tmp_path, suffix):
    columns = {"text": [f"case {i}" for i in range(6)], "code": CODES}
    path = _write_table(tmp_path / f"t{suffix}", columns)
    with pytest.warns(UserWarning, match="the classes '1.1' and '1.10' look the same"):
        table = load_table(path, text="text", label="code")
    assert table.target.tolist() == CODES
    assert table.target_names == sorted(CODES)


@pytest.mark.parametrize("cell", ['{"a": 1}', '["a"]', '[1, ["b"]]'])
@pytest.mark.parametrize("regression", [True, False])
def test_a_label_of_no_type_of_labels_is_refused(tmp_path, cell, regression):
    lines = ['{"text": "a", "n": "1"}', f'{{"text": "b", "n": {cell}}}']
    path = _write(tmp_path / "t.jsonl", "\n".join(lines))
    with pytest.raises(ValueError, match=r"column 'n' .* must hold .* at line 2"):
        load_table(path, text="text", label="n", regression=regression)


def test_a_label_that_was_escaped_had_no_spaces(tmp_path, recwarn):
    path = _write(tmp_path / "t.csv", "text,n\na,'=1\nb,x\n")
    assert load_table(path, text="text", label="n").target.tolist() == ["=1", "x"]
    assert not recwarn.list


WIDE = "\N{FULLWIDTH DIGIT ONE}"


@pytest.mark.parametrize("cell", ["01", "1.0", "+1", "-0", "1_0", WIDE, "1" * 30])
def test_only_the_shortest_spelling_of_an_integer_is_one(tmp_path, cell):
    path = _write(tmp_path / "t.csv", f"text,n\na,{cell}\nb,12\nc,-3\n")
    assert load_table(path, text="text", label="n").target.tolist() == [
        cell,
        "12",
        "-3",
    ]


def test_numbers_with_fractions_are_names_of_classes(tmp_path):
    rows = [{"text": "a", "label": 1}, {"text": "b", "label": 2.5}]
    path = _write(tmp_path / "t.jsonl", "\n".join(map(json.dumps, rows)))
    options = {"text": "text", "label": "label", "return_X_y": True}
    with pytest.warns(UserWarning, match="the numbers of column 'label' are names"):
        assert load_table(path, **options)[1].tolist() == ["1", "2.5"]
    target = load_table(path, **options, regression=True)[1]
    assert (target.dtype, target.tolist()) == (np.float64, [1.0, 2.5])


def test_a_regression_reads_numbers_in_every_spelling(tmp_path):
    path = _write(tmp_path / "t.csv", "text,n\na,1.5\nb,-2\nc,3e-1\nd, +07 \n")
    options = {"text": "text", "label": "n", "regression": True}
    with pytest.warns(UserWarning, match="1 labels of 'n' had spaces"):
        table = load_table(path, **options)
    assert (table.target.tolist(), table.target_names) == ([1.5, -2.0, 0.3, 7.0], None)
    path = _write(tmp_path / "t.csv", "text;n\na;3,5\nb;4\n")
    with pytest.raises(ValueError, match=r"got '3,5' at line 2. Write decimal points"):
        load_table(path, **options)


@pytest.mark.parametrize("other", ['"x"', "true", "2.5"])
def test_a_number_among_the_labels_of_another_type(tmp_path, other):
    lines = ['{"text": "a", "label": 1}', f'{{"text": "b", "label": {other}}}']
    path = _write(tmp_path / "t.jsonl", "\n".join(lines))
    options = {"text": "text", "label": "label"}
    if other == "true":
        with pytest.raises(ValueError, match=r"labels of one type.*got True at line 2"):
            load_table(path, **options)
        return
    with pytest.warns(UserWarning, match="are names of classes, read as text"):
        target = load_table(path, **options).target
    assert target.tolist() == ["1", other.strip('"')]
    lines.append('{"text": "c", "label": "1"}')
    path = _write(path, "\n".join(lines))
    with pytest.raises(ValueError, match=r"the text '1', the number at line 1. Write"):
        load_table(path, **options)


def test_text_that_is_not_utf8(tmp_path):
    path = _write(tmp_path / "t.csv", "text\nä\n", "latin1")
    with pytest.raises(ValueError, match=r"not UTF-8 text \(byte 5\). In Excel"):
        load_table(path, text="text")


def test_a_file_that_is_not_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"t.parquet' is damaged, or its content is"):
        load_table(_write(tmp_path / "t.parquet", "text\na\n"), text="text")


@pytest.mark.parametrize("text", [[], ["a", "b", "c"], [1]])
def test_text_must_name_one_or_two_columns(tmp_path, text):
    with pytest.raises(ValueError, match=r"'text' must be the name of one column, or"):
        load_table(tmp_path / "t.csv", text=text)


def test_text_and_label_must_differ(tmp_path):
    with pytest.raises(
        ValueError, match=r"'text' and 'label' both name the column 'a'"
    ):
        load_table(tmp_path / "t.csv", text="a", label="a")


def test_return_X_y_needs_a_label(tmp_path):
    with pytest.raises(ValueError, match=r"'return_X_y' needs labels"):
        load_table(tmp_path / "t.csv", text="a", return_X_y=True)


@pytest.mark.parametrize("missing", [None, ""])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_rows_without_a_label_are_dropped_on_request(tmp_path, suffix, missing):
    columns = {"text": TEXTS, "label": ["x", missing, "y"]}
    path = _write_table(tmp_path / f"t{suffix}", columns)
    table = load_table(path, text="text", label="label", missing_labels="drop")
    assert table.data == [TEXTS[0], TEXTS[2]]
    assert table.target.tolist() == ["x", "y"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_rows_without_a_label_are_kept_as_none_on_request(tmp_path, suffix):
    columns = {"text": TEXTS, "label": ["x", None, "y"]}
    path = _write_table(tmp_path / f"t{suffix}", columns)
    table = load_table(path, text="text", label="label", missing_labels="keep")
    assert table.data == TEXTS
    assert table.target.tolist() == ["x", None, "y"]
    assert table.target_names == ["x", "y"]


def test_kept_labels_of_csv_are_int_if_all_are_literals(tmp_path):
    path = _write(tmp_path / "t.csv", "text,label\na,1\nb,\nc,2\n")
    table = load_table(path, text="text", label="label", missing_labels="keep")
    assert table.target.tolist() == [1, None, 2]


def test_a_column_without_any_label_cannot_be_dropped(tmp_path):
    path = _write(tmp_path / "t.csv", "text,label\na,\nb,\n")
    with pytest.raises(ValueError, match=r"column 'label' of .* holds no label"):
        load_table(path, text="text", label="label", missing_labels="drop")


def test_missing_labels_name_the_option(tmp_path):
    path = _write(tmp_path / "t.csv", "text,label\na,1\nb,\n")
    with pytest.raises(ValueError, match=r"line 3. .*missing_labels='drop' or 'keep'"):
        load_table(path, text="text", label="label")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_of_a_csv_file_is_found(tmp_path, delimiter):
    path = tmp_path / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([["text", "label"], *[(text, "a") for text in TEXTS]])
        writer.writerow(["a, b; c | d\te", "b"])
    data, target = load_table(path, text="text", label="label", return_X_y=True)
    assert data == [*TEXTS, "a, b; c | d\te"]
    assert target.tolist() == ["a", "a", "a", "b"]


def test_a_single_column_needs_no_delimiter(tmp_path):
    path = _write(tmp_path / "t.csv", 'text\na;b\n"c, d"\ne|f;g\n')
    assert load_table(path, text="text").data == ["a;b", "c, d", "e|f;g"]


def test_an_excel_file(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["text", "label", None], ["=a", 1, None], [None] * 3, ["b\nc", 2]]:
        book.active.append(row)
    book.active["A2"].data_type = "s"
    book.save(tmp_path / "t.xlsx")
    table = load_table(tmp_path / "t.xlsx", text="text", label="label")
    assert (table.data, table.target.tolist()) == (["=a", "b\nc"], [1, 2])


def test_unusable_excel_files(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    with pytest.raises(ValueError, match=r"t.xls'. Save it as .xlsx"):
        load_table(_write(tmp_path / "t.xls", ""), text="text")
    with pytest.raises(ValueError, match=r"t.xlsx' is damaged, or is not an Excel"):
        load_table(_write(tmp_path / "t.xlsx", "text"), text="text")
    book = openpyxl.Workbook()
    book.active.append([None, None])
    book.active.append(["a", "b"])
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match=r"the first row .*must hold the names"):
        load_table(tmp_path / "t.xlsx", text="text")


@pytest.mark.parametrize(
    "value", ["9" * 5000, "[" * 100_000 + "]" * 100_000], ids=["digits", "nesting"]
)
def test_json_that_python_refuses_is_reported_by_line(tmp_path, value):
    path = _write(tmp_path / "t.jsonl", f'{{"text": "a"}}\n{{"text": {value}}}\n')
    with pytest.raises(ValueError, match=r"line 2 of .*t.jsonl' cannot be read"):
        load_table(path, text="text")


def test_a_damaged_parquet_file_is_named(tmp_path):
    path = _write_table(tmp_path / "t.parquet", {"text": TEXTS * 50})
    content = bytearray(path.read_bytes())
    for at in range(4, len(content) - 8, 3):
        content[at] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"t.parquet' is damaged, or its content is"):
        load_table(path, text="text")


def test_labels_beyond_64_bits_are_refused(tmp_path):
    path = _write(tmp_path / "t.jsonl", '{"text": "a", "label": 1%s}' % ("0" * 25))
    with pytest.raises(ValueError, match=r"int of at most 64 bits; got 1000"):
        load_table(path, text="text", label="label")


@pytest.mark.parametrize(
    ("name", "value"),
    [("path", 5), ("text", 5), ("label", 5), ("return_X_y", "no")],
)
def test_arguments_of_load_table_are_named(tmp_path, name, value):
    arguments = {"path": tmp_path / "t.csv", "text": "text", "label": "label"}
    with pytest.raises(ValueError, match=f"'{name}' parameter of load_table"):
        load_table(**{**arguments, name: value})


@pytest.mark.parametrize("label", ["", [""], [None], [3], [["a"]], []])
def test_a_label_that_names_no_column_is_refused(tmp_path, label):
    path = _write(tmp_path / "table.csv", "text,a\nx,1\n")
    with pytest.raises(ValueError, match="'label' must name one column"):
        load_table(path, text="text", label=label)
