"""What a labeling session costs: an answer, and a long loop of one item a round.

    python benchmarks/session.py            # 20,000 x 384, 1,950 rounds
    python benchmarks/session.py --smoke    # seconds, for CI

First, `tell` of one label against a bare write and fsync of the very same line to a
file next to the journal, interleaved; the figure is the ratio of the medians, which is
to be at most 1.5. Then a logistic regression over features in memory, entropy, one
item a round from an empty session on, trained again in each round; and the session
opened again at its end. Rounds are in seconds of the wall and of the processor: the
first hold the fsync of each question and answer. In each round, scikit-learn's own
`fit` on the same labels and the product of the pool with the coefficients, the limits
of training and asking, are timed too.

Options:
    --pool 20000
    --dim 384
    --classes 4
    --rounds 1950
    --strategy entropy
    --repeats 500
    --folder FOLDER     where to write; by default a temporary folder
Smoke: --pool 2000 --rounds 20 --repeats 50
"""

import os
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median

import numpy as np
from _harness import parse, timed
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner, LabelingSession


def make_pool(n, d, k, seed=0):
    """Draw rows around k centers, so that probabilities range from sure to unsure."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d)).astype(np.float32)
    y = rng.integers(k, size=n)
    X = rng.normal(scale=3.0, size=(n, d)).astype(np.float32)
    X += centers[y]
    return X, y


def make_model():
    return LogisticRegression(max_iter=50)


def make_learner(strategy="entropy"):
    return ActiveLearner(
        make_model(),
        strategy=strategy,
        batch_size=1,
        random_state=0,
    )


def append(handle, line):
    os.write(handle, line)
    os.fsync(handle)


def compare_tell(folder, X, y, repeats):
    tells, bares = [], []
    handle = os.open(folder / "bare.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with LabelingSession(make_learner(), X, folder / "tells", refit=False) as session:
        journal = folder / "tells" / "journal.jsonl"
        for id in session.ask(repeats).ids:
            tells.append(timed(session.tell, id, int(y[id]))[1][0])
            line = journal.read_bytes().splitlines(keepends=True)[-1]
            bares.append(timed(append, handle, line)[1][0])
    os.close(handle)
    tell, bare = median(tells), median(bares)
    print(f"tell           {1e3 * tell:8.3f} ms (median of {repeats})")
    print(f"write + fsync  {1e3 * bare:8.3f} ms of the same line")
    print(f"ratio          {tell / bare:8.2f}")
    return tell / bare


def run_rounds(path, X, y, n_rounds, strategy="entropy"):
    """Return the seconds of each phase, wall and processor, and print them."""
    seconds, limits, compared = Counter(), Counter(), Counter()
    learner = make_learner(strategy)
    session, seconds["opening"] = timed(LabelingSession, learner, X, path)
    with session:
        for _ in range(n_rounds):
            # Reading the learner trains it, so that asking is left with the rest.
            learner, trained = timed(getattr, session, "learner")
            seconds["training"] += trained
            batch, elapsed = timed(session.ask)
            seconds["asking"] += elapsed
            if len(set(session.labels.values())) > 1:  # a model was trained
                ids = list(session.labels)
                own, spent = timed(make_model().fit, X[ids], y[ids])
                limits["training"] += spent
                limits["asking"] += timed(np.matmul, X, own.coef_.T)[1]
                compared["training"] += trained
                compared["asking"] += elapsed
            id = batch.ids[0]
            seconds["telling"] += timed(session.tell, id, int(y[id]))[1]
        score = session.learner.score(X, y)
    print(f"\n{n_rounds} rounds of 1 over {X.shape[0]} x {X.shape[1]}:")
    seconds["in all"] = sum(seconds.values())
    for phase, (wall, cpu) in seconds.items():
        print(
            f"{phase:<14} {wall:8.2f} s {1e3 * wall / n_rounds:8.2f} ms a round, "
            f"of the processor {cpu:8.2f} s {1e3 * cpu / n_rounds:8.2f} ms"
        )
    for phase, (_, limit) in limits.items():
        share = limit / compared[phase][1]
        print(
            f"{phase:<14} limit {1e3 * limit / n_rounds:6.2f} ms a round of the "
            f"processor, {100 * share:.0f} % of what it took"
        )

    session, elapsed = timed(LabelingSession, make_learner(strategy), X, path)
    with session:
        size = (path / "journal.jsonl").stat().st_size
        print(f"{'opening again':<14} {elapsed[0]:8.2f} s  (journal of {size} bytes)")
        assert len(session.labels) == n_rounds
        assert session.learner.score(X, y) == score
    return seconds


def main():
    args = parse(__doc__)
    X, y = make_pool(args.pool, args.dim, args.classes)
    with (
        threadpool_limits(1),
        tempfile.TemporaryDirectory(dir=args.folder) as folder,
    ):
        compare_tell(Path(folder), X, y, args.repeats)
        run_rounds(Path(folder) / "rounds", X, y, args.rounds, args.strategy)


if __name__ == "__main__":
    main()
