"""Views of items under one model: what is computed once, and how views share it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from sklearn.base import clone

from ._chunks import lazy_rows
from ._containers import take_rows
from ._pipelines import split_estimator
from ._sklearn import is_linear_classifier, num_samples
from .capabilities import CAPABILITIES, check_capability, check_target
from .quantities import read_only, take_from

__all__ = ["SharedView"]

_NO_MATTER = 2**20  # bytes, up to which a copy is none


class SharedView:
    """Items, the model that judges them, and what is known of them so far.

    The base of :class:`skactive.view.PoolView`, which adds the quantities.
    """

    def __init__(
        self,
        X,
        *,
        estimator=None,
        unfitted=None,
        X_labeled=None,
        y_labeled=None,
        trained=None,
        requires=None,
        optional=frozenset(),
        targets=None,
        name="strategy",
        rng=None,
        position_rng=None,
        memory=None,
    ):
        self._X = X
        self.estimator = estimator
        self._X_labeled = X_labeled
        self._y_labeled = y_labeled
        self._trained = trained
        self._requires = requires
        self._optional = optional
        self._name = name
        self.rng = np.random.default_rng() if rng is None else rng
        if position_rng is None:
            position_rng = self.rng.spawn(1)[0]
        self._position_rng = position_rng
        self._model = unfitted if estimator is None else estimator
        self._front, self._final = split_estimator(self._model)
        if estimator is None:
            self._final = None
            self._front = None if self._front is None else clone(self._front)
        self._parent = None
        self._positions = None
        self._pool = None
        self._memory = {} if memory is None else memory
        self._computed = {}
        if targets is not None:
            check_target(targets, **self._known())
        for capability in sorted(requires or ()):
            self._check_capability(capability)

    def __len__(self):
        return num_samples(self._X) if self._parent is None else len(self._positions)

    def __repr__(self):
        return f"<PoolView of {len(self)} candidates, computed: {list(self._computed)}>"

    @property
    def X(self):
        """The candidates, in the container that the user passed."""
        return read_only(self._items)

    def take(self, positions):
        """View some of the candidates; what is computed is shared, not repeated.

        Parameters
        ----------
        positions : array-like of int, shape (p,)
            Positions in this view.

        Returns
        -------
        view : PoolView
            Of p candidates, with the same model and generator.
        """
        child = object.__new__(type(self))
        child.__dict__.update(self.__dict__)
        child._parent = self
        child._positions = np.asarray(positions, dtype=np.intp)
        child._computed = {}
        child.__dict__.pop("_root", None)
        child.__dict__.pop("_items", None)
        return child

    def on(self, X):
        """View other items under the same model.

        Parameters
        ----------
        X : container of p items
            Of the pool's kind.

        Returns
        -------
        view : PoolView
            Of these items; it may look at what this one may.
        """
        other = object.__new__(type(self))
        other.__dict__.update(self._root.__dict__)
        other._X, other._computed, other._memory = X, {}, {}
        other._pool = self._root if self.estimator is None else None
        other.__dict__.pop("_root", None)
        other.__dict__.pop("_items", None)
        other.__dict__["_seeds"] = self._root._seeds
        return other

    def uniform(self):
        """Draw one random number per candidate.

        A number belongs to a position in the pool, not to a place among the candidates:
        two queries of one round that differ in their candidates draw the same numbers
        for what they share. Each call of a query draws new numbers.

        Returns
        -------
        numbers : ndarray of float64, shape (n,)
            Uniform in [0, 1).
        """
        numbers = self._position_rng.random(len(self._root))
        return numbers if self._parent is None else numbers[self._pool_positions]

    # How quantities are computed: once here, or taken from the parent's.

    @cached_property
    def _root(self):
        return self if self._parent is None else self._parent._root

    @cached_property
    def _items(self):
        if self._parent is None:
            return self._X
        return take_rows(self._parent._items, self._positions)

    @cached_property
    def _seeds(self):
        """Seeds of the posterior draws and of the language model's targets."""
        # From a generator of their own: a strategy's numbers must not depend on
        # whether it looks at draws before or after it takes one.
        return self.rng.spawn(1)[0].integers(2**31, size=2).tolist()

    @property
    def _pool_positions(self):
        """Where the candidates are in the pool, ndarray of int."""
        if self._parent is None:
            return np.arange(len(self))
        above = self._parent
        return (
            self._positions
            if above._parent is None
            else above._pool_positions[self._positions]
        )

    @property
    def _inputs(self):
        """What the final estimator takes: the candidates after the front steps."""
        if self._front is None:
            return self._items
        if self.estimator is None and self._parent is not None:
            # A cold start fits the front steps on the pool, so on all of it.
            inputs = self._parent._inputs
            return self._remember(
                "inputs", lambda: take_rows(inputs, self._positions), frozen=False
            )
        return self._remember(
            "inputs", lambda: self._apply_front(self._items), frozen=False
        )

    @property
    def _input_rows(self):
        """What the final estimator takes, for uses that take a chunk at a time."""
        if (
            self._front is None
            and self._parent is not None
            and "_items" not in vars(self)
        ):
            # A linear model takes less time than a copy.
            least = _NO_MATTER if is_linear_classifier(self._final) else None
            rows = lazy_rows(self._parent._input_rows, self._positions, least)
            if rows is not None:
                return rows
        return self._inputs

    def _quantity(self, capability, compute):
        self._check_allowed(capability)
        return self._remember(capability, compute)

    def _remember(self, key, compute, frozen=True):
        if key not in self._computed:
            if self._parent is not None and self._parent._has(key):
                inherited = self._parent._remember(key, compute, frozen)
                value = take_from(inherited, self._positions)
            else:
                value = compute()
            self._computed[key] = read_only(value) if frozen else value
        return self._computed[key]

    def _has(self, key):
        return key in self._computed or (
            self._parent is not None and self._parent._has(key)
        )

    def _apply_front(self, X):
        if self._front is None:
            return X
        if self.estimator is None:
            # A cold start's front steps are fitted on the pool, whatever is viewed.
            root = self._root._pool or self._root
            if "fitted_front" not in root._computed:
                root._computed["fitted_front"] = self._front.fit(root._X)
            return root._computed["fitted_front"].transform(X)
        return self._front.transform(X)

    # What may be asked for.

    def _check_allowed(self, capability):
        if self._requires is None or capability in self._optional:
            self._check_capability(capability)
        elif capability not in self._requires:
            what = CAPABILITIES[capability].gives
            raise AttributeError(
                f"strategy {self._name!r} asks its view for {what}, which it did not "
                f"declare. Add {capability!r} to its `requires`."
            )

    def _check_capability(self, capability):
        check_capability(capability, **self._known())

    def _known(self):
        return {
            "name": self._name,
            "final": self._final,
            "front": self._front,
            "X": self._X,
            "y_labeled": self._y_labeled,
            "model": self._model,
        }
