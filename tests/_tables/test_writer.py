"""Tables that are written are read back as they were."""

import csv

import pytest

from skactive._tables._formats import find_dialect
from skactive._tables._reader import read_cells
from skactive._tables._writer import write_table

COLUMNS = {
    "text": ["=1+1", "'x", 'She said "no";', "naïve, 東京", "a\nb"],
    "n": ["1", None, "2.5", "x", "-"],
}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".xlsx"])
def test_what_is_written_is_read_back(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    write_table(path, COLUMNS)
    columns, _, _ = read_cells(path)
    assert columns == COLUMNS


@pytest.mark.parametrize("delimiter", [";", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_dialect_is_kept(tmp_path, delimiter, encoding):
    path = tmp_path / "t.csv"
    write_table(path, COLUMNS, delimiter=delimiter, encoding=encoding)
    assert find_dialect(path) == {"delimiter": delimiter, "encoding": encoding}
    assert read_cells(path)[0] == COLUMNS
    assert find_dialect(path.with_suffix(".tsv")) == {}


def test_a_tsv_file_holds_no_tab_or_line_break(tmp_path):
    columns = {"text": ['"quoted"', "b;c"], "n": ["1", None]}
    write_table(tmp_path / "t.tsv", columns)
    assert read_cells(tmp_path / "t.tsv")[0] == columns
    with pytest.raises(ValueError, match="cannot hold a tab or a line break"):
        write_table(tmp_path / "t.tsv", COLUMNS)


def test_formulas_do_not_run_in_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    write_table(tmp_path / "t.xlsx", {"text": ["=1+1"]})
    cell = openpyxl.load_workbook(tmp_path / "t.xlsx").active["A2"]
    assert (cell.data_type, cell.value) == ("s", "=1+1")


def test_a_text_that_is_too_long_for_excel_is_refused(tmp_path):
    path = tmp_path / "t.xlsx"
    write_table(path, {"text": ["a", "x" * 32767]})
    before = path.read_bytes()
    assert len(read_cells(path)[0]["text"][1]) == 32767
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
    assert read_cells(tmp_path / "t.csv")[0] == {"text": ["a"]}
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_unusable_paths(tmp_path):
    with pytest.raises(ValueError, match=r"must end in one of .csv, .tsv"):
        write_table(tmp_path / "t.txt", COLUMNS)
    with pytest.raises(FileNotFoundError, match=r"Make .*nowhere"):
        write_table(tmp_path / "nowhere" / "t.csv", COLUMNS)
