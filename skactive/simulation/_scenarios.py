"""Initial sets for simulations, some with assumed labels, and imbalanced pools."""

import re
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils._containers import as_positions, count_items, take_rows
from .._utils._labels import as_labels
from .._utils._random import base_seed, round_rng
from .._utils._sklearn import check_count, num_samples, validate_params
from .._utils._texts import as_texts


class Seed(NamedTuple):
    """The items that a loop begins with, some of them with an assumed label.

    Attributes
    ----------
    positions : ndarray of int, shape (m,)
        Positions in the pool: first the items that were found, then the assumed ones.
    assumed : ndarray of bool, shape (m,)
        Whether the label of an item is assumed to be `negative` without looking at it.
    negative : label or None
        The assumed label.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.simulation import Seed
    >>> seed = Seed(np.array([3, 0]), np.array([False, True]), "ham")
    >>> seed.relabel(["spam", "ham", "ham", "spam"]).tolist()
    ['ham', 'ham', 'ham', 'spam']
    """

    positions: np.ndarray
    assumed: np.ndarray
    negative: Any = None

    def relabel(self, y: ArrayLike) -> NDArray[Any]:
        """Return `y` with the assumed labels in place of the true ones.

        `simulate(learner, X, seed.relabel(y), initial=seed.positions)` begins with
        this seed. Items of the seed are never asked for again, so nothing else
        changes; test on labels that stay as they are.

        Parameters
        ----------
        y : array-like of shape (n,)
            The true labels of the pool.

        Returns
        -------
        y : ndarray of shape (n,)
        """
        labels = as_labels(y, num_samples(y))
        if not self.assumed.any():
            return labels
        classes = np.unique(labels).tolist()
        if self.negative not in classes:
            raise ValueError(
                f"'y' has no label {self.negative!r}, the one assumed; its classes are "
                f"{classes}."
            )
        assumed = as_positions(
            self.positions[self.assumed], len(labels), name="positions"
        )
        labels[assumed] = self.negative
        return labels


@validate_params({"random_state": ["random_state"]})
def reference_seed(X: Any, n: int = 100, *, random_state: Any = None) -> Seed:
    """Draw the initial items at random: the reference, for balanced pools.

    Parameters
    ----------
    X : container of n_pool items
        The pool.
    n : int, default=100
        Number of items.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    seed : Seed
        None of its labels is assumed.

    Examples
    --------
    >>> from skactive.simulation import reference_seed
    >>> X = ["buy now", "hi", "free money", "lunch?", "win a car", "thanks"]
    >>> seed = reference_seed(X, 2, random_state=0)
    >>> [X[position] for position in seed.positions]
    ['thanks', 'hi']
    """
    pool = np.arange(count_items(X))
    rng = round_rng(base_seed(random_state), 0, "reference_seed")
    drawn = _draw(pool, n, rng, "n", "items in the pool")
    return Seed(drawn, np.zeros(len(drawn), dtype=bool))


@validate_params(
    {
        "positive": [str, Real, "boolean"],
        "negative": [str, Real, "boolean", None],
        "random_state": ["random_state"],
    }
)
def unbiased_seed(
    y: ArrayLike,
    n: int = 100,
    *,
    positive: Any,
    negative: Any = None,
    n_assumed: int | None = None,
    random_state: Any = None,
) -> Seed:
    """Draw a random sample of the target class, and assume that others are negative.

    Parameters
    ----------
    y : array-like of shape (n_pool,)
        The true labels of the pool.
    n : int, default=100
        Number of items drawn from the class `positive`.
    positive : label
        The target class.
    negative : label or None, default=None
        Label that is assumed for the other items. Defaults to the other of two classes.
    n_assumed : int or None, default=None
        Number of other items, drawn from the rest of the pool regardless of their
        class. Defaults to `n`. If the target class is rare, few of them are positive.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    seed : Seed

    Raises
    ------
    ValueError
        If there are too few items, the class does not exist, or there are more than
        two classes and no `negative`.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.simulation import unbiased_seed
    >>> y = np.repeat(["spam", "ham"], [10, 90])
    >>> seed = unbiased_seed(y, 5, positive="spam", random_state=0)
    >>> y[seed.positions[~seed.assumed]].tolist()
    ['spam', 'spam', 'spam', 'spam', 'spam']
    >>> len(seed.positions), seed.negative
    (10, 'ham')
    """
    y = as_labels(y, count_items(y, name="y"))
    is_positive = find_class(y, positive, "positive")
    classes = np.unique(y).tolist()
    if negative is None:
        others = [c for c in classes if c != positive]
        if len(others) != 1:
            raise ValueError(
                f"'negative' must be given, as there is not one other class than "
                f"{positive!r} but {len(others)}: {others}."
            )
        negative = others[0]
    elif negative == positive or negative not in classes:
        raise ValueError(
            f"'negative' must be another class than {positive!r} out of {classes}; got "
            f"{negative!r}."
        )
    rng = round_rng(base_seed(random_state), 0, "unbiased_seed")
    found = _draw(
        np.flatnonzero(is_positive), n, rng, "n", f"items of the class {positive!r}"
    )
    rest = np.setdiff1d(np.arange(len(is_positive)), found)
    return _assume(found, rest, n_assumed, negative, rng, "items in the rest of 'y'")


@validate_params(
    {
        "n_assumed": [Integral, None],
        "random_state": ["random_state"],
    }
)
def keyword_seed(
    X: Any,
    pattern: str | re.Pattern,
    n: int = 100,
    *,
    negative: Any = None,
    n_assumed: int | None = None,
    random_state: Any = None,
) -> Seed:
    r"""Draw texts that match a keyword, and assume that others are negative.

    Without labels, a person can search for the target class. The matches must still be
    labeled, and they are a biased sample of that class.

    Parameters
    ----------
    X : container of n_pool texts, or of pairs of texts
        The pool. A pair matches if one of its texts does.
    pattern : str or re.Pattern
        A regular expression that is searched in each text. It is case-sensitive
        unless it begins with `(?i)`.
    n : int, default=100
        Number of items drawn from the matching texts.
    negative : label or None, default=None
        Label that is assumed for the other items.
    n_assumed : int or None, default=None
        Number of other items, drawn from the texts that do not match. Defaults to `n`,
        or to 0 if `negative` is None too.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    seed : Seed

    Raises
    ------
    ValueError
        If too few texts match or do not match, or the pattern is not a regular
        expression.
    TypeError
        If `X` does not hold texts.

    Examples
    --------
    >>> from skactive.simulation import keyword_seed
    >>> X = ["free money", "see you at noon", "free lunch?", "the minutes", "thanks"]
    >>> seed = keyword_seed(X, r"\bfree\b", 2, negative="ham", random_state=0)
    >>> sorted(X[position] for position in seed.positions[~seed.assumed])
    ['free lunch?', 'free money']
    """
    texts = as_texts(X)
    search = _compile(pattern).search
    matches = np.array(
        [any(map(search, (t,) if isinstance(t, str) else t)) for t in texts]
    )
    rng = round_rng(base_seed(random_state), 0, "keyword_seed")
    matched = f"texts that match {getattr(pattern, 'pattern', pattern)!r}"
    found = _draw(np.flatnonzero(matches), n, rng, "n", matched)
    if negative is None:
        if n_assumed:
            raise ValueError(
                f"'negative' must be the label assumed for {n_assumed} texts, got None."
            )
        n_assumed = 0
    rest = np.flatnonzero(~matches)
    return _assume(found, rest, n_assumed, negative, rng, "texts that do not match")


def _assume(found, rest, n_assumed, negative, rng, what):
    """Return a `Seed` of the items found and of others with an assumed label."""
    n = len(found) if n_assumed is None else n_assumed
    others = _draw(rest, n, rng, "n_assumed", what, least=0)
    assumed = np.repeat([False, True], [len(found), len(others)])
    return Seed(np.concatenate([found, others]), assumed, negative)


def _draw(positions, n, rng, name, what, least=1):
    n = check_count(name, n, least)
    if n > len(positions):
        raise ValueError(
            f"{name!r} must be at most {len(positions)}, the number of {what}; got {n}."
        )
    return rng.choice(positions, size=n, replace=False)


def _compile(pattern):
    if not isinstance(pattern, str | re.Pattern) or isinstance(
        getattr(pattern, "pattern", ""), bytes
    ):
        raise TypeError(
            f"'pattern' must be a regular expression, as str or re.Pattern; got "
            f"{pattern!r}."
        )
    try:
        return re.compile(pattern)
    except re.error as exc:
        raise ValueError(
            f"'pattern' {pattern!r} is no regular expression: {exc}. To search for it "
            "as it stands, pass re.escape(...)."
        ) from exc


@validate_params(
    {
        "minority": [str, Real, "boolean"],
        "random_state": ["random_state"],
        "return_positions": ["boolean"],
    }
)
def make_imbalanced(
    X: Any,
    y: ArrayLike,
    *,
    minority: Any,
    prior: float | None = None,
    ratio: float | None = None,
    random_state: Any = None,
    return_positions: bool = False,
) -> tuple:
    """Subsample one class to make it rare; all other items stay.

    Parameters
    ----------
    X : container of n items
        The items.
    y : array-like of shape (n,)
        The labels.
    minority : label
        The class to make rare.
    prior : float or None, default=None
        Fraction of the class among all remaining items. Defaults to 0.1 unless `ratio`
        is given.
    ratio : float or None, default=None
        Number of items of the class per item of other classes, instead of `prior`.
    random_state : int, RandomState instance or None, default=None
        Seed of the subsample.
    return_positions : bool, default=False
        Whether to return the positions in `X` as well.

    Returns
    -------
    X, y : containers of the kinds given
        The remaining items, in their original order.
    positions : ndarray of int
        Only with `return_positions`.

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
            f"{said} needs {n_kept} items of the class {minority!r} for the "
            f"{n_others} others, and there are {n_minority}. Ask for less."
        )
    if n_kept == 0:
        raise ValueError(
            f"{said} leaves no item of the class {minority!r} next to the {n_others} "
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
