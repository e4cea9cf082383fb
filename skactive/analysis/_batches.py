"""Measures of the batches that a strategy selects from a pool."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import safe_sparse_dot

from .._math._neighbors import nearest
from .._utils._chunks import as_floats, chunk_size, chunks
from .._utils._containers import as_positions
from .._utils._sklearn import validate_params
from ..simulation._run import Run
from ._curves import as_runs


@validate_params({"n_jobs": [Integral, None]})
def diversity(queried: ArrayLike, pool: Any, *, n_jobs: int | None = 1) -> float:
    """Compute how well a batch covers the pool.

    This is the inverse of the mean distance of the items of the pool to the nearest
    item of the batch [1]_, ::

        D(B) = (1 / |U| sum_{x in U} min_{b in B} ||x - b||)^-1

    Parameters
    ----------
    queried : array-like of int, or bool mask
        Positions of the batch in `pool`.
    pool : ndarray or sparse matrix of shape (n, d)
        Features of the unlabeled items, including those of the batch.
    n_jobs : int, default=1
        Number of threads.

    Returns
    -------
    diversity : float
        Higher is more diverse. Infinite if every item equals an item of the batch. The
        unit is 1 / distance, so compare values for the same features only.

    References
    ----------
    .. [1] F. Zhdanov, "Diverse mini-batch active learning", 2019; L. Ein-Dor et al.,
       "Active learning for BERT: an empirical study", EMNLP 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.analysis import diversity
    >>> pool = np.array([[0.0], [1.0], [4.0], [6.0]])
    >>> diversity([0, 2], pool)  # distances 0, 1, 0 and 2
    1.3333333333333333
    """
    positions, rows = _check(queried, pool)
    return _diversity(positions, rows, n_jobs)


def _diversity(queried, pool, n_jobs=1):
    distances, _ = nearest(pool, pool[queried], 1, n_jobs=n_jobs)
    return _invert(distances.mean(dtype=np.float64))


@validate_params({"n_neighbors": [Integral], "n_jobs": [Integral, None]})
def representativeness(
    queried: ArrayLike, pool: Any, n_neighbors: int = 10, *, n_jobs: int | None = 1
) -> float:
    """Compute the KNN density of the pool around the items of a batch.

    This is the inverse of the mean distance of the items of the batch to their
    `n_neighbors` nearest neighbors in the pool [1]_. An item is not its own neighbor,
    but its duplicates are neighbors. Distances are averaged before they are inverted,
    as in the published code: the result is the harmonic mean of the items' densities.

    Parameters
    ----------
    queried : array-like of int, or bool mask
        Positions of the batch in `pool`.
    pool : ndarray or sparse matrix of shape (n, d)
        Features of the unlabeled items, including those of the batch.
    n_neighbors : int, default=10
        Number of neighbors. If the pool has fewer other items, all of them are used.
    n_jobs : int, default=1
        Number of threads.

    Returns
    -------
    density : float
        Higher is more representative; a batch with outliers has a low value. The unit
        is 1 / distance, so compare values for the same features only.

    Notes
    -----
    The harmonic mean stays finite if an item has that many duplicates, at distance
    0. A single outlier lowers it much; the arithmetic mean of the densities would
    hide the outlier.

    The published code of [1]_ counts the item itself as an eleventh neighbor, at
    distance 0. Its values are 11/10 of those returned here.

    References
    ----------
    .. [1] L. Ein-Dor et al., "Active learning for BERT: an empirical study", EMNLP
       2020, after J. Zhu et al., "Active learning with sampling by uncertainty and
       density for word sense disambiguation and text classification", COLING 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.analysis import representativeness
    >>> pool = np.array([[0.0], [1.0], [4.0], [6.0]])
    >>> representativeness([0], pool, n_neighbors=2)  # distances 1 and 4
    0.4
    """
    queried, pool = _check(queried, pool)
    if n_neighbors < 1:
        raise ValueError(
            f"'n_neighbors' must be an int of at least 1, got {n_neighbors}."
        )
    if pool.shape[0] == 1:
        raise ValueError("'pool' must hold at least two items, got 1.")
    return _representativeness(queried, pool, n_neighbors, n_jobs)


def _representativeness(queried, pool, n_neighbors, n_jobs=1):
    if pool.shape[0] == 1:
        return float("nan")
    # nearest leaves out row i for row i, so the batch goes first.
    others = np.setdiff1d(np.arange(pool.shape[0]), queried)
    ordered = pool[np.concatenate([queried, others])]
    distances, _ = nearest(
        ordered[: queried.size], ordered, n_neighbors, exclude_self=True, n_jobs=n_jobs
    )
    return _invert(distances.mean(dtype=np.float64))


def redundancy(queried: ArrayLike, pool: Any) -> float:
    """Compute how similar the items of a batch are to each other.

    This is the cosine similarity of an item to the most similar other item of the
    batch, averaged over the batch. 1 means that each item has a duplicate. Larger
    batches have a higher redundancy by chance, and BERT features are similar to some
    degree, so compare with a random batch of the same size.

    Parameters
    ----------
    queried : array-like of int, or bool mask
        Positions of the batch in `pool`.
    pool : ndarray or sparse matrix of shape (n, d)
        Features.

    Returns
    -------
    redundancy : float
        From -1 to 1; NaN for a batch of one. A row of zeros has similarity 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.analysis import redundancy
    >>> pool = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]])
    >>> round(redundancy([0, 1, 2], pool), 6)  # 0.6, 0.8 and 0.8
    0.733333
    """
    return _redundancy(*_check(queried, pool))


def _redundancy(queried, pool):
    n = queried.size
    if n == 1:
        return float("nan")
    rows = normalize(pool[queried])
    most = np.empty(n)
    for part in chunks(n, chunk_size(8 * n)):
        similarity = safe_sparse_dot(rows[part], rows.T, dense_output=True)
        own = np.arange(part.start, part.stop)
        similarity[own - part.start, own] = -np.inf
        most[part] = similarity.max(axis=1)
    return float(np.clip(most, -1, 1).mean())


_MEASURES = ("diversity", "representativeness", "redundancy")


@validate_params({"measures": [list, tuple, None], "n_neighbors": [Integral]})
def describe_batches(
    run: Run,
    features: Any,
    *,
    measures: Sequence[str] | None = None,
    n_neighbors: int = 10,
) -> dict[str, NDArray[np.float64]]:
    """Measure each batch of a run against the items that were unlabeled at that time.

    Parameters
    ----------
    run : Run
        The run whose batches are measured.
    features : ndarray or sparse matrix of shape (n, d)
        Features of the whole pool, row i for position i.
    measures : sequence of str or None, default=None
        The measures to compute: "diversity", "representativeness" and "redundancy".
        Defaults to all three. The first two compute distances over the whole pool in
        every round.
    n_neighbors : int, default=10
        Number of neighbors for "representativeness".

    Returns
    -------
    measured : dict of str to ndarray of shape (r,)
        One value per round. Round 0 is the initial labels. NaN for empty batches.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.analysis import describe_batches
    >>> from skactive.simulation import Run
    >>> pool = np.array([[1.0], [2.0], [5.0], [9.0]])
    >>> run = Run([{"queried": [0]}, {"queried": [1]}, {"queried": [3]}])
    >>> describe_batches(run, pool, measures=["diversity"])["diversity"].round(4)
    array([0.3077, 0.3   , 0.5   ])
    """
    (run,) = as_runs(run, "run")
    measures = _MEASURES if measures is None else tuple(measures)
    for name in measures:
        if name not in _MEASURES:
            raise ValueError(
                f"'measures' must be among {list(_MEASURES)}, got {name!r}."
            )
    measured = {name: np.full(len(run.rounds), np.nan) for name in measures}
    if not run.queried.size:
        return measured
    _, features = _check(run.queried, features, "run.queried", "features")
    unlabeled = np.ones(features.shape[0], dtype=bool)
    for i, record in enumerate(run.rounds):
        queried = np.array(record["queried"], dtype=np.intp)
        if queried.size:
            left = np.flatnonzero(unlabeled)
            pool, rows = features[left], np.searchsorted(left, queried)
            if "diversity" in measured:
                measured["diversity"][i] = _diversity(rows, pool)
            if "representativeness" in measured:
                measured["representativeness"][i] = _representativeness(
                    rows, pool, n_neighbors
                )
            if "redundancy" in measured:
                measured["redundancy"][i] = _redundancy(rows, pool)
            unlabeled[queried] = False
    return measured


def _check(queried, pool, batch_name="queried", pool_name="pool"):
    try:
        pool = as_floats(pool)
    except (TypeError, ValueError) as exc:
        raise TypeError(
            f"{pool_name!r} must be numeric features of shape (n, d), got a "
            f"{type(pool).__name__}: {exc}."
        ) from exc
    if pool.ndim != 2:
        raise ValueError(
            f"{pool_name!r} must be features of shape (n, d), got an array of shape "
            f"{pool.shape}."
        )
    values = pool.data if sparse.issparse(pool) else pool
    if not np.isfinite(values).all():
        raise ValueError(
            f"{pool_name!r} holds NaN or infinity. Fill or leave out those rows."
        )
    return as_positions(queried, pool.shape[0], name=batch_name), pool


def _invert(mean):
    return float("inf") if mean == 0 else float(1 / mean)
