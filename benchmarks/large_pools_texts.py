"""Open a large table of texts from Parquet, CSV and JSONL: seconds and peak memory.

    python benchmarks/large_pools_texts.py --texts FILE.parquet --column text
    python benchmarks/large_pools_texts.py --smoke    # seconds, for CI

Writes the texts of --texts with ids as one file of each format, and opens each with
open_pool in a process of its own. Prints the seconds of opening and of reading all
texts, the seconds of 100 random texts, and by how much the peak of the resident memory
(ru_maxrss) grows over what the imports take.

Options:
    --texts FILE      a table that open_pool reads
    --column text     its column of texts
Smoke:
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from _harness import alone, parse, peak_memory, print_rows


def write_tables(args, folder):
    """Write the texts with ids in each format."""
    from skactive.datasets import open_pool

    if args.smoke:
        texts = [f"text {i} " + "word " * (i % 40) for i in range(20_000)]
    else:
        texts = list(open_pool(args.texts, args.column))
    table = pa.table({"id": [f"doc-{i:08d}" for i in range(len(texts))], "text": texts})
    pq.write_table(table, folder / "texts.parquet")
    pa.csv.write_csv(table, folder / "texts.csv")
    table.to_pandas().to_json(folder / "texts.jsonl", orient="records", lines=True)


def measure(path, id):
    """Open a table and read it; rows, seconds, and bytes of memory."""
    from skactive.datasets import open_pool

    imports, times = peak_memory(), [time.perf_counter()]
    pool = open_pool(path, "text", id=id)
    times.append(time.perf_counter())
    opened = peak_memory()
    for _ in pool.batches():
        pass
    times.append(time.perf_counter())
    list(pool[np.random.default_rng(0).integers(len(pool), size=100)])
    times.append(time.perf_counter())
    read = peak_memory()
    return len(pool), *np.diff(times), imports, opened - imports, read - imports


def list_rows(folder):
    """Yield the row of each file, with and without ids."""
    for path in sorted(folder.iterdir()):
        for id in (None, "id"):
            n, opening, reading, some, *memory = alone(measure, path, id)
            imports, opened, read = (f"{size / 2**20:.0f}" for size in memory)
            yield (
                f"{path.name}|{id}|{n}|{opening:.2f}|{reading:.2f}|{1000 * some:.1f}|"
                f"{imports}|+{opened}|+{read}"
            )


def main():
    args = parse(__doc__)
    if args.texts is None and not args.smoke:
        sys.exit("name a table with --texts, or pass --smoke")
    head = "file|ids|texts|open s|all s|100 ms|MB|MB, opened|MB, read"
    with tempfile.TemporaryDirectory() as folder:
        # A process begins with the peak of the one that starts it.
        alone(write_tables, args, Path(folder))
        print_rows(head, list_rows(Path(folder)))


if __name__ == "__main__":
    main()
