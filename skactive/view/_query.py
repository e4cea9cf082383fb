"""The data and the model that all views of one query share."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import PCG64
from sklearn.base import clone

from .._utils import _chunks
from .._utils._chunks import LazyRows
from .._utils._labels import find_target
from .._utils._pipelines import split_estimator
from ._quantities import CAPABILITIES, check_capability


@dataclass(frozen=True, eq=False)
class PoolQuery:
    """The data and the model that all views of one query share."""

    X: Any
    estimator: Any  # fitted; None before there is a model
    model: Any  # `estimator`, or else the unfitted one
    front: Any  # steps of its pipeline before the final estimator, or None
    final: Any  # the fitted final estimator, or None
    X_labeled: Any
    y_labeled: Any
    trained: tuple | None
    requires: frozenset | None
    optional: frozenset
    name: str
    rng: np.random.Generator
    position_rng: np.random.Generator
    samplers: dict = field(default_factory=dict)  # by the number of draws
    allowed: set = field(default_factory=set)  # capabilities that were checked

    @cached_property
    def cold_front(self):
        """The front steps fitted on the pool, whatever is viewed, for a cold start."""
        return clone(self.front).fit(self.X)

    @property
    def finds_rows(self):
        """Whether the last front step has rows on the disk, as PrecomputedFeatures."""
        return self.front is not None and hasattr(self.front[-1], "find_rows")

    def find_rows(self, X):
        """Return the items after the front steps, where they are, as LazyRows.

        The last front step has a method `find_rows`. None for a small result, which may
        be copied.
        """
        front = self.cold_front if self.estimator is None else self.front
        for _, step in front.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        rows = LazyRows(*front[-1].find_rows(X))
        is_large = math.prod(rows.shape) * rows.itemsize >= _chunks.LARGE
        return rows if is_large else None

    @cached_property
    def seeds(self):
        """Seeds of the posterior draws and of the language model's targets."""
        # From a separate generator: a strategy's numbers must not depend on whether it
        # uses draws before or after it takes a number.
        return self.rng.spawn(1)[0].integers(2**31, size=2).tolist()

    @property
    def arguments(self):
        """Keyword arguments of `check_capability` and `check_target`."""
        names = ("name", "final", "front", "X", "y_labeled", "model")
        return {name: getattr(self, name) for name in names}

    def check_allowed(self, capability):
        """Raise an AttributeError unless the strategy may use a quantity."""
        if capability in self.allowed:
            return
        if self.requires is None or capability in self.optional:
            check_capability(capability, **self.arguments)
        elif capability not in self.requires:
            what = CAPABILITIES[capability].gives
            raise AttributeError(
                f"strategy {self.name!r} uses {what} without declaring it. Add "
                f"{capability!r} to its `requires`."
            )
        self.allowed.add(capability)

    def offers(self, capability):
        """Whether the model has a quantity that the strategy may use."""
        try:
            self.check_allowed(capability)
        except TypeError:
            return False
        return True

    def draw(self, n, positions=None):
        """Return the next n uniform numbers, (n,), or those at some positions, (p,)."""
        rng = self.position_rng
        skips = positions is not None and isinstance(rng.bit_generator, PCG64)
        if positions is None or not skips or not len(positions):
            numbers = rng.random(n)
            return numbers if positions is None else numbers[positions]
        # Each number takes one step of this generator, which can skip any number.
        first, stop = positions.min(), positions.max() + 1
        rng.bit_generator.advance(int(first))
        numbers = rng.random(stop - first)
        rng.bit_generator.advance(int(n - stop))
        return numbers[positions - first]

    @cached_property
    def target(self):
        """The target of the model."""
        return find_target(split_estimator(self.model)[1], self.y_labeled)

    @property
    def draws_itself(self):
        """Whether the model has posterior draws of its own."""
        names = "sample_proba", "sample_predictions"
        return any(hasattr(self.final, name) for name in names)

    def add_sampler(self, n_draws, train):
        """Make the function that draws; `train` are its training data."""
        from ..posterior import sampler

        self.samplers[n_draws] = sampler(self.final, n_draws, self.seeds[0], **train)

    def find_variance(self, train):
        """Return a function from the inputs to the variance, or None if there is none.

        `train` are the training data.
        """
        from ..posterior import variance_function

        return variance_function(self.final, **train)

    def find_classes(self):
        """Return the classes, or the numbers of the labels, (k,)."""
        if self.estimator is None:
            raise TypeError(
                f"strategy {self.name!r} needs the classes, and there is no fitted "
                "model with two classes yet."
            )
        if self.target == "regression":
            raise TypeError(
                f"strategy {self.name!r} needs the classes, and "
                f"{type(self.final).__name__} is a regressor."
            )
        if self.target == "multi-label":
            return np.arange(np.shape(self.y_labeled)[1])
        return np.asarray(self.estimator.classes_)

    def check_single_label(self, name):
        """Raise a TypeError for a quantity of one class per item."""
        if self.target != "single-label":
            raise TypeError(
                f"strategy {self.name!r} uses `{name}`, which is defined for "
                f"single-label targets only, and the target is {self.target}. Use "
                "`label_margins`."
            )
