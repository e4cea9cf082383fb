"""Open a large table of texts from Parquet, CSV and JSONL: seconds and peak memory.

    python benchmarks/large_pools_texts.py --texts FILE.parquet --column text
    python benchmarks/large_pools_texts.py --smoke    # seconds, for CI

Writes the texts of --texts with ids as one file of each format, and opens each with
open_pool in a process of its own. Prints the seconds of opening and of reading all
texts, the seconds of 100 random texts, and by how much the peak of the resident memory
(ru_maxrss) grows over what the imports take.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq


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


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(path, id, queue):
    """Open a table and read it; put seconds and megabytes into the queue."""
    from skactive.datasets import open_pool

    imports, times = peak(), [time.perf_counter()]
    pool = open_pool(path, "text", id=id)
    times.append(time.perf_counter())
    opened = peak()
    for _ in pool.batches():
        pass
    times.append(time.perf_counter())
    list(pool[np.random.default_rng(0).integers(len(pool), size=100)])
    times.append(time.perf_counter())
    queue.put((len(pool), *np.diff(times), imports, opened - imports, peak() - imports))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", help="a table that open_pool reads")
    parser.add_argument("--column", default="text", help="its column of texts")
    parser.add_argument("--smoke", action="store_true", help="20,000 invented texts")
    args = parser.parse_args()
    if args.texts is None and not args.smoke:
        parser.error("name a table with --texts, or pass --smoke")

    print("file                 ids  texts     open s  all s  100 ms  MB, opened, read")
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own: a process begins with the peak of the one that starts
        # it.
        writer = context.Process(target=write_tables, args=(args, Path(folder)))
        writer.start()
        writer.join()
        for path in sorted(Path(folder).iterdir()):
            for id in (None, "id"):
                queue = context.SimpleQueue()
                process = context.Process(target=measure, args=(path, id, queue))
                process.start()
                n, opening, reading, some, *memory = queue.get()
                process.join()
                print(
                    f"{path.name:20} {id!s:4} {n:9} {opening:6.2f} {reading:6.2f} "
                    f"{1000 * some:6.1f}  {memory[0]:.0f} +{memory[1]:.0f} "
                    f"+{memory[2]:.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
