"""Strategies on indicator matrices, against oracles that share no code with them."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import entropy as shannon
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier

from skactive import ActiveLearner, get_strategy
from skactive.strategies import UHerding
from skactive.strategies._multi_label import (
    _interpolate,
    expected_change,
    expected_score,
    inconsistency,
    mean_ranks,
)
from skactive.view import PoolView

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = (X[:, :3] + rng.normal(scale=0.5, size=(60, 3)) > 0).astype(int)
MODELS = {
    "one-vs-rest": OneVsRestClassifier(LogisticRegression()),
    "multi-output": MultiOutputClassifier(LogisticRegression()),
    "chain": ClassifierChain(LogisticRegression()),
    "neighbors": KNeighborsClassifier(),
    "forest": RandomForestClassifier(10, random_state=0),
}


class Given(ClassifierMixin, BaseEstimator):
    """A model of three labels that reads their probabilities off the first columns."""

    multi_label_ = True
    classes_ = np.arange(3)

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.asarray(X)[:, :3]

    def predict(self, X):
        return (self.predict_proba(X) > 0.5).astype(int)


def make_view(proba, labeled=None):
    proba = np.asarray(proba, dtype=float)
    y = np.eye(3, dtype=int) if labeled is None else np.asarray(labeled)
    options = {"X_labeled": np.zeros((len(y), 3)), "y_labeled": y}
    rng = np.random.default_rng(0)
    return PoolView(proba, estimator=Given(), rng=rng, **options)


def h(p):
    return -sum(q * math.log(q) for q in (p, 1 - p) if q > 0)


PROBA = np.array([[0.5, 0.9, 0.1], [0.2, 0.2, 0.2], [1.0, 0.0, 0.6], [0.45, 1, 0]])


@pytest.mark.parametrize("aggregate", ["mean", "max"])
@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("entropy", h),
        ("least_confidence", lambda p: 1 - max(p, 1 - p)),
        ("variation_ratio", lambda p: 1 - max(p, 1 - p)),
        ("margin", lambda p: -abs(2 * p - 1)),
    ],
)
def test_uncertainty_is_the_mean_or_the_maximum_over_labels(name, measure, aggregate):
    expected = []
    for row in PROBA:
        values = [measure(p) for p in row]
        expected.append(max(values) if aggregate == "max" else sum(values) / 3)
    strategy = get_strategy(name, aggregate=aggregate)
    np.testing.assert_allclose(strategy.score(make_view(PROBA)), expected, atol=1e-15)


def test_the_margins_of_a_model_without_probabilities_are_decision_values():
    model = RidgeClassifier().fit(X[:30], Y[:30])
    view = PoolView(X[30:], estimator=model, X_labeled=X[:30], y_labeled=Y[:30])
    expected = np.abs(model.decision_function(X[30:]))
    np.testing.assert_allclose(view.label_margins, expected)
    np.testing.assert_allclose(
        get_strategy("margin").score(view), -expected.mean(axis=1)
    )


def test_lci_against_an_oracle_of_counts():
    view = make_view(PROBA, labeled=[[1, 1, 0], [0, 1, 1], [1, 0, 0]])
    mean = (2 + 2 + 1) / 3
    expected = [abs(sum(p > 0.5 for p in row) - mean) for row in view.predictions * 1.0]
    np.testing.assert_allclose(get_strategy("lci").score(view), expected)


def test_mean_ranks_against_counting():
    margins = rng.random((7, 3)).round(1)
    expected = np.zeros(7)
    for i in range(7):
        for label in range(3):
            column = margins[:, label]
            below, same = (column < column[i]).sum(), (column == column[i]).sum()
            rank = below + (same + 1) / 2
            expected[i] += (7 - rank) / (3 * 6)
    np.testing.assert_allclose(mean_ranks(margins), expected)
    np.testing.assert_array_equal(mean_ranks(margins[:1]), [1.0])


def test_inconsistency_against_the_entropies_of_the_joint_distribution():
    first, second = rng.random((9, 5)) > 0.5, rng.random((8, 5)) > 0.4
    first[0], second[0], second[1] = True, True, ~first[1]
    found = inconsistency(first, second)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            pairs = [(bool(p), bool(q)) for p, q in zip(a, b, strict=True)]
            joint = shannon([pairs.count(pair) for pair in set(pairs)], base=2)
            own = shannon([a.sum(), 5 - a.sum()], base=2)
            other = shannon([b.sum(), 5 - b.sum()], base=2)
            if all(p != q for p, q in pairs):
                expected = 1.0
            else:
                expected = (2 * joint - own - other) / joint if joint else 0.0
            assert found[i, j] == pytest.approx(expected, abs=1e-12)


def test_cvirs_against_an_oracle_of_its_two_parts():
    labeled = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    view = make_view(PROBA, labeled=labeled)
    ranks = mean_ranks(np.abs(2 * PROBA - 1))
    table = inconsistency(PROBA > 0.5, labeled > 0)
    expected = [rank * sum(row) / 3 for rank, row in zip(ranks, table, strict=True)]
    np.testing.assert_allclose(get_strategy("cvirs").score(view), expected)


@pytest.mark.long
@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 3.0), (1.0, 1.0), (2.0, 0.5)])
def test_the_expected_score_against_its_integrals(alpha, beta):
    for q in (0.05, 0.3, 0.8):
        one = quad(lambda c: c ** (alpha - 1) * (1 - c) ** beta, q, 1)[0]
        zero = quad(lambda c: c**alpha * (1 - c) ** (beta - 1), 0, q)[0]
        expected = -(q * one + (1 - q) * zero)
        assert expected_score(q, alpha, beta) == pytest.approx(expected, abs=1e-7)
        found = _interpolate(alpha, beta)(np.array([q, 0.0, 1.0]))
        assert found[0] == pytest.approx(expected, abs=1e-6)
        edges = expected_score(np.array([0.0, 1.0]), alpha, beta)
        np.testing.assert_allclose(found[1:], edges)


def test_the_score_of_alpha_1_and_beta_1_is_half_the_brier_score():
    q = np.linspace(0, 1, 11)
    np.testing.assert_allclose(expected_score(q, 1, 1), -q * (1 - q) / 2, atol=1e-15)


def test_besra_against_an_oracle_of_loops():
    draws, others = rng.random((4, 3, 2)), rng.random((5, 3, 2))
    draws[0, :, 0] = [0.0, 0.0, 1.0]  # an outcome that some draws exclude

    def score(q):
        return expected_score(q, 0.1, 3.0)

    found = expected_change(draws, others, score)
    for i in range(4):
        expected = 0.0
        for x in range(5):
            for label in range(2):
                before = sum(others[x, t, label] for t in range(3)) / 3
                for value in (0, 1):
                    p = [draws[i, t, label] for t in range(3)]
                    p = p if value else [1 - each for each in p]
                    mass = sum(p)
                    after = sum(p[t] / mass * others[x, t, label] for t in range(3))
                    expected += mass / 3 * (score(after) - score(before)) / 5
        assert found[i] == pytest.approx(expected, abs=1e-12)
        assert found[i] >= -1e-12


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    "name",
    [
        *("entropy", "margin", "density", "preclustering", "representative", "cal"),
        *("dropquery", "uherding", "whole_cluster", "anchoral", "lci", "cvirs"),
    ],
)
def test_any_multi_label_model_gets_a_batch(kind, name):
    learner = ActiveLearner(MODELS[kind], name, batch_size=4, random_state=0)
    picks = learner.fit(X[:20], Y[:20]).query(X[20:])
    assert len({*picks.tolist()}) == 4
    np.testing.assert_array_equal(learner.query(X[20:]), picks)


def test_uherding_is_coverage_with_several_labels():
    picks = [
        ActiveLearner(MODELS[kind], strategy, batch_size=9, random_state=0)
        .fit(X[:20], Y[:20])
        .query(X[20:])
        for kind in MODELS
        for strategy in (UHerding(), UHerding("entropy"), UHerding(None))
    ]
    for each in picks[1:]:
        np.testing.assert_array_equal(each, picks[0])


def test_marginals_of_every_kind_of_model_have_a_column_per_label():
    for model in MODELS.values():
        fitted = model.fit(X[:30], Y[:30])
        view = PoolView(X[30:], estimator=fitted, X_labeled=X[:30], y_labeled=Y[:30])
        assert view.target == "multi-label"
        assert view.proba.shape == (30, 3)
        agrees = (view.proba > 0.5) == view.predictions
        assert agrees.mean() > 0.9  # ties of votes aside
        np.testing.assert_array_equal(view.classes, [0, 1, 2])


def test_a_label_that_no_item_has_gets_the_probability_0():
    absent = np.column_stack([Y[:30, 0], np.zeros(30, dtype=int)])
    model = KNeighborsClassifier().fit(X[:30], absent)
    view = PoolView(X[30:], estimator=model, X_labeled=X[:30], y_labeled=absent)
    np.testing.assert_array_equal(view.proba[:, 1], 0.0)
    present = np.column_stack([Y[:30, 0], np.ones(30, dtype=int)])
    model = KNeighborsClassifier().fit(X[:30], present)
    view = PoolView(X[30:], estimator=model, X_labeled=X[:30], y_labeled=present)
    np.testing.assert_array_equal(view.proba[:, 1], 1.0)


def test_two_labels_are_not_two_classes():
    view = PoolView(
        X[30:],
        estimator=OneVsRestClassifier(LogisticRegression()).fit(X[:30], Y[:30, :2]),
        X_labeled=X[:30],
        y_labeled=Y[:30, :2],
    )
    with pytest.raises(TypeError, match="uses `margins`, which is defined for single"):
        view.margins  # noqa: B018
    assert view.label_margins.shape == (30, 2)


def test_features_alone_give_the_same_picks_for_every_target():
    for name in ("coreset", "embedding_kmeans", "typiclust", "random"):
        picks = []
        for model, y in (
            (LogisticRegression(), Y[:20, 0]),
            (OneVsRestClassifier(LogisticRegression()), Y[:20]),
        ):
            learner = ActiveLearner(model, name, batch_size=3, random_state=0)
            picks.append(learner.fit(X[:20], y).query(X[20:]).tolist())
        assert picks[0] == picks[1]


def test_equal_rows_use_the_cold_start():
    model = MultiOutputClassifier(LogisticRegression())
    learner = ActiveLearner(model, "margin", random_state=0)
    learner.fit(X[:3], np.tile([1, 0, 1], (3, 1)))
    assert len(learner.query(X[3:], 2)) == 2
    np.testing.assert_array_equal(learner.predict(X[3:5]), [[1, 0, 1], [1, 0, 1]])


@pytest.mark.parametrize("y", [[["a"], ["b"]], [["a", "b"], ["c"]]])
def test_lists_of_names_are_refused_with_the_remedy(y):
    with pytest.raises(TypeError, match="MultiLabelBinarizer"):
        ActiveLearner(OneVsRestClassifier(LogisticRegression())).fit(X[:2], y)


def test_several_classes_per_item_are_not_taken_for_labels():
    learner = ActiveLearner(RandomForestClassifier(5), "margin").fit(X[:9], Y[:9] * 2)
    with pytest.raises(TypeError, match="predicts several numbers or classes per item"):
        learner.query(X[9:])
    assert len(learner.set_params(strategy="coreset").query(X[9:], 2)) == 2


def test_a_model_that_needs_both_values_of_each_label_says_which_lack_one():
    y = Y[:20].copy()
    y[:, 2] = 0
    learner = ActiveLearner(MultiOutputClassifier(LogisticRegression()))
    with pytest.raises(ValueError, match="at least 2 classes") as caught:
        learner.fit(X[:20], y)
    note = caught.value.__notes__[0]
    assert "labels of the columns 2 of 'y'" in note
    assert "OneVsRestClassifier" in note
