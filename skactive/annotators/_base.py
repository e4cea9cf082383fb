"""What an annotator is, annotators by name, and a column of answers."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

from .._utils._checks import check_share
from .._utils._containers import as_list, as_texts, refuse_unordered
from .._utils._format import is_missing
from .._utils._plugins import ANNOTATORS, find, load, make


@runtime_checkable
class Annotator(Protocol):
    """Anything with a name that labels texts.

    Attributes
    ----------
    name : str
        Name under which the answers are recorded.

    See Also
    --------
    skactive.testing.check_annotator : Conformance checks.

    Notes
    -----
    Two more members are optional. `describe()` returns a dict that JSON can hold: the
    settings that somebody needs to repeat the answers. A session records it in its
    journal. `deterministic = True` claims that a text always gets the same answer,
    whatever other texts it comes with.

    Examples
    --------
    >>> from skactive.annotators import Annotator
    >>> class Keyword:
    ...     name = "keyword"
    ...
    ...     def annotate(self, texts):
    ...         return [("fire" if "fire" in text else None, None) for text in texts]
    >>> isinstance(Keyword(), Annotator)
    True
    """

    name: str

    def annotate(self, texts: Sequence[Any]) -> list[tuple[Any, float | None]]:
        """Return a label and a confidence for each text.

        Parameters
        ----------
        texts : sequence of n str, or of n (str, str) pairs
            The texts.

        Returns
        -------
        answers : list of n (label or None, float or None)
            A label is a str, int, float or bool, or a list of names where several
            classes apply; None where there is none. The confidence is the probability
            of the label, from 0 to 1, or None.
        """


class ColumnAnnotator:
    """Answers that exist already, such as a column of a table.

    Parameters
    ----------
    texts : sequence of n str, or of n (str, str) pairs
        The texts that were answered.
    labels : sequence of n labels
        Their labels. None, NaN and "" stand for no answer. Of several answers to one
        text, the first counts.
    confidences : sequence of n float, default=None
        Probabilities of the labels, from 0 to 1; None and NaN stand for unknown ones.
    name : str, default="column"
        Name of the annotator.

    See Also
    --------
    ChatAnnotator : Ask a language model.

    Examples
    --------
    >>> from skactive.annotators import ColumnAnnotator
    >>> column = ColumnAnnotator(["wet", "hot"], ["flood", "fire"], [0.9, 0.6])
    >>> column.annotate(["hot", "dry"])
    [('fire', 0.6), (None, None)]
    """

    deterministic = True

    def __init__(
        self,
        texts: Sequence[Any],
        labels: Sequence[Any],
        confidences: Sequence[Any] | None = None,
        *,
        name: str = "column",
    ) -> None:
        self.name = check_name(name)
        keys = read_texts(texts)
        found = _read_column("labels", labels, len(keys))
        shares = [None] * len(keys)
        if confidences is not None:
            shares = _read_column("confidences", confidences, len(keys))
        self._answers: dict[Any, Any] = {}
        for text, label, share in zip(keys, found, shares, strict=True):
            share = _read_confidence(share)
            if not is_missing(label):
                self._answers.setdefault(text, (label, share))

    def annotate(self, texts: Sequence[Any]) -> list[tuple[Any, float | None]]:
        """Return the answers of the column, (None, None) for other texts.

        Parameters
        ----------
        texts : sequence of n str, or of n (str, str) pairs
            The texts.

        Returns
        -------
        answers : list of n (label or None, float or None)
            A label and its confidence for each text.
        """
        return [self._answers.get(text, (None, None)) for text in read_texts(texts)]

    def describe(self) -> dict[str, Any]:
        """Return the settings as a dict that JSON can hold.

        Returns
        -------
        settings : dict
            The class, the name, the number of texts with an answer, and a SHA-256 of
            the answers.
        """
        settings = {"annotator": type(self).__name__, "name": self.name}
        digest = hashlib.sha256(repr(self._answers).encode("utf-8", "replace"))
        about = {"n_answers": len(self._answers), "sha256": digest.hexdigest()}
        return {**settings, **about}


def get_annotator(name: str, /, **params: Any) -> Annotator:
    """Return the annotator of a name.

    Parameters
    ----------
    name : str
        "column", "chat", the name of a plugin's annotator, or `dist:name`. Plugins use
        the entry-point group ``skactive.annotators``.
    **params : dict
        Parameters of the annotator.

    Returns
    -------
    annotator : Annotator
        A new instance.

    Raises
    ------
    ValueError
        If the name is unknown or ambiguous, or the value of a parameter is invalid.
    ImportError
        If the plugin that offers it cannot be imported.
    TypeError
        If a parameter is unknown or missing, or the plugin offers something else.

    Examples
    --------
    >>> from skactive.annotators import get_annotator
    >>> column = get_annotator("column", texts=["hot"], labels=["fire"])
    >>> column.annotate(["hot"])
    [('fire', None)]
    """
    entry = find(name, ANNOTATORS)
    offered = load(entry)
    made = make("annotator", entry.name, offered, params) if callable(offered) else None
    if not isinstance(made, Annotator):
        raise TypeError(
            f"{entry.value!r}, which {entry.full_name!r} stands for, must be a class "
            "whose instances have a name and a method annotate(texts). See "
            "skactive.annotators.Annotator."
        )
    return made


def describe_annotator(annotator):
    """Return the settings of any annotator for a journal, dict."""
    if callable(describe := getattr(annotator, "describe", None)):
        return describe()
    return {"annotator": type(annotator).__name__}


def read_texts(texts):
    """Return texts, or pairs, as a list, which may be empty."""
    is_empty = not isinstance(texts, str) and hasattr(texts, "__len__")
    return [] if is_empty and len(texts) == 0 else as_texts(texts, name="texts")


def check_name(name):
    """Return the name of an annotator, a str that is not blank."""
    if not isinstance(name, str) or not name.strip():
        raise ValueError(
            f"'name' must be a str that names the annotator, got {name!r}."
        )
    return name


def _read_column(name, values, n):
    """Return n values as a list of Python types."""
    refuse_unordered(values, name)
    column = [] if isinstance(values, str) else as_list(values)
    if len(column) != n:
        raise ValueError(
            f"{name!r} must hold one value for each of the {n} texts, got "
            f"{len(column)}. Pass columns of one table."
        )
    return column


def _read_confidence(value):
    """Return a probability as float, or None for a missing one."""
    if is_missing(value):
        return None
    with suppress(TypeError, ValueError):
        value = float(value)
    return check_share("confidences", value, limits=(0, 1))
