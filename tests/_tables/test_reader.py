"""Columns are found among many, in time that grows as their number."""

import pytest

from skactive._tables import _reader
from skactive._tables._reader import find_positions, read_cells


class Name(str):
    """A name that counts how often names are compared."""

    n_compared = 0

    def __eq__(self, other):
        Name.n_compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("n", [100, 3000])
def test_columns_are_found_without_comparing_each_with_each(n):
    header = [Name(f"c{i}") for i in range(n)]
    wanted = [Name(f"c{i}") for i in reversed(range(n))]
    Name.n_compared = 0
    assert find_positions(wanted, header, "t.csv") == list(reversed(range(n)))
    assert Name.n_compared < 10 * n


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".xlsx"])
def test_the_columns_of_a_table_are_looked_up_once(tmp_path, monkeypatch, suffix):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    calls = []
    monkeypatch.setattr(
        _reader,
        "find_positions",
        lambda *arguments: calls.append(arguments) or find_positions(*arguments),
    )
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
    columns, _, _ = read_cells(path)
    assert columns["c299"] == ["299", "300"]
    assert len(columns) == 300
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("column", "match"),
    [
        ("a", "'t.csv' has 2 columns named 'a'. Rename all but one"),
        (
            "Ba",
            "'t.csv' has no column 'Ba'. Did you mean.*columns: 'a', 'ba'",
        ),
    ],
)
def test_a_column_that_is_not_there_once_is_an_error(column, match):
    with pytest.raises(ValueError, match=match):
        find_positions(["ba", column], ["a", "ba", "a"], "t.csv")
