"""Check the labels of a simulation before it begins."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import is_classifier

from .._labels import as_labels, kind_of
from .._positions import count_items

__all__ = ["check_labels", "check_test_data"]

_FEW = 20  # items; a pool this small may well hold as many classes


def check_labels(y, estimator):
    """Refuse labels that no classifier can learn, and warn about unlikely ones.

    Parameters
    ----------
    y : ndarray
        From :func:`skactive._labels.as_labels`.
    estimator : estimator
        The model. Only the labels of classifiers are checked.
    """
    if y.ndim != 1 or not is_classifier(estimator):
        return
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise ValueError(
            "'y' must hold classes for a classifier, got numbers with fractions such "
            f"as {y[y != np.floor(y)][0].item()!r}. Bin them, or use a regressor."
        )
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise ValueError(
            f"'y' must hold at least two classes, got {classes[0].item()!r} for all "
            f"{len(y)} items. Check that it is the column of the labels."
        )
    if len(y) < _FEW or len(classes) <= len(y) / 2:
        return
    found = f"{len(classes)} classes in {len(y)} items"
    if counts.max() == 1:
        raise ValueError(
            f"'y' must hold classes of several items, got {found}. Check that it is "
            "the column of the labels."
        )
    warnings.warn(
        f"'y' holds {found}; is this a label? Most classes have a single item, from "
        "which little can be learned.",
        UserWarning,
        stacklevel=3,
    )


def check_test_data(X_test, y_test, y, estimator):
    """Refuse test labels that a model taught with `y` can never predict.

    Parameters
    ----------
    X_test, y_test : container and array-like, or None
        Both or none.
    y : ndarray
        All labels that the simulation was given.
    estimator : estimator
        The model. Only a classifier needs to know every label.
    """
    if (X_test is None) != (y_test is None):
        missing = "y_test" if y_test is None else "X_test"
        raise ValueError(f"{missing!r} is missing: give both test arguments or none.")
    if X_test is None:
        return
    n = count_items(X_test, name="X_test")
    y_test = as_labels(y_test, n, name="y_test", items="X_test")
    if y_test.shape[1:] != y.shape[1:]:
        raise ValueError(
            "'y_test' must have as many columns as 'y', got arrays of shape "
            f"{y_test.shape} and {y.shape}. Pass labels of the same form."
        )
    if kind_of(y_test) != kind_of(y):
        raise TypeError(
            f"'y_test' must hold labels of the kind of 'y', {kind_of(y)}; got "
            f"{kind_of(y_test)} such as {y_test.flat[0].item()!r}. Write the labels "
            "of both in one way."
        )
    if y.ndim > 1 or not is_classifier(estimator):
        return
    unknown = np.setdiff1d(y_test, y)
    if unknown.size:
        shown = ", ".join(map(repr, unknown[:5].tolist()))
        more = f" and {unknown.size - 5} more" if unknown.size > 5 else ""
        raise ValueError(
            f"'y_test' must hold classes of 'y' only, got {shown}{more}, which 'y' "
            "lacks, so that no label could teach them. Leave these items out of the "
            "test data."
        )
