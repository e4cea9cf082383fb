"""Random choices: independent between queries, and tied to positions in the pool."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner

from ._helpers import SEED, X, make, y

N = 1000
LINE = np.arange(float(N))[:, None]
HALVES = np.arange(N) >= N // 2


def run_loop(seed, how):
    """Ask for 50 random labels in 5 rounds."""
    learner = ActiveLearner(DummyClassifier(), "random", random_state=seed)
    asked = np.array([3, 997])
    learner.fit(LINE[asked] / N, HALVES[asked])
    for _ in range(5):
        rest = np.setdiff1d(np.arange(N), asked)
        picks = learner.query(LINE, 10, candidates=rest)
        asked = np.concatenate([asked, picks])
        if how == "fit":
            learner.fit(LINE[asked] / N, HALVES[asked])
        else:
            learner.teach(LINE[picks] / N, HALVES[picks])
    return asked[2:]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("how", ["fit", "teach"])
def test_random_labels_vary_as_much_as_independent_ones(how):
    shares = [HALVES[run_loop(seed, how)].mean() for seed in range(60)]
    # In theory 0.069; the seeds are fixed.
    assert np.std(shares) == pytest.approx(0.064, abs=0.01)


def ask_twice(seed, strategy="random", estimator=None):
    """Ask twice in a round, the second time without what was asked first."""
    learner = ActiveLearner(
        estimator or LogisticRegression(), strategy, random_state=seed
    )
    learner.fit([[3.0], [997.0]], [False, True])
    first = learner.query(LINE, 10)
    rest = np.setdiff1d(np.arange(N), first)
    return first, learner.query(LINE, 10, candidates=rest)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "estimator"),
    [
        ("random", None),
        ("entropy", DummyClassifier(strategy="uniform")),  # all scores are tied
        ("subsample", DummyClassifier(strategy="uniform")),
    ],
)
def test_a_second_query_of_a_round_does_not_ask_for_neighbors(strategy, estimator):
    near = []
    for seed in range(40):
        first, second = ask_twice(seed, strategy, estimator)
        assert not set(first) & set(second)
        gaps = np.abs(second[:, None] - first).min(axis=1)
        near.append((gaps <= 10).mean())
    # Of independent draws, 17.5 % lie within 10 places of one of ten others.
    assert np.mean(near) == pytest.approx(0.175, abs=0.06)


def test_a_random_number_belongs_to_a_position_in_the_pool():
    learner = make("random").fit(X[SEED], y[SEED])
    order = learner.query(X, 60)
    rest = np.setdiff1d(np.arange(60), order[:7])
    assert_array_equal(learner.query(X, 53, candidates=rest), order[7:])
    shuffled = np.random.default_rng(0).permutation(rest)
    assert_array_equal(learner.query(X, 53, candidates=shuffled), order[7:])


def test_the_number_of_labels_seeds_the_training_too():
    learner = ActiveLearner(RandomForestClassifier(n_estimators=2), random_state=0)
    seeds = [learner.fit(X[:n], y[:n]).estimator_.random_state for n in (40, 50, 40)]
    assert seeds[0] == seeds[2] != seeds[1]
