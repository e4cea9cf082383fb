"""Predictions of labeled items by models that lack them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from .._math._calibration import assign_folds
from .._utils._containers import (
    NothingToAskError,
    count_items,
    drop_known_texts,
    take_rows,
)
from .._utils._labels import as_labels, marginals
from .._utils._pipelines import (
    computes_features,
    fit_last,
    has_descriptions,
    has_sampler,
    seeded_clone,
    split_estimator,
    takes_unlabeled,
)
from .._utils._repeatable import one_blas_thread, round_rng
from .._utils._sklearn import num_samples

_N_SPLITS = 5
_N_REST = 1000  # unlabeled items that are predicted


@dataclass(frozen=True)
class OutOfFold:
    """Predictions of models that each lack a part of the labels.

    `proba` (n, k) are of models that lack the item, NaN if it is never held out.
    `rest_proba` (m, k) of unlabeled items are of the model with all n labels, and
    `rest_codes` (f, m) are their classes by each of the other models, which have the
    fractions `shares` (f,) of the labels.
    """

    classes: Any
    codes: Any
    proba: Any
    rest_proba: Any
    rest_codes: Any
    shares: Any


def out_of_fold(estimator, X, y, X_rest=None, *, held=None, n_rest=_N_REST, seed=0):
    """Train a clone of an estimator without each fold of its labels in turn.

    `X_rest` are unlabeled items, used in training if the estimator does so, without
    copies of texts of `X`. At most `n_rest` of them are predicted. `held` (n,) masks
    the items that may be held out. Features that need no training are computed once. A
    class with a single example is held out, too; the model that lacks it gives it the
    probability 0.
    """
    _check_classifier(estimator)
    y = as_labels(y, count_items(X))
    if y.ndim != 1:
        raise TypeError(
            f"'y' must hold one class for each item, got an array of shape {y.shape}. "
            "Estimates are for labels of one class."
        )
    has_rest = X_rest is not None
    fresh = _find_fresh(X, X_rest) if has_rest and takes_unlabeled(estimator) else ()
    describes = has_descriptions(estimator)
    is_split = computes_features(estimator) and not has_sampler(estimator)
    if is_split and not describes:
        front, estimator = split_estimator(estimator)
        front = clone(front).fit(X, y)
        X = front.transform(X)
        X_rest = front.transform(X_rest) if has_rest else None
    # A model can predict a class that is only described.
    classes = np.unique([*y, *estimator.descriptions] if describes else y)
    codes = np.searchsorted(classes, y)
    folds = _assign(codes, held, seed)
    X_sample = None
    if has_rest and n_rest:
        m = count_items(X_rest)
        rows = round_rng(seed, 0, "rest").choice(m, min(n_rest, m), replace=False)
        X_sample = take_rows(X_rest, np.sort(rows))
    unlabeled = take_rows(X_rest, fresh) if len(fresh) else None

    def predict(train, *parts):
        """Return probabilities (., k) of some parts by a model of some rows."""
        seen = codes[train]
        if (seen == seen[0]).all() and not describes:
            return [np.eye(len(classes))[[seen[0]] * count_items(p)] for p in parts]
        X_train, y_train = take_rows(X, train), y[train]
        model = seeded_clone(estimator, np.random.default_rng(seed))
        fit_last(model, X_train, y_train, unlabeled)
        columns = np.searchsorted(classes, model.classes_)
        probas = []
        for part in parts:
            proba = np.zeros((count_items(part), len(classes)))
            proba[:, columns] = model.predict_proba(part)
            probas.append(proba)
        return probas

    parts = [] if X_sample is None else [X_sample]
    proba = np.full((len(y), len(classes)), np.nan)
    rest_codes, shares = [], []
    with one_blas_thread():
        for fold in range(folds.max() + 1):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            proba[test], *rest_proba = predict(train, take_rows(X, test), *parts)
            rest_codes += [one.argmax(axis=1) for one in rest_proba]
            shares.append(len(train) / len(y))
        rest_proba = predict(np.arange(len(y)), *parts) if parts else [proba[:0]]
    return OutOfFold(
        classes, codes, proba, rest_proba[0], np.array(rest_codes), np.array(shares)
    )


def _find_fresh(X, X_rest):
    """Return the positions of unlabeled items, without texts that are in `X`.

    A copy of a held-out text would be learned from.
    """
    try:
        return drop_known_texts(X_rest, np.arange(count_items(X_rest)), X)
    except NothingToAskError:
        return ()


def _check_classifier(estimator):
    last = estimator
    while isinstance(last, Pipeline):
        last = last.steps[-1][1]
    if not is_classifier(estimator) or not hasattr(last, "predict_proba"):
        raise TypeError(
            "'estimator' must be a classifier with predict_proba for estimates of its "
            f"accuracy, got {type(last).__name__}. Wrap it in CalibratedClassifierCV."
        )


def _assign(codes, held, seed):
    """Return the fold (n,) of each row, -1 if it is never held out."""
    held = np.ones(len(codes), dtype=bool) if held is None else np.asarray(held)
    _, own = np.unique(codes[held], return_inverse=True)
    n_splits = min(_N_SPLITS, len(own))
    among = assign_folds(own, n_splits, seed)
    single = np.flatnonzero(among < 0)
    # Items of classes with a single example are dealt out in turn.
    among[single] = (np.arange(len(single)) + np.sum(among >= 0)) % n_splits
    folds = np.full(len(codes), -1, dtype=np.intp)
    folds[held] = among
    return folds


def predict_held_out(learner, n_last):
    """Return predictions of the last labels by models that lack a fifth of them each.

    These are probabilities (n_last, k) for an indicator matrix, else numbers (n_last,).
    The other labels are always trained on.
    """
    estimator, seed = learner.estimator, learner.random_state
    X, y = learner.X_labeled_, learner.y_labeled_
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
    predicted = np.empty((n_last, *y.shape[1:]))
    with one_blas_thread():
        for fold in range(n_splits):
            train = np.setdiff1d(np.arange(len(y)), rows[folds == fold])
            test = take_rows(X, rows[folds == fold])
            model = seeded_clone(estimator, np.random.default_rng(seed))
            if y.ndim == 1:
                held_out = model.fit(take_rows(X, train), y[train]).predict(test)
            else:
                held_out = _predict_columns(model, take_rows(X, train), y[train], test)
            predicted[folds == fold] = held_out
    return predicted


def _predict_columns(model, X, y, test):
    """Return probabilities (m, k); a column of only 0 or 1 is predicted as such."""
    proba = np.repeat(y[:1].astype(np.float64), num_samples(test), axis=0)
    columns = np.flatnonzero(y.min(axis=0) < y.max(axis=0))
    if not len(columns):
        return proba
    if len(columns) == 1:  # one column would not be an indicator matrix
        columns = np.repeat(columns, 2)
    model.fit(X, y[:, columns])
    predicted = model.predict_proba(test)
    if isinstance(predicted, list):
        predicted = marginals(predicted, model.classes_)
    proba[:, columns] = predicted
    return proba
