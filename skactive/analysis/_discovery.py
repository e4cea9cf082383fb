"""The classes that a run has found."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils._containers import as_positions, count_items
from .._utils._format import format_table, make_frame
from .._utils._labels import as_labels
from ..simulation._run import Run
from ._curves import as_runs


@dataclass(frozen=True, eq=False)
class ClassCoverage:
    """Labels of each class after each round.

    Attributes
    ----------
    n_labeled : ndarray of shape (r,)
        Number of items queried so far.
    classes : ndarray of shape (k,)
        The classes of the pool; the columns of an indicator matrix.
    counts : ndarray of shape (r, k)
        Number of labels of each class so far.
    first : dict of class to int or None
        Number of labels up to and including the first one of each class. None if the
        run has not found the class.

    Examples
    --------
    After how many labels was each class found?

    >>> from skactive.analysis import class_coverage
    >>> from skactive.simulation import Run
    >>> run = Run([{"queried": [0, 1]}, {"queried": [3, 4]}])
    >>> coverage = class_coverage(run, ["ham", "ham", "spam", "ham", "spam"])
    >>> coverage.first
    {'ham': 1, 'spam': 4}
    >>> for n, n_seen in zip(coverage.n_labeled, coverage.n_seen):
    ...     print(f"{n} labels: {n_seen} of {len(coverage.classes)} classes")
    2 labels: 1 of 2 classes
    4 labels: 2 of 2 classes
    """

    n_labeled: np.ndarray
    classes: np.ndarray
    counts: np.ndarray
    first: dict

    @property
    def n_seen(self) -> NDArray[np.intp]:
        """Number of classes with a label after each round, ndarray of shape (r,)."""
        return (self.counts > 0).sum(axis=1)

    @property
    def imbalance(self) -> NDArray[np.intp]:
        """Labels of the largest class minus those of the smallest, ndarray (r,).

        This is the measure of table 3 of Grießhaber, Maucher, Vu (2020).
        """
        return self.counts.max(axis=1) - self.counts.min(axis=1)

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a row per round and a column per class."""
        columns = {"n_labeled": self.n_labeled, "n_seen": self.n_seen}
        by_class = zip(self.classes.tolist(), self.counts.T, strict=True)
        return make_frame({**columns, **dict(by_class)})

    def __str__(self):
        header = ["labels", "classes", *map(str, self.classes.tolist())]
        numbers = np.column_stack([self.n_labeled, self.n_seen, self.counts])
        return format_table(header, [map(str, row) for row in numbers.tolist()])


def class_coverage(run: Run, y: ArrayLike) -> ClassCoverage:
    """Count the labels of each class after each round.

    Parameters
    ----------
    run : Run
        The run to describe.
    y : array-like of shape (n,) or (n, k)
        True labels of the pool, one per position, or an indicator matrix.

    Returns
    -------
    coverage : ClassCoverage

    Raises
    ------
    TypeError
        If `y` holds the numbers of a regression.

    Examples
    --------
    >>> from skactive.analysis import class_coverage
    >>> from skactive.simulation import Run
    >>> run = Run([{"queried": [0, 1]}, {"queried": [3, 4]}])
    >>> coverage = class_coverage(run, ["ham", "ham", "spam", "ham", "spam"])
    >>> print(coverage)
    labels  classes  ham  spam
    2             1    2     0
    4             2    3     1
    >>> coverage.first
    {'ham': 1, 'spam': 4}
    """
    (run,) = as_runs(run, "run")
    classes, holds = list_classes(y)
    queried = run.queried
    if queried.size:
        queried = as_positions(queried, len(holds), name="run.queried")
    holds = holds[queried]
    sizes = [len(record["queried"]) for record in run.rounds]
    seen = np.cumsum(holds, axis=0)
    seen = np.concatenate([np.zeros((1, len(classes)), dtype=int), seen])
    n_labeled = np.cumsum(sizes, dtype=int)
    first = {}
    for code, label in enumerate(classes.tolist()):
        where = np.flatnonzero(holds[:, code])
        first[label] = int(where[0]) + 1 if where.size else None
    return ClassCoverage(
        n_labeled=n_labeled, classes=classes, counts=seen[n_labeled], first=first
    )


def list_classes(y):
    """Return the classes (k,) of labels, and which items hold them, bool (n, k)."""
    labels = as_labels(y, count_items(y, name="y"))
    if are_numbers(labels):
        raise TypeError(
            "'y' must hold classes, or an indicator matrix of 0 and 1, got numbers "
            f"such as {labels.flat[0].item()!r}. Classes of a regression are not "
            "defined; bin the numbers."
        )
    if labels.ndim == 2:
        return np.arange(labels.shape[1]), labels != 0
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes[:, None] == np.arange(len(classes))


def are_numbers(labels):
    """Whether labels are numbers of a regression, so no classes and no indicators."""
    if labels.ndim == 2:
        return not np.isin(labels, [0, 1]).all()
    return labels.dtype.kind == "f" and bool((labels != np.floor(labels)).any())
