"""The initial items of a simulation, and the oracle that labels."""

from numbers import Integral, Real

import numpy as np

from .._utils._containers import as_positions
from .._utils._labels import as_labels
from .._utils._random import round_rng
from .._utils._sklearn import validate_params


@validate_params({"rng": [np.random.Generator]})
def choose_initial(initial, n_initial, y, rng):
    """Return the positions that are labeled before the first query."""
    n_pool = len(y)
    if initial is not None and not isinstance(initial, str):
        if np.size(initial) == 0:
            raise ValueError(
                "'initial' holds no positions. To begin without labels, pass "
                "n_initial=0 and no 'initial'."
            )
        return as_positions(initial, n_pool, name="initial")
    if not isinstance(n_initial, Integral) or isinstance(n_initial, bool | np.bool_):
        raise ValueError(
            f"'n_initial' must be an int of at least 0, got {n_initial!r}."
        )
    if n_initial < 0:
        raise ValueError(f"'n_initial' must be an int of at least 0, got {n_initial}.")
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
        return _stratify(y, n_initial, rng)
    raise ValueError(
        "'initial' must be 'random', 'stratified', 'first', or positions in the pool; "
        f"got {initial!r}."
    )


def _stratify(y, n, rng):
    """Return positions drawn from each class by the method of largest remainders."""
    _check_classes(y, "initial='stratified'")
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


class Oracle:
    """Return the known labels in place of a person, with noise if wanted.

    With a probability as `noise`, the wrong labels follow from `seed` alone: every
    strategy meets the same ones.
    """

    def __init__(self, y, noise=None, seed=0):
        self.y = y
        self.noise = noise
        self.seed = seed
        if noise is None or callable(noise):
            return
        if (
            not isinstance(noise, Real)
            or isinstance(noise, bool)
            or not 0 <= noise <= 1
        ):
            raise ValueError(
                "'noise' must be a probability in [0, 1], a function of (positions, "
                f"labels, rng), or None; got {noise!r}."
            )
        if noise > 0:
            self.y = self._corrupt()

    def _corrupt(self):
        _check_classes(self.y, "a rate of 'noise'")
        classes, codes = np.unique(self.y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "'noise' needs a wrong class to choose, and all labels in 'y' are "
                f"{classes[0]!r}."
            )
        rng = round_rng(self.seed, 0, "noise")
        wrong = rng.random(len(codes)) < self.noise
        shift = rng.integers(1, len(classes), size=len(codes))
        return classes[(codes + wrong * shift) % len(classes)]

    def label(self, positions, round_number):
        """Return the labels of some positions, (b,)."""
        labels = self.y[positions]
        if not callable(self.noise) or not len(positions):
            return labels
        rng = round_rng(self.seed, round_number, "noise")
        try:
            return as_labels(
                self.noise(positions.copy(), labels.copy(), rng), len(positions)
            )
        except (TypeError, ValueError) as exc:
            exc.add_note(
                f"The labels came from 'noise', asked for {len(positions)} of them in "
                f"round {round_number}."
            )
            raise


def _check_classes(y, what):
    if y.ndim != 1 or y.dtype.kind == "f":
        raise TypeError(
            f"{what} needs one class for each item in 'y', got an array of shape "
            f"{y.shape} and dtype {y.dtype}. Pass positions, or a function, instead."
        )
