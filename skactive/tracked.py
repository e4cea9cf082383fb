"""What a strategy may see of distances, which a learner keeps from query to query."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import sparse

from ._chunks import as_floats
from .distances import squared_norms
from .nearby import NearestCandidates
from .neighbors import nearest
from .quantities import read_only
from .sharing import SharedView
from .tracking import NearestDistances

__all__ = ["TrackedView"]


class TrackedView(SharedView):
    """Distances and neighbours of the candidates of one query.

    Only new labels, candidates that are gone and changed features cost anything from
    the second query on. Features that are sparse are not kept track of.

    The parameters are those of :class:`skactive.view.PoolView`, which has the features
    that this looks at.
    """

    def labeled_distances(self, metric="euclidean"):
        """Squared distance of each candidate to the labelled item nearest to it.

        Parameters
        ----------
        metric : {"euclidean", "cosine"}, default="euclidean"
            Between features, or between features scaled to length 1.

        Returns
        -------
        distances : ndarray of float64, shape (n,), or None
            None for sparse features, and before there are labels.
        """
        self._check_allowed("labeled")
        rows = self.feature_rows
        if sparse.issparse(rows) or not self.n_labeled:
            return None
        return self._remember(
            ("labeled_distances", metric), partial(self._track_distances, metric)
        )

    def labeled_neighbors(self, k, method="auto"):
        """Find the k candidates nearest to each of the m labelled items.

        Parameters
        ----------
        k : int
            At least 1; no more than there are candidates are found.
        method : {"auto", "exact", "faiss"}, default="auto"
            How to find them; see :func:`skactive.neighbors.nearest`.

        Returns
        -------
        distances : ndarray of shape (m, k)
            Euclidean, ascending.
        indices : ndarray of int, shape (m, k)
            Positions of the candidates in this view.
        """
        self._check_allowed("labeled")
        rows = self.feature_rows
        if sparse.issparse(rows):
            features = self.labeled_features
            return nearest(features, rows, k, method=method, n_jobs=self.n_jobs)
        return self._track_neighbors(
            ("labeled_neighbors", k, method), rows, self.labeled_features
        )

    def similar(self, k):
        """Find the k other candidates with the highest cosine to each.

        Parameters
        ----------
        k : int
            At least 1; no more than there are other candidates are found.

        Returns
        -------
        cosines : ndarray of shape (n, k), or None
            Descending. None for sparse features and where some are all zeros.
        indices : ndarray of int, shape (n, k), or None
            Positions of these candidates in this view.
        """
        features = as_floats(self.features)
        if sparse.issparse(features):
            return None, None
        lengths = np.sqrt(squared_norms(features))[:, None]
        if not lengths.all():
            return None, None
        # Where rows have length 1, the nearest are those of the highest cosine.
        rows = features / lengths
        distances, indices = self._track_neighbors(("similar", k, "exact"), rows)
        return 1 - distances**2 / 2, indices

    def _track_distances(self, metric):
        last = self._memory.get(("labeled_distances", metric), NearestDistances(metric))
        # Another object, put in place at once: queries may run side by side.
        self._memory["labeled_distances", metric] = tracked = last.update(
            self.feature_rows, self._pool_positions, self.labeled_features, self.n_jobs
        )
        return tracked.distances

    def _track_neighbors(self, key, rows, of=None):
        # Not taken from the view above this one: its candidates are others.
        if key not in self._computed:
            last = self._memory.get(key) or NearestCandidates(*key[1:])
            self._memory[key] = tracked = last.update(
                rows, self._pool_positions, of, self.n_jobs
            )
            answer = read_only(tracked.distances), read_only(tracked.indices)
            self._computed[key] = answer
        return self._computed[key]
