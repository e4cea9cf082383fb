"""Predictions of the model of a session, in the form of its labels."""

import numpy as np

from .._utils._labels import marginals
from .._utils._sklearn import num_samples

_N_TOP = 5


def predict_labels(model, X, classes, target):
    """Return predicted labels, scores and best classes of n items, three lists.

    `classes` names the columns of a multi-label model; None leaves its labels rows of 0
    and 1. A score is the probability of the predicted class, or the smallest of all
    columns, and None without probabilities. The best classes are up to five pairs of
    class and probability, lists. Without a model, labels and scores are None.
    """
    n = num_samples(X)
    if model is None or not n:
        return [None] * n, [None] * n, [[] for _ in range(n)]
    if target == "multi-label":
        return _predict_several(model, X, n, classes)
    if target == "regression":
        predicted = np.asarray(model.predict(X), dtype=np.float64)
        return predicted.tolist(), [None] * n, [[] for _ in range(n)]
    if not hasattr(model, "predict_proba"):
        labels = np.asarray(model.predict(X)).tolist()
        return labels, [None] * n, [[[label, None]] for label in labels]
    proba = np.asarray(model.predict_proba(X))
    names = np.asarray(model.classes_)
    labels = names[proba.argmax(axis=1)].tolist()
    return labels, proba.max(axis=1).tolist(), _list_best(names.tolist(), proba)


def _predict_several(model, X, n, classes):
    """Predict several labels for each item; see `predict_labels`."""
    rows = np.asarray(model.predict(X)).astype(int)
    names = list(range(rows.shape[1])) if classes is None else list(classes)
    k = len(names)  # columns without a name were only added to train
    labels = rows.tolist()
    if classes is not None:
        labels = [[names[j] for j in np.flatnonzero(row[:k])] for row in rows]
    if not hasattr(model, "predict_proba") or not k:
        return labels, [None] * n, [[] for _ in range(n)]
    proba = model.predict_proba(X)
    if isinstance(proba, list):
        proba = marginals(proba, model.classes_)
    proba = np.asarray(proba)[:, :k]
    scores = np.maximum(proba, 1 - proba).min(axis=1).tolist()
    return labels, scores, _list_best(names, proba)


def _list_best(names, proba):
    """Return up to five pairs of name and probability per row of `proba` (n, k)."""
    best = np.argsort(-proba, axis=1, kind="stable")[:, :_N_TOP]
    values = np.take_along_axis(proba, best, axis=1).tolist()
    return [
        [[names[j], p] for j, p in zip(row, ps, strict=True)]
        for row, ps in zip(best.tolist(), values, strict=True)
    ]
