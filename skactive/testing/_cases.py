"""What the checks share: a strategy under test, pools with a model, honest asking."""

import copy
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone

from .._utils._plugins import validate
from ..learner import ActiveLearner
from ..registry import get_strategy, resolve
from ..strategies._base import FunctionStrategy, PointwiseStrategy
from ..view._pool_view import PoolView
from ._models import GivenProba


def ensure(condition, fault):
    """Raise an AssertionError unless a condition holds.

    Parameters
    ----------
    condition : bool
    fault : str
        What is wrong and what to do about it.
    """
    if not condition:
        raise AssertionError(fault)


class Subject:
    """The strategy under test.

    Parameters
    ----------
    strategy : str, Strategy instance or callable
        What a user would pass as `strategy=`.

    Attributes
    ----------
    given : str, Strategy instance or callable
        The same.
    label : str
        What to call it.
    """

    def __init__(self, strategy):
        if isinstance(strategy, type):
            resolve(strategy)  # raises: an instance is wanted
        self.given = strategy
        if isinstance(strategy, str):
            self.label = strategy
        elif hasattr(strategy, "select"):
            self.label = _safe_repr(strategy)
        else:
            self.label = getattr(strategy, "__name__", repr(strategy))
        self.sample = self.make()
        with suppress(AttributeError, RuntimeError):  # a check names such an __init__
            validate(self.sample)

    def make(self):
        """Make a fresh strategy, without relying on its `clone` to work.

        Returns
        -------
        strategy : Strategy
        """
        if isinstance(self.given, str):
            return get_strategy(self.given)
        if hasattr(self.given, "select"):
            return copy.deepcopy(self.given)
        return resolve(self.given)

    @property
    def requires(self):
        """What the strategy declares; None for a function, which declares nothing."""
        return getattr(self.sample, "requires", None)

    @property
    def is_function(self):
        """Whether it is a plain function of the view."""
        return isinstance(self.sample, FunctionStrategy)

    @property
    def is_pointwise(self):
        """Whether it gives each candidate a score of its own."""
        return isinstance(self.sample, PointwiseStrategy)


def _safe_repr(strategy):
    try:
        return repr(strategy)
    except Exception:  # a check will say what is wrong with its parameters
        return type(strategy).__name__


@dataclass(frozen=True)
class Case:
    """A pool, a fitted model and the labels so far.

    Attributes
    ----------
    X : container of n rows
        The pool; see :mod:`skactive.testing._models`.
    model : estimator
        Fitted.
    X_labeled : same kind as `X`
    y_labeled : ndarray of shape (m,)
    """

    X: object
    model: object
    X_labeled: object
    y_labeled: np.ndarray

    def view(self, strategy, seed=0, rows=None):
        """Make the view that a strategy gets, with exactly what it requires.

        Parameters
        ----------
        strategy : Strategy
        seed : int, default=0
            Of the view's generator.
        rows : ndarray of int or None, default=None
            Positions to limit the view to.

        Returns
        -------
        view : PoolView
        """
        view = PoolView(
            self.X,
            estimator=self.model,
            X_labeled=self.X_labeled,
            y_labeled=self.y_labeled,
            requires=getattr(strategy, "requires", None),
            optional=getattr(strategy, "optional", frozenset()),
            name=type(strategy).__name__,
            rng=np.random.default_rng(seed),
        )
        return view if rows is None else view.take(rows)

    def learner(self, subject, random_state=0):
        """Make a learner that was taught the labelled rows.

        Parameters
        ----------
        subject : Subject
        random_state : int, default=0

        Returns
        -------
        learner : ActiveLearner
        """
        learner = ActiveLearner(
            clone(self.model), subject.given, random_state=random_state
        )
        return learner.fit(self.X_labeled, self.y_labeled)

    def with_rows(self, convert):
        """Convert the pool and the labelled rows into another container.

        Parameters
        ----------
        convert : callable
            Takes and returns rows.

        Returns
        -------
        case : Case
        """
        X, X_labeled = convert(self.X), convert(self.X_labeled)
        model = clone(self.model).fit(X_labeled, self.y_labeled)
        return replace(self, X=X, X_labeled=X_labeled, model=model)


def make_case(n=30, k=3, *, n_labeled=None, proba=None, model=None, equal=False):
    """Make a pool of n different items, and some labelled ones of each class.

    Parameters
    ----------
    n : int, default=30
        Number of candidates.
    k : int, default=3
        Number of classes.
    n_labeled : int or None, default=None
        Number of labelled rows, None means 3 per class.
    proba : ndarray of shape (n, k) or None, default=None
        What the model says of the candidates; None draws it.
    model : estimator or None, default=None
        None means :class:`GivenProba`.
    equal : bool, default=False
        Whether all candidates are copies of the first.

    Returns
    -------
    case : Case
        With `X` of shape (n, k + 4).
    """
    rng = np.random.default_rng(20260101)
    m = 3 * k if n_labeled is None else n_labeled
    rows = np.hstack([rng.dirichlet(np.ones(k), n + m), rng.normal(size=(n + m, 4))])
    X, X_labeled = rows[:n].copy(), rows[n:].copy()
    if proba is not None:
        X[:, :k] = proba
    if equal:
        X[:] = X[0]
    y_labeled = np.array([f"class {i % k}" for i in range(m)])
    model = clone(GivenProba() if model is None else model).fit(X_labeled, y_labeled)
    return Case(X, model, X_labeled, y_labeled)


def ask(strategy, case, n, *, seed=0, rows=None):
    """Let a strategy choose, and check that it chose n positions.

    Parameters
    ----------
    strategy : Strategy
    case : Case
    n : int
        How many to ask for.
    seed : int, default=0
    rows : ndarray of int or None, default=None
        Positions to limit the view to.

    Returns
    -------
    picks : ndarray of int, shape (n,)
    """
    view = case.view(strategy, seed, rows)
    return as_picks(strategy.select(view, n), n, len(view))


def as_picks(picks, n, n_candidates):
    """Check what a strategy chose.

    Parameters
    ----------
    picks : array-like of int
        What `select` returned.
    n : int
        How many were asked for.
    n_candidates : int
        Out of how many.

    Returns
    -------
    picks : ndarray of int, shape (n,)
    """
    asked = f"select(view, {n}) on {n_candidates} candidates gave"
    picks = np.asarray(picks if hasattr(picks, "__len__") else list(picks))
    ensure(
        picks.ndim == 1 and picks.dtype.kind in "iu",
        f"{asked} an array of shape {picks.shape} and dtype {picks.dtype}; return a "
        "one-dimensional array of integer positions, not scores, floats or a mask.",
    )
    ensure(
        len(picks) == n,
        f"{asked} {len(picks)} positions; return exactly n, which never exceeds "
        "len(view).",
    )
    outside = picks[(picks < 0) | (picks >= n_candidates)]
    ensure(
        outside.size == 0,
        f"{asked} the position {outside[:1]}; return positions in the view, from 0 to "
        "len(view) - 1, not in another pool.",
    )
    ensure(
        np.unique(picks).size == n,
        f"{asked} a position more than once: {picks.tolist()}; leave out what is "
        "already chosen.",
    )
    return picks.astype(np.intp)


def score(strategy, case, *, seed=0, rows=None):
    """Let a pointwise strategy score, and check that it gave numbers.

    Parameters
    ----------
    strategy : PointwiseStrategy
    case : Case
    seed : int, default=0
    rows : ndarray of int or None, default=None
        Positions to limit the view to.

    Returns
    -------
    scores : ndarray of shape (n,)
    """
    view = case.view(strategy, seed, rows)
    scores = np.asarray(strategy.score(view))
    ensure(
        scores.shape == (len(view),) and scores.dtype.kind in "fiub",
        f"score(view) on {len(view)} candidates gave an array of shape "
        f"{scores.shape} and dtype {scores.dtype}; return one real number for each.",
    )
    bad = np.flatnonzero(np.isnan(scores))
    ensure(
        bad.size == 0,
        f"score(view) is NaN for {bad.size} of {len(view)} candidates, the first at "
        f"position {bad[:1]}; take the limit where a logarithm or a division has none "
        "(0 log 0 is 0), or give -inf to what should come last.",
    )
    return scores
