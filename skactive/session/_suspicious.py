"""Labels that predictions of models without them contradict."""

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._utils._containers import take_rows
from .._utils._labels import marginals
from .._utils._pipelines import (
    computes_features,
    has_sampler,
    seeded_clone,
    split_estimator,
)
from .._utils._random import round_rng
from .._utils._sklearn import num_samples
from .._utils._threads import one_blas_thread
from ..linear_model import calibrate
from ..semi_supervised import SelfTraining

_N_SPLITS = 5
_MAX_RESIDUAL = 3.0  # median absolute residuals


def find_supervised(estimator):
    """Return what a SelfTraining trains on the labels, or None for other estimators.

    With 77 classes of Banking77 and 500 labels, 25 of them wrong, it finds as many of
    them as the SelfTraining does, in a fifteenth of the time.
    """
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        last = find_supervised(last)
        return last and Pipeline([*estimator.steps[:-1], (name, last)])
    return estimator.estimator if isinstance(estimator, SelfTraining) else None


def temper(proba, codes):
    """Return out-of-fold probabilities (n, k) at the temperature that fits the labels.

    A class with a single item, which no model of its fold knows, does not count.
    """
    counts = np.bincount(codes, minlength=proba.shape[1])
    known = ~np.isnan(proba[:, 0]) & (counts[codes] > 1)
    if not known.any():
        return proba
    logits = np.log(np.maximum(proba, np.finfo(np.float64).tiny))
    _, temperature = calibrate(logits[known], codes[known], np.ones(known.sum()))
    return softmax(logits / temperature, axis=1)


def find_suspicious(proba, codes):
    """Return positions of contradicted labels, most doubtful first.

    `proba` (n, k) are out-of-fold probabilities, NaN for items that were not held out;
    `codes` (n,) are the classes of the labels. As in confident learning, an item counts
    as of another class if its probability reaches the mean that the items of that class
    have. The order is that of the normalized margin. A class with a single item has no
    such mean, and its item no probability.
    """
    counts = np.bincount(codes, minlength=proba.shape[1])
    known = np.flatnonzero(~np.isnan(proba[:, 0]) & (counts[codes] > 1))
    own = proba[known, codes[known]]
    sums = np.bincount(codes[known], own, minlength=proba.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        thresholds = sums / np.bincount(codes[known], minlength=proba.shape[1])
    # No probability reaches the NaN of a class without a mean.
    reached = proba[known] >= thresholds - 1e-6
    best = proba[known].argmax(axis=1)
    guess = np.where(reached.sum(axis=1) > 1, best, reached.argmax(axis=1))
    doubtful = reached.any(axis=1) & (guess != codes[known]) & (best != codes[known])
    margin = own - proba[known].max(axis=1)
    order = np.flatnonzero(doubtful)
    return known[order[np.argsort(margin[order], kind="stable")]]


def find_suspicious_rows(proba, y):
    """Return positions of contradicted rows of 0 and 1, and the worst column of each.

    `proba` and `y` are (n, k). Each column is judged by :func:`find_suspicious`, and a
    row by its most doubtful column (Thyagarajan et al. 2022). The most doubtful row is
    first.
    """
    margins = np.full(proba.shape, np.inf)
    for j, (p, codes) in enumerate(zip(proba.T, y.T, strict=True)):
        both = np.stack([1 - p, p], axis=1)
        rows = find_suspicious(both, codes)
        margins[rows, j] = both[rows, codes[rows]] - both[rows].max(axis=1)
    worst = margins.min(axis=1)
    rows = np.flatnonzero(worst < np.inf)
    rows = rows[np.argsort(worst[rows], kind="stable")]
    return rows, margins[rows].argmin(axis=1)


def find_suspicious_numbers(predicted, y):
    """Return positions of numbers far from their prediction, and how far each is.

    The unit is the median absolute residual; those above 3 are returned, the largest
    first. `predicted` and `y` are (n,).
    """
    residuals = np.abs(predicted - y)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = residuals / np.median(residuals)
    rows = np.flatnonzero(sizes > _MAX_RESIDUAL)
    rows = rows[np.argsort(-sizes[rows], kind="stable")]
    return rows, sizes[rows]


def predict_held_out(estimator, X, y, n_last, seed):
    """Return predictions of the last rows by models that lack a fifth of them each.

    These are probabilities (n_last, k) for an indicator matrix `y`, else numbers
    (n_last,). The other rows are always trained on.
    """
    if y.ndim == 2 and not hasattr(estimator, "predict_proba"):
        raise TypeError(
            "'estimator' must have predict_proba for doubts about several classes, got "
            f"{estimator!r}. Wrap its classifier in CalibratedClassifierCV."
        )
    if computes_features(estimator) and not has_sampler(estimator):
        front, estimator = split_estimator(estimator)
        X = clone(front).fit(X, y).transform(X)
    rows = np.arange(len(y) - n_last, len(y))
    n_splits = min(_N_SPLITS, n_last)
    folds = round_rng(seed, 0, "folds").permutation(n_last) % n_splits
    found = np.empty((n_last, *y.shape[1:]))
    with one_blas_thread():
        for fold in range(n_splits):
            train = np.setdiff1d(np.arange(len(y)), rows[folds == fold])
            test = take_rows(X, rows[folds == fold])
            model = seeded_clone(estimator, np.random.default_rng(seed))
            place = model, take_rows(X, train), y[train], test
            predict = _predict_numbers if y.ndim == 1 else _predict_columns
            found[folds == fold] = predict(*place)
    return found


def _predict_numbers(model, X, y, test):
    return model.fit(X, y).predict(test)


def _predict_columns(model, X, y, test):
    """Return probabilities (m, k); a column of only 0 or 1 is predicted as such."""
    proba = np.repeat(y[:1].astype(np.float64), num_samples(test), axis=0)
    columns = np.flatnonzero(y.min(axis=0) < y.max(axis=0))
    if not len(columns):
        return proba
    if len(columns) == 1:  # one column would not be an indicator matrix
        columns = np.repeat(columns, 2)
    model.fit(X, y[:, columns])
    found = model.predict_proba(test)
    if isinstance(found, list):
        found = marginals(found, model.classes_)
    proba[:, columns] = found
    return proba
