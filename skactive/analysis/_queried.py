"""The items that runs query: their batches, their classes and their overlap."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, stats
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import safe_sparse_dot

from .._math._neighbors import nearest
from .._utils._chunks import as_floats, chunk_size, chunks
from .._utils._containers import count_items
from .._utils._format import format_number, format_table, make_frame
from .._utils._labels import as_labels
from .._utils._positions import as_positions
from .._utils._sklearn import Interval, validate_params
from ..simulation import Run
from ._curves import Runs, as_runs, pair_runs, spread


def _diversity(queried, pool, n_neighbors):
    distances, _ = nearest(pool, pool[queried], 1)
    return _invert(distances.mean(dtype=np.float64))


def _representativeness(queried, pool, n_neighbors):
    if pool.shape[0] == 1:
        return float("nan")
    # nearest leaves out row i for row i, so the batch goes first.
    others = np.setdiff1d(np.arange(pool.shape[0]), queried)
    ordered = pool[np.concatenate([queried, others])]
    batch = ordered[: queried.size]
    distances, _ = nearest(batch, ordered, n_neighbors, exclude_self=True)
    return _invert(distances.mean(dtype=np.float64))


def _redundancy(queried, pool, n_neighbors):
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


def _invert(mean):
    return float("inf") if mean == 0 else float(1 / mean)


_MEASURES = {
    "diversity": _diversity,
    "representativeness": _representativeness,
    "redundancy": _redundancy,
}


@validate_params(
    {
        "measures": [list, tuple, None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    }
)
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
        The measures to compute. Defaults to all three:

        - "diversity": how well the batch covers the pool [1]_ [2]_, the inverse of the
          mean distance of the items of the pool to the nearest item of the batch.
          Infinite if every item equals an item of the batch.
        - "representativeness": the density of the pool around the batch [2]_ [3]_, the
          inverse of the mean distance of the items of the batch to their `n_neighbors`
          nearest neighbors in the pool. An item is not its own neighbor, but its
          duplicates are neighbors.
        - "redundancy": how similar the items of the batch are to each other, the cosine
          similarity of an item to the most similar other item of the batch, averaged
          over the batch. It is 1 if each item has a duplicate, and NaN for a batch of
          one.

        The first two compute distances over the whole pool in every round.
    n_neighbors : int, default=10
        Number of neighbors for "representativeness". If the pool has fewer other items,
        all of them are used.

    Returns
    -------
    measured : dict of str to ndarray of shape (r,)
        One value per round. Round 0 is the initial labels. NaN for empty batches.

    Notes
    -----
    The unit of the first two is 1 / distance, so compare values for the same features
    only. Larger batches have a higher redundancy by chance, and BERT features are
    similar to some degree, so compare with a random batch of the same size.

    Distances are averaged before they are inverted, as in the published code: the
    representativeness is the harmonic mean of the items' densities, which a single
    outlier lowers much. The published code of [2]_ counts the item itself as an
    eleventh neighbor, at distance 0. Its values are 11/10 of those returned here.

    References
    ----------
    .. [1] F. Zhdanov, "Diverse mini-batch active learning", 2019.
    .. [2] L. Ein-Dor et al., "Active learning for BERT: an empirical study", EMNLP
       2020.
    .. [3] J. Zhu et al., "Active learning with sampling by uncertainty and density for
       word sense disambiguation and text classification", COLING 2008.

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
    measures = list(_MEASURES) if measures is None else measures
    unknown = [name for name in measures if name not in _MEASURES]
    if unknown:
        raise ValueError(
            f"'measures' must be among {list(_MEASURES)}, got {unknown[0]!r}."
        )
    measured = {name: np.full(len(run.rounds), np.nan) for name in measures}
    if not run.queried.size:
        return measured
    features = _check_features(features)
    as_positions(run.queried, features.shape[0], name="run.queried")
    unlabeled = np.ones(features.shape[0], dtype=bool)
    for i, record in enumerate(run.rounds):
        queried = np.array(record["queried"], dtype=np.intp)
        if queried.size:
            left = np.flatnonzero(unlabeled)
            pool, rows = features[left], np.searchsorted(left, queried)
            for name, values in measured.items():
                values[i] = _MEASURES[name](rows, pool, n_neighbors)
            unlabeled[queried] = False
    return measured


def _check_features(features):
    try:
        features = as_floats(features)
    except (TypeError, ValueError) as exc:
        raise TypeError(
            "'features' must be numeric features of shape (n, d), got a "
            f"{type(features).__name__}: {exc}."
        ) from exc
    if features.ndim != 2:
        raise ValueError(
            "'features' must be features of shape (n, d), got an array of shape "
            f"{features.shape}."
        )
    values = features.data if sparse.issparse(features) else features
    if not np.isfinite(values).all():
        raise ValueError(
            "'features' holds NaN or infinity. Fill or leave out those rows."
        )
    return features


@dataclass(frozen=True, eq=False)
class ClassCoverage:
    """Labels of each class after each round; see `class_coverage`."""

    n_labeled: np.ndarray
    classes: np.ndarray
    counts: np.ndarray
    first: dict

    @property
    def n_seen(self) -> NDArray[np.intp]:
        """Number of classes with a label after each round, (r,)."""
        return (self.counts > 0).sum(axis=1)

    @property
    def imbalance(self) -> NDArray[np.intp]:
        """Labels of the largest class minus those of the smallest, (r,)."""
        return self.counts.max(axis=1) - self.counts.min(axis=1)

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a row per round and a column per class."""
        columns = {"n_labeled": self.n_labeled, "n_seen": self.n_seen}
        by_class = zip(self.classes.tolist(), self.counts.T, strict=True)
        return make_frame({**columns, **dict(by_class)})

    def __str__(self):
        header = ["labels", "classes", *map(str, self.classes.tolist())]
        numbers = np.column_stack([self.n_labeled, self.n_seen, self.counts])
        return format_table(header, [map(str, row) for row in numbers.tolist()])


def class_coverage(run: Run, y: "ArrayLike") -> ClassCoverage:
    """Count the labels of each class after each round.

    Parameters
    ----------
    run : Run
        The run to describe.
    y : array-like of shape (n,) or (n, k)
        True labels of the pool, one per position, or an indicator matrix.

    Returns
    -------
    coverage : ClassCoverage
        `print` shows a table, and `to_frame()` returns a data frame. The attributes
        are:

        - `classes` (k,): the classes of the pool, or the columns of an indicator
          matrix.
        - `n_labeled` (r,): number of labels so far.
        - `counts` (r, k): number of labels of each class so far.
        - `n_seen` (r,): number of classes with a label.
        - `imbalance` (r,): labels of the largest class minus those of the smallest,
          the measure of table 3 of Grießhaber, Maucher, Vu (2020).
        - `first`: dict of class to the number of labels up to and including its first
          one, None if the run has not found the class.

    Raises
    ------
    TypeError
        If `y` holds the numbers of a regression.

    Examples
    --------
    >>> from skactive.analysis import class_coverage
    >>> from skactive.simulation import Run
    >>> run = Run([{"queried": [0, 1]}, {"queried": [3, 4]}])
    >>> coverage = class_coverage(run, ["ham", "ham", "spam", "ham", "spam"])
    >>> print(coverage)
    labels  classes  ham  spam
    2             1    2     0
    4             2    3     1
    >>> coverage.first
    {'ham': 1, 'spam': 4}
    """
    (run,) = as_runs(run, "run")
    classes, holds = list_classes(y)
    if run.queried.size:
        as_positions(run.queried, len(holds), name="run.queried")
    labeled = [[i for i in r["queried"] if i not in r["refused"]] for r in run.rounds]
    holds = holds[[i for positions in labeled for i in positions]]
    sizes = [len(positions) for positions in labeled]
    seen = np.cumsum(holds, axis=0)
    seen = np.concatenate([np.zeros((1, len(classes)), dtype=int), seen])
    n_labeled = np.cumsum(sizes, dtype=int)
    first = {}
    for code, label in enumerate(classes.tolist()):
        where = np.flatnonzero(holds[:, code])
        first[label] = int(where[0]) + 1 if where.size else None
    return ClassCoverage(
        n_labeled=n_labeled, classes=classes, counts=seen[n_labeled], first=first
    )


def list_classes(y):
    """Return the classes (k,) of labels, and which items hold them, bool (n, k)."""
    labels = as_labels(y, count_items(y, name="y"))
    if are_numbers(labels):
        raise TypeError(
            "'y' must hold classes, or an indicator matrix of 0 and 1, got numbers "
            f"such as {labels.flat[0].item()!r}. Classes of a regression are not "
            "defined; bin the numbers."
        )
    if labels.ndim == 2:
        return np.arange(labels.shape[1]), labels != 0
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes[:, None] == np.arange(len(classes))


def are_numbers(labels):
    """Whether labels are numbers of a regression, so no classes and no indicators."""
    if labels.ndim == 2:
        return not np.isin(labels, [0, 1]).all()
    return labels.dtype.kind == "f" and bool((labels != np.floor(labels)).any())


@dataclass(frozen=True, eq=False)
class Overlap:
    """Jaccard similarity of two protocols, from :func:`mean_jaccard`.

    Parameters
    ----------
    n_labeled : ndarray of shape (r,)
        Number of labels after each round, averaged over the runs.
    mean, std : ndarray of shape (r,)
        Mean and standard deviation over the pairs. `std` divides by n - 1 and is NaN
        for a single pair.
    chance : ndarray of shape (r,) or None
        Expected similarity of random choices of the same sizes. None if the runs have
        no `info["pool_size"]`. Initial labels that both share and that are not compared
        are left out of the pool.
    similarity : ndarray of shape (n_pairs, r)
        NaN if both sets are empty.

    Examples
    --------
    >>> from skactive.analysis import mean_jaccard
    >>> from skactive.simulation import Run
    >>> first, second = (Run([{"queried": [0]}, {"queried": q}]) for q in ([1, 2], [2]))
    >>> mean_jaccard(first, second).mean
    array([nan, 0.5])
    """

    n_labeled: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    chance: np.ndarray | None
    similarity: np.ndarray

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a row for each round."""
        return make_frame(self._columns())

    def _columns(self):
        columns = {"n_labeled": self.n_labeled, "mean": self.mean, "std": self.std}
        if self.chance is not None:
            columns["chance"] = self.chance
        return columns

    def __str__(self):
        columns = self._columns()
        rows = [
            [format_number(n, 8), *map(format_number, numbers)]
            for n, *numbers in zip(*columns.values(), strict=True)
        ]
        title = f"Jaccard similarity, {len(self.similarity)} pairs of runs"
        return f"{title}\n{format_table(['labels', *list(columns)[1:]], rows)}"


@validate_params({"cumulative": ["boolean"], "include_initial": ["boolean"]})
def mean_jaccard(
    runs_a: Runs,
    runs_b: Runs,
    *,
    cumulative: bool = True,
    include_initial: bool = False,
) -> Overlap:
    """Compute the Jaccard similarity of two protocols, averaged over pairs of runs.

    This is ``|A ∩ B| / |A ∪ B|`` of the two sets of queried positions after each round:
    1 for equal sets, 0 for disjoint sets.

    Parameters
    ----------
    runs_a, runs_b : Run or sequence of Run
        Runs on the same pool. They are paired by the seed and data in their `info`.
        Runs without seeds are paired in the given order, and both groups must have the
        same length.
    cumulative : bool, default=True
        Whether to compare all items queried so far, as in [1]_, or the batch of each
        round.
    include_initial : bool, default=False
        Whether to include the initial labels. Runs with the same seed share them, which
        increases the similarity.

    Returns
    -------
    overlap : Overlap
        `print` shows a table. The number of rounds is that of the shortest run; round 0
        is the initial labels.

    Raises
    ------
    ValueError
        If the runs do not form pairs.

    References
    ----------
    .. [1] A. Vysogorets, A. Gopal, "Towards efficient active learning in NLP via
       pretrained representations", 2024, figures 3 and 4.

    Examples
    --------
    >>> from skactive.analysis import mean_jaccard
    >>> from skactive.simulation import Run
    >>> def make(*batches):
    ...     return Run([{"queried": [0]}, *({"queried": b} for b in batches)],
    ...                info={"pool_size": 5})
    >>> print(mean_jaccard([make([1, 2]), make([3, 4])], [make([2, 1]), make([4, 2])]))
    Jaccard similarity, 2 pairs of runs
    labels    mean     std  chance
    1            -       -       -
    3       0.6667  0.4714  0.3889
    """
    runs_a, runs_b = as_runs(runs_a, "runs_a"), as_runs(runs_b, "runs_b")
    indices = pair_runs(runs_a, runs_b)
    if indices is None:
        seeds = [[run.info.get("seed") for run in runs] for runs in (runs_a, runs_b)]
        named = any(seed is not None for group in seeds for seed in group)
        if named or len(runs_a) != len(runs_b):
            raise ValueError(
                "'runs_a' and 'runs_b' must form pairs: one run of each seed in both, "
                f"or equally many runs that name none; got the seeds {seeds[0]} and "
                f"{seeds[1]}."
            )
        indices = [(i, i) for i in range(len(runs_a))]
    pairs = [(runs_a[i], runs_b[j]) for i, j in indices]
    rounds = min(len(run.rounds) for pair in pairs for run in pair)
    if rounds == 0:
        raise ValueError("'runs_a' and 'runs_b' must hold runs with rounds.")
    options: dict[str, Any] = {
        "cumulative": cumulative,
        "include_initial": include_initial,
    }
    similarity = np.stack([_jaccard(*pair, rounds, **options) for pair in pairs])
    labels = [run.n_labeled[:rounds] for pair in pairs for run in pair]
    return Overlap(
        n_labeled=np.mean(labels, axis=0),
        mean=similarity.mean(axis=0),
        std=spread(similarity),
        chance=_chance(pairs, rounds, **options),
        similarity=similarity,
    )


def _jaccard(run_a, run_b, rounds, cumulative, include_initial):
    """Return the similarity (rounds,) of the sets of queries after each round."""
    seen_a, seen_b = set(), set()
    similarity = np.full(rounds, np.nan)
    for i in range(rounds):
        if not cumulative:
            seen_a, seen_b = set(), set()
        if i > 0 or include_initial:
            seen_a.update(run_a.rounds[i]["queried"])
            seen_b.update(run_b.rounds[i]["queried"])
        if union := len(seen_a | seen_b):
            similarity[i] = len(seen_a & seen_b) / union
    return similarity


def _chance(pairs, rounds, cumulative, include_initial):
    """Return the expected similarity of random choices, averaged over pairs."""
    chances = []
    for run_a, run_b in pairs:
        n_pool = run_a.info.get("pool_size")
        if n_pool is None or n_pool != run_b.info.get("pool_size"):
            return None
        initial_a, initial_b = (set(r.rounds[0]["queried"]) for r in (run_a, run_b))
        if initial_a == initial_b and not include_initial:
            n_pool -= len(initial_a)  # neither could choose them
        sizes = [
            _set_sizes(run, rounds, cumulative, include_initial)
            for run in (run_a, run_b)
        ]
        chances.append([chance_jaccard(*n, n_pool) for n in zip(*sizes, strict=True)])
    return np.mean(chances, axis=0)


def _set_sizes(run, rounds, cumulative, include_initial):
    sizes = [len(record["queried"]) for record in run.rounds[:rounds]]
    if not include_initial:
        sizes[0] = 0
    return np.cumsum(sizes) if cumulative else np.array(sizes)


def chance_jaccard(n_a, n_b, n_pool):
    """Compute the expected Jaccard similarity of two random subsets of a pool.

    The overlap i of two independent uniform subsets has a hypergeometric distribution.
    The result is the exact expectation of i / (n_a + n_b - i), NaN for empty subsets.
    """
    if n_a + n_b == 0:
        return float("nan")
    shared = np.arange(max(0, n_a + n_b - n_pool), min(n_a, n_b) + 1)
    weights = stats.hypergeom.pmf(shared, n_pool, n_a, n_b)
    return float(weights @ (shared / (n_a + n_b - shared)))
