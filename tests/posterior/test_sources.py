"""Where draws come from: the estimator itself, through its wraps, by the seed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive.posterior import check_can_sample, sample_proba, sampler
from skactive.testing._strategy_cases import GivenProba
from skactive.view import PoolView

from ._helpers import ASKED, ENSEMBLES, RNG, X, Y

# The estimator's own draws.


class Own(ClassifierMixin, BaseEstimator):
    """Notes how it was asked."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.asked_ = []
        return self

    def sample_proba(self, X, n_draws=3, random_state=None):
        self.asked_.append((n_draws, random_state))
        return np.full((len(X), n_draws, 2), 0.5)


@pytest.mark.parametrize("wrap", [lambda model: model, FrozenEstimator, make_pipeline])
def test_an_estimator_may_draw_by_itself(wrap):
    own = Own().fit([[0]], [0])
    model = wrap(own)
    check_can_sample(model)
    assert sample_proba(model, ASKED, 4, 7, X_train=X, y_train=Y).shape == (9, 4, 2)
    draw = sampler(model, 6, np.random.RandomState(0))
    draw(ASKED[:2])
    draw(ASKED[2:])
    (first, *rest) = own.asked_
    assert first == (4, 7)
    assert rest[0] == rest[1]  # the same models for both chunks
    assert isinstance(rest[0][1], int)


def test_own_draws_in_chunks_are_those_of_the_whole():
    rows = np.hstack([RNG.dirichlet(np.ones(3), 20), RNG.normal(size=(20, 2))])
    model = GivenProba().fit(rows, np.arange(20) % 3)
    draw = sampler(model, 5, 0)
    parts = np.concatenate([draw(rows[:3]), draw(rows[3:])])
    assert_array_equal(parts, sample_proba(model, rows, 5, 0))


# Pipelines and other wraps.


def test_steps_before_the_last_are_applied_to_both():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X * 100, Y)
    scaled = StandardScaler().fit(X * 100).transform
    bare = LogisticRegression().fit(scaled(X * 100), Y)
    expected = sample_proba(bare, scaled(ASKED), 5, 0, X_train=scaled(X * 100))
    found = sample_proba(model, ASKED, 5, 0, X_train=X * 100, y_train=Y)
    assert_allclose(found, expected, rtol=1e-9)
    draw = sampler(model, 5, 0, X_train=X * 100)
    assert_allclose(draw(ASKED), expected, rtol=1e-9)
    nested = make_pipeline(FrozenEstimator(make_pipeline(model)))
    found = sample_proba(nested, ASKED, 5, 0, X_train=X * 100)
    assert_allclose(found, expected, rtol=1e-9)


def test_a_search_stands_for_its_best_estimator():
    search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=2).fit(X, Y)
    assert_array_equal(
        sample_proba(search, ASKED, 5, 0, X_train=X),
        sample_proba(search.best_estimator_, ASKED, 5, 0, X_train=X),
    )


def test_texts_pass_through_a_pipeline():
    texts = ["a good film", "a bad film", "good", "bad", "good good", "so bad"] * 3
    labels = ["+", "-"] * 9
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    draws = sample_proba(model, ["good", "?"], 2000, 0, X_train=texts, y_train=labels)
    assert_allclose(draws.mean(axis=1), model.predict_proba(["good", "?"]), atol=0.05)
    forest = make_pipeline(TfidfVectorizer(), RandomForestClassifier(5)).fit(
        texts, labels
    )
    assert sample_proba(forest, texts, 7, 0).shape == (18, 7, 2)


def test_a_view_has_draws_of_what_it_knows():
    model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
    model.fit(X, Y)
    view = PoolView(ASKED, estimator=model, X_labeled=X, y_labeled=Y)
    draws = view.draws(5000)
    reduced = view.map_draws(lambda part: part.mean(axis=1), 5000)
    assert_allclose(reduced, draws.mean(axis=1), rtol=1e-12)
    found = sample_proba(model, ASKED, 5000, 0, X_train=X, y_train=Y)
    assert_allclose(draws.mean(axis=1), found.mean(axis=1), atol=0.02)
    assert_allclose(draws.std(axis=1), found.std(axis=1), atol=0.02)


# Random numbers.


@pytest.mark.parametrize("model", [LogisticRegression(), ENSEMBLES[0]], ids=str)
def test_draws_follow_the_seed_and_nothing_else(model):
    model.fit(X, Y)
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002

    def draw(seed):
        return sample_proba(model, ASKED, 5, seed, X_train=X)

    assert_array_equal(draw(3), draw(3))
    assert (draw(3) != draw(4)).any()
    assert (draw(None) != draw(None)).any()
    state = np.random.RandomState(0)
    assert (draw(state) != draw(state)).any()
    assert_array_equal(draw(np.random.RandomState(0)), draw(np.random.RandomState(0)))
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# What the rows of the training stand for.


def test_the_items_stand_in_for_the_training_with_a_warning():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    with pytest.warns(UserWarning, match="X_train is None.*Pass X_train and y_train"):
        draws = sample_proba(model, X, 5, 0)
    assert_allclose(draws, sample_proba(model, X, 5, 0, X_train=X), rtol=1e-9)


def test_nothing_else_warns(recwarn):
    forest, linear = ENSEMBLES[0].fit(X, Y), LogisticRegression().fit(X, Y)
    recwarn.clear()
    sample_proba(forest, ASKED, 5, 0)
    sample_proba(linear, ASKED, 5, 0, X_train=X)
    assert [str(warning.message) for warning in recwarn] == []


def test_models_to_apply_later_need_the_training():
    with pytest.raises(ValueError, match="X_train is needed: LogisticRegression"):
        sampler(LogisticRegression().fit(X, Y), 5, 0)
