"""PoolView: quantities are lazy, computed once, and read-only."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from skactive import ActiveLearner
from skactive._utils._pipelines import split_estimator
from skactive.linear_model import quicken
from skactive.linear_model._logistic import LinearLogistic
from skactive.semi_supervised import SelfTraining
from skactive.strategies import PointwiseStrategy
from skactive.view import PoolView

from ._helpers import Counting, Sampler, X, y


def test_the_front_is_applied_once_whatever_is_asked(view):
    for _ in range(2):
        assert len(view.proba) == len(view.class_scores) == len(view.features) == 20
        assert len(view.take([1, 2]).proba) == 2
    assert Counting.rows == 20
    assert len(view.labeled_features) == len(view.labeled_features) == 5
    assert Counting.rows == 25


def test_nothing_is_computed_before_it_is_asked_for(view):
    len(view), view.X, view.classes, view.rng, view.n_jobs, view.y_labeled
    assert Counting.rows == 0


def test_a_query_transforms_the_candidates_only_and_once():
    class Greedy(PointwiseStrategy):
        requires = frozenset({"proba", "features", "class_scores"})

        def score(self, view):
            return view.proba[:, 0] + view.features[:, 0] + view.class_scores[:, 1]

    learner = ActiveLearner(make_pipeline(Counting(), LogisticRegression()), Greedy())
    learner.fit(X, y)
    Counting.rows = 0
    learner.query(X, 2, candidates=np.arange(7))
    assert Counting.rows == 7
    ActiveLearner(learner.estimator, "random").fit(X, y)
    Counting.rows = 0
    ActiveLearner(learner.estimator, "random", random_state=0).query(X, 2)
    assert Counting.rows == 0


def test_a_part_shares_what_the_whole_has_computed():
    whole = PoolView(X, estimator=LogisticRegression().fit(X, y))
    proba = whole.proba
    part = whole.take([5, 3, 9])
    assert_array_equal(part.proba, proba[[5, 3, 9]])
    assert_array_equal(part.take([2, 0]).proba, proba[[9, 5]])
    assert_array_equal(part.take([2, 0]).X, X[[9, 5]])
    assert len(part) == 3


def test_a_part_computes_only_itself(view):
    part = view.take([4, 2])
    assert part.proba.shape == (2, 3)
    assert Counting.rows == 2
    assert_allclose(part.proba, view.proba[[4, 2]])


def test_quantities_are_what_scikit_learn_gives(view):
    model = view.estimator
    assert_array_equal(view.proba, model.predict_proba(X))
    assert_array_equal(view.features, X * 2)
    assert_array_equal(view.labeled_features, X[:5] * 2)
    assert_array_equal(view.y_labeled, y[:5])
    assert_array_equal(view.classes, [0, 1, 2])


@pytest.mark.parametrize(
    "what", ["X", "proba", "class_scores", "features", "labeled_features", "y_labeled"]
)
def test_arrays_are_read_only(view, what):
    array = getattr(view, what)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0
    assert X.flags.writeable


def test_sparse_features_are_read_only_and_not_copied():
    X_sparse = sparse.csr_matrix(X)
    features = PoolView(X_sparse, estimator=LogisticRegression().fit(X, y)).features
    assert np.shares_memory(features.data, X_sparse.data)
    assert (features != X_sparse).nnz == 0
    with pytest.raises(ValueError, match="read-only"):
        features.data[0] = 0
    X_sparse.data[0] = 1


def test_a_pool_of_numbers_is_not_copied():
    features = PoolView(X, estimator=LogisticRegression().fit(X, y)).features
    assert np.shares_memory(features, X)


def test_an_estimator_may_draw_for_each_row_by_itself():
    class Apart(Sampler):
        draws_jointly = False

    view = PoolView(X, estimator=Apart().fit(X, y), rng=np.random.default_rng(0))
    with pytest.raises(TypeError, match="needs draws of one and the same model for"):
        view.draws(7)
    found = view.map_draws(lambda draws: draws.mean(axis=1), 7)
    together = PoolView(X, estimator=Sampler().fit(X, y), rng=np.random.default_rng(0))
    assert_allclose(found, together.draws(7).mean(axis=1))


def test_draws_come_from_the_same_models_for_every_row():
    view = PoolView(X, estimator=Sampler().fit(X, y))
    draws = view.draws(7)
    assert draws.shape == (20, 7, 3)
    assert_array_equal(view.draws(7), draws)
    assert_allclose(view.take([3, 1]).draws(7), draws[[3, 1]])
    fresh = PoolView(X, estimator=Sampler().fit(X, y), rng=np.random.default_rng(1))
    assert_allclose(fresh.take([3, 1]).draws(7), fresh.draws(7)[[3, 1]])


def test_gradients_are_the_estimators_own():
    view = PoolView(X, estimator=Sampler().fit(X, y))
    residuals, hidden = view.gradients
    assert residuals.shape == (20, 3)
    assert_array_equal(view.take([4]).gradients[1], hidden[[4]])


def test_a_final_transform_makes_the_features():
    model = LinearDiscriminantAnalysis().fit(X, y)
    features = PoolView(X, estimator=model).features
    assert_allclose(features, model.transform(X))


PARTS = [("one", LogisticRegression()), ("other", GaussianNB())]
NUMBERS = [("one", Ridge()), ("other", LinearRegression())]


@pytest.mark.parametrize(
    "ensemble",
    [
        VotingClassifier(PARTS, voting="hard"),
        VotingClassifier(PARTS, voting="soft"),
        StackingClassifier(PARTS, cv=2),
        VotingRegressor(NUMBERS),
        StackingRegressor(NUMBERS, cv=2),
        SelfTraining(VotingClassifier(PARTS, voting="soft"), cv=None),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'voting', '')}",
)
def test_the_predictions_of_members_are_no_features(ensemble):
    assert_array_equal(PoolView(X, estimator=ensemble.fit(X, y)).features, X)
    behind = make_pipeline(StandardScaler(), clone(ensemble)).fit(X, y)
    features = PoolView(X, estimator=behind).features
    assert_array_equal(features, behind[:-1].transform(X))


@pytest.mark.parametrize("model", [LinearSVC(), SVC()])
@pytest.mark.parametrize("k", [2, 3])
def test_decision_values_have_a_column_for_each_class(model, k):
    labels = np.arange(20) % k
    model.fit(X, labels)
    scores = PoolView(X, estimator=model).class_scores
    assert scores.shape == (20, k)
    assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))
    if k == 2:
        assert_allclose(scores[:, 1] - scores[:, 0], model.decision_function(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3, 40])
def test_the_quick_way_of_a_logistic_regression_predicts_the_same(k, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 30)).astype(dtype)
    model = LogisticRegression().fit(X[:300], np.arange(300) % k)
    quick = quicken(model, X)
    assert isinstance(quick, LinearLogistic)
    tol = 50 * np.finfo(dtype).eps
    for name in ("decision_function", "predict_proba"):
        found, expected = getattr(quick, name)(X), getattr(model, name)(X)
        assert found.dtype == expected.dtype == dtype
        assert_allclose(found, expected, rtol=tol, atol=tol)
    assert_array_equal(quick.predict(X), model.predict(X))


def test_what_the_quick_way_cannot_do_is_left_to_scikit_learn():
    X, y = np.arange(8.0)[:, None], np.array([0, 0, 0, 0, 1, 1, 1, 1])
    model = LogisticRegression().fit(X, y)
    assert quicken(model, X) is not model
    for other in (X.astype(np.float32), X.astype(int), np.hstack([X, X])):
        assert quicken(model, other) is model
    for final in (
        LogisticRegression(solver="liblinear").fit(X, y),
        type("Own", (LogisticRegression,), {})().fit(X, y),
        LogisticRegression().fit(X, y).sparsify(),
        SGDClassifier(loss="log_loss").fit(X, y),
        LogisticRegression(),
    ):
        assert quicken(final, X) is final


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("k", [2, 3])
def test_numbers_that_are_not_finite_are_refused_by_scikit_learn(k, wrong):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = LogisticRegression().fit(X, np.arange(60) % k)
    X[50, 1] = wrong
    for where in ("all", "part"):
        view = PoolView(X, estimator=model)
        view = view if where == "all" else view.take(np.arange(40, 60))
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            view.proba  # noqa: B018


def test_one_against_one_decisions_are_refused():
    model = SVC(decision_function_shape="ovo").fit(X, np.arange(20) % 4)
    with pytest.raises(TypeError, match="decision_function_shape='ovr'"):
        PoolView(X, estimator=model).class_scores  # noqa: B018


def test_split_estimator():
    scaler, model = StandardScaler(), LogisticRegression()
    assert split_estimator(model) == (None, model)
    front, final = split_estimator(make_pipeline(scaler, model))
    assert front[0] is scaler
    assert final is model
    nested = make_pipeline(Counting(), make_pipeline(scaler, model))
    front, final = split_estimator(nested)
    assert final is model
    assert len(front) == 2
    frozen = FrozenEstimator(make_pipeline(scaler, model))
    assert split_estimator(frozen)[1] is model
    search = GridSearchCV(make_pipeline(scaler, model), {}).fit(X, y)
    assert isinstance(split_estimator(search)[1], LogisticRegression)


def test_nested_pipelines_give_the_same_probabilities():
    nested = make_pipeline(StandardScaler(), make_pipeline(Counting(), SVC())).fit(X, y)
    scores = PoolView(X, estimator=nested).class_scores
    assert_allclose(scores, nested.decision_function(X))
