"""Views of items under one model: what is computed once, and how views share it."""

from functools import cached_property, partial

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import clone

from .._math import _scores
from .._math._distances import squared_norms
from .._math._incremental import NearestCandidates, NearestDistances
from .._math._neighbors import nearest
from .._utils._chunks import LazyRows, as_floats, chunk_size, lazy_rows, map_chunks
from .._utils._containers import take_rows
from .._utils._pipelines import has_sampler, resample, split_estimator
from .._utils._sklearn import is_linear_classifier, num_samples
from . import _quantities
from ._quantities import (
    CAPABILITIES,
    check_capability,
    check_target,
    read_only,
    take_from,
)

_NO_MATTER = 2**20  # bytes, up to which a copy is none


class SharedView:
    """Items, the model that judges them, and what is known of them so far.

    The base of :class:`skactive.view.PoolView`, which adds the _quantities.
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


class TrackedView(SharedView):
    """Distances and neighbours of the candidates of one query.

    Only new labels, candidates that are gone and changed features cost anything from
    the second query on. Features that are sparse are not kept track of.

    The parameters are those of :class:`skactive.view.PoolView`, which has the features
    that this looks at.
    """

    def labeled_distances(self, metric="euclidean"):
        """Squared distance of each candidate to the labelled item nearest to it.

        Parameters
        ----------
        metric : {"euclidean", "cosine"}, default="euclidean"
            Between features, or between features scaled to length 1.

        Returns
        -------
        distances : ndarray of float64, shape (n,), or None
            None for sparse features, and before there are labels.
        """
        self._check_allowed("labeled")
        rows = self.feature_rows
        if sparse.issparse(rows) or not self.n_labeled:
            return None
        return self._remember(
            ("labeled_distances", metric), partial(self._track_distances, metric)
        )

    def labeled_neighbors(self, k, method="auto"):
        """Find the k candidates nearest to each of the m labelled items.

        Parameters
        ----------
        k : int
            At least 1; no more than there are candidates are found.
        method : {"auto", "exact", "faiss"}, default="auto"
            How to find them; see `nearest`.

        Returns
        -------
        distances : ndarray of shape (m, k)
            Euclidean, ascending.
        indices : ndarray of int, shape (m, k)
            Positions of the candidates in this view.
        """
        self._check_allowed("labeled")
        rows = self.feature_rows
        if sparse.issparse(rows):
            features = self.labeled_features
            return nearest(features, rows, k, method=method, n_jobs=self.n_jobs)
        return self._track_neighbors(
            ("labeled_neighbors", k, method), rows, self.labeled_features
        )

    def similar(self, k):
        """Find the k other candidates with the highest cosine to each.

        Parameters
        ----------
        k : int
            At least 1; no more than there are other candidates are found.

        Returns
        -------
        cosines : ndarray of shape (n, k), or None
            Descending. None for sparse features and where some are all zeros.
        indices : ndarray of int, shape (n, k), or None
            Positions of these candidates in this view.
        """
        features = as_floats(self.features)
        if sparse.issparse(features):
            return None, None
        lengths = np.sqrt(squared_norms(features))[:, None]
        if not lengths.all():
            return None, None
        # Where rows have length 1, the nearest are those of the highest cosine.
        rows = features / lengths
        distances, indices = self._track_neighbors(("similar", k, "exact"), rows)
        return 1 - distances**2 / 2, indices

    def _track_distances(self, metric):
        last = self._memory.get(("labeled_distances", metric), NearestDistances(metric))
        # Another object, put in place at once: queries may run side by side.
        self._memory["labeled_distances", metric] = tracked = last.update(
            self.feature_rows, self._pool_positions, self.labeled_features, self.n_jobs
        )
        return tracked.distances

    def _track_neighbors(self, key, rows, of=None):
        # Not taken from the view above this one: its candidates are others.
        if key not in self._computed:
            last = self._memory.get(key) or NearestCandidates(*key[1:])
            self._memory[key] = tracked = last.update(
                rows, self._pool_positions, of, self.n_jobs
            )
            answer = read_only(tracked.distances), read_only(tracked.indices)
            self._computed[key] = answer
        return self._computed[key]


class PoolView(TrackedView):
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
    trained : tuple of (int, array-like or None) or None, default=None
        How many of these items, the first ones, the model was trained on, and their
        sample weights. None means all of them, without weights.
    requires : frozenset of str or None, default=None
        What the strategy declared to look at; None allows everything.
    optional : frozenset of str, default=frozenset()
        What it may look at beside, where there is some.
    targets : frozenset of str or None, default=None
        Targets that the strategy is defined for; None allows any.
    name : str, default="strategy"
        What to call the strategy in error messages.
    rng : numpy.random.Generator
        The generator of this query.
    position_rng : numpy.random.Generator or None, default=None
        The generator of the random numbers that belong to positions in the pool, see
        `uniform`. None derives one from `rng`.
    memory : dict or None, default=None
        What a learner keeps from query to query; it is written to.

    Raises
    ------
    TypeError
        If the strategy is not defined for the model's targets, or the model lacks
        something that `requires` names; before any work is done.

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

    @property
    def margins(self):
        """Gap between the two best classes, or what orders as it does, shape (n,).

        Of the `class_scores`; of a linear classifier of two classes, the decision value
        without its sign, which needs no probabilities.
        """
        self._check_allowed("class_scores")
        return self._remember("margins", self._measure_margins)

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

        Raises
        ------
        TypeError
            If the estimator draws for each row by itself; `map_draws` serves then.
        """
        self._check_allowed("draws")
        _quantities.check_joint_draws(self._final, self._name)
        return self._remember(
            ("draws", n_draws), lambda: self._sampler(n_draws)(self._inputs)
        )

    def map_draws(self, function, n_draws=50):
        """Reduce posterior draws row by row, without holding all of them.

        Parameters
        ----------
        function : callable
            Takes draws of shape (c, n_draws, k) of some c candidates, returns an array
            of c rows. What it returns is copied, so it may be a part of the draws. It
            must look at each row alone: some estimators draw for each by itself.
        n_draws : int, default=50
            How many models to draw; they are those of `draws(n_draws)`.

        Returns
        -------
        values : ndarray of n rows
        """
        self._check_allowed("draws")
        if self._has(("draws", n_draws)):
            source, draw = self.draws(n_draws), read_only
        else:
            source, draw = self._input_rows, self._sampler(n_draws)
        dense = isinstance(source, np.ndarray | LazyRows) and source.ndim == 2
        width = source.shape[1] if dense and source.dtype.kind in "fiub" else 0
        size = chunk_size(8 * (n_draws * len(self.classes) + width))
        # A model that draws by itself may hold one network, or one device.
        n_jobs = 1 if hasattr(self._final, "sample_proba") else self.n_jobs

        def reduce(rows):
            # A view would keep the draws of its chunk alive.
            return np.array(function(draw(take_from(source, rows))))

        return np.concatenate(map_chunks(reduce, len(self), size, n_jobs))

    @property
    def features(self):
        """Representations of the candidates, ndarray or CSR matrix of shape (n, d).

        The final estimator's `transform` where it has one, else the output of the
        pipeline's front steps, else `X`.
        """
        return self._quantity(
            "features", lambda: _quantities.represent(self._final, self._inputs)
        )

    @property
    def feature_rows(self):
        """The same for uses that take a slice of rows at a time, as `rows[slice]`.

        Of a large array the candidates are then not copied as a whole.
        """
        self._check_allowed("features")
        rows = self._input_rows
        is_lazy = isinstance(rows, LazyRows) and not hasattr(self._final, "transform")
        return rows if is_lazy and not self._has("features") else self.features

    @property
    def labeled(self):
        """View of the m labelled items under the same model, in the order taught."""
        self._check_allowed("labeled")
        return self._view_labeled()

    @property
    def labeled_features(self):
        """Representations of the labelled items, shape (m, d)."""
        return self.labeled.features

    @property
    def y_labeled(self):
        """Labels so far, ndarray of shape (m,)."""
        self._check_allowed("labeled")
        return read_only(self._root._y_labeled)

    @property
    def n_labeled(self):
        """How many items are labeled so far, m."""
        y = self._root._y_labeled
        return 0 if y is None else len(y)

    @property
    def trained(self):
        """View of the r rows that the model was trained on.

        These are the labeled items, without those that were only stored, by
        `teach(refit=False)`. Of a pipeline with a sampler of imbalanced-learn, they are
        the resampled rows.
        """
        self._check_allowed("labeled")
        return self._training[0]

    @property
    def y_trained(self):
        """Labels of the rows that the model was trained on, ndarray of shape (r,)."""
        self._check_allowed("labeled")
        return read_only(self._training[1])

    @property
    def sample_weight(self):
        """Weights of the rows that the model was trained on, shape (r,), or None."""
        self._check_allowed("labeled")
        return read_only(self._training[2])

    @property
    def gradients(self):
        """Factors of each candidate's loss gradient at its predicted label.

        A tuple `(residuals, inputs)` of shapes (n, k) and (n, d): the gradient with
        respect to the weights of the last linear layer is the outer product of rows.
        """
        return self._quantity("gradients", self._factor_gradients)

    @property
    def boundary(self):
        """Distance to the nearest decision boundary, ndarray of shape (n,).

        Euclidean, in the space of the features.
        """
        return self._quantity(
            "boundary", lambda: _quantities.boundary(self._final, self._input_rows)
        )

    @property
    def embedding_gradients(self):
        """Largest expected gradient of a word's embedding, ndarray of shape (n,)."""
        return self._quantity(
            "embedding_gradients", lambda: self._final.embedding_gradients(self._inputs)
        )

    @property
    def surprisal(self):
        """How surprising a language model finds the words, ndarray of shape (n, l)."""
        return self._quantity(
            "surprisal",
            lambda: _quantities.surprisal(self._model, self._items, self._seeds[1]),
        )

    @property
    def final_estimator(self):
        """The fitted estimator after the pipeline's front steps, or None."""
        return self._final

    @property
    def classes(self):
        """Classes in the order of the columns of `proba`, ndarray of shape (k,)."""
        if self.estimator is None:
            raise TypeError(
                f"strategy {self._name!r} asks for the classes, and there is no fitted "
                "model with two classes yet."
            )
        return read_only(np.asarray(self.estimator.classes_))

    @property
    def n_jobs(self):
        """Number of workers that joblib allows here, from `joblib.parallel_config`."""
        return effective_n_jobs(None)

    # How they are computed.

    def _view_labeled(self):
        root = self._root
        if "labeled" not in root._computed:
            root._computed["labeled"] = root.on(root._X_labeled)
        return root._computed["labeled"]

    @property
    def _training(self):
        """View, labels and weights of the rows that the model was trained on."""
        root = self._root
        if "training" not in root._computed:
            root._computed["training"] = root._find_training()
        return root._computed["training"]

    def _find_training(self):
        n, weight = self._trained or (self.n_labeled, None)
        X, y = self._X_labeled, self._y_labeled[:n]
        if n < self.n_labeled:
            X = take_rows(X, np.arange(n))
        if has_sampler(self._model):
            rows, y = resample(self._model, X, y)
            view = self.on(rows)
            view._front = None  # the rows went through it
            return view, y, None
        weight = None if weight is None else np.asarray(weight)
        return self.on(X) if n < self.n_labeled else self._view_labeled(), y, weight

    def _sampler(self, n_draws):
        """Draw the models, once for every view of this query."""
        root = self._root
        key = ("sampler", n_draws)
        if key not in root._computed:
            train = {}
            if root._X_labeled is not None and not hasattr(self._final, "sample_proba"):
                trained, y, weight = self._training
                train = {"X_train": trained._inputs, "y_train": y}
                train["sample_weight"] = weight
            root._computed[key] = _quantities.sampler(
                self._final, n_draws, root._seeds[0], **train
            )
        return root._computed[key]

    def _measure_margins(self):
        binary = len(self.classes) == 2 and is_linear_classifier(self._final)
        if not binary or self._has("proba") or self._has("class_scores"):
            return _scores.margin(self.class_scores)
        return np.abs(_quantities.decide(self._final, self._input_rows, self.n_jobs))

    def _predict_proba(self):
        return _quantities.predict_proba(
            self._final, self._input_rows, self._name, self.n_jobs
        )

    def _factor_gradients(self):
        if hasattr(self._final, "gradient_factors"):
            return self._final.gradient_factors(self._inputs)
        proba = self._remember("proba", self._predict_proba)
        return _quantities.gradients(self._final, self._inputs, proba)

    def _score_classes(self):
        if hasattr(self._final, "predict_proba"):
            return self._remember("proba", self._predict_proba)
        k = len(self.classes)
        return _quantities.class_scores(
            self._final, self._input_rows, k, self._name, self.n_jobs
        )
