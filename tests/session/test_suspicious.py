"""Labels that the other labels contradict; cleanlab is the oracle."""

import warnings

import numpy as np
import pytest
from cleanlab.filter import find_label_issues
from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner, ClassDescriptions
from skactive.estimation._suspicious import (
    find_suspicious,
    find_suspicious_numbers,
    find_suspicious_rows,
    temper,
)
from skactive.semi_supervised import SelfTraining
from skactive.session._doubts import find_supervised


def noisy(seed, n=300, k=4, noise=0.2, sharpness=2.0):
    """Return probabilities (n, k) and labels (n,) of which some are wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    logits = rng.normal(size=(n, k)) + sharpness * np.eye(k)[truth]
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    wrong = rng.random(n) < noise
    return proba, np.where(wrong, rng.integers(k, size=n), truth)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [2, 4, 7])
def test_the_order_is_that_of_cleanlab(seed, k):
    proba, codes = noisy(seed, k=k, sharpness=0.5 + seed)
    expected = find_label_issues(
        codes,
        proba,
        return_indices_ranked_by="normalized_margin",
        filter_by="confident_learning",
        n_jobs=1,
    )
    assert len(expected) > 10
    np.testing.assert_array_equal(find_suspicious(proba, codes), expected)


def test_classes_of_one_item_and_items_without_probabilities_are_left_out():
    proba, codes = noisy(0, k=3)
    found = find_suspicious(proba, codes)
    more = np.column_stack([proba, np.full(300, 1e-3)])
    more = np.vstack([more, [0.9, 0.05, 0.05, 0.0], np.full(4, np.nan)])
    np.testing.assert_array_equal(find_suspicious(more, np.r_[codes, 3, 0]), found)


def test_wrong_answers_of_a_session_come_first(open_session, data):
    X, truth = data
    wrong = np.argsort(X[:40, 0] * (truth[:40] != "ham"))[:2]  # far from "ham"
    y = truth.copy()
    y[wrong] = "ham"
    session = open_session(refit=False)
    session.tell(range(40), y[:40], unasked=True)
    seq = session._core.state.seq
    found = session.suspicious(2)
    assert {id for id, *_ in found} == set(wrong.tolist())
    for id, label, predicted, probability in found:
        assert label == y[id] == session.labels[id]
        assert predicted == truth[id]
        assert type(probability) is float
        assert probability > 0.5
    assert session.suspicious(2) == found  # the folds do not change
    assert session._core.state.seq == seq


def test_labels_from_before_the_session_are_trained_on_but_not_judged(
    open_session, learner, data
):
    X, y = data
    before = y[:20].copy()
    before[0] = "ham" if y[0] != "ham" else "eggs"
    session = open_session(learner=learner.fit(X[:20], before), refit=False)
    session.tell(range(20, 24), y[20:24], unasked=True)
    assert {id for id, *_ in session.suspicious()} <= set(range(20, 24))


def test_texts_whose_features_are_trained(open_session):
    texts = [f"the {word} film {i}" for i in range(15) for word in ("good", "bad")]
    labels = ["pos", "neg"] * 15
    labels[4] = "neg"
    estimator = make_pipeline(TfidfVectorizer(), LogisticRegression())
    session = open_session(texts, learner=ActiveLearner(estimator, random_state=0))
    session.tell(range(30), labels, unasked=True)
    assert session.suspicious(1)[0][:3] == (4, "neg", "pos")


def test_self_training_is_judged_by_its_labels_alone(open_session, data, monkeypatch):
    y = data[1].copy()
    y[4] = "ham" if y[4] != "ham" else "eggs"
    student = LogisticRegression()
    several = make_pipeline(StandardScaler(), SelfTraining(student, cv=None))
    learner = ActiveLearner(several, random_state=0)
    session = open_session(learner=learner, refit=False)
    session.tell(range(40), y[:40], unasked=True)
    monkeypatch.setattr(SelfTraining, "fit", None)  # and without the unlabeled items
    found = session.suspicious(40)
    assert (4, y[4], data[1][4]) in [row[:3] for row in found]
    assert all(label != predicted for _, label, predicted, _ in found)


def test_held_out_probabilities_are_calibrated():
    codes = np.repeat([0, 1, 2], [50, 50, 1])
    right = np.arange(101) % 5 > 0  # 80 % are right
    best = np.where(right, codes, (codes + 1) % 2)
    proba = np.full((101, 3), 1e-4)
    proba[np.arange(101), best] = 1 - 2e-4  # and all are sure
    proba[100] = np.nan
    found = temper(proba, codes)
    assert np.isnan(found[100]).all()
    np.testing.assert_allclose(found[:100].max(axis=1), 0.8, atol=0.02)
    np.testing.assert_allclose(found[:100].sum(axis=1), 1)
    assert temper(proba[100:], codes[100:]) is not None


@pytest.mark.parametrize("labels", [[], ["a"], ["a", "a", "a"]])
def test_too_few_labels_contradict_nothing(open_session, labels):
    session = open_session(refit=False)
    if labels:
        session.tell(range(len(labels)), labels, unasked=True)
    assert session.suspicious() == []


def test_other_estimators_are_refused(open_session):
    session = open_session(learner=ActiveLearner(Perceptron(), random_state=0))
    session.tell(range(6), [0, 1, 0, 1, 0, 1], unasked=True)
    with pytest.raises(TypeError, match=r"a classifier with predict_proba .*, got"):
        session.suspicious()
    with pytest.raises(ValueError, match="'n_items' must be"):
        session.suspicious(0)


# Several classes, and numbers


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_with_an_issue_by_cleanlab(seed):
    rng = np.random.default_rng(seed)
    truth = rng.random((300, 3)) < [0.5, 0.3, 0.2]
    proba = 1 / (1 + np.exp(-rng.normal(size=truth.shape) - np.where(truth, 1.5, -1.5)))
    y = (truth ^ (rng.random(truth.shape) < 0.1)).astype(int)
    rows, columns = find_suspicious_rows(proba, y)
    by_class = find_multilabel_issues_per_class(
        [np.flatnonzero(row).tolist() for row in y],
        proba,
        return_indices_ranked_by="normalized_margin",
        filter_by="confident_learning",
        n_jobs=1,
    )[0]
    assert set(rows.tolist()) == {row for found in by_class for row in found}
    own = np.where(y == 1, proba, 1 - proba)
    worst = []
    for row, column in zip(rows, columns, strict=True):
        doubted = [j for j in range(3) if row in by_class[j]]
        assert own[row, column] == min(own[row, j] for j in doubted)
        worst.append(own[row, column] - max(proba[row, column], 1 - proba[row, column]))
    assert worst == sorted(worst)


def test_residuals_above_three_medians():
    predicted, y = np.zeros(7), np.array([1.0, -1, 1, -9.0, 1, 4, 1])
    rows, sizes = find_suspicious_numbers(predicted, y)
    assert (rows.tolist(), sizes.tolist()) == ([3, 5], [9.0, 4.0])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["linear", "forest"])
@pytest.mark.parametrize("as_rows", [False, True], ids=["names", "rows"])
def test_wrong_names_of_a_session_come_first(open_session, estimator, as_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * 4
    y = (X[:, :2] > 0).astype(int)
    wrong = np.argsort(-np.abs(X[:40, 0]))[:2]
    y[wrong, 0] = 1 - y[wrong, 0]
    model = OneVsRestClassifier(LogisticRegression())
    if estimator == "forest":
        model = RandomForestClassifier(30)

    def as_label(row):
        names = [name for name, x in zip(["ham", "spam"], row, strict=True) if x]
        return list(row) if as_rows else names

    learner = ActiveLearner(model, "random", random_state=0)
    session = open_session(X, learner=learner, refit=False)
    session.tell({i: as_label(y[i].tolist()) for i in range(40)}, unasked=True)
    found = session.suspicious(2)
    assert len(found) == 2 or estimator == "forest"  # trees learn a wrong neighbor
    assert found
    assert {id for id, *_ in found} <= set(wrong.tolist())
    for id, label, predicted, probability in found:
        assert label == session.labels[id]
        assert predicted == as_label([1 - y[id, 0], y[id, 1]])
        assert type(probability) is float
        assert probability > 0.5
    assert session.suspicious(2) == found


def test_wrong_numbers_of_a_session_come_first(open_session):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] + 0.01 * X[:, 1] ** 2
    y[[7, 30]] += [5.0, -9.0]
    learner = ActiveLearner(LinearRegression(), "random", random_state=0)
    session = open_session(X, learner=learner, refit=False)
    session.tell({i: y[i] for i in range(40)}, unasked=True)
    found = session.suspicious(2)
    assert [id for id, *_ in found] == [30, 7]
    assert [label for _, label, _, _ in found] == [y[30], y[7]]
    assert abs(found[0][2] - X[30, 0]) < 1
    assert found[0][3] > found[1][3] > 3


@pytest.mark.parametrize("told", [["ham"], ["ham", "spam"]], ids=["one", "two"])
def test_classes_that_a_fold_lacks(open_session, data, told):
    learner = ActiveLearner(
        MultiOutputClassifier(LogisticRegression()), "random", random_state=0
    )
    session = open_session(learner=learner, refit=False, multi_label=True)
    labels = {i: [name for name in told if i % 2] for i in range(30)}
    session.tell({**labels, 31: ["eggs"]}, unasked=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = session.suspicious(50)
    assert found  # the labels alternate
    assert all("eggs" not in predicted for _, _, predicted, _ in found)


def test_few_names_and_no_probabilities(open_session, data):
    learner = ActiveLearner(OneVsRestClassifier(Perceptron()), "random", random_state=0)
    session = open_session(learner=learner, refit=False)
    session.tell({1: ["ham"]}, unasked=True)
    assert session.suspicious() == []
    session.tell({2: []}, unasked=True)
    with pytest.raises(TypeError, match="must have predict_proba for doubts"):
        session.suspicious()


def test_answers_are_checked_by_what_describes_their_classes():
    model = make_pipeline(TfidfVectorizer(), SelfTraining(LogisticRegression()))
    described = ClassDescriptions(model, {"yes": "good", "no": "bad"})
    supervised = find_supervised(described)
    assert supervised.descriptions == described.descriptions
    assert isinstance(supervised.estimator[-1], LogisticRegression)
    assert find_supervised(model)[-1] is model[-1].estimator
    assert find_supervised(ClassDescriptions(LogisticRegression(), ["a", "b"])) is None
