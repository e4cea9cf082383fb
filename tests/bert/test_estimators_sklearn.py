"""The BERT estimators among the tools of scikit-learn."""

import joblib
import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags

from skactive.bert import BertClassifier, BertFeatures, BertRegressor

from ._helpers import X, Y, assert_equal_outputs, classifier, fitted_copy
from ._text_checks import check_text_estimator

QUICK = {"max_epochs": 1, "lr": 1e-3, "batch_size": 8, "device": "cpu"}
UNDER_TEST = {
    "features": (BertFeatures, {"precision": "float32", "device": "cpu"}),
    "features without cache": (
        BertFeatures,
        {"precision": "float32", "device": "cpu", "cache": None, "layers": (-2, -1)},
    ),
    "classifier": (BertClassifier, QUICK),
    "frozen classifier": (
        BertClassifier,
        QUICK
        | {"freeze": 2, "head": "mlp", "early_stopping": True}
        # A third, so that the validation part has both classes, or all three.
        | {"validation_fraction": 0.34},
    ),
    "wholly frozen classifier": (BertClassifier, QUICK | {"freeze": "all"}),
    "wholly frozen CNN": (
        BertClassifier,
        QUICK | {"freeze": "all", "head": "cnn", "mc_dropout": "full"},
    ),
    "frozen regressor": (BertRegressor, QUICK | {"freeze": 3, "pooling": "mean"}),
}
COUNTS = {"BertFeatures": 28, "BertClassifier": 41, "BertRegressor": 36}


# The kit


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("label", UNDER_TEST)
def test_text_checks(tiny_bert, label):
    cls, params = UNDER_TEST[label]
    passed = check_text_estimator(cls(tiny_bert, **params))
    assert len(set(passed)) == len(passed) == COUNTS[cls.__name__]


def test_another_text_estimator_fails_the_checks():
    with pytest.raises(AssertionError, match="fails check_tags_are_honest: its input"):
        check_text_estimator(TfidfVectorizer())


def test_tags():
    assert is_classifier(BertClassifier())
    assert is_regressor(BertRegressor())
    for cls in (BertClassifier, BertRegressor):
        tags = get_tags(cls())
        assert tags.input_tags.string
        assert not tags.input_tags.two_d_array
        assert tags.target_tags.required
        assert tags.requires_fit
        assert tags.transformer_tags.preserves_dtype == []
    assert get_tags(BertClassifier()).classifier_tags.multi_label


# Searches


@pytest.mark.long
@pytest.mark.parametrize(
    ("parallel", "grid"),
    [
        pytest.param(
            {"n_jobs": 2},
            {"freeze": [0, 1, -1, 3, -3, "all"], "max_epochs": [1, 3]},
            marks=pytest.mark.slow,
        ),
        (
            {"n_jobs": 2, "backend": "threading"},
            {"freeze": [1, "all"], "max_epochs": [1]},
        ),
    ],
    ids=["processes", "threads"],
)
def test_a_grid_over_freeze_scores_alike_for_every_n_jobs(tiny_bert, parallel, grid):
    settings = {"cv": 2, "scoring": ["accuracy", "neg_log_loss"], "refit": False}
    one = GridSearchCV(classifier(tiny_bert), grid, **settings).fit(X, Y)
    with joblib.parallel_config(**parallel):
        two = GridSearchCV(classifier(tiny_bert), grid, **settings).fit(X, Y)
    for key, scores in one.cv_results_.items():
        if key.endswith("accuracy"):
            np.testing.assert_array_equal(scores, two.cv_results_[key])
        elif key.endswith("log_loss"):
            # Rounding differs with what is cached already and with the threads; a
            # float32 probability near 1 moves in steps of 6e-8.
            np.testing.assert_allclose(
                scores, two.cv_results_[key], rtol=1e-4, atol=1e-6
            )
    losses = one.cv_results_["mean_test_neg_log_loss"]
    assert len(set(losses)) > len(losses) / 2


@pytest.mark.long
def test_a_search_refits_the_best(tiny_bert):
    search = GridSearchCV(classifier(tiny_bert), {"freeze": [0, 3]}, cv=2).fit(X, Y)
    assert search.predict(X).shape == (len(X),)
    assert search.predict_proba(X).shape == (len(X), 2)
    assert search.score(X, Y) == search.best_estimator_.score(X, Y)
    assert search.classes_.tolist() == ["bad", "good"]


@pytest.mark.long
def test_a_depth_that_the_model_does_not_have_fails_that_candidate_only(tiny_bert):
    search = GridSearchCV(
        classifier(tiny_bert), {"freeze": [0, 6]}, cv=2, error_score=-1.0
    )
    with pytest.warns(match="the model has 3 layers"):
        search.fit(X, Y)
    assert search.cv_results_["mean_test_score"][1] == -1.0
    assert search.best_params_ == {"freeze": 0}


@pytest.mark.slow
def test_a_grid_over_the_steps_of_a_pipeline(tiny_bert):
    features = BertFeatures(tiny_bert, precision="float32")
    pipe = Pipeline([("features", features), ("classify", LogisticRegression())])
    grid = [
        {"classify__C": [0.1, 10.0]},
        {
            "features": ["passthrough"],
            "classify": [classifier(tiny_bert)],
            "classify__freeze": [0, "all"],
        },
    ]
    results = [
        GridSearchCV(pipe, grid, cv=2, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in results]
    assert len(scores[0]) == 4
    np.testing.assert_array_equal(*scores)
    assert np.isfinite(scores[0]).all()


@pytest.mark.long
def test_as_the_last_step_of_a_pipeline(tiny_bert):
    pipe = make_pipeline("passthrough", classifier(tiny_bert))
    pipe.fit(X, Y, bertclassifier__sample_weight=np.ones(len(X)))
    assert_equal_outputs(pipe, fitted_copy(classifier, tiny_bert, X, Y))
    assert cross_val_score(pipe, X, Y, cv=2).shape == (2,)


def test_as_a_step_before_another_classifier(tiny_bert):
    pipe = make_pipeline(classifier(tiny_bert), LogisticRegression())
    assert pipe.fit(X, Y).predict(X).shape == (len(X),)
