"""Small deterministic models whose every answer is written in their input.

A row of `X` holds the k class probabilities of the item and then its d coordinates. So
a check says what the model thinks by writing it down, and no training is involved.
"""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin


class _GivenClassifier(ClassifierMixin, BaseEstimator):
    """Learn the classes from `y` and nothing else."""

    def fit(self, X, y):
        """Note the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, k + d)
        y : array-like of shape (n,)
            Labels of k classes.

        Returns
        -------
        self : estimator
        """
        self.classes_ = np.unique(y)
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X):
        """Predict the class of the highest given probability.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, k + d)

        Returns
        -------
        y : ndarray of shape (n,)
        """
        return self.classes_[self._split(X)[0].argmax(axis=1)]

    def _split(self, X):
        """Take the probabilities (n, k) and the coordinates (n, d) apart."""
        rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
        k = len(self.classes_)
        return rows[:, :k].copy(), rows[:, k:]


class GivenProba(_GivenClassifier):
    """Classifier that reads its probabilities off the first columns of `X`.

    It gives everything that a strategy can require: probabilities, posterior draws,
    the factors of the loss gradient of a linear head, distances to the boundary,
    gradients of embeddings and surprisal; `X` itself serves as features.

    Parameters
    ----------
    fixed_draws : bool, default=False
        Whether `sample_proba` draws the same models whatever its `random_state`.

    Examples
    --------
    >>> from skactive.testing._models import GivenProba
    >>> X = [[0.2, 0.8, 5.0], [0.5, 0.5, 6.0]]
    >>> model = GivenProba().fit(X, ["no", "yes"])
    >>> model.predict_proba(X)
    array([[0.2, 0.8],
           [0.5, 0.5]])
    >>> model.sample_proba(X, n_draws=7, random_state=0).shape
    (2, 7, 2)
    """

    def __init__(self, fixed_draws=False):
        self.fixed_draws = fixed_draws

    def predict_proba(self, X):
        """Read the probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, k + d)

        Returns
        -------
        proba : ndarray of shape (n, k)
        """
        return self._split(X)[0]

    def sample_proba(self, X, n_draws=50, random_state=None):
        """Tilt the given probabilities by random linear models of the coordinates.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, k + d)
        n_draws : int, default=50
            How many models, t.
        random_state : int or None, default=None
            Seeds the models.

        Returns
        -------
        draws : ndarray of shape (n, t, k)
            Where a given probability is 0, so are its draws.
        """
        proba, coordinates = self._split(X)
        rng = np.random.default_rng(0 if self.fixed_draws else random_state)
        shape = (n_draws, coordinates.shape[1], proba.shape[1])
        weights = rng.normal(scale=0.5, size=shape)
        tilt = np.einsum("nd,tdk->ntk", coordinates, weights)
        draws = proba[:, None, :] * np.exp(tilt - tilt.max(axis=2, keepdims=True))
        draws /= draws.sum(axis=2, keepdims=True)
        return draws.astype(proba.dtype, copy=False)

    def gradient_factors(self, X):
        """Factors of the gradient of the log loss at the predicted label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, k + d)

        Returns
        -------
        residuals : ndarray of shape (n, k)
            Probabilities less the predicted class's indicator.
        inputs : ndarray of shape (n, d)
            The gradient of item i is the outer product of both rows i.
        """
        proba, coordinates = self._split(X)
        residuals = proba.copy()
        residuals[np.arange(len(proba)), proba.argmax(axis=1)] -= 1
        return residuals, coordinates

    def boundary_distance(self, X):
        """Gap between the two likeliest classes, in the unit of the coordinates.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, k + d)

        Returns
        -------
        distance : ndarray of shape (n,)
        """
        proba, coordinates = self._split(X)
        top_two = np.sort(proba, axis=1)[:, -2:]
        return (top_two[:, 1] - top_two[:, 0]) * (1 + abs(coordinates[:, 0]))

    def embedding_gradients(self, X):
        """Compute the expected change of the coordinate that would change most.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, k + d)

        Returns
        -------
        change : ndarray of shape (n,)
        """
        proba, coordinates = self._split(X)
        return (proba * (1 - proba)).sum(axis=1) * abs(coordinates).max(axis=1)

    def surprisal(self, X, random_state=None):
        """Read a surprise off each coordinate.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, k + d)
        random_state : int or None, default=None
            Not needed: every coordinate is a target.

        Returns
        -------
        surprisal : ndarray of shape (n, d)
        """
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        return abs(X[:, -4:])


class GivenScores(_GivenClassifier):
    """Classifier without probabilities: decision values off the columns of `X`.

    Examples
    --------
    >>> from skactive.testing._models import GivenScores
    >>> X = [[0.25, 0.75, 5.0], [0.5, 0.5, 6.0]]
    >>> GivenScores().fit(X, [0, 1]).decision_function(X)
    array([0.5, 0. ])
    """

    def decision_function(self, X):
        """Read the decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, k + d)

        Returns
        -------
        decision : ndarray of shape (n, k), or (n,) for two classes
        """
        values = self._split(X)[0]
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values


class ReadNumbers(TransformerMixin, BaseEstimator):
    """Make rows of numbers out of texts that spell them.

    Examples
    --------
    >>> from skactive.testing._models import ReadNumbers
    >>> ReadNumbers().fit_transform(["0.5 2", "1 3"])
    array([[0.5, 2. ],
           [1. , 3. ]])
    """

    def fit(self, X, y=None):
        """Do nothing.

        Parameters
        ----------
        X : sequence of str
        y : None

        Returns
        -------
        self : ReadNumbers
        """
        return self

    def transform(self, X):
        """Read the numbers.

        Parameters
        ----------
        X : sequence of n str

        Returns
        -------
        rows : ndarray of shape (n, d)
        """
        return np.array([text.split() for text in X], dtype=np.float64)

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
