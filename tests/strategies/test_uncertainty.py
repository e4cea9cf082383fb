"""The uncertainty strategies against plain Python, run through the learner."""

import math

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skactive import ActiveLearner, get_strategy
from skactive._utils._plugins import load
from skactive.registry import available
from skactive.strategies import PointwiseStrategy

LOADERS = {"iris": load_iris, "cancer": load_breast_cancer, "digits": load_digits}
NAMES = [
    "entropy",
    "least_confidence",
    "margin",
    "random",
    "variation_ratio",
]
BATCH = 15


@pytest.fixture(params=LOADERS)
def data(request):
    """A few labeled rows of a real data set and the rest as pool: 3, 2, 10 classes."""
    X, y = LOADERS[request.param](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:300]
    X, y = X[order], y[order]
    n = 40
    return X[:n], y[:n], X[n:]


def make(strategy, model=None, random_state=0):
    model = LogisticRegression(max_iter=200) if model is None else model
    return ActiveLearner(
        make_pipeline(StandardScaler(), model), strategy, random_state=random_state
    )


def assert_asks_the_least_sure(learner, X, sure, values):
    """The picks are those whose rows of values an explicit loop finds least sure."""
    picks = learner.query(X, BATCH)
    sureness = [sure(row) for row in values.tolist()]
    expected = sorted(range(len(X)), key=sureness.__getitem__)[:BATCH]
    found, best = [[sureness[i] for i in some] for some in (picks, expected)]
    assert len(set(picks)) == BATCH
    # Rounding may swap what differs in the last digit, so compare what was reached.
    np.testing.assert_allclose(found, best, rtol=1e-9, atol=1e-12)


# Oracles


def test_entropy_by_the_oracle(data):
    X_seed, y_seed, X_pool = data
    learner = make("entropy").fit(X_seed, y_seed)

    def sure(row):
        return sum(p * math.log2(p) for p in row if p > 0)

    proba = learner.predict_proba(X_pool)
    assert_asks_the_least_sure(learner, X_pool, sure, proba)


def test_least_confidence_by_the_oracle(data):
    X_seed, y_seed, X_pool = data
    learner = make("least_confidence").fit(X_seed, y_seed)
    proba = learner.predict_proba(X_pool)
    assert_asks_the_least_sure(learner, X_pool, max, proba)


def test_variation_ratio_by_the_oracle(data):
    X_seed, y_seed, X_pool = data
    learner = make("variation_ratio").fit(X_seed, y_seed)

    def sure(row):
        mode = sorted(row)[-1]
        return -math.fsum([*row, -mode])  # the mass that the mode leaves to others

    proba = learner.predict_proba(X_pool)
    assert_asks_the_least_sure(learner, X_pool, sure, proba)


def gap(row):
    second, best = sorted(row)[-2:]
    return best - second


def test_margin_by_the_oracle(data):
    X_seed, y_seed, X_pool = data
    learner = make("margin").fit(X_seed, y_seed)
    proba = learner.predict_proba(X_pool)
    assert_asks_the_least_sure(learner, X_pool, gap, proba)


def test_margin_of_a_hyperplane_by_the_oracle():
    X, y = load_breast_cancer(return_X_y=True)
    learner = make("margin", LinearSVC()).fit(X[:60], y[:60])
    scaler, svc = learner.estimator_
    distances = scaler.transform(X) @ svc.coef_[0] + svc.intercept_[0]
    assert_asks_the_least_sure(learner, X, lambda row: abs(row[0]), distances[:, None])


@pytest.mark.parametrize(
    "model",
    [LinearSVC(), RidgeClassifier(), SVC(decision_function_shape="ovr")],
    ids=lambda model: type(model).__name__,
)
def test_margin_of_decision_values_by_the_oracle(model):
    X, y = load_digits(return_X_y=True)
    learner = make("margin", model).fit(X[:200], y[:200])
    assert not hasattr(learner, "predict_proba")
    values = learner.decision_function(X[200:500])
    assert values.shape == (300, 10)
    assert_asks_the_least_sure(learner, X[200:500], gap, values)


@pytest.mark.long
@pytest.mark.parametrize("draws", [150, pytest.param(400, marks=pytest.mark.slow)])
def test_random_by_the_oracle_of_equal_chances(draws):
    X, y = load_iris(return_X_y=True)
    learner = ActiveLearner(DummyClassifier(), "random")
    counts = np.zeros(30, dtype=int)
    firsts = np.zeros(30, dtype=int)
    for seed in range(draws):
        learner.set_params(random_state=seed).fit(X[30::40], y[30::40])
        picks = learner.query(X[:30], 3)
        counts[picks] += 1
        firsts[picks[0]] += 1
    assert counts.sum() == 3 * draws
    assert scipy.stats.chisquare(counts).pvalue > 1e-3
    assert scipy.stats.chisquare(firsts).pvalue > 1e-3


# Behavior


def test_these_are_the_strategies_of_this_family():
    builtin = [entry for entry in available() if entry.builtin]
    family = "skactive.strategies._uncertainty"
    found = [entry.name for entry in builtin if load(entry).__module__ == family]
    of_draws = ["bald", "batchbald", "mc_dropout"]
    assert found == sorted([*NAMES, "density", *of_draws])


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_candidates_limit_what_is_asked(name, data):
    X_seed, y_seed, X_pool = data
    candidates = np.arange(5, 60, 3)
    learner = make(name).fit(X_seed, y_seed)
    picks = learner.query(X_pool, 6, candidates=candidates)
    assert set(picks) <= set(candidates)
    if name != "random":
        inner = learner.query(X_pool[candidates], 6)
        assert_array_equal(picks, candidates[inner])


@pytest.mark.parametrize("name", ["entropy", "least_confidence", "margin"])
def test_two_classes_are_ranked_alike(name):
    X, y = load_breast_cancer(return_X_y=True)
    expected = make("variation_ratio").fit(X[:60], y[:60]).query(X, BATCH)
    assert_array_equal(make(name).fit(X[:60], y[:60]).query(X, BATCH), expected)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_ties_are_broken_by_the_generator_of_the_round(name):
    X, y = load_iris(return_X_y=True)
    same = np.repeat(X[:1], 40, axis=0)
    answers = [
        tuple(make(name, random_state=seed).fit(X, y).query(same, 5))
        for seed in (0, 0, 1, 2)
    ]
    assert answers[0] == answers[1]
    assert len(set(answers)) == 3


@pytest.mark.parametrize("name", NAMES)
def test_another_round_breaks_ties_in_another_way(name):
    X, y = load_iris(return_X_y=True)
    same = np.repeat(X[:1], 40, axis=0)
    learner = make(name).fit(X, y)
    first = learner.query(same, 5)
    second = learner.teach(X[:1], y[:1]).query(same, 5)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("name", sorted({*NAMES} - {"random"}))
def test_probabilities_of_zero_and_one_are_the_surest(name):
    X, y = load_iris(return_X_y=True)
    stump = DecisionTreeClassifier(max_depth=1, random_state=0)
    learner = ActiveLearner(stump, name, random_state=0).fit(X, y)
    sure = (learner.predict_proba(X) == 1).any(axis=1)
    assert sure.sum() == 50
    picks = learner.query(X, 120)
    assert not sure[picks[:100]].any()
    assert sure[picks[100:]].all()


@pytest.mark.parametrize("name", ["entropy", "least_confidence", "variation_ratio"])
def test_what_needs_probabilities_says_so(name):
    X, y = load_iris(return_X_y=True)
    learner = make(name, LinearSVC()).fit(X, y)
    message = f"strategy '{name}' needs class probabilities; LinearSVC has no predict_"
    with pytest.raises(TypeError, match=message):
        learner.query(X, 5)


def test_margin_of_a_model_without_either_says_so():
    class Bare(DummyClassifier):
        predict_proba = property()

    X, y = load_iris(return_X_y=True)
    learner = ActiveLearner(Bare(), "margin").fit(X, y)
    with pytest.raises(TypeError, match="Bare has no predict_proba or decision_func"):
        learner.query(X, 5)


def test_margin_refuses_values_for_pairs_of_classes():
    X, y = load_digits(return_X_y=True)
    model = SVC(decision_function_shape="ovo")
    learner = make("margin", model).fit(X[:200], y[:200])
    with pytest.raises(TypeError, match=r"one decision value per class, 10; SVC"):
        learner.query(X, 5)


# As objects of scikit-learn


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_clone_is_another_object_that_asks_the_same(name, data):
    X_seed, y_seed, X_pool = data
    strategy = get_strategy(name)
    copied = clone(strategy)
    assert copied is not strategy
    assert repr(copied) == repr(strategy)
    picks = [make(s).fit(X_seed, y_seed).query(X_pool) for s in (strategy, copied)]
    assert_array_equal(*picks)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_name_and_an_instance_ask_the_same(name, data):
    X_seed, y_seed, X_pool = data
    picks = [
        make(s).fit(X_seed, y_seed).query(X_pool) for s in (name, get_strategy(name))
    ]
    assert_array_equal(*picks)


class Tilted(PointwiseStrategy):
    """Ask for one class before the others, by as much as its weight says."""

    requires = frozenset({"proba"})

    def __init__(self, weight=0.0):
        self.weight = weight

    def score(self, view):
        return self.weight * view.proba[:, 0] - view.proba.max(axis=1)


@pytest.mark.long
def test_grid_search_runs_over_strategies_and_their_parameters():
    X, y = load_iris(return_X_y=True)
    grid = [
        {"strategy": [*NAMES, get_strategy("margin")]},
        {"strategy": [Tilted()], "strategy__weight": [0.0, 5.0]},
    ]
    search = GridSearchCV(make("margin"), grid, cv=3, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == len(NAMES) + 3
    assert len(set(search.cv_results_["mean_test_score"])) == 1


def test_a_nested_parameter_changes_what_is_asked(data):
    X_seed, y_seed, X_pool = data
    learner = make(Tilted()).fit(X_seed, y_seed)
    plain = learner.query(X_pool)
    least = make("least_confidence").fit(X_seed, y_seed)
    assert_array_equal(plain, least.query(X_pool))
    learner.set_params(strategy__weight=100.0)
    by_first_class = np.argsort(-learner.predict_proba(X_pool)[:, 0], kind="stable")
    assert set(learner.query(X_pool)) == set(by_first_class[:10])


def test_cloning_a_learner_clones_its_strategy():
    learner = make(Tilted(weight=2.0))
    copied = clone(learner).set_params(strategy__weight=3.0)
    assert learner.strategy.weight == 2.0
    assert copied.strategy.weight == 3.0
