"""Strategies that choose or score wrongly, for the checks of answers to notice.

Most hold a fault that is easy to make, met in one situation only.
"""

import itertools
from weakref import WeakKeyDictionary

import numpy as np

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


# What the view is asked for


class Optional(Sound):
    def score(self, view):
        features = getattr(view, "features", None)  # always None: it is not declared
        return super().score(view) if features is None else features[:, 0]


class Undeclared(Sound):
    requires = frozenset()


# Ties in a `select` of its own


class First(SoundBatch):
    def select(self, view, n_queries):
        return np.arange(n_queries)


class Last(SoundBatch):
    def select(self, view, n_queries):
        return np.arange(len(view))[::-1][:n_queries]


class ByStableSort(SoundBatch):
    def select(self, view, n_queries):
        return np.argsort(view.proba.max(axis=1), kind="stable")[:n_queries]


class ByReversedSort(SoundBatch):
    def select(self, view, n_queries):
        doubt = -view.proba.max(axis=1)
        return np.argsort(doubt, kind="stable")[::-1][:n_queries]


class ByIdentifier(SoundBatch):
    def select(self, view, n_queries):
        names = np.random.default_rng(5).permutation(len(view))
        return np.lexsort((names, view.proba.max(axis=1)))[:n_queries]


class SpreadsFullTiesOnly(ByStableSort):
    def select(self, view, n_queries):
        if np.ptp(view.proba.max(axis=1)) == 0:
            return view.rng.permutation(len(view))[:n_queries]
        return super().select(view, n_queries)


class SpreadsTheFirstPickOnly(SoundBatch):
    def select(self, view, n_queries):
        doubt = -view.proba.max(axis=1)
        picks = [top_n(doubt, 1, view.rng)[0]]
        while len(picks) < n_queries:
            doubt[picks] = -np.inf
            picks.append(doubt.argmax())
        return np.array(picks)


# Picks


class RepeatsOneOfSeven(SoundBatch):
    def select(self, view, n_queries):
        picks = super().select(view, n_queries)
        if n_queries == 7:
            picks[-1] = picks[0]
        return picks


class SqueezesOne(SoundBatch):
    def select(self, view, n_queries):
        picks = super().select(view, n_queries)
        return picks if len(view) == 1 else np.squeeze(picks)


class AgainstTheOthers(Sound):
    def score(self, view):
        own = super().score(view)
        with np.errstate(invalid="ignore"):
            return own - (own.sum() - own) / np.float64(len(view) - 1)


class ShortOfSix(SoundBatch):
    def select(self, view, n_queries):
        picks = super().select(view, n_queries)
        return picks[:-1] if n_queries == len(view) == 6 else picks


class AnswersInThePool(SoundBatch):
    def select(self, view, n_queries):
        picks = super().select(view, n_queries)
        few = view._positions is not None and len(view) < 10
        return view._positions[picks] if few else picks


class GivesAMask(SoundBatch):
    def select(self, view, n_queries):
        return np.isin(np.arange(len(view)), super().select(view, n_queries))


class GivesFloats(SoundBatch):
    def select(self, view, n_queries):
        return super().select(view, n_queries).astype(float)


class GivesAColumn(SoundBatch):
    def select(self, view, n_queries):
        return super().select(view, n_queries)[:, None]


class GivesTooFew(SoundBatch):
    def select(self, view, n_queries):
        return super().select(view, n_queries)[:-1]


class GivesAll(SoundBatch):
    def select(self, view, n_queries):
        return super().select(view, len(view))


class CountsFromOne(SoundBatch):
    def select(self, view, n_queries):
        return np.arange(len(view), 0, -1)[:n_queries]


class CountsFromTheEnd(SoundBatch):
    def select(self, view, n_queries):
        return super().select(view, n_queries) - len(view)


class Repeats(SoundBatch):
    def select(self, view, n_queries):
        return super().select(view, 1).repeat(n_queries)


# Scores


class ForgetsTheLastChunk(Sound):
    def score(self, view):
        scores = super().score(view)
        n_whole = len(view) // 64 * 64
        if n_whole:
            scores[n_whole:] = np.nan
        return scores


class GivesTwoScores(Sound):
    def score(self, view):
        return view.proba[:, :2]

    def select(self, view, n_queries):
        return top_n(view.proba[:, 0], n_queries, view.rng)


class LogOfZero(Sound):
    def score(self, view):
        with np.errstate(divide="ignore", invalid="ignore"):
            return -(view.proba * np.log(view.proba)).sum(axis=1)


# Determinism and order


class OwnGeneratorNowAndThen(Sound):
    """Leaves the round's generator in a branch that is rarely reached."""

    seeds = itertools.count()

    def select(self, view, n_queries):
        if 0.2 < view.rng.random() < 0.3:
            return np.random.default_rng(next(self.seeds)).permutation(len(view))[
                :n_queries
            ]
        return super().select(view, n_queries)


class SecondThoughts(SoundBatch):
    """Remembers outside itself how often it was asked."""

    asked = WeakKeyDictionary()

    def select(self, view, n_queries):
        times = self.asked[self] = self.asked.get(self, 0) + 1
        return np.roll(top_n(-view.proba.max(axis=1), len(view), view.rng), times)[
            :n_queries
        ]


class ComparesNeighbours(Sound):
    def score(self, view):
        scores = super().score(view)
        return np.diff(scores, prepend=scores[:1])


class InTheOrderOfThePool(Sound):
    def select(self, view, n_queries):
        return np.sort(super().select(view, n_queries))


class SpreadsInTheBatchOnly(Sound):
    def select(self, view, n_queries):
        scores = self.score(view)
        chosen = np.argsort(-scores, kind="stable")[:n_queries]
        return chosen[np.lexsort((view.rng.random(n_queries), -scores[chosen]))]


MUTANTS = {
    "check_requires_what_it_uses": [
        (Optional(), r"uses features .*Add 'features' to its `requires`"),
    ],
    "check_picks_are_positions": [
        (RepeatsOneOfSeven(), r"select\(view, 7\) on 30 .* a position more than once"),
    ],
    "check_batch_of_one": [
        (SqueezesOne(), r"select\(view, 1\) on 30 candidates .* array of shape \(\)"),
    ],
    "check_whole_pool": [
        (AgainstTheOthers(), "NaN for 1 of 1 candidates, the first at position 0"),
    ],
    "check_scores_are_numbers": [
        (ForgetsTheLastChunk(), r"score\(view\) is NaN for 44 of 300 .*\[256\]"),
    ],
    "check_zero_and_one_probabilities": [
        (LogOfZero(), "NaN for 11 of 12 candidates"),
    ],
    "check_same_seed_same_answer": [
        (OwnGeneratorNowAndThen(), r"with one seed it asked for \[.*\], then \["),
    ],
    "check_asking_twice": [
        (SecondThoughts(), r"asked twice it gave \[.*\], then \[.*keep nothing"),
    ],
    "check_permuted_pool": [
        (ComparesNeighbours(), "scores of the items change with their order"),
        (InTheOrderOfThePool(), "it asked for .* was in another order; order by"),
    ],
    "check_ties_are_spread": [
        (SpreadsInTheBatchOnly(), "15 seeds reached 3 of 20 equal candidates; break"),
        (First(), "15 seeds reached 3 of 20 equal candidates; break ties with"),
        (Last(), "15 seeds reached 3 of 20 equal candidates; break ties with"),
        (ByStableSort(), "15 seeds reached 3 of 20 equal candidates; break ties with"),
        (ByReversedSort(), "reached 3 of 20 equal candidates; break ties with"),
        (ByIdentifier(), "15 seeds reached 3 of 20 equal candidates; break ties with"),
        (SpreadsFullTiesOnly(), "12 seeds gave .* at place 0 of a batch; break ties"),
        (SpreadsTheFirstPickOnly(), "12 seeds gave .* at place 1 of a batch; break"),
    ],
    "check_pool_smaller_than_batch": [
        (ShortOfSix(), "ValueError: .* must select 6 different positions .* got 5"),
    ],
    "check_candidates_only": [
        (AnswersInThePool(), "gave the position .*; return positions in the view"),
    ],
}

GRAVE = {
    "check_requires_what_it_uses": [
        (Undeclared(), r"uses proba .*Add 'proba' to its `requires`"),
    ],
    "check_picks_are_positions": [
        (GivesAMask(), r"gave an array of shape \(30,\) and dtype bool; return a one"),
        (GivesFloats(), r"gave an array of shape \(7,\) and dtype float64; return"),
        (GivesAColumn(), r"gave an array of shape \(7, 1\) and dtype int64; return"),
        (GivesTooFew(), "gave 6 positions; return exactly n, which never exceeds"),
        (GivesAll(), "gave 30 positions; return exactly n"),
        (
            CountsFromTheEnd(),
            r"gave the position \[-\d+\]; return positions in the view",
        ),
        (CountsFromOne(), r"gave the position \[30\]; return positions in the view"),
        (Repeats(), "gave a position more than once: .*; exclude positions"),
    ],
    "check_scores_are_numbers": [
        (GivesTwoScores(), r"array of shape \(300, 2\) and dtype float64; return one"),
    ],
}
