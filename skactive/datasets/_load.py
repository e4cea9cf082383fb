"""Loaders of labeled texts: a built-in data set, and tables from files."""

import hashlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._utils._sklearn import Interval, StrOptions, validate_params
from ._docstrings import mask_names, read_docstrings
from ._label_cells import find_label_cells, to_indicator
from ._reader import read_columns

# Label, which is also the name of the distribution, and the package's name.
_LIBRARIES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "torch": "torch",
}
_MASKED = (
    *("numpy", "np", "scipy", "sp", "sklearn", "scikit-learn", "scikit_learn"),
    *("scikit learn", "scikits", "pytorch", "torch"),
)
_MIN_WORDS = 5

_DESCR = """Docstrings of scientific Python libraries

First paragraphs of the public docstrings of the libraries installed on this machine,
read from their source files. The task is to tell the library from the text. Library
names are masked by "library"; call signatures, titles and markup are removed; texts
under {min_words} words, repeated texts and texts found in two libraries are left out.
Texts kept per library: {cap}, chosen and ordered by a digest of the text.

Texts per library: {counts}
"""


@validate_params(
    {
        "max_per_library": [Interval(Integral, 1, None, closed="left"), None],
        "return_X_y": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def load_docstrings(
    *, max_per_library: int | None = 2500, return_X_y: bool = False
) -> Any:
    """Load docstrings of numpy, scipy, scikit-learn and torch, labeled by library.

    The data set needs no download. The texts are the first paragraphs of the
    docstrings of public modules, classes, functions and methods. They are read from
    the installed source files, which are parsed and never imported. The names of the
    libraries are masked, so a classifier must learn the subjects of the libraries.

    Parameters
    ----------
    max_per_library : int or None, default=2500
        Largest number of texts per library, so that the classes are similar in size.
        None keeps all texts; torch then has about four times as many as numpy. The
        selection depends on the content of the texts only.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like, with the following attributes.

        data : list of str, length n_samples
            The texts, in a mixed order that is the same on every call.
        target : ndarray of str, shape (n_samples,)
            The library of each text.
        target_names : list of str
            The libraries, in alphabetical order.
        DESCR : str
            A description of the data set, with the versions of the libraries.

    (data, target) : tuple if `return_X_y` is True

    Raises
    ------
    ValueError
        If `max_per_library` is neither None nor a positive int.
    ModuleNotFoundError
        If one of the libraries is not installed as source files.

    Notes
    -----
    The texts depend on the installed versions, which are in `DESCR`. Results from two
    machines are comparable only if the versions are the same.

    A module is public unless it is in a private folder, in tests, or in a vendored copy
    of another project. A private file in a public folder is public, because these
    libraries define most of their public names in such files.

    Examples
    --------
    >>> from collections import Counter
    >>> from skactive.datasets import load_docstrings
    >>> docstrings = load_docstrings(max_per_library=100)
    >>> for library, n_texts in sorted(Counter(docstrings.target.tolist()).items()):
    ...     print(library, n_texts)
    numpy 100
    scikit-learn 100
    scipy 100
    torch 100
    """
    # Find all packages before any is parsed, so that an error is raised at once.
    folders = {label: _package_folder(label) for label in _LIBRARIES}

    texts: dict[str, str] = {}
    owners: dict[str, set[str]] = {}
    for label, folder in folders.items():
        for paragraph in read_docstrings(folder):
            text = mask_names(paragraph, _MASKED)
            if len(text.split()) >= _MIN_WORDS:
                key = text.casefold().rstrip(". ")
                texts.setdefault(key, text)
                owners.setdefault(key, set()).add(label)

    # Sorting by a digest shuffles without a random generator: a text that a new version
    # adds does not change the order of the others.
    rows: dict[str, list[tuple[bytes, str, str]]] = {label: [] for label in _LIBRARIES}
    for key, labels in owners.items():
        if len(labels) == 1:
            digest = hashlib.sha256(texts[key].encode()).digest()
            rows[next(iter(labels))].append((digest, texts[key], next(iter(labels))))
    kept = [row for of in rows.values() for row in sorted(of)[:max_per_library]]
    # The first digests of a large library are all small, so another digest mixes them.
    kept.sort(key=lambda row: hashlib.sha256(row[0]).digest())

    data = [text for _, text, _ in kept]
    target = np.array([label for *_, label in kept])
    if return_X_y:
        return data, target
    counts = "; ".join(
        f"{label} {_version(label)}: {(target == label).sum()}" for label in _LIBRARIES
    )
    cap = "all" if max_per_library is None else f"at most {max_per_library:,}"
    return Bunch(
        data=data,
        target=target,
        target_names=sorted(_LIBRARIES),
        DESCR=_DESCR.format(min_words=_MIN_WORDS, cap=cap, counts=counts),
    )


def _package_folder(label):
    package = _LIBRARIES[label]
    # For a top-level name, find_spec imports nothing.
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise ModuleNotFoundError(
            f"load_docstrings reads the source files of {label!r}, which is not "
            f"installed here. Install it with `pip install {label}`, or use load_table "
            "for a data set of your own.",
            name=package,
        )
    return Path(spec.origin).parent


def _version(label):
    try:
        return importlib.metadata.version(label)
    except importlib.metadata.PackageNotFoundError:  # a source tree, or renamed
        return "of unknown version"


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
        ``.parquet`` (needs pyarrow), ``.xlsx`` (the first sheet; needs openpyxl). Text
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
        If pyarrow or openpyxl is needed and not installed.

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
    text_columns = [text] if isinstance(text, str) else list(text)
    if len(text_columns) not in (1, 2) or not all(
        isinstance(column, str) for column in text_columns
    ):
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
        if column in text_columns:
            raise ValueError(f"'text' and 'label' both name the column {column!r}.")
    if return_X_y and label is None:
        raise ValueError("'return_X_y' needs labels: name their column as 'label'.")
    if separator is not None and label is None:
        raise ValueError("'separator' needs labels: name their column as 'label'.")

    path, key = Path(path), label if isinstance(label, str) else tuple(labels)
    cells = None

    def merge(columns, places, place):
        nonlocal cells
        cells = find_label_cells(columns, label, separator, path)
        return cells and cells.read(columns, places, place)

    columns = read_columns(
        path,
        texts=text_columns,
        label=key or None,
        missing_labels=missing_labels,
        merge=merge if labels else None,
    )
    texts = [columns[column] for column in text_columns]
    data = texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))
    target, names = None, None
    if cells is not None:
        names = labels if cells.several else None
        target, names = to_indicator(columns[key], names)
    elif labels:
        target, names = _to_target(columns[label], missing_labels == "keep")
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
