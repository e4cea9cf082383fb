"""Tables of texts and labels: one class per text, or several."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from .._tables._labels import find_sources, read_labels, to_indicator
from .._tables._reader import TableFile, check_text_columns
from .._utils._sklearn import StrOptions, validate_params


@validate_params(
    {
        "path": [str, os.PathLike],
        "text": [str, list, tuple],
        "label": [str, list, tuple, None],
        "separator": [str, None],
        "regression": ["boolean"],
        "missing_labels": [StrOptions({"raise", "drop", "keep"})],
        "return_X_y": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def load_table(
    path: str | os.PathLike[str],
    *,
    text: str | Sequence[str],
    label: str | Sequence[str] | None = None,
    separator: str | None = None,
    regression: bool = False,
    missing_labels: Literal["raise", "drop", "keep"] = "raise",
    return_X_y: bool = False,
) -> Any:
    r"""Load texts, or pairs of texts, and their labels from a table in a file.

    Parameters
    ----------
    path : str or Path
        The file. Its suffix determines the format: ``.csv`` (quoted fields, separated
        by commas or what the first lines show: semicolons, tabs or bars), ``.tsv``
        (tabs; quotes as in CSV, unless they are part of the texts), ``.jsonl`` or
        ``.ndjson`` (one JSON object per line), ``.parquet``, ``.xlsx`` (the first sheet
        with rows; needs openpyxl). Text is UTF-8 or UTF-16.
    text : str or pair of str
        The column of texts, or the two columns of pairs of texts. Rows without a text
        are left out, with a warning.
    label : str or list of str, default=None
        The column of labels; or, for several classes per text, a column for each class,
        with 0 and 1. By default, no labels are read.
    separator : str, default=None
        What separates the names of classes in a cell of the column `label`, such as
        ``"|"``, for several classes per text. A cell that holds only the separator
        means that no class applies. Lists of names, in CSV and TSV files as JSON, need
        no separator.
    regression : bool, default=False
        Whether the labels are numbers to predict.
    missing_labels : {"raise", "drop", "keep"}, default="raise"
        How to handle rows with a text but no label. "raise" raises an error that names
        the rows. "drop" omits the rows. "keep" returns None as their label, in a
        target of dtype object, so that they can be the unlabeled pool; in an indicator
        matrix, rows of NaN.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch. Needs `label`.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like, with the following attributes.

        data : list of str or list of tuple of (str, str), length n_samples
            The texts, in the order of the file.
        target : ndarray of shape (n_samples,) or (n_samples, n_classes), or None
            The labels. In CSV and TSV files they are int if each is the shortest
            spelling of an integer, such as ``12`` or ``-1``, and str otherwise. In the
            other formats they are str, int or bool; numbers with fractions are str.
            With `regression`, float. For several classes per text, an indicator matrix
            of 0 and 1. None without `label`.
        target_names : list of str or None
            The sorted distinct labels as str, or the classes of the columns of an
            indicator matrix. None without `label` and with `regression`.
        DESCR : str
            The number of rows and the path.

    (data, target) : tuple if `return_X_y` is True

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the suffix or a column is unknown, the file has no rows, a row is malformed,
        or texts or labels are missing. The message names the line or row.
    ImportError
        If openpyxl is needed and not installed.

    Warns
    -----
    UserWarning
        If rows are left out, or something in the file may not be meant: classes that
        look the same, texts that occur with different labels, columns whose names
        differ in spaces or case from those that were asked for.

    Notes
    -----
    A cell is missing if it is null, NaN or absent, or holds nothing or only spaces.
    Spaces around labels are removed. In a table that ``skactive label`` wrote,
    predictions are missing labels.

    Examples
    --------
    >>> import os, tempfile
    >>> from skactive.datasets import load_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "reviews.csv")
    ...     with open(path, "w", encoding="utf-8") as file:
    ...         _ = file.write('review,stars\nGood food,5\n"Slow, cold",1\n')
    ...     reviews = load_table(path, text="review", label="stars")
    >>> reviews.data
    ['Good food', 'Slow, cold']
    >>> reviews.target
    array([5, 1])

    Several classes per text:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "posts.csv")
    ...     with open(path, "w", encoding="utf-8") as file:
    ...         _ = file.write("post,topics\nA,food|travel\nB,|\nC,food\n")
    ...     posts = load_table(path, text="post", label="topics", separator="|")
    >>> posts.target_names
    ['food', 'travel']
    >>> posts.target
    array([[1, 1],
           [0, 0],
           [1, 0]])
    """
    texts, labels = _name_columns(text, label)
    needs_labels = {"return_X_y": return_X_y, "separator": separator is not None}
    for option, is_given in needs_labels.items():
        if is_given and label is None:
            raise ValueError(f"{option!r} needs labels: name their column as 'label'.")
    table = TableFile(Path(path))
    text_keys, label_keys = list(map(table.find, texts)), list(map(table.find, labels))
    own = find_sources(table.names) if labels else []
    table.read([*text_keys, *label_keys, *own])
    rows, X = table.read_texts(text_keys)
    target: Any = None
    names = None
    if labels:
        key = label_keys[0] if isinstance(label, str) else label_keys
        read = read_labels(table, key, separator, regression=regression)
        missing = [row for row in rows if read.values[row] is None]
        if missing and missing_labels == "raise":
            raise ValueError(
                f"{table.name(key)} has no value at {len(missing)} of {len(rows)} rows "
                f"with a text: {table.where(missing)}. Fill these rows, or pass "
                "missing_labels='drop' or 'keep'."
            )
        if missing and missing_labels == "drop":
            if len(missing) == len(rows):
                raise ValueError(f"{table.name(key)} holds no label.")
            rows = [row for row in rows if read.values[row] is not None]
            X = [table.texts[row] for row in rows]
        values = [read.values[row] for row in rows]
        several = not isinstance(label, str)
        if read.cells is not None:
            target, names = to_indicator(values, label_keys if several else None)
        else:
            is_kept = missing_labels == "keep" and not regression
            target = np.array(values, dtype=object if is_kept else None)
            if regression:
                target = target.astype(float)
            else:
                names = [str(name) for name in sorted(set(values) - {None})]
    for message in table.messages:
        warnings.warn(f"{str(path)!r}: {message}.", UserWarning, stacklevel=3)
    if return_X_y:
        return X, target
    DESCR = f"{len(X)} rows of {path}"
    return Bunch(data=X, target=target, target_names=names, DESCR=DESCR)


def _are_names(columns):
    """Whether there are columns, each a str that is not empty, and each once."""
    is_named = all(isinstance(column, str) and column for column in columns)
    return is_named and 0 < len(columns) == len(set(columns))


def _name_columns(text, label):
    """Return the columns of texts and of labels, two lists, checked."""
    texts = [text] if isinstance(text, str) else list(text)
    check_text_columns(texts)
    labels = [label] if isinstance(label, str) else list(label or [])
    if label is not None and not _are_names(labels):
        raise ValueError(
            "'label' must name one column, or a column for each class, each once; "
            f"got {label!r}."
        )
    for column in labels:
        if column in texts:
            raise ValueError(f"'text' and 'label' both name the column {column!r}.")
    return texts, labels
