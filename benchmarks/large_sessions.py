"""What a session over a large pool costs: seconds, and bytes that it keeps of an item.

    python benchmarks/large_sessions.py            # 1,000,000 texts
    python benchmarks/large_sessions.py --smoke    # seconds, for CI

The texts are in a file that `open_pool` maps; their ids are row numbers, or strings in
a column. Features are two numbers per text, and the strategy is random, so that what is
measured is the session. Then bytes that are kept of an item, between pools of 100,000
and 200,000. Each kind of ids runs in a process of its own, for its peak of memory.

Options:
    --pool 1000000
    --bytes-pool 100000
Smoke: --pool 5000 --bytes-pool 5000
"""

import gc
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _harness import alone, parse, peak_memory, timed
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.datasets import open_pool
from skactive.session._lookup import find_texts

N_MORE = 1_000  # texts that are added


class Features(TransformerMixin, BaseEstimator):
    """Two numbers for a text that ends with a number."""

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def transform(self, X):
        numbers = np.array([int(text.rsplit(" ", 1)[1]) for text in X], dtype=np.int64)
        return np.stack([np.sin(numbers), np.cos(numbers)], axis=1)


def make_learner():
    model = make_pipeline(Features(), LogisticRegression())
    return ActiveLearner(model, "random", batch_size=100, random_state=0)


def write_pool(folder, n, kind):
    path = Path(folder, f"{n}-{kind}.parquet")
    names = ["id", "text"]
    schema = pa.schema([(name, pa.string()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, 100_000):
            rows = range(start, min(n, start + 100_000))
            columns = [f"id-{i:09d}" for i in rows], [f"text number {i}" for i in rows]
            writer.write_table(pa.table(dict(zip(names, columns, strict=True))))
    return open_pool(path, "text", id="id" if kind == "strings" else None)


def label(session, batch):
    session.tell(batch.ids, [["odd", "even"][i % 2] for i in range(len(batch))])


def measure_seconds(folder, n, kind):
    pool = write_pool(folder, n + N_MORE, kind)
    path = Path(folder, "session")

    def clock(name, function, *args, **options):
        result, (wall, cpu) = timed(function, *args, **options)
        print(f"{name:<28} {wall:8.2f} s  {cpu:8.2f} s of a core", flush=True)
        return result

    def open_session(name, X):
        return clock(name, LabelingSession, make_learner(), X, path, audit_every=10)

    with open_session("open a new session", pool[:n]) as session:
        label(session, clock("ask for the first batch", session.ask))
        batch = clock("ask for another batch", session.ask)
        clock("tell 100 labels", label, session, batch)
        clock("undo", session.undo)
        clock("search", find_texts, session._core, "no such text", "words")
    with open_session("open it again", pool[:n]) as session:
        clock(f"add {N_MORE} texts", session.add, pool[n:])
    open_session("open it after that", pool).close()
    open_session(f"open it without these {N_MORE}", pool[:n]).close()


def measure_bytes(folder, n, kind):
    kept = []
    for size in (n, 2 * n):
        pool = write_pool(folder, size, kind)
        assert len(pool.ids) == len(pool.hashes) == size  # opened before
        gc.collect()
        tracemalloc.start()
        path = Path(folder, f"session-{size}")
        with LabelingSession(make_learner(), pool, path, audit_every=10) as session:
            for _ in range(2):
                label(session, session.ask())
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    print(f"kept of an item: {(kept[1] - kept[0]) / n:.1f} bytes", flush=True)


def measure(kind, n, n_bytes):
    """Print what a session with a kind of ids costs."""
    print(f"\n{n} texts, ids are {kind}:", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        measure_seconds(folder, n, kind)
        print(f"peak of memory: {peak_memory() / 2**20:.0f} MB", flush=True)
        measure_bytes(folder, n_bytes, kind)


def main():
    args = parse(__doc__)
    for kind in ("numbers", "strings"):
        alone(measure, kind, args.pool, args.bytes_pool)


if __name__ == "__main__":
    main()
