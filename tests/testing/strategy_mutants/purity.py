"""Strategies that touch what is not theirs, for the checks of that kind to notice."""

import random
import sys
import types

import numpy as np

from skactive.strategies import PointwiseStrategy


class Sound(PointwiseStrategy):
    requires = frozenset({"proba"})

    def score(self, view):
        return -view.proba.max(axis=1)


# Data


class SortsTheList(Sound):
    def select(self, view, n_queries):
        picks = super().select(view, n_queries)
        if isinstance(view.X, list):
            view.X.sort()
        return picks


class UnlocksProbabilities(Sound):
    def select(self, view, n_queries):
        picks = super().select(view, n_queries)
        view.proba.flags.writeable = True
        view.proba[:] = 0
        return picks


class UnlocksPredictions(Sound):
    requires = frozenset({"proba", "predictions"})

    def select(self, view, n_queries):
        picks = super().select(view, n_queries)
        view.predictions.flags.writeable = True
        view.predictions[:] = view.predictions[::-1].copy()
        return picks


class NotesOnTheView(Sound):
    def score(self, view):
        view.doubt = super().score(view)
        return view.doubt


class Prints(Sound):
    def score(self, view):
        print(len(view), "candidates")  # noqa: T201
        return super().score(view)


class PrintsErrors(Sound):
    def select(self, view, n_queries):
        print("slow", file=sys.stderr)  # noqa: T201
        return super().select(view, n_queries)


class ScalesInPlace(Sound):
    def score(self, view):
        proba = view.proba
        proba /= proba.max()
        return -proba.max(axis=1)


class ReplacesProbabilities(Sound):
    def score(self, view):
        view.proba = 1 - view.proba
        return view.proba[:, 0]


# Model


class NotesOnTheModel(Sound):
    def score(self, view):
        view.estimator.n_seen_ = len(view)
        return super().score(view)


class RefitsTheModel(Sound):
    requires = frozenset({"proba", "labeled"})

    def score(self, view):
        scores = super().score(view)
        if len(view) == 30 and not hasattr(view.X, "tocsr"):
            first = np.asarray(view.proba[:2]).repeat(2, axis=1)
            view.estimator.fit(first, view.y_labeled[:2])
        return scores


# Global generators


class SeedsNumpy(Sound):
    def score(self, view):
        np.random.seed(0)  # noqa: NPY002
        return super().score(view)


class MovesNumpy(Sound):
    def score(self, view):
        np.random.random_sample(3)  # noqa: NPY002
        return super().score(view)


class MovesPython(Sound):
    def score(self, view):
        random.random()
        return super().score(view)


class ReadsTheGlobalSeed(Sound):
    """Moves nothing, and yet depends on what the user seeded."""

    def score(self, view):
        seed = int(np.random.get_state()[1][0])  # noqa: NPY002
        return np.random.default_rng(seed).random(len(view)) + view.rng.random()


class MovesTorch(Sound):
    def score(self, view):
        import torch

        torch.rand(1)
        return super().score(view)


class FixedSeed(Sound):
    """Shuffles large batches by a seed of its own."""

    def select(self, view, n_queries):
        if n_queries <= 3:
            return super().select(view, n_queries)
        keys = np.random.default_rng(42).random(len(view))
        return np.lexsort((keys, -self.score(view)))[:n_queries]


# torch


def imported_at_the_top():
    """A strategy whose module has torch among its names."""
    module = types.ModuleType("kit_mutants_with_torch")
    module.learning = types.ModuleType("torch")
    module.Sound = Sound
    sys.modules[module.__name__] = module
    exec("class TorchAtTheTop(Sound): ...", vars(module))
    return module.TorchAtTheTop()


MUTANTS = {
    "check_input_is_unchanged": [
        (SortsTheList(), "a query changed the data it was given; work on a copy"),
        (UnlocksProbabilities(), r"changed view\.proba, which others share; work on"),
        (UnlocksPredictions(), r"changed view\.predictions, which others share"),
        (NotesOnTheView(), r"a query sets \['doubt'\] of the view; use local"),
    ],
    "check_prints_nothing": [
        (Prints(), r"a query prints '30 candidates\\n'; leave it out, or use"),
        (PrintsErrors(), r"a query prints 'slow\\n'; leave it out, or use"),
    ],
    "check_model_is_unchanged": [
        (NotesOnTheModel(), "a query changed the fitted estimator; train and set"),
    ],
    "check_no_global_generator": [
        (SeedsNumpy(), r"moved the global generator of numpy\.random; take random"),
        (MovesNumpy(), r"moved the global generator of numpy\.random; take random"),
        (MovesPython(), "moved the global generator of random; take random numbers"),
    ],
    "check_no_fixed_seed_for_ties": [
        (FixedSeed(), "three seeds gave the same batch of equal candidates; take"),
    ],
    "check_module_without_torch": [
        (imported_at_the_top(), r"its module imports torch \(as \['learning'\]\)"),
    ],
}

GRAVE = {
    "check_requires_what_it_uses": [
        (ScalesInPlace(), r"it changes its view, .*\(output array is read-only\)"),
        (ReplacesProbabilities(), "it changes its view, .* has no setter"),
    ],
    "check_model_is_unchanged": [
        (RefitsTheModel(), "a query changed the fitted estimator; train and set"),
    ],
    "check_no_global_generator": [
        (ReadsTheGlobalSeed(), "depends on a global random seed; take random num"),
        (MovesTorch(), "moved the global generator of torch; take random numbers"),
    ],
}
