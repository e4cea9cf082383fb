"""The files of a pool: texts and ids, hashes, and checksums."""

import io
import mmap
import os
import shutil
import weakref
import zlib
from functools import cached_property, partial

import numpy as np

from .._utils._system import release_pages
from ._files import BLOCK_BYTES, BLOCK_ROWS, LineWriter, read_lines, write_all
from ._fingerprint import hash_utf8
from ._hash_index import find_repeated
from ._mapped import Blocks, open_array

_MAX_RESIDENT = 2**26  # bytes that are read before their pages are released


class TextFile:
    """An Arrow file of texts and ids, opened when it is first read.

    Next to it are a file of hashes and one of checksums, which a `PoolWriter` wrote.
    Its folder is deleted with this object if `owned`.
    """

    def __init__(self, path, owned=False):
        self.path = os.path.realpath(path)
        self._last = None  # the block that was read last, with its index
        self._n_touched = 0  # bytes that may be resident
        if owned:
            folder = os.path.dirname(self.path)
            weakref.finalize(self, _remove_folder, folder, os.getpid(), vars(self))

    def open(self):
        """Map both files now, so that they may be replaced; return this object.

        Raise an error for files that do not fit. Their blocks are checked when they are
        read.
        """
        self._reader, self._hash_map  # noqa: B018
        return self

    @cached_property
    def _map(self):
        try:
            with open(self.path, "rb") as stream:
                return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError as exc:
            raise FileNotFoundError(
                f"the file of this pool is gone: {self.path!r}. It belongs to the "
                "process that opened the pool, or its cache was written again. Open "
                "the pool again, with a folder as 'cache' to keep the file."
            ) from exc

    @cached_property
    def _sums(self):
        """What the writer recorded: ends, checksums and rows of the blocks."""
        path = sums_path(self.path)
        try:
            [record], _ = read_lines(path)
            sums = {name: record[name] for name in ("crc", *_SUMS)}
            sums["left_out"] = record.get("left_out", [])  # not in older caches
        except FileNotFoundError:
            self._map  # noqa: B018, raises the error for a file that is gone
            raise
        except (ValueError, LookupError, TypeError) as exc:
            raise ValueError(
                f"{path!r} must hold the checksums of a pool, and is damaged. {_AGAIN}"
            ) from exc
        return sums

    @cached_property
    def _blocks(self):
        """The blocks of rows of the Arrow file, and a last one, which lists them."""
        sums, size = self._sums, len(self._map)
        expected = sums["ends"][-1]
        if size != expected:
            raise ValueError(
                f"{self.path!r} must hold {expected} bytes, got {size}. {_AGAIN}"
            )
        # Not a method, as the file is removed with the last reference to this object.
        explain = partial(_explain_damage, self.path, self._starts)
        return Blocks(self.path, self._map, [0, *sums["ends"]], sums["crc32"], explain)

    @cached_property
    def _reader(self):
        import pyarrow as pa

        self._blocks.check(-1)  # the footer: the schema and the offsets of blocks
        return pa.ipc.open_file(pa.BufferReader(pa.py_buffer(self._map)))

    @cached_property
    def _starts(self):
        """First row of each block, and the number of rows, (b + 1,)."""
        return np.cumsum([0, *self._sums["rows"]])

    @property
    def n(self):
        """Number of texts."""
        return int(self._starts[-1])

    @property
    def left_out(self):
        """Rows of the table that are not in the file, as they have no text."""
        return self._sums["left_out"]

    @property
    def source(self):
        """What the texts were read from."""
        return self._reader.schema.metadata[b"source"].decode()

    @cached_property
    def has_ids(self):
        """Whether the file has a column of ids."""
        return "id" in self._reader.schema.names

    @cached_property
    def is_paired(self):
        """Whether each item is a pair of texts."""
        return "second" in self._reader.schema.names

    @cached_property
    def _hash_map(self):
        self._map  # noqa: B018, raises the error for a file that is gone
        path = hashes_path(self.path)
        try:
            hashes = open_array(path)
            if hashes.dtype != "<u8" or hashes.shape != (self.n,):
                raise ValueError(f"{hashes.dtype} of shape {hashes.shape}")
        except (EOFError, ValueError) as exc:
            raise ValueError(
                f"{path!r} must hold {self.n} hashes, and does not ({exc}). {_AGAIN}"
            ) from exc
        return hashes

    @cached_property
    def hashes(self):
        """Hash of each text, (n,): in memory, as the file could be cut."""
        hashes, path = self._hash_map, hashes_path(self.path)
        message = f"{path!r} has another checksum than when it was written. {_AGAIN}"
        bounds = hashes.offset, hashes.offset + hashes.nbytes
        checksums = [self._sums["hashes"]]
        Blocks(path, hashes._mmap, bounds, checksums, lambda block: message).check(0)
        return np.array(hashes)

    def read_texts(self, rows):
        """Return the texts at rows, a range or (p,), as a list."""
        if not self.is_paired:
            return self._read("text", rows)
        columns = self._read("first", rows), self._read("second", rows)
        return list(zip(*columns, strict=True))

    def read_ids(self, rows):
        """Return the ids at rows, a range or (p,), as a list."""
        if self.has_ids:
            return self._read("id", rows)
        return list(rows) if isinstance(rows, range) else rows.tolist()

    def _read(self, name, rows):
        if len(rows) == 0:
            return []
        if isinstance(rows, range) and rows.step == 1:
            return self._read_range(name, rows)
        rows = as_array(rows)
        blocks = np.searchsorted(self._starts, rows, side="right") - 1
        order = np.argsort(blocks, kind="stable")
        cuts = np.flatnonzero(np.diff(blocks[order])) + 1
        values = np.empty(len(rows), dtype=object)
        for part in np.split(order, cuts):
            block = blocks[part[0]]
            column = self._block(block)[name].take(rows[part] - self._starts[block])
            values[part] = column.to_pylist()
        return values.tolist()

    def _read_range(self, name, rows):
        values = []
        block = int(np.searchsorted(self._starts, rows.start, side="right")) - 1
        while len(values) < len(rows):
            start = rows.start + len(values) - int(self._starts[block])
            column = self._block(block)[name]
            values += column.slice(start, len(rows) - len(values)).to_pylist()
            block += 1
        return values

    def _block(self, index):
        """Return a block, a view of the mapped file."""
        self._blocks.check(index)
        last = self._last  # read once: another thread may replace it
        if last is not None and last[0] == index:
            return last[1]
        block = self._reader.get_batch(int(index))
        self._last = index, block
        self._n_touched += block.nbytes
        if self._n_touched > _MAX_RESIDENT:
            self._n_touched = 0
            release_pages(self._map, 0, len(self._map))
        return block

    @cached_property
    def _repeated(self):
        """A bit for each text that occurs more than once, or None if none does."""
        rows = find_repeated(self.hashes)
        if len(rows) == 0:
            return None
        bits = np.zeros(self.n, dtype=bool)
        bits[rows] = True
        return np.packbits(bits)

    def is_repeated(self, rows):
        """Whether the texts at rows, a range or (p,), occur more than once, (p,)."""
        if self._repeated is None:
            return np.zeros(len(rows), dtype=bool)
        return take(np.unpackbits(self._repeated, count=self.n).view(bool), rows)


class PoolWriter:
    """Write the Arrow file of a pool, and its hashes and checksums next to it.

    `names` are the columns' names: "text", or "first" and "second", and perhaps "id".
    `source` is text that says what is read, and `left_out` are rows without a text.
    """

    def __init__(self, path, schema, source):
        import pyarrow as pa

        self.n, self.left_out = 0, []
        self._n_texts = sum(name != "id" for name in schema.names)
        self._schema = schema.with_metadata({"source": source})
        self._waiting = []
        self._path = os.fspath(path)
        self._sums = {"ends": [], "crc32": [], "rows": [], "hashes": 0}
        self._hashes = open(hashes_path(path), "wb")  # noqa: SIM115
        try:
            self._write_header()
            self._sink = _Sink(path)
            self._file = pa.ipc.new_file(self._sink, self._schema)
        except BaseException:
            self._hashes.close()
            raise

    def write(self, batch):
        """Write a RecordBatch of the columns of the schema."""
        rows = max(1, batch.num_rows * BLOCK_BYTES // max(1, batch.nbytes))
        rows = min(rows, BLOCK_ROWS)
        if batch.num_rows < rows:  # many small ones become one
            self._waiting.append(batch)
            n_rows = sum(b.num_rows for b in self._waiting)
            n_bytes = sum(b.nbytes for b in self._waiting)
            if n_rows >= BLOCK_ROWS or n_bytes >= BLOCK_BYTES:
                self._flush()
            return
        self._flush()
        for start in range(0, batch.num_rows, rows):
            self._write_block(batch.slice(start, rows))

    def _flush(self):
        import pyarrow as pa

        if self._waiting:
            table = pa.Table.from_batches(self._waiting)
            self._waiting = []
            for block in table.combine_chunks().to_batches():
                self._write_block(block)

    def _write_block(self, block):
        import pyarrow as pa

        columns = [
            block.column(i).cast(pa.large_binary()).to_pylist()
            for i in range(self._n_texts)
        ]
        hashes = hash_utf8(columns).astype("<u8").tobytes()
        self._hashes.write(hashes)
        self._sums["hashes"] = zlib.crc32(hashes, self._sums["hashes"])
        self._file.write_batch(block)
        self._end_block()
        self._sums["rows"].append(block.num_rows)
        self.n += block.num_rows

    def _end_block(self):
        """Record where a block of the Arrow file ends, and its checksum."""
        self._sums["ends"].append(self._sink.n_bytes)
        self._sums["crc32"].append(self._sink.take_checksum())

    def _write_header(self):
        header = {"descr": "<u8", "fortran_order": False, "shape": (self.n,)}
        np.lib.format.write_array_header_1_0(self._hashes, header)

    def close(self):
        """Finish the files and write them to the disk."""
        try:
            self._flush()
            self._file.close()
            self._end_block()
            self._hashes.seek(0)
            self._write_header()  # it has the same length for every number
            for file in (self._hashes, self._sink):
                file.flush()
                os.fsync(file.fileno())
            with LineWriter(sums_path(self._path), checksums=True) as sums:
                sums.write({**self._sums, "left_out": self.left_out})
        finally:
            self.abort()

    def abort(self):
        """Close the files as they are; harmless if repeated."""
        self._hashes.close()
        self._sink.close()


class _Sink(io.FileIO):
    """A new file that knows its length, and the checksum of what was written last."""

    def __init__(self, path):
        super().__init__(path, "wb")
        self.n_bytes = self._checksum = 0

    def write(self, data):
        """Write all bytes."""
        data = memoryview(data)
        write_all(self.fileno(), data)
        self._checksum = zlib.crc32(data, self._checksum)
        self.n_bytes += data.nbytes
        return data.nbytes

    def take_checksum(self):
        """Return the checksum of the bytes written since the last call."""
        checksum, self._checksum = self._checksum, 0
        return checksum


_AGAIN = "Delete this file, and open the table again: the texts are read from it anew."
_SUMS = ("ends", "crc32", "rows", "hashes")


def _explain_damage(path, starts, block):
    rows = "which holds no texts"
    if block < len(starts) - 1:
        start, stop = starts[block : block + 2]
        rows = f"the rows {start} to {stop - 1}"
    return (
        f"{path!r} must hold texts as they were written, got block {block}, {rows}, "
        f"with another checksum. {_AGAIN}"
    )


def hashes_path(path):
    """Return the path of the hashes of the texts in a file."""
    return f"{os.fspath(path)}.npy"


def sums_path(path):
    """Return the path of the checksums of a file of texts."""
    return f"{os.fspath(path)}.jsonl"


def take(values, rows):
    """Return the values (n,) at rows, a range or (p,); a view for a range."""
    if isinstance(rows, range) and rows.step > 0:
        return values[rows.start : rows.stop : rows.step]
    return values[as_array(rows)]


def as_array(rows):
    if isinstance(rows, range):
        return np.arange(rows.start, rows.stop, rows.step)
    return rows


def _remove_folder(folder, pid, opened):
    if os.getpid() == pid:  # not in a fork of the process that made it
        opened.clear()  # Windows keeps mapped files
        shutil.rmtree(folder, ignore_errors=True)
