"""MixtureClassifier: weights by held-out labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skactive._math._calibration import deal_in_order, mixture_weights
from skactive._math._scores import tune_thresholds
from skactive.linear_model import TunedOneVsRestClassifier
from skactive.semi_supervised import MixtureClassifier, SelfTraining
from skactive.semi_supervised._mixture import _list_kinds

PARTS = [("line", LogisticRegression()), ("near", KNeighborsClassifier(3))]


def draw(n, seed=0):
    return make_classification(n, n_informative=4, n_classes=3, random_state=seed)


@pytest.mark.parametrize("prior", [0.0, 2.0, 30.0])
@pytest.mark.parametrize("k", [2, 4])
def test_oracle_of_the_weights_a_general_optimizer(k, prior):
    rng = np.random.default_rng([k, int(prior)])
    likelihood, weight = rng.random((40, k)) ** 3, rng.random(40) * 3

    def loss(z):
        shares = np.exp(z - np.logaddexp.reduce(z))
        fit = weight @ np.log(likelihood @ shares)
        return -fit - prior / k * np.log(shares + 1e-300).sum()

    best = min(
        (minimize(loss, rng.normal(size=k), tol=1e-12) for _ in range(5)),
        key=lambda found: found.fun,
    )
    expected = np.exp(best.x - np.logaddexp.reduce(best.x))
    assert_allclose(mixture_weights(likelihood, weight, prior), expected, atol=2e-4)


def test_without_held_out_labels_weights_are_equal():
    assert_array_equal(mixture_weights(np.empty((0, 4)), np.empty(0), 2), [0.25] * 4)


def test_a_later_label_moves_none():
    codes = np.random.default_rng(0).integers(4, size=60)
    whole = deal_in_order(codes, 3)
    for n in (10, 30, 59):
        assert_array_equal(deal_in_order(codes[:n], 3), whole[:n])
    for code in range(4):
        sizes = np.bincount(whole[codes == code], minlength=3)
        assert np.ptp(sizes) <= 1


def test_a_class_with_one_label_does_not_choose_weights():
    X, y = draw(60)
    y = np.append(y, 9)
    model = MixtureClassifier(PARTS, random_state=0).fit(np.vstack([X, X[:1]]), y)
    assert model.n_held_out_ == 60


def test_the_mixture_is_that_of_its_parts():
    X, y = draw(60)
    model = MixtureClassifier(PARTS, random_state=0).fit(X, y)
    mixed = sum(
        model.weights_[name] * part.predict_proba(X)
        for name, part in model.parts_.items()
    )
    expected = mixed ** (1 / model.temperature_)
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X), expected)
    assert model.n_held_out_ == 60
    assert sum(model.weights_.values()) == pytest.approx(1)


def test_a_part_that_knows_nothing_has_little_weight():
    X, y = make_blobs(90, centers=3, random_state=0)
    parts = [("none", DummyClassifier(strategy="prior")), PARTS[0]]
    model = MixtureClassifier(parts, random_state=0).fit(X, y)
    assert model.weights_["none"] < 0.1


def test_a_weight_counts_as_repeats_in_the_choice():
    likelihood = np.random.default_rng(0).random((40, 2))
    weight = np.arange(40) % 3
    rows = np.repeat(np.arange(40), weight)
    assert_allclose(
        mixture_weights(likelihood, weight, 2),
        mixture_weights(likelihood[rows], np.ones(len(rows)), 2),
        atol=1e-6,
    )


def test_machine_rows_are_trained_on_and_not_held_out():
    X, y = draw(60)
    model = MixtureClassifier(PARTS, random_state=0).fit(X, y, n_labeled=20)
    assert model.n_held_out_ <= 20
    expected = LogisticRegression().fit(X, y).coef_
    assert_allclose(model.parts_["line"].coef_, expected)
    assert MixtureClassifier(PARTS).fit(X, y, n_labeled=0).n_held_out_ == 0


class Three(ClassifierMixin, BaseEstimator):
    """A classifier that knows a class more than its labels have."""

    def fit(self, X, y):
        self.classes_ = np.arange(4)
        return self

    def predict_proba(self, X):
        return np.tile([0.1, 0.2, 0.3, 0.4], (len(X), 1))


def test_classes_of_any_part_have_a_column():
    X, y = draw(60)
    model = MixtureClassifier([PARTS[0], ("more", Three())]).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    mixed = np.pad(model.parts_["line"].predict_proba(X), ((0, 0), (0, 1)))
    mixed = model.weights_["line"] * mixed
    mixed += model.weights_["more"] * np.array([0.1, 0.2, 0.3, 0.4])
    expected = mixed ** (1 / model.temperature_)
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X), expected)


def test_unlabeled_items_reach_the_parts_that_take_them():
    X, y = draw(90)
    taught = SelfTraining(LogisticRegression(), cv=None, random_state=0)
    model = MixtureClassifier([("taught", taught), PARTS[0]])
    model.fit(X[:30], y[:30], X_unlabeled=X[30:])
    assert len(model.parts_["taught"].pseudo_labels_) > 0
    alone = LogisticRegression().fit(X[:30], y[:30])
    assert_array_equal(model.parts_["line"].coef_, alone.coef_)


def test_weights_reach_parts_behind_the_steps_of_a_pipeline():
    X, y = draw(60)
    weights = np.linspace(0.1, 3, 60)
    behind = make_pipeline(FunctionTransformer(), LogisticRegression())
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, cv=2)
    model = MixtureClassifier([("one", behind), ("other", search)])
    model.fit(X, y, sample_weight=weights)
    one, other = (part.predict_proba(X) for part in model.parts_.values())
    assert_allclose(one, LogisticRegression().fit(X, y, weights).predict_proba(X))
    assert_allclose(other, GaussianNB().fit(X, y, weights).predict_proba(X))


def test_a_part_without_weights_is_named():
    X, y = draw(60)
    near = make_pipeline(FunctionTransformer(), KNeighborsClassifier())
    model = MixtureClassifier([PARTS[0], ("near", near)]).fit(X, y)
    with pytest.raises(TypeError, match=r"sample_weight.*got Pipeline as 'near'"):
        model.fit(X, y, sample_weight=np.full(60, 2.0))


def draw_several(n, seed=0):
    """Return items, and an indicator matrix of three labels, the last one rare."""
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, (X[:, :3] > [0, 0.2, 1.3]).astype(int)


LINE = "line", OneVsRestClassifier(LogisticRegression())
WEAK = "weak", TunedOneVsRestClassifier(LogisticRegression(C=0.05))


def test_several_labels_of_an_item():
    X, Y = draw_several(80)
    model = MixtureClassifier([LINE, WEAK])
    model.fit(X, Y)
    assert model.multi_label_
    assert model.n_held_out_ == 80
    mixed = sum(
        model.weights_[name] * part.predict_proba(X)
        for name, part in model.parts_.items()
    )
    assert_allclose(model.predict_proba(X), mixed)
    assert_array_equal(model.predict(X), mixed > model.thresholds_)
    # Oracle: the likelihood of all labels of the folds, by a general optimizer.
    held = np.empty((2, *Y.shape))
    for rows, mixture in model.__skactive_folds__():
        for i, part in enumerate(mixture.parts_.values()):
            held[i, rows] = part.predict_proba(X[rows])
    assert_array_equal(
        model.thresholds_,
        tune_thresholds(np.tensordot([*model.weights_.values()], held, 1), Y),
    )

    def loss(w):
        p = w * held[0] + (1 - w) * held[1]
        fits = np.log(np.where(Y, p, 1 - p)).mean(axis=1).sum() * 1.0
        return -fits - np.log(w) - np.log(1 - w)  # a prior of 2 labels

    best = minimize_scalar(loss, bounds=(0, 1), method="bounded").x
    assert model.weights_["line"] == pytest.approx(best, abs=1e-3)
    assert model.score(X, Y) > 0.7


def test_a_later_row_of_several_labels_moves_none():
    _, Y = draw_several(40)
    kinds = _list_kinds(Y)
    assert_array_equal(_list_kinds(Y[:25]), kinds[:25])
    for i, row in enumerate(Y):  # the rarest so far, by hand
        own = np.flatnonzero(row)
        counts = Y[: i + 1].sum(axis=0)[own]
        assert kinds[i] == (own[counts.argmin()] if len(own) else 3)


def test_a_part_of_one_label_refuses_several_and_numbers_are_no_indicators():
    X, Y = draw_several(30)
    for parts, several in ((PARTS, Y), ([LINE], 2 * Y)):
        with pytest.raises(TypeError, match="one label per item for MixtureClassifier"):
            MixtureClassifier(parts).fit(X, several)


@pytest.mark.parametrize(
    ("parts", "error", "match"),
    [
        ([], ValueError, r"'parts' must have a classifier, got \[\]"),
        (
            [("a", 3)],
            TypeError,
            "'parts' must have fit and predict_proba, got 3 as 'a'",
        ),
        ([PARTS[0], PARTS[0]], ValueError, "unique"),
        ([("parts", PARTS[0][1])], ValueError, "conflict"),
    ],
)
def test_bad_parts(parts, error, match):
    with pytest.raises(error, match=match):
        MixtureClassifier(parts).fit(*draw(20))


def test_parameters_of_parts():
    model = MixtureClassifier(PARTS).set_params(line__C=3, near=DummyClassifier())
    assert model.get_params()["line__C"] == 3
    assert type(model.parts[1][1]) is DummyClassifier


def test_parts_that_return_a_list_of_probabilities():
    X, Y = draw_several(60)
    model = MixtureClassifier([LINE, ("near", KNeighborsClassifier(5))]).fit(X, Y)
    near = np.stack([p[:, 1] for p in model.parts_["near"].predict_proba(X)], axis=1)
    expected = model.weights_["near"] * near
    expected += model.weights_["line"] * model.parts_["line"].predict_proba(X)
    assert_allclose(model.predict_proba(X), expected)
