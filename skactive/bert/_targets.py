"""Turn labels into what a network is trained on."""

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from .._utils._labels import as_labels


def encode_labels(y, classes=None):
    """Find the classes and number the labels.

    Parameters
    ----------
    y : ndarray of shape (n,) or (n, k)
        Labels, or an indicator matrix of 0 and 1.
    classes : array-like or None, default=None
        All classes, where some may be missing from `y`.

    Returns
    -------
    classes : ndarray of shape (k,)
        Sorted; the numbers of the columns for an indicator matrix.
    codes : ndarray
        int64 of shape (n,), or float32 of shape (n, k).

    Raises
    ------
    ValueError
        For a single class, labels outside `classes`, numbers that are no classes and
        matrices that are no indicators.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.bert._training import encode_labels
    >>> encode_labels(np.array(["b", "c", "b"]), classes=["a", "b", "c"])[1]
    array([1, 2, 1])
    """
    check_classification_targets(y)
    if y.ndim == 2:
        return _encode_indicators(y, classes)
    found = np.unique(y)
    if classes is not None:
        known = _known(classes)
        strange = found[~np.isin(found, known)]
        if len(strange):
            raise ValueError(
                f"'y' must hold only the classes {known.tolist()}, got "
                f"{strange.tolist()} as well. Name all classes in 'classes'."
            )
        found = known
    if len(found) < 2:
        raise ValueError(
            f"'y' must hold at least 2 classes, got only {found.tolist()} (1 class). "
            "Label a text of another class, or name all in 'classes'."
        )
    return found, np.searchsorted(found, y).astype(np.int64)


def _encode_indicators(y, classes):
    strange = np.setdiff1d(y, (0, 1))
    if len(strange):
        raise ValueError(
            "'y' of two dimensions must be an indicator matrix of 0 and 1, got "
            f"{strange[:5].tolist()} as well. Pass one label per text, or one column "
            "of 0 and 1 per class."
        )
    k = y.shape[1]
    if classes is not None and len(_known(classes)) != k:
        raise ValueError(
            f"'y' must have one column for each of {len(classes)} classes, got an "
            f"indicator matrix of {k} columns. Give all columns in every call."
        )
    return np.arange(k), y.astype(np.float32)


def _known(classes):
    try:
        return np.unique(as_labels(classes, len(classes)))
    except (TypeError, ValueError) as exc:
        raise type(exc)(
            f"'classes' must hold one label per class, all of one kind, got "
            f"{classes!r}. Name each class as it stands in 'y'."
        ) from exc
