"""The overlap of the items that two protocols query."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .._utils._format import format_number, format_table, make_frame
from .._utils._sklearn import validate_params
from ..simulation._run import Run
from ._curves import Runs, as_runs, pair_runs


@validate_params({"cumulative": ["boolean"], "include_initial": ["boolean"]})
def jaccard(
    run_a: Run, run_b: Run, *, cumulative: bool = True, include_initial: bool = False
) -> NDArray[np.float64]:
    """Compute the Jaccard similarity of the queries of two runs after each round.

    This is ``|A ∩ B| / |A ∪ B|`` of the two sets of positions: 1 for equal sets, 0 for
    disjoint sets.

    Parameters
    ----------
    run_a, run_b : Run
        Runs on the same pool. Only the rounds that both have are compared.
    cumulative : bool, default=True
        Whether to compare all items queried so far, as in [1]_, or the batch of each
        round.
    include_initial : bool, default=False
        Whether to include the initial labels. Runs with the same seed share them, which
        increases the similarity.

    Returns
    -------
    similarity : ndarray of shape (r,)
        One value per round. Round 0 is the initial labels. NaN if both sets are empty.

    References
    ----------
    .. [1] A. Vysogorets, A. Gopal, "Towards efficient active learning in NLP via
       pretrained representations", 2024, figures 3 and 4.

    Examples
    --------
    >>> from skactive.analysis import jaccard
    >>> from skactive.simulation import Run
    >>> a = Run([{"queried": [0]}, {"queried": [1, 2]}, {"queried": [3, 4]}])
    >>> b = Run([{"queried": [0]}, {"queried": [2, 5]}, {"queried": [1, 3]}])
    >>> jaccard(a, b).round(3)
    array([  nan, 0.333, 0.6  ])
    """
    for name, run in (("run_a", run_a), ("run_b", run_b)):
        if len(as_runs(run, name)) > 1:
            raise TypeError(
                f"{name!r} must be one Run, got several. Use mean_jaccard for groups."
            )
    (run_a,), (run_b,) = as_runs(run_a), as_runs(run_b)
    seen_a: set[int] = set()
    seen_b: set[int] = set()
    similarity = []
    pairs = zip(run_a.rounds, run_b.rounds, strict=False)
    for i, (round_a, round_b) in enumerate(pairs):
        if not cumulative:
            seen_a, seen_b = set(), set()
        if i > 0 or include_initial:
            seen_a.update(round_a["queried"])
            seen_b.update(round_b["queried"])
        shared = len(seen_a & seen_b)
        union = len(seen_a) + len(seen_b) - shared
        similarity.append(shared / union if union else np.nan)
    return np.array(similarity)


@dataclass(frozen=True, eq=False)
class Overlap:
    """Jaccard similarity of two protocols, averaged over pairs of runs.

    Attributes
    ----------
    n_labeled : ndarray of shape (r,)
        Number of labels after each round, averaged over the runs.
    mean, std : ndarray of shape (r,)
        Mean and standard deviation over the pairs. `std` divides by n - 1 and is NaN
        for a single pair.
    chance : ndarray of shape (r,) or None
        Expected similarity of random choices of the same sizes. None if the runs have
        no `info["pool_size"]`. Initial labels that both share and that are not
        compared are left out of the pool.
    similarity : ndarray of shape (n_pairs, r)

    Examples
    --------
    >>> from skactive.analysis import mean_jaccard
    >>> from skactive.simulation import Run
    >>> def make(*batches):
    ...     return Run([{"queried": [0]}, *({"queried": b} for b in batches)],
    ...                info={"pool_size": 5})
    >>> overlap = mean_jaccard([make([1, 2]), make([3, 4])],
    ...                        [make([2, 1]), make([4, 2])])
    >>> print(f"{overlap.mean[1]:.2f}, and {overlap.chance[1]:.2f} by chance")
    0.67, and 0.39 by chance
    """

    n_labeled: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    chance: np.ndarray | None
    similarity: np.ndarray

    def to_frame(self) -> Any:
        """Tabulate as a pandas.DataFrame, a row for each round."""
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

    Parameters
    ----------
    runs_a, runs_b : Run or sequence of Run
        Runs are paired by the seed and data in their `info`. Runs without seeds are
        paired in the given order, and both groups must have the same length.
    cumulative, include_initial : bool
        As in `jaccard`.

    Returns
    -------
    overlap : Overlap
        The number of rounds is that of the shortest run.

    Raises
    ------
    ValueError
        If the runs do not form pairs.

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
    places = pair_runs(runs_a, runs_b)
    if places is None:
        seeds = [[run.info.get("seed") for run in runs] for runs in (runs_a, runs_b)]
        named = any(seed is not None for group in seeds for seed in group)
        if named or len(runs_a) != len(runs_b):
            raise ValueError(
                "'runs_a' and 'runs_b' must form pairs: one run of each seed in both, "
                f"or equally many runs that name none; got the seeds {seeds[0]} and "
                f"{seeds[1]}."
            )
        places = [(i, i) for i in range(len(runs_a))]
    pairs = [(runs_a[i], runs_b[j]) for i, j in places]
    rounds = min(len(run.rounds) for pair in pairs for run in pair)
    if rounds == 0:
        raise ValueError("'runs_a' and 'runs_b' must hold runs with rounds.")
    options: dict[str, Any] = {
        "cumulative": cumulative,
        "include_initial": include_initial,
    }
    similarity = np.stack([jaccard(*pair, **options)[:rounds] for pair in pairs])
    labels = [run.n_labeled[:rounds] for pair in pairs for run in pair]
    return Overlap(
        n_labeled=np.mean(labels, axis=0),
        mean=similarity.mean(axis=0),
        std=similarity.std(axis=0, ddof=1)
        if len(pairs) > 1
        else np.full(rounds, np.nan),
        chance=_chance(pairs, rounds, **options),
        similarity=similarity,
    )


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
