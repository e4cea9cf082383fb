"""Inputs and numbers that other packages publish, and what the strategies give.

Those of small-text are in the tests of its query strategies, those of modAL in its
pages on uncertainty and disagreement sampling, and the distributions of baal are
described in the tests of its heuristics.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin

from skactive import ActiveLearner
from skactive.strategies import BALD, BatchBALD, Committee


class Told(ClassifierMixin, BaseEstimator):
    """Predicts what a row says: the probabilities of t members for k classes.

    With a `member`, it is this one of them.
    """

    def __init__(self, k=2, member=None):
        self.k = k
        self.member = member

    def fit(self, X, y):
        self.classes_ = np.arange(self.k)
        return self

    def sample_proba(self, X, n_draws=None, random_state=None):
        return np.reshape(X, (len(X), -1, self.k))

    def predict_proba(self, X):
        draws = self.sample_proba(X)
        return draws.mean(axis=1) if self.member is None else draws[:, self.member]

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)


def ask(strategy, draws, n):
    """Return positions, and scores in the order of the rows, for draws (n, t, k)."""
    draws = np.asarray(draws, dtype=float)
    rows, k = draws.reshape(len(draws), -1), draws.shape[-1]
    learner = ActiveLearner(Told(k), strategy, random_state=0)
    learner.fit(np.zeros((k, rows.shape[1])), np.arange(k))
    positions, scores = learner.query(rows, len(rows), return_scores=True)
    in_order = np.empty(len(rows))
    in_order[positions] = scores
    return positions[:n], in_order


TWO = [[0.1, 0.9], [0.45, 0.55], [0.5, 0.5], [0.7, 0.3]]
TWO_UNLIKE = [[0.1, 0.9], [0.45, 0.55], [0.2, 0.8], [0.7, 0.3]]
THREE = [[0.1, 0.75, 0.15], [0.45, 0.5, 0.05], [0.1, 0.8, 0.1], [0.7, 0.15, 0.15]]
THREE_WIDE = [[0.1, 0.8, 0.1], [0.45, 0.25, 0.3], [0.33, 0.33, 0.34], [0.7, 0.3, 0]]


# Their scores are smallest first for breaking ties and least confidence.
@pytest.mark.parametrize(
    ("strategy", "proba", "picks", "scores"),
    [
        ("margin", TWO, [2, 1], [-0.8, -0.1, 0, -0.4]),
        ("margin", THREE, [1, 3], [-0.6, -0.05, -0.7, -0.55]),
        ("least_confidence", TWO_UNLIKE, [1, 3], [0.1, 0.45, 0.2, 0.3]),
        ("least_confidence", THREE, [1, 3], [0.25, 0.5, 0.2, 0.3]),
        ("entropy", TWO, [2, 1], [0.325083, 0.688139, 0.693147, 0.610864]),
        ("entropy", THREE_WIDE, [2, 1], [0.639032, 1.067094, 1.098513, 0.610864]),
    ],
)
def test_uncertainty_of_small_text(strategy, proba, picks, scores):
    found, in_order = ask(strategy, proba, 2)
    assert_array_equal(found, picks)
    assert_allclose(in_order, scores, atol=1e-6)


@pytest.mark.parametrize(
    ("strategy", "pick", "scores"),
    [
        ("least_confidence", 1, [0.15, 0.4, 0.39]),
        ("margin", 2, [-0.75, -0.3, -0.22]),
        ("entropy", 1, [0.5181, 0.8979, 0.6687]),
    ],
)
def test_uncertainty_of_modal(strategy, pick, scores):
    proba = [[0.1, 0.85, 0.05], [0.6, 0.3, 0.1], [0.39, 0.61, 0.0]]
    found, in_order = ask(strategy, proba, 1)
    assert_array_equal(found, [pick])
    assert_allclose(in_order, scores, atol=1e-4)


VOTES = [[0, 1, 0], [1, 1, 2], [0, 1, 2], [2, 2, 2], [1, 2, 2]]
# Without the first text, whose probabilities for one member do not sum to 1.
MEMBERS = [
    [[0.3, 0.7, 0.0], [0.4, 0.6, 0.0], [0.4, 0.0, 0.6]],
    [[1.0, 0.0, 0.0], [0.2, 0.7, 0.1], [0.3, 0.2, 0.5]],
    [[0.2, 0.2, 0.6], [0.3, 0.1, 0.6], [0.1, 0.0, 0.9]],
    [[0.2, 0.7, 0.1], [0.0, 0.0, 1.0], [0.0, 0.1, 0.9]],
]
DIVERGENCES = [
    [0.27549995, 0.23005799, 0.69397192],
    [0.69314718, 0.34053564, 0.22380466],
    [0.04613903, 0.02914912, 0.15686827],
    [0.70556709, 0.40546511, 0.17201121],
]


@pytest.mark.parametrize(
    ("measure", "draws", "pick", "scores"),
    [
        ("vote_entropy", np.eye(3)[VOTES], 2, [0.6365, 0.6365, 1.0986, 0, 0.6365]),
        ("consensus_entropy", MEMBERS, 0, [1.0521, 1.0296, 0.8018, 0.8033]),
        # The mean over the members; their maximum has no equal here.
        ("kl", MEMBERS, 3, np.mean(DIVERGENCES, axis=1)),
    ],
)
def test_committee_of_modal(measure, draws, pick, scores):
    committee = Committee([Told(3, member) for member in range(3)], measure=measure)
    found, in_order = ask(committee, draws, 1)
    assert_array_equal(found, [pick])
    assert_allclose(in_order, scores, atol=1e-4)


@pytest.fixture
def distributions():
    """Histograms (3, 50, 10) of 100 numbers around 5, 6 and 9, spread by .1, 4, 2."""
    drawn = np.random.default_rng(0).normal(
        np.array([5, 6, 9])[:, None, None],
        np.array([0.1, 4, 2])[:, None, None],
        size=(3, 50, 100),
    )
    cells = np.round(np.clip(drawn, 0, 9)).astype(int)
    return np.eye(10)[cells].mean(axis=2)


@pytest.mark.parametrize("strategy", [BALD(n_draws=50), "entropy", "margin"])
def test_order_of_baal(strategy, distributions):
    found, _ = ask(strategy, distributions, 3)
    assert_array_equal(found, [1, 2, 0])


def test_a_batch_begins_with_the_first_of_bald(distributions):
    rows = distributions.reshape(3, -1)
    strategy = BatchBALD(n_draws=50)
    learner = ActiveLearner(Told(10), strategy, random_state=0)
    learner.fit(np.zeros((10, 500)), np.arange(10))
    assert_array_equal(learner.query(rows, 3), [1, 2, 0])
