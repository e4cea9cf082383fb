"""One model per label, with tuned thresholds."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from .._math._thresholds import tune_thresholds
from .._utils._containers import take_rows
from .._utils._sklearn import Interval, naming, num_samples


class TunedOneVsRestClassifier(OneVsRestClassifier):
    """Train one classifier per label, with thresholds tuned by cross-validation.

    Rare labels rarely have a probability above 0.5, and balanced class weights predict
    too many labels when there are many training items. This classifier keeps the plain
    probabilities and predicts the labels whose probability is above a threshold.

    Parameters
    ----------
    estimator : estimator
        A binary classifier with `predict_proba`. For rows of unit length,
        `LogisticRegression(C=10)` was more accurate than C=1 or C=30.
    cv : int, default=3
        Number of folds for the thresholds, at most the number of items. The estimators
        are trained `cv` + 1 times.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds.
    n_jobs : int or None, default=None
        Number of labels that are trained in parallel, as in
        :class:`~sklearn.multiclass.OneVsRestClassifier`. The models that tune the
        thresholds are trained one after the other.
    verbose : int, default=0
        As in :class:`~sklearn.multiclass.OneVsRestClassifier`.

    Attributes
    ----------
    thresholds_ : ndarray of shape (k,)
        A label is predicted if its probability is above its threshold. 0.5 for targets
        with one class per item, which are predicted as by the base class, and if there
        are fewer than 2 items.
    classes_, estimators_, label_binarizer_
        As in :class:`~sklearn.multiclass.OneVsRestClassifier`.

    See Also
    --------
    skactive.make_text_classifier : Uses it with `multi_label=True`.
    skactive.bert.BertClassifier : `thresholds="auto"` tunes those of an encoder.

    Notes
    -----
    The threshold of a label is the mean of two: the one with the best F1 of the label,
    weighted by the number of its positive items, and a common one, weighted by 30. The
    common threshold predicts as many labels as `y` has. The probabilities are those
    that the models of the other folds predict.

    References
    ----------
    R.-E. Fan, C.-J. Lin (2007). A study on threshold selection for multi-label
    classification. Technical report, National Taiwan University.

    J. Read, B. Pfahringer, G. Holmes, E. Frank (2011). Classifier chains for
    multi-label classification. Machine Learning 85 (the common threshold).

    Examples
    --------
    With a strong penalty, hardly any probability is above 0.5. Lower thresholds help:

    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.metrics import f1_score
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> from skactive.linear_model import TunedOneVsRestClassifier
    >>> X, Y = make_multilabel_classification(
    ...     300, n_classes=8, n_labels=1, random_state=0
    ... )
    >>> for kind in [OneVsRestClassifier, TunedOneVsRestClassifier]:
    ...     model = kind(LogisticRegression(C=0.01)).fit(X[:100], Y[:100])
    ...     f1 = f1_score(Y[100:], model.predict(X[100:]), average="micro")
    ...     print(f"{kind.__name__}: F1 {f1:.1f}")
    OneVsRestClassifier: F1 0.1
    TunedOneVsRestClassifier: F1 0.5
    """

    _parameter_constraints = {
        **OneVsRestClassifier._parameter_constraints,
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        cv: int = 3,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(estimator, n_jobs=n_jobs, verbose=verbose)
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Train the estimators, and tune the thresholds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The training items.
        y : array-like or sparse matrix of shape (n, k)
            An indicator matrix; or one class per item, of shape (n,).
        **fit_params : dict
            As in :class:`~sklearn.multiclass.OneVsRestClassifier`, with metadata
            routing. The models that tune the thresholds are trained without them.

        Returns
        -------
        self : TunedOneVsRestClassifier
        """
        with naming("y"):
            type_of_target(y, raise_unknown=True)
        with naming("X"):
            super().fit(X, y, **fit_params)
        self.thresholds_ = np.full(len(self.classes_), 0.5)
        n = num_samples(X)
        if self.multilabel_ and n > 1:
            Y = self.label_binarizer_.transform(y).toarray()
            folds = KFold(min(self.cv, n), shuffle=True, random_state=self.random_state)
            self.thresholds_ = tune_thresholds(self._hold_out(X, Y, folds), Y)
        return self

    def predict(self, X: Any) -> NDArray:
        """Predict the labels whose probability is above their threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The items.

        Returns
        -------
        y : ndarray of shape (n, k), or (n,) for one class per item
            An indicator matrix of int, or classes.
        """
        check_is_fitted(self)
        if not self.multilabel_:
            return super().predict(X)
        return (self.predict_proba(X) > self.thresholds_).astype(int)

    def predict_proba(self, X: Any) -> NDArray:
        """See :class:`~sklearn.multiclass.OneVsRestClassifier`."""
        with naming("X"):
            return super().predict_proba(X)

    def _hold_out(self, X, Y, folds):
        """Return the probabilities (n, k) that models without an item predict for it.

        A label that is the same for all items of a fold's training part is predicted
        as such.
        """
        proba = np.empty(Y.shape)
        for train, test in folds.split(Y):
            known, unknown = take_rows(X, train), take_rows(X, test)
            for j, y in enumerate(Y[train].T):
                if y.min() == y.max():
                    proba[test, j] = y[0]
                    continue
                model = clone(self.estimator).fit(known, y)
                proba[test, j] = model.predict_proba(unknown)[:, 1]
        return proba
