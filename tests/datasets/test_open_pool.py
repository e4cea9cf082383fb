"""Tables in files and folders become pools."""

import errno
import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from skactive._storage._text_file import PoolWriter
from skactive.datasets import _open_pool, open_pool

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


@pytest.mark.long
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


def test_a_lance_dataset(tmp_path):
    lance = pytest.importorskip("lance")
    lance.write_dataset(pa.Table.from_pandas(FRAME), str(tmp_path / "t.lance"))
    pool = open_pool(lance.dataset(str(tmp_path / "t.lance")), "text", id="key")
    assert list(pool) == TEXTS
    assert list(pool.ids) == KEYS
    with pytest.raises(FileNotFoundError, match=r"Pass lance.dataset\("):
        open_pool(tmp_path / "t.lance", "text")


def test_categories_and_other_integers_are_converted(tmp_path):
    table = pa.table(
        {"text": pa.array(["a", "b", "a"]).dictionary_encode(), "id": [3, 2, 1]}
    )
    table = table.set_column(1, "id", table["id"].cast("uint16"))
    pq.write_table(table, tmp_path / "t.parquet")
    pool = open_pool(tmp_path / "t.parquet", "text", id="id")
    assert list(pool) == ["a", "b", "a"]
    assert list(pool.ids) == [3, 2, 1]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_row_may_be_longer_than_a_block(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("skactive._tables._formats.BLOCK_BYTES", 2**16)
    texts = ["a", "b" * 2**17, *map(str, range(9999)), "c" * 2**19, "d"]
    path = write(tmp_path / f"t{suffix}", pd.DataFrame({"text": texts}))
    assert list(open_pool(path, "text")) == texts


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_rows_without_a_text_are_left_out(tmp_path, suffix):
    frames = [
        pd.DataFrame({"text": ["a", "", "b"], "id": ["x", None, "y"]}),
        pd.DataFrame({"text": ["\u00a0\u200b", None, "c", "d"], "id": [*"pqzy"]}),
    ]
    for i, frame in enumerate(frames):
        write(tmp_path / f"{i}{suffix}", frame)
    for cache in (None, tmp_path / "_cache", tmp_path / "_cache"):
        with pytest.warns(UserWarning, match=r"left out: rows .* 1, 3, 4\."):
            pool = open_pool(tmp_path, "text", cache=cache)
        assert (list(pool), pool.left_out) == (["a", "b", "c", "d"], [1, 3, 4])
        assert list(pool.ids) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"'y' at row 2 of .*0.* and at row 3 of .*1"):
        open_pool(tmp_path, "text", id="id")


# What a table may hold: a missing id is an error, the text "NA" is not.


def write_text(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding)
    return path


def test_words_for_nothing_are_texts(tmp_path):
    path = write_text(tmp_path / "t.csv", "text,id\nNA,1\nnull,2\n")
    assert list(open_pool(path, "text")) == ["NA", "null"]


BAD_FILES = {
    "no text": ("t.csv", "text,id\n,1\n ,2\n", "holds no rows with a text"),
    "no id": ("t.csv", "text,id\na,1\nb,\n", "'id' of .* has no value at row 1 "),
    "same id": ("t.csv", "text,id\na,1\nb,2\nc,1\n", "'1' at row 0 of .* row 2 of"),
    "fields": (
        "t.csv",
        "text,id\na,1\nb,2,3\n",
        "line 3 .* 3 fields, but the header has 2",
    ),
    "quote": ("t.csv", 'text,id\na,1\n"b,2\n', "malformed near line 3"),
    "brace": (
        "t.jsonl",
        '{"text": "a"}\n{"text": "b"\n{}\n',
        "line 2 .* as JSON: Exp",
    ),
    "number": (
        "t.jsonl",
        '{"text": "a"}\n{"text": 5}\n',
        "text, .* got 5 at line 2",
    ),
    "array": ("t.json", '[{"text": "a"}]\n', "line 1 .* a JSON object"),
    "empty": ("t.csv", "", "it has no header line"),
    "no rows": ("t.csv", "text,id\n", "holds no rows"),
    "column": ("t.csv", "texts,id\na,1\n", "no column 'text'. Did you mean 'texts'"),
    "suffix": ("t.txt", "text\na\n", "Unpack, convert or rename it"),
    "not Parquet": ("t.parquet", "text\na\n", "its content is not what its suffix"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused_with_the_place(tmp_path, name):
    file, content, message = BAD_FILES[name]
    path = write_text(tmp_path / file, content)
    has_id = name in ("no id", "same id")
    with pytest.raises(ValueError, match=message):
        open_pool(path, "text", id="id" if has_id else None)


@pytest.mark.long
def test_the_bad_line_of_a_long_file_is_found(tmp_path):
    lines = ['{"text": "some words of a text"}'] * 90_000 + ['{"text": 5}']
    path = write_text(tmp_path / "t.jsonl", "\n".join(lines))
    with pytest.raises(ValueError, match="at line 90001"):
        open_pool(path, "text")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl"])
def test_other_encodings_are_refused(tmp_path, name):
    row = '{"text": "café"}' if name.endswith("l") else "text\ncafé"
    path = write_text(tmp_path / name, f"{row}\n", encoding="latin-1")
    with pytest.raises(ValueError, match="UTF-8"):
        open_pool(path, "text")


@pytest.mark.parametrize("column", ["text", "id"])
def test_other_types_are_refused(tmp_path, column):
    columns = {"text": ["a"], "id": ["b"], column: [1.5]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=f"column '{column}' .* got the type double"):
        open_pool(tmp_path / "t.parquet", "text", id="id")


def test_invalid_text_in_a_binary_file_is_refused(tmp_path):
    column = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": column}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="must hold UTF-8 text"):
        open_pool(tmp_path / "t.parquet", "text")


FOLDERS = {
    "nothing": ({}, "holds no file whose name ends in"),
    "formats": (
        {"a.csv": "text\na\n", "b.jsonl": '{"text": "a"}'},
        "files of one format",
    ),
    "columns": ({"a.csv": "text\na\n", "b.csv": "body\na\n"}, "b.csv' has no column"),
    "types": (
        {"a.jsonl": '{"text":"a","id":1}', "b.jsonl": '{"text":"a","id":"x"}'},
        "one type in all files, got integers in .*a.jsonl' and text in .*b.jsonl'",
    ),
    "ids": (
        {"a.csv": "text,id\na,1\nb,2\n", "b.csv": "text,id\nc,2\n"},
        "'2' at row 1 of .*a.csv' and at row 0 of .*b.csv'",
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_bad_folders_are_refused(tmp_path, name):
    files, message = FOLDERS[name]
    for file, content in files.items():
        write_text(tmp_path / file, content)
    has_id = name in ("types", "ids")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        open_pool(tmp_path, "text", id="id" if has_id else None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a text", "b"], "text"), "no such file or folder: 'a text'"),
        (([], "text"), "at least one file"),
        ((["."], "text"), "is a folder: '.'. Pass the folder alone"),
        (("data/*.csv", "text"), r"sorted\(glob.glob\('data/\*.csv'\)\)"),
        (("s3://bucket/x.csv", "text"), "For a remote file, pass pyarrow.dataset"),
        ((FRAME, "text"), "got DataFrame. For a table in memory, pass pyarrow"),
        (("x.csv", ("text", "text")), "or of two different ones"),
        (("x.csv", ["a", "b", "c"]), "or of two different ones"),
        (("x.csv", None), "The 'text' parameter"),
        ((ds.dataset(pa.table({"a": ["x"]})), "b"), "the dataset' has no column 'b'"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=message):
        open_pool(*arguments)


# Files that are kept, and files that are not.


@pytest.fixture
def n_converted(monkeypatch):
    """A list with an entry for each table that was read."""
    convert, names = _open_pool._Table.convert, []

    def count(self, target):
        names.append(target)
        convert(self, target)

    monkeypatch.setattr(_open_pool._Table, "convert", count)
    return names


def test_a_temporary_file_is_deleted_with_the_last_pool_of_it(tmp_path, n_converted):
    part = open_pool(write(tmp_path / "t.csv", FRAME[:9]), "text")[3:]
    [path] = map(Path, n_converted)
    assert path.exists()
    assert list(part) == TEXTS[3:9]
    del part
    gc.collect()
    assert not path.parent.exists()


def test_a_failed_conversion_leaves_no_file(tmp_path, n_converted):
    path = write_text(tmp_path / "t.csv", "text\na\nb,c\n")
    for cache in (None, tmp_path / "cache"):
        with pytest.raises(ValueError, match=r"line 3 of .* has 2 fields"):
            open_pool(path, "text", cache=cache)
    gc.collect()
    assert not any(Path(name).exists() for name in n_converted)
    assert not list((tmp_path / "cache").glob("*.arrow*"))


def test_the_cache_is_used_until_a_file_changes(tmp_path, n_converted):
    source, cache = tmp_path / "source", tmp_path / "deep" / "cache"
    source.mkdir()
    path = write(source / "a.csv", FRAME[:9])
    first = open_pool(source, "text", cache=cache)
    assert list(open_pool(source, "text", cache=str(cache))) == TEXTS[:9]
    assert len(n_converted) == 1
    # Another column has a file of its own.
    assert list(open_pool(source, "key", cache=cache)) == KEYS[:9]
    assert list(open_pool(source, "text", id="key", cache=cache).ids) == KEYS[:9]
    assert len(n_converted) == 3
    # A file that is newer, one that is longer, one more.
    os.utime(path, ns=(0, 0))
    open_pool(source, "text", cache=cache)
    write(path, FRAME[:10])
    assert len(open_pool(source, "text", cache=cache)) == 10
    write(source / "b.csv", FRAME[10:12])
    assert list(open_pool(source, "text", cache=cache)) == TEXTS[:12]
    assert len(n_converted) == 6
    # What was opened before still holds what it held.
    assert list(first) == TEXTS[:9]


def test_a_cache_in_the_folder_itself_is_not_read_as_a_part_of_it(tmp_path):
    write(tmp_path / "a.csv", FRAME[:9])
    for _ in range(2):
        pool = open_pool(tmp_path, "text", cache=tmp_path / "cache")
        assert list(pool) == TEXTS[:9]
    assert list(open_pool(tmp_path, "text", cache=tmp_path)) == TEXTS[:9]
    assert list(open_pool(tmp_path, "text", cache=tmp_path)) == TEXTS[:9]


@pytest.mark.parametrize("damage", ["manifest", "texts", "hashes", "half"])
def test_a_damaged_cache_is_written_again(tmp_path, n_converted, damage):
    path, cache = write(tmp_path / "t.csv", FRAME[:9]), tmp_path / "cache"
    open_pool(path, "text", cache=cache)
    [manifest] = cache.glob("*.json")
    [texts], [hashes] = cache.glob("*.arrow"), cache.glob("*.npy")
    if damage == "manifest":
        manifest.write_text("{")
    elif damage == "half":
        texts.write_bytes(texts.read_bytes()[:500])
    else:
        {"texts": texts, "hashes": hashes}[damage].unlink()
    assert list(open_pool(path, "text", cache=cache)) == TEXTS[:9]
    assert len(n_converted) == 2
    assert len(list(cache.glob("*.arrow*"))) == 3


def test_files_of_a_killed_process_are_removed(tmp_path, n_converted):
    path, cache = write(tmp_path / "t.csv", FRAME[:9]), tmp_path / "cache"
    open_pool(path, "text", cache=cache)
    name = Path(n_converted[0]).name
    (cache / f"{name[:17]}-12345678.arrow").write_bytes(b"half")
    os.utime(path, ns=(0, 0))
    open_pool(path, "text", cache=cache)
    assert len(list(cache.glob("*.arrow"))) == 1


def test_a_cache_that_is_being_written_is_waited_for(tmp_path, n_converted):
    path, cache = write(tmp_path / "t.csv"), tmp_path / "cache"
    with ThreadPoolExecutor(4) as threads:
        pools = list(
            threads.map(lambda _: open_pool(path, "text", cache=cache), range(4))
        )
    assert len(n_converted) == 1
    assert all(list(pool) == TEXTS for pool in pools)


def test_a_cache_needs_files(tmp_path):
    path = write(tmp_path / "t.parquet", FRAME[:9])
    with pytest.raises(ValueError, match="whose changes cannot be noticed"):
        open_pool(ds.dataset(path), "text", cache=tmp_path)
    with pytest.raises(NotADirectoryError, match="'cache' must be a folder"):
        open_pool(path, "text", cache=path)


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def fail(self, block):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(PoolWriter, "_write_block", fail)
    cache = tmp_path / "cache"
    with pytest.raises(OSError, match=r"No space left.* free some space") as caught:
        open_pool(write(tmp_path / "t.csv"), "text", cache=cache)
    assert caught.value.errno == errno.ENOSPC
    assert not list(cache.glob("*.arrow*"))


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "t.csv")
    close = PoolWriter.close

    def change(self):
        close(self)
        os.utime(path, ns=(0, 0))

    monkeypatch.setattr(PoolWriter, "close", change)
    with pytest.raises(ValueError, match="was changed while it was read"):
        open_pool(path, "text")


MEASURE = """
import re, sys
import pyarrow.csv, pyarrow.dataset, pyarrow.parquet
from skactive.datasets import open_pool
def peak():
    # ru_maxrss would begin with the memory of the test, which wrote the table.
    status = open("/proc/self/status").read()
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) // 1024
before = peak()
pool = open_pool(sys.argv[1], "text", id="id")
n = sum(len(text) for texts in pool.batches() for text in texts)
pool.drop_known(None, pool[:100])
print(n, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="no /proc there")
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_the_memory_does_not_grow_with_the_table(tmp_path, suffix):
    texts = [f"{i:09d}" * 100 for i in range(240_000)]  # 216 MB
    path = write(
        tmp_path / f"t{suffix}", pd.DataFrame({"text": texts}).reset_index(names="id")
    )
    command = [sys.executable, "-c", MEASURE, str(path)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    n, megabytes = map(int, found.stdout.split())
    assert n == 900 * len(texts)
    assert megabytes < 180
