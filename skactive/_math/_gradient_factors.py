"""Gradients that are outer products, through their factors: never n x (k d) numbers.

The gradient of the log loss of item i with respect to the weights of a linear layer is
`np.outer(residuals[i], inputs[i])`. Its products with others are products of the
factors' products, <g_i, g_j> = <a_i, a_j> <h_i, h_j>, so lengths and distances cost
k + d and not k d.
"""

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from .._utils._chunks import chunk_size, chunks, map_chunks
from ._distances import rounding, squared_norms
from ._selection import top_n

BATCH = 16  # centres that wait for one pass over all rows: a matrix product's worth
PATIENCE = 64  # rejected proposals after which that pass comes sooner
LIMIT = 2**22  # bytes of a chunk: what a core's cache holds


def expected_length(residuals, inputs, *, bias=True, squared=False, n_jobs=1):
    """Take the expected length of the gradient, the label drawn from the model.

    Parameters
    ----------
    residuals : ndarray of shape (n, k)
        Probabilities less the indicator of the likeliest class.
    inputs : ndarray or CSR matrix of shape (n, d)
        What the linear layer takes.
    bias : bool, default=True
        Whether the layer has an intercept, which has a gradient too.
    squared : bool, default=False
        Whether to take the expectation of the squared length.
    n_jobs : int, default=1
        Threads.

    Returns
    -------
    length : ndarray of shape (n,)
        sum_c p_c ||p - e_c|| sqrt(||h||^2 + 1), without the 1 if there is no bias.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._gradient_factors import expected_length
    >>> residuals = np.array([[0.5, -0.5], [0.0, 0.0]])
    >>> expected_length(residuals, np.array([[3.0, 4.0], [3.0, 4.0]]), bias=False)
    array([3.53553391, 0.        ])
    """

    def measure(rows):
        part = residuals[rows].astype(np.float64)
        here, best = np.arange(len(part)), part.argmin(axis=1)
        own = part[here, best]
        # ||p - e_c||^2 = ||r + e_best - e_c||^2, which cancels nothing where the
        # model is sure, as ||p||^2 - 2 p_c + 1 would.
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
    """Squared length of each gradient.

    Parameters
    ----------
    residuals : ndarray of shape (n, k)
    inputs : ndarray or CSR matrix of shape (n, d)
    n_jobs : int, default=1
        Threads.

    Returns
    -------
    norms : ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._gradient_factors import factored_norms
    >>> factored_norms(np.array([[0.5, -0.5]]), np.array([[3.0, 4.0]]))
    array([12.5])
    """
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
    """Squared distances between two sets of gradients.

    Parameters
    ----------
    gradients : tuple of ndarray (n, k) and ndarray or CSR matrix (n, d)
        Residuals and inputs. The result is held as a whole, so pass chunks.
    centers : tuple of ndarray (m, k) and ndarray or CSR matrix (m, d)

    Returns
    -------
    distances : ndarray of shape (n, m)
        Computed in float64; never negative, and exactly 0 for equal rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._gradient_factors import factored_distances
    >>> one = np.array([[0.5, -0.5]]), np.array([[3.0, 4.0]])
    >>> other = np.array([[-0.5, 0.5]]), np.array([[3.0, 4.0]])
    >>> factored_distances(one, other), factored_distances(one, one)
    (array([[50.]]), array([[0.]]))
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
    # Where near numbers leave less than two digits, take the differences themselves:
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
    """Choose gradients that are long and far from each other (k-means++).

    The first is the longest. Each further one is drawn with a probability
    proportional to its squared distance to the nearest chosen one.

    Parameters
    ----------
    residuals : ndarray of shape (n_candidates, k)
    inputs : ndarray or CSR matrix of shape (n_candidates, d)
    n : int
        How many to choose, at most `n_candidates`.
    rng : numpy.random.Generator
    n_jobs : int, default=1
        Threads.

    Returns
    -------
    positions : ndarray of int, shape (n,)
        In the order chosen, without repeats. Once every candidate equals a chosen
        one, the others are equally likely.

    References
    ----------
    D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA
    2007.

    Notes
    -----
    O(n_candidates n (k + d)), most of it in matrix products of `BATCH` columns.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._gradient_factors import sample_apart
    >>> residuals = np.array([[0.5, -0.5], [0.5, -0.5], [-0.2, 0.2]])
    >>> inputs = np.array([[2.0], [2.0], [1.0]])
    >>> sample_apart(residuals, inputs, 2, np.random.default_rng(0))
    array([1, 2])
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

    Attributes
    ----------
    closest : ndarray of shape (n,)
        Those distances, as of the first `seen` chosen ones.
    """

    def __init__(self, residuals, inputs, n_jobs):
        self.residuals, self.inputs, self.n_jobs = residuals, inputs, n_jobs
        self.closest = np.full(len(residuals), np.inf)
        self.seen = 0

    def shrink(self, centers):
        """Take further centres into account: one pass over the candidates."""
        taken = self._rows(centers)

        def update(rows):
            found = factored_distances(self._rows(rows), taken).min(axis=1)
            np.minimum(self.closest[rows], found, out=self.closest[rows])

        _by_rows(update, self.residuals, self.inputs, self.n_jobs)
        self.seen += len(centers)
        self.sums = np.cumsum(self.closest)
        self.total = self.sums[-1]

    def remove(self, positions):
        """Say that candidates are chosen: no distance to themselves is left."""
        self.closest[positions] = 0

    def draw(self, n, rng):
        """Draw up to n centres without a pass over the candidates, at least one.

        Distances to the nearest centre only shrink, so the known ones bound the true
        ones from above. Proposing i with probability known_i / sum and accepting it
        with true_i / known_i draws it with a probability proportional to true_i:
        exactly the distribution wanted, at the price of the distances of one row.
        Proposals are independent, so giving up on them changes nothing either.
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
    """Call a function on chunks of rows and join what it returns."""
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
