"""Prototypes, and the choice among linear models by cross-validation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive._utils._linear import gradient_factors
from skactive.linear_model import FewLabelClassifier, PrototypeClassifier
from skactive.linear_model import _few_label as module
from skactive.posterior import sample_proba


def draw(n=60, k=3, d=8, seed=0, spread=0.6):
    """Return unit vectors around k directions and their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = 2 * np.eye(k, d)[y] + spread * rng.normal(size=(n, d))
    labels = np.array(list("abcdefghijklmnopqrst"))
    return X / np.linalg.norm(X, axis=1, keepdims=True), labels[y]


def data_of(X, y, weight=None):
    classes, codes = np.unique(y, return_inverse=True)
    weight = np.ones(len(X)) if weight is None else weight
    return module._Data(X, codes, weight, classes)


@pytest.mark.parametrize("k", [2, 3])
def test_prototypes_oracle_of_loops(k):
    X, y = draw(30, k)
    X = X * np.random.default_rng(1).uniform(0.5, 2, size=(30, 1))
    model = PrototypeClassifier(temperature=0.2).fit(X, y)
    cosines = np.empty((30, k))
    for j, label in enumerate(model.classes_):
        rows = [x / np.linalg.norm(x) for x in X[y == label]]
        mean = sum(rows) / len(rows)
        for i, x in enumerate(X):
            cosines[i, j] = x @ mean / np.linalg.norm(x) / np.linalg.norm(mean)
    assert_array_equal(model.predict(X), model.classes_[cosines.argmax(axis=1)])
    # Rows as long as the quadratic mean have exactly the softmax of the cosines.
    length = np.sqrt((X**2).sum(axis=1).mean())
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) * length
    assert_allclose(model.predict_proba(rows), softmax(cosines / 0.2, axis=1))


def test_one_example_per_class_suffices():
    X, y = draw(3)
    for model in (PrototypeClassifier(), FewLabelClassifier()):
        assert model.fit(X, y).score(X, y) == 1
    assert model.chosen_ == "prototypes"
    assert model.scores_ == {}


def test_weights_count_like_repeated_rows():
    X, y = draw(24)
    repeated = np.arange(24) % 5 == 0
    twice = np.concatenate([np.arange(24), np.flatnonzero(repeated)])
    weights = data_of(X, y, 1.0 + repeated)
    copies = data_of(X[twice], y[twice])
    for ours, theirs in zip(
        module._fit_prototypes(weights), module._fit_prototypes(copies), strict=True
    ):
        assert_allclose(ours, theirs)
    for ours, theirs in zip(
        module._fit_logistic(weights, weights.weight[None], [3.0], tol=1e-12),
        module._fit_logistic(copies, copies.weight[None], [3.0], tol=1e-12),
        strict=True,
    ):
        assert_allclose(ours, theirs, atol=2e-3)


def test_lda_oracle_of_scikit_learn():
    X, y = draw(50)
    data = data_of(X, y)
    means = module._means(data)
    residuals = X - means[data.codes]
    covariance = ledoit_wolf(residuals, assume_centered=True)[0]
    assert_allclose(
        module._shrink(residuals, data.weight), covariance, atol=3e-6, rtol=1e-6
    )
    coef, intercept = module._fit_lda(data)
    oracle = LinearDiscriminantAnalysis(solver="lsqr", priors=[1 / 3] * 3)
    oracle.fit(X, y)
    oracle.coef_ = np.linalg.solve(covariance, means.T).T
    oracle.intercept_ = -0.5 * (oracle.coef_ * means).sum(axis=1)
    ours = log_softmax(X @ coef.T + intercept, axis=1)
    assert_allclose(ours, oracle.predict_log_proba(X), atol=1e-3)


@pytest.mark.parametrize("k", [2, 4, 20])
def test_logistic_oracle_of_scikit_learn(k):
    n = max(40, 10 * k)
    X, y = draw(n, k)
    weights = np.random.default_rng(0).integers(0, 3, size=(3, n)).astype(float)
    strengths = [1.0, 10.0, 100.0]
    coef, intercept = module._fit_logistic(
        data_of(X, y), weights, strengths, max_iter=2000, tol=1e-13
    )
    for j, C in enumerate(strengths):
        # Two classes have two rows here, w and -w: the penalty is that of 2 w once.
        C = C * n / weights[j].sum()
        oracle = LogisticRegression(C=C if k > 2 else 2 * C, tol=1e-9, max_iter=9999)
        oracle.fit(X, y, weights[j])
        ours = softmax(X @ coef[j].T + intercept[j], axis=1)
        assert_allclose(ours, oracle.predict_proba(X), atol=3e-3)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_balanced_logistic_oracle_of_scikit_learn(k, weighted):
    X, y = draw(80, k, spread=1.0)
    kept = np.flatnonzero((y != "a") | (np.arange(80) < 20))  # class a is rare
    X, y = X[kept], y[kept]
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    ours = FewLabelClassifier(candidates=["balanced logistic C=10"])
    ours.fit(X, y, weight)
    totals = {label: weight[y == label].sum() for label in np.unique(y)}
    share = {label: weight.sum() / k / total for label, total in totals.items()}
    # Two classes have two rows here, w and -w: the penalty is that of 2 w once.
    oracle = LogisticRegression(C=10 if k > 2 else 20, class_weight=share, tol=1e-9)
    oracle.set_params(max_iter=9999).fit(X, y, weight)
    assert_allclose(ours.predict_proba(X), oracle.predict_proba(X), atol=3e-3)
    plain = FewLabelClassifier(candidates=["logistic C=10"]).fit(X, y, weight)
    assert np.abs(ours.predict_proba(X) - plain.predict_proba(X)).max() > 0.05


def test_a_smaller_tol_is_nearer_to_the_optimum():
    X, y = draw(60, spread=1.0)
    models = [
        FewLabelClassifier(candidates=["logistic C=10"], tol=tol).fit(X, y)
        for tol in (1e-2, 1e-5, 1e-12)
    ]
    rough, fine, best = (model.predict_proba(X) for model in models)
    assert np.abs(fine - best).max() < 0.02 < np.abs(rough - best).max()


def test_folds_beyond_200_labels_are_not_held_out():
    X, y = draw(450, spread=1.0)
    names = ["prototypes", "lda"]
    model = FewLabelClassifier(candidates=names, random_state=3).fit(X, y)
    codes = np.searchsorted(model.classes_, y)
    folds = module.assign_folds(codes, 5, 3)
    held = folds < 3  # two folds of 90 are fewer than 200
    cosines = np.empty((450, 3))
    for fold in range(3):
        train, test = folds != fold, folds == fold
        part = PrototypeClassifier(temperature=1.0).fit(X[train], y[train])
        cosines[test] = X[test] @ part.prototypes_.T
    losses = [
        -log_softmax(cosines[held] / t, axis=1)[np.arange(270), codes[held]].mean()
        for t in np.geomspace(0.01, 10, 2000)
    ]
    assert model.scores_["prototypes"] == pytest.approx(min(losses), rel=1e-4)


def test_scores_are_the_log_losses_of_held_out_labels():
    X, y = draw(45, spread=1.0)
    model = FewLabelClassifier(random_state=3).fit(X, y)
    codes = np.searchsorted(model.classes_, y)
    folds = module.assign_folds(codes, 5, 3)
    for fold in range(5):
        assert_array_equal(np.bincount(codes[folds == fold]), [3, 3, 3])
    cosines = np.empty((45, 3))
    for fold in range(5):
        train, test = folds != fold, folds == fold
        part = PrototypeClassifier(temperature=1.0).fit(X[train], y[train])
        cosines[test] = X[test] @ part.prototypes_.T
    losses = [
        -log_softmax(cosines / t, axis=1)[np.arange(45), codes].mean()
        for t in np.geomspace(0.01, 10, 2000)
    ]
    assert model.scores_["prototypes"] == pytest.approx(min(losses), rel=1e-4)
    assert model.chosen_ == min(model.scores_, key=model.scores_.get)
    assert len(model.scores_) == 7


def test_oracle_few_held_out_labels_draw_the_temperature_to_1():
    X, y = draw(12, spread=1.5, seed=3)
    model = FewLabelClassifier(candidates=["prototypes", "lda"], random_state=3)
    model.fit(X, y)
    assert model.chosen_ == "prototypes"
    codes = np.searchsorted(model.classes_, y)
    folds = module.assign_folds(codes, 5, 3)
    logits = np.empty((12, 3))
    for fold in range(5):
        train, test = folds != fold, folds == fold
        part = PrototypeClassifier(temperature=0.1).fit(X[train], y[train])
        logits[test] = part.decision_function(X[test])
    grid = np.geomspace(np.exp(-5), np.exp(5), 4000)
    losses = [
        -log_softmax(logits / t, axis=1)[np.arange(12), codes].mean() for t in grid
    ]
    best = grid[np.argmin(losses)]
    assert abs(np.log(best)) > 0.2
    # 12 labels were held out; the temperature 1 counts for 10.
    assert model.temperature_ == pytest.approx(best ** (12 / 22), rel=0.05)


def test_probabilities_are_calibrated():
    X, y = draw(300, spread=1.5)
    X_test, y_test = draw(2000, spread=1.5, seed=1)
    proba = FewLabelClassifier(random_state=0).fit(X, y).predict_proba(X_test)
    is_right = np.array(["a", "b", "c"])[proba.argmax(axis=1)] == y_test
    assert abs(proba.max(axis=1).mean() - is_right.mean()) < 0.05


def test_rare_classes_are_never_held_out():
    codes = np.array([0] * 9 + [1] * 2 + [2])
    folds = module.assign_folds(codes, 5, 0)
    assert folds[-1] == -1
    assert folds[9] != folds[10]
    assert sorted(np.bincount(folds[:9])) == [1, 2, 2, 2, 2]


@pytest.mark.parametrize("codes", [[0, 1, 2, 2], [0, 0, 1, 2, 3], [2, 0, 0, 1, 1]])
def test_no_fold_is_empty_and_none_holds_a_whole_class(codes):
    codes = np.array(codes)
    for n_splits in (2, 3, 5):
        folds = module.assign_folds(codes, n_splits, 0)
        assert set(range(folds.max() + 1)) == set(folds[folds >= 0])
        for c in range(codes.max() + 1):
            if (codes == c).sum() > 1:
                assert len(set(folds[codes == c])) == 2


def test_the_same_seed_gives_the_same_model():
    X, y = draw(50, spread=1.2)
    one, other, third = (
        FewLabelClassifier(random_state=seed).fit(X, y) for seed in (0, 0, 1)
    )
    assert_array_equal(one.coef_, other.coef_)
    assert one.scores_ == other.scores_ != third.scores_


@pytest.mark.parametrize("k", [2, 3])
def test_strategies_of_every_kind_use_it(k):
    X, y = draw(90, k, spread=1.0)
    learner = ActiveLearner(FewLabelClassifier(random_state=0), random_state=0)
    learner.fit(X[:30], y[:30])
    for strategy in ("margin", "badge", "egl", "dfal", "coreset"):
        queried = learner.set_params(strategy=strategy).query(X[30:], 5)
        assert len(set(queried)) == 5
    with pytest.raises(TypeError, match=r"FewLabelClassifier.*LogisticRegression"):
        sample_proba(learner.estimator_, X, 3, X_train=X[:30])


def test_gradient_factors_are_those_of_its_softmax():
    X, y = draw(30)
    model = FewLabelClassifier(random_state=0).fit(X, y)
    residuals, inputs = gradient_factors(model, X)
    proba = model.predict_proba(X)
    expected = proba - np.eye(3)[proba.argmax(axis=1)]
    assert_allclose(residuals, expected, atol=1e-14)
    assert_array_equal(inputs, X)


def test_negative_weights_are_refused():
    X, y = draw(12)
    with pytest.raises(ValueError, match="sample_weight"):
        FewLabelClassifier().fit(X, y, -np.ones(12))


def test_rows_of_weight_0_are_ignored():
    X, y = draw(30)
    weights = np.ones(30)
    weights[y == "b"] = 0
    for model in (PrototypeClassifier(), FewLabelClassifier(random_state=0)):
        with_all = clone(model).fit(X, y, weights)
        without = clone(model).fit(X[y != "b"], y[y != "b"])
        assert_array_equal(with_all.classes_, ["a", "c"])
        assert_array_equal(with_all.coef_, without.coef_)


def test_a_single_class_is_refused():
    X, _ = draw(6)
    with pytest.raises(ValueError, match=r"at least two classes.*Label more items"):
        PrototypeClassifier().fit(X, ["a"] * 6)


def test_equal_rows_of_each_class_are_fitted():
    X = np.repeat(np.eye(2, 5), 4, axis=0)
    model = FewLabelClassifier(random_state=0).fit(X, np.repeat([0, 1], 4))
    assert model.score(X, np.repeat([0, 1], 4)) == 1
    assert np.isfinite(model.coef_).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [str, int])
def test_many_classes_with_few_labels_are_no_reason_to_warn(kind):
    X = np.eye(30)
    y = np.arange(30).astype(kind)
    for model in (PrototypeClassifier(), FewLabelClassifier(random_state=0)):
        assert_array_equal(model.fit(X, y).predict(X), y)


def test_numbers_that_are_no_classes_are_refused():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        FewLabelClassifier().fit(np.eye(4), [0.1, 0.2, 0.3, 0.5])


def test_some_candidates_or_one():
    X, y = draw(45, spread=1.0)
    all_of_them = FewLabelClassifier(random_state=0).fit(X, y)
    names = ["balanced logistic C=10", "lda", "prototypes"]
    some = FewLabelClassifier(candidates=names, random_state=0).fit(X, y)
    assert set(some.scores_) == set(names)
    for name in ("lda", "prototypes"):
        assert some.scores_[name] == all_of_them.scores_[name]
    one = FewLabelClassifier(candidates=["lda"]).fit(X, y)
    assert (one.chosen_, one.scores_, one.temperature_) == ("lda", {}, 1.0)
    alone = FewLabelClassifier(candidates=["balanced lda"]).fit(X[:3], y[:3])
    assert alone.score(X[:3], y[:3]) == 1


@pytest.mark.parametrize("candidates", [[], ["ridge"], ["lda", "ridge"]])
def test_unknown_candidates_are_named(candidates):
    X, y = draw(12)
    with pytest.raises(ValueError, match=r"'candidates' must be names among 'proto"):
        FewLabelClassifier(candidates=candidates).fit(X, y)
