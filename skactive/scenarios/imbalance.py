"""Pools in which one class is made rare."""

from __future__ import annotations

from numbers import Real

import numpy as np

from .._containers import take_rows
from .._labels import as_labels
from .._positions import count_items
from .._random import base_seed, round_rng
from .._sklearn import validate_params

__all__ = ["find_class", "make_imbalanced"]


@validate_params(
    {
        "minority": [str, Real, "boolean"],
        "random_state": ["random_state"],
        "return_positions": ["boolean"],
    }
)
def make_imbalanced(
    X, y, *, minority, prior=None, ratio=None, random_state=None, return_positions=False
):
    """Sub-sample one class until it is rare; all other items stay.

    Parameters
    ----------
    X : container of n items
    y : array-like of shape (n,)
        Their classes.
    minority : label
        The class to make rare.
    prior : float or None, default=None
        Its share of all items afterwards. None is 0.1, unless `ratio` is given.
    ratio : float or None, default=None
        In place of `prior`: how many items of it for each item of another class.
    random_state : int, RandomState instance or None, default=None
        Chooses the items that stay.
    return_positions : bool, default=False
        Whether to return the positions in `X` as well.

    Returns
    -------
    X, y : containers of the kinds given
        What stays, in the old order.
    positions : ndarray of int
        Only if asked for.

    Raises
    ------
    ValueError
        If there is no such class, it is rarer already, or nothing of it would stay.

    Examples
    --------
    >>> from skactive.scenarios import make_imbalanced
    >>> X, y = list("abcdefghijkl"), [0, 1] * 6
    >>> X, y = make_imbalanced(X, y, minority=1, prior=0.25, random_state=0)
    >>> len(X), sum(y)
    (8, 2)
    """
    n = count_items(X)
    given, y = y, as_labels(y, n)
    is_minority = find_class(y, minority, "minority")
    n_minority = int(is_minority.sum())
    n_others = n - n_minority
    if prior is not None and ratio is not None:
        raise ValueError(
            f"give 'prior' or 'ratio', not both; got {prior!r} and {ratio!r}."
        )
    if ratio is None:
        prior = 0.1 if prior is None else _check_share("prior", prior, below_one=True)
        wanted, said = prior / (1 - prior) * n_others, f"prior={prior}"
    else:
        wanted = _check_share("ratio", ratio) * n_others
        said = f"ratio={ratio}"
    n_kept = int(np.floor(wanted + 0.5))
    if n_kept > n_minority:
        raise ValueError(
            f"{said} needs {n_kept} items of the class {minority!r} beside the "
            f"{n_others} others, and there are {n_minority}. Ask for less."
        )
    if n_kept == 0:
        raise ValueError(
            f"{said} leaves no item of the class {minority!r} beside the {n_others} "
            "others. Ask for more."
        )
    rng = round_rng(base_seed(random_state), 0, "make_imbalanced")
    kept = rng.choice(np.flatnonzero(is_minority), size=n_kept, replace=False)
    positions = np.union1d(kept, np.flatnonzero(~is_minority))
    result = take_rows(X, positions), take_rows(given, positions)
    return (*result, positions) if return_positions else result


def find_class(y, label, name):
    """Mark the items of a class."""
    if y.ndim != 1 or y.dtype.kind == "f":
        raise TypeError(
            f"'y' must hold one class for each item, got an array of shape {y.shape} "
            f"and dtype {y.dtype}."
        )
    classes = np.unique(y).tolist()
    if not np.isscalar(label) or label not in classes:
        raise ValueError(
            f"{name!r} must be one of the classes in 'y', {classes}; got {label!r}."
        )
    return y == label


def _check_share(name, value, below_one=False):
    good = isinstance(value, Real) and not isinstance(value, bool)
    if not good or not 0 < value < (1 if below_one else np.inf):
        limit = "between 0 and 1" if below_one else "above 0"
        raise ValueError(f"{name!r} must be a number {limit}, got {value!r}.")
    return float(value)
