"""Initial labels, the person that the known labels replace, and rare classes."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._utils._containers import as_list, count_items, take_rows
from .._utils._format import brief
from .._utils._labels import as_labels
from .._utils._positions import as_positions
from .._utils._repeatable import base_seed, round_rng
from .._utils._sklearn import Interval, check_count, validate_params

BINS = 10  # of the numbers of a regression, for a stratified sample


@validate_params({"rng": [np.random.Generator]})
def choose_initial(initial, n_initial, y, rng, numeric=False):
    """Return the positions that are labeled before the first query.

    `numeric` labels are those of a regression.
    """
    n_pool = len(y)
    if initial is not None and not isinstance(initial, str):
        if np.size(initial) == 0:
            raise ValueError(
                "'initial' holds no positions. To begin without labels, pass "
                "n_initial=0 and no 'initial'."
            )
        return as_positions(initial, n_pool, name="initial")
    check_count("n_initial", n_initial, 0)
    if n_initial > n_pool:
        raise ValueError(
            f"'n_initial' must be at most the size of the pool, {n_pool}; got "
            f"{n_initial}."
        )
    if initial is None or initial == "random":
        return rng.choice(n_pool, size=n_initial, replace=False)
    if initial == "first":
        return np.arange(n_initial)
    if initial == "stratified":
        return _stratify(_bin(y) if numeric and y.ndim == 1 else y, n_initial, rng)
    raise ValueError(
        "'initial' must be 'random', 'stratified', 'first', or positions in the pool; "
        f"got {initial!r}."
    )


def _stratify(y, n, rng):
    """Return positions drawn from each class by the method of largest remainders."""
    if y.ndim == 2:
        return _cover_labels(y, n, rng)
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    share = n * counts / len(y)
    take = np.floor(share).astype(int)
    # Among equal remainders, chance decides.
    order = np.lexsort((rng.random(len(classes)), take - share))
    take[order[: n - take.sum()]] += 1
    if n >= len(classes):
        while (take == 0).any():
            take[np.argmax(take)] -= 1
            take[np.argmin(take)] += 1
    drawn = [
        rng.choice(np.flatnonzero(codes == code), size=size, replace=False)
        for code, size in enumerate(take)
    ]
    return rng.permutation(np.concatenate(drawn))


def _cover_labels(y, n, rng):
    """Return positions with each label of indicators (n, k), the rarest ones first."""
    _check_indicators(y, "initial='stratified'")
    order, counts = rng.permutation(len(y)), y.sum(axis=0)
    chosen = np.zeros(len(y), dtype=bool)
    for label in np.argsort(counts, kind="stable"):
        if counts[label] and chosen.sum() < n and not y[chosen, label].any():
            chosen[order[y[order, label] != 0][0]] = True
    others = order[~chosen[order]][: n - chosen.sum()]
    return rng.permutation(np.concatenate([np.flatnonzero(chosen), others]))


def _bin(y):
    """Return the bin (n,) of each number between quantiles; each of few is its own."""
    numbers = np.unique(y)
    if len(numbers) <= BINS:
        return np.searchsorted(numbers, y)
    edges = np.quantile(y, np.arange(1, BINS) / BINS)
    return np.searchsorted(np.unique(edges), y, side="right")


class Oracle:
    """Return the known labels in place of a person, with noise if wanted.

    With a probability as `noise`, the wrong labels follow from `seed` alone: every
    strategy meets the same ones. `costs` (n,) are of all items, 1 each by default.
    Wrong `numeric` labels are those of other items.
    """

    def __init__(self, y, noise=None, seed=0, costs=None, numeric=False):
        self.y = y
        self.costs = np.ones(len(y)) if costs is None else costs
        self.noise = noise
        self.seed = seed
        self.numeric = numeric
        if noise and not callable(noise):
            self.y = self._corrupt()

    def _corrupt(self):
        if self.y.ndim == 2:
            _check_indicators(self.y, "a rate of 'noise'")
        classes, codes = np.unique(self.y, axis=0, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "'noise' needs a wrong class to choose, and all labels in 'y' are "
                f"{classes[0]!r}."
            )
        rng = round_rng(self.seed, 0, "noise")
        wrong = rng.random(len(codes)) < self.noise
        if self.y.ndim == 2 or self.numeric:
            labels = self.y.copy()
            labels[wrong] = self.y[_draw_others(codes, rng)[wrong]]
            return labels
        shift = rng.integers(1, len(classes), size=len(codes))
        return classes[(codes + wrong * shift) % len(classes)]

    def label(self, positions, round_number):
        """Return labels of some positions, and which positions have one, (b,)."""
        labels, answered = self.y[positions], np.ones(len(positions), dtype=bool)
        if not callable(self.noise) or not len(positions):
            return labels, answered
        rng = round_rng(self.seed, round_number, "noise")
        # In an array of str, None would become the text "None".
        kind = object if labels.dtype.kind in "UT" else labels.dtype
        try:
            labels = self.noise(positions.copy(), labels.astype(kind), rng)
            refused = np.array([label is None for label in as_list(labels)])
            if len(refused) == len(positions) and refused.any():
                answered = ~refused
                labels = [label for label in as_list(labels) if label is not None]
            if not answered.any():
                return self.y[:0], answered
            return as_labels(labels, answered.sum()), answered
        except (TypeError, ValueError) as exc:
            exc.add_note(
                f"The labels came from 'noise', asked for {len(positions)} of them in "
                f"round {round_number}."
            )
            raise


def as_costs(cost, X):
    """Return the cost of each item of `X`, (n,); None if each costs 1."""
    if cost is None:
        return None
    costs = np.array([cost(item) for item in as_list(X)] if callable(cost) else cost)
    n = count_items(X)
    is_number = costs.dtype.kind in "iuf" and costs.shape == (n,)
    if not is_number or not ((costs >= 0) & (costs < np.inf)).all():
        raise ValueError(
            f"'cost' must be one number of at least 0 for each of the {n} items of "
            f"'X', or a function of an item that returns it; got {brief(cost)}."
        )
    return costs


def _draw_others(codes, rng):
    """Draw for each item another one whose label has another code, (n,)."""
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    first = np.cumsum(counts) - counts
    drawn = rng.integers(len(codes) - counts[codes])
    return order[drawn + np.where(drawn >= first[codes], counts[codes], 0)]


def _check_indicators(y, what):
    if not np.isin(y, [0, 1]).all():
        raise TypeError(
            f"{what} needs one class or one number for each item in 'y', or an "
            f"indicator matrix of 0 and 1, got an array of shape {y.shape} and dtype "
            f"{y.dtype}. Pass positions, or a function, instead."
        )


@validate_params(
    {
        "minority": [str, Real, "boolean"],
        "prior": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }
)
def make_imbalanced(
    X: Any,
    y: "ArrayLike",
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
    labels, y = y, as_labels(y, n)
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
    selected = rng.choice(np.flatnonzero(is_minority), size=n_kept, replace=False)
    positions = np.union1d(selected, np.flatnonzero(~is_minority))
    return take_rows(X, positions), take_rows(labels, positions)


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
