"""DAL and CAL against loops with explicit bookkeeping."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from skactive.strategies import CAL, DAL
from skactive.testing import check_strategy
from skactive.testing._strategy_cases import GivenProba
from skactive.view import PoolView

LOADERS = {"iris": load_iris, "cancer": load_breast_cancer, "digits": load_digits}


def load(name):
    X, y = LOADERS[name](return_X_y=True)
    X = StandardScaler().fit_transform(X)
    order = np.random.default_rng(0).permutation(len(X))[:140]
    return X[order[:30]], y[order[:30]], X[order[30:]]


def make_view(strategy, X, X_labeled, y, model=None, seed=0):
    model = LogisticRegression(max_iter=500) if model is None else model
    return PoolView(
        X,
        estimator=model.fit(X_labeled, y),
        X_labeled=X_labeled,
        y_labeled=np.asarray(y),
        requires=strategy.requires,
        rng=np.random.default_rng(seed),
    )


def select(strategy, X, X_labeled, n_queries, seed=0):
    y = np.arange(X_labeled.shape[0]) % 2
    return strategy.select(make_view(strategy, X, X_labeled, y, seed=seed), n_queries)


# DAL


@functools.cache
def choose_by_hand(name, n, n_batches):
    """Refit from nothing for each sub-batch, by another solver, to convergence."""
    X_labeled, _, X = load(name)
    labeled, pool, picks = list(X_labeled), dict(enumerate(X)), []
    sizes = [len(part) for part in np.array_split(range(n), n_batches)]
    for size in sorted(sizes):
        model = LogisticRegression(
            class_weight="balanced", solver="newton-cholesky", tol=1e-10
        )
        rows = [*labeled, *pool.values()]
        model.fit(rows, ["l"] * len(labeled) + ["u"] * len(pool))
        proba = model.predict_proba(list(pool.values()))[:, 1]
        sure = dict(zip(pool, proba, strict=True))
        for i in sorted(pool, key=lambda i: -sure[i])[:size]:
            picks.append(i)
            labeled.append(pool.pop(i))
    return picks


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize(("n", "n_batches"), [(12, 1), (12, 4), (6, 6)])
@pytest.mark.parametrize("few", [0, 128])
def test_dal_by_the_oracle_of_refits_by_hand(name, n, n_batches, few, monkeypatch):
    monkeypatch.setattr("skactive.strategies._contrastive.FEW_FEATURES", few)
    X_labeled, _, X = load(name)
    picks = select(DAL(n_batches=n_batches, ratio=None), X, X_labeled, n)
    assert picks.tolist() == choose_by_hand(name, n, n_batches)


def test_dal_asks_first_for_a_cluster_without_labels():
    rng = np.random.default_rng(0)
    known, unknown = rng.normal(0, 1, (80, 1)), rng.normal(9, 1, (20, 1))
    X = np.concatenate([known, unknown])
    X_labeled = rng.normal(0, 1, (20, 1))
    assert (select(DAL(n_batches=1), X, X_labeled, 20) >= 80).all()
    assert (select(DAL(), X, X_labeled, 10)[:3] >= 80).all()


def test_dal_spreads_sub_batches_over_clusters():
    rng = np.random.default_rng(0)
    clusters = [rng.normal(center, 1, (40, 1)) for center in (-30, 0, 20)]
    X_labeled = rng.normal(0, 1, (20, 1))
    kernel = SVC(gamma=0.05, class_weight="balanced")
    X = np.concatenate(clusters)
    picks = select(DAL(kernel, n_batches=8), X, X_labeled, 8) // 40
    assert_array_equal(np.bincount(picks, minlength=3), [4, 0, 4])


class Recorder(ClassifierMixin, BaseEstimator):
    """Finds the highest first feature surest, and notes its training."""

    fits = []

    def __init__(self, sign=1):
        self.sign = sign

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.fits.append((X[:, 0].tolist(), list(y)))
        return self

    def decision_function(self, X):
        return self.sign * X[:, 0]


def test_dal_trains_on_a_sample_and_chooses_from_the_whole_pool():
    X = np.random.default_rng(0).permutation(np.arange(100.0))[:, None]
    X_labeled = np.array([[-1.0], [-2.0], [-3.0]])
    Recorder.fits.clear()
    picks = select(DAL(Recorder(), n_batches=5, ratio=4), X, X_labeled, 10)
    assert X[picks, 0].tolist() == list(range(99, 89, -1))
    assert len(Recorder.fits) == 5
    samples = []
    for i, (rows, targets) in enumerate(Recorder.fits):
        m = 3 + 2 * i
        assert rows[:m] == [-1, -2, -3, *range(99, 99 - 2 * i, -1)]
        assert targets == [0] * m + [1] * (len(rows) - m)
        samples.append(set(rows[m:]))
    assert len(samples[0]) == 12
    for i, later in enumerate(samples):
        assert later == samples[0] - set(range(99, 99 - 2 * i, -1))


def test_dal_goes_on_when_the_sample_is_taken():
    X = np.arange(20.0)[:, None]
    Recorder.fits.clear()
    picks = select(DAL(Recorder(), n_batches=20, ratio=1), X, -X[:2] - 1, 20)
    assert picks.tolist() == list(range(19, -1, -1))
    for rows, targets in Recorder.fits:
        assert set(targets) == {0, 1}
        assert len(set(rows)) == len(rows)


def test_dal_needs_no_more_sub_batches_than_picks():
    Recorder.fits.clear()
    X = np.arange(20.0)[:, None]
    select(DAL(Recorder(), n_batches=50), X, -X[:4] - 1, 3)
    assert len(Recorder.fits) == 3


def test_dal_ranks_where_probabilities_are_all_one():
    X = np.array([[900.0], [1000.0], [800.0], [5.0]])
    X_labeled = np.array([[0.0], [-1.0], [1.0]])
    model = LogisticRegression(C=1e6, max_iter=10_000)
    fitted = clone(model).fit(np.concatenate([X_labeled, X]), [0] * 3 + [1] * 4)
    assert (fitted.predict_proba(X[:3])[:, 1] == 1).all()
    for seed in range(5):
        picks = select(DAL(model, n_batches=1), X, X_labeled, 3, seed=seed)
        assert picks.tolist() == [1, 0, 2]


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        Perceptron(class_weight="balanced"),
        RandomForestClassifier(10, min_samples_leaf=5, class_weight="balanced"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_dal_takes_any_classifier(model):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (40, 2)), rng.normal(9, 1, (10, 2))])
    X_labeled = rng.normal(0, 1, (20, 2))
    for seed in range(2):
        picks = select(DAL(model), X, X_labeled, 6, seed=seed)
        assert picks[0] >= 40
        assert_array_equal(select(DAL(model), X, X_labeled, 6, seed=seed), picks)
    assert not hasattr(model, "classes_")


@pytest.mark.long
def test_dal_on_sparse_features_asks_the_same():
    X_labeled, _, X = load("digits")
    X, X_labeled = np.maximum(X, 0), np.maximum(X_labeled, 0)
    dense = select(DAL(), X, X_labeled, 10)
    assert_array_equal(
        select(DAL(), sparse.csr_array(X), sparse.csr_array(X_labeled), 10), dense
    )


@pytest.mark.long
def test_dal_in_chunks_and_threads_asks_the_same(monkeypatch):
    X_labeled, _, X = load("digits")
    expected = select(DAL(), X, X_labeled, 10)
    monkeypatch.setattr("skactive.strategies._contrastive.chunk_size", lambda _: 7)
    assert_array_equal(select(DAL(), X, X_labeled, 10), expected)
    with parallel_config(n_jobs=2):
        assert_array_equal(select(DAL(), X, X_labeled, 10), expected)


# CAL


def contrast_by_loops(X, proba, X_labeled, p_labeled, k):
    scores = []
    for x, p in zip(X, proba, strict=True):
        far = sorted(
            (math.dist(x, near), j) for j, near in enumerate(X_labeled.tolist())
        )
        total = 0.0
        for _, j in far[:k]:
            for q, r in zip(p_labeled[j], p, strict=True):
                if q > 0:
                    total += q * math.log(q / r) if r > 0 else math.inf
        scores.append(total / min(k, len(far)))
    return scores


@pytest.mark.long
@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("k", [1, 10, 29, 500])
def test_cal_by_the_oracle_of_a_double_loop(name, k):
    X_labeled, y, X = load(name)
    view = make_view(CAL(), X, X_labeled, y)
    model = LogisticRegression(max_iter=500).fit(X_labeled, y)
    expected = contrast_by_loops(
        X, model.predict_proba(X), X_labeled, model.predict_proba(X_labeled), k
    )
    assert_allclose(CAL(k).score(view), expected, rtol=1e-8, atol=1e-12)


def draw_rows(rng, n, k):
    """Probabilities with zeros and ones, and coordinates on a grid, as one table."""
    proba = rng.dirichlet(np.full(k, 0.3), n)
    proba[rng.random((n, k)) < 0.2] = 0
    proba[:, 0] += 1 - proba.sum(axis=1)
    return np.column_stack([proba, rng.integers(3, size=(n, 2))])


@pytest.mark.long
@settings(deadline=None)
@given(seed=st.integers(0, 1000), k=st.sampled_from([2, 3, 7]), near=st.integers(1, 6))
def test_cal_with_zeros_ones_and_ties_as_a_double_loop(seed, k, near):
    rng = np.random.default_rng(seed)
    X, X_labeled = draw_rows(rng, 15, k), draw_rows(rng, k + 3, k)
    y = np.arange(k + 3) % k
    scores = CAL(near).score(make_view(CAL(), X, X_labeled, y, GivenProba()))
    # GivenProba's features are all of its columns.
    expected = contrast_by_loops(X, X[:, :k], X_labeled, X_labeled[:, :k], near)
    assert_allclose(scores, expected, rtol=1e-9, atol=1e-13)


def test_cal_asks_for_an_infinite_divergence_first():
    X_labeled = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 1.0]])
    X = np.array([[0.9, 0.1, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    view = make_view(CAL(), X, X_labeled, [0, 1], GivenProba())
    assert_allclose(CAL().score(view), [math.log(0.5 / 0.3), math.inf, 0])
    assert CAL().select(view, 3).tolist() == [1, 0, 2]


def test_cal_of_a_tree_gives_numbers():
    X_labeled, y, X = load("digits")
    view = make_view(CAL(), X, X_labeled, y, DecisionTreeClassifier(random_state=0))
    scores = CAL().score(view)
    assert np.isinf(scores).any()
    assert not np.isnan(scores).any()


def test_cal_looks_at_labeled_neighbors_only():
    # Every candidate lies among candidates that are predicted alike; what differs is
    # how the labeled one beside them is predicted.
    X_labeled = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 50.0]])
    left = np.array([[0.1, 0.9, 1.0]] * 5)
    right = np.array([[0.1, 0.9, 49.0]] * 5)
    X = np.concatenate([left, right])
    scores = CAL(1).score(make_view(CAL(), X, X_labeled, [0, 1], GivenProba()))
    assert_allclose(scores[:5], 0.8 * math.log(9))
    assert_allclose(scores[5:], 0, atol=1e-12)


@pytest.mark.parametrize("container", [sparse.csr_array, np.float32])
def test_cal_on_sparse_and_float32_features(container):
    X_labeled, y, X = load("digits")
    expected = CAL().score(make_view(CAL(), X, X_labeled, y))
    found = CAL().score(make_view(CAL(), container(X), container(X_labeled), y))
    assert_allclose(found, expected, rtol=1e-2, atol=1e-4)


def test_cal_with_one_labeled_row():
    X_labeled, y, X = load("iris")
    model = LogisticRegression(max_iter=500).fit(X_labeled, y)
    view = PoolView(
        X,
        estimator=model,
        X_labeled=X_labeled[:1],
        y_labeled=y[:1],
        requires=CAL.requires,
    )
    expected = contrast_by_loops(
        X, model.predict_proba(X), X_labeled[:1], model.predict_proba(X_labeled[:1]), 1
    )
    assert_allclose(CAL().score(view), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", [CAL(1), DAL(GaussianNB(), n_batches=2, ratio=None)]
)
def test_other_parameters_pass_the_kit(strategy):
    check_strategy(strategy)
