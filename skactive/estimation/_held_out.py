"""Predictions of labeled items by models that lack them."""

from copy import copy
from dataclasses import dataclass
from functools import partial
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
    the items that may be held out, or names the fold of each, -1 for none. Features
    that need no training are computed once. A class with a single example is held out,
    too; the model that lacks it gives it the probability 0.
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
    if is_split and not describes and not _has_own_folds(estimator):
        front, estimator = split_estimator(estimator)
        front = clone(front).fit(X, y)
        X = front.transform(X)
        X_rest = front.transform(X_rest) if has_rest else None
    # A model can predict a class that is only described.
    classes = np.unique([*y, *estimator.descriptions] if describes else y)
    codes = np.searchsorted(classes, y)
    X_sample = _draw_rest(X_rest, n_rest, seed) if has_rest and n_rest else None
    unlabeled = take_rows(X_rest, fresh) if len(fresh) else None

    def learn(rows):
        """Return a function of items: their probabilities (., k) by a model of rows."""
        seen = codes[rows]
        if (seen == seen[0]).all() and not describes:
            return lambda part: np.eye(len(classes))[[seen[0]] * count_items(part)]
        model = seeded_clone(estimator, np.random.default_rng(seed))
        fit_last(model, take_rows(X, rows), y[rows], unlabeled)
        return partial(_predict, model, classes)

    def split(whole):
        """Yield shares that train, rows that are held out, and functions of `learn`."""
        folds = None if whole is None else list(_own_folds(whole))
        if folds:
            is_held = _assign(codes, held, seed) >= 0
            for rows, model in folds:
                predict = partial(_predict, model, classes)
                yield 1 - len(rows) / len(y), rows[is_held[rows]], predict
            return
        folds = _assign(codes, held, seed)
        for fold in range(folds.max() + 1):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            yield len(train) / len(y), test, learn(train)

    proba = np.full((len(y), len(classes)), np.nan)
    rest_codes, shares, rest_proba = [], [], proba[:0]
    with one_blas_thread():
        whole = None
        if _has_own_folds(estimator):
            whole = seeded_clone(estimator, np.random.default_rng(seed))
            whole = fit_last(whole, X, y, unlabeled)
        for share, test, predict in split(whole):
            proba[test] = predict(take_rows(X, test))
            shares.append(share)
            if X_sample is not None:
                rest_codes.append(predict(X_sample).argmax(axis=1))
        if X_sample is not None:
            if whole is None:
                rest_proba = learn(np.arange(len(y)))(X_sample)
            else:
                rest_proba = _predict(whole, classes, X_sample)
    return OutOfFold(
        classes, codes, proba, rest_proba, np.array(rest_codes), np.array(shares)
    )


def _draw_rest(X_rest, n_rest, seed):
    m = count_items(X_rest)
    rows = round_rng(seed, 0, "rest").choice(m, min(n_rest, m), replace=False)
    return take_rows(X_rest, np.sort(rows))


def _predict(model, classes, X):
    """Return the probabilities (n, k) of all classes."""
    proba = np.zeros((count_items(X), len(classes)))
    proba[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return proba


def _has_own_folds(estimator):
    """Whether an estimator holds labels out in its `fit`, as a mixture does."""
    inner = estimator.estimator if has_descriptions(estimator) else estimator
    return hasattr(inner, "__skactive_folds__")


def _own_folds(model):
    """Yield the rows of each fold of a fitted model, and the model without them."""
    if not has_descriptions(model):
        if hasattr(model, "__skactive_folds__"):
            yield from model.__skactive_folds__()
        return
    for rows, part in _own_folds(model.estimator_):
        without = copy(model)
        without.estimator_ = part
        yield rows, without


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
    if held.dtype != bool:
        return held
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
    if (predicted := _predict_own_folds(estimator, X, y, seed)) is not None:
        return predicted[rows]
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


def _predict_own_folds(estimator, X, y, seed):
    """Return probabilities (n, k) by the folds of a mixture, None without all rows."""
    if not _has_own_folds(estimator):
        return None
    predicted = np.full(y.shape, np.nan)
    with one_blas_thread():
        model = seeded_clone(estimator, np.random.default_rng(seed))
        for rows, part in _own_folds(fit_last(model, X, y, None)):
            predicted[rows] = part.predict_proba(take_rows(X, rows))
    return None if np.isnan(predicted).any() else predicted


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
