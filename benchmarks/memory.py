"""Memory of a query on a large pool of float16 features, in a file and in memory.

    python benchmarks/memory.py            # 1,000,000 x 384, some minutes
    python benchmarks/memory.py --smoke    # seconds, for CI

`ActiveLearner(LogisticRegression(), strategy).query(X, 100)` with 500 labeled rows and
4 classes, each strategy in a process of its own, on one thread; seconds are of the
processor. The pool is a `.npy` file of float16, opened as a memory map ("file") or read
("memory"); "candidates" is the file with a mask that leaves out one row in ten.

Growth is that of the process's own memory (RssAnon) during the query, at its peak,
looked at every few milliseconds. Pages of the file, which the system keeps as long as
nobody else needs room, are not its own. "Whole" is that memory in all, without what
Python and its libraries took before the pool was opened; a pool that has been read is
in it. The target is less than 1 GB of it.

Options:
    --pool 1000000
    --strategies random margin entropy egl bald badge coreset embedding_kmeans
    --places {file,memory,candidates}...
Smoke: --pool 20000 --strategies margin coreset
"""

import tempfile
import threading
from pathlib import Path
from time import process_time, sleep

import numpy as np
from _harness import ONE_THREAD, alone, parse, print_rows

TARGET = 1e9  # bytes
CHUNK = 10_000


def write_pool(path, n, d, k=4, clusters=100, seed=0):
    """Write rows of unit length in clusters, then labeled ones near them."""
    rng = np.random.default_rng(seed)
    centers = 0.25 * rng.normal(size=(k, 1, d)) + rng.normal(size=(k, clusters, d))
    centers = centers.reshape(k * clusters, d).astype(np.float32)

    def make(n):
        cluster = rng.integers(k * clusters, size=n)
        X = centers[cluster] + rng.standard_normal((n, d), np.float32)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return X.astype(np.float16), cluster // clusters

    X, y = make(500)
    np.savez(path / "labeled.npz", X=X, y=y)
    pool = np.lib.format.open_memmap(path / "pool.npy", "w+", np.float16, (n, d))
    for start in range(0, n, CHUNK):
        rows = pool[start : start + CHUNK]
        rows[:] = make(len(rows))[0]
    pool.flush()


def own_memory():
    """Bytes of the process's own resident memory; nan where it is not known."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")
    return int(status.split("RssAnon:")[1].split()[0]) * 1024


class Peak:
    """The highest `own_memory` within a block."""

    def __enter__(self):
        self.highest, self.over = own_memory(), threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self):
        while not self.over.is_set():
            self.highest = max(self.highest, own_memory())
            sleep(0.002)

    def __exit__(self, *exc):
        self.over.set()
        self.thread.join()


def measure(path, strategy, place):
    """Ask once, in this process."""
    from sklearn.linear_model import LogisticRegression

    from skactive import ActiveLearner

    labeled = np.load(path / "labeled.npz")
    learner = ActiveLearner(LogisticRegression(), strategy, random_state=0)
    learner.fit(labeled["X"], labeled["y"])
    learner.query(labeled["X"], 5)  # so that all code is loaded
    start = own_memory()
    X = np.load(path / "pool.npy", mmap_mode=None if place == "memory" else "r")
    candidates = np.arange(len(X)) % 10 > 0 if place == "candidates" else None
    before, start_time = own_memory(), process_time()
    with Peak() as peak:
        picks = learner.query(X, 100, candidates=candidates)
    return {
        "seconds": process_time() - start_time,
        "growth": peak.highest - before,
        "whole": peak.highest - start,
        "picks": len(set(picks.tolist())),
    }


def list_rows(folder, args):
    """Yield the rows of the table, each of a process of its own."""
    for strategy in args.strategies:
        for place in args.places:
            result = alone(measure, folder, strategy, place, **ONE_THREAD)
            if result["picks"] != 100:
                raise SystemExit(f"{strategy} asked for {result['picks']} rows")
            growth, whole = result["growth"] / 1e6, result["whole"] / 1e6
            verdict = "missed" if result["whole"] > TARGET else "met"
            yield (
                f"{strategy}|{place}|{result['seconds']:.2f}|{growth:,.0f}|"
                f"{whole:,.0f}|{verdict}"
            )


def main():
    args = parse(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        write_pool(folder, args.pool, 384)
        size = (folder / "pool.npy").stat().st_size / 1e6
        print(f"pool {args.pool:,} x 384, float16, {size:,.0f} MB; growth, whole in MB")
        head = "strategy|pool in|seconds|growth|whole|"
        print_rows(head, list_rows(folder, args))


if __name__ == "__main__":
    main()
