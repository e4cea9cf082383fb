"""Draws of regressors: conjugate formulas, members, Gaussian processes, refusals."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeCV,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from skactive.posterior import (
    check_can_sample,
    sample_predictions,
    sample_proba,
    sampler,
    variance_function,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)) + 1.5
Y = 2 * X[:, 0] - X[:, 1] + RNG.normal(size=40) * 0.4
ASKED = RNG.normal(size=(7, 4))
WEIGHT = RNG.uniform(0.2, 3, 40)
TRAIN = {"X_train": X, "y_train": Y}
WIDE = RNG.normal(size=(12, 30)) + 0.5
WIDE_ASKED = RNG.normal(size=(6, 30))


def ridge_covariance(X, y, asked, alpha, weight=None, intercept=True, model=None):
    """Covariance (n, n) of the regression function by inverses, term by term."""
    weight = np.ones(len(X)) if weight is None else weight
    center = np.average(X, axis=0, weights=weight) if intercept else 0.0
    W, Xc = np.diag(weight), X - center
    inverse = np.linalg.inv(Xc.T @ W @ Xc + alpha * np.eye(X.shape[1]))
    hat = np.trace(Xc @ inverse @ Xc.T @ W) + intercept
    noise = (weight * (y - model.predict(X)) ** 2).sum() / max(1, len(X) - hat)
    moved = asked - center
    return noise * (moved @ inverse @ moved.T + intercept / weight.sum())


SQUARES = [
    (Ridge(alpha=2.0), 2.0, None, True),
    (Ridge(alpha=2.0), 2.0, WEIGHT, True),
    (Ridge(alpha=0.5, fit_intercept=False), 0.5, None, False),
    (Ridge(alpha=0.5, fit_intercept=False), 0.5, WEIGHT, False),
    (RidgeCV([3.0]), 3.0, None, True),
    (LinearRegression(), 0.0, None, True),
    (SGDRegressor(alpha=0.1, random_state=0), 0.1 * 40, None, True),
]


@pytest.mark.parametrize(("model", "alpha", "weight", "intercept"), SQUARES, ids=str)
def test_least_squares_are_drawn_by_the_conjugate_formula_oracle(
    model, alpha, weight, intercept
):
    model.fit(X, Y, sample_weight=weight)
    expected = ridge_covariance(X, Y, ASKED, alpha, weight, intercept, model)
    train = {**TRAIN, "sample_weight": weight}
    variance = variance_function(model, **train)
    assert_allclose(variance(ASKED), np.diag(expected), rtol=1e-8)
    draws = sample_predictions(model, ASKED, 20000, 0, **train)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert_allclose(np.cov(draws) / scale, expected / scale, atol=0.05)
    assert_allclose(
        draws.mean(axis=1), model.predict(ASKED), atol=4 * np.sqrt(scale.max() / 20000)
    )


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("intercept", [True, False])
def test_more_features_than_rows_have_the_same_formula(kind, intercept):
    y = WIDE[:, 0]
    model = Ridge(alpha=0.3, fit_intercept=intercept).fit(WIDE, y)
    expected = ridge_covariance(WIDE, y, WIDE_ASKED, 0.3, None, intercept, model)
    train = {"X_train": kind(WIDE), "y_train": y}
    variance = variance_function(model, **train)
    assert_allclose(variance(kind(WIDE_ASKED)), np.diag(expected), rtol=1e-8)
    draws = sample_predictions(model, kind(WIDE_ASKED), 20000, 0, **train)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert_allclose(np.cov(draws) / scale, expected / scale, atol=0.05)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
def test_sparse_rows_have_the_draws_of_dense_ones(kind):
    model = Ridge().fit(X, Y)
    dense = sample_predictions(model, ASKED, 5, 0, **TRAIN)
    train = {"X_train": kind(X), "y_train": Y}
    found = sample_predictions(model, kind(ASKED), 5, 0, **train)
    assert_allclose(found.mean(axis=1), dense.mean(axis=1), atol=1)
    assert_allclose(
        variance_function(model, **train)(kind(ASKED)),
        variance_function(model, **TRAIN)(ASKED),
    )


def test_bayesian_ridge_has_the_posterior_of_the_ridge_oracle():
    model = BayesianRidge().fit(X, Y)
    Xc = X - X.mean(axis=0)
    precision = model.alpha_ * Xc.T @ Xc + model.lambda_ * np.eye(4)
    moved = ASKED - X.mean(axis=0)
    expected = moved @ np.linalg.inv(precision) @ moved.T
    assert_allclose(variance_function(model)(ASKED), np.diag(expected), rtol=1e-6)
    draws = sample_predictions(model, ASKED, 20000, 0)
    assert_allclose(np.cov(draws), expected, atol=0.05 * np.abs(expected).max())


@pytest.mark.parametrize(
    "model", [BayesianRidge(), ARDRegression(threshold_lambda=50.0)], ids=str
)
def test_the_variance_is_the_one_that_scikit_learn_predicts(model):
    model.fit(X, Y)
    if isinstance(model, ARDRegression):
        assert (model.lambda_ >= 50).any()  # some columns are dropped
    found = variance_function(model)(ASKED)
    std = model.predict(ASKED, return_std=True)[1]
    if parse_version(sklearn.__version__) >= parse_version("1.9"):
        # Earlier versions did not center the rows.
        assert_allclose(found, std**2 - 1 / model.alpha_, rtol=1e-6, atol=1e-12)
    draws = sample_predictions(model, ASKED, 20000, 0)
    assert_allclose(draws.var(axis=1), found, rtol=0.06)


def test_gaussian_processes_are_drawn_as_scikit_learn_draws_them():
    kernel = ConstantKernel(2.0) * RBF(1.5)
    model = GaussianProcessRegressor(kernel, alpha=0.1, normalize_y=True).fit(X, Y)
    draws = sample_predictions(model, ASKED, 5000, 0)
    theirs = model.sample_y(ASKED, 5000, 1)
    spread = theirs.std(axis=1)
    error = 4 * np.sqrt(2 / 5000)
    assert np.all(np.abs(draws.mean(axis=1) - theirs.mean(axis=1)) < error * spread)
    assert_allclose(
        np.cov(draws) / np.outer(spread, spread),
        np.cov(theirs) / np.outer(spread, spread),
        atol=4 * np.sqrt(4 / 5000),
    )
    assert_allclose(variance_function(model)(ASKED), spread**2, rtol=0.1)


def test_white_noise_is_no_uncertainty_about_the_function():
    noisy = RBF(1.5, "fixed") + 3.0 * WhiteKernel(0.1, "fixed")
    model = GaussianProcessRegressor(noisy, optimizer=None, normalize_y=True).fit(X, Y)
    plain = GaussianProcessRegressor(
        RBF(1.5, "fixed"), alpha=0.3 + 1e-10, optimizer=None, normalize_y=True
    ).fit(X, Y)
    expected = plain.predict(ASKED, return_std=True)[1] ** 2
    assert_allclose(variance_function(model)(ASKED), expected, rtol=1e-6)
    draws = sample_predictions(model, ASKED, 20000, 0)
    assert_allclose(draws.var(axis=1), expected, rtol=0.06)


def test_a_joint_draw_of_a_process_is_limited_and_its_variance_is_not():
    model = GaussianProcessRegressor(RBF(1.5), optimizer=None).fit(X[:5], Y[:5])
    many = np.zeros((4097, 4))
    with pytest.raises(TypeError, match=r"at most 4096 items, got 4097.*'bald'"):
        sample_predictions(model, many, 2, 0)
    assert len(variance_function(model)(many)) == 4097


ENSEMBLES = [
    RandomForestRegressor(12, random_state=0),
    ExtraTreesRegressor(12, random_state=0),
    BaggingRegressor(Ridge(), 12, random_state=0),
    BaggingRegressor(n_estimators=12, max_features=0.5, random_state=0),
    VotingRegressor([("a", Ridge()), ("no", "drop"), ("b", SGDRegressor())]),
]


def members_of(ensemble):
    found = []
    for i, member in enumerate(ensemble.estimators_):
        rows = ASKED
        if isinstance(ensemble, BaggingRegressor):
            rows = ASKED[:, ensemble.estimators_features_[i]]
        found.append(member.predict(rows))
    return np.array(found)


@pytest.mark.long
@pytest.mark.parametrize("ensemble", ENSEMBLES, ids=str)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_draws_of_an_ensemble_are_its_members(ensemble, kind):
    ensemble.fit(X, Y)
    members = members_of(ensemble)
    draws = sample_predictions(ensemble, kind(ASKED), len(members), 0)
    assert draws.shape == (7, len(members))
    assert_allclose(
        np.array(sorted(draws.T.tolist())), np.array(sorted(members.tolist()))
    )
    assert_allclose(draws.mean(axis=1), ensemble.predict(ASKED))
    assert sample_predictions(ensemble, ASKED, 31, 0).shape == (7, 31)
    assert variance_function(ensemble) is None


def test_weights_of_votes_are_how_often_a_member_is_drawn():
    votes = VotingRegressor(
        [("a", Ridge()), ("b", KNeighborsRegressor())], weights=[3, 1]
    ).fit(X, Y)
    draws = sample_predictions(votes, ASKED, 8, 0)
    assert_allclose(draws.mean(axis=1), votes.predict(ASKED))


def test_a_transformed_target_is_transformed_back():
    inner = Ridge().fit(X, np.arcsinh(Y))
    model = TransformedTargetRegressor(Ridge(), func=np.arcsinh, inverse_func=np.sinh)
    model.fit(X, Y)
    expected = sample_predictions(inner, ASKED, 5, 0, X_train=X, y_train=np.arcsinh(Y))
    found = sample_predictions(model, ASKED, 5, 0, **TRAIN)
    assert_allclose(found, np.sinh(expected))
    assert variance_function(model, **TRAIN) is None


# Where draws come from.


class Own(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.is_fitted_ = True
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def sample_predictions(self, X, n_draws=3, random_state=None):
        return np.random.default_rng(random_state).normal(size=n_draws) + X[:, :1]


@pytest.mark.parametrize("wrap", [lambda model: model, FrozenEstimator, make_pipeline])
def test_a_regressor_may_draw_by_itself(wrap):
    draws = sample_predictions(wrap(Own().fit(X, Y)), ASKED, 4, 7)
    assert draws.shape == (7, 4)
    assert_allclose(draws - draws[:1], ASKED[:, :1] - ASKED[:1, :1] + np.zeros(4))


def test_front_steps_are_applied_to_both():
    model = make_pipeline(StandardScaler(), Ridge()).fit(100 * X, Y)
    scale = StandardScaler().fit(100 * X).transform
    train = {"X_train": scale(100 * X), "y_train": Y}
    expected = sample_predictions(model[-1], scale(ASKED), 5, 0, **train)
    own = {"X_train": 100 * X, "y_train": Y}
    assert_allclose(sample_predictions(model, ASKED, 5, 0, **own), expected)
    variance = variance_function(model, **own)(ASKED)
    assert_allclose(variance, variance_function(model[-1], **train)(scale(ASKED)))


def test_a_search_stands_for_its_best_estimator():
    search = GridSearchCV(Ridge(), {"alpha": [0.1]}, cv=2).fit(X, Y)
    expected = sample_predictions(Ridge(alpha=0.1).fit(X, Y), ASKED, 3, 0, **TRAIN)
    assert_array_equal(sample_predictions(search, ASKED, 3, 0, **TRAIN), expected)


@pytest.mark.parametrize(
    "model", [Ridge(), BayesianRidge(), RandomForestRegressor(5, random_state=0)]
)
def test_chunks_have_the_same_models_and_seeds_matter(model):
    model.fit(X, Y)
    draw = sampler(model, 5, 0, **TRAIN)
    parts = np.concatenate([draw(ASKED[:3]), draw(ASKED[3:])])
    assert_allclose(parts, sample_predictions(model, ASKED, 5, 0, **TRAIN))
    assert not np.allclose(parts, sample_predictions(model, ASKED, 5, 1, **TRAIN))


def test_an_exact_fit_keeps_an_order_of_the_variances():
    model = LinearRegression().fit(X[:5], Y[:5])
    variance = variance_function(model, X_train=X[:5], y_train=Y[:5])(ASKED)
    assert np.all(variance > 0)
    assert len(np.unique(variance)) == 7


# What has no posterior.


TWO = np.stack([Y, Y], axis=1)
REFUSED = [
    (GradientBoostingRegressor(n_estimators=2), Y, "has no sample_predictions.*Bayes"),
    (KNeighborsRegressor(), Y, "KNeighborsRegressor has no sample_predictions"),
    (RandomForestRegressor(1), Y, "has one member, which has no spread"),
    (RandomForestRegressor(3), TWO, "predicts several outputs"),
    (Ridge(), TWO, "Ridge predicts several outputs"),
    (GaussianProcessRegressor(), TWO, "predicts several outputs"),
    (MultiOutputRegressor(Ridge()), TWO, "MultiOutputRegressor has no"),
    (Ridge(positive=True), Y, "positive=True, which is no normal prior"),
    (SGDRegressor(penalty="l1"), Y, "penalty='l1'.*Use penalty='l2'"),
    (SGDRegressor(loss="huber"), Y, "SGDRegressor has no sample_predictions"),
    (TransformedTargetRegressor(KNeighborsRegressor()), Y, "KNeighborsRegressor has"),
]


@pytest.mark.parametrize(("model", "y", "message"), REFUSED, ids=str)
def test_a_regressor_without_a_posterior_is_refused_with_alternatives(
    model, y, message
):
    model = make_pipeline(StandardScaler(), model).fit(X, y)
    for call in (
        lambda: check_can_sample(model),
        lambda: sample_predictions(model, ASKED, 5, 0, X_train=X, y_train=y),
        lambda: variance_function(model),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_least_squares_without_a_unique_solution_are_refused():
    model = LinearRegression().fit(WIDE, WIDE[:, 0])
    with pytest.raises(TypeError, match=r"more weights than.*Use Ridge"):
        sample_predictions(model, WIDE_ASKED, 2, 0)


def test_each_function_refuses_the_estimators_of_the_other():
    with pytest.raises(TypeError, match=r"must be a classifier.*sample_predictions"):
        sample_proba(Ridge().fit(X, Y), ASKED)
    with pytest.raises(TypeError, match=r"must be a regressor.*sample_proba"):
        sample_predictions(LogisticRegression().fit(X, Y > 0), ASKED)
    with pytest.raises(NotFittedError):
        sample_predictions(Ridge(), ASKED, **TRAIN)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"X_train": None}, ValueError, "X_train and y_train are needed: Ridge"),
        ({"y_train": None}, ValueError, "X_train and y_train are needed"),
        ({"y_train": Y[:5]}, ValueError, "y_train"),
        ({"y_train": ["a"] * 40}, ValueError, "'y_train' must hold numbers"),
        ({"y_train": TWO}, ValueError, "'y_train' must hold a number for each"),
        ({"sample_weight": [1.0]}, ValueError, "sample_weight"),
        ({"n_draws": 0}, ValueError, "n_draws"),
        ({"estimator": 5}, TypeError, "estimator"),
        ({"X": []}, ValueError, "X"),
    ],
    ids=lambda value: "" if isinstance(value, type) else str(value)[:20],
)
def test_a_wrong_argument_is_named(changed, error, message):
    valid = {"estimator": Ridge().fit(X, Y), "X": ASKED, "n_draws": 3, **TRAIN}
    with pytest.raises(error) as caught:
        sample_predictions(**{**valid, **changed})
    notes = getattr(caught.value, "__notes__", [])
    assert message.split(":")[0] in "\n".join([str(caught.value), *notes])


def test_a_ridge_without_penalty_is_refused():
    model = Ridge(alpha=0).fit(WIDE, WIDE[:, 0])
    with pytest.raises(TypeError, match=r"alpha=0.*Use an alpha above 0"):
        sample_predictions(model, WIDE_ASKED, 2, 0, X_train=WIDE, y_train=WIDE[:, 0])
