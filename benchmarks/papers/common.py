"""What the reproductions share: the harness of the folder above, and data sets.

The TOML file of each script has its scales: `smoke` takes seconds on docstrings, for
CI; `cpu` has the committed results, of two cores and MiniLM; `paper` has the sizes
of the paper, with the encoder of `--model` on `--device`. Finished runs are stored in
the folder `--out` and are not run again.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from skactive.datasets import load_docstrings

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _harness as harness

# Columns of texts, then the files of the pool and of the test set; None splits off a
# part of the first.
TEXT, PAIR = ["text"], ["text_a", "text_b"]
DATA = {
    "banking77": (TEXT, "train", "test"),
    "ag_news": (TEXT, "train", "test"),
    "cola": (TEXT, "train", "dev"),
    "disaster_tweets": (TEXT, "train", None),
    "imdb": (TEXT, "train", "test"),
    "mnli": (PAIR, "train", "dev"),
    "mrpc": (PAIR, "train", "dev"),
    "qnli": (PAIR, "train", "dev"),
    "qnli_dev": (PAIR, "dev", None),
    "rte": (PAIR, "train", "dev"),
    "snli": (PAIR, "train", "test"),
    "sst2": (TEXT, "train", "test"),
    "stsb": (PAIR, "train", "dev"),
    "trec": (TEXT, "train", "test"),
    "tweet_emotion": (TEXT, "train", "test"),
    "tweet_offensive": (TEXT, "train", "test"),
}


# Settings of BERT's authors (Devlin et al. 2019), where a paper names no others.
DEVLIN = {
    "pooling": "cls",
    "batch_size": 16,
    "head_lr": None,
    "schedule": None,
    "warmup": 0.0,
}
# The states of the encoder as they are.
RAW = {"pooling": "mean", "normalize": False}


def depth(model):
    """How many layers an encoder has."""
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(model).num_hidden_layers


def load(name, n_pool=None, n_test=None):
    """Read a data set, the same drawing each time.

    Texts that occur twice, or in both parts, are dropped from the pool.

    Returns
    -------
    X, y, X_test, y_test : object arrays of texts or pairs, ndarrays of labels
    """
    if name.startswith("docstrings"):
        return _load_docstrings(name, n_pool or 200, n_test or 60)
    columns, pool_file, test_file = DATA[name]
    X, y = _read(name.removesuffix("_dev"), pool_file, columns)
    if test_file is None:
        X, y = _without(X, y, [])
        stratify = y if y.dtype.kind in "iu" else None
        X, X_test, y, y_test = train_test_split(
            X, y, test_size=n_test or 0.2, random_state=0, stratify=stratify
        )
    else:
        X_test, y_test = _read(name, test_file, columns)
        X, y = _without(X, y, X_test)
    return *_draw(X, y, n_pool), *_draw(X_test, y_test, n_test)


def _read(name, part, columns):
    text = columns[0] if len(columns) == 1 else columns
    X, y = harness.read_part(name, part, text=text)
    return _texts(X), np.asarray(y)


def _texts(texts):
    array = np.empty(len(texts), dtype=object)
    array[:] = [t if isinstance(t, str) else tuple(t) for t in texts]
    return array


def _without(X, y, others):
    seen = set(others)
    kept = [i for i, text in enumerate(X) if not (text in seen or seen.add(text))]
    return X[kept], y[kept]


def _draw(X, y, n):
    order = np.random.default_rng(0).permutation(len(X))[:n]
    return X[order], y[order]


@cache
def _docstrings():
    """Read the files of the installed libraries once."""
    return load_docstrings(max_per_library=100, return_X_y=True)


def _load_docstrings(name, n_pool, n_test):
    """Texts that need no download; their halves as pairs where a task wants pairs."""
    X, y = _docstrings()
    X, y = np.array([text[:300] for text in X], dtype=object), np.asarray(y)
    X, y = _without(X, y, [])
    if name.endswith("pairs"):
        X = _texts([(t[: len(t) // 2], t[len(t) // 2 :]) for t in X])
    if name.startswith("docstrings_two"):
        y = (y == y[0]).astype(int)
    order = np.random.default_rng(0).permutation(len(X))[: n_pool + n_test]
    X, y = X[order], y[order]
    return X[n_test:], y[n_test:], X[:n_test], y[:n_test]
