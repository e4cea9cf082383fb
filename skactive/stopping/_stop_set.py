"""A fixed set of items on which a stopping rule judges the learner."""

from numbers import Integral
from typing import Any, Self

import numpy as np

from .._utils._containers import as_positions, count_items, take_rows
from .._utils._random import base_seed, round_rng
from .._utils._sklearn import Interval
from ._base import StoppingRule


class StopSetRule(StoppingRule):
    """Base class of rules that compare predictions on a fixed set of items."""

    _parameter_constraints = {
        "stop_set": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "random_state": ["random_state"],
    }
    requires = frozenset({"model", "pool"})

    def start(self) -> Self:
        """Check the parameters and reset the rule for a new loop."""
        super().start()
        self.stop_set_: Any = None
        self._n_pool = None
        self._last = None
        return self

    def _ready(self, run, learner, X):
        """Whether there is anything to judge; draw the stop set the first time."""
        if not knows_classes(learner, type(self).__name__):
            return False
        n = count_items(X)
        if self.stop_set_ is None:
            self.stop_set_ = self._draw(run, n)
            self._n_pool = n
        if n != self._n_pool:
            raise ValueError(
                f"'X' holds {n} items, and held {self._n_pool} when the stop set was "
                "drawn. Pass the whole pool to each check, or call start() first."
            )
        return bool(self.stop_set_.size)

    def _draw(self, run, n):
        if self.stop_set is not None and not isinstance(self.stop_set, Integral):
            return as_positions(self.stop_set, n, name="stop_set")
        positions = np.flatnonzero(mask_unlabeled(run, n))
        if self.stop_set is None or positions.size <= self.stop_set:
            return positions
        seed = self.random_state
        if seed is None:
            seed = run.info.get("seed")
            seed = seed if isinstance(seed, Integral) else 0
        rng = round_rng(base_seed(seed), 0, "stop set")
        return np.sort(rng.choice(positions, size=self.stop_set, replace=False))

    def _predict(self, learner, X):
        """Return the previous predictions, None at first, and the new ones, (s,)."""
        labels = np.asarray(learner.predict(take_rows(X, self.stop_set_)))
        if labels.ndim != 1:
            raise TypeError(
                f"{type(self).__name__} compares one class for each item, and the "
                f"learner predicts an array of shape {labels.shape}. Use a budget."
            )
        before, self._last = self._last, labels
        return before, labels


def mask_unlabeled(run, n):
    """Return an (n,) mask of the positions that `run` has not queried."""
    asked = run.asked
    if asked.size and asked.max() >= n:
        raise ValueError(
            f"'X' holds {n} items, and the run asked for position {asked.max()}. Pass "
            "the pool that was asked about."
        )
    unlabeled = np.ones(n, dtype=bool)
    unlabeled[asked] = False
    return unlabeled


def knows_classes(learner, name):
    """Whether a learner has a model of at least two classes; `name` is the rule."""
    if hasattr(learner, "query") and not hasattr(learner, "estimator_"):
        return False
    classes = getattr(learner, "classes_", None)
    if classes is None:
        kind = type(getattr(learner, "estimator_", learner)).__name__
        raise TypeError(
            f"'learner' must be a classifier: {name} looks at predicted classes, and "
            f"{kind} is no classifier. Use Plateau or a budget."
        )
    return len(classes) >= 2
