"""Strategies made of strategies: each has a parameter that is one itself.

The defaults say whose they are, so that no plugin of the same name is in their way.
"""

from numbers import Integral, Real

import numpy as np

from .._math._selection import top_n
from .._utils._containers import check_picks
from .._utils._sklearn import HasMethods, Interval, RealNotInt, StrOptions
from ._base import SINGLE_LABEL, TARGETS, Strategy

_STRATEGY = [str, HasMethods("select"), callable]


class _Composite(Strategy):
    """Base of the strategies that ask others; it needs what they need."""

    _needs = frozenset()  # what it uses itself
    _targets = TARGETS  # what it is defined for itself
    _parts = ("strategy",)  # parameters that are strategies

    @property
    def requires(self):
        """What it and its parts look at; None if one of them declares nothing."""
        parts = [getattr(self._resolve(name), "requires", None) for name in self._parts]
        return None if None in parts else self._needs.union(*parts)

    @property
    def targets(self):
        """Targets that it and all of its parts are defined for."""
        parts = [
            getattr(self._resolve(name), "targets", TARGETS) for name in self._parts
        ]
        return self._targets.intersection(*parts)

    @property
    def optional(self):
        """What its parts may look at beside."""
        parts = [self._resolve(name) for name in self._parts]
        optional = [getattr(part, "optional", frozenset()) for part in parts]
        return frozenset().union(*optional)

    def _validate_params(self):
        super()._validate_params()
        for name in self._parts:
            self._resolve(name)

    def _resolve(self, parameter):
        # Not at the top: the registry imports the strategies' base.
        from ..registry import resolve

        return resolve(getattr(self, parameter), argument=parameter)

    def _ask(self, parameter, view, n):
        """Let a part choose n of a view, and check that it did."""
        given = getattr(self, parameter)
        name = given if isinstance(given, str) else repr(given)
        picks = self._resolve(parameter).select(view, n)
        return check_picks(picks, n, len(view), name)


class Subsample(_Composite):
    """Ask the strategy about a random part of the pool.

    Makes a costly strategy affordable, and a greedy one more diverse.

    Parameters
    ----------
    strategy : str, strategy or callable, default="skactive:margin"
        What to ask about the sample.
    size : int or float, default=10_000
        Candidates in the sample; a float is a fraction of them, in (0, 1]. Never
        fewer than are to be chosen.

    Notes
    -----
    Cost: O(n) and that of the strategy on `size` candidates. Only the sample is
    transformed and predicted.

    When to use: on pools that are large for the strategy or for the encoder.

    References
    ----------
    Y. Yang, M. Loog, "Active learning using uncertainty information", ICPR 2016, and
    most practice: sampling the pool before scoring it.

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

    def __init__(self, strategy="skactive:margin", size=10_000):
        self.strategy = strategy
        self.size = size

    def select(self, view, n):
        """Choose from a sample drawn uniformly without replacement.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and what the model says of them.
        n : int
            How many to choose.

        Returns
        -------
        positions : ndarray of int, shape (n,)
        """
        size = self.size
        if not isinstance(size, Integral):
            size = int(np.ceil(size * len(view)))
        size = max(n, size)
        if size >= len(view):
            return self._ask("strategy", view, n)
        sample = np.sort(top_n(view.uniform(), size, view.rng))
        return sample[self._ask("strategy", view.take(sample), n)]


class Prefilter(_Composite):
    """Ask the second strategy about what the first one likes best.

    With an uncertainty first and a diversity second it is the usual two-step batch
    selection: unsure candidates, and no two of a kind.

    Parameters
    ----------
    first : str, strategy or callable, default="skactive:margin"
        Chooses `factor` times as many candidates as are wanted.
    second : str, strategy or callable, default="skactive:embedding_kmeans"
        Chooses the batch among them.
    factor : int or float, default=10
        At least 1.

    Notes
    -----
    Cost: that of the first on n candidates and of the second on `factor` b.

    When to use: for large batches, in which pure uncertainty repeats itself.

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
        self, first="skactive:margin", second="skactive:embedding_kmeans", factor=10
    ):
        self.first = first
        self.second = second
        self.factor = factor

    def select(self, view, n):
        """Choose twice.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and what the model says of them.
        n : int
            How many to choose.

        Returns
        -------
        positions : ndarray of int, shape (n,)
        """
        wanted = min(len(view), int(np.ceil(self.factor * n)))
        kept = self._ask("first", view, wanted)
        return kept[self._ask("second", view.take(kept), n)]


class SEALS(_Composite):
    """Ask the strategy about the neighbours of what is labelled.

    Only the `k` nearest candidates of each labelled item are looked at: an uncertain
    or rare item mostly lies near one that is known already.

    Parameters
    ----------
    strategy : str, strategy or callable, default="skactive:margin"
        What to ask about the neighbours.
    k : int, default=100
        Nearest candidates of each labelled item.
    method : {"auto", "exact", "faiss"}, default="auto"
        How to find them; see `nearest`.

    Notes
    -----
    Cost: O(n m d) for exact neighbours, of new labels only from the second query of a
    learner on, and that of the strategy on at most k m candidates. If these are fewer
    than wanted, the rest is drawn at random.

    When to use: on pools of millions whose features are cheap and whose predictions
    are not.

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

    def __init__(self, strategy="skactive:margin", k=100, method="auto"):
        self.strategy = strategy
        self.k = k
        self.method = method

    def select(self, view, n):
        """Choose among the neighbours of the labelled items.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and what the model says of them.
        n : int
            How many to choose.

        Returns
        -------
        positions : ndarray of int, shape (n,)
        """
        _, neighbors = view.labeled_neighbors(self.k, self.method)
        near = np.unique(neighbors)
        picks = near[self._ask("strategy", view.take(near), min(n, len(near)))]
        if len(picks) < n:
            others = np.setdiff1d(np.arange(len(view)), near, assume_unique=True)
            fill = top_n(view.uniform()[others], n - len(picks), view.rng)
            picks = np.concatenate([picks, others[fill]])
        return picks


class ClassBalanced(_Composite):
    """Ask the strategy within each predicted class, most where labels are fewest.

    Each place of the batch goes to the class with the fewest labels so far, the ones
    asked for counted as their predictions, as long as it has candidates.

    Parameters
    ----------
    strategy : str, strategy or callable, default="skactive:margin"
        What to ask about the candidates of one predicted class.

    Notes
    -----
    Cost: O(n k) and that of the strategy on each predicted class.

    When to use: where a class is rare, so that a batch of the unsure or the random
    would hardly hold it.

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

    def __init__(self, strategy="skactive:margin"):
        self.strategy = strategy

    def select(self, view, n):
        """Choose per predicted class.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and what the model says of them.
        n : int
            How many to choose.

        Returns
        -------
        positions : ndarray of int, shape (n,)
        """
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
    """Class of each of n places: the one that lags behind, ties at random.

    Parameters
    ----------
    counts : ndarray of int, shape (k,)
        Labels so far.
    available : ndarray of int, shape (k,)
        Candidates.
    n : int
        At most `available.sum()`.
    rng : numpy.random.Generator

    Returns
    -------
    places : ndarray of int, shape (n,)
    """
    counts, left = counts.copy(), available.copy()
    places = np.empty(n, dtype=np.intp)
    for i in range(n):
        open_counts = np.where(left > 0, counts, np.iinfo(counts.dtype).max)
        places[i] = rng.choice(np.flatnonzero(open_counts == open_counts.min()))
        counts[places[i]] += 1
        left[places[i]] -= 1
    return places
