"""PoolView: lazy, once, read-only, and only what was declared."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from skactive import ActiveLearner
from skactive.strategies import PointwiseStrategy
from skactive.view import PoolView, split_estimator

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 4))
y = np.arange(20) % 3


class Counting(TransformerMixin, BaseEstimator):
    """A front step that counts the rows it is given."""

    rows = 0

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        Counting.rows += len(X)
        return np.asarray(X) * 2


class Sampler(ClassifierMixin, BaseEstimator):
    """A classifier with posterior draws and gradient factors."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[np.zeros(len(X), dtype=int)]

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def sample_proba(self, X, n_draws, random_state):
        models = np.random.default_rng(random_state).random((n_draws, 3))
        proba = np.exp(models[None] * np.asarray(X)[:, None, :1])  # (n, t, k)
        return proba / proba.sum(axis=2, keepdims=True)

    def gradient_factors(self, X):
        return np.ones((len(X), 3)), np.asarray(X)


@pytest.fixture
def view():
    model = make_pipeline(Counting(), LogisticRegression()).fit(X, y)
    Counting.rows = 0
    return PoolView(X, estimator=model, X_labeled=X[:5], y_labeled=y[:5])


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


# What may be asked for


def test_asking_for_what_was_not_declared():
    model = LogisticRegression().fit(X, y)
    view = PoolView(X, estimator=model, requires=frozenset({"proba"}), name="mine")
    view.proba  # noqa: B018
    message = "'mine' asks its view for features .* Add 'features' to its `requires`"
    with pytest.raises(AttributeError, match=message):
        view.features  # noqa: B018
    with pytest.raises(AttributeError, match="Add 'features'"):
        view.take([1]).features  # noqa: B018


@pytest.mark.parametrize(
    ("requires", "model", "message"),
    [
        ("proba", LinearSVC(), "class probabilities; LinearSVC has no predict_proba"),
        ("draws", LogisticRegression(), "posterior draws; LogisticRegression has no"),
        ("gradients", LogisticRegression(), "has no gradient_factors. Use"),
        ("labeled", LogisticRegression(), "labelled items, and the learner has seen"),
        ("colour", LogisticRegression(), "'colour', which is unknown. Known are"),
    ],
)
def test_what_the_model_lacks(requires, model, message):
    with pytest.raises(TypeError, match=message):
        PoolView(X, estimator=model.fit(X, y), requires=frozenset({requires}))


def test_texts_without_a_vectorizer_are_no_features():
    model = LogisticRegression().fit(X, y)
    with pytest.raises(TypeError, match="X is no numeric table and LogisticRegression"):
        PoolView(["a", "b"], estimator=model, requires=frozenset({"features"}))


def test_texts_with_a_vectorizer_are_features():
    texts = ["one two", "two", "three one"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [0, 1, 0])
    features = PoolView(texts, estimator=model).features
    assert features.shape == (3, 3)
    assert features.format == "csr"


def test_a_plain_function_is_checked_when_it_asks():
    view = PoolView(X, estimator=LinearSVC().fit(X, y), name="f")
    assert view.class_scores.shape == (20, 3)
    with pytest.raises(TypeError, match="'f' needs class probabilities"):
        view.proba  # noqa: B018


def test_before_there_is_a_model():
    view = PoolView(X, unfitted=LogisticRegression(), name="cold")
    assert_array_equal(view.features, X)
    for ask in ("proba", "class_scores", "classes"):
        with pytest.raises(TypeError, match="no fitted model with two classes"):
            getattr(view, ask)


def test_n_jobs_is_joblibs():
    from joblib import parallel_config

    view = PoolView(X)
    assert view.n_jobs == 1
    with parallel_config(backend="loky", n_jobs=2):
        assert view.n_jobs == 2
