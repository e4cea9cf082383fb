"""Approximate neighbours from faiss, an optional package."""

from __future__ import annotations

import numpy as np

from ._chunks import chunks

__all__ = ["InvertedFile"]

TRAINING = 64  # rows per cell that place the cells


class InvertedFile:
    """Index of rows in cells around means; a search looks into the nearest cells.

    Parameters
    ----------
    Y : ndarray of shape (m, d)
        Copied as float32.
    chunk : int
        Rows to copy at a time.

    Raises
    ------
    ImportError
        If faiss is not installed; says how to.
    """

    def __init__(self, Y, chunk):
        try:
            import faiss
        except ImportError as error:
            raise ImportError(
                "method 'faiss' needs the package faiss-cpu: pip install "
                "'skactive[ann]'. method='exact' needs nothing."
            ) from error
        m, d = Y.shape
        cells = max(1, int(np.sqrt(m)))
        self._index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, cells)
        self._index.nprobe = max(1, cells // 16)
        self._index.cp.min_points_per_centroid = 1  # small sets are no reason to warn
        self._index.train(_singles(Y[:: max(1, m // (TRAINING * cells))]))
        for part in chunks(m, chunk):
            self._index.add(_singles(Y[part]))

    def search(self, X, k):
        """Look for the k nearest rows.

        Parameters
        ----------
        X : ndarray of shape (n, d)
        k : int

        Returns
        -------
        indices : ndarray of int, shape (n, k)
            Unordered among equals; -1 where the cells held too few rows.
        """
        return self._index.search(_singles(X), k)[1]


def _singles(X):
    return np.ascontiguousarray(X, dtype=np.float32)
