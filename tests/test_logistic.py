"""SequentialLogisticRegression beside scikit-learn's own, brought to its exact end."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from skactive import ActiveLearner, get_strategy, simulate
from skactive._pipelines import carries_over
from skactive._threads import one_blas_thread
from skactive.logistic import SequentialLogisticRegression
from skactive.logloss import PenalisedLogLoss
from skactive.quasi_newton import bfgs


def make(k, n=120, d=12, dtype=np.float64):
    X, y = make_classification(
        n,
        d,
        n_informative=6,
        n_redundant=0,
        n_classes=k,
        flip_y=0.2,
        class_sep=0.7,
        random_state=0,
    )
    return X.astype(dtype), y


def exact(X, y, **params):
    weight = params.pop("sample_weight", None)
    model = LogisticRegression(tol=1e-10, max_iter=100_000, **params)
    return model.fit(np.asarray(X, dtype=np.float64), y, sample_weight=weight)


def error(model, other):
    return np.linalg.norm(model.coef_ - other.coef_) / np.linalg.norm(other.coef_)


@parametrize_with_checks(
    [SequentialLogisticRegression(), SequentialLogisticRegression(warm_start=True)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_whole_suite_runs():
    records = check_estimator(SequentialLogisticRegression(), on_skip=None)
    assert len(records) == 65
    assert sum(record["status"] == "passed" for record in records) >= 64


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
        loss = PenalisedLogLoss(X, y, k, np.ones(len(y)), C, fit_intercept)
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


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_one_by_one_end_at_the_exact_coefficients(k, dtype):
    X, y = make(k, n=160, d=20, dtype=dtype)
    y = np.array(["a", "b", "c", "d"])[y]
    model = SequentialLogisticRegression(warm_start=True, tol=1e-4)
    steps = []
    for n in range(40, 161):
        model.fit(X[:n], y[:n])
        steps.append(model.n_iter_[0])
    assert error(model, exact(X, y)) <= 1e-4
    # Near the last minimum: a handful of steps, and the inverse Hessian is kept.
    assert np.median(steps[1:]) <= 8
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
    monkeypatch.setattr("skactive.logistic._LIMIT", limit)
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
    with pytest.raises(ValueError, match=r"at least two classes .* got one class, "):
        SequentialLogisticRegression().fit(X, np.zeros(len(y)))


def test_too_few_steps_are_said():
    X, y = make(2)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 steps, short of tol"):
        SequentialLogisticRegression(max_iter=2, tol=1e-8).fit(X, y)


# In the loop


def test_a_learner_carries_the_solution_from_model_to_model():
    X, y = make(2)
    learner = ActiveLearner(SequentialLogisticRegression(warm_start=True))
    learner.fit(X[:60], y[:60]).teach(X[60:61], y[60:61])
    last = learner.estimator_
    inverse = last._inverse.copy()
    learner.teach(X[61:62], y[61:62])
    assert learner.estimator_ is not last
    np.testing.assert_array_equal(last._inverse, inverse)
    assert learner.estimator_.n_iter_[0] < 12
    assert error(learner.estimator_, exact(X[:62], y[:62])) <= 1e-3
    assert not hasattr(learner.estimator, "coef_")
    # `fit` forgets: what follows is what a new learner does.
    learner.fit(X[:70], y[:70])
    fresh = clone(learner).fit(X[:70], y[:70])
    np.testing.assert_array_equal(learner.estimator_.coef_, fresh.estimator_.coef_)


def test_a_learner_carries_the_last_step_of_a_pipeline_over():
    X, y = make(2)
    pipeline = make_pipeline(
        StandardScaler(), SequentialLogisticRegression(warm_start=True)
    )
    learner = ActiveLearner(pipeline).fit(X[:60], y[:60])
    learner.teach(X[60:62], y[60:62]).refit()
    assert learner.estimator_[-1].n_iter_[0] == 0
    scaled = learner.estimator_[0].transform(X[:62])
    assert error(learner.estimator_[-1], exact(scaled, y[:62])) <= 1e-3


def test_a_learner_gives_scikit_learns_own_models_a_fresh_start():
    X, y = make(2)
    learner = ActiveLearner(LogisticRegression(warm_start=True))
    learner.fit(X[:60], y[:60]).teach(X[60:], y[60:])
    fresh = LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(learner.estimator_.coef_, fresh.coef_)


def test_what_carries_a_solution_over():
    on, off = (SequentialLogisticRegression(warm_start=w) for w in (True, False))
    assert carries_over(on)
    assert carries_over(make_pipeline(StandardScaler(), on))
    assert not carries_over(off)
    assert not carries_over(make_pipeline(on, off))
    assert not carries_over(LogisticRegression(warm_start=True))


def test_training_that_fails_leaves_the_last_model():
    X, y = make(2)
    learner = ActiveLearner(SequentialLogisticRegression(warm_start=True))
    learner.fit(X[:60], y[:60]).teach(X[60:61], y[60:61])
    before = learner.predict_proba(X)
    X_bad = X[61:62].copy()
    X_bad[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        learner.teach(X_bad, y[61:62])
    np.testing.assert_array_equal(learner.predict_proba(X), before)
    assert len(learner.y_labeled_) == 61


@pytest.mark.parametrize("stop_after", [1, 7])
def test_a_simulation_that_goes_on_is_that_of_one_go(tmp_path, stop_after):
    X, y = make(2, n=200)
    model = SequentialLogisticRegression(warm_start=True, tol=1e-2)
    learner = ActiveLearner(model, batch_size=1, random_state=0)
    given = {"n_initial": 10, "n_rounds": 30, "X_test": X, "y_test": y}
    whole = simulate(learner, X, y, **given)

    calls = iter(range(stop_after + 2))

    def scoring(estimator, X, y):
        next(calls)
        return estimator.score(X, y)

    scoring.__qualname__ = "scoring"
    given["scoring"] = scoring
    with pytest.raises(Exception):  # noqa: B017, PT011
        simulate(learner, X, y, checkpoint=tmp_path, **given)
    calls = iter(range(100))
    resumed = simulate(learner, X, y, checkpoint=tmp_path, **given)
    np.testing.assert_array_equal(resumed.asked, whole.asked)
    np.testing.assert_array_equal(resumed.scores, whole.scores)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", ["bald", "badge", "egl", "dfal", "entropy", "coreset"])
def test_strategies_that_look_into_a_logistic_model(name, k):
    X, y = make(k)
    strategy = get_strategy(name)
    picks = [
        ActiveLearner(model, strategy, random_state=0)
        .fit(X[:60], y[:60])
        .query(X[60:], 5)
        for model in (
            SequentialLogisticRegression(tol=1e-10),
            LogisticRegression(tol=1e-10, max_iter=10_000),
        )
    ]
    np.testing.assert_array_equal(*picks)


# What it is made of


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_gradient_is_that_of_the_value(k, intercept):
    X, y = make(k, n=30, d=6)
    rng = np.random.default_rng(0)
    loss = PenalisedLogLoss(X, y, k, rng.random(30), 0.7, intercept)
    x = rng.normal(size=np.prod(loss.shape))
    assert check_grad(lambda x: loss(x)[0], loss.gradient, x) < 1e-5
    np.testing.assert_array_equal(loss(x)[1], loss.gradient(x))
    # Columns of the Hessian as differences of gradients.
    step = 1e-6
    columns = [
        (loss.gradient(x + step * e) - loss.gradient(x - step * e)) / (2 * step)
        for e in np.eye(len(x))
    ]
    product = loss.inverse_hessian(x) @ np.array(columns)
    if k == 2 or not intercept:
        np.testing.assert_allclose(product, np.eye(len(x)), atol=1e-6)
    else:  # but for adding one number to all intercepts
        null = np.zeros(loss.shape)
        null[:, -1] = k**-0.5
        null = null.ravel()
        expected = np.eye(len(x)) - np.outer(null, null)
        np.testing.assert_allclose(product, expected, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_update_is_the_formula_of_the_books(dtype):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    hessian = (root @ root.T + np.eye(6)).astype(dtype)
    inverse = np.asfortranarray(np.diag(0.5 / np.diag(hessian)))
    target = rng.normal(size=6).astype(dtype)
    points, gradients = [], []

    def gradient(x):
        points.append(x)
        gradients.append(hessian @ x - target)
        return gradients[-1]

    _, updated, n_iter = bfgs(
        gradient, np.zeros(6, dtype), inverse, lambda x, g: len(points) > 3
    )
    assert n_iter == 3
    expected = np.array(inverse, dtype=np.float64)
    for i in range(3):
        s, v = points[i + 1] - points[i], gradients[i + 1] - gradients[i]
        rho = 1 / (v @ s)
        left = np.eye(6) - rho * np.outer(s, v)
        expected = left @ expected @ left.T + rho * np.outer(s, s)
    tol = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(
        np.triu(updated), np.triu(expected), atol=tol * np.abs(expected).max()
    )


def test_bfgs_leaves_its_arguments_and_gives_up_where_it_is_of_no_use():
    inverse = np.eye(2, order="F")
    before = inverse.copy()
    start = np.array([5.0, 5.0])

    def solve(gradient):
        return bfgs(gradient, start, inverse, lambda x, g: np.abs(g).max() < 1e-9)

    # Curvature ten times what the matrix says: the first step leads away.
    x, updated, _ = solve(lambda x: 10 * x)
    assert updated is None
    np.testing.assert_array_equal(x, start)
    assert solve(lambda x: np.full(2, np.nan))[1] is None
    x, updated, _ = solve(lambda x: 1.5 * x)
    np.testing.assert_allclose(x, 0, atol=1e-9)
    np.testing.assert_array_equal(inverse, before)
    assert updated is not inverse


# Threads


def blas_threads():
    info = threadpool_info()
    return {lib["num_threads"] for lib in info if lib["user_api"] == "blas"}


def test_the_limit_of_threads_ends_with_the_last_inside():
    with threadpool_limits(limits=2, user_api="blas"):
        outer, inner = one_blas_thread(), one_blas_thread()
        outer.__enter__()
        inner.__enter__()
        assert blas_threads() == {1}
        outer.__exit__(None, None, None)  # not in the order of entry
        assert blas_threads() == {1}
        inner.__exit__(None, None, None)
        assert blas_threads() == {2}
        with pytest.raises(KeyError), one_blas_thread():
            raise KeyError
        assert blas_threads() == {2}
        with one_blas_thread(False):
            assert blas_threads() == {2}


@pytest.mark.parametrize(("n", "expected"), [(50, {1}), (3000, {2})])
def test_a_learner_limits_threads_while_it_trains_on_few_labels(n, expected):
    seen = []

    class Spy(LogisticRegression):
        def fit(self, X, y):
            seen.append(blas_threads())
            return super().fit(X, y)

    X, y = make(2, n=3000)
    with threadpool_limits(limits=2, user_api="blas"):
        ActiveLearner(Spy()).fit(X[:n], y[:n])
        assert blas_threads() == {2}
    assert seen == [expected]
