"""UHerding against loops over its definition, its limits and its bad inputs."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from skactive import ActiveLearner
from skactive._math._coverage import closest_pair
from skactive.strategies import UHerding
from skactive.testing import check_strategy
from skactive.view import PoolView

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 3)) + 0.3
Y = np.digitize(X[:, 0], [-0.3, 0.8])
LABELED, POOL = X[:12], X[12:]


def make_view(strategy, *, seed=0, model=None, pool=POOL, labeled=LABELED, y=None):
    y = Y[: labeled.shape[0]] if y is None else y
    model = LogisticRegression() if model is None else model
    return PoolView(
        pool,
        estimator=model.fit(labeled, y),
        X_labeled=labeled,
        y_labeled=y,
        requires=strategy.requires,
        optional=strategy.optional,
        targets=strategy.targets,
        rng=np.random.default_rng(seed),
    )


def make(*args, **params):
    """Return the method of the paper."""
    return UHerding(*args, random_share=0, **params)


def unit(rows):
    return [[v / math.hypot(*row) for v in row] for row in np.asarray(rows).tolist()]


def kernels(rows, others, radius):
    return [
        [math.exp(-(math.dist(a, b) ** 2) / radius**2) for b in unit(others)]
        for a in unit(rows)
    ]


def measure(proba, name, temperature):
    """Uncertainty of one row of probabilities."""
    tempered = [p ** (1 / temperature) for p in proba]
    proba = sorted(p / sum(tempered) for p in tempered)
    return {
        "margin": 1 - (proba[-1] - proba[-2]),
        "entropy": -sum(p * math.log(p) for p in proba),
        "least_confidence": 1 - proba[-1],
    }[name]


def check_greedy(picks, weights, radius, pool=POOL, labeled=LABELED):
    """Each pick covers most of what labels and picks before it leave."""
    pairs = kernels(pool, pool, radius)
    covered = [max(row, default=0.0) for row in kernels(pool, labeled, radius)]
    assert len(set(picks)) == len(picks)
    first = None
    for step, pick in enumerate(picks):
        gains = {
            i: sum(
                u * max(k - c, 0)
                for u, k, c in zip(weights, pairs[i], covered, strict=True)
            )
            for i in set(range(len(pool))) - set(picks[:step].tolist())
        }
        first = max(gains.values()) if first is None else first
        assert gains[pick] >= max(gains.values()) - 2e-5 * first
        covered = [max(c, k) for c, k in zip(covered, pairs[pick], strict=True)]


@pytest.mark.long
@pytest.mark.parametrize("name", ["margin", "entropy", "least_confidence"])
@pytest.mark.parametrize(("radius", "temperature"), [(0.3, 1.0), (1.5, 0.5), (0.1, 3)])
def test_uherding_oracle_every_pick_adds_most(name, radius, temperature):
    strategy = make(name, radius, temperature)
    view = make_view(strategy)
    picks = strategy.select(view, 15)
    proba = LogisticRegression().fit(LABELED, Y[:12]).predict_proba(POOL)
    weights = [measure(row, name, temperature) for row in proba.tolist()]
    check_greedy(picks, weights, radius)


def test_uherding_oracle_radius_is_the_smallest_distance_between_labels():
    strategy = make()
    picks = strategy.select(make_view(strategy), 15)
    rows = unit(LABELED)
    radius = min(math.dist(a, b) for a in rows for b in rows if a is not b)
    proba = LogisticRegression().fit(LABELED, Y[:12]).predict_proba(POOL)
    check_greedy(picks, [measure(row, "margin", 1) for row in proba.tolist()], radius)
    assert closest_pair(np.repeat(LABELED, 3, axis=0)) == pytest.approx(radius)
    assert closest_pair(np.repeat(LABELED[:1], 4, axis=0)) == np.inf


@pytest.mark.parametrize("scale", [1, 1e-3])
def test_uherding_oracle_max_herding_before_there_are_labels(scale):
    learner = ActiveLearner(LogisticRegression(), cold_start=make(), random_state=0)
    picks = learner.query(scale * POOL, 12)
    check_greedy(picks, [1] * len(POOL), 1.0, labeled=LABELED[:0])
    learner.set_params(cold_start=make(None)).fit(LABELED, np.zeros(12))
    rows = unit(LABELED)
    radius = min(math.dist(a, b) for a in rows for b in rows if a is not b)
    check_greedy(learner.query(POOL, 12), [1] * len(POOL), radius)


def test_uherding_oracle_decision_values_become_probabilities():
    strategy = make("entropy", radius=0.5, temperature=2.0)
    picks = strategy.select(make_view(strategy, model=LinearSVC()), 8)
    values = LinearSVC().fit(LABELED, Y[:12]).decision_function(POOL)
    proba = np.exp(values) / np.exp(values).sum(axis=1)[:, None]
    check_greedy(picks, [measure(row, "entropy", 2.0) for row in proba.tolist()], 0.5)


def test_a_narrow_kernel_is_margin_sampling():
    strategy = make(radius=1e-4)
    view = make_view(strategy)
    expected = np.argsort(view.margins)[:20]
    assert_array_equal(strategy.select(view, 20), expected)


def test_the_candidates_are_a_random_part_of_the_pool():
    pool = np.random.default_rng(0).normal(size=(300, 3))
    strategy, parts = make(None, 0.3, sample_size=40), set()
    for seed in range(3):
        view = make_view(strategy, pool=pool, seed=seed)
        numbers = make_view(strategy, pool=pool, seed=seed).uniform()
        part = np.sort(np.argsort(-numbers)[:40])
        picks = strategy.select(view, 8)
        parts.add(tuple(picks))
        places = np.searchsorted(part, picks)
        assert_array_equal(part[places], picks)
        check_greedy(places, [1] * 40, 0.3, pool=pool[part])
    assert len(parts) == 3
    # A large batch is chosen among at least twice as many.
    view = make_view(strategy, pool=pool)
    assert len(set(strategy.select(view, 60))) == 60


class Texts(ClassifierMixin, BaseEstimator):
    """A classifier of texts without features: its numbers are those in the text."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        second = np.array([float(text.split()[1]) for text in X])
        return np.stack([1 - second, second], axis=1)


def test_without_features_the_most_uncertain_are_queried():
    pool = [f"p {p:.2f}" for p in (0.1, 0.45, 0.9, 0.52, 0.7)]
    learner = ActiveLearner(Texts(), make(), random_state=0)
    learner.fit(["p 0.2", "p 0.8"], [0, 1])
    assert learner.query(pool, 3).tolist() == [3, 1, 4]
    cold = ActiveLearner(Texts(), cold_start=make(), random_state=0)
    assert len(set(cold.query(pool, 4))) == 4


def test_sparse_single_and_double_rows_give_the_same_picks():
    strategy = make(radius=0.5)
    model = LogisticRegression(C=2).fit(LABELED, Y[:12])
    expected = strategy.select(make_view(strategy), 10)
    for convert in (sparse.csr_array, np.float32):
        view = make_view(strategy, pool=convert(POOL), labeled=convert(LABELED))
        assert_array_equal(strategy.select(view, 10), expected)
    assert model.classes_.tolist() == [0, 1, 2]


def test_the_whole_pool_and_rows_of_zeros():
    pool = np.vstack([POOL[:5], np.zeros((2, 3))])
    for kind in (np.asarray, sparse.csr_array):
        strategy = make()
        picks = strategy.select(make_view(strategy, pool=kind(pool)), 7)
        assert sorted(picks) == list(range(7))
    strategy = make(None, radius=0.5)
    view = make_view(strategy, pool=np.vstack([POOL[:1] * 0, POOL[:1]]))
    assert len(strategy.select(view, 2)) == 2


def test_copies_add_nothing_twice_and_come_in_random_order():
    pool = np.repeat(np.eye(3), 4, axis=0)
    orders = set()
    for seed in range(8):
        strategy = make(None, radius=0.3)
        view = PoolView(
            pool, optional=strategy.optional, rng=np.random.default_rng(seed)
        )
        picks = strategy.select(view, 12)
        assert sorted(picks[:3] // 4) == [0, 1, 2]
        assert sorted(picks) == list(range(12))
        orders.add(tuple(picks))
    assert len(orders) == 8


def test_certain_predictions_leave_coverage():
    class Certain(LogisticRegression):
        def predict_proba(self, X):
            return np.eye(3)[super().predict(X)]

    certain, none = make(radius=0.5), make(None, radius=0.5)
    assert_array_equal(
        certain.select(make_view(certain, model=Certain()), 9),
        none.select(make_view(none), 9),
    )


def test_seeds_change_the_picks_and_nothing_else_does():
    pool = np.random.default_rng(0).normal(size=(1200, 5))
    strategy, labeled = make(None, sample_size=100), pool[:12] + 0.1
    first, again, other = (
        strategy.select(make_view(strategy, pool=pool, labeled=labeled, seed=seed), 20)
        for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert other.tolist() != first.tolist()


def test_regression_needs_no_measure():
    assert make().targets == {"single-label", "multi-label"}
    assert "regression" in make(None).targets
    assert make(None).optional == {"features", "labeled"}
    assert_allclose(closest_pair(np.eye(2)), math.sqrt(2))


@pytest.mark.slow
def test_the_last_part_of_a_batch_is_random():
    pool = np.random.default_rng(0).normal(size=(400, 3))
    expected = make().select(make_view(make(), pool=pool), 70)
    seen, counts = np.zeros(400), []
    for seed in range(200):
        strategy = UHerding(sample_size=1000)
        picks = strategy.select(make_view(strategy, pool=pool, seed=seed), 100)
        assert_array_equal(np.sort(picks[:70]), np.sort(expected))
        assert len(set(picks)) == 100
        seen[picks[70:]] += 1
        few = strategy.select(make_view(strategy, pool=pool, seed=seed), 1)
        counts.append(few[0] != expected[0])
    # Each candidate that is left is drawn in 30 of 330 batches, and a batch of one is
    # random in 3 of 10. The bounds are five standard deviations.
    left = np.setdiff1d(np.arange(400), expected)
    assert seen[expected].sum() == 0
    assert np.abs(seen[left] - 200 / 11).max() < 5 * math.sqrt(200 * 30 * 300) / 330
    assert abs(np.mean(counts) - 0.3) < 5 * math.sqrt(0.3 * 0.7 / 200)
    everything = UHerding(random_share=1)
    view = make_view(everything, pool=pool)
    assert len(set(everything.select(view, 400))) == 400


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [make(None), make("entropy", 0.5, 2.0, 5), UHerding(random_share=1)],
    ids=repr,
)
def test_other_parameters_pass_the_kit(strategy):
    assert len(check_strategy(strategy)) > 25
