"""What the tests of features share: a fast encoder that counts, and its rows."""

import hashlib
import itertools

import numpy as np

from skactive.features import PrecomputedFeatures
from skactive.features._folder import write_features

RECIPE = {"weights": "w", "pooling": "mean"}
WIDTH = 5


def row_of(text, width=WIDTH):
    """Numbers that follow from the text, and that float16 holds exactly."""
    digest = hashlib.sha512(repr(text).encode("utf-8", "surrogatepass")).digest()
    return np.resize(np.frombuffer(digest, np.uint8), width).astype(np.float32) / 8


def rows_of(texts, width=WIDTH):
    return np.array([row_of(text, width) for text in texts])


class CountingEncoder:
    """Fill rows block by block, two at a time from the end of a block.

    `encoded` lists every text encoded; `stop_after` of them, an error is raised.
    """

    def __init__(self, stop_after=None, error=KeyboardInterrupt):
        self.stop_after, self.error = stop_after, error
        self.encoded = []

    def __call__(self, texts, bounds, out):
        assert out.dtype == np.float32
        assert len(out) == len(texts) == bounds[-1]
        for start, stop in itertools.pairwise(bounds):
            left = np.arange(start, stop)[::-1]
            for i in range(0, len(left), 2):
                if self.stop_after is not None and (
                    len(self.encoded) >= self.stop_after
                ):
                    raise self.error("stop")
                positions = left[i : i + 2]
                out[positions] = rows_of([texts[p] for p in positions], out.shape[1])
                self.encoded += [texts[p] for p in positions]
                yield positions


def write(source, folder, encoder=None, **options):
    """Write features with a counting encoder; return them and what was encoded."""
    encoder = encoder or CountingEncoder()
    settings = {"recipe": RECIPE, "width": WIDTH, "block_rows": 10, "verbose": 0}
    write_features(source, folder, encode=encoder, **{**settings, **options})
    return PrecomputedFeatures(folder), encoder.encoded
