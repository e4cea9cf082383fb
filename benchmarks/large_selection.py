"""Queries of 100 on a mapped file of 10,000,000 x 384 float16, larger than memory.

    python benchmarks/large_selection.py --data FOLDER     # 8 GB in FOLDER, minutes
    python benchmarks/large_selection.py --loss            # 100,000 rows in memory
    python benchmarks/large_selection.py --smoke           # seconds, for CI

The rows are unit vectors in 1,000 clusters, written a chunk at a time if the file is
not there. `ActiveLearner(LogisticRegression(), strategy).query(X, 100)` with 200 labels
of 4 classes runs in a process of its own for each strategy, on one thread. Seconds are
of the wall and of the processor; the peak is `ru_maxrss` of the whole process, which
counts pages of the file that are resident.

`--loss` compares `partitioned` with the strategy that it wraps: by the largest distance
from a row to its nearest label or pick, which `coreset` makes small, and by the mean
over the rows of exp(-d^2), the facility location that `uherding` without a measure
makes large, with d the distance to the nearest label or pick.

Options:
    --data FOLDER   of the file
    --rows 10000000
    --width 384
    --strategies NAME...
    --loss
Smoke: --rows 3000 --width 8 --loss
"""

import tempfile
from pathlib import Path

import numpy as np
from _harness import alone, parse, peak_memory, print_rows, timed

STRATEGIES = ("margin", "entropy", "badge", "coreset", "partitioned coreset")
N_LABELS, N_QUERIES, CHUNK = 200, 100, 65_536


def make_rows(n, d, seed, by_cluster=False):
    """Return unit vectors (n, d) around 1,000 centers, float32."""
    centers = np.random.default_rng(0).standard_normal((1000, d), np.float32)
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    rng = np.random.default_rng([1, seed])
    cluster = rng.integers(1000, size=n)
    cluster = np.sort(cluster) if by_cluster else cluster
    X = centers[cluster] + rng.standard_normal((n, d), np.float32) / np.sqrt(d)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def write_pool(path, n, d):
    """Write the rows, unless the file is there."""
    if path.exists():
        return
    part = path.with_suffix(".part")
    # Not mapped: a child's `ru_maxrss` begins with the resident pages of its parent.
    with open(part, "wb") as file:
        header = {"descr": "<f2", "fortran_order": False, "shape": (n, d)}
        np.lib.format.write_array_header_1_0(file, header)
        for number, start in enumerate(range(0, n, CHUNK)):
            rows = make_rows(min(CHUNK, n - start), d, number)
            rows.astype(np.float16).tofile(file)
    part.rename(path)


def make_learner(X, name):
    """Return a learner of 200 labels, and the positions of these."""
    from sklearn.linear_model import LogisticRegression

    from skactive import ActiveLearner, get_strategy

    rng = np.random.default_rng(2)
    labeled = rng.choice(len(X), N_LABELS, replace=False)
    rows = X[labeled].astype(np.float32)
    y = (rows @ rng.standard_normal((X.shape[1], 4))).argmax(axis=1)
    outer, _, inner = name.rpartition(" ")
    strategy = get_strategy(outer, strategy=inner) if outer else inner
    learner = ActiveLearner(LogisticRegression(), strategy, random_state=0)
    return learner.fit(rows, y), labeled


def measure(path, name):
    """Query twice, with labels between; seconds of wall and processor, peak memory."""
    X = np.load(path, mmap_mode="r")
    learner, labeled = make_learner(X, name)
    left = np.ones(len(X), dtype=bool)
    left[labeled] = False
    seconds = []
    for _ in range(2):
        picks, spent = timed(learner.query, X, N_QUERIES, candidates=left)
        seconds.append(spent)
        left[picks] = False
        learner.teach(X[picks].astype(np.float32), np.arange(len(picks)) % 4)
    return *np.concatenate(seconds), peak_memory()


def list_rows(path, names):
    """Yield the row of each strategy, measured in a process of its own."""
    for name in names:
        first, cpu, second, cpu_2, peak = alone(measure, path, name)
        rate = path.stat().st_size / first
        yield (
            f"{name}|{first:.1f} ({cpu:.1f})|{second:.1f} ({cpu_2:.1f})|"
            f"{rate / 1e9:.2f}|{peak / 1e9:.2f}"
        )


def list_losses(n, d):
    """Yield rows: the objectives of both ways on rows shuffled and by cluster."""
    from skactive.strategies import Partitioned, UHerding

    wrapped = {"coreset": "coreset", "uherding": UHerding(measure=None, radius=1.0)}
    full = 0.0
    for by_cluster in (False, True):
        X = make_rows(n, d, 0, by_cluster)
        for name, strategy in wrapped.items():
            for n_parts in (1, 10, 31, 100):
                learner, labeled = make_learner(X, "margin")
                learner.set_params(strategy=Partitioned(strategy, n_parts))
                left = np.setdiff1d(np.arange(n), labeled)
                picks = learner.query(X, N_QUERIES, candidates=left)
                chosen = X[np.concatenate([labeled, picks])]
                nearest = [
                    (2 - 2 * X[i : i + CHUNK] @ chosen.T).min(axis=1)
                    for i in range(0, n, CHUNK)
                ]
                squared = np.concatenate(nearest).clip(min=0)
                if name == "coreset":
                    value = float(np.sqrt(squared.max()))
                else:
                    value = float(np.exp(-squared).mean())
                full = value if n_parts == 1 else full
                loss = value / full - 1 if name == "coreset" else 1 - value / full
                order = "by cluster" if by_cluster else "shuffled"
                yield f"{name}|{order}|{n_parts}|{value:.4f}|{loss:.1%}"


def main():
    args = parse(__doc__, strategies=STRATEGIES)
    if args.loss:
        losses = list_losses(min(args.rows, 100_000), args.width)
        print_rows("strategy|rows|parts|objective|loss", losses)
    if args.data or args.smoke:
        with tempfile.TemporaryDirectory() as folder:
            path = (args.data or Path(folder)) / f"{args.rows}x{args.width}.npy"
            write_pool(path, args.rows, args.width)
            head = "strategy|first s (CPU)|second s (CPU)|read GB/s|peak GB"
            print_rows(head, list_rows(path, args.strategies))


if __name__ == "__main__":
    main()
