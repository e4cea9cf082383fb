"""AveragedClassifier against its definition, and its bad inputs."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from skactive import AveragedClassifier, ClassDescriptions, load, save
from skactive.semi_supervised import SelfTraining

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
y = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0, "up", "down")


@parametrize_with_checks([AveragedClassifier(LogisticRegression(), GaussianNB())])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="the number is that of scikit-learn 1.9",
)
def test_the_number_of_checks():
    marks = test_scikit_learn_checks.pytestmark
    (mark,) = (mark for mark in marks if mark.name == "parametrize")
    assert len(mark.args[1]) == 62


def test_oracle_mean_of_the_softened_probabilities():
    model = AveragedClassifier(LogisticRegression(), GaussianNB(), temperature=2.5)
    model.fit(X, y)
    one = LogisticRegression().fit(X, y).predict_proba(X)
    other = GaussianNB().fit(X, y).predict_proba(X)
    other = softmax(np.log(np.maximum(other, 1e-9)) / 2.5, axis=1)
    assert_allclose(model.predict_proba(X), (one + other) / 2, rtol=1e-12)
    assert model.score(X, y) > 0.8
    assert model.classes_.tolist() == ["down", "up"]
    sharper = clone(model).set_params(final_temperature=0.7).fit(X, y)
    expected = softmax(np.log((one + other) / 2) / 0.7, axis=1)
    assert_allclose(sharper.predict_proba(X), expected, rtol=1e-12)
    assert_array_equal(sharper.predict(X), model.predict(X))


class Three(ClassifierMixin, BaseEstimator):
    """A classifier that knows a class more than its labels have."""

    def fit(self, X, y):
        self.classes_ = np.array(["down", "left", "up"])
        return self

    def predict_proba(self, X):
        return np.tile([0.2, 0.5, 0.3], (len(X), 1))


def test_classes_of_any_member_have_a_column():
    model = AveragedClassifier(LogisticRegression(), Three()).fit(X, y)
    assert model.classes_.tolist() == ["down", "left", "up"]
    proba = LogisticRegression().fit(X, y).predict_proba(X)
    expected = np.stack(
        [proba[:, 0] + 0.2, np.full(60, 0.5), proba[:, 1] + 0.3], axis=1
    )
    assert_allclose(model.predict_proba(X), expected / 2)


def test_unlabeled_items_reach_the_members_that_take_them():
    taught = SelfTraining(LogisticRegression(), cv=None, random_state=0)
    model = AveragedClassifier(taught, LogisticRegression())
    model.fit(X[:20], y[:20], X_unlabeled=X[20:])
    assert len(model.estimator_.pseudo_labels_) > 0
    alone = LogisticRegression().fit(X[:20], y[:20])
    assert_array_equal(model.other_.predict_proba(X), alone.predict_proba(X))


def test_weights_reach_both_members_also_behind_the_steps_of_a_pipeline():
    weights = np.linspace(0.1, 3, 60)
    behind = make_pipeline(FunctionTransformer(), LogisticRegression())
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, cv=2)
    model = AveragedClassifier(behind, search).fit(X, y, sample_weight=weights)
    one = LogisticRegression().fit(X, y, weights).predict_proba(X)
    other = GaussianNB().fit(X, y, weights).predict_proba(X)
    assert_allclose(model.predict_proba(X), (one + other) / 2, rtol=1e-12)


@pytest.mark.parametrize("name", ["estimator", "other"])
def test_a_member_without_weights_is_named(name):
    members = {"estimator": GaussianNB(), "other": GaussianNB()}
    members[name] = make_pipeline(FunctionTransformer(), KNeighborsClassifier())
    model = AveragedClassifier(**members).fit(X, y)
    with pytest.raises(TypeError, match=f"'{name}' must have a fit with sample_weight"):
        model.fit(X, y, sample_weight=np.ones(60))


def test_an_unfitted_model_says_so():
    model = AveragedClassifier(LogisticRegression(), GaussianNB())
    for call in (model.predict, model.predict_proba, lambda X: model.score(X, y)):
        with pytest.raises(NotFittedError, match="AveragedClassifier"):
            call(X)
    assert not hasattr(model, "n_features_in_")


def frame(X):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=["one", "two", "three"])


def test_the_features_seen_in_fit_are_those_of_the_member():
    for model in (
        AveragedClassifier(LogisticRegression(), GaussianNB()),
        SelfTraining(LogisticRegression()),
    ):
        assert not hasattr(model, "feature_names_in_")
        model.fit(frame(X), y)
        assert model.n_features_in_ == 3
        assert model.feature_names_in_.tolist() == ["one", "two", "three"]
    texts = ClassDescriptions(
        make_pipeline(
            FunctionTransformer(lambda X: [[len(x)] for x in X]), GaussianNB()
        ),
        ["up", "down"],
    )
    assert not hasattr(texts.fit([], []), "n_features_in_")


def test_it_is_saved(tmp_path):
    model = AveragedClassifier(LogisticRegression(), GaussianNB(), temperature=2).fit(
        X, y
    )
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_the_parameters_of_the_members_are_its_own():
    model = AveragedClassifier(LogisticRegression(), GaussianNB())
    model.set_params(estimator__C=3.0, other__var_smoothing=0.1)
    assert (model.estimator.C, model.other.var_smoothing) == (3.0, 0.1)
    assert clone(model).get_params()["estimator__C"] == 3.0


def test_bad_parameters():
    model = AveragedClassifier(LogisticRegression(), GaussianNB(), temperature=0)
    with pytest.raises(ValueError, match="'temperature' parameter"):
        model.fit(X, y)
    model.set_params(temperature=1, final_temperature=-1.0)
    with pytest.raises(ValueError, match="'final_temperature' parameter"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="'other' parameter"):
        AveragedClassifier(LogisticRegression(), "nb").fit(X, y)
    several = np.stack([y == "up", y == "down"], axis=1).astype(int)
    with pytest.raises(TypeError, match="AveragedClassifier"):
        AveragedClassifier(LogisticRegression(), GaussianNB()).fit(X, several)
