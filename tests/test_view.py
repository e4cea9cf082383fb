"""PoolView: lazy, once, read-only, and only what was declared."""

import numpy as np
import pytest
from joblib import parallel_config
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
from skactive._pipelines import split_estimator
from skactive.strategies import PointwiseStrategy
from skactive.view import PoolView

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
        ("draws", LinearSVC(), "posterior draws; .*LinearSVC.* has no sample_proba"),
        ("gradients", LinearDiscriminantAnalysis(), "gradient_factors"),
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


# Other items, draws in chunks, what is optional


def test_the_labelled_items_are_a_view_under_the_same_model(view):
    assert_allclose(view.labeled.proba, view.proba[:5])
    assert_array_equal(view.labeled.features, view.features[:5])
    assert view.take([3, 4]).labeled is view.labeled
    assert view.n_labeled == view.take([0]).n_labeled == 5


def test_other_items_are_viewed_under_the_same_model(view):
    other = view.on(X[7:9])
    assert len(other) == 2
    assert_allclose(other.proba, view.proba[7:9])
    assert_array_equal(view.take([1, 2]).on(X[7:9]).features, view.features[7:9])
    assert_array_equal(other.y_labeled, view.y_labeled)


def test_other_items_have_the_same_draws():
    view = PoolView(X, estimator=Sampler().fit(X, y))
    other = view.on(X[7:9])
    assert_array_equal(other.draws(5), view.draws(5)[7:9])


def test_other_items_may_be_asked_only_what_was_declared(view):
    narrow = PoolView(
        X,
        estimator=view.estimator,
        X_labeled=X[:5],
        y_labeled=y[:5],
        requires=frozenset({"labeled"}),
    )
    with pytest.raises(AttributeError, match="'proba' to its `requires`"):
        narrow.labeled.proba  # noqa: B018


def test_draws_are_reduced_in_chunks(monkeypatch):
    view = PoolView(X, estimator=Sampler().fit(X, y))
    expected = view.draws(6).std(axis=1)
    seen = []

    def reduce(draws):
        seen.append(draws.shape)
        return draws.std(axis=1)

    assert_array_equal(view.map_draws(reduce, 6), expected)
    monkeypatch.setattr("skactive.view.chunk_size", lambda row_bytes: 8)
    fresh = PoolView(X, estimator=Sampler().fit(X, y))
    monkeypatch.setitem(fresh.__dict__, "_seeds", view._seeds)
    seen.clear()
    assert_array_equal(fresh.map_draws(reduce, 6), expected)
    assert [shape[0] for shape in seen] == [8, 8, 4]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_draws_of_a_linear_model_are_the_same_for_every_chunk(monkeypatch, n_jobs):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)

    def reduced(size):
        monkeypatch.setattr("skactive.view.chunk_size", lambda row_bytes: size)
        view = PoolView(
            X,
            estimator=model,
            X_labeled=X,
            y_labeled=y,
            rng=np.random.default_rng(1),
        )
        with parallel_config("threading", n_jobs=n_jobs):
            return view.map_draws(lambda draws: draws.var(axis=1), 9)

    assert_allclose(reduced(3), reduced(100), rtol=1e-10)


def test_what_is_optional_may_be_read_where_it_is_there():
    optional = {"requires": frozenset({"features"}), "optional": frozenset({"labeled"})}
    view = PoolView(X, X_labeled=X[:2], y_labeled=y[:2], **optional)
    assert_array_equal(view.labeled_features, X[:2])
    without = PoolView(X, **optional)
    assert without.n_labeled == 0
    with pytest.raises(TypeError, match="needs labelled items"):
        without.labeled_features  # noqa: B018


def test_a_cold_start_sees_labelled_items_through_the_same_front():
    front = make_pipeline(StandardScaler(), LogisticRegression())
    view = PoolView(X, unfitted=front, X_labeled=X[:2], y_labeled=y[:2])
    assert_allclose(view.labeled_features, StandardScaler().fit(X).transform(X[:2]))


def test_boundary_and_gradients_come_from_the_final_step():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y == 1)
    view = PoolView(X, estimator=model)
    decision = model.decision_function(X)
    distance = abs(decision) / np.linalg.norm(model[-1].coef_)
    assert_allclose(view.boundary, distance)
    residuals, inputs = view.gradients
    assert_array_equal(inputs, view.features)
    assert_allclose(residuals.sum(axis=1), 0, atol=1e-12)


def test_surprisal_is_known_before_there_is_a_model():
    class Surprising(Counting):
        def surprisal(self, X, random_state):
            return np.asarray(X) + random_state

    unfitted = make_pipeline(Surprising(), LogisticRegression())
    view = PoolView(X, unfitted=unfitted, requires=frozenset({"surprisal"}))
    assert_array_equal(view.surprisal, X + view._seeds[1])
    with pytest.raises(TypeError, match=r"masked language model.*BertFeatures"):
        PoolView(X, unfitted=LogisticRegression(), requires=frozenset({"surprisal"}))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_linear_models_predict_a_slice_at_a_time(monkeypatch, n_jobs):
    monkeypatch.setattr("skactive.quantities.chunk_size", lambda *_: 7)
    rows = []

    class Counted(LogisticRegression):
        def predict_proba(self, X):
            rows.append(len(X))
            return super().predict_proba(X)

    model = Counted().fit(X, y)
    with parallel_config("threading", n_jobs=n_jobs):
        proba = PoolView(X, estimator=model).proba
    assert sorted(rows) == [6, 7, 7]
    assert_allclose(proba, model.predict_proba(X), rtol=1e-12)
