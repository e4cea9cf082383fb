"""Strategies that fail on some pool, labels or container, for the checks to notice.

Most hold a fault that is easy to make, met in one situation only.
"""

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from skactive._math._scores import top_n
from skactive.strategies import PointwiseStrategy, Strategy


class Sound(PointwiseStrategy):
    requires = frozenset({"proba"})

    def score(self, view):
        return -view.proba.max(axis=1)


class SoundBatch(Strategy):
    """Not pointwise, so that fewer checks apply."""

    requires = frozenset({"proba"})

    def select(self, view, n_queries):
        return top_n(-view.proba.max(axis=1), n_queries, view.rng)


class OnFeatures(PointwiseStrategy):
    requires = frozenset({"features"})

    def score(self, view):
        return (self.rows(view) ** 2).sum(axis=1)

    def rows(self, view):
        features = view.features
        return features.toarray() if sparse.issparse(features) else features


# Classes and labels


class AsManyLabelsForEachClass(Sound):
    requires = frozenset({"proba", "labeled"})

    def score(self, view):
        view.y_labeled.reshape(len(view.classes), -1)
        return super().score(view)


class ThirdBestOfMany(SoundBatch):
    requires = frozenset({"proba", "labeled"})

    def select(self, view, n_queries):
        if len(view) > 20 and len(view.y_labeled) > 2:
            return top_n(np.sort(view.proba, axis=1)[:, -3], n_queries, view.rng)
        return super().select(view, n_queries)


class ThirdBest(Sound):
    def score(self, view):
        return np.sort(view.proba, axis=1)[:, -3]


class FourColours(Sound):
    def score(self, view):
        return np.array([1, 2, 3, 4])[view.proba.argmax(axis=1)] * super().score(view)


class SpreadOfEachClass(Sound):
    requires = frozenset({"proba", "labeled", "features"})

    def score(self, view):
        rows = OnFeatures.rows(self, view)
        labeled = view.labeled_features
        labeled = labeled.toarray() if sparse.issparse(labeled) else labeled
        total = np.zeros(len(view))
        for label in view.classes:
            group = labeled[view.y_labeled == label]
            with np.errstate(invalid="ignore", divide="ignore"):
                variance = ((group - group.mean(axis=0)) ** 2).sum(axis=0) / np.float64(
                    len(group) - 1
                )
            total += (rows * variance).sum(axis=1)
        return total


class ComputesWithLabels(Sound):
    requires = frozenset({"proba", "labeled"})

    def score(self, view):
        numeric = view.y_labeled.dtype.kind in "iu"
        weights = view.classes if numeric else np.ones(len(view.classes))
        return view.proba**2 @ weights


# Pools


class DividesByTheSpread(Strategy):
    requires = frozenset({"features"})

    def select(self, view, n_queries):
        if n_queries == len(view) or n_queries < 4:
            return view.rng.permutation(len(view))[:n_queries]
        norms = OnFeatures().score(view)
        spread = np.abs(norms - norms.mean())
        with np.errstate(invalid="ignore"):
            chances = spread / spread.sum()
        return view.rng.choice(len(view), n_queries, replace=False, p=chances)


class ChoosesAmongDifferent(Strategy):
    """Leaves out duplicates, and then has too few."""

    requires = frozenset({"features"})

    def select(self, view, n_queries):
        order, rows = view.rng.permutation(len(view)), OnFeatures().rows(view)
        different = order[np.unique(rows[order], axis=0, return_index=True)[1]]
        if len(different) == 1:
            return view.rng.permutation(len(view))[:n_queries]
        return view.rng.permutation(different)[:n_queries]


class FarthestFirst(Strategy):
    """Greedy k-center that forgets to leave out what is chosen."""

    requires = frozenset({"features"})

    def select(self, view, n_queries):
        rows = np.asarray(OnFeatures().rows(view))
        picks = [0]
        nearest = ((rows - rows[0]) ** 2).sum(axis=1)
        while len(picks) < n_queries:
            picks.append(int(nearest.argmax()))
            nearest = np.minimum(nearest, ((rows - rows[picks[-1]]) ** 2).sum(axis=1))
        return picks


# Containers and precision


class InsistsOnDoubles(Sound):
    def score(self, view):
        off = np.abs(view.proba.sum(axis=1, dtype=np.float64) - 1).max()
        if off > 1e-12:
            raise ValueError(f"probabilities are off by {off}")
        return super().score(view)


class Unlocks(Sound):
    """Takes away the lock of an array, which works on what it could write anyway."""

    def score(self, view):
        if isinstance(view.X, np.ndarray):
            view.X.flags.writeable = True
        return super().score(view)


class InsistsOnPlainArrays(Sound):
    def score(self, view):
        if isinstance(view.X, np.ndarray) and type(view.X) is not np.ndarray:
            raise TypeError(f"X must be an array, got {type(view.X).__name__}")
        return super().score(view)


class NoSparse(OnFeatures):
    def rows(self, view):
        if not isinstance(view.features, np.ndarray):
            raise TypeError("features must be an array")
        return view.features


class BreaksOnSparse(OnFeatures):
    def rows(self, view):
        return view.features.clip(0)


class LooksAtX(Sound):
    def score(self, view):
        rows = view.X.toarray() if sparse.issparse(view.X) else view.X
        return np.asarray(rows, dtype=float)[:, 0]


class EntropyOfDecisionValues(PointwiseStrategy):
    requires = frozenset({"class_scores"})

    def score(self, view):
        return -xlogy(view.class_scores, view.class_scores).sum(axis=1)


class NeedsClasses(PointwiseStrategy):
    def score(self, view):
        return view.rng.random(len(view)) * len(view.classes)


MUTANTS = {
    "check_rounds_of_a_loop": [
        (AsManyLabelsForEachClass(), "ValueError: cannot reshape array of size 13"),
    ],
    "check_two_classes": [
        (ThirdBestOfMany(), "IndexError: index -3 is out of bounds .* with size 2"),
    ],
    "check_seven_classes": [
        (FourColours(), "IndexError: index [456] is out of bounds .* size 4"),
    ],
    "check_one_label_per_class": [
        (SpreadOfEachClass(), "NaN for 12 of 12 candidates"),
    ],
    "check_labels_of_any_kind": [
        (ComputesWithLabels(), "only the names of the classes changed; look"),
    ],
    "check_equal_candidates": [
        (DividesByTheSpread(), "ValueError: .*robabilities contain NaN"),
    ],
    "check_duplicate_rows": [
        (ChoosesAmongDifferent(), "on 18 candidates gave 6 positions; return exact"),
    ],
    "check_floats_of_32_and_64_bits": [
        (InsistsOnDoubles(), "ValueError: probabilities are off by .*e-0"),
    ],
    "check_memory_mapped_input": [
        (Unlocks(), "ValueError: cannot set WRITEABLE flag"),
        (InsistsOnPlainArrays(), "TypeError: X must be an array, got memmap"),
    ],
    "check_sparse_features": [
        (NoSparse(), "on sparse features it raised TypeError: features must be"),
        (BreaksOnSparse(), "AttributeError: .*no attribute 'clip'"),
    ],
    "check_texts_behind_a_pipeline": [
        (LooksAtX(), "ValueError: could not convert string to float"),
    ],
    "check_decision_values": [
        (EntropyOfDecisionValues(), "NaN for 12 of 12 candidates"),
    ],
    "check_cold_start": [
        (NeedsClasses(), "TypeError: .* needs the classes, and there is no fitted"),
    ],
}

GRAVE = {
    "check_two_classes": [
        (ThirdBest(), "IndexError: index -3 is out of bounds .* with size 2"),
    ],
    "check_equal_candidates": [
        (FarthestFirst(), "gave a position more than once"),
    ],
    "check_duplicate_rows": [
        (FarthestFirst(), "gave a position more than once"),
    ],
}
