"""Checks of what a text estimator takes and refuses, and that rows are independent."""

import joblib
import numpy as np

from ._cases import ensure
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


def check_every_container_predicts_the_same(subject):
    """A fitted estimator answers alike whatever container the texts come in."""
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
    """A bare str is not a collection of one-letter texts."""
    text = "abcdefghijkl"  # as many letters as there are targets
    for method, call in calls(subject):
        refused(
            call,
            text,
            "list|sequence|iterable",
            f"{method} of a bare str",
            "raise TypeError or ValueError, and say to wrap it in a list.",
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
                "list(frame) gives the names of columns: raise ValueError, and say to "
                "pass the column.",
            )


def check_column_array_is_refused(subject):
    """An array of shape (n, 1) is refused, as its rows are arrays and no texts."""
    X = object_array(TEXTS)[:, None]
    for method, call in calls(subject):
        refused(
            call,
            X,
            r"dimension|shape|1-?d\b",
            f"{method} of an array of shape (n, 1)",
            "raise ValueError, and say to pass one dimension.",
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
                "raise ValueError, and say that it is empty.",
            )


def check_empty_text_is_allowed(subject):
    """An empty str is a text."""
    texts = list(TEXTS)
    texts[_POSITION] = ""
    fitted = subject.fit(texts)
    for X in (texts, [""]):
        for method, found in answers(fitted, X).items():
            ensure(
                len(found) == len(X),
                f"{method} gives {len(found)} rows for {len(X)} texts, one of them "
                "empty; an empty text has a row like any other.",
            )
            ensure(
                found.dtype.kind not in "fc" or np.isfinite(found).all(),
                f"{method} gives NaN or infinity for an empty text; mind divisions by "
                "its length.",
            )


def check_one_row_per_text(subject):
    """Every answer has a row for each text, and equal texts have equal rows."""
    for method, found in answers(subject.fit(), list(TEXTS)).items():
        ensure(
            len(found) == len(TEXTS),
            f"{method} gives {len(found)} rows for {len(TEXTS)} texts; give one each.",
        )
        same = agree({method: found[[0]]}, {method: found[[6]]}, exactly=False)
        ensure(
            not same,
            f"of two equal texts in one call {same}; compute a row from its text.",
        )


def check_order_of_texts(subject):
    """Rows follow the texts into any order."""
    fitted = subject.fit()
    order = np.random.default_rng(0).permutation(len(TEXTS))
    expected = answers(fitted, list(TEXTS))
    found = answers(fitted, [TEXTS[i] for i in order])
    fault = agree(
        {name: rows[order] for name, rows in expected.items()}, found, exactly=False
    )
    ensure(
        not fault,
        f"for the same texts in another order {fault}; put what was sorted or "
        "batched back in order, and look at one text at a time.",
    )


def check_subset_of_texts(subject):
    """A text's row does not depend on the texts beside it."""
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
            f"for {len(rows)} of {len(TEXTS)} texts {fault}; mask what pads a batch, "
            "and take no statistics of it.",
        )


def check_read_only_input(subject):
    """Arrays that cannot be written to are accepted."""
    X, y = object_array(TEXTS), subject.targets()
    for array in (X, y):
        if array is not None:
            array.flags.writeable = False
    answers(fit(subject.make(), X, y), X)


def check_input_is_unchanged(subject):
    """No call writes into the texts or targets that it is given."""
    for convert in (list, object_array):
        X, y = convert(TEXTS), subject.targets()
        before = joblib.hash([X, y])
        fitted = fit(subject.make(), X, y)
        ensure(joblib.hash([X, y]) == before, "fit changed X or y; work on a copy.")
        answers(fitted, X)
        ensure(joblib.hash([X, y]) == before, "a method changed X; work on a copy.")


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
