"""Tables of texts and labels: one class per text, or several."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._tables._labels import find_label_cells, read_typed, to_indicator
from .._tables._reader import Column, read_cells
from .._utils._labels import is_missing
from .._utils._sklearn import StrOptions, validate_params


@validate_params(
    {
        "path": [str, os.PathLike],
        "text": [str, list, tuple],
        "label": [str, list, tuple, None],
        "separator": [str, None],
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
    missing_labels: str = "raise",
    return_X_y: bool = False,
) -> Any:
    r"""Load texts, or pairs of texts, and their labels from a table in a file.

    Parameters
    ----------
    path : str or Path
        The file. Its suffix determines the format: ``.csv`` (quoted fields, separated
        by commas or what the first lines show: semicolons, tabs or bars), ``.tsv``
        (tab, quotes are text), ``.jsonl`` or ``.ndjson`` (one JSON object per line),
        ``.parquet``, ``.xlsx`` (the first sheet; needs openpyxl). Text
        is UTF-8.
    text : str or pair of str
        The column of texts, or the two columns of pairs of texts.
    label : str or list of str, default=None
        The column of labels; or, for several classes per text, a column for each class,
        with 0 and 1. By default, no labels are read.
    separator : str, default=None
        What separates the names of classes in a cell of the column `label`, such as
        ``"|"``, for several classes per text. A cell that holds only the separator
        means that no class applies. Lists of names, in CSV and TSV files as JSON, need
        no separator.
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
            The labels. In CSV and TSV files they are str, int if all of them are
            integer literals such as ``12`` or ``-1``, or float if all of them are
            numbers and one has a fraction. In the other formats they keep their
            type: str, int, float or bool. For several classes per text, an indicator
            matrix of 0 and 1. None without `label`.
        target_names : list of str or None
            The sorted distinct labels as str, or the classes of the columns of an
            indicator matrix. None without `label` and for labels of type float.
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

    Notes
    -----
    An empty field of a CSV or TSV file is a missing value, as is a null or absent value
    in the other formats.

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
    path = Path(path)
    columns, numbers, unit = read_cells(path, list(dict.fromkeys([*texts, *labels])))
    name = label if isinstance(label, str) else tuple(labels)
    column = Column(path, name, unit)
    target: Any = None
    names = cells = None
    if labels:
        cells = find_label_cells(columns, label, separator, path)
        target = columns[label] if cells is None else cells.read(columns, numbers, unit)
    if labels and missing_labels == "drop":
        rows = [i for i, x in enumerate(target) if not is_missing(x)]
        if not rows:
            raise ValueError(f"{column.shown} holds no label.")
        columns = {name: [columns[name][i] for i in rows] for name in texts}
        target, numbers = [target[i] for i in rows], [numbers[i] for i in rows]
    for each in texts:
        Column(path, each, unit).check_texts(columns[each], numbers)
    if labels and missing_labels != "keep":
        advice = "Fill these rows, or pass missing_labels='drop' or 'keep'."
        column.check_filled(target, numbers, is_missing, advice)
    if cells is not None:
        target, names = to_indicator(target, labels if cells.several else None)
    elif labels:
        target = read_typed(target, path, name, numbers, unit)
        target, names = _to_target(target, missing_labels == "keep")
    data = columns[texts[0]]
    if len(texts) == 2:
        data = list(zip(*(columns[name] for name in texts), strict=True))
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        target_names=names,
        DESCR=f"{len(data)} rows of {path}",
    )


def _to_target(labels, has_missing):
    """Return single labels as an array, and their names; None for floats."""
    target = np.array(labels, dtype=object if has_missing else None)
    names = sorted(set(labels) - {None})
    if any(isinstance(name, float) for name in names):
        return target, None
    return target, [str(name) for name in names]


def _are_names(columns):
    """Whether there are columns, each a str that is not empty, and each once."""
    is_named = all(isinstance(column, str) and column for column in columns)
    return is_named and 0 < len(columns) == len(set(columns))


def _name_columns(text, label):
    """Return the columns of texts and of labels, two lists, checked."""
    texts = [text] if isinstance(text, str) else list(text)
    if len(texts) not in (1, 2) or not all(isinstance(column, str) for column in texts):
        raise ValueError(
            "'text' must be the name of one column, or of two for pairs of texts; got "
            f"{text!r}."
        )
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
