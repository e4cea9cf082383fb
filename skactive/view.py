"""What a strategy may see of the pool: each quantity once, and only if asked."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ._containers import take_rows
from ._sklearn import num_samples
from .capabilities import CAPABILITIES, check_capability

__all__ = ["PoolView", "split_estimator"]


def split_estimator(estimator):
    """Split an estimator into what makes features and what decides on them.

    Parameters
    ----------
    estimator : estimator
        Fitted or not. A fitted search stands for its `best_estimator_`, a
        `FrozenEstimator` for what it holds.

    Returns
    -------
    front : Pipeline or None
        All steps of a pipeline but the last; None for anything else.
    final : estimator
    """
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            break
    if not isinstance(estimator, Pipeline):
        return None, estimator
    front = estimator[:-1] if len(estimator) > 1 else None
    inner, final = split_estimator(estimator[-1])
    if inner is None:
        return front, final
    steps = [] if front is None else front.steps
    return Pipeline([*steps, ("last", inner)]), final


class PoolView:
    """The candidates of one query and what the model says of them.

    A view is made by :meth:`ActiveLearner.query` and handed to the strategy. Each
    quantity is computed when it is first asked for, once, and is read-only. The
    front steps of a pipeline are applied once, whatever the strategy looks at.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, series or sequence of n items
        The pool, as the user gave it.
    estimator : estimator or None, default=None
        The fitted model; None before there is one.
    unfitted : estimator or None, default=None
        Where there is no model: the estimator whose front steps, fitted on the pool,
        give features to a cold start.
    X_labeled : same kind as `X` or None, default=None
        The m items labelled so far.
    y_labeled : ndarray of shape (m,) or None, default=None
        Their labels.
    requires : frozenset of str or None, default=None
        What the strategy declared to look at; None allows everything.
    name : str, default="strategy"
        What to call the strategy in error messages.
    rng : numpy.random.Generator
        The generator of this query.

    Raises
    ------
    TypeError
        If the model lacks something that `requires` names; before any work is done.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.view import PoolView
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    >>> view = PoolView(np.array([[0.0], [3.0]]), estimator=model)
    >>> view.proba[0]
    array([0.5, 0.5])
    """

    def __init__(
        self,
        X,
        *,
        estimator=None,
        unfitted=None,
        X_labeled=None,
        y_labeled=None,
        requires=None,
        name="strategy",
        rng=None,
    ):
        self._X = X
        self.estimator = estimator
        self._X_labeled = X_labeled
        self._y_labeled = y_labeled
        self._requires = requires
        self._name = name
        self.rng = np.random.default_rng() if rng is None else rng
        model = unfitted if estimator is None else estimator
        self._front, self._final = split_estimator(model)
        if estimator is None:
            self._final = None
            self._front = None if self._front is None else clone(self._front)
        self._parent = None
        self._positions = None
        self._computed = {}
        for capability in sorted(requires or ()):
            self._check_capability(capability)

    def __len__(self):
        return num_samples(self._X) if self._parent is None else len(self._positions)

    def __repr__(self):
        return f"<PoolView of {len(self)} candidates, computed: {list(self._computed)}>"

    @property
    def X(self):
        """The candidates, in the container that the user passed."""
        return _read_only(self._items)

    @property
    def proba(self):
        """Class probabilities, ndarray of shape (n, k)."""
        return self._quantity("proba", self._predict_proba)

    @property
    def class_scores(self):
        """Probabilities, or else decision values, ndarray of shape (n, k).

        A binary decision function becomes two columns, half its value against and
        half for the second class, so that their gap is its absolute value.
        """
        return self._quantity("class_scores", self._score_classes)

    def draws(self, n_draws=50):
        """Class probabilities under draws of the model's parameters.

        Parameters
        ----------
        n_draws : int, default=50
            How many models to draw.

        Returns
        -------
        draws : ndarray of shape (n, n_draws, k)
            `draws[:, t]` comes from one and the same model for every row.
        """
        self._check_allowed("draws")
        seed = self._root._draw_seed
        return self._remember(
            ("draws", n_draws),
            lambda: self._final.sample_proba(
                self._inputs, n_draws=n_draws, random_state=seed
            ),
        )

    @property
    def features(self):
        """Representations of the candidates, ndarray or CSR matrix of shape (n, d).

        The final estimator's `transform` where it has one, else the output of the
        pipeline's front steps, else `X`.
        """
        return self._quantity("features", lambda: self._represent(self._inputs))

    @property
    def labeled_features(self):
        """Representations of the labelled items, shape (m, d)."""
        self._check_allowed("labeled")
        self._check_allowed("features")
        root = self._root
        return root._remember(
            "labeled_features",
            lambda: root._represent(root._apply_front(root._X_labeled)),
        )

    @property
    def y_labeled(self):
        """Labels so far, ndarray of shape (m,)."""
        self._check_allowed("labeled")
        return _read_only(self._root._y_labeled)

    @property
    def gradients(self):
        """What the final estimator's `gradient_factors` gives for the candidates."""
        return self._quantity(
            "gradients", lambda: self._final.gradient_factors(self._inputs)
        )

    @property
    def classes(self):
        """Classes in the order of the columns of `proba`, ndarray of shape (k,)."""
        if self.estimator is None:
            raise TypeError(
                f"strategy {self._name!r} asks for the classes, and there is no fitted "
                "model with two classes yet."
            )
        return _read_only(np.asarray(self.estimator.classes_))

    @property
    def n_jobs(self):
        """Number of workers that joblib allows here, from `joblib.parallel_config`."""
        return effective_n_jobs(None)

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
    def _draw_seed(self):
        return int(self.rng.integers(2**31))

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

    def _quantity(self, capability, compute):
        self._check_allowed(capability)
        return self._remember(capability, compute)

    def _remember(self, key, compute, frozen=True):
        if key not in self._computed:
            if self._parent is not None and self._parent._has(key):
                inherited = self._parent._remember(key, compute, frozen)
                value = _index(inherited, self._positions)
            else:
                value = compute()
            self._computed[key] = _read_only(value) if frozen else value
        return self._computed[key]

    def _has(self, key):
        return key in self._computed or (
            self._parent is not None and self._parent._has(key)
        )

    def _apply_front(self, X):
        if self._front is None:
            return X
        if self.estimator is None:
            root = self._root
            if "fitted_front" not in root._computed:
                root._computed["fitted_front"] = self._front.fit(root._X)
            return root._computed["fitted_front"].transform(X)
        return self._front.transform(X)

    def _represent(self, inputs):
        if hasattr(self._final, "transform"):
            inputs = self._final.transform(inputs)
        if sparse.issparse(inputs):
            return inputs.tocsr()
        return np.asarray(inputs)

    def _predict_proba(self):
        proba = self._final.predict_proba(self._inputs)
        if isinstance(proba, list) or np.ndim(proba) != 2:
            raise TypeError(
                f"strategy {self._name!r} needs one distribution over the classes for "
                f"each item; {type(self._final).__name__} predicts several outputs."
            )
        return proba

    def _score_classes(self):
        if hasattr(self._final, "predict_proba"):
            return self._remember("proba", self._predict_proba)
        decision = np.asarray(self._final.decision_function(self._inputs))
        k = len(self.classes)
        if decision.ndim == 1:
            return np.stack([-decision / 2, decision / 2], axis=1)
        if decision.shape[1] != k:
            raise TypeError(
                f"strategy {self._name!r} needs one decision value per class, {k}; "
                f"{type(self._final).__name__} gives {decision.shape[1]}. Use "
                "decision_function_shape='ovr'."
            )
        return decision

    # What may be asked for.

    def _check_allowed(self, capability):
        if self._requires is None:
            self._check_capability(capability)
        elif capability not in self._requires:
            what = CAPABILITIES[capability].gives
            raise AttributeError(
                f"strategy {self._name!r} asks its view for {what}, which it did not "
                f"declare. Add {capability!r} to its `requires`."
            )

    def _check_capability(self, capability):
        check_capability(
            capability,
            name=self._name,
            final=self._final,
            front=self._front,
            X=self._X,
            y_labeled=self._y_labeled,
        )


def _index(value, positions):
    if isinstance(value, tuple):
        return tuple(part[positions] for part in value)
    return value[positions] if hasattr(value, "ndim") else take_rows(value, positions)


def _read_only(value):
    """Share the memory of an array or CSR matrix, but not the right to write."""
    if isinstance(value, tuple):
        return tuple(map(_read_only, value))
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if sparse.issparse(value) and value.format == "csr":
        parts = (value.data, value.indices, value.indptr)
        locked = type(value)(value.shape, dtype=value.dtype)
        locked.data, locked.indices, locked.indptr = map(_read_only, parts)
        return locked
    return value
