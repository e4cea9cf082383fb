"""Wrappers: strategies that apply other strategies.

The default strategies are qualified by "skactive:", so that no plugin of the same name
replaces them.
"""

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

from .._math._clustering import draw_spread, nearest_to_centers
from .._math._scores import top_n
from .._utils._chunks import float_rows
from .._utils._labels import CLASSES, SINGLE_LABEL, TARGETS, find_target
from .._utils._plugins import read_declared
from .._utils._positions import check_picks
from .._utils._sklearn import POSITIVE_INT, HasMethods, Interval, RealNotInt, StrOptions
from ..registry import Strategy, requires_for, resolve

LABELS_PER_CLASS = 10  # up to which `switch` uses its first strategy by default
PART_ROWS = 10_000  # of a part of `partitioned` by default, at least
N_CLASSES = 10  # if the labels are not one class per item

_STRATEGY = [str, HasMethods("select"), callable]


class WrapperStrategy(Strategy):
    """Base class of the strategies that apply other strategies.

    The strategies are parameters: a name, an instance or a function each. What they
    require and use when available, and their targets, are those of the wrapper as well.
    A subclass defines `select`, which calls `select_by`.

    Attributes
    ----------
    parts : tuple of str
        Names of the parameters that are strategies. Defaults to "strategy" alone.
    own_requires : frozenset of str
        Quantities that `select` uses itself, as in `Strategy.requires`. Defaults to
        none.
    own_targets : frozenset of str
        Targets that `select` is defined for itself, as in `Strategy.targets`. Defaults
        to all.

    See Also
    --------
    skactive.view.PoolView.take : View of some of the candidates.

    Examples
    --------
    Apply a strategy to the first half of the candidates:

    >>> import numpy as np
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import WrapperStrategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> class FirstHalf(WrapperStrategy):
    ...     "Query among the first half of the candidates."
    ...
    ...     def __init__(self, strategy="margin"):
    ...         self.strategy = strategy
    ...
    ...     def select(self, view, n_queries):
    ...         rows = np.arange(max(n_queries, len(view) // 2))
    ...         return rows[self.select_by("strategy", view.take(rows), n_queries)]
    >>> learner = ActiveLearner(LogisticRegression(), FirstHalf("entropy"))
    >>> learner = learner.fit([[-1.0], [1.0]], [0, 1])
    >>> learner.query([[-3.0], [0.2], [0.1], [3.0]], 1)
    array([1])
    """

    own_requires: frozenset[str] = frozenset()
    own_targets = TARGETS
    parts: tuple[str, ...] = ("strategy",)

    @property
    def requires(self) -> frozenset[str] | None:  # type: ignore[override]
        """Quantities that it and its parts use; None if a part declares none."""
        return self.requires_for("single-label")

    def requires_for(self, target: str) -> frozenset[str] | None:
        """Return what it and its parts use for a target, or None."""
        needs = self.own_requires
        for name in self.parts:
            requires = requires_for(self._resolve(name), target)
            if requires is None:
                return None
            needs |= requires
        return needs

    @property
    def targets(self) -> frozenset[str]:
        """Targets that it and all of its parts are defined for."""
        parts = map(self._resolve, self.parts)
        return self.own_targets.intersection(
            *(read_declared(part, "targets", TARGETS) for part in parts)
        )

    @property
    def optional(self) -> frozenset[str]:  # type: ignore[override]
        """Quantities that its parts use when available."""
        parts = map(self._resolve, self.parts)
        return frozenset[str]().union(
            *(read_declared(part, "optional") for part in parts)
        )

    def _validate_params(self):
        super()._validate_params()
        for name in self.parts:
            self._resolve(name)

    def _resolve(self, parameter):
        return resolve(getattr(self, parameter), argument=parameter)

    def select_by(self, parameter: str, view: Any, n_queries: int) -> NDArray:
        """Return what the strategy of a parameter selects.

        Parameters
        ----------
        parameter : str
            Name of the parameter, one of `parts`.
        view : skactive.view.PoolView
            The view, or a part of it by `view.take(positions)`.
        n_queries : int
            Number of candidates to select, from 1 to `len(view)`.

        Returns
        -------
        positions : ndarray of int, shape (n_queries,)
            Positions in this view, best first.

        Raises
        ------
        ValueError
            If the strategy returns invalid positions.
        """
        strategy = getattr(self, parameter)
        name = strategy if isinstance(strategy, str) else repr(strategy)
        picks = self._resolve(parameter).select(view, n_queries)
        return check_picks(picks, n_queries, len(view), name)

    def _ask_among(self, parameter, view, rows, n_queries):
        """Return n positions that a part selects among some rows, filled at random."""
        n_near = min(n_queries, len(rows))
        picks = rows[self.select_by(parameter, view.take(rows), n_near)]
        if len(picks) < n_queries:
            others = np.setdiff1d(np.arange(len(view)), rows, assume_unique=True)
            fill = top_n(view.uniform()[others], n_queries - len(picks), view.rng)
            picks = np.concatenate([picks, others[fill]])
        return picks


class Subsample(WrapperStrategy):
    """Apply the strategy to a random part of the pool.

    Makes an expensive strategy affordable, and a greedy one more diverse.

    Parameters
    ----------
    strategy : str, strategy or callable, default="skactive:margin"
        The strategy to apply to the sample.
    sample_size : int or float, default=10_000
        Number of candidates in the sample; a float in (0, 1] is a fraction of them. The
        sample is never smaller than the batch.

    Notes
    -----
    Cost: O(n) and that of the strategy on `sample_size` candidates. Only the sample is
    transformed and predicted.

    When to use: on pools that are too large for the strategy or for the encoder.

    References
    ----------
    Y. Yang, M. Loog, "Active learning using uncertainty information", ICPR 2016, and
    common practice: sampling the pool before scoring it.

    Examples
    --------
    Half of the pool is drawn, and its most uncertain item is queried:

    >>> from skactive import ActiveLearner, get_strategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = get_strategy("subsample", strategy="entropy", sample_size=0.5)
    >>> learner = ActiveLearner(LogisticRegression(), strategy, random_state=0)
    >>> learner = learner.fit([[-1.0], [1.0]], [0, 1])
    >>> learner.query([[-3.0], [0.1], [0.2], [3.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        "strategy": _STRATEGY,
        "sample_size": [POSITIVE_INT, Interval(RealNotInt, 0, 1, closed="right")],
    }

    def __init__(
        self, strategy: Any = "skactive:margin", sample_size: int | float = 10_000
    ) -> None:
        self.strategy = strategy
        self.sample_size = sample_size

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select from a sample drawn uniformly without replacement."""
        size = self.sample_size
        if not isinstance(size, Integral):
            size = int(np.ceil(size * len(view)))
        size = max(n_queries, size)
        if size >= len(view):
            return self.select_by("strategy", view, n_queries)
        sample = np.sort(top_n(view.uniform(), size, view.rng))
        return sample[self.select_by("strategy", view.take(sample), n_queries)]


class Prefilter(WrapperStrategy):
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
    Of the two items that the model is least certain about, the one farther from the
    labels:

    >>> from skactive import ActiveLearner, get_strategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = get_strategy("prefilter", second="coreset", factor=2)
    >>> learner = ActiveLearner(LogisticRegression(), strategy)
    >>> learner = learner.fit([[-1.0, 0.0], [1.0, 0.0]], [0, 1])
    >>> learner.query([[0.1, 0.1], [0.2, 5.0], [3.0, 9.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        "first": _STRATEGY,
        "second": _STRATEGY,
        "factor": [Interval(Real, 1, np.inf, closed="left")],
    }
    parts = ("first", "second")

    def __init__(
        self,
        first: Any = "skactive:margin",
        second: Any = "skactive:embedding_kmeans",
        factor: float = 10,
    ) -> None:
        self.first = first
        self.second = second
        self.factor = factor

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select by the first strategy, then by the second."""
        wanted = min(len(view), int(np.ceil(self.factor * n_queries)))
        selected = self.select_by("first", view, wanted)
        return selected[self.select_by("second", view.take(selected), n_queries)]


class Partitioned(WrapperStrategy):
    """Apply the strategy to each part of the pool, then to what it selected there.

    This is two-stage greedy selection: a batch from each part, and the batch from the
    union of these. Labeled items count in both stages. Nothing is computed for the
    whole pool at once.

    Parameters
    ----------
    strategy : str, strategy or callable, default="skactive:coreset"
        The strategy to apply to the parts and to their union.
    n_parts : int or "auto", default="auto"
        Number of parts. Each has nearly the same number of candidates, consecutive in
        the pool, so that a file of features is read from its start to its end. "auto"
        makes a part about as large as the union, but not smaller than 10,000
        candidates.

    Notes
    -----
    Cost: for p parts that of the strategy on n / p candidates, p times, and on p b
    candidates. Memory: that of the strategy on max(n / p, p b) candidates, and what the
    learner keeps for the next query.

    When to use: for strategies that select a batch as a whole, on pools of more than
    100,000 candidates. Pointwise strategies select the same candidates without it.

    For `coreset` the largest remaining distance is at most four times the optimum,
    twice the bound of the search in one stage, however the pool is split. For
    submodular objectives the papers guarantee a constant factor of the optimum if the
    parts are random, so shuffle a file that is sorted by topic. Strategies that count
    the candidates near a pick, such as `probcover`, see only the part, and then only
    the union.

    References
    ----------
    B. Mirzasoleiman, A. Karbasi, R. Sarkar, A. Krause, "Distributed submodular
    maximization", Journal of Machine Learning Research 17, 2016 (GreeDi).

    R. Barbosa, A. Ene, H. L. Nguyen, J. Ward, "The power of randomization: distributed
    submodular maximization on massive datasets", ICML 2015.

    G. Malkomes, M. J. Kusner, W. Chen, K. Q. Weinberger, B. Moseley, "Fast distributed
    k-center clustering with outliers on massive data", NIPS 2015.

    Examples
    --------
    >>> from skactive import ActiveLearner, get_strategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = get_strategy("partitioned", strategy="coreset", n_parts=2)
    >>> learner = ActiveLearner(LogisticRegression(), strategy)
    >>> learner = learner.fit([[0.0], [1.0]], [0, 1])
    >>> learner.query([[0.5], [8.0], [9.0], [5.0], [2.0], [-6.0]], 2)
    array([2, 5])
    """

    _parameter_constraints = {
        "strategy": _STRATEGY,
        "n_parts": [POSITIVE_INT, StrOptions({"auto"})],
    }

    def __init__(
        self,
        strategy: Any = "skactive:coreset",
        n_parts: int | Literal["auto"] = "auto",
    ) -> None:
        self.strategy = strategy
        self.n_parts = n_parts

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select from each part, then from all that were selected."""
        n_parts = self._count_parts(len(view), n_queries)
        if n_parts == 1:
            return self.select_by("strategy", view, n_queries)
        selected = []
        for positions, part in view.split(n_parts):
            if len(positions) > n_queries:
                positions = positions[self.select_by("strategy", part, n_queries)]
            selected.append(positions)
        union = np.sort(np.concatenate(selected))
        return union[self.select_by("strategy", view.take(union), n_queries)]

    def _count_parts(self, n_candidates, n_queries):
        if self.n_parts != "auto":
            return min(self.n_parts, n_candidates)
        balanced = np.ceil(np.sqrt(n_candidates / n_queries))  # n_candidates / p = p n
        return max(1, int(min(balanced, n_candidates // PART_ROWS)))


class Switch(WrapperStrategy):
    """Apply the first strategy to few labels, and the second one from then on.

    With typical items first and uncertainty after, it covers the pool while the
    predictions are not yet reliable, and refines the decision boundary after that.

    Parameters
    ----------
    first : str, strategy or callable, default="skactive:typiclust"
        The strategy to apply to fewer than `after` labels.
    second : str, strategy or callable, default="skactive:margin"
        The strategy to apply to `after` labels and more.
    after : int or None, default=None
        Number of labels from which on the second strategy is used. Defaults to 10 for
        each class that has a label. Labels that are not one class per item count as 10
        classes.

    Notes
    -----
    A batch comes from one strategy, the one for the number of labels before the query.
    Both strategies must suit the estimator. Before there is a model, the learner uses
    its `cold_start`, so name the first strategy there as well.

    Cost: that of the strategy in use.

    When to use: from the first labels to some hundreds. The number of labels at which
    uncertainty becomes useful depends on the data; `analysis` compares runs.

    The paper switches from TypiClust to margin sampling, by its own guideline for the
    point of transition. The default of `after` is not from the paper.

    References
    ----------
    P. Doucet, B. Estermann, T. Aczel, R. Wattenhofer, "Bridging diversity and
    uncertainty in active learning with self-supervised pre-training",
    arXiv:2403.03728, 2024.

    Examples
    --------
    >>> from skactive import ActiveLearner, get_strategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = get_strategy("switch", first="coreset", second="margin", after=3)
    >>> learner = ActiveLearner(LogisticRegression(), strategy)
    >>> pool = [[-9.0], [0.1], [4.0]]
    >>> learner = learner.fit([[-1.0], [1.0]], [0, 1])
    >>> learner.query(pool, 1)
    array([0])
    >>> learner.teach([[-9.0]], [0]).query(pool[1:], 1)
    array([0])
    """

    _parameter_constraints = {
        "first": _STRATEGY,
        "second": _STRATEGY,
        "after": [POSITIVE_INT, None],
    }
    parts = ("first", "second")

    def __init__(
        self,
        first: Any = "skactive:typiclust",
        second: Any = "skactive:margin",
        after: int | None = None,
    ) -> None:
        self.first = first
        self.second = second
        self.after = after

    @property
    def optional(self) -> frozenset[str]:  # type: ignore[override]
        """Quantities that its parts use when available, and the labels to count."""
        return super().optional | {"labeled"}

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select by the strategy for the number of labels."""
        part = "first" if view.n_labeled < self._count_first(view) else "second"
        return self.select_by(part, view, n_queries)

    def _count_first(self, view):
        """Return the number of labels from which on the second strategy is used."""
        if self.after is not None:
            return self.after
        if not view.n_labeled:
            return 1
        if find_target(view.estimator, view.y_labeled) != "single-label":
            return LABELS_PER_CLASS * N_CLASSES
        return LABELS_PER_CLASS * len(np.unique(view.y_labeled))


class SEALS(WrapperStrategy):
    """Apply the strategy to the nearest neighbors of the labeled items.

    Only the `n_neighbors` nearest candidates of each labeled item are considered: an
    uncertain or rare item is usually near a labeled one.

    Parameters
    ----------
    strategy : str, strategy or callable, default="skactive:margin"
        The strategy to apply to the neighbors.
    n_neighbors : int, default=100
        Number of nearest candidates of each labeled item.

    Notes
    -----
    Cost: O(n m d) for the neighbors, for new labels only from the second query of a
    learner on, and that of the strategy on at most m times `n_neighbors` candidates. If
    these are fewer than are queried, the rest is drawn at random. Of candidates that
    are equally near, the first ones of the pool are considered.

    When to use: on pools of millions if features are cheap and predictions are
    expensive.

    References
    ----------
    C. Coleman et al., "Similarity search for efficient active learning and search of
    rare concepts", AAAI 2022.

    Examples
    --------
    The item at 0 is the most uncertain one, but it is no nearest neighbor of a label:

    >>> from skactive import ActiveLearner, get_strategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = get_strategy("seals", strategy="entropy", n_neighbors=1)
    >>> learner = ActiveLearner(LogisticRegression(), strategy)
    >>> learner = learner.fit([[-1.0], [1.0]], [0, 1])
    >>> learner.query([[-1.1], [0.0], [0.9], [-4.0]], 1)
    array([2])
    """

    _parameter_constraints = {
        "strategy": _STRATEGY,
        "n_neighbors": [POSITIVE_INT],
    }
    own_requires = frozenset({"features", "labeled"})

    def __init__(
        self, strategy: Any = "skactive:margin", n_neighbors: int = 100
    ) -> None:
        self.strategy = strategy
        self.n_neighbors = n_neighbors

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select among the neighbors of the labeled items."""
        _, neighbors = view.labeled_neighbors(self.n_neighbors)
        return self._ask_among("strategy", view, np.unique(neighbors), n_queries)


class AnchorAL(WrapperStrategy):
    """Apply the strategy to the candidates most similar to anchors of each class.

    The anchors of a class are some of its labeled items, far from each other. Each
    class has the same number of them, so that a rare class gets as many of the
    considered candidates as a frequent one. Other anchors are drawn in each query.

    Parameters
    ----------
    strategy : str, strategy or callable, default="skactive:margin"
        The strategy to apply to the most similar candidates.
    n_anchors : int, default=10
        Number of anchors of each class, drawn by k-means++ from its labeled items. A
        class with fewer items uses all of them.
    n_neighbors : int, default=50
        Number of most similar candidates of each anchor, by the cosine.
    sample_size : int, default=1000
        Maximum number of candidates that are considered, or the batch size if that is
        more: those with the highest mean cosine to the anchors that they are among the
        `n_neighbors` most similar candidates of.

    Notes
    -----
    Cost: O(n a d) for a anchors, at most `n_anchors` per class, and that of the
    strategy on at most `sample_size` candidates. If these are fewer than are queried,
    the rest is drawn at random.

    When to use: on large pools in which a class is rare, with at least one label of it.

    Anchors by k-means++ and the mean over the anchors are those of the paper. Its
    program searches an approximate index and can choose the anchors of rare classes in
    another way; here the search is exact, and all classes are treated alike.

    References
    ----------
    P. Lesci, A. Vlachos, "AnchorAL: computationally efficient active learning for large
    and imbalanced datasets", NAACL 2024, arXiv:2404.05623.

    Examples
    --------
    >>> from skactive import ActiveLearner, get_strategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = get_strategy("anchoral", n_neighbors=1)
    >>> learner = ActiveLearner(LogisticRegression(), strategy)
    >>> learner = learner.fit([[5.0, 1.0], [1.0, 5.0]], ["common", "rare"])
    >>> learner.query([[3.0, 3.1], [4.0, 1.0], [3.0, 6.0], [2.0, 9.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        "strategy": _STRATEGY,
        "n_anchors": [POSITIVE_INT],
        "n_neighbors": [POSITIVE_INT],
        "sample_size": [POSITIVE_INT],
    }
    own_requires = frozenset({"features", "labeled"})
    own_targets = CLASSES

    def __init__(
        self,
        strategy: Any = "skactive:margin",
        n_anchors: int = 10,
        n_neighbors: int = 50,
        sample_size: int = 1000,
    ) -> None:
        self.strategy = strategy
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.sample_size = sample_size

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select among the candidates most similar to the anchors."""
        distances, near = nearest_to_centers(
            view.feature_rows,
            self._draw_anchors(view),
            self.n_neighbors,
            view.uniform(),
        )
        rows, inverse = np.unique(near, return_inverse=True)
        # Among unit vectors, the squared distance is 2 minus twice the cosine.
        sums = np.bincount(inverse.ravel(), weights=distances.ravel())
        means = sums / np.bincount(inverse.ravel())
        best = top_n(-means, max(n_queries, self.sample_size), view.uniform()[rows])
        return self._ask_among("strategy", view, np.sort(rows[best]), n_queries)

    def _draw_anchors(self, view):
        """Return the anchors of all classes as unit vectors (a, d)."""
        rows = normalize(float_rows(view.labeled_features)[:])
        y = np.asarray(view.y_labeled)
        if y.ndim == 2:  # of each label, the items that have it
            groups = [np.flatnonzero(column) for column in y.T if column.any()]
        else:
            groups = [np.flatnonzero(y == label) for label in np.unique(y)]
        anchors = []
        for own in groups or [np.arange(len(y))]:
            if len(own) > self.n_anchors:
                own = own[draw_spread(rows[own], self.n_anchors, view.rng)]
            anchors.append(own)
        rows = rows[np.concatenate(anchors)]
        return rows.toarray() if sparse.issparse(rows) else rows


class ClassBalanced(WrapperStrategy):
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
    One item of each predicted class, where the model is least certain:

    >>> from skactive import ActiveLearner, get_strategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = get_strategy("class_balanced", strategy="entropy")
    >>> learner = ActiveLearner(LogisticRegression(), strategy=strategy)
    >>> learner = learner.fit([[-3.0], [-2.0], [-1.0], [3.0]], [0, 0, 0, 1])
    >>> learner.query([[-3.0], [-0.5], [2.0], [3.0], [1.5]], 2)
    array([4, 2])
    """

    _parameter_constraints = {"strategy": _STRATEGY}
    own_requires = frozenset({"class_scores", "labeled"})
    own_targets = SINGLE_LABEL

    def __init__(self, strategy: Any = "skactive:margin") -> None:
        self.strategy = strategy

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select per predicted class."""
        predicted = view.class_scores.argmax(axis=1)
        counts = (view.y_labeled[:, None] == view.classes).sum(axis=0)
        available = np.bincount(predicted, minlength=len(counts))
        classes = _fill(counts, available, n_queries, view.rng)
        picks = np.empty(n_queries, dtype=np.intp)
        for c in np.unique(classes):
            members, taken = np.flatnonzero(predicted == c), classes == c
            best = self.select_by("strategy", view.take(members), int(taken.sum()))
            picks[taken] = members[best]
        return picks


def _fill(counts, available, n_queries, rng):
    """Return the class with fewest labels for each of n picks (n,), ties at random.

    `counts` (k,) are the labels so far and `available` (k,) the candidates.
    """
    counts, left = counts.copy(), available.copy()
    classes = np.empty(n_queries, dtype=np.intp)
    for i in range(n_queries):
        open_counts = np.where(left > 0, counts, np.iinfo(counts.dtype).max)
        classes[i] = rng.choice(np.flatnonzero(open_counts == open_counts.min()))
        counts[classes[i]] += 1
        left[classes[i]] -= 1
    return classes
