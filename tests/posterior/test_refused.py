"""What has no posterior is refused, with a way out."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skactive.bert import BertClassifier, BertRegressor
from skactive.posterior import check_can_sample, sample_proba, sampler
from skactive.semi_supervised import SelfTraining

from ._helpers import ASKED, ENSEMBLES, X, Y

VOTES = [("lr", LogisticRegression()), ("nb", GaussianNB())]
REFUSED = [
    (GaussianNB(), "GaussianNB has no sample_proba.*Use LogisticRegression"),
    (SVC(), "SVC has no sample_proba.*BaggingClassifier"),
    (DecisionTreeClassifier(), "DecisionTreeClassifier has no sample_proba"),
    (SGDClassifier(), r"SGDClassifier\(loss='hinge'\).*loss='log_loss'"),
    (AdaBoostClassifier(), "AdaBoostClassifier has no sample_proba, no members"),
    (GradientBoostingClassifier(n_estimators=2), "GradientBoostingClassifier.*no memb"),
    (HistGradientBoostingClassifier(max_iter=2), "HistGradientBoosting.*no members"),
    (StackingClassifier(VOTES), "StackingClassifier has no sample_proba"),
    (OneVsRestClassifier(LinearSVC()), "OneVsRestClassifier has no sample_proba"),
    (VotingClassifier(VOTES), "VotingClassifier has voting='hard'. Use voting='soft'"),
    (RandomForestClassifier(1), "RandomForestClassifier has one member.*several"),
    (
        CalibratedClassifierCV(LinearSVC(), ensemble=False),
        "CalibratedClassifierCV has one member, which.*Use ensemble=True",
    ),
    (LogisticRegression(C=np.inf), "LogisticRegression has no penalty.*finite C"),
    (
        LogisticRegression(solver="saga", l1_ratio=0.5, penalty="elasticnet"),
        "LogisticRegression has an l1 penalty.*l1_ratio=0",
    ),
    (
        LogisticRegression(solver="liblinear", penalty="l1", C=0.5),
        "LogisticRegression has an l1 penalty",
    ),
    (LogisticRegression(penalty=None), "LogisticRegression has no penalty"),
    (SGDClassifier("log_loss", penalty="l1"), "has penalty='l1'.*Use penalty='l2'"),
    (
        SGDClassifier("log_loss", alpha=0.0, learning_rate="constant", eta0=0.1),
        "SGDClassifier has no prior.*alpha above 0",
    ),
    (
        OneVsRestClassifier(SGDClassifier("log_loss", penalty="l1")),
        "OneVsRestClassifier has penalty='l1'",
    ),
]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "message"), REFUSED, ids=lambda value: str(value))
def test_what_has_no_posterior_is_refused_with_a_way_out(model, message):
    y = Y == "no" if getattr(model, "solver", None) == "liblinear" else Y
    model = make_pipeline(StandardScaler(), model).fit(X, y)
    for call in (
        lambda: check_can_sample(model),
        lambda: check_can_sample(model[-1]),
        lambda: sampler(model, 5, 0, X_train=X),
        lambda: sample_proba(model, ASKED, 5, 0),
    ):
        with pytest.raises(TypeError, match=message):
            call()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        {"penalty": "l2"},
        {"penalty": "l2", "l1_ratio": 0.5},  # which then says nothing
        {"penalty": "elasticnet", "l1_ratio": 0, "solver": "saga"},
    ],
    ids=str,
)
def test_older_names_of_the_l2_penalty_are_known(options):
    model = LogisticRegression(**options, max_iter=5000, tol=1e-9).fit(X, Y)
    newer = LogisticRegression(tol=1e-9).fit(X, Y)
    draws = sample_proba(model, ASKED, 5, 0, X_train=X)
    assert_allclose(draws, sample_proba(newer, ASKED, 5, 0, X_train=X), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(
    "multi_class" not in LogisticRegression().get_params(), reason="scikit-learn >= 1.8"
)
@pytest.mark.parametrize(
    ("options", "y"),
    [
        ({"multi_class": "ovr"}, Y),
        ({"solver": "liblinear"}, Y),
        ({"multi_class": "multinomial"}, Y == "no"),
    ],
    ids=["ovr", "liblinear", "multinomial"],
)
def test_deprecated_ways_with_several_classes_are_refused(options, y):
    model = LogisticRegression(**options).fit(X, y)
    with pytest.raises(TypeError, match=r"deprecated combination.*OneVsRestClassifier"):
        sample_proba(model, ASKED, 5, 0, X_train=X)


def test_several_outputs_that_are_no_labels_are_refused():
    y = np.stack([X[:, 0] > 0, X[:, 1] > 0], axis=1) + 1
    model = RandomForestClassifier(3).fit(X, y)
    with pytest.raises(TypeError, match="predicts several outputs"):
        sample_proba(model, ASKED, 5, 0)


@pytest.mark.parametrize("model", [LogisticRegression(), RandomForestClassifier()])
def test_an_unfitted_model_is_named(model):
    with pytest.raises(NotFittedError, match=type(model).__name__):
        sample_proba(model, ASKED, 5, 0, X_train=X)


@pytest.mark.parametrize("n_draws", [0, -1, 2.5, None])
def test_a_number_of_draws_that_is_none_is_named(n_draws):
    model = ENSEMBLES[0].fit(X, Y)
    with pytest.raises(ValueError, match=r"n_draws' must be an int from 1 to 1000000"):
        sample_proba(model, ASKED, n_draws, 0)


@pytest.mark.parametrize("kind", [BertClassifier, BertRegressor, "self-training"])
def test_an_encoder_without_dropout_is_told_to_set_it(kind):
    off = "has mc_dropout=None, which makes no draws. Set mc_dropout='head'"
    model = (BertClassifier if kind == "self-training" else kind)(mc_dropout=None)
    if kind == "self-training":
        model = SelfTraining(model)
        model.estimator_ = model.estimator
    with pytest.raises(TypeError, match=off):
        check_can_sample(model)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimator", 5),
        ("X", "a text"),
        ("X", [["a", "b"]]),
        ("X", {0: [1.0, 2.0]}),
        ("X", []),
        ("X_train", [[[0.0]]]),
        ("X_train", {0: [1.0, 2.0]}),
        ("y_train", ["a"]),
        ("y_train", 5),
        ("sample_weight", ["a"] * len(X)),
        ("sample_weight", [1.0]),
        ("sample_weight", np.inf),
        ("n_draws", 0),
        ("random_state", "0"),
    ],
)
def test_a_wrong_argument_is_named(name, value):
    valid = {"estimator": LogisticRegression().fit(X, Y), "X": X, "n_draws": 2}
    valid |= {"random_state": 0, "X_train": X, "y_train": Y}
    with pytest.raises((TypeError, ValueError)) as caught:
        sample_proba(**valid | {name: value})
    notes = getattr(caught.value, "__notes__", [])
    assert re.search(rf"\b{name}\b", "\n".join([str(caught.value), *notes]))
