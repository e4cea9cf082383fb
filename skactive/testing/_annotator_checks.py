"""The conformance checks of annotators."""

import json
from collections.abc import Sequence
from typing import Any

from .._utils._containers import as_texts
from .._utils._format import is_missing
from .._utils._labels import is_names
from ._strategy_cases import ensure


def check_annotator(annotator: Any, texts: Sequence[Any]) -> list[Any]:
    """Check that an annotator does what sessions need, on texts of your own.

    Parameters
    ----------
    annotator : Annotator
        The annotator. It is called once, or four times if it has
        `deterministic = True`.
    texts : sequence of n str, or of n (str, str) pairs
        Texts that it can label.

    Returns
    -------
    answers : list of n (label or None, float or None)
        The answers, which passed the checks.

    Raises
    ------
    AssertionError
        States the fault and the remedy.

    See Also
    --------
    skactive.annotators.Annotator : What is checked.

    Examples
    --------
    >>> from skactive.testing import check_annotator
    >>> class Shouting:
    ...     name = "shouting"
    ...
    ...     def annotate(self, texts):
    ...         return [("loud" if text.isupper() else None, 100) for text in texts]
    >>> try:
    ...     check_annotator(Shouting(), ["HELP", "hello"])
    ... except AssertionError as error:
    ...     print(str(error).split(";")[0])
    the confidence of text 0 is 100
    """
    texts = as_texts(texts, name="texts")
    name = getattr(annotator, "name", None)
    ensure(
        isinstance(name, str) and bool(name.strip()),
        f"the name is {name!r}; set `name` to a str that is not blank.",
    )
    ensure(
        callable(getattr(annotator, "annotate", None)),
        "there is no method annotate(texts); write one.",
    )
    if callable(describe := getattr(annotator, "describe", None)):
        settings = describe()
        ensure(isinstance(settings, dict), "describe() returns no dict; return one.")
        try:
            json.dumps(settings)
        except (TypeError, ValueError) as exc:
            raise AssertionError(
                f"describe() returns what JSON cannot hold ({exc}); use str, numbers, "
                "lists and dicts."
            ) from exc
    nothing = annotator.annotate([])
    ensure(nothing == [], f"annotate([]) returns {nothing!r}; return an empty list.")
    answers = _ask(annotator, texts)
    if getattr(annotator, "deterministic", False):
        _check_repetitions(annotator, texts, answers)
    return answers


def _ask(annotator, texts):
    """Return checked answers."""
    batch = list(texts)
    answers = annotator.annotate(batch)
    ensure(batch == texts, "annotate changes the list of texts; copy it before.")
    ensure(
        isinstance(answers, list) and len(answers) == len(texts),
        f"annotate does not return a list of one answer for each of {len(texts)} "
        f"texts, but {answers!r:.100}; return (None, None) where there is none.",
    )
    for i, answer in enumerate(answers):
        ensure(
            isinstance(answer, tuple) and len(answer) == 2,
            f"the answer to text {i} is {answer!r}; return (label, confidence).",
        )
        label, confidence = answer
        is_label = isinstance(label, str | int | float) and not is_missing(label)
        is_list = is_names(label) and len(set(label)) == len(label)
        ensure(
            label is None or is_label or is_list,
            f"the label of text {i} is {label!r}; return a str, int, float or bool, a "
            "list of different names, or None.",
        )
        is_number = isinstance(confidence, int | float)
        ensure(
            confidence is None or (is_number and 0 <= confidence <= 1),
            f"the confidence of text {i} is {confidence!r}; return a float from 0 to "
            "1, or None.",
        )
    return answers


def _check_repetitions(annotator, texts, answers):
    """Check that a text gets the same answer in every call."""
    for what, order in (
        ("asked again", range(len(texts))),
        ("asked in another order", range(len(texts))[::-1]),
        ("asked alone", range(1)),
    ):
        again = _ask(annotator, [texts[i] for i in order])
        odd = [i for i, x in zip(order, again, strict=True) if x != answers[i]]
        ensure(
            not odd,
            f"{what}, the answer to text {odd[:1]} differs; make it depend on the text "
            "alone, or leave out `deterministic`.",
        )
