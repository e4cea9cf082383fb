"""Gradients and boundaries of linear classifiers against autograd and brute force."""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC, NuSVC

from skactive._utils._linear import (
    boundary_distance,
    check_boundary,
    check_gradient_factors,
    distance_from_scores,
    gradient_factors,
)

# The defaults of LogisticRegressionCV change from version to version.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

LOADERS = {2: load_breast_cancer, 3: load_iris, 10: load_digits}
LOGISTIC = [
    LogisticRegression(),
    LogisticRegression(fit_intercept=False),
    LogisticRegressionCV(Cs=[1.0], cv=2),
    SGDClassifier(loss="log_loss", random_state=0),
    OneVsRestClassifier(LogisticRegression()),
]
LINEAR = [
    *LOGISTIC,
    LinearSVC(random_state=0),
    LinearSVC(fit_intercept=False, random_state=0),
    SGDClassifier(random_state=0),
    Perceptron(random_state=0),
    RidgeClassifier(),
    LinearDiscriminantAnalysis(),
    OneVsRestClassifier(SVC(kernel="linear")),
]


def load(k, n=60):
    X, y = LOADERS[k](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:n]
    return scale(X[order]), y[order]


def by_repr(models):
    return {"ids": [repr(model) for model in models], "argvalues": models}


# Gradient factors


@pytest.mark.long
@pytest.mark.parametrize("k", LOADERS)
@pytest.mark.parametrize("model", **by_repr(LOGISTIC))
def test_residuals_are_probabilities_less_the_predicted_class(model, k):
    X, y = load(k)
    model.fit(X, y)
    residuals, inputs = gradient_factors(model, X)
    proba = model.predict_proba(X)
    for row, p in zip(residuals, proba, strict=True):
        expected = [p[c] - (c == list(p).index(max(p))) for c in range(k)]
        assert_allclose(row, expected, atol=1e-15)
    assert inputs is X


@pytest.mark.parametrize("k", LOADERS)
def test_the_outer_product_is_the_gradient_that_autograd_finds(k):
    X, y = load(k)
    model = LogisticRegression().fit(X, y)
    residuals, inputs = gradient_factors(model, X)
    # Two classes as a softmax of two logits: any weights with the same difference.
    coef, intercept = model.coef_, model.intercept_
    if k == 2:
        coef, intercept = np.vstack([-coef, coef]) / 2, np.r_[-intercept, intercept] / 2
    weights = torch.tensor(coef, requires_grad=True)
    for i, row in enumerate(X):
        logits = weights @ torch.tensor(row) + torch.tensor(intercept)
        loss = torch.nn.functional.cross_entropy(logits, logits.argmax())
        (gradient,) = torch.autograd.grad(loss, weights)
        assert_allclose(np.outer(residuals[i], inputs[i]), gradient, atol=1e-12)


def test_one_logit_has_norms_smaller_by_the_root_of_two():
    X, y = load(2)
    model = LogisticRegression().fit(X, y)
    residuals, inputs = gradient_factors(model, X)
    ours = np.linalg.norm(residuals, axis=1) * np.linalg.norm(inputs, axis=1)
    weights = torch.tensor(model.coef_[0], requires_grad=True)
    for norm, row in zip(ours, X, strict=True):
        logit = weights @ torch.tensor(row) + float(model.intercept_[0])
        target = (logit > 0).double()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logit, target)
        (gradient,) = torch.autograd.grad(loss, weights)
        assert norm == pytest.approx(np.sqrt(2) * float(gradient.norm()), rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_memory_map_is_not_copied(tmp_path, dtype):
    X, y = load(3)
    np.save(tmp_path / "X.npy", X.astype(dtype))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = LogisticRegression().fit(mapped, y)
    _, inputs = gradient_factors(model, mapped)
    assert inputs.dtype == dtype
    assert np.shares_memory(inputs, mapped)
    assert_array_equal(boundary_distance(model, mapped).shape, (60,))


def test_sparse_rows_stay_sparse():
    X, y = load(3)
    X[X < 0] = 0
    model = LogisticRegression().fit(X, y)
    rows = sparse.csr_array(X)
    residuals, inputs = gradient_factors(model, rows)
    assert inputs is rows
    assert gradient_factors(model, rows.tocsc())[1].format == "csr"
    assert_allclose(residuals, gradient_factors(model, X)[0])
    assert_allclose(boundary_distance(model, rows), boundary_distance(model, X))


def test_known_probabilities_are_not_predicted_again_nor_changed():
    X, y = load(3)
    model = LogisticRegression().fit(X, y)
    given = np.tile([0.25, 0.75, 0.0], (60, 1))
    residuals, _ = gradient_factors(model, X, given)
    assert_array_equal(residuals, np.tile([0.25, -0.25, 0.0], (60, 1)))
    assert given[0, 1] == 0.75


class OwnMethods(GaussianNB):
    def gradient_factors(self, X):
        return "own factors"

    def boundary_distance(self, X):
        return "own distance"


def test_an_own_method_goes_first():
    X, y = load(3)
    model = OwnMethods().fit(X, y)
    check_gradient_factors(model)
    check_boundary(model)
    assert gradient_factors(model, X) == "own factors"
    assert boundary_distance(model, X) == "own distance"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GaussianNB(), "GaussianNB has no gradient_factors and is no linear logistic"),
        (SGDClassifier(), r"SGDClassifier\(loss='hinge'\) has no gradient_factors"),
        (SGDClassifier(loss="modified_huber"), r"loss='modified_huber'\) has no grad"),
        (OneVsRestClassifier(LinearSVC()), "Use LogisticRegression, SGDClassifier"),
    ],
)
def test_models_without_a_linear_log_loss_are_refused(model, message):
    X, y = load(3)
    model.fit(X, y)
    for call in (check_gradient_factors, lambda m: gradient_factors(m, X)):
        with pytest.raises(TypeError, match=message):
            call(model)


# Distance to the boundary


@pytest.mark.long
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("model", **by_repr(LINEAR))
def test_the_nearest_other_prediction_is_just_that_far(model, k):
    X, y = load(k)
    X = X[:, :2].copy()
    model.fit(X, y)
    angles = np.deg2rad(np.linspace(0, 360, 721))
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    distance = boundary_distance(model, X)
    rows = list(zip(X, model.predict(X), distance, strict=True))
    for x, own, d in rows[::3]:
        assert (model.predict(x + d * (1 - 1e-9) * circle) == own).all()
        # No direction is more than a quarter of a degree from the best one.
        beyond = d / np.cos(np.deg2rad(0.25)) * (1 + 1e-9) + 1e-12
        assert (model.predict(x + beyond * circle) != own).any()


@pytest.mark.long
@pytest.mark.parametrize("k", LOADERS)
@pytest.mark.parametrize("model", **by_repr(LINEAR))
def test_sparse_and_float32_and_threads_agree(model, k):
    X, y = load(k)
    model.fit(X, y)
    expected = boundary_distance(model, X)
    assert_allclose(boundary_distance(model, sparse.csr_array(X)), expected, rtol=1e-7)
    assert_allclose(boundary_distance(model, X.astype(np.float32)), expected, rtol=1e-2)
    assert_array_equal(boundary_distance(model, X, n_jobs=2), expected)
    assert (expected >= 0).all()


def test_sparse_weights_serve_too():
    X, y = load(3)
    model = SGDClassifier(random_state=0).fit(X, y)
    expected = boundary_distance(model, X)
    assert_allclose(boundary_distance(model.sparsify(), X), expected)


def test_hand_made_scores():
    weights = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    scores = np.array([[2.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    # Row 0: 2 / |(2, 0)| = 1 against 1 / |(1, -1)|; row 1 lies on a boundary.
    assert_allclose(distance_from_scores(scores, weights), [np.sqrt(0.5), 0.0])


def test_equal_weights_have_a_boundary_everywhere_or_nowhere():
    weights = np.array([[1.0, 0.0], [1.0, 0.0]])
    scores = np.array([[2.0, 2.0], [2.0, 1.0]])
    assert_array_equal(distance_from_scores(scores, weights), [0, np.inf])
    flat = np.zeros((1, 2))
    assert_array_equal(distance_from_scores(np.array([[0.0], [-3]]), flat), [0, np.inf])


@pytest.mark.parametrize("model", [SVC(kernel="linear"), NuSVC(kernel="linear")])
def test_one_vs_one_has_a_distance_for_two_classes_only(model):
    X, y = load(2)
    model.fit(X, y)
    expected = np.abs(model.decision_function(X)) / np.linalg.norm(model.coef_)
    assert_allclose(boundary_distance(model, X), expected)
    X, y = load(3)
    model.fit(X, y)
    assert model.coef_.shape[0] == 3  # pairs, as many as classes
    with pytest.raises(TypeError, match=r"with 3 classes votes one-vs-one.*LinearSVC"):
        check_boundary(model)


@pytest.mark.parametrize("model", [GaussianNB(), SVC(), OneVsRestClassifier(SVC())])
def test_models_without_a_hyperplane_are_refused(model):
    X, y = load(3)
    model.fit(X, y)
    for call in (check_boundary, lambda m: boundary_distance(m, X)):
        with pytest.raises(TypeError, match=f"{type(model).__name__} has no boundary_"):
            call(model)


@pytest.mark.parametrize("kind", [OneVsRestClassifier, MultiOutputClassifier])
def test_several_labels_have_the_gradient_of_the_sum_of_their_losses(kind):
    X, y = load(3)
    model = kind(LogisticRegression()).fit(X, np.eye(3, dtype=int)[y])
    check_gradient_factors(model)
    proba = model.predict_proba(X)
    if isinstance(proba, list):
        proba = np.stack([each[:, 1] for each in proba], axis=1)
    residuals, inputs = gradient_factors(model, X, proba)
    assert_allclose(residuals, proba - model.predict(X))
    assert_allclose(inputs, X)


@pytest.mark.parametrize("part", [LogisticRegression(), LinearSVC()], ids=repr)
def test_the_nearest_boundary_of_any_label_is_measured(part):
    X, y = load(3)
    several = np.column_stack([np.eye(3, dtype=int)[y], np.zeros(len(y), dtype=int)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = OneVsRestClassifier(part).fit(X, several)  # one label never occurs
    distances = boundary_distance(model, X)
    expected = [
        abs(X @ each.coef_[0] + each.intercept_[0]) / np.linalg.norm(each.coef_)
        for each in model.estimators_[:3]
    ]
    assert_allclose(distances, np.min(expected, axis=0))
    # A step that long changes the predicted labels, a shorter one does not.
    nearest = np.argmin(expected, axis=0)
    for i in range(0, len(X), 9):
        each = model.estimators_[nearest[i]]
        direction = each.coef_[0] / np.linalg.norm(each.coef_)
        value = X[i] @ each.coef_[0] + each.intercept_[0]
        before = model.predict(X[[i]])
        for share, changes in ((0.999, False), (1.001, True)):
            moved = X[i] - np.sign(value) * share * distances[i] * direction
            assert (model.predict(moved[None]) != before).any() == changes


def test_residuals_of_a_sure_model_sum_to_zero():
    # 1 - 1e-18 is 1 in floats.
    model = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    proba = np.array([[1e-18, 1.0], [1.0, 1e-30], [0.3, 0.7]])
    residuals, _ = gradient_factors(model, np.zeros((3, 1)), proba)
    expected = [[1e-18, -1e-18], [-1e-30, 1e-30], [0.3, -0.3]]
    assert_allclose(residuals, expected, rtol=1e-15, atol=0)
