"""Labels, predictions in their form, and fit parameters with one value per label."""

import warnings
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ._containers import as_container, check_columns, list_columns, refuse_unordered
from ._format import brief, find_certainty, is_missing, list_best, list_some, trim
from ._sklearn import num_samples

_INDICATOR = (
    "For several classes of an item, pass an indicator matrix of 0 and 1, as "
    "sklearn.preprocessing.MultiLabelBinarizer makes it."
)
_FAMILIES = {"b": "bool", "i": "number", "u": "number", "f": "number"}


def as_labels(y, n_samples, *, name="y", items="X", estimator=None):
    """Return labels of any usual container as a new array, (n,) or (n, n_outputs).

    Strings become a `U` array. `name` and `items` are the arguments in error messages.
    Raise a ValueError if labels are missing or their number is not `n_samples`, and a
    TypeError if they mix strings, numbers and bools, or are no numbers though
    `estimator` is a regressor.
    """
    if y is None:
        raise ValueError(f"{name!r} requires y to be passed, but the target y is None.")
    y = y.toarray() if sparse.issparse(y) else as_container(y)
    refuse_unordered(y, name)
    if not hasattr(y, "__len__") and hasattr(y, "__array__"):
        y = np.asarray(y)
    if isinstance(y, str) or not hasattr(y, "__len__") or getattr(y, "ndim", 1) == 0:
        raise TypeError(
            f"{name!r} must be a sequence with one label per item, got {brief(y)}. "
            "Wrap a single label in a list."
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
    if values.dtype.kind in "UT" and estimator is not None and is_regressor(estimator):
        raise TypeError(
            f"{name!r} must hold numbers for a regressor, got texts such as "
            f"{str(values.flat[0])[:40]!r}. Convert them, or use a classifier."
        )
    return np.array(values)


def match_columns(y, before=(), name="y"):
    """Return the names of the columns of `before`, else those of labels, in a list.

    Raise a ValueError if both have names, which differ.
    """
    columns = list_columns(y)
    if before and len(columns) > 1:
        check_columns(before, columns, name)
    return before or columns


def _from_objects(values, name):
    """Return an object array of labels in its proper dtype, if there is one."""
    examples = {type(value): value for value in values}
    if {*examples} - {bool, int}:
        missing = [i for i, value in enumerate(values) if is_missing(value)]
        if missing:
            _refuse_missing(missing, name)
    if any(isinstance(v, list | tuple | np.ndarray) for v in examples.values()):
        try:
            found = np.array(list(values))
        except ValueError as exc:
            raise TypeError(
                f"{name!r} must hold one label per item, or the same number of labels "
                f"for each; got lists of several lengths. {_INDICATOR}"
            ) from exc
        if found.ndim == 2 and found.dtype.kind in "UT":
            raise TypeError(
                f"{name!r} must hold one label per item or an indicator matrix, got "
                f"lists of str such as {found[0].tolist()}. {_INDICATOR}"
            )
        return found
    families = {_family(v) for v in examples.values()}
    if len(families) > 1:
        _refuse_mixture(families, name)
    labels = np.array(values.tolist())
    if labels.dtype.kind == "U" and labels.tolist() != values.tolist():
        raise ValueError(
            f"{name!r} must hold labels that do not end in a null character, which "
            "NumPy drops. Remove it."
        )
    if labels.dtype.kind in "fO" and all(isinstance(v, Integral) for v in values):
        raise ValueError(
            f"{name!r} must hold labels that fit into 64 bits, got "
            f"{max(values, key=abs)}. Use smaller numbers, or str labels."
        )
    return labels


def _family(value):
    if isinstance(value, str):
        return "str"
    if isinstance(value, bool | np.bool_):
        return "bool"
    return "number" if np.isscalar(value) else type(value).__name__


def kind_of(y):
    """Return the kind of labels in an array: "bool", "number" or "str"."""
    return _FAMILIES.get(y.dtype.kind, "str")


def _refuse_missing(positions, name):
    raise ValueError(
        f"{name!r} has no label at positions {list_some(positions)} (None, NaN, "
        "infinity or an empty string). Pass only the items that have one; the pool "
        "goes to query."
    )


def _refuse_mixture(families, name="y"):
    raise TypeError(
        f"{name!r} mixes labels of the kinds {sorted(families)}. Use one kind for "
        "every label, in every call."
    )


def read_labels(y, n_samples, estimator, before=None):
    """Return labels like :func:`as_labels`; warn once of -1, which could mean no label.

    There is no warning for a regressor, for the two classes -1 and 1, or if `before`,
    the earlier labels, contain -1.
    """
    y = as_labels(y, n_samples, estimator=estimator)
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
    """Return earlier and new labels in one array.

    Raise a TypeError if their kinds differ, and a ValueError if their shapes do.
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
    """Return the fit parameters with one value per item, for earlier and new items.

    A missing sample weight is 1. Raise a ValueError if another parameter was given for
    some items only.
    """
    second = check_weights(second, n_second)
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
    """Return parameters of `fit` after a check of the sample weights for n items.

    Weights are one finite number per item, one positive number for all or None. Raise a
    TypeError for weights without an order.
    """
    params = dict(params)
    for name, value in params.items():
        if value is None or not name.endswith("sample_weight"):
            continue
        if isinstance(value, Real) and 0 < value < np.inf:
            params[name] = value = np.full(n, float(value))
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


def check_classes(y, estimator=None):
    """Raise a ValueError for labels that are no classes, such as 0.5.

    For integers and strings, the check of scikit-learn would only warn that there are
    many classes for so few labels, which is usual here. `estimator` is named.
    """
    if np.asarray(y).dtype.kind in "biuUST":
        return
    try:
        check_classification_targets(y)
    except ValueError as exc:
        if estimator is None:
            raise
        fault = str(exc).partition(".")[0]
        raise ValueError(
            f"{fault}. {type(estimator).__name__} is a classifier. Use a regressor for "
            "numbers, such as Ridge."
        ) from exc


def check_one_label(y, estimator):
    """Raise a TypeError if `y` has several columns, as an indicator matrix has."""
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and len(y):
        shape = (len(y), *np.shape(y[0]))
    if shape is not None and len(shape) > 1 and shape[1] > 1:
        name = type(estimator).__name__
        raise TypeError(
            f"'y' must hold one label per item for {name}, got the shape "
            f"{tuple(shape)}. For several labels per item, wrap it: "
            f"OneVsRestClassifier({name}(...))."
        )


# What a model predicts.
Target = Literal["single-label", "multi-label", "regression"]
TARGETS = frozenset({"single-label", "multi-label", "regression"})
SINGLE_LABEL = frozenset({"single-label"})
CLASSES = frozenset({"single-label", "multi-label"})


def find_target(model, y=None):
    """Return the target of a model.

    This is "single-label", "multi-label" for an indicator matrix, "regression", or
    "multi-output" for several numbers or classes for each item. `model`, fitted or not,
    may be None. `y` is the array of the labels so far, or None.
    """
    several = np.ndim(y) == 2
    if model is not None and is_regressor(model):
        return "multi-output" if several else "regression"
    if several:
        return "multi-label" if is_indicator(y) else "multi-output"
    is_list = isinstance(getattr(model, "classes_", None), list)
    return "multi-label" if is_list or is_multi_label(model) else "single-label"


def is_multi_label(model):
    """Whether a model says that it was trained on an indicator matrix."""
    # `multilabel_` is the name in scikit-learn's OneVsRestClassifier.
    names = ("multi_label_", "multilabel_")
    return any(getattr(model, name, False) for name in names)


@contextmanager
def explain_constant_labels(y):
    """Name labels that all or no items have in the error of an estimator's `fit`."""
    try:
        yield
    except ValueError as exc:
        if not is_indicator(y):
            raise
        columns = np.flatnonzero((y == y[0]).all(axis=0)).tolist()
        if columns:
            shown = ", ".join(map(str, columns[:5])) + ", ..." * (len(columns) > 5)
            exc.add_note(
                f"All or no items have the labels of the columns {shown} of 'y', which "
                "this estimator may not accept. OneVsRestClassifier predicts such "
                "labels as constant."
            )
        raise


def is_indicator(y):
    """Whether labels are an indicator matrix, (n, k) of 0 and 1."""
    return np.ndim(y) == 2 and y.dtype.kind in "biuf" and bool(np.isin(y, (0, 1)).all())


def marginals(proba, classes):
    """Return the probabilities (n, k) of k labels.

    `proba` holds an array (n, 1 or 2) for each label, as multi-output classifiers
    predict, and `classes` its columns. A label whose only class is 0 has probability 0.
    """
    columns = []
    for each, names in zip(proba, classes, strict=True):
        place = np.flatnonzero(np.asarray(names) == 1)
        columns.append(each[:, place[0]] if len(place) else np.zeros(len(each)))
    return np.stack(columns, axis=1)


# Labels of one item: a class, a list of names, or a number ---------------------------


def key_of(label):
    """Return a key that equal labels share; the order of names does not matter."""
    label = label.tolist() if isinstance(label, np.generic | np.ndarray) else label
    if isinstance(label, list | tuple):
        keys = map(key_of, label)
        return str(sorted(keys) if is_names(label) else [*keys])
    is_whole = isinstance(label, float) and label.is_integer()
    return repr(int(label) if is_whole else label)


def same_label(first, second):
    """Whether two labels are equal; the order of names does not matter."""
    return key_of(first) == key_of(second)


def list_classes(labels):
    """Return the classes in labels, in order; a list of names holds several."""
    parts = (label if is_names(label) else [label] for label in labels)
    return [name for part in parts for name in part]


def is_names(label):
    """Whether a label is a list of names of classes, of any length."""
    return isinstance(label, list) and all(isinstance(part, str) for part in label)


def name_now(label, renamed):
    """Return a label with the present names of its classes."""
    if isinstance(label, list):  # a list of numbers has no classes
        names = is_names(label) and [renamed.get(name, name) for name in label]
        return list(dict.fromkeys(names)) if names else label
    return renamed.get(label, label)


def as_class(name, known):
    """Return what a person typed as a class, in the type of the known classes.

    A text that is none of that type stays a text, which the session refuses.
    """
    if not isinstance(name, str):
        return name
    name, kind = trim(name), type(next(iter(known), ""))
    looks = {str(x): x for x in ([False, True] if kind is bool else known)}
    if name in looks or kind not in (int, float):
        return looks.get(name, name)
    with suppress(ValueError):
        return kind(name)
    return name


def predict_labels(model, X, classes, target, n_top=5):
    """Return predicted labels, scores and best classes of n items, three lists.

    `classes` names the columns of a multi-label model; None leaves its labels rows of 0
    and 1. A score is the probability of the predicted class, or what `find_certainty`
    returns, and None without probabilities. The best classes are up to `n_top` pairs of
    class and probability, lists. Without a model, labels and scores are None.
    """
    n = num_samples(X)
    if model is None or not n:
        return [None] * n, [None] * n, [[] for _ in range(n)]
    if target == "multi-label":
        return _predict_several(model, X, n, classes, n_top)
    if target == "regression":
        predicted = np.asarray(model.predict(X), dtype=np.float64)
        return predicted.tolist(), [None] * n, [[] for _ in range(n)]
    if not hasattr(model, "predict_proba"):
        labels = np.asarray(model.predict(X)).tolist()
        return labels, [None] * n, [[[label, None]] for label in labels]
    proba = np.asarray(model.predict_proba(X))
    names = np.asarray(model.classes_)
    labels = names[proba.argmax(axis=1)].tolist()
    best = list_best(names.tolist(), proba, n_top)
    return labels, proba.max(axis=1).tolist(), best


def _predict_several(model, X, n, classes, n_top):
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
    scores = find_certainty(proba, rows[:, :k]).tolist()
    return labels, scores, list_best(names, proba, n_top)
