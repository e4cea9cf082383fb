"""Pools in which one class is rare."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._utils._containers import count_items, take_rows
from .._utils._labels import as_labels
from .._utils._repeatable import base_seed, round_rng
from .._utils._sklearn import Interval, validate_params


@validate_params(
    {
        "minority": [str, Real, "boolean"],
        "prior": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }
)
def make_imbalanced(
    X: Any,
    y: ArrayLike,
    *,
    minority: Any,
    prior: float = 0.1,
    random_state: Any = None,
) -> tuple[Any, Any]:
    """Subsample one class to make it rare; all other items stay.

    Parameters
    ----------
    X : container of n items
        The items.
    y : array-like of shape (n,)
        The labels.
    minority : label
        The class to make rare.
    prior : float, default=0.1
        Fraction of the class among all remaining items.
    random_state : int, RandomState instance or None, default=None
        Seed of the subsample.

    Returns
    -------
    X, y : containers of the kinds given
        The remaining items, in their original order. If `X` holds positions, so does
        the result.

    Raises
    ------
    ValueError
        If the class does not exist, is rarer already, or no item of it would remain.

    Examples
    --------
    Half of the texts are spam, and a fifth are afterwards:

    >>> from skactive.simulation import make_imbalanced
    >>> X = [f"text {i}" for i in range(40)]
    >>> y = ["spam", "ham"] * 20
    >>> X, y = make_imbalanced(X, y, minority="spam", prior=0.2, random_state=0)
    >>> list(y).count("spam"), list(y).count("ham")
    (5, 20)
    """
    n = count_items(X)
    given, y = y, as_labels(y, n)
    is_minority = _find_class(y, minority)
    n_minority = int(is_minority.sum())
    n_others = n - n_minority
    wanted = prior / (1 - prior) * n_others
    n_kept = int(np.floor(wanted + 0.5))
    if n_kept > n_minority:
        raise ValueError(
            f"prior={prior} needs {n_kept} items of the class {minority!r} for the "
            f"{n_others} others, and there are {n_minority}. Ask for less."
        )
    if n_kept == 0:
        raise ValueError(
            f"prior={prior} leaves no item of the class {minority!r} next to the "
            f"{n_others} others. Ask for more."
        )
    rng = round_rng(base_seed(random_state), 0, "make_imbalanced")
    kept = rng.choice(np.flatnonzero(is_minority), size=n_kept, replace=False)
    positions = np.union1d(kept, np.flatnonzero(~is_minority))
    return take_rows(X, positions), take_rows(given, positions)


def _find_class(y, label):
    """Mark the items of a class."""
    if y.ndim != 1 or y.dtype.kind == "f":
        raise TypeError(
            f"'y' must hold one class for each item, got an array of shape {y.shape} "
            f"and dtype {y.dtype}."
        )
    classes = np.unique(y).tolist()
    if not np.isscalar(label) or label not in classes:
        raise ValueError(
            f"'minority' must be one of the classes in 'y', {classes}; got {label!r}."
        )
    return y == label
