"""The loop: fit, query, teach, refit, and how it begins."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from skactive import ActiveLearner
from skactive.strategies import PointwiseStrategy

from ._helpers import POOL, SEED, X, by_hand, make, y

# fit, query, teach, refit


def test_query_gives_the_most_uncertain_first():
    learner = make().fit(X[SEED], y[SEED])
    assert_array_equal(learner.query(X, 5), by_hand(learner, X)[:5])


def test_query_uses_batch_size_unless_told():
    learner = make(batch_size=7).fit(X[SEED], y[SEED])
    assert learner.query(X).shape == (7,)
    assert learner.query(X, 3).shape == (3,)
    assert learner.query(X).dtype == np.intp


def test_a_mask_and_indices_say_the_same():
    learner = make().fit(X[SEED], y[SEED])
    mask = np.isin(np.arange(60), POOL)
    picks = learner.query(X, 9, candidates=POOL)
    assert_array_equal(picks, learner.query(X, 9, candidates=mask))
    assert_array_equal(picks, learner.query(X, 9, candidates=list(POOL)))
    assert_array_equal(picks, learner.query(X, 9, candidates=pd.Series(mask)))
    assert set(picks) <= set(POOL)


def test_fewer_candidates_than_asked_for_are_all_returned():
    learner = make().fit(X[SEED], y[SEED])
    assert set(learner.query(X, 10, candidates=[3, 5])) == {3, 5}


def test_teach_adds_labels_and_trains_on_all():
    learner = make().fit(X[SEED], y[SEED]).teach(X[POOL[:4]], y[POOL[:4]])
    both = np.concatenate([SEED, POOL[:4]])
    expected = LogisticRegression().fit(X[both], y[both])
    assert_allclose(learner.predict_proba(X), expected.predict_proba(X))
    assert_array_equal(learner.X_labeled_, X[both])
    assert_array_equal(learner.y_labeled_, y[both])
    assert learner.n_rounds_ == 1


def test_teach_without_refit_only_stores():
    learner = make().fit(X[SEED], y[SEED])
    before = learner.predict_proba(X)
    learner.teach(X[POOL], y[POOL], refit=False)
    assert_array_equal(learner.predict_proba(X), before)
    assert len(learner.y_labeled_) == 60
    learner.refit()
    assert_allclose(
        learner.predict_proba(X),
        LogisticRegression()
        .fit(learner.X_labeled_, learner.y_labeled_)
        .predict_proba(X),
    )


def test_fit_forgets_earlier_labels():
    learner = make().fit(X, y).teach(X[:2], y[:2]).fit(X[SEED], y[SEED])
    assert len(learner.y_labeled_) == len(SEED)
    assert learner.n_rounds_ == 0


def test_refit_takes_the_present_estimator():
    learner = make().fit(X[SEED], y[SEED])
    learner.set_params(estimator=make_pipeline(StandardScaler(), LinearSVC())).refit()
    assert isinstance(learner.estimator_[-1], LinearSVC)
    assert learner.score(X, y) > 0.9
    assert not hasattr(learner, "predict_proba")


def test_refit_before_any_label_says_what_to_do():
    with pytest.raises(NotFittedError, match="no labels to refit on"):
        make().refit()


def test_teach_can_begin():
    learner = make().teach(X[SEED], y[SEED])
    assert_allclose(
        learner.predict_proba(X), make().fit(X[SEED], y[SEED]).predict_proba(X)
    )


def test_teach_grows_classes():
    learner = make().fit(X[SEED], y[SEED])
    assert_array_equal(learner.classes_, ["no", "yes"])
    learner.teach(X[:2] + 9, ["perhaps", "perhaps"])
    assert_array_equal(learner.classes_, ["no", "perhaps", "yes"])
    assert learner.predict_proba(X).shape == (60, 3)
    assert learner.query(X, 2).shape == (2,)


@pytest.mark.parametrize(
    "labels", [["a", "b"], [3, 8], [True, False], pd.Series(["x", "y"]), [0.0, 1.0]]
)
def test_labels_of_every_kind(labels):
    learner = make().fit(X[[0, 30]], labels)
    assert_array_equal(np.sort(np.asarray(labels)), learner.classes_)
    learner.teach(X[[1, 31]], labels)
    assert len(learner.y_labeled_) == 4


# Cold start


def test_query_before_fit_is_the_cold_start():
    learner = make("entropy")
    picks = learner.query(X, 10)
    assert len(set(picks)) == 10
    assert_array_equal(picks, learner.query(X, 10))
    assert not hasattr(learner, "estimator_")


def test_a_single_class_is_no_crash():
    learner = make("entropy", batch_size=4).fit(X[:3], y[:3])
    assert isinstance(learner.estimator_, DummyClassifier)
    assert_array_equal(learner.predict(X[:2]), ["no", "no"])
    assert learner.score(X, y) == 0.5
    picks = learner.query(X, candidates=np.arange(3, 60))
    assert len(picks) == 4
    learner.teach(X[[30]], y[[30]])
    assert isinstance(learner.estimator_, LogisticRegression)


def test_the_cold_start_chooses_until_there_are_two_classes():
    learner = make(
        lambda view: -np.arange(len(view)), cold_start=lambda view: np.arange(len(view))
    )
    assert learner.query(X, 1) == [59]
    assert learner.fit(X[:3], y[:3]).query(X, 1) == [59]
    assert learner.teach(X[[30]], y[[30]]).query(X, 1) == [0]


def test_a_loop_from_nothing_needs_no_special_code():
    learner = make("entropy", batch_size=1)
    unlabeled = np.ones(60, dtype=bool)
    for _ in range(12):
        ask = learner.query(X, candidates=unlabeled)
        learner.teach(X[ask], y[ask])
        unlabeled[ask] = False
        learner.score(X, y)
    assert learner.score(X, y) > 0.9


def test_cold_start_may_look_at_features():
    class Far(PointwiseStrategy):
        requires = frozenset({"features"})

        def score(self, view):
            return np.asarray((view.features**2).sum(axis=1)).ravel()

    learner = make(cold_start=Far())
    assert learner.query(X, 1)[0] == np.argmax((X**2).sum(axis=1))
    front = make_pipeline(StandardScaler(), LogisticRegression())
    scaled = StandardScaler().fit_transform(X)
    picks = ActiveLearner(front, cold_start=Far()).query(X, 1, candidates=POOL)
    assert picks[0] == POOL[np.argmax((scaled[POOL] ** 2).sum(axis=1))]
    assert not hasattr(front[0], "mean_"), "the user's own step was fitted"


def test_the_default_cold_start_clusters_features_that_need_no_training():
    texts = [f"{word} {i}" for word in ("red", "blue", "green") for i in range(9)]
    hashes = FunctionTransformer(HashingVectorizer(n_features=64).transform)
    hashed = make_pipeline(hashes, LogisticRegression())
    counted = make_pipeline(CountVectorizer(), LogisticRegression())
    for model, default in ((hashed, "embedding_kmeans"), (counted, "random")):
        picks = ActiveLearner(model, random_state=0).query(texts, 3)
        named = ActiveLearner(model, cold_start=default, random_state=0)
        assert_array_equal(picks, named.query(texts, 3))
    clustered = ActiveLearner(hashed, random_state=0).query(texts, 3)
    assert sorted(clustered // 9) == [0, 1, 2]


def test_cold_start_that_needs_a_model_says_so():
    with pytest.raises(TypeError, match="no fitted model with two classes yet"):
        make(cold_start="entropy").query(X, 2)


def test_a_dummy_classifier_of_the_user_gets_its_sample_weights():
    learner = ActiveLearner(DummyClassifier(strategy="prior"))
    learner.fit(X, y, sample_weight=np.where(y == "no", 3.0, 1.0))
    assert_allclose(learner.predict_proba(X[:1]), [[0.75, 0.25]])


@pytest.mark.parametrize("rows", [np.array, list])
def test_one_weight_is_that_of_each_new_item(rows):
    def teach(weight):
        learner = make().fit(rows(X[SEED]), y[SEED], sample_weight=2.0)
        learner.teach(rows(X[:2]), y[:2], sample_weight=weight)
        return learner.teach(rows(X[40:42]), y[40:42]).estimator_.coef_

    assert_allclose(teach(5.0), teach([5.0, 5.0]))
    each = np.repeat([2.0, 5.0, 1.0], [6, 2, 2])
    seen = np.concatenate([SEED, [0, 1, 40, 41]])
    alone = LogisticRegression().fit(X[seen], y[seen], sample_weight=each)
    assert_allclose(teach(5.0), alone.coef_, rtol=1e-6)
