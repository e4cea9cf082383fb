"""Labels, and what else comes with each labelled item, gathered over the rounds."""

import warnings
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import column_or_1d

from ._containers import as_container, refuse_unordered
from ._sklearn import num_samples

_FAMILIES = {"b": "bool", "i": "number", "u": "number", "f": "number"}


def as_labels(y, n_samples, *, name="y", items="X"):
    """Read labels out of any usual container.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, n_outputs)
        `str`, `int` or `bool` labels, float targets, or an indicator matrix.
    n_samples : int
        How many there should be.
    name, items : str, default="y", "X"
        Names of the arguments in error messages.

    Returns
    -------
    y : ndarray
        A copy; strings as a `U` array.

    Raises
    ------
    ValueError
        If labels are missing, or their number is not `n_samples`.
    TypeError
        If they mix strings, numbers and bools.

    Examples
    --------
    >>> from skactive._utils._labels import as_labels
    >>> as_labels(("spam", "ham"), 2)
    array(['spam', 'ham'], dtype='<U4')
    """
    if y is None:
        raise ValueError(f"{name!r} requires y to be passed, but the target y is None.")
    y = y.toarray() if sparse.issparse(y) else as_container(y)
    refuse_unordered(y, name)
    if not hasattr(y, "__len__") and hasattr(y, "__array__"):
        y = np.asarray(y)
    if isinstance(y, str) or not hasattr(y, "__len__") or getattr(y, "ndim", 1) == 0:
        raise TypeError(
            f"{name!r} must be a sequence with one label per item, got {y!r}. Wrap a "
            "single label in a list."
        )
    if num_samples(y) != n_samples:
        raise ValueError(
            f"{items!r} and {name!r} differ in length: {items} holds {n_samples} "
            f"items, {name} holds {num_samples(y)} labels. Pass one label per item."
        )
    if isinstance(y, list | tuple):
        values = np.empty(len(y), dtype=object)
        values[:] = y
    else:
        values = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if values.dtype == object and values.ndim == 1:
        values = _from_objects(values, name)
    elif values.dtype == object and values.ndim == 2:
        values = np.array(values.tolist())
    if values.dtype.kind not in "biufcUT" or values.ndim > 2:
        raise TypeError(
            f"{name!r} must hold labels that are str, int, float or bool, in one or "
            f"two dimensions; got an array of shape {values.shape} and dtype "
            f"{values.dtype}. Convert them, for example to str."
        )
    if values.dtype.kind in "UT" and values.ndim == 1 and (values == "").any():
        _refuse_missing(np.flatnonzero(values == ""), name)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        finite = np.isfinite(values.reshape(n_samples, -1)).all(axis=1)
        _refuse_missing(np.flatnonzero(~finite), name)
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=True)
    return np.array(values)


def _from_objects(values, name):
    """Give an object array of labels its proper dtype, if there is one."""
    missing = [i for i, value in enumerate(values) if _is_missing(value)]
    if missing:
        _refuse_missing(missing, name)
    if any(isinstance(v, list | tuple | np.ndarray) for v in values):
        try:
            return np.array(list(values))
        except ValueError as exc:
            raise TypeError(
                f"{name!r} must hold one label per item, or the same number of labels "
                f"for each; got lists of several lengths. {exc}"
            ) from exc
    families = {_family(v) for v in values}
    if len(families) > 1:
        _refuse_mixture(families, name)
    labels = np.array(values.tolist())
    if labels.dtype.kind in "fO" and all(isinstance(v, Integral) for v in values):
        raise ValueError(
            f"{name!r} must hold labels that fit into 64 bits, got "
            f"{max(values, key=abs)}. Use smaller numbers, or str labels."
        )
    return labels


def _is_missing(value):
    if isinstance(value, float | np.floating):
        return np.isnan(value)
    # pandas.NA and NaT, without importing pandas.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _family(value):
    if isinstance(value, str):
        return "str"
    if isinstance(value, bool | np.bool_):
        return "bool"
    return "number" if np.isscalar(value) else type(value).__name__


def kind_of(y):
    """Name the kind of labels in an array: "bool", "number" or "str"."""
    return _FAMILIES.get(y.dtype.kind, "str")


def _refuse_missing(positions, name):
    shown = ", ".join(map(str, positions[:5]))
    more = f" and {len(positions) - 5} more" if len(positions) > 5 else ""
    raise ValueError(
        f"{name!r} has no label at positions {shown}{more} (None, NaN, infinity or an "
        "empty string). Pass only the items that have one; the pool goes to query."
    )


def _refuse_mixture(families, name="y"):
    raise TypeError(
        f"{name!r} mixes labels of the kinds {sorted(families)}. Use one kind for "
        "every label, in every call."
    )


def read_labels(y, n_samples, estimator, before=None):
    """Read labels for an estimator; warn once of -1, which could mean "no label".

    Labels out of -1 and 1 are two classes, so there is no warning.

    Parameters
    ----------
    y, n_samples
        As in :func:`as_labels`.
    estimator : estimator
        There is no warning unless it is a classifier.
    before : ndarray of shape (m,) or None, default=None
        The earlier labels. If they hold -1, the warning was given.

    Returns
    -------
    y : ndarray
    """
    y = as_labels(y, n_samples)
    numbers = y.ndim == 1 and y.dtype.kind in "if"
    if not numbers or not (y == -1).any() or not is_classifier(estimator):
        return y
    seen = np.unique(y if before is None else [*before, *y])
    if (before is not None and -1 in before) or np.isin(seen, [-1, 1]).all():
        return y
    warnings.warn(
        "'y' holds the label -1, which is trained as a class of its own. If it marks "
        "items without a label, as in scikit-learn's semi-supervised estimators, pass "
        "only the items that have one; the pool goes to query.",
        UserWarning,
        stacklevel=3,
    )
    return y


def join_labels(first, second):
    """Append labels to those seen before.

    Parameters
    ----------
    first, second : ndarray
        From :func:`as_labels`.

    Returns
    -------
    y : ndarray

    Raises
    ------
    TypeError
        If their kinds differ.
    ValueError
        If their shapes differ.
    """
    families = {kind_of(first), kind_of(second)}
    if len(families) > 1:
        _refuse_mixture(families)
    if first.shape[1:] != second.shape[1:]:
        raise ValueError(
            f"'y' had the shape {first.shape} before and has {second.shape} now. Pass "
            "the same number of columns each time."
        )
    return np.concatenate([first, second])


def join_fit_params(first, n_first, second, n_second):
    """Gather the fit parameters that hold one value per labelled item.

    Parameters
    ----------
    first, second : dict of str to object
        Parameters of the earlier and of the new items. Of `second`, only what has
        one value per item is kept.
    n_first, n_second : int
        Numbers of items.

    Returns
    -------
    params : dict of str to ndarray
        One value per item; a missing sample weight is 1.

    Raises
    ------
    ValueError
        If a parameter came for some items only and is no sample weight.

    Examples
    --------
    >>> from skactive._utils._labels import join_fit_params
    >>> join_fit_params({}, 2, {"sample_weight": [0.5]}, 1)
    {'sample_weight': array([1. , 1. , 0.5])}
    """
    check_weights(second, n_second)
    second = {k: v for k, v in second.items() if _is_aligned(v, n_second)}
    if n_first == 0:
        return {name: np.array(value) for name, value in second.items()}
    joined = {}
    for name in {**first, **second}:
        parts = []
        for params, n in ((first, n_first), (second, n_second)):
            if name in params:
                parts.append(np.asarray(params[name]))
            elif name.endswith("sample_weight"):
                parts.append(np.ones(n))
            else:
                raise ValueError(
                    f"the fit parameter {name!r} holds one value per item and came "
                    "for some of the labels only. Pass it with every fit and teach."
                )
        joined[name] = np.concatenate(parts)
    return joined


def check_weights(params, n):
    """Return parameters of `fit` if what they hold of sample weights fits n items.

    Raises
    ------
    TypeError
        If weights are in no order.
    ValueError
        If they are not one finite number per item, one positive number or None.
    """
    for name, value in params.items():
        single = value is None or (isinstance(value, Real) and 0 < value < np.inf)
        if single or not name.endswith("sample_weight"):
            continue
        refuse_unordered(value, name)
        try:
            weights = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError) as exc:
            raise ValueError(
                f"{name!r} must hold one number per item, got {type(value).__name__}: "
                f"{exc}"
            ) from exc
        if weights.shape != (n,) or not np.isfinite(weights).all():
            raise ValueError(
                f"{name!r} must hold one finite number per item, an array of shape "
                f"({n},); got the shape {weights.shape}, and "
                f"{int((~np.isfinite(weights)).sum())} that are not finite."
            )
    return params


def _is_aligned(value, n):
    has_rows = hasattr(value, "__len__") and not isinstance(value, str | dict)
    return has_rows and num_samples(value) == n


def find_target(model, y=None):
    """Return what a model predicts: "single-label", "multi-label" or "regression".

    `model` may be None, and is fitted or not; `y` are the labels so far, as an array.
    """
    if model is not None and is_regressor(model):
        return "regression"
    several = isinstance(getattr(model, "classes_", None), list)
    several = several or getattr(model, "multilabel_", False)
    return "multi-label" if several or np.ndim(y) == 2 else "single-label"
