"""PoolView: what a strategy may see of the candidates of one query."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .._math._k_center import Metric, NearestCandidates, NearestDistances
from .._math._neighbors import nearest, squared_norms
from .._utils._chunks import LazyRows, as_floats, lazy_rows, map_rows
from .._utils._containers import is_dask, protect, take_rows
from .._utils._linear import boundary_distance, gradient_factors
from .._utils._pipelines import has_sampler, resample, split_estimator
from .._utils._sklearn import is_linear_classifier, num_samples
from . import _quantities
from ._quantities import check_capability, check_target, read_only, take_from
from ._query import PoolQuery

_CHEAP_COPY_BYTES = 2**20


class PoolView:
    """The candidates of one query and what the model predicts for them.

    A view is made by :meth:`ActiveLearner.query` and passed to the strategy. Each
    quantity is computed once, when it is first used, and is read-only. The front steps
    of a pipeline are applied once, whatever quantities the strategy uses.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, series or sequence of n items
        The pool, as the user passed it.
    estimator : estimator or None, default=None
        The fitted model; None before there is one.
    unfitted : estimator or None, default=None
        The estimator whose front steps, fitted on the pool, compute the features of a
        cold start. Used only if `estimator` is None.
    X_labeled : same kind as `X` or None, default=None
        The m labeled items.
    y_labeled : ndarray of shape (m,) or None, default=None
        Their labels.
    trained : tuple of (int, array-like or None) or None, default=None
        Number of these items, from the first on, that the model was trained on, and
        their sample weights. None means all of them, without weights.
    requires : frozenset of str or None, default=None
        Quantities that the strategy declares; None allows all.
    optional : frozenset of str, default=frozenset()
        Quantities that the strategy uses only where they are available.
    targets : frozenset of str or None, default=None
        Targets that the strategy is defined for; None allows all.
    name : str, default="strategy"
        Name of the strategy in error messages.
    rng : numpy.random.Generator or None, default=None
        The generator of this query.
    position_rng : numpy.random.Generator or None, default=None
        The generator of the random numbers that belong to positions in the pool, see
        `uniform`. None derives one from `rng`.
    memory : dict or None, default=None
        Distances that a learner keeps between queries. It is written to.

    Raises
    ------
    TypeError
        If the strategy is not defined for the model's targets, or the model lacks
        something that `requires` names. Both are checked before any work is done.

    Examples
    --------
    The view of two items, as a strategy gets it:

    >>> import numpy as np
    >>> from skactive.view import PoolView
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[-1.0], [1.0]], ["cold", "warm"])
    >>> view = PoolView(np.array([[0.0], [3.0]]), estimator=model)
    >>> for probabilities in view.proba:
    ...     print(probabilities.round(1))
    [0.5 0.5]
    [0.1 0.9]
    """

    def __init__(
        self,
        X: Any,
        *,
        estimator: Any = None,
        unfitted: Any = None,
        X_labeled: Any = None,
        y_labeled: NDArray | None = None,
        trained: tuple[int, ArrayLike | None] | None = None,
        requires: frozenset[str] | None = None,
        optional: frozenset[str] = frozenset(),
        targets: frozenset[str] | None = None,
        name: str = "strategy",
        rng: np.random.Generator | None = None,
        position_rng: np.random.Generator | None = None,
        memory: dict | None = None,
    ) -> None:
        rng = np.random.default_rng() if rng is None else rng
        model = unfitted if estimator is None else estimator
        front, final = split_estimator(model)
        query = PoolQuery(
            X,
            estimator=estimator,
            model=model,
            front=front,
            final=None if estimator is None else final,
            X_labeled=X_labeled,
            y_labeled=y_labeled,
            trained=trained,
            requires=requires,
            optional=optional,
            name=name,
            rng=rng,
            position_rng=rng.spawn(1)[0] if position_rng is None else position_rng,
        )
        self._set_items(query, X, memory={} if memory is None else memory)
        if targets is not None:
            check_target(targets, **query.arguments)
        for capability in sorted(requires or ()):
            check_capability(capability, **query.arguments)

    def _set_items(
        self, query, X, *, memory, parent=None, positions=None, transformed=False
    ):
        self._query = query
        self._X = X  # the items, or those that a parent views
        self._memory = memory
        self._parent = parent
        self._positions = positions  # in the parent
        self._is_transformed = transformed  # whether X went through the front steps
        self._copy = None  # the items, once they are copied from the parent's
        self._computed = {}

    def __len__(self) -> int:
        return num_samples(self._X) if self._parent is None else len(self._positions)

    def __repr__(self) -> str:
        return f"<PoolView of {len(self)} candidates, computed: {list(self._computed)}>"

    @property
    def X(self) -> Any:
        """The candidates, in the container that the user passed, or a copy of it.

        Changes do not reach what the user passed.
        """
        return self._shown_items

    @cached_property
    def _shown_items(self):
        items = read_only(self._items)
        return protect(items) if items is self._items else items

    @property
    def estimator(self) -> Any:
        """The fitted model, or None."""
        return self._query.estimator

    @property
    def final_estimator(self) -> Any:
        """The fitted estimator after the pipeline's front steps, or None."""
        return self._query.final

    @property
    def rng(self) -> np.random.Generator:
        """The generator of this query."""
        return self._query.rng

    @property
    def n_jobs(self) -> int:
        """Number of workers that joblib allows here, from `joblib.parallel_config`."""
        return effective_n_jobs(None)

    def take(self, positions: ArrayLike) -> PoolView:
        """Return a view of some of the candidates, which shares what is computed.

        Parameters
        ----------
        positions : array-like of int, shape (p,)
            Positions in this view.

        Returns
        -------
        view : PoolView
            View of p candidates, with the same model and generator.
        """
        positions = np.asarray(positions, dtype=np.intp)
        return _DerivedView(
            self._query,
            self._X,
            memory=self._memory,
            parent=self,
            positions=positions,
            transformed=self._is_transformed,
        )

    def split(self, n_parts: int) -> Iterator[tuple[NDArray, PoolView]]:
        """Yield parts of nearly the same number of candidates, consecutive in the pool.

        Distances that a part computes are kept for the same part of the next query.

        Parameters
        ----------
        n_parts : int
            Number of parts, from 1 to the number of candidates.

        Yields
        ------
        positions : ndarray of int, shape (p,)
            Positions in this view.
        part : PoolView
            View of these candidates. What it computes is released with it.
        """
        memories = self._memory.get("parts", ())
        if len(memories) != n_parts:
            memories = self._memory["parts"] = [{} for _ in range(n_parts)]
        order = np.argsort(self._pool_positions, kind="stable")
        split = np.array_split(order, n_parts)
        for positions, memory in zip(split, memories, strict=True):
            part = self.take(positions)
            part._memory = memory
            yield positions, part

    def on(self, X: Any) -> PoolView:
        """Return a view of other items under the same model.

        Parameters
        ----------
        X : container of p items
            Items of the same kind as the pool.

        Returns
        -------
        view : PoolView
            View of these items, with the same requirements and generator.
        """
        return _DerivedView(self._query, X, memory={})

    def uniform(self) -> NDArray[np.float64]:
        """Draw one random number per candidate.

        A number belongs to a position in the pool, not to a place among the candidates:
        two queries of one round that differ in their candidates draw the same numbers
        for the candidates they share. Each call within a query draws new numbers.

        Returns
        -------
        numbers : ndarray of float64, shape (n,)
            Uniform in [0, 1).
        """
        positions = None if self._parent is None else self._pool_positions
        return self._query.draw(len(self._root), positions)

    @property
    def target(self) -> str:
        """What the model predicts: "single-label", "multi-label" or "regression"."""
        return self._query.target

    @property
    def proba(self) -> NDArray:
        """Class probabilities, ndarray of shape (n, k).

        For multi-label targets, the probability of each label.
        """
        return self._quantity("proba", self._predict_proba)

    @property
    def predictions(self) -> NDArray:
        """What the model predicts, ndarray of shape (n,), or (n, k) for multi-label."""
        return self._quantity(
            "predictions",
            lambda: _quantities.predict(self._query.final, self._input_rows),
        )

    @property
    def variance(self) -> NDArray:
        """Variance of a regressor's prediction that more labels reduce, shape (n,)."""
        return self._quantity("variance", self._measure_variance)

    @property
    def class_scores(self) -> NDArray:
        """Probabilities, or else decision values, ndarray of shape (n, k).

        A binary decision function becomes two columns, minus and plus half its value,
        so that their gap is its absolute value.
        """
        return self._quantity("class_scores", self._score_classes)

    @property
    def margins(self) -> NDArray:
        """Gap between the two best classes, ndarray of shape (n,).

        The gap of the `class_scores`. For a linear classifier of two classes it is the
        absolute decision value, which has the same order and needs no probabilities.
        """
        self._check_allowed("class_scores")
        self._query.check_single_label("margins")
        return self._remember("margins", self._measure_margins)

    def offers(self, capability: str) -> bool:
        """Return whether the estimator has a quantity that the strategy may use.

        Parameters
        ----------
        capability : str
            A name of `requires` or `optional`, such as "features".

        Returns
        -------
        offered : bool
        """
        return self._query.offers(capability)

    @property
    def label_margins(self) -> NDArray:
        """Distance of each label from a change of its prediction, shape (n, k).

        For multi-label targets: ``|2 p - 1|``, or the absolute decision values of a
        model without probabilities.
        """
        scores = self.class_scores
        has_proba = hasattr(self._query.final, "predict_proba")
        return np.abs(2.0 * scores - 1.0 if has_proba else scores)

    def draws(self, n_draws: int = 50) -> NDArray:
        """Return predictions under posterior samples of the model.

        Parameters
        ----------
        n_draws : int, default=50
            Number of models to draw.

        Returns
        -------
        draws : ndarray of shape (n, n_draws, k)
            Class probabilities; `draws[:, t]` comes from one and the same model for
            every row. For a regressor, its predictions, of shape (n, n_draws).

        Raises
        ------
        TypeError
            If the estimator draws separately for each row. Use `map_draws` instead.
        """
        self._check_allowed("draws")
        _quantities.check_joint_draws(self._query.final, self._query.name)
        return self._remember(
            ("draws", n_draws), lambda: self._sampler(n_draws)(self._inputs)
        )

    def map_draws(self, function: Any, n_draws: int = 50) -> NDArray:
        """Reduce posterior draws row by row, without holding all of them.

        Parameters
        ----------
        function : callable
            Takes draws of shape (c, n_draws, k) of c candidates, (c, n_draws) for a
            regressor, and returns an array of c rows, which is copied. It must treat
            each row separately: some estimators draw separately for each row.
        n_draws : int, default=50
            Number of models to draw. They are those of `draws(n_draws)`.

        Returns
        -------
        values : ndarray of n rows
            The rows that `function` returned.
        """
        self._check_allowed("draws")
        return self._map_draws(function, n_draws)

    def _map_draws(self, function, n_draws):
        if self._has(("draws", n_draws)):
            source, draw = self._remember(("draws", n_draws), None), read_only
        else:
            source, draw = self._input_rows, self._sampler(n_draws)
        # An estimator with its own draws may hold a single network, or a device.
        n_jobs = 1 if self._query.draws_itself else self.n_jobs
        size = n_draws * (1 if self.target == "regression" else len(self.classes))
        return _quantities.map_draws(function, draw, source, len(self), size, n_jobs)

    @property
    def features(self) -> Any:
        """Representations of the candidates, ndarray or CSR matrix of shape (n, d).

        The final estimator's `transform` where it has one, else the output of the
        pipeline's front steps, else `X`. The `transform` of an ensemble of
        `estimators`, such as `VotingClassifier`, returns votes and is not used.
        """
        return self._quantity("features", self._represent)

    @property
    def feature_rows(self) -> Any:
        """The features, for code that reads a slice at a time, as `rows[slice]`.

        The candidates of a large array are not copied as a whole.
        """
        self._check_allowed("features")
        rows = self._input_rows
        is_lazy = isinstance(rows, LazyRows) and rows.nbytes >= _quantities.LARGE
        is_lazy = is_lazy and not _quantities.makes_features(self._query.final)
        return rows if is_lazy and not self._has("features") else self.features

    def _represent(self):
        final = self._query.final
        inputs = self._inputs if _quantities.makes_features(final) else self._input_rows
        return _quantities.represent(final, inputs)

    @property
    def labeled(self) -> PoolView:
        """View of the m labeled items under the same model, in the order taught."""
        self._check_allowed("labeled")
        return self._root._labeled_view

    @property
    def labeled_features(self) -> Any:
        """Representations of the labeled items, shape (m, d)."""
        return self.labeled.features

    @property
    def y_labeled(self) -> NDArray:
        """Labels so far, ndarray of shape (m,), or (m, k) for multi-label targets."""
        self._check_allowed("labeled")
        return read_only(self._query.y_labeled)

    @property
    def n_labeled(self) -> int:
        """Number of labeled items, m."""
        y = self._query.y_labeled
        return 0 if y is None else len(y)

    @property
    def trained(self) -> PoolView:
        """View of the r rows that the model was trained on.

        These are the labeled items without those that were only stored, by
        `teach(refit=False)`. For a pipeline with a sampler of imbalanced-learn, they
        are the resampled rows.
        """
        self._check_allowed("labeled")
        return self._root._training[0]

    @property
    def y_trained(self) -> NDArray:
        """Labels of the rows that the model was trained on, ndarray of shape (r,)."""
        self._check_allowed("labeled")
        return read_only(self._root._training[1])

    @property
    def sample_weight(self) -> NDArray | None:
        """Weights of the rows that the model was trained on, shape (r,), or None."""
        self._check_allowed("labeled")
        return read_only(self._root._training[2])

    @property
    def gradients(self) -> tuple:
        """Factors of each candidate's loss gradient at its predicted label.

        A tuple `(residuals, inputs)` of shapes (n, k) and (n, d). The gradient with
        respect to the weights of the last linear layer is the outer product of their
        rows.
        """
        return self._quantity("gradients", self._factor_gradients)

    @property
    def boundary(self) -> NDArray:
        """Euclidean distance to the nearest decision boundary, shape (n,).

        The distance is measured in the space of the features.
        """
        return self._quantity("boundary", self._measure_boundary)

    @property
    def embedding_gradients(self) -> NDArray:
        """Largest expected gradient of a word's embedding, ndarray of shape (n,)."""
        return self._quantity(
            "embedding_gradients",
            lambda: self._query.final.embedding_gradients(self._inputs),
        )

    @property
    def surprisal(self) -> NDArray:
        """Loss of a masked language model at the tokens, ndarray of shape (n, l)."""
        query = self._query
        return self._quantity(
            "surprisal",
            lambda: _quantities.surprisal(query.model, self._items, query.seeds[1]),
        )

    @property
    def classes(self) -> NDArray:
        """Classes in the order of the columns of `proba`, ndarray of shape (k,).

        For multi-label targets, the numbers of the labels.
        """
        return read_only(self._query.find_classes())

    def labeled_distances(self, metric: Metric = "euclidean") -> NDArray | None:
        """Return each candidate's squared distance to the nearest labeled item.

        From the second query of a learner on, distances are computed only for new
        labels, new candidates and changed features.

        Parameters
        ----------
        metric : {"euclidean", "cosine"}, default="euclidean"
            Distance between features, or between features scaled to length 1.

        Returns
        -------
        distances : ndarray of float64, shape (n,), or None
            None for sparse features, and if there are no labels.
        """
        self._check_allowed("labeled")
        rows = self.feature_rows
        if sparse.issparse(rows) or not self.n_labeled:
            return None
        return self._remember(
            ("labeled_distances", metric), partial(self._update_distances, metric)
        )

    def labeled_neighbors(self, n_neighbors: int) -> tuple:
        """Return the candidates nearest to each of the m labeled items.

        From the second query of a learner on, only new labels and those that lost
        neighbors are searched for.

        Parameters
        ----------
        n_neighbors : int
            Number of neighbors, at least 1. Fewer are returned if there are fewer
            candidates.

        Returns
        -------
        distances : ndarray of shape (m, n_neighbors)
            Euclidean distances, ascending.
        indices : ndarray of int, shape (m, n_neighbors)
            Positions of the candidates in this view.
        """
        self._check_allowed("labeled")
        rows = self.feature_rows
        if sparse.issparse(rows):
            return nearest(self.labeled_features, rows, n_neighbors, n_jobs=self.n_jobs)
        return self._update_neighbors(
            ("labeled_neighbors", n_neighbors), rows, self.labeled_features
        )

    def similar(self, n_neighbors: int) -> tuple:
        """Return the other candidates with the highest cosine to each.

        Parameters
        ----------
        n_neighbors : int
            Number of candidates, at least 1. Fewer are returned if there are fewer.

        Returns
        -------
        cosines : ndarray of shape (n, n_neighbors), or None
            Descending. None for sparse features and if a row of them is all zeros.
        indices : ndarray of int, shape (n, n_neighbors), or None
            Positions of these candidates in this view.
        """
        features = as_floats(self.features)
        if sparse.issparse(features):
            return None, None
        lengths = np.sqrt(squared_norms(features))[:, None]
        if not lengths.all():
            return None, None
        # Among rows of length 1, the nearest ones have the highest cosine.
        rows = features / lengths
        distances, indices = self._update_neighbors(("similar", n_neighbors), rows)
        return 1 - distances**2 / 2, indices

    # Items and positions.

    @property
    def _root(self):
        return self if self._parent is None else self._parent._root

    @property
    def _items(self):
        if self._parent is None:
            return self._X
        if self._copy is None:
            self._copy = take_rows(self._X, self._pool_positions)
        return self._copy

    @property
    def _pool_positions(self):
        """Positions of the candidates in the pool, ndarray of int."""
        if self._parent is None:
            return np.arange(len(self))
        if self._parent._parent is None:
            return self._positions
        return self._parent._pool_positions[self._positions]

    @property
    def _inputs(self):
        """The input of the final estimator: the candidates after the front steps."""
        if self._query.front is None or self._is_transformed:
            return self._items
        if self.estimator is None and self._parent is not None:
            # A cold start fits the front steps on the pool, so it transforms all of it.
            self._parent._inputs  # noqa: B018
        return self._remember("inputs", self._transform, frozen=False)

    def _transform(self):
        query = self._query
        front = query.cold_front if query.estimator is None else query.front
        return map_rows(front.transform, self._items)

    @property
    def _input_rows(self):
        """The input of the final estimator, for code that reads a chunk at a time."""
        is_root = self._parent is None
        rows = self._stored_rows() if is_root else self._rows_of_parent()
        if rows is None:
            rows = self._lazy_inputs
        return self._inputs if rows is None else rows

    def _stored_rows(self):
        """Return what the last front step has on the disk, or None."""
        if self._is_transformed or not self._query.finds_rows:
            return None
        return self._remember("rows", lambda: self._query.find_rows(self._X))

    def _rows_of_parent(self):
        """Return rows of the parent's input, or None if they are copied anyway."""
        query = self._query
        transforms = query.front is not None and not self._is_transformed
        reads_parts = query.finds_rows or is_dask(self._X)
        if self._copy is not None or (transforms and not reads_parts):
            return None
        # A linear model takes less time than a copy.
        least = _CHEAP_COPY_BYTES if is_linear_classifier(query.final) else None
        return lazy_rows(self._parent._input_rows, self._positions, least)

    @cached_property
    def _lazy_inputs(self):
        return lazy_rows(self._inputs)

    # Quantities are computed once, or taken from the parent.

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

    def _check_allowed(self, capability):
        self._query.check_allowed(capability)

    @cached_property
    def _labeled_view(self):
        return self.on(self._query.X_labeled)

    @cached_property
    def _training(self):
        """View, labels and weights of the rows that the model was trained on."""
        query = self._query
        n, weight = query.trained or (self.n_labeled, None)
        X, y = query.X_labeled, query.y_labeled[:n]
        if n < self.n_labeled:
            X = take_rows(X, np.arange(n))
        if has_sampler(query.model):
            rows, y = resample(query.model, X, y)
            return _DerivedView(query, rows, memory={}, transformed=True), y, None
        weight = None if weight is None else np.asarray(weight)
        return self.on(X) if n < self.n_labeled else self._labeled_view, y, weight

    def _sampler(self, n_draws):
        """Return the function that draws, the same for every view of this query."""
        query = self._query
        if n_draws not in query.samplers:
            query.add_sampler(n_draws, self._training_data())
        return query.samplers[n_draws]

    def _training_data(self):
        """Return the arguments of a sampler that needs the training data."""
        if self._query.X_labeled is None or self._query.draws_itself:
            return {}
        trained, y, weight = self._root._training
        return {"X_train": trained._inputs, "y_train": y, "sample_weight": weight}

    def _predict_proba(self):
        return _quantities.predict_proba(
            self._query.final, self._input_rows, self._query.name, self.n_jobs
        )

    def _score_classes(self):
        query = self._query
        if hasattr(query.final, "predict_proba"):
            return self._remember("proba", self._predict_proba)
        rows, n_jobs = self._input_rows, self.n_jobs
        if query.target == "multi-label":
            return _quantities.decide(query.final, rows, n_jobs)
        k = len(self.classes)
        return _quantities.class_scores(query.final, rows, k, query.name, n_jobs)

    def _measure_variance(self):
        variance = self._query.find_variance(self._training_data())
        if variance is None:
            return self._map_draws(lambda draws: draws.var(axis=1), 50)
        return _quantities.measure_variance(variance, self._input_rows, len(self))

    def _measure_margins(self):
        is_known = self._has("proba") or self._has("class_scores")
        rows = None if is_known else self._input_rows
        return _quantities.measure_margins(self, rows, self._query.final)

    def _factor_gradients(self):
        final = self._query.final
        if hasattr(final, "gradient_factors"):
            return final.gradient_factors(self._inputs)
        proba = self._remember("proba", self._predict_proba)
        return gradient_factors(final, self._input_rows, proba)

    def _measure_boundary(self):
        final = self._query.final
        if hasattr(final, "boundary_distance"):
            return final.boundary_distance(self._inputs)
        return boundary_distance(final, self._input_rows)

    def _update_distances(self, metric):
        key = ("labeled_distances", metric)
        last = self._memory.get(key) or NearestDistances(metric)
        # Another object, put in place at once: queries may run in parallel threads.
        self._memory[key] = new = last.update(
            self.feature_rows, self._pool_positions, self.labeled_features, self.n_jobs
        )
        return new.distances

    def _update_neighbors(self, key, rows, of=None):
        # Not taken from the parent, whose candidates differ.
        if key not in self._computed:
            last = self._memory.get(key) or NearestCandidates(*key[1:])
            self._memory[key] = new = last.update(
                rows, self._pool_positions, of, self.n_jobs
            )
            self._computed[key] = read_only(new.distances), read_only(new.indices)
        return self._computed[key]


class _DerivedView(PoolView):
    """View of some candidates of another view, or of other items, in one query."""

    def __init__(self, query, X, **items):
        self._set_items(query, X, **items)
