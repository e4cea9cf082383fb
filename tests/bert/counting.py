"""Encoders to test the cache with, and the files that it writes."""

import hashlib
import warnings

import numpy as np

from skactive.bert import BertFeatures
from skactive.bert._cache._store import open_store

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


def uncached(model, **params):
    """Give features that were never in a cache."""
    return BertFeatures(model, **{"precision": "float32", "cache": None, **params})
