"""Wrappers: strategies that apply other strategies.

The default strategies are qualified by "skactive:", so that no plugin of the same name
replaces them.
"""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._math._scores import top_n
from .._utils._containers import check_picks
from .._utils._sklearn import HasMethods, Interval, RealNotInt, StrOptions
from ._base import SINGLE_LABEL, TARGETS, Strategy

_STRATEGY = [str, HasMethods("select"), callable]


class _Composite(Strategy):
    """Base of the strategies that apply others; it requires what they require."""

    _needs: frozenset[str] = frozenset()  # quantities that it uses itself
    _targets = TARGETS  # targets that it is defined for itself
    _parts: tuple[str, ...] = ("strategy",)  # parameters that are strategies

    @property
    def requires(self) -> frozenset[str] | None:  # type: ignore[override]
        """Quantities that it and its parts use; None if a part declares none."""
        needs = self._needs
        for name in self._parts:
            requires = getattr(self._resolve(name), "requires", None)
            if requires is None:
                return None
            needs |= requires
        return needs

    @property
    def targets(self) -> frozenset[str]:
        """Targets that it and all of its parts are defined for."""
        parts = [
            getattr(self._resolve(name), "targets", TARGETS) for name in self._parts
        ]
        return self._targets.intersection(*parts)

    @property
    def optional(self) -> frozenset[str]:  # type: ignore[override]
        """Quantities that its parts use when available."""
        optional: frozenset[str] = frozenset()
        for name in self._parts:
            optional |= getattr(self._resolve(name), "optional", frozenset())
        return optional

    def _validate_params(self):
        super()._validate_params()
        for name in self._parts:
            self._resolve(name)

    def _resolve(self, parameter):
        # Not at the top: the registry imports the strategies' base.
        from ..registry import resolve

        return resolve(getattr(self, parameter), argument=parameter)

    def _ask(self, parameter, view, n):
        """Return the n positions in a view that a part selects, checked."""
        given = getattr(self, parameter)
        name = given if isinstance(given, str) else repr(given)
        picks = self._resolve(parameter).select(view, n)
        return check_picks(picks, n, len(view), name)


class Subsample(_Composite):
    """Apply the strategy to a random part of the pool.

    Makes an expensive strategy affordable, and a greedy one more diverse.

    Parameters
    ----------
    strategy : str, strategy or callable, default="skactive:margin"
        The strategy to apply to the sample.
    size : int or float, default=10_000
        Number of candidates in the sample; a float in (0, 1] is a fraction of them. The
        sample is never smaller than the batch.

    Notes
    -----
    Cost: O(n) and that of the strategy on `size` candidates. Only the sample is
    transformed and predicted.

    When to use: on pools that are too large for the strategy or for the encoder.

    References
    ----------
    Y. Yang, M. Loog, "Active learning using uncertainty information", ICPR 2016, and
    common practice: sampling the pool before scoring it.

    Examples
    --------
    >>> from skactive import get_strategy
    >>> strategy = get_strategy("subsample", strategy="entropy", size=0.1)
    >>> sorted(strategy.requires)
    ['proba']
    """

    _parameter_constraints = {
        "strategy": _STRATEGY,
        "size": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
    }

    def __init__(
        self, strategy: Any = "skactive:margin", size: int | float = 10_000
    ) -> None:
        self.strategy = strategy
        self.size = size

    def select(self, view: Any, n: int) -> NDArray:
        """Select from a sample drawn uniformly without replacement."""
        size = self.size
        if not isinstance(size, Integral):
            size = int(np.ceil(size * len(view)))
        size = max(n, size)
        if size >= len(view):
            return self._ask("strategy", view, n)
        sample = np.sort(top_n(view.uniform(), size, view.rng))
        return sample[self._ask("strategy", view.take(sample), n)]


class Prefilter(_Composite):
    """Apply the second strategy to the best candidates of the first.

    With an uncertainty first and a diversity second it is the common two-step batch
    selection: uncertain candidates that differ from each other.

    Parameters
    ----------
    first : str, strategy or callable, default="skactive:margin"
        Selects `factor` times as many candidates as are queried.
    second : str, strategy or callable, default="skactive:embedding_kmeans"
        Selects the batch among them.
    factor : int or float, default=10
        Candidates per query that the first strategy selects, at least 1.

    Notes
    -----
    Cost: that of the first on n candidates and of the second on `factor` b.

    When to use: for large batches, in which uncertainty alone is redundant.

    References
    ----------
    F. Zhdanov, "Diverse mini-batch active learning", 2019, arXiv:1901.05954.

    Examples
    --------
    >>> from skactive import get_strategy
    >>> strategy = get_strategy("prefilter", second="coreset")
    >>> sorted(strategy.requires)
    ['class_scores', 'features']
    """

    _parameter_constraints = {
        "first": _STRATEGY,
        "second": _STRATEGY,
        "factor": [Interval(Real, 1, np.inf, closed="left")],
    }
    _parts = ("first", "second")

    def __init__(
        self,
        first: Any = "skactive:margin",
        second: Any = "skactive:embedding_kmeans",
        factor: float = 10,
    ) -> None:
        self.first = first
        self.second = second
        self.factor = factor

    def select(self, view: Any, n: int) -> NDArray:
        """Select by the first strategy, then by the second."""
        wanted = min(len(view), int(np.ceil(self.factor * n)))
        kept = self._ask("first", view, wanted)
        return kept[self._ask("second", view.take(kept), n)]


class SEALS(_Composite):
    """Apply the strategy to the nearest neighbors of the labeled items.

    Only the `k` nearest candidates of each labeled item are considered: an uncertain
    or rare item is usually near a labeled one.

    Parameters
    ----------
    strategy : str, strategy or callable, default="skactive:margin"
        The strategy to apply to the neighbors.
    k : int, default=100
        Number of nearest candidates of each labeled item.
    method : {"auto", "exact", "faiss"}, default="auto"
        Search method. "faiss" uses an approximate index of the package `faiss`. "auto"
        does so for large dense pools if it is installed.

    Notes
    -----
    Cost: O(n m d) for exact neighbors, for new labels only from the second query of a
    learner on, and that of the strategy on at most k m candidates. If these are fewer
    than are queried, the rest is drawn at random.

    When to use: on pools of millions if features are cheap and predictions are
    expensive.

    References
    ----------
    C. Coleman et al., "Similarity search for efficient active learning and search of
    rare concepts", AAAI 2022.

    Examples
    --------
    >>> from skactive import get_strategy
    >>> strategy = get_strategy("seals", strategy="entropy", k=20)
    >>> sorted(strategy.requires)
    ['features', 'labeled', 'proba']
    """

    _parameter_constraints = {
        "strategy": _STRATEGY,
        "k": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"auto", "exact", "faiss"})],
    }
    _needs = frozenset({"features", "labeled"})

    def __init__(
        self, strategy: Any = "skactive:margin", k: int = 100, method: str = "auto"
    ) -> None:
        self.strategy = strategy
        self.k = k
        self.method = method

    def select(self, view: Any, n: int) -> NDArray:
        """Select among the neighbors of the labeled items."""
        _, neighbors = view.labeled_neighbors(self.k, self.method)
        near = np.unique(neighbors)
        picks = near[self._ask("strategy", view.take(near), min(n, len(near)))]
        if len(picks) < n:
            others = np.setdiff1d(np.arange(len(view)), near, assume_unique=True)
            fill = top_n(view.uniform()[others], n - len(picks), view.rng)
            picks = np.concatenate([picks, others[fill]])
        return picks


class ClassBalanced(_Composite):
    """Apply the strategy per predicted class, mostly where labels are fewest.

    Each place of the batch goes to the class with the fewest labels so far among those
    with candidates. Selected candidates count as labels of their predicted class.

    Parameters
    ----------
    strategy : str, strategy or callable, default="skactive:margin"
        The strategy to apply to the candidates of one predicted class.

    Notes
    -----
    Cost: O(n k) and that of the strategy on each predicted class.

    When to use: if a class is rare, so that uncertain or random batches would hardly
    contain it.

    References
    ----------
    Ş. Ertekin, J. Huang, L. Bottou, C. L. Giles, "Learning on the border: active
    learning in imbalanced data classification", CIKM 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive import ActiveLearner, get_strategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = get_strategy("class_balanced", strategy="entropy")
    >>> learner = ActiveLearner(LogisticRegression(), strategy=strategy)
    >>> learner.fit([[-3.0], [-2.0], [-1.0], [3.0]], [0, 0, 0, 1])
    ActiveLearner(estimator=LogisticRegression(),
                  strategy=ClassBalanced(strategy='entropy'))
    >>> learner.query(np.array([[-3.0], [-0.5], [2.0], [3.0], [1.5]]), 2)
    array([4, 2])
    """

    _parameter_constraints = {"strategy": _STRATEGY}
    _needs = frozenset({"class_scores", "labeled"})
    _targets = SINGLE_LABEL

    def __init__(self, strategy: Any = "skactive:margin") -> None:
        self.strategy = strategy

    def select(self, view: Any, n: int) -> NDArray:
        """Select per predicted class."""
        predicted = view.class_scores.argmax(axis=1)
        counts = (view.y_labeled[:, None] == view.classes).sum(axis=0)
        available = np.bincount(predicted, minlength=len(counts))
        places = _fill(counts, available, n, view.rng)
        picks = np.empty(n, dtype=np.intp)
        for c in np.unique(places):
            members, taken = np.flatnonzero(predicted == c), places == c
            best = self._ask("strategy", view.take(members), int(taken.sum()))
            picks[taken] = members[best]
        return picks


def _fill(counts, available, n, rng):
    """Return the class with fewest labels for each of n places (n,), ties at random.

    `counts` (k,) are the labels so far and `available` (k,) the candidates.
    """
    counts, left = counts.copy(), available.copy()
    places = np.empty(n, dtype=np.intp)
    for i in range(n):
        open_counts = np.where(left > 0, counts, np.iinfo(counts.dtype).max)
        places[i] = rng.choice(np.flatnonzero(open_counts == open_counts.min()))
        counts[places[i]] += 1
        left[places[i]] -= 1
    return places
