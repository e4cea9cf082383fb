"""Checks of what a text classifier or regressor does with labels and numbers."""

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from ._cases import ensure
from ._text_cases import TEXTS, agree, answers, object_array, refused

_POSITION = 7


def check_targets_are_needed(subject):
    """`fit` without targets is refused."""
    refused(
        lambda y: subject.make().fit(list(TEXTS), y),
        None,
        r"\by\b|target|label",
        "fit with y=None",
        "raise ValueError, and say that y is needed.",
    )


def check_lengths_agree(subject):
    """Texts and targets of different number are refused, with both numbers."""
    n = len(TEXTS)
    refused(
        lambda y: subject.make().fit(list(TEXTS), y),
        subject.targets(n - 1),
        rf"{n}.*{n - 1}|{n - 1}.*{n}",
        f"fit with {n} texts and {n - 1} targets",
        "raise ValueError that names both numbers.",
    )


def check_missing_target_is_refused(subject):
    """A missing label or number is refused, with its position or by its name."""
    for missing in (None, float("nan")):
        y = subject.targets().tolist()
        y[_POSITION] = missing
        refused(
            lambda y: subject.make().fit(list(TEXTS), y),
            y,
            rf"\b{_POSITION}\b|nan|none|missing",
            f"fit with {missing} at position {_POSITION} of y",
            "raise ValueError that names the position.",
        )


def check_targets_in_any_container(subject):
    """Targets may come in any container."""
    y = subject.targets()
    expected = answers(subject.fit(), list(TEXTS))
    forms = {"list": y.tolist(), "tuple": tuple(y.tolist()), "object array": None}
    forms["object array"] = object_array(y.tolist())
    try:
        import pandas as pd
    except ImportError:
        pass
    else:
        forms["pandas Series"] = pd.Series(y, index=range(10, 10 + len(y)))
    for name, form in forms.items():
        fault = agree(expected, answers(subject.fit(y=form), list(TEXTS)))
        ensure(
            not fault,
            f"for targets in a {name} {fault} than for an array; read targets of any "
            "container into an array first.",
        )


def check_sample_weights_of_one(subject):
    """Equal weights are the same as none; another number of weights is refused."""
    y, n = subject.targets(), len(TEXTS)
    weighted = subject.make()
    weighted.fit(list(TEXTS), y, sample_weight=np.ones(n))
    fault = agree(answers(subject.fit(), list(TEXTS)), answers(weighted, list(TEXTS)))
    ensure(not fault, f"with weights of 1 {fault} than without; let 1 be the default.")
    refused(
        lambda w: subject.make().fit(list(TEXTS), y, sample_weight=w),
        np.ones(n - 1),
        "weight",
        f"fit with {n} texts and {n - 1} weights",
        "raise ValueError that names sample_weight.",
    )


def check_string_labels(subject):
    """Labels may be strings."""
    _check_labels(subject, ["no", "yes"])


def check_number_labels(subject):
    """Labels may be integers that are no column numbers."""
    _check_labels(subject, [-3, 8])


def check_bool_labels(subject):
    """Labels may be bools."""
    _check_labels(subject, [False, True])


def check_three_classes(subject):
    """Three classes are no special case."""
    labels = np.array(["a", "b", "c"])
    fitted = subject.fit(y=labels[np.arange(len(TEXTS)) % 3])
    _ensure_classes(fitted, labels)


def _check_labels(subject, labels):
    """Check that labels come back as they were, and that their names do not matter."""
    labels = np.array(labels)
    codes = np.arange(len(TEXTS)) % len(labels)
    fitted = subject.fit(y=labels[codes])
    _ensure_classes(fitted, labels)
    found = answers(fitted, list(TEXTS))
    expected = answers(subject.fit(), list(TEXTS))
    for each in (found, expected):
        each.pop("predict", None)
    fault = agree(expected, found)
    ensure(
        not fault,
        f"with the labels {labels.tolist()} in place of 'no' and 'yes' {fault}; number "
        "the classes in sorted order, and compute with those numbers only.",
    )


def _ensure_classes(fitted, labels):
    ensure(
        np.array_equal(fitted.classes_, labels)
        and np.asarray(fitted.classes_).dtype.kind == labels.dtype.kind,
        f"of the labels {labels.tolist()}, classes_ is {list(fitted.classes_)}; keep "
        "the sorted labels as they came: np.unique(y).",
    )
    predicted = np.asarray(fitted.predict(list(TEXTS)))
    ensure(
        predicted.dtype.kind == labels.dtype.kind and np.isin(predicted, labels).all(),
        f"of the labels {labels.tolist()}, predict gives {predicted[:3].tolist()}; "
        "index classes_ by the number of the column.",
    )


def check_probabilities(subject):
    """Probabilities have a column per class, sum to 1, and decide what is predicted."""
    fitted = subject.fit()
    proba = np.asarray(fitted.predict_proba(list(TEXTS)))
    ensure(
        proba.shape == (len(TEXTS), len(fitted.classes_))
        and (proba >= 0).all()
        and np.allclose(proba.sum(axis=1), 1),
        f"predict_proba gives the shape {proba.shape} and sums of rows from "
        f"{proba.sum(axis=1).min():.3g} to {proba.sum(axis=1).max():.3g}; give a "
        "column per class of classes_, and rows that sum to 1.",
    )
    predicted = fitted.predict(list(TEXTS))
    ensure(
        np.array_equal(predicted, fitted.classes_[proba.argmax(axis=1)]),
        "predict gives other classes than the largest of predict_proba; keep columns "
        "in the order of classes_.",
    )


def check_single_class_is_refused(subject):
    """Labels of one class only are refused in words."""
    refused(
        lambda y: subject.make().fit(list(TEXTS), y),
        ["yes"] * len(TEXTS),
        r"class",
        "fit with labels of one class only",
        "raise ValueError that says so.",
    )


def check_mixed_labels_are_refused(subject):
    """Labels of mixed types are refused in words."""
    refused(
        lambda y: subject.make().fit(list(TEXTS), y),
        ["yes", 1] * (len(TEXTS) // 2),
        r"mix|type|kind",
        "fit with strings and integers as labels",
        "raise TypeError or ValueError that says so.",
    )


def check_unseen_class_in_score(subject):
    """`score` counts a class that training never saw as a mistake."""
    fitted, y = subject.fit(), subject.targets()
    y[0] = "??"
    expected = np.mean(fitted.predict(list(TEXTS)) == y)
    found = fitted.score(list(TEXTS), y)
    ensure(
        np.isclose(found, expected),
        f"with a class that training never saw, score is {found:.3g} and not "
        f"{expected:.3g}; compare labels, not numbers of classes.",
    )


def check_predictions_are_numbers(subject):
    """A regressor predicts one finite number for each text."""
    predicted = np.asarray(subject.fit().predict(list(TEXTS)))
    ensure(
        predicted.shape == (len(TEXTS),)
        and predicted.dtype.kind == "f"
        and np.isfinite(predicted).all(),
        f"predict gives the shape {predicted.shape} of {predicted.dtype} for "
        f"{len(TEXTS)} texts; give one finite float for each.",
    )


def check_whole_numbers(subject):
    """Whole numbers are numbers, whether stored as int or float."""
    y = np.arange(len(TEXTS))
    whole, floats = (subject.fit(y=y.astype(dtype)) for dtype in (int, float))
    fault = agree(answers(whole, list(TEXTS)), answers(floats, list(TEXTS)))
    ensure(not fault, f"for targets of float {fault} than for int; convert to float.")


def check_strings_as_numbers_are_refused(subject):
    """Strings as the targets of a regressor are refused in words."""
    refused(
        lambda y: subject.make().fit(list(TEXTS), y),
        np.array(["low", "high"] * (len(TEXTS) // 2)),
        r"number|numeric|float|str",
        "fit of a regressor with strings as targets",
        "raise ValueError or TypeError that says so.",
    )


#: In the order in which they run; see the kit for those that apply to some only.
TEXT_TARGET_CHECKS = (
    check_targets_are_needed,
    check_lengths_agree,
    check_missing_target_is_refused,
    check_targets_in_any_container,
    check_sample_weights_of_one,
    check_string_labels,
    check_number_labels,
    check_bool_labels,
    check_three_classes,
    check_probabilities,
    check_single_class_is_refused,
    check_mixed_labels_are_refused,
    check_unseen_class_in_score,
    check_predictions_are_numbers,
    check_whole_numbers,
    check_strings_as_numbers_are_refused,
)


def takes_weights(subject):
    """Whether `fit` has the argument sample_weight."""
    return subject.is_supervised and has_fit_parameter(subject.given, "sample_weight")
