"""What scikit-learn does with the learner: copies, searches, weights, metadata."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skactive import ActiveLearner
from skactive.strategies import Entropy

from ._helpers import SEED, SENTIMENT, WORDS, X, by_hand, make, y


def test_clone_and_nested_parameters():
    learner = make(Entropy())
    assert "estimator__C" in learner.get_params()
    copied = clone(learner.set_params(estimator__C=3.0))
    assert copied.estimator.C == 3.0
    assert copied.strategy is not learner.strategy
    assert not hasattr(copied, "estimator_")


@pytest.mark.parametrize(
    "duplicate", [lambda o: pickle.loads(pickle.dumps(o)), copy.deepcopy]
)
def test_a_copy_goes_on_where_the_original_stands(duplicate):
    learner = make("random").fit(X[SEED], y[SEED]).teach(X[:1], y[:1])
    other = duplicate(learner)
    assert_array_equal(learner.query(X, 5), other.query(X, 5))
    assert_array_equal(
        learner.teach(X[5:9], y[5:9]).query(X), other.teach(X[5:9], y[5:9]).query(X)
    )


def test_html_display_names_the_parts():
    html = make(Entropy())._repr_html_()
    assert "LogisticRegression" in html
    assert "ActiveLearner" in html


def test_grid_search_and_cross_validation():
    search = GridSearchCV(make(), {"estimator__C": [0.1, 1.0]}).fit(X, y)
    assert search.best_score_ > 0.9
    assert cross_val_score(make(), X, y).mean() > 0.9


@pytest.mark.slow
def test_every_number_of_workers_gives_the_same():
    forest = RandomForestClassifier(n_estimators=5)
    learner = ActiveLearner(forest, random_state=0)
    scores = cross_val_score(learner, X + X[::-1], y, n_jobs=2)
    assert_array_equal(scores, cross_val_score(learner, X + X[::-1], y))


def test_a_frozen_estimator_is_not_trained():
    model = LogisticRegression().fit(X[SEED], y[SEED])
    learner = ActiveLearner(FrozenEstimator(model), "margin").fit(X[:2], y[:2])
    assert_array_equal(learner.predict_proba(X), model.predict_proba(X))
    assert_array_equal(learner.query(X, 4), by_hand(learner, X)[:4])


def test_a_frozen_front_is_kept():
    front = FrozenEstimator(TfidfVectorizer().fit(WORDS))
    learner = ActiveLearner(make_pipeline(front, LogisticRegression()))
    learner.fit(WORDS[:2], SENTIMENT[:2])
    assert learner.estimator_[0] is front
    assert learner.query(WORDS, 1).shape == (1,)


def test_a_search_inside_the_learner():
    inner = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2)
    learner = ActiveLearner(inner, "margin", random_state=0).fit(X[SEED], y[SEED])
    assert_array_equal(learner.query(X, 3), by_hand(learner, X)[:3])


def test_regressors_can_be_asked_too():
    target = X[:, 0]
    learner = ActiveLearner(Ridge(), "random", random_state=0).fit(X[:5], target[:5])
    asked = learner.query(X, 3)
    assert learner.teach(X[asked], target[asked]).score(X, target) > 0.9
    assert not hasattr(learner, "classes_")
    with pytest.raises(TypeError, match="LinearRegression is a regressor"):
        ActiveLearner(LinearRegression()).fit(X, target).query(X)


def test_delegation_follows_the_estimator():
    assert not hasattr(ActiveLearner(LinearSVC()), "predict_proba")
    assert hasattr(ActiveLearner(LinearSVC()), "decision_function")
    assert not hasattr(make(), "transform")
    with pytest.raises(NotFittedError):
        make().predict(X)


def test_sample_weights_are_kept_over_the_rounds():
    weights = np.linspace(0.1, 5, 60)
    learner = make().fit(X[:40], y[:40], sample_weight=weights[:40])
    learner.teach(X[40:50], y[40:50], sample_weight=weights[40:50])
    learner.teach(X[50:], y[50:])
    weights[50:] = 1.0
    expected = LogisticRegression().fit(X, y, sample_weight=weights)
    assert_allclose(learner.predict_proba(X), expected.predict_proba(X))
    assert_allclose(learner.refit().predict_proba(X), expected.predict_proba(X))


def test_metadata_is_routed():
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        inner.set_score_request(sample_weight=True)
        learner = ActiveLearner(inner, random_state=0)
        weights = np.linspace(0.1, 5, 60)
        learner.fit(X, y, sample_weight=weights)
        expected = LogisticRegression().fit(X, y, sample_weight=weights)
        assert_allclose(learner.predict_proba(X), expected.predict_proba(X))
        search = GridSearchCV(learner, {"estimator__C": [1.0]})
        search.fit(X, y, sample_weight=weights)
        with pytest.raises(TypeError, match="unexpected argument"):
            learner.fit(X, y, groups=weights)
