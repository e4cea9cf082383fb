"""PoolView gives what was declared and what the model has, and nothing else."""

import pytest
from numpy.testing import assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skactive.view import PoolView, _query

from ._helpers import X, y

WORDS = make_pipeline(TfidfVectorizer(), LogisticRegression())


def test_asking_for_what_was_not_declared():
    model = LogisticRegression().fit(X, y)
    view = PoolView(X, estimator=model, requires=frozenset({"proba"}), name="mine")
    view.proba  # noqa: B018
    message = "'mine' uses features .* Add 'features' to its `requires`"
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
        ("labeled", LogisticRegression(), "labeled items, and the learner has seen"),
        ("color", LogisticRegression(), "'color', which is unknown. Known are"),
    ],
)
def test_what_the_model_lacks(requires, model, message):
    with pytest.raises(TypeError, match=message):
        PoolView(X, estimator=model.fit(X, y), requires=frozenset({requires}))


def test_texts_without_a_vectorizer_are_no_features():
    model = LogisticRegression().fit(X, y)
    with pytest.raises(TypeError, match="X is not a numeric table and Logistic"):
        PoolView(["a", "b"], estimator=model, requires=frozenset({"features"}))


@pytest.mark.parametrize(
    "model",
    [
        VotingClassifier([("one", WORDS)]),
        StackingClassifier([("one", WORDS)], cv=2),
        CalibratedClassifierCV(WORDS, cv=2),
        TransformedTargetRegressor(make_pipeline(TfidfVectorizer(), Ridge())),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_around_pipelines_is_told_to_stand_behind_the_features(model):
    texts, name = ["one two", "two", "three one", "four"], type(model).__name__
    hint = rf"{name} computes no features.*make_pipeline\(BertFeatures\(\), {name}\("
    with pytest.raises(TypeError, match=hint):
        PoolView(
            texts,
            estimator=model.fit(texts, [0, 1, 0, 1]),
            requires=frozenset({"features"}),
        )


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


def test_a_quantity_is_checked_once_and_a_missing_one_each_time(monkeypatch):
    checked, check = [], _query.check_capability

    def note(capability, **known):
        checked.append(capability)
        check(capability, **known)

    monkeypatch.setattr(_query, "check_capability", note)
    optional = frozenset({"features", "draws"})
    view = PoolView(X, estimator=LinearSVC().fit(X, y), optional=optional)
    assert [view.offers(each) for each in sorted(optional) * 2] == [False, True] * 2
    view.take([1]).features  # noqa: B018
    assert checked == ["draws", "features", "draws"]


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
