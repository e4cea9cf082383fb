"""What `ActiveLearner.query` costs above the prediction that it cannot do without.

    python benchmarks/query_overhead.py            # 100,000 x 384, 4 classes
    python benchmarks/query_overhead.py --smoke    # seconds, for CI

Both sides get the same fitted logistic regression and the same pool, float32 in
memory. The bare side is `predict_proba`, the entropy in plain NumPy and the top n by
`argpartition`. The rounds are interleaved and BLAS runs on one thread; the figure is
the median of the ratios of neighboring runs.
"""

import argparse
from statistics import median
from time import perf_counter

import numpy as np
from scipy.special import xlogy
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner


def make_pool(n, d, k, seed=0):
    """Draw rows around k centers, so that probabilities range from sure to unsure."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d)).astype(np.float32)
    y = rng.integers(k, size=n)
    X = rng.normal(scale=3.0, size=(n, d)).astype(np.float32)
    X += centers[y]
    return X, y


def bare(model, X, n):
    proba = model.predict_proba(X)
    entropy = -xlogy(proba, proba).sum(axis=1)
    top = np.argpartition(-entropy, n)[:n]
    return top[np.argsort(-entropy[top])]


def seconds(function):
    start = perf_counter()
    result = function()
    return perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pool", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.pool, args.repeats = 2_000, 3

    X, y = make_pool(args.pool, args.dim, args.classes)
    model = LogisticRegression(max_iter=50)
    learner = ActiveLearner(model, strategy="entropy", random_state=0)
    learner.fit(X[:500], y[:500])
    unlabeled = np.arange(len(X)) >= 500
    positions = np.flatnonzero(unlabeled)
    n = args.batch_size

    # Each pair: what scikit-learn and NumPy need alone, and what the learner needs.
    pairs = {
        "whole pool": (
            lambda: bare(learner.estimator_, X, n),
            lambda: learner.query(X, n),
        ),
        "candidates=mask": (
            lambda: positions[bare(learner.estimator_, X[unlabeled], n)],
            lambda: learner.query(X, n, candidates=unlabeled),
        ),
    }
    times = {name: ([], []) for name in pairs}
    for _ in range(args.repeats):
        for name, sides in pairs.items():
            spent = [seconds(side) for side in sides]
            if set(spent[0][1]) != set(spent[1][1]):
                raise SystemExit(f"{name}: the two sides chose different items")
            for column, (elapsed, _) in zip(times[name], spent, strict=True):
                column.append(elapsed)

    print(f"pool {args.pool:,} x {args.dim}, k = {args.classes}, n = {n}, one thread")
    print(f"{'':16s} {'bare':>9s} {'query':>9s}   ratio")
    for name, (alone, query) in times.items():
        ratio = median(b / a for a, b in zip(alone, query, strict=True))
        print(
            f"{name:16s} {1e3 * median(alone):6.1f} ms {1e3 * median(query):6.1f} ms"
            f"   {ratio:.2f}x"
        )


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
