"""What a strategy may see of the pool: each quantity once, and only if asked."""

from __future__ import annotations

import numpy as np
from joblib import effective_n_jobs

from . import measures, quantities
from ._chunks import LazyRows, chunk_size, map_chunks
from ._containers import take_rows
from ._pipelines import has_sampler, resample
from ._sklearn import is_linear_classifier
from .quantities import read_only, take_from
from .tracked import TrackedView

__all__ = ["PoolView"]


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
        quantities.check_joint_draws(self._final, self._name)
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
            "features", lambda: quantities.represent(self._final, self._inputs)
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
            "boundary", lambda: quantities.boundary(self._final, self._input_rows)
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
            lambda: quantities.surprisal(self._model, self._items, self._seeds[1]),
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
            root._computed[key] = quantities.sampler(
                self._final, n_draws, root._seeds[0], **train
            )
        return root._computed[key]

    def _measure_margins(self):
        binary = len(self.classes) == 2 and is_linear_classifier(self._final)
        if not binary or self._has("proba") or self._has("class_scores"):
            return measures.margin(self.class_scores)
        return np.abs(quantities.decide(self._final, self._input_rows, self.n_jobs))

    def _predict_proba(self):
        return quantities.predict_proba(
            self._final, self._input_rows, self._name, self.n_jobs
        )

    def _factor_gradients(self):
        if hasattr(self._final, "gradient_factors"):
            return self._final.gradient_factors(self._inputs)
        proba = self._remember("proba", self._predict_proba)
        return quantities.gradients(self._final, self._inputs, proba)

    def _score_classes(self):
        if hasattr(self._final, "predict_proba"):
            return self._remember("proba", self._predict_proba)
        k = len(self.classes)
        return quantities.class_scores(
            self._final, self._input_rows, k, self._name, self.n_jobs
        )
