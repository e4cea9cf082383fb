"""Tables in files and folders become pools."""

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from skactive.datasets import open_pool

N = 9000  # more than a batch
TEXTS = [f'Text {i}, "quoted"\nand {"ü" * (i % 5)}' for i in range(N)]
KEYS = [f"{i:05d}" for i in range(N)]
FRAME = pd.DataFrame({"text": TEXTS, "key": KEYS, "number": range(7, N + 7)})


def write(path, frame=FRAME):
    suffix = path.suffix
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    elif suffix == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif suffix == ".parquet":
        frame.to_parquet(path, row_group_size=1000)
    elif suffix == ".feather":
        frame.to_feather(path)
    elif suffix == ".arrow":  # the streaming format
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    else:
        frame.to_json(path, orient="records", lines=True)
    return path


@pytest.mark.parametrize(
    "suffix", [".parquet", ".feather", ".arrow", ".csv", ".jsonl", ".ndjson", ".json"]
)
def test_every_format_gives_the_same_pool(tmp_path, suffix):
    path = write(tmp_path / f"table{suffix}")
    pool = open_pool(path, "text", id="key")
    assert list(pool) == TEXTS
    assert list(pool.ids) == KEYS


def test_quotes_of_tsv_files_are_text(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text('a\tb\n"x\t007\n""\ty"\n', encoding="utf-8")
    assert list(open_pool(path, "a", id="b")) == ['"x', '""']
    assert list(open_pool(path, "a", id="b").ids) == ["007", 'y"']


def test_a_dataset_is_read_as_it_is_filtered(tmp_path):
    dataset = ds.dataset(write(tmp_path / "table.parquet"))
    pool = open_pool(dataset.filter(ds.field("number") < 10), "text", id="number")
    assert list(pool) == TEXTS[:3]
    assert list(pool.ids) == [7, 8, 9]


def test_a_folder_is_read_in_the_order_of_paths(tmp_path):
    for name, rows in [("b", slice(5, 9)), ("a/z", slice(0, 5)), (".c", slice(0, 3))]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pandas(FRAME[rows]), tmp_path / f"{name}.parquet")
    assert list(open_pool(tmp_path, "text")) == TEXTS[:9]
    files = [tmp_path / "b.parquet", str(tmp_path / "a" / "z.parquet")]
    pool = open_pool(files, "text", id="number")
    assert list(pool) == TEXTS[5:9] + TEXTS[:5]
    assert list(pool.ids) == [12, 13, 14, 15, 7, 8, 9, 10, 11]


def test_pairs(tmp_path):
    pool = open_pool(write(tmp_path / "t.csv"), ("key", "text"))
    assert list(pool) == list(zip(KEYS, TEXTS, strict=True))
