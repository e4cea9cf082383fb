"""Seeds, and all that a call must leave as it was."""

import pickle

import numpy as np
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier

from skactive import ActiveLearner

from ._helpers import SEED, X, make, y


def test_the_same_seed_gives_the_same_run():
    def run(seed):
        learner = make("random", random_state=seed).fit(X[SEED], y[SEED])
        picks = [learner.query(X, 5)]
        learner.teach(X[picks[0]], y[picks[0]])
        return [*picks, learner.query(X, 5)]

    first, second = run(3), run(3)
    assert_array_equal(first, second)
    assert not np.array_equal(first[0], first[1]), "rounds share a seed"
    assert not np.array_equal(first, run(4))


def test_asking_twice_gives_the_same_answer_without_a_seed():
    learner = make("random", random_state=None)
    assert_array_equal(learner.query(X, 5), learner.query(X, 5))
    learner.fit(X[SEED], y[SEED])
    assert_array_equal(learner.query(X, 5), learner.query(X, 5))


def test_the_order_of_ties_is_random_but_seeded():
    flat = ActiveLearner(DummyClassifier(strategy="uniform"), "entropy", random_state=0)
    flat.fit(X[SEED], y[SEED])
    assert not np.array_equal(flat.query(X, 10), np.arange(10))


def test_unseeded_estimators_are_seeded_and_seeded_ones_left_alone():
    learner = ActiveLearner(RandomForestClassifier(n_estimators=3), random_state=0)
    a, b = (clone(learner).fit(X, y).predict_proba(X) for _ in range(2))
    assert_array_equal(a, b)
    learner.set_params(estimator__random_state=7).fit(X, y)
    assert learner.estimator_.random_state == 7


def test_global_generators_are_neither_read_nor_moved():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for random_state in (None, 0):
        forest = RandomForestClassifier(n_estimators=2)
        learner = ActiveLearner(forest, "random", random_state=random_state)
        learner.query(X, 2)
        learner.fit(X, y).query(X, 2)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_query_changes_nothing_a_prediction_depends_on():
    learner = make().fit(X[SEED], y[SEED])
    before = pickle.dumps(learner)
    learner.query(X, 3)
    assert pickle.dumps(learner) == before


def test_what_the_user_changes_later_is_no_matter():
    X_seed, y_seed = X[SEED].copy(), y[SEED].copy()
    learner = make().fit(X_seed, y_seed)
    X_seed[:] = 0
    y_seed[:] = "no"
    assert_array_equal(learner.X_labeled_, X[SEED])
    assert_array_equal(learner.y_labeled_, y[SEED])
