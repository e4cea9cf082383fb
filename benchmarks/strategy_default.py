"""Which strategy and which start are never worse than random labels?

    SKACTIVE_DATA=.../data python benchmarks/strategy_default.py --out strategy_default
    python benchmarks/strategy_default.py --smoke    # seconds, for CI

Each arm is a start, a slash and a strategy, such as kmeans/margin: the start chooses
the first 10 labels, the strategy the others. The classifier is that of
make_text_classifier, on features that are computed once. A seed draws three quarters
of the pool (at most 3,000 texts) and seeds the loop, so all arms of a seed have the
same pool, and those with the same start have the same first labels.

Finished runs are kept in --out, a line each, and are not run again. Prints for each
arm the paired difference from --base in points, half of its 95 % interval, and marks:
* for p < 0.05 in a paired t test, ** also after Holm's correction over all data
sets and numbers of labels of the arm. Then the cells in which the arm is below.
"""

import argparse
import json
import sys
from pathlib import Path
from time import process_time

import numpy as np
from labels_needed import encode, score
from learning_curves import FILES
from sklearn.metrics import f1_score
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner, make_text_classifier
from skactive.analysis import holm, paired_t

FILES |= {
    "tweet_offensive": ("train", "test"),
    "cap_sotu": ("train", "test"),
    "manifesto_military": ("train", "test"),
}
DATA = ["tweet_offensive", "sst2", "imdb", "tweet_emotion", "disaster_tweets"]
DATA += ["manifesto_military", "trec", "ag_news", "cap_sotu", "banking77"]
ARMS = ["random/random", "kmeans/random", "kmeans/margin", "kmeans/uherding"]
STARTS = {"random": "random", "kmeans": "embedding_kmeans"}
COUNTS = [10, 25, 50, 75, 100, 150, 200, 300, 400, 500]
SCORED = [10, 25, 50, 100, 200, 500]
PART = 0.75  # of the pool, drawn by each seed
METRICS = ("accuracy", "f1", "brier", "ece")


def play(data, name, arm, seed, args):
    """The record of a run."""
    X, y, X_test, y_test = data["unit"]
    rng = np.random.default_rng([seed, 27])
    rows = rng.permutation(len(X))[: int(PART * len(X))]
    X, y = X[rows], y[rows]
    start, strategy = arm.split("/")
    learner = ActiveLearner(
        make_text_classifier()[-1],
        strategy,
        cold_start=STARTS[start],
        random_state=seed,
    )
    unlabeled = np.ones(len(X), dtype=bool)
    names, places = np.unique(y, return_inverse=True)
    rounds, queried, seconds = [], [], 0.0
    for n in [n for n in COUNTS if n <= args.most]:
        begin = process_time()
        batch = learner.query(X, n - len(queried), candidates=unlabeled)
        seconds += process_time() - begin
        unlabeled[batch] = False
        queried += batch.tolist()
        learner.teach(X[batch], y[batch], X_unlabeled=X[unlabeled])
        if n not in SCORED:
            continue
        scores = score(learner.predict_proba(X_test), learner.classes_, y_test)
        scores["f1"] = f1_score(y_test, learner.predict(X_test), average="macro")
        shares = np.bincount(places[queried], minlength=len(names)) / n
        distance = np.abs(shares - np.bincount(places) / len(y)).sum() / 2
        scores |= {"shift": distance, "found": int((shares > 0).sum())}
        rounds.append({"n_labeled": n, **scores, "query_seconds": seconds})
    return {"data": name, "arm": arm, "seed": seed, "rounds": rounds}


def run(name, args):
    """Records of all arms of a data set, those that are missing run now."""
    path = args.out / f"{name}.jsonl" if args.out else None
    done = []
    if path and path.exists():
        done = [json.loads(line) for line in path.read_text().splitlines()]
    had = {(record["arm"], record["seed"]) for record in done}
    jobs = [(a, s) for s in range(args.seeds) for a in args.arms if (a, s) not in had]
    if not jobs:
        return done
    data = encode(name, args)
    print(f"{name}: {len(jobs)} runs", file=sys.stderr)
    for arm, seed in jobs:
        with threadpool_limits(limits=1):
            done.append(play(data, name, arm, seed, args))
        if path:
            with path.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
    return done


def at(records, arm, n, metric):
    """Scores of an arm with n labels, by seed."""
    return {
        record["seed"]: each[metric]
        for record in records
        if record["arm"] == arm
        for each in record["rounds"]
        if each["n_labeled"] == n
    }


def compare(records, arm, base, metric, args):
    """Tests of an arm against the base by data set and number of labels."""
    tests = {}
    for name, each in records.items():
        for n in [n for n in SCORED if n <= args.most]:
            ours, theirs = at(each, arm, n, metric), at(each, base, n, metric)
            seeds = sorted(ours.keys() & theirs.keys())
            if len(seeds) > 1:
                pair = [ours[s] for s in seeds], [theirs[s] for s in seeds]
                tests[name, n] = paired_t(*pair), len(seeds)
    return tests


def report(records, arm, metric, args):
    """The table of an arm."""
    tests = compare(records, arm, args.base, metric, args)
    adjusted = holm([test.p_value for test, _ in tests.values()])
    adjusted = dict(zip(tests, adjusted, strict=True))
    counts = sorted({n for _, n in tests})
    lines = [f"### {arm} compared with {args.base}: {metric}", ""]
    lines += ["| data | seeds | " + " | ".join(map(str, counts)) + " |"]
    lines += ["|---|" + "--:|" * (len(counts) + 1)]
    below = []
    for name in records:
        cells = []
        for n in counts:
            test, seeds = tests[name, n]
            star = "*" * sum(p < 0.05 for p in (test.p_value, adjusted[name, n]))
            error = test.interval[1] - test.difference
            cells.append(f"{100 * test.difference:+.1f} ± {100 * error:.1f}{star}")
            if star and (test.difference < 0) == (metric in ("accuracy", "f1")):
                below.append(f"{name} {n}{star}")
        lines.append(f"| {name} | {seeds} | {' | '.join(cells)} |")
    lines += ["", "Worse: " + (", ".join(below) or "nowhere")]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument(
        "--arms",
        nargs="+",
        default=ARMS,
    )
    parser.add_argument("--base", default="random/random")
    parser.add_argument("--metrics", nargs="+", default=METRICS, choices=METRICS)
    parser.add_argument("--most", type=int, default=500, help="labels of a run")
    parser.add_argument("--pool", type=int, default=4000)
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, help="folder for finished runs")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.data, args.pool, args.test = ["docstrings"], 120, 40
        args.seeds, args.most = 2, 25
    elif args.out is None:
        parser.error("argument --out: name a folder")
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
    records = {name: run(name, args) for name in args.data}
    for arm in args.arms:
        if arm != args.base:
            for metric in args.metrics:
                print(report(records, arm, metric, args), end="\n\n")


if __name__ == "__main__":
    main()
