"""What the tests of BERT share: encoders, texts, quick fits and other processes.

Scripts in processes of their own import this file, so torch is imported where it is
needed.
"""

import copy
import functools
import hashlib
import os
import subprocess
import sys
import warnings
from itertools import pairwise

import numpy as np

from skactive._encoders._store import open_store
from skactive._utils._repeatable import fork_torch
from skactive.bert import BertClassifier, BertFeatures, BertRegressor


def grid(cases, is_quick):
    """Mark the cases as slow for which `is_quick(*case)` is false."""
    return [case if is_quick(*case) else slow(*case) for case in cases]


def some(values, *quick):
    """Mark the values as slow that are not among the quick ones."""
    return [value if value in quick else slow(value) for value in values]


def slow(*case):
    """Return a case that only the slow tests run."""
    import pytest

    return pytest.param(*case, marks=pytest.mark.slow)


# The cache of features ---------------------------------------------------------------

TEXTS = [f"text {i}" for i in range(10)]
RECIPE = {"weights": "w", "pooling": "mean"}
WIDTH = 3


def row_of(text, width=WIDTH):
    """Numbers that follow from the text, and that float16 has to round."""
    digest = hashlib.sha512(repr(text).encode("utf-8", "surrogatepass")).digest()
    return np.resize(np.frombuffer(digest, np.uint8), width).astype(np.float32) / 7


def rows_of(texts, width=WIDTH):
    return np.array([row_of(text, width) for text in texts])


class CountingEncoder:
    """Fill rows two at a time, the last texts first.

    Attributes
    ----------
    encoded : list
        Every text encoded, in order.
    n_calls : int
    """

    def __init__(self, stop_after=None, error=KeyboardInterrupt):
        self.stop_after, self.error = stop_after, error
        self.encoded, self.n_calls = [], 0

    def __call__(self, texts, out):
        self.n_calls += 1
        remaining = np.arange(len(texts))[::-1]
        for start in range(0, len(texts), 2):
            if self.stop_after is not None and len(self.encoded) >= self.stop_after:
                raise self.error("stop")
            positions = remaining[start : start + 2]
            for i in positions:
                out[i] = row_of(texts[i], out.shape[1])
            self.encoded += [texts[i] for i in positions]
            yield positions


def get(texts, folder=None, encoder=None, dtype="float32", recipe=RECIPE, width=WIDTH):
    """Look texts up in this process's store; tell what that had to encode."""
    encoder = encoder or CountingEncoder()
    features = open_store(folder, recipe, dtype).get(list(texts), encoder, width)
    return features, encoder.encoded


def get_quietly(*arguments, **options):
    """Do as `get` does, and raise at any warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return get(*arguments, **options)


def files_of(folder, suffix=".npy"):
    """List the files of the shards."""
    return sorted(folder.glob(f"*/shard-*{suffix}"))


# The states of the encoder as they are, their plain mean.
PLAIN = {"pooling": "mean", "normalize": False, "precision": "float32"}


def uncached(model, **params):
    """Give features that were never in a cache."""
    return BertFeatures(model, **{**PLAIN, "cache": None, **params})


# Other processes --------------------------------------------------------------------

PAIRS = [
    ("the film is", "a joy"),
    ("no", "the team won the match"),
    ("", "a"),
    ("a", ""),
]


def run_python(script, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


# Quick fits -------------------------------------------------------------------------

WORDS = ["film", "match", "stocks", "team", "game", "minute", "friday", "long"]
X = [f"{first} {word}" for word in WORDS for first in ("the joy of a", "a dull slow")]
CODES = np.arange(len(X)) % 2
Y = np.array(["good", "bad"])[CODES]
NUMBERS = np.where(CODES, 5300.0, 5000.0) + np.arange(len(X))
INDICATOR = np.eye(4, dtype=int)[np.arange(len(X)) % 4]


# How BERT was fine-tuned first: a constant rate for all parameters, the first token.
DEVLIN = {
    "pooling": "cls",
    "max_epochs": 3,
    "batch_size": 16,
    "lr": 2e-5,
    "head_lr": None,
    "schedule": None,
    "warmup": 0.0,
    "precision": "float32",  # as "auto" is on a processor
}


def classifier(folder, **params):
    return BertClassifier(folder, **_settings(params))


def regressor(folder, **params):
    return BertRegressor(folder, **_settings(params))


def _settings(params):
    quick = {"max_epochs": 2, "batch_size": 8, "lr": 3e-3, "random_state": 0}
    return {**DEVLIN, **quick, "device": "cpu", **params}


_FITTED = {}


def fitted_copy(make, model, texts, y, **params):
    """Return a copy of `make(model, **params)` fitted to texts, trained once.

    For tests of what a fitted estimator does, not of its training.
    """
    key = repr((make, model, texts, np.asarray(y).tolist(), sorted(params.items())))
    if key not in _FITTED:
        _FITTED[key] = make(model, **params).fit(texts, y)
    return copy.deepcopy(_FITTED[key])


def replaced(values, i, value):
    values = list(values)
    values[i] = value
    return values


def outputs(estimator):
    """All that an estimator says of X."""
    names = ("predict", "predict_proba", "transform")
    return [getattr(estimator, name)(X) for name in names if hasattr(estimator, name)]


def assert_equal_outputs(first, second):
    for one, other in zip(outputs(first), outputs(second), strict=True):
        np.testing.assert_array_equal(one, other)


ARCHITECTURES = (
    *("Bert", "Roberta", "DistilBert", "Electra"),
    *("Albert", "DebertaV2", "MPNet", "ModernBert"),
)
# Rates of the encoders' own dropout, by all the names they have for it.
NO_DROPOUT = dict.fromkeys(
    (
        *("hidden_dropout_prob", "attention_probs_dropout_prob"),
        *("dropout", "attention_dropout", "embedding_dropout", "mlp_dropout"),
    ),
    0.0,
)
REVIEWS = [
    "a joyful film",
    "a dull and slow film that ends too late",
    "the best of the year",
    "bad",
    "what a fine day for a walk in the park, is it not?",
    "no one should see this film",
    "a joy",
    "it was late and it rained",
]
REVIEW_LABELS = np.array([1, 0, 1, 0, 1, 0, 1, 0])


def review_classifier(model, **params):
    """Return a classifier that trains for two short epochs, on REVIEWS."""
    settings = {"max_epochs": 2, "batch_size": 4, "lr": 1e-3, "random_state": 0}
    return BertClassifier(model, **{**DEVLIN, **settings, **params})


def network(model, **settings):
    """Build a network with a random head."""
    defaults = {
        "revision": None,
        "head": "linear",
        "head_params": None,
        "n_outputs": 2,
        "dropout": 0.1,
        "pooling": "cls",
        "freeze": 0,
        "layers_attr": None,
        "bfloat16": False,
    }
    from skactive.bert._network import TextNetwork

    with fork_torch(0):
        return TextNetwork(model, **{**defaults, **settings}).eval()


@functools.cache
def tokenizer_of(model):
    """Load the tokenizer once, past the library."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model)


@functools.cache
def module_of(model):
    """Load the encoder once, past the library."""
    from transformers import AutoModel

    return AutoModel.from_pretrained(model).eval()


def padded(model, texts):
    """Tokenise into one padded batch, past the library."""
    batch = tokenizer_of(model)(list(texts), padding=True, return_tensors="pt")
    return {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}


def pretrained(model):
    """Return the encoder's weights, read past the library."""
    state = module_of(model).state_dict()
    return {f"encoder.{name}": t for name, t in state.items() if "pooler" not in name}


def layer_of(name):
    """Read a parameter's layer from its name: a number, "top", "rest" or "head"."""
    if name.startswith("head."):
        return "head"
    if "final_norm" in name:
        return "top"
    if "albert_layer" in name:
        return 0
    parts = name.split(".")
    after = [b for a, b in pairwise(parts) if a.startswith("layer")]
    return int(after[0]) if after and after[0].isdigit() else "rest"


def weights_of(estimator):
    """Copy all weights of a trained network."""
    state = estimator.net_.module_.state_dict()
    return {name: tensor.clone() for name, tensor in state.items()}


def assert_same_weights(a, b, **tolerance):
    """Compare the weights of two estimators, exactly unless told how closely."""
    import torch

    a, b = weights_of(a), weights_of(b)
    assert a.keys() == b.keys()
    for name, tensor in a.items():
        torch.testing.assert_close(
            tensor, b[name], **(tolerance or {"rtol": 0, "atol": 0})
        )
