"""Checks of the texts, labels and numbers that an estimator accepts and refuses."""

import joblib
import numpy as np
from sklearn.utils.validation import has_fit_parameter

from skactive.testing._strategy_cases import ensure

from ._text_cases import (
    TEXTS,
    agree,
    answers,
    calls,
    containers,
    fit,
    frames,
    object_array,
    refused,
)

_POSITION = 7

# Texts


def check_every_container_predicts_the_same(subject):
    """A fitted estimator predicts the same for texts in any container."""
    fitted = subject.fit()
    expected = answers(fitted, list(TEXTS))
    for name, X in containers(TEXTS):
        fault = agree(expected, answers(fitted, X))
        ensure(
            not fault,
            f"for a {name} {fault} than for a list; read the texts of any container "
            "into a list first.",
        )


def check_every_container_fits_the_same(subject):
    """Fitting on any container of the same texts gives the same model."""
    expected = answers(subject.fit(), list(TEXTS))
    for name, X in containers(TEXTS):
        fault = agree(expected, answers(subject.fit(X), list(TEXTS)))
        ensure(
            not fault,
            f"after fit on a {name} {fault} than after fit on a list; read the texts "
            "of any container into a list first.",
        )


def check_single_text_is_refused(subject):
    """A single str is refused; it is not a collection of one-letter texts."""
    text = "abcdefghijkl"  # as many letters as there are targets
    for method, call in calls(subject):
        refused(
            call,
            text,
            "list|sequence|iterable",
            f"{method} of a single str",
            "raise TypeError or ValueError, and suggest a list.",
        )


def check_frame_is_refused(subject):
    """A data frame of one column is refused, with a hint to its column."""
    for method, call in calls(subject):
        for what, X in frames(TEXTS):
            refused(
                call,
                X,
                "column",
                f"{method} of {what} with one column",
                "list(frame) returns the names of columns: raise ValueError, and "
                "suggest to pass the column.",
            )


def check_column_array_is_refused(subject):
    """An array of shape (n, 1) is refused, since its rows are arrays."""
    X = object_array(TEXTS)[:, None]
    for method, call in calls(subject):
        refused(
            call,
            X,
            r"dimension|shape|1-?d\b",
            f"{method} of an array of shape (n, 1)",
            "raise ValueError, and suggest one dimension.",
        )


def check_missing_text_is_refused(subject):
    """None and NaN among the texts are refused, with their position."""
    for missing in (None, float("nan")):
        texts = list(TEXTS)
        texts[_POSITION] = missing
        for method, call in calls(subject):
            for what, X in (("list", texts), ("object array", object_array(texts))):
                refused(
                    call,
                    X,
                    rf"\b{_POSITION}\b",
                    f"{method} of a {what} with {missing} at position {_POSITION}",
                    "raise TypeError or ValueError that names the position.",
                )


def check_missing_value_of_a_series_is_refused(subject):
    """A missing value of a series is refused, with its position."""
    texts = list(TEXTS)
    texts[_POSITION] = None
    for name, X in containers(texts):
        if "Series" not in name:
            continue
        for method, call in calls(subject):
            refused(
                call,
                X,
                rf"\b{_POSITION}\b",
                f"{method} of a {name} with a missing value at position {_POSITION}",
                "raise TypeError or ValueError that names the position.",
            )


def check_other_items_are_refused(subject):
    """Numbers and bytes among the texts are refused, with their position."""
    for item in (3.5, b"bytes"):
        X = list(TEXTS)
        X[_POSITION] = item
        for method, call in calls(subject):
            refused(
                call,
                X,
                rf"\b{_POSITION}\b",
                f"{method} of {type(item).__name__} at position {_POSITION}",
                "raise TypeError or ValueError that names the position.",
            )


def check_nothing_is_refused(subject):
    """An empty collection is refused."""
    for X in ([], np.array([], dtype=object)):
        for method, call in calls(subject):
            refused(
                call,
                X,
                r"empty|no texts|0 (sample|text)",
                f"{method} of an empty {type(X).__name__}",
                "raise ValueError, and state that it is empty.",
            )


def check_empty_text_is_allowed(subject):
    """An empty str is accepted as a text."""
    texts = list(TEXTS)
    texts[_POSITION] = ""
    fitted = subject.fit(texts)
    for X in (texts, [""]):
        for method, found in answers(fitted, X).items():
            ensure(
                len(found) == len(X),
                f"{method} returns {len(found)} rows for {len(X)} texts, one of them "
                "empty; return a row for an empty text like for any other.",
            )
            ensure(
                found.dtype.kind not in "fc" or np.isfinite(found).all(),
                f"{method} returns NaN or infinity for an empty text; avoid dividing "
                "by its length.",
            )


def check_one_row_per_text(subject):
    """Every method returns a row for each text, and equal rows for equal texts."""
    for method, found in answers(subject.fit(), list(TEXTS)).items():
        ensure(
            len(found) == len(TEXTS),
            f"{method} returns {len(found)} rows for {len(TEXTS)} texts; return one "
            "for each.",
        )
        same = agree({method: found[[0]]}, {method: found[[6]]}, exactly=False)
        ensure(
            not same,
            f"of two equal texts in one call {same}; compute each row from its text "
            "only.",
        )


def check_order_of_texts(subject):
    """Rows have the order of the texts."""
    fitted = subject.fit()
    order = np.random.default_rng(0).permutation(len(TEXTS))
    expected = answers(fitted, list(TEXTS))
    found = answers(fitted, [TEXTS[i] for i in order])
    fault = agree(
        {name: rows[order] for name, rows in expected.items()}, found, exactly=False
    )
    ensure(
        not fault,
        f"for the same texts in another order {fault}; restore the order "
        "after sorting or batching, and compute each row from its text only.",
    )


def check_subset_of_texts(subject):
    """A row does not depend on the other texts."""
    fitted = subject.fit()
    expected = answers(fitted, list(TEXTS))
    for rows in (np.arange(3, 8), np.array([5])):
        found = answers(fitted, [TEXTS[i] for i in rows])
        fault = agree(
            {name: values[rows] for name, values in expected.items()},
            found,
            exactly=False,
        )
        ensure(
            not fault,
            f"for {len(rows)} of {len(TEXTS)} texts {fault}; mask the padding of a "
            "batch, and compute no statistics over it.",
        )


def check_read_only_input(subject):
    """Arrays that cannot be written to are accepted."""
    X, y = object_array(TEXTS), subject.targets()
    for array in (X, y):
        if array is not None:
            array.flags.writeable = False
    answers(fit(subject.make(), X, y), X)


def check_input_is_unchanged(subject):
    """No call changes its texts or targets."""
    for convert in (list, object_array):
        X, y = convert(TEXTS), subject.targets()
        before = joblib.hash([X, y])
        fitted = fit(subject.make(), X, y)
        ensure(joblib.hash([X, y]) == before, "fit changed X or y; work on a copy.")
        answers(fitted, X)
        ensure(joblib.hash([X, y]) == before, "a method changed X; work on a copy.")


# Targets


def check_targets_are_needed(subject):
    """`fit` without targets is refused."""
    refused(
        lambda y: subject.make().fit(list(TEXTS), y),
        None,
        r"\by\b|target|label",
        "fit with y=None",
        "raise ValueError, and state that y is needed.",
    )


def check_lengths_agree(subject):
    """Different numbers of texts and targets are refused, with both numbers."""
    n = len(TEXTS)
    refused(
        lambda y: subject.make().fit(list(TEXTS), y),
        subject.targets(n - 1),
        rf"{n}.*{n - 1}|{n - 1}.*{n}",
        f"fit with {n} texts and {n - 1} targets",
        "raise ValueError that names both numbers.",
    )


def check_missing_target_is_refused(subject):
    """A missing target is refused, with its position or its value."""
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
            f"for targets in a {name} {fault} than for an array; convert targets of "
            "any container to an array first.",
        )


def check_sample_weights_of_one(subject):
    """Weights of 1 have no effect; another number of weights is refused."""
    y, n = subject.targets(), len(TEXTS)
    weighted = subject.make()
    weighted.fit(list(TEXTS), y, sample_weight=np.ones(n))
    fault = agree(answers(subject.fit(), list(TEXTS)), answers(weighted, list(TEXTS)))
    ensure(not fault, f"with weights of 1 {fault} than without; use 1 by default.")
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
    """Labels may be integers other than column numbers."""
    _check_labels(subject, [-3, 8])


def check_bool_labels(subject):
    """Labels may be bools."""
    _check_labels(subject, [False, True])


def check_three_classes(subject):
    """Three classes are accepted."""
    labels = np.array(["a", "b", "c"])
    fitted = subject.fit(y=labels[np.arange(len(TEXTS)) % 3])
    _ensure_classes(fitted, labels)


def _check_labels(subject, labels):
    """Check that labels are predicted as given, and that their values do not matter."""
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
        "the sorted labels as they are: np.unique(y).",
    )
    predicted = np.asarray(fitted.predict(list(TEXTS)))
    ensure(
        predicted.dtype.kind == labels.dtype.kind and np.isin(predicted, labels).all(),
        f"of the labels {labels.tolist()}, predict returns {predicted[:3].tolist()}; "
        "index classes_ by the number of the column.",
    )


def check_probabilities(subject):
    """Probabilities have a column per class, sum to 1, and agree with `predict`."""
    fitted = subject.fit()
    proba = np.asarray(fitted.predict_proba(list(TEXTS)))
    ensure(
        proba.shape == (len(TEXTS), len(fitted.classes_))
        and (proba >= 0).all()
        and np.allclose(proba.sum(axis=1), 1),
        f"predict_proba returns the shape {proba.shape} and sums of rows from "
        f"{proba.sum(axis=1).min():.3g} to {proba.sum(axis=1).max():.3g}; return a "
        "column per class of classes_, and rows that sum to 1.",
    )
    predicted = fitted.predict(list(TEXTS))
    ensure(
        np.array_equal(predicted, fitted.classes_[proba.argmax(axis=1)]),
        "predict returns other classes than the largest of predict_proba; keep the "
        "columns in the order of classes_.",
    )


def check_single_class_is_refused(subject):
    """Labels of a single class are refused with a clear error."""
    refused(
        lambda y: subject.make().fit(list(TEXTS), y),
        ["yes"] * len(TEXTS),
        r"class",
        "fit with labels of one class only",
        "raise ValueError, and state this.",
    )


def check_mixed_labels_are_refused(subject):
    """Labels of mixed types are refused with a clear error."""
    refused(
        lambda y: subject.make().fit(list(TEXTS), y),
        ["yes", 1] * (len(TEXTS) // 2),
        r"mix|type|kind",
        "fit with strings and integers as labels",
        "raise TypeError or ValueError, and state this.",
    )


def check_unseen_class_in_score(subject):
    """`score` counts a class that is not in `classes_` as an error."""
    fitted, y = subject.fit(), subject.targets()
    y[0] = "??"
    expected = np.mean(fitted.predict(list(TEXTS)) == y)
    found = fitted.score(list(TEXTS), y)
    ensure(
        np.isclose(found, expected),
        f"with a class that is not in classes_, score is {found:.3g} and not "
        f"{expected:.3g}; compare labels, not column numbers.",
    )


def check_predictions_are_numbers(subject):
    """A regressor predicts one finite number for each text."""
    predicted = np.asarray(subject.fit().predict(list(TEXTS)))
    ensure(
        predicted.shape == (len(TEXTS),)
        and predicted.dtype.kind == "f"
        and np.isfinite(predicted).all(),
        f"predict returns the shape {predicted.shape} of {predicted.dtype} for "
        f"{len(TEXTS)} texts; return one finite float for each.",
    )


def check_whole_numbers(subject):
    """Whole numbers are treated the same as int and as float."""
    y = np.arange(len(TEXTS))
    whole, floats = (subject.fit(y=y.astype(dtype)) for dtype in (int, float))
    fault = agree(answers(whole, list(TEXTS)), answers(floats, list(TEXTS)))
    ensure(not fault, f"for targets of float {fault} than for int; convert to float.")


def check_strings_as_numbers_are_refused(subject):
    """Strings as targets of a regressor are refused with a clear error."""
    refused(
        lambda y: subject.make().fit(list(TEXTS), y),
        np.array(["low", "high"] * (len(TEXTS) // 2)),
        r"number|numeric|float|str",
        "fit of a regressor with strings as targets",
        "raise ValueError or TypeError, and state this.",
    )


def takes_weights(subject):
    """Whether `fit` has the argument sample_weight."""
    return subject.is_supervised and has_fit_parameter(subject.given, "sample_weight")


#: In the order in which they run.
TEXT_INPUT_CHECKS = (
    check_every_container_predicts_the_same,
    check_every_container_fits_the_same,
    check_single_text_is_refused,
    check_frame_is_refused,
    check_column_array_is_refused,
    check_missing_text_is_refused,
    check_missing_value_of_a_series_is_refused,
    check_other_items_are_refused,
    check_nothing_is_refused,
    check_empty_text_is_allowed,
    check_one_row_per_text,
    check_order_of_texts,
    check_subset_of_texts,
    check_read_only_input,
    check_input_is_unchanged,
)
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
