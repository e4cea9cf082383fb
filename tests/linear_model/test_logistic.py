"""SequentialLogisticRegression beside scikit-learn's own, brought to its exact end."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skactive.linear_model import SequentialLogisticRegression
from skactive.linear_model._logistic import PenalizedLogLoss

from ._helpers import error, exact, make


@pytest.mark.long
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_coefficients_are_the_exact_ones_within_tol(k, fit_intercept, C):
    X, y = make(k)
    oracle = exact(X, y, C=C, fit_intercept=fit_intercept)
    for tol in (1e-2, 1e-6):
        model = SequentialLogisticRegression(C, fit_intercept=fit_intercept, tol=tol)
        model.fit(X, y)
        assert error(model, oracle) <= 1.1 * tol
        loss = PenalizedLogLoss(X, y, k, np.ones(len(y)), C, fit_intercept)
        found = np.column_stack([model.coef_, model.intercept_])[:, : loss.shape[1]]
        slope = np.linalg.norm(loss.gradient(found.ravel()))
        assert C * slope <= tol * np.linalg.norm(model.coef_)
    np.testing.assert_allclose(model.intercept_, oracle.intercept_, atol=1e-4)
    np.testing.assert_allclose(
        model.predict_proba(X), oracle.predict_proba(X), atol=1e-5
    )
    assert model.coef_.shape == oracle.coef_.shape
    assert model.intercept_.shape == oracle.intercept_.shape


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
def test_weights_of_rows_and_classes(k, class_weight):
    X, y = make(k)
    weight = np.random.default_rng(0).integers(0, 4, size=len(y)).astype(float)
    model = SequentialLogisticRegression(class_weight=class_weight, tol=1e-6)
    model.fit(X, y, sample_weight=weight)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    oracle = exact(X[repeated], y[repeated], class_weight=class_weight)
    assert error(model, oracle) <= 1e-5


@pytest.mark.long
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_and_both_precisions(k, dtype):
    X, y = make(k, dtype=dtype)
    X[np.abs(X) < 0.5] = 0
    oracle = exact(X, y)
    for rows in (X, sparse.csr_matrix(X), sparse.csc_array(X)):
        for warm in (False, True):
            model = SequentialLogisticRegression(warm_start=warm, tol=1e-4)
            for n in (100, 110, 120):
                model.fit(rows[:n] if rows is X else rows.tocsr()[:n], y[:n])
            assert error(model, oracle) <= 1e-4
            assert model.coef_.dtype == model.intercept_.dtype == dtype
            assert model.predict_proba(rows).dtype == dtype


@pytest.mark.parametrize("k", [2, 3])
def test_logits_probabilities_and_their_logarithms(k):
    X, y = make(k)
    model = SequentialLogisticRegression().fit(X, y)
    logits = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(
        model.decision_function(X), logits[:, 0] if k == 2 else logits
    )
    twin = exact(X, y)
    twin.coef_, twin.intercept_ = model.coef_, model.intercept_
    np.testing.assert_allclose(model.predict_proba(X), twin.predict_proba(X))
    np.testing.assert_allclose(model.predict_log_proba(X), twin.predict_log_proba(X))
    np.testing.assert_array_equal(model.predict(X), twin.predict(X))
    # Far out, where a probability is 0 in floating point.
    far = model.predict_log_proba(1e4 * X)
    assert np.isfinite(far).all()
    np.testing.assert_array_equal(far.argmax(axis=1), model.predict(1e4 * X))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("limit", [0, 1024])
def test_labels_one_by_one_end_at_the_exact_coefficients(k, dtype, limit, monkeypatch):
    monkeypatch.setattr("skactive.linear_model._logistic._LIMIT", limit)
    X, y = make(k, n=160, d=20, dtype=dtype)
    y = np.array(["a", "b", "c", "d"])[y]
    model = SequentialLogisticRegression(warm_start=True, tol=1e-4)
    steps = []
    for n in range(40, 161):
        model.fit(X[:n], y[:n])
        steps.append(model.n_iter_[0])
    assert error(model, exact(X, y)) <= 1e-4
    # Near the last minimum: a handful of steps, and the inverse Hessian is kept. That
    # which the classes share needs more.
    assert np.median(steps[1:]) <= (8 if limit else 20)
    assert model._inverse is not None


def test_a_warm_start_where_it_stopped_takes_no_step():
    X, y = make(2)
    model = SequentialLogisticRegression(warm_start=True).fit(X, y)
    coef = model.coef_.copy()
    model.fit(X, y)
    assert model.n_iter_[0] == 0
    np.testing.assert_array_equal(model.coef_, coef)


@pytest.mark.parametrize("limit", [0, 2048])
def test_a_start_that_is_far_off_is_no_harm(limit, monkeypatch):
    monkeypatch.setattr("skactive.linear_model._logistic._LIMIT", limit)
    X, y = make(2)
    model = SequentialLogisticRegression(warm_start=True, tol=1e-6).fit(X, y)
    model.fit(X, y)
    # Other labels, another scale, another sign: nothing of the last model holds.
    for other, labels in ((X, 1 - y), (1e3 * X, y), (-1e-2 * X, y), (X[::3], y[::3])):
        model.fit(other, labels)
        assert error(model, exact(other, labels)) <= 1e-5


def test_other_classes_or_features_start_anew():
    X, y = make(3)
    model = SequentialLogisticRegression(warm_start=True, tol=1e-6)
    for rows, labels in (
        (X[:, :5], y),
        (X, y),
        (X, np.minimum(y, 1)),
        (X, 6 - np.minimum(y, 1)),
    ):
        model.fit(rows, labels)
        fresh = clone(model).fit(rows, labels)
        np.testing.assert_array_equal(model.coef_, fresh.coef_)
        np.testing.assert_array_equal(model.classes_, np.unique(labels))


def test_without_warm_start_the_past_is_no_matter():
    X, y = make(2)
    model = SequentialLogisticRegression().fit(X[:50], y[:50]).fit(X, y)
    np.testing.assert_array_equal(
        model.coef_, SequentialLogisticRegression().fit(X, y).coef_
    )


def test_continue_from_takes_the_solution_over_and_leaves_the_model():
    X, y = make(2)
    last = SequentialLogisticRegression(warm_start=True).fit(X[:100], y[:100])
    last.fit(X[:101], y[:101])
    before = pickle.dumps(last), last._inverse.copy()
    following = clone(last).continue_from(last).fit(X, y)
    assert following.n_iter_[0] < clone(last).fit(X, y).n_iter_[0]
    assert pickle.dumps(last) == before[0]
    np.testing.assert_array_equal(last._inverse, before[1])
    cold = SequentialLogisticRegression().continue_from(last)
    assert not hasattr(cold, "coef_")
    other = SequentialLogisticRegression(warm_start=True)
    assert not hasattr(other.continue_from(exact(X, y)), "coef_")


def test_a_pickle_leaves_the_inverse_hessian_out():
    X, y = make(2, d=20)
    model = SequentialLogisticRegression(warm_start=True).fit(X[:100], y[:100])
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert not hasattr(again, "_inverse")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert error(again.fit(X[:110], y[:110]), exact(X[:110], y[:110])) <= 1e-3


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_found_in_the_scores(bad):
    X, y = make(2)
    model = SequentialLogisticRegression().fit(X, y)
    model.coef_[0, 3] = 0  # even so
    X[7, 3] = bad
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        model.predict_proba(X)
    # Finite values whose score overflows are no error.
    large = np.full((1, X.shape[1]), 1e308)
    with np.errstate(over="ignore", invalid="ignore"):
        model.decision_function(large)


def test_one_class_is_refused():
    X, y = make(2)
    with pytest.raises(ValueError, match=r"at least two classes, got one class, "):
        SequentialLogisticRegression().fit(X, np.zeros(len(y)))


def test_too_few_steps_are_said():
    X, y = make(2)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 steps, short of tol"):
        SequentialLogisticRegression(max_iter=2, tol=1e-8).fit(X, y)


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_equal_rows_of_balanced_classes_give_equal_probabilities(value):
    X = np.full((3, 4), value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SequentialLogisticRegression().fit(X, [0, 1, 2])
    assert_allclose(model.predict_proba(X), 1 / 3)
    assert model.n_iter_[0] < 10


def test_a_class_without_weight_is_balanced_with_the_others():
    X = np.random.default_rng(0).normal(size=(12, 4))
    y, weight = np.arange(12) % 3, np.ones(12)
    weight[y == 2] = 0
    model = SequentialLogisticRegression(class_weight="balanced")
    model.fit(X, y, sample_weight=weight)
    # Balanced, each of three classes weighs a third of 8: two thirds of its rows.
    expected = SequentialLogisticRegression(C=2 / 3).fit(X, y, sample_weight=weight)
    assert_allclose(model.coef_, expected.coef_, atol=1e-2)


def test_negative_weights_are_refused():
    with pytest.raises(ValueError, match="sample_weight"):
        SequentialLogisticRegression().fit([[0.0], [1.0]], [0, 1], [1.0, -1.0])
