"""Libraries that take a scikit-learn estimator take a learner, and the other way."""

import pickle

import numpy as np
import optuna
import pandas as pd
import pytest
from cleanlab.classification import CleanLearning
from imblearn.ensemble import (
    BalancedBaggingClassifier,
    BalancedRandomForestClassifier,
    EasyEnsembleClassifier,
)
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from imblearn.under_sampling import RandomUnderSampler
from mapie.classification import SplitConformalClassifier
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import learning_curve
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner
from skactive.bert import BertFeatures
from skactive.posterior import sample_proba
from skactive.simulation import SimulatedLearner

from ._helpers import SENTIMENT, WORDS, X, make, y

# Clients that wrap a learner


@pytest.mark.long
def test_cleanlab_finds_a_wrong_label():
    wrong = y.copy()
    wrong[[4, 40]] = ["yes", "no"]
    codes = (wrong == "yes").astype(int)
    found = CleanLearning(make(), seed=0).find_label_issues(X, codes)
    assert set(np.flatnonzero(found["is_label_issue"])) == {4, 40}


def test_mapie_calibrates_a_learner():
    codes = (y == "yes").astype(int)
    fitted = make().fit(X[::2], codes[::2])
    conformal = SplitConformalClassifier(fitted, confidence_level=0.9, prefit=True)
    conformal.conformalize(X[1::2], codes[1::2])
    labels, sets = conformal.predict_set(X)
    assert_array_equal(labels, fitted.predict(X))
    assert sets.shape[:2] == (60, 2)


def test_optuna_searches_over_a_simulated_learner():
    subject = SimulatedLearner(make(batch_size=5), n_initial=6, n_rounds=2)
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0)
    )
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        strategy = trial.suggest_categorical("strategy", ["margin", "random"])
        subject.set_params(estimator__strategy=strategy)
        return subject.fit(X, y).score(X, y)

    study.optimize(objective, n_trials=2)
    assert study.best_value > 0.9


@pytest.mark.parametrize(
    "wrap",
    [
        lambda learner: CalibratedClassifierCV(learner, cv=2),
        lambda learner: VotingClassifier([("a", learner), ("b", GaussianNB())]),
        lambda learner: StackingClassifier([("a", learner), ("b", GaussianNB())], cv=2),
    ],
    ids=["calibrated", "voting", "stacking"],
)
def test_meta_estimators_of_scikit_learn_take_a_learner(wrap):
    fitted = wrap(make()).fit(X, y)
    assert fitted.score(X, y) > 0.9
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


def test_learning_curve_of_a_learner():
    sizes, _, scores = learning_curve(
        make(), X, y, train_sizes=[10, 40], cv=3, shuffle=True, random_state=0
    )
    assert_array_equal(sizes, [10, 40])
    assert scores[1].mean() > 0.9


# Estimators that a learner wraps


def test_an_estimator_that_predicts_only_once_fitted():
    stack = StackingClassifier([("lr", LogisticRegression()), ("nb", GaussianNB())])
    learner = ActiveLearner(make_pipeline(StandardScaler(), stack), random_state=0)
    picks = learner.fit(X, y).query(X, 3)
    assert learner.teach(X[picks], y[picks]).score(X, y) > 0.9


@pytest.mark.long
@pytest.mark.parametrize(
    "ensemble",
    [
        BalancedRandomForestClassifier(
            8, sampling_strategy="all", replacement=True, bootstrap=False
        ),
        BalancedBaggingClassifier(n_estimators=8),
        EasyEnsembleClassifier(
            n_estimators=8, estimator=AdaBoostClassifier(n_estimators=3)
        ),
    ],
    ids=lambda ensemble: type(ensemble).__name__,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_balanced_ensembles_draw(ensemble, n_classes):
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b", "c"])[np.repeat(np.arange(n_classes), 24)[:48]]
    rows = rng.normal(size=(len(labels), 2)) + 2 * (labels == "b")[:, None]
    learner = ActiveLearner(ensemble, "bald", random_state=0).fit(rows, labels)
    assert len(set(learner.query(rows, 4))) == 4
    draws = sample_proba(learner.estimator_, rows, 8, 0)
    expected = learner.predict_proba(rows)
    assert_allclose(draws.mean(axis=1), expected, atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(
    "strategy",
    [
        "margin",
        "entropy",
        "bald",
        "batchbald",
        "badge",
        "egl",
        "coreset",
        "cal",
        "dal",
        "dfal",
        "goral",
        "typiclust",
        "density",
        "class_balanced",
        "seals",
    ],
)
def test_a_pipeline_with_a_sampler(strategy):
    few = np.r_[0:8, 30:60]
    pipe = make_sampling_pipeline(
        StandardScaler(), RandomOverSampler(), LogisticRegression()
    )
    learner = ActiveLearner(pipe, strategy, random_state=0).fit(X[few], y[few])
    picks = learner.query(X, 4, candidates=np.arange(8, 30))
    assert len(set(picks)) == 4
    learner.teach(X[picks], y[picks])
    again = ActiveLearner(pipe, strategy, random_state=0).fit(X[few], y[few])
    assert_array_equal(again.query(X, 4, candidates=np.arange(8, 30)), picks)


@pytest.mark.parametrize(
    "sampler",
    [RandomOverSampler(), RandomUnderSampler(), SMOTE(k_neighbors=1)],
    ids=lambda sampler: type(sampler).__name__,
)
def test_samplers_behind_a_step_that_makes_sparse_rows(sampler):
    texts = [f"{word} {i}" for i in range(4) for word in WORDS]
    labels = [*SENTIMENT * 3, *["+"] * 6]
    pipe = make_sampling_pipeline(TfidfVectorizer(), sampler, LogisticRegression())
    for strategy in ("bald", "badge", "goral"):
        learner = ActiveLearner(pipe, strategy, random_state=0).fit(texts, labels)
        assert len(learner.query(["good day", "bad day", "nice"], 2)) == 2


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["badge", "bald", "margin"])
def test_a_sampler_behind_the_features_of_texts(tiny_bert, strategy):
    texts = [f"{word} {i}" for i in range(4) for word in WORDS]
    labels = [*SENTIMENT * 3, *["+"] * 6]
    features = BertFeatures(tiny_bert, precision="float32")
    pipe = make_sampling_pipeline(features, RandomOverSampler(), LogisticRegression())
    learner = ActiveLearner(pipe, strategy, random_state=0).fit(texts, labels)
    assert len(set(learner.query(["good day", "bad day", "nice"], 2))) == 2


def test_a_sampler_before_the_cold_start():
    pipe = make_sampling_pipeline(
        StandardScaler(), RandomOverSampler(), LogisticRegression()
    )
    learner = ActiveLearner(pipe, cold_start="typiclust", random_state=0)
    assert len(learner.query(X, 4)) == 4


def test_only_a_sampler_before_the_model():
    pipe = make_sampling_pipeline(RandomOverSampler(), LogisticRegression())
    learner = ActiveLearner(pipe, "badge", random_state=0).fit(X, y)
    assert len(learner.query(X, 4)) == 4


@pytest.mark.parametrize("strategy", ["bald", "mc_dropout", "goral", "badge"])
def test_data_frames_of_features(strategy):
    frame = pd.DataFrame(X, columns=list("abc"))
    learner = make(strategy).fit(frame, y)
    expected = make(strategy).fit(X, y)
    assert_array_equal(learner.query(frame, 4), expected.query(X, 4))
