"""Gradients that are outer products, represented by their factors.

The gradient of the log loss of item i with respect to the weights of a linear layer is
`np.outer(residuals[i], inputs[i])`. Inner products of gradients are products of inner
products of factors, <g_i, g_j> = <a_i, a_j> <h_i, h_j>, so lengths and distances cost k
+ d instead of k d, and no n x (k d) array exists.
"""

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from .._utils._chunks import chunk_size, chunks, map_chunks
from ._distances import rounding, squared_norms
from ._selection import top_n

BATCH = 16  # centers per pass over all rows, one matrix product
PATIENCE = 64  # rejected proposals that trigger the pass earlier
LIMIT = 2**22  # bytes of a chunk, about a core's cache


def expected_length(residuals, inputs, *, bias=True, squared=False, n_jobs=1):
    """Return the expected gradient length (n,) under the predicted distribution.

    The value is sum_c p_c ||p - e_c|| sqrt(||h||^2 + 1), without the 1 if not `bias`.
    """

    def measure(rows):
        part = residuals[rows].astype(np.float64)
        here, best = np.arange(len(part)), part.argmin(axis=1)
        own = part[here, best]
        # ||p - e_c||^2 = ||r + e_best - e_c||^2, without the cancellation
        # of ||p||^2 - 2 p_c + 1 for confident models.
        lengths = 2 * (1 + own[:, None] - part)
        lengths[here, best] = 0
        lengths += squared_norms(part)[:, None]
        part[here, best] += 1  # the probabilities again
        scale = squared_norms(_floats(inputs[rows])) + bias
        if squared:
            return np.einsum("nk,nk->n", part, lengths) * scale
        return np.einsum("nk,nk->n", part, np.sqrt(lengths)) * np.sqrt(scale)

    return _by_rows(measure, residuals, inputs, n_jobs)


def factored_norms(residuals, inputs, *, n_jobs=1):
    """Return the squared length of each gradient, (n,)."""
    return _by_rows(
        lambda rows: (
            squared_norms(_floats(residuals[rows]))
            * squared_norms(_floats(inputs[rows]))
        ),
        residuals,
        inputs,
        n_jobs,
    )


def factored_distances(gradients, centers):
    """Return squared distances (n, m) of gradients (n, k), (n, d) and (m, k), (m, d).

    They are computed in float64, never negative, and exactly 0 for equal rows.
    """
    (a, h), (b, c) = tuple(map(_floats, gradients)), tuple(map(_floats, centers))
    inputs_norms, centers_norms = squared_norms(h), squared_norms(b)
    lengths = (squared_norms(a) * inputs_norms)[
        :, None
    ] + centers_norms * squared_norms(c)
    distances = safe_sparse_dot(h, c.T, dense_output=True)
    distances *= a @ b.T
    distances *= -2
    distances += lengths
    np.maximum(distances, 0, out=distances)
    # If cancellation leaves fewer than two digits, use the differences:
    # g - g' = (a - a') h + a' (h - h'), as outer products.
    lengths *= 100 * rounding(h, c)
    rows, columns = np.nonzero(distances < lengths)
    for some in chunks(len(rows), chunk_size(24 * h.shape[1], LIMIT)):
        i, j = rows[some], columns[some]
        left, right = a[i] - b[j], h[i] - c[j]
        distances[i, j] = (
            squared_norms(left) * inputs_norms[i]
            + centers_norms[j] * squared_norms(right)
            + 2 * _row_products(left, b[j]) * _row_products(h[i], right)
        ).clip(min=0)
    return distances


def sample_apart(residuals, inputs, n, rng, *, n_jobs=1):
    """Choose n gradients that are long and far from each other (k-means++).

    The longest comes first. Each further one is drawn with a probability proportional
    to its squared distance to the nearest chosen one, and uniformly if all are copies.
    """
    norms = factored_norms(residuals, inputs, n_jobs=n_jobs)
    if not np.isfinite(norms).all():
        raise ValueError(
            "the factors of the gradients must be finite; they are not at position "
            f"{np.flatnonzero(~np.isfinite(norms))[0]}."
        )
    chosen = [int(position) for position in top_n(norms, min(n, 1), rng)]
    pool = _Pool(residuals, inputs, n_jobs)
    pool.remove(chosen)
    while len(chosen) < n:
        pool.shrink(chosen[pool.seen :])
        if pool.total == 0:
            left = np.setdiff1d(np.arange(len(norms)), chosen)
            chosen.extend(rng.permutation(left)[: n - len(chosen)])
            break
        batch = pool.draw(min(BATCH, n - len(chosen)), rng)
        pool.remove(batch)
        chosen.extend(batch)
    return np.array(chosen, dtype=np.intp)


class _Pool:
    """Squared distances of all candidates to the nearest chosen one.

    `closest` (n,) are upper bounds, exact for the first `seen` chosen ones.
    """

    def __init__(self, residuals, inputs, n_jobs):
        self.residuals, self.inputs, self.n_jobs = residuals, inputs, n_jobs
        self.closest = np.full(len(residuals), np.inf)
        self.seen = 0

    def shrink(self, centers):
        """Lower the distances for further centers, in one pass over the candidates."""
        taken = self._rows(centers)

        def update(rows):
            found = factored_distances(self._rows(rows), taken).min(axis=1)
            np.minimum(self.closest[rows], found, out=self.closest[rows])

        _by_rows(update, self.residuals, self.inputs, self.n_jobs)
        self.seen += len(centers)
        self.sums = np.cumsum(self.closest)
        self.total = self.sums[-1]

    def remove(self, positions):
        """Set the distance of chosen candidates to 0."""
        self.closest[positions] = 0

    def draw(self, n, rng):
        """Draw up to n centers, at least one, without a pass over the candidates.

        Distances to the nearest center only shrink, so the known ones are upper bounds.
        Proposing i with probability known_i / sum and accepting it with true_i /
        known_i draws it with a probability proportional to true_i, at the cost of one
        row's distances. Proposals are independent, so stopping early does not change
        this.
        """
        new = []
        last = np.searchsorted(self.sums, self.total)  # rounding may point beyond it
        for _ in range(n + PATIENCE):
            at, accept = rng.random(2)
            proposed = np.searchsorted(self.sums, at * self.total, side="right")
            proposed = int(min(proposed, last))
            if new:
                rows = self._rows([proposed])
                true = factored_distances(rows, self._rows(new)).min()
                if proposed in new or accept * self.closest[proposed] >= true:
                    continue
            new.append(proposed)
            if len(new) == n:
                break
        return new

    def _rows(self, which):
        return self.residuals[which], self.inputs[which]


def _by_rows(function, residuals, inputs, n_jobs):
    """Call a function on chunks of rows and concatenate the results."""
    width = residuals.shape[1] + BATCH
    width += 2 * (
        inputs.nnz // max(1, len(residuals))
        if sparse.issparse(inputs)
        else inputs.shape[1]
    )
    parts = map_chunks(function, len(residuals), chunk_size(8 * width, LIMIT), n_jobs)
    return np.concatenate(parts) if parts and parts[0] is not None else np.empty(0)


def _floats(X):
    return X.astype(np.float64, copy=False)


def _row_products(X, Y):
    if sparse.issparse(X):
        return np.asarray(X.multiply(Y).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, Y)
