"""AveragedClassifier against its definition, and its bad inputs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skactive import AveragedClassifier, load, save
from skactive.semi_supervised import SelfTraining

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
y = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0, "up", "down")


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
