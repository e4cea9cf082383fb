"""Tables that are written are read back as they were."""

import csv

import pytest

from skactive._tables._reader import TableFile
from skactive._tables._writer import unescape, write_table

from ._helpers import read_columns

COLUMNS = {
    "text": ["=1+1", "'x", 'She said "no";', "naïve, 東京", "a\nb"],
    "n": ["1", None, "2.5", "x", "-"],
}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".xlsx"])
def test_what_is_written_is_read_back(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    write_table(path, COLUMNS)
    columns = read_columns(path)
    if suffix in (".csv", ".tsv"):
        columns = {
            name: [cell and unescape(cell) for cell in cells]
            for name, cells in columns.items()
        }
    assert columns == COLUMNS


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_dialect_of_a_source_and_its_cells_are_kept(tmp_path, delimiter, encoding):
    path, copy = tmp_path / "t.csv", tmp_path / "copy.csv"
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([COLUMNS, *zip(*COLUMNS.values(), strict=True)])
    table = TableFile(path).read()
    write_table(copy, {**table.columns, "new": ["=1", None, "-", "a", 2]}, source=table)
    again = TableFile(copy).read()
    assert again.dialect == {"delimiter": delimiter, "encoding": encoding}
    assert again.columns == {**COLUMNS, "new": ["'=1", None, "'-", "a", "2"]}
    write_table(tmp_path / "t.tsv", table.columns, source=table)
    assert read_columns(tmp_path / "t.tsv") == COLUMNS


def test_a_tsv_file_without_quoting_holds_no_tab_or_line_break(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text('text\tn\n"stray\t1\n5" disk\t2\n')
    table = TableFile(path).read()
    write_table(path, {**table.columns, "new": ["a", 'b"']}, source=table)
    assert path.read_text() == 'text\tn\tnew\n"stray\t1\ta\n5" disk\t2\tb"\n'
    with pytest.raises(ValueError, match="cannot hold a tab or a line break"):
        write_table(path, {**table.columns, "new": ["a\nb", ""]}, source=table)


def test_columns_that_nobody_named_are_copied_exactly(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "text": pa.array(["a", "b"]),
        "time": pa.array([1, 2**60 + 1], pa.timestamp("ns", "UTC")),
        "kind": pa.array(["x", None]).dictionary_encode(),
        "small": pa.array([1, None], pa.int8()),
        "": pa.array([b"\0", b"\xff"]),
        "more": pa.array([[1], None], pa.list_(pa.int16())),
    }
    table = pa.table([*columns.values(), pa.array([1, 2])], [*columns, "small"])
    table = table.replace_schema_metadata({"about": "kept"})
    pq.write_table(table, tmp_path / "t.parquet")
    read = TableFile(tmp_path / "t.parquet").read()
    read.read_texts(["text"])
    new = {**read.columns, "prediction": ["x", "y"]}
    write_table(tmp_path / "out.parquet", new, source=read)
    out = pq.ParquetFile(tmp_path / "out.parquet").read()
    assert out.drop_columns("prediction").equals(table)
    assert out.schema.metadata == {b"about": b"kept"}
    write_table(tmp_path / "out.csv", new, source=read)
    with (tmp_path / "out.csv").open(newline="") as file:
        header, _, row = csv.reader(file)
    assert header == [*table.schema.names, "prediction"]
    assert row[1].startswith("2006-07-14 23:58:24.606846977")


def test_blank_and_repeated_headers_of_delimited_and_excel_files(tmp_path):
    rows = [["text", "", "n", "n", ""], ["a", "1", "2", "3", "4"]]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    table = TableFile(tmp_path / "t.csv").read()
    for suffix in (".csv", ".tsv", ".xlsx"):
        write_table(tmp_path / f"out{suffix}", table.columns, source=table)
        assert read_columns(tmp_path / f"out{suffix}") == table.columns
    write_table(tmp_path / "out.jsonl", table.columns, source=table)
    assert list(read_columns(tmp_path / "out.jsonl").values()) == [
        [cell] for cell in rows[1]
    ]


@pytest.mark.parametrize("cell", ["a\r\nb", "_x000D_", "_x005F_x000D_", "a\rb"])
def test_line_ends_of_windows_in_excel(tmp_path, cell):
    openpyxl = pytest.importorskip("openpyxl")
    write_table(tmp_path / "t.xlsx", {"text": [cell]})
    assert read_columns(tmp_path / "t.xlsx") == {"text": [cell]}
    stored = openpyxl.load_workbook(tmp_path / "t.xlsx").active["A2"].value
    assert "\r" not in stored


def test_formulas_do_not_run_in_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    write_table(tmp_path / "t.xlsx", {"text": ["=1+1"]})
    cell = openpyxl.load_workbook(tmp_path / "t.xlsx").active["A2"]
    assert (cell.data_type, cell.value) == ("s", "=1+1")


def test_a_text_that_is_too_long_for_excel_is_refused(tmp_path):
    path = tmp_path / "t.xlsx"
    write_table(path, {"text": ["a", "x" * 32767]})
    before = path.read_bytes()
    assert len(read_columns(path)["text"][1]) == 32767
    match = r"more than 32,767 characters; got 32,768 in row 3 of column 'text': 'xx"
    with pytest.raises(ValueError, match=match):
        write_table(path, {"text": ["a", "x" * 32768]})
    with pytest.raises(ValueError, match=r"row 2 of column 'label'"):
        write_table(path, {"label": [["name"] * 5000]})
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["t.xlsx"]


def test_lists_are_written_as_json(tmp_path):
    write_table(tmp_path / "t.csv", {"label": [["a", "b"], []]})
    with (tmp_path / "t.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["label"], ['["a", "b"]'], ["[]"]]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    write_table(tmp_path / "t.csv", {"text": ["a"]})
    with pytest.raises(ValueError, match="half of a character"):
        write_table(tmp_path / "t.csv", {"text": ["\ud800"]})
    assert read_columns(tmp_path / "t.csv") == {"text": ["a"]}
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_unusable_paths(tmp_path):
    with pytest.raises(ValueError, match=r"must end in one of .csv, .tsv"):
        write_table(tmp_path / "t.txt", COLUMNS)
    with pytest.raises(FileNotFoundError, match=r"Make .*nowhere"):
        write_table(tmp_path / "nowhere" / "t.csv", COLUMNS)
