"""The columns of a file are found, and read as they are."""

import pytest

from skactive._tables._reader import Cells, TableFile, find_key

from ._helpers import read_columns


class Name(str):
    """A name that counts how often names are compared."""

    n_compared = 0

    def __eq__(self, other):
        Name.n_compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".xlsx"])
def test_all_columns_of_a_wide_table_are_read(tmp_path, suffix):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({f"c{i}": [i, i + 1] for i in range(300)}).astype(str)
    path = tmp_path / f"t{suffix}"
    if suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    columns = read_columns(path)
    assert columns["c299"] == ["299", "300"]
    assert len(columns) == 300


def test_columns_are_read_in_time_that_grows_as_their_number():
    from skactive._tables._formats import find_places

    keys = [Name(f"c{i}") for i in range(3000)]
    wanted = [Name(f"c{i}") for i in reversed(range(3000))]
    Name.n_compared = 0
    assert find_places(wanted, keys) == list(reversed(range(3000)))
    assert Name.n_compared < 10 * 3000


@pytest.mark.parametrize(
    ("column", "match"),
    [
        ("a", "'t.csv' has 2 columns named 'a'. Rename all but one"),
        (
            "bad",
            "'t.csv' has no column 'bad'. Did you mean 'ba'.*columns: 'a', 'ba'",
        ),
        ("B", "no column 'B'. Did you mean 'b ' or ' b'"),
    ],
)
def test_a_column_that_is_not_there_once_is_an_error(column, match):
    with pytest.raises(ValueError, match=match):
        find_key(column, ["a", "ba", ("a", 2), "b ", " b"], "t.csv")


def test_spaces_and_case_of_a_header_are_resolved_and_said_once(tmp_path):
    table = Cells(tmp_path / "t.csv", ["text", " Label\ufeff"], [], "lines")
    assert [table.find("text"), table.find("label")] == ["text", " Label\ufeff"]
    table.find("label")
    assert table.messages == ["the column ' Label\\ufeff' is read as 'label'"]
    assert table.find("other", optional=True) is None


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", b""), ("utf-8-sig", b""), ("utf-16", b""), ("utf-16-le", b"")],
)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_text_of_utf_8_and_utf_16(tmp_path, encoding, mark, suffix):
    lines = {".csv": "text,n\nnaïve €,1\n", ".tsv": "text\tn\nnaïve €\t1\n"}
    lines[".jsonl"] = '{"text": "naïve €", "n": "1"}\n'
    path = tmp_path / f"t{suffix}"
    path.write_bytes(mark + lines[suffix].encode(encoding))
    assert read_columns(path) == {"text": ["naïve €"], "n": ["1"]}


def test_the_advice_for_windows_1252_keeps_quotes_and_euros(tmp_path):
    content = "text\n\u201cfine\u201d \u20ac\n".encode("cp1252")
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match="iconv -f windows-1252") as error:
        TableFile(tmp_path / "t.csv").read()
    assert content.decode("windows-1252").startswith("text\n\u201cfine")
    assert "latin1" not in str(error.value)


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"'])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_first_line_can_name_the_delimiter(tmp_path, line, end):
    rows = ["text;n", "a, b;1", '"two', 'lines";2', "c;3;4"]
    (tmp_path / "t.csv").write_text(end.join([line, *rows[:4], ""]), newline="")
    assert read_columns(tmp_path / "t.csv")["text"] == ["a, b", f"two{end}lines"]
    (tmp_path / "t.csv").write_text(end.join([line, *rows]), newline="")
    with pytest.raises(ValueError, match=r"line 6 of .* has 3 fields"):
        read_columns(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ('"say ""hi"", now"\t1\nb\t2\n', ['say "hi", now', "b"]),
        ('"two\nlines"\t1\nb\t2\n', ["two\nlines", "b"]),
        ('"a\tb"\t1\n', ["a\tb"]),
        ('"Stray\t1\nend"\t2\n', ['"Stray', 'end"']),
        ('5" disk\t1\n"whole"\t2\n', ['5" disk', '"whole"']),
        ('"open\t1\nb\t2\n', ['"open', "b"]),
    ],
)
def test_quotes_of_a_tsv_file_enclose_cells_or_are_text(tmp_path, content, texts):
    (tmp_path / "t.tsv").write_text("text\tn\n" + content)
    assert read_columns(tmp_path / "t.tsv")["text"] == texts


def test_a_tsv_file_with_semicolons_is_read_by_them(tmp_path):
    (tmp_path / "t.tsv").write_text("id;text;topic\n1;a, b;x\n2;c;y\n")
    assert read_columns(tmp_path / "t.tsv")["text"] == ["a, b", "c"]


def test_the_first_sheet_with_rows_is_read_and_the_others_are_named(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Read me"
    data, more = book.create_sheet("Data"), book.create_sheet("More")
    for row in [["text", None, 2020], ["a", "x", 5], ["b"]]:
        data.append(row)
    more.append(["other"])
    more.append(["c"])
    book.save(tmp_path / "t.xlsx")
    table = TableFile(tmp_path / "t.xlsx").read()
    assert table.columns == {"text": ["a", "b"], "": ["x", None], "2020": [5, None]}
    assert table.messages == ["only the sheet 'Data' is read, not 'More'"]
    with pytest.raises(ValueError, match=r"no column 'other'.*Only the sheet 'Data'"):
        table.find("other")
