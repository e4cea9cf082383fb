"""Strategies for several labels per item and for regression, by their formulas."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import entropy
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

from skactive import ActiveLearner
from skactive._math._joint import select_by_covariance
from skactive.posterior import sample_predictions, sample_proba
from skactive.registry import find_requirements
from skactive.strategies import (
    BADGE,
    BALD,
    DFAL,
    EGL,
    BatchBALD,
    Committee,
    MCDropout,
)
from skactive.view import PoolView

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) + 0.5
POOL = RNG.normal(size=(25, 3)) + 0.5
SEVERAL = (X + RNG.normal(size=(40, 3)) > 0.5).astype(int)
NUMBERS = X @ [1.0, -2.0, 0.5] + RNG.normal(size=40) * 0.3
ONE_VS_REST = OneVsRestClassifier(LogisticRegression())


def view_of(strategy, model, y, pool=POOL, seed=0):
    model = model.fit(X, y)
    return PoolView(
        pool,
        estimator=model,
        X_labeled=X,
        y_labeled=y,
        requires=find_requirements(strategy, model, y),
        optional=strategy.optional,
        targets=strategy.targets,
        rng=np.random.default_rng(seed),
    )


def score(strategy, model, y, **options):
    return strategy.score(view_of(strategy, model, y, **options))


class Members(RegressorMixin, BaseEstimator):
    """Its draws are given linear functions."""

    slopes = np.random.default_rng(1).normal(size=(3, 7))

    def fit(self, X, y):
        self.is_fitted_ = True
        return self

    def predict(self, X):
        return X @ self.slopes.mean(axis=1) + 0.25

    def sample_predictions(self, X, n_draws, random_state=None):
        return np.asarray(X) @ self.slopes[:, np.arange(n_draws) % 7]


# Posterior draws.


@pytest.mark.long
def test_bald_multi_label_by_the_oracle():
    draws = []

    class Noted(BALD):
        def score(self, view):
            draws.append(view.draws(20))
            return super().score(view)

    found = score(Noted(20), ONE_VS_REST, SEVERAL)
    for row, value in zip(draws[0], found, strict=True):
        total = 0.0
        for label in range(3):
            members = [[p, 1 - p] for p in row[:, label]]
            own = np.mean([entropy(each) for each in members])
            total += entropy(np.mean(members, axis=0)) - own
        assert value == pytest.approx(total, abs=1e-10)


def test_bald_regression_by_the_oracle():
    # Linear models have a formula.
    found = score(BALD(), BayesianRidge(), NUMBERS)
    model = BayesianRidge().fit(X, NUMBERS)
    moved = POOL - X.mean(axis=0)
    assert_allclose(found, np.diag(moved @ model.sigma_ @ moved.T), rtol=1e-6)
    design = np.column_stack([np.ones(40), X])
    ridge = np.linalg.inv(design.T @ design + np.diag([0, 2.0, 2.0, 2.0]))
    asked = np.column_stack([np.ones(25), POOL])
    found = score(BALD(), Ridge(2.0), NUMBERS)
    expected = np.einsum("ij,jk,ik->i", asked, ridge, asked)
    assert_allclose(found / found[0], expected / expected[0], rtol=1e-8)
    # Others have draws.
    forest = RandomForestRegressor(50, random_state=0)
    found = score(BALD(), forest, NUMBERS)
    trees = [tree.predict(POOL) for tree in forest.estimators_]
    assert_allclose(found, np.var(trees, axis=0))
    assert_allclose(score(BALD(), Members(), NUMBERS), np.var(
        Members().sample_predictions(POOL, 50), axis=1))  # fmt: skip


def test_a_process_has_a_variance_for_large_pools():
    pool = np.random.default_rng(0).normal(size=(5000, 3))
    process = GaussianProcessRegressor(alpha=0.1, optimizer=None)
    found = score(BALD(), process, NUMBERS, pool=pool)
    std = process.predict(pool, return_std=True)[1]
    assert_allclose(found, std**2, rtol=1e-6)


@pytest.mark.parametrize("measure", ["entropy", "least_confidence", "margin"])
def test_mc_dropout_multi_label_by_the_oracle(measure):
    strategy = MCDropout(20, measure=measure)
    view = view_of(strategy, ONE_VS_REST, SEVERAL)
    found, draws = strategy.score(view), view.draws(20)
    for row, value in zip(draws.mean(axis=1), found, strict=True):
        each = {
            "entropy": [entropy([p, 1 - p]) for p in row],
            "least_confidence": [1 - max(p, 1 - p) for p in row],
            "margin": [1 - abs(p - (1 - p)) for p in row],
        }[measure]
        assert value == pytest.approx(sum(each) / 3)


def test_mc_dropout_regression_by_the_oracle():
    draws = Members().sample_predictions(POOL, 9)
    found = score(MCDropout(9), Members(), NUMBERS)
    assert_allclose(found, [np.var(row) for row in draws])


def test_batchbald_regression_by_the_oracle():
    draws = (
        np.random.default_rng(0).normal(size=(20, 6)) * np.linspace(1, 3, 20)[:, None]
    )
    draws[5] = draws[19] + 0.1  # shifted only: no other information
    noise = 0.4
    picks = select_by_covariance(draws, 6, np.arange(20.0), noise).tolist()
    K = np.cov(draws, ddof=0)
    for step, pick in enumerate(picks):
        values = []
        for i in range(20):
            batch = [*picks[:step], i]
            known = K[np.ix_(batch, batch)] / noise
            value = np.linalg.slogdet(np.eye(len(batch)) + known)[1]
            values.append(-np.inf if i in picks[:step] else value)
        assert values[pick] == pytest.approx(max(values))
    strategy = BatchBALD(9, noise=noise)
    view = view_of(strategy, Members(), NUMBERS)
    expected = select_by_covariance(view.draws(9), 5, np.zeros(25), noise)
    assert_array_equal(strategy.select(view, 5), expected)
    # "auto" is the mean squared residual.
    residuals = NUMBERS - Members().fit(X, NUMBERS).predict(X)
    automatic = BatchBALD(9).select(view_of(BatchBALD(9), Members(), NUMBERS), 9)
    given = BatchBALD(9, noise=float(np.mean(residuals**2)))
    assert_array_equal(automatic, given.select(view, 9))


# Gradients.


@pytest.mark.parametrize("squared", [False, True])
def test_egl_multi_label_by_the_oracle(squared):
    found = score(EGL(squared), ONE_VS_REST, SEVERAL)
    proba = ONE_VS_REST.predict_proba(POOL)
    for p, h, value in zip(proba, POOL, found, strict=True):
        inputs, total = np.append(h, 1.0), 0.0
        for label, outcome in itertools.product(range(3), (0, 1)):
            gradient = (p[label] - outcome) * inputs  # of the label's row of weights
            chance = p[label] if outcome else 1 - p[label]
            size = np.linalg.norm(gradient)
            total += chance * (size**2 if squared else size)
        assert value == pytest.approx(total)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_egl_regression_by_the_oracle(squared, intercept):
    strategy = EGL(squared, intercept, n_draws=7)
    found = score(strategy, Members(), NUMBERS)
    predicted = Members().predict(POOL)
    for h, f, value in zip(POOL, predicted, found, strict=True):
        inputs, total = np.append(h, 1.0) if intercept else h, 0.0
        for label in h @ Members.slopes:
            gradient = (f - label) * inputs  # of (f - label)^2 / 2
            size = np.linalg.norm(gradient)
            total += size**2 if squared else size
        assert value == pytest.approx(total / 7)
    auto = score(EGL(n_draws=7), Ridge(fit_intercept=False), NUMBERS)
    without = score(EGL(False, False, 7), Ridge(fit_intercept=False), NUMBERS)
    assert_array_equal(auto, without)


@pytest.mark.long
@pytest.mark.slow
def test_badge_multi_label_by_the_oracle():
    """The first is the longest gradient; copies of it are never drawn again."""
    pool = np.concatenate([POOL, POOL])
    strategy = BADGE()
    for seed in range(4):
        view = view_of(strategy, ONE_VS_REST, SEVERAL, pool=pool, seed=seed)
        picks = strategy.select(view, 20)
        gradients = np.array([
            np.outer(p - (p > 0.5), h).ravel()
            for p, h in zip(ONE_VS_REST.predict_proba(pool), pool, strict=True)
        ])  # fmt: skip
        lengths = np.linalg.norm(gradients, axis=1)
        assert lengths[picks[0]] == pytest.approx(lengths.max())
        assert len(set(picks % 25)) == 20
    # The second is drawn by the squared distance to the first.
    draws = [
        strategy.select(view_of(strategy, ONE_VS_REST, SEVERAL, seed=s), 2)[1]
        for s in range(400)
    ]
    gradients, lengths = gradients[:25], lengths[:25]
    squares = ((gradients - gradients[lengths.argmax()]) ** 2).sum(axis=1)
    seen = np.bincount(draws, minlength=25) / 400
    assert_allclose(seen, squares / squares.sum(), atol=0.08)


def test_dfal_multi_label_by_the_oracle():
    found = score(DFAL(), ONE_VS_REST, SEVERAL)
    for h, value in zip(POOL, found, strict=True):
        distances = [
            abs(part.coef_[0] @ h + part.intercept_[0])
            / np.sqrt(sum(w**2 for w in part.coef_[0]))
            for part in ONE_VS_REST.estimators_
        ]
        assert value == pytest.approx(-min(distances))


# Committees.


MEMBERS = [
    ONE_VS_REST,
    KNeighborsClassifier(3),
    DecisionTreeClassifier(max_depth=2, random_state=0),
    OneVsRestClassifier(LogisticRegression(C=0.01)),
]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "how", ["auto", "vote_entropy", "variation_ratio", "kl", "consensus_entropy"]
)
def test_committee_multi_label_by_the_oracle(how):
    found = score(Committee(MEMBERS, measure=how), ONE_VS_REST, SEVERAL)
    votes, proba = [], []
    for member in MEMBERS:
        member.fit(X, SEVERAL)
        votes.append(member.predict(POOL))
        each = member.predict_proba(POOL)
        proba.append(
            np.stack([p[:, 1] for p in each], 1) if isinstance(each, list) else each
        )
    votes, proba = np.array(votes), np.array(proba)
    for i, value in enumerate(found):
        total = 0.0
        for label in range(3):
            share, mean = votes[:, i, label].mean(), proba[:, i, label].mean()
            total += {
                "auto": entropy([share, 1 - share]),
                "vote_entropy": entropy([share, 1 - share]),
                "variation_ratio": min(share, 1 - share),
                "kl": np.mean(
                    [entropy([p, 1 - p], [mean, 1 - mean]) for p in proba[:, i, label]]
                ),
                "consensus_entropy": entropy([mean, 1 - mean]),
            }[how]
        assert value == pytest.approx(total / 3, abs=1e-10)


@pytest.mark.long
@pytest.mark.slow
def test_committee_regression_by_the_oracle():
    members = [Ridge(), Ridge(100.0), KNeighborsRegressor(3)]
    predicted = [member.fit(X, NUMBERS).predict(POOL) for member in members]
    expected = np.var(predicted, axis=0)
    for how in ("auto", "variance"):
        found = score(Committee(members, measure=how), Ridge(), NUMBERS)
        assert_allclose(found, expected)
    # A single regressor is trained on bootstrap samples, as bagging does.
    found = np.mean(
        [score(Committee(None, 200), Ridge(), NUMBERS, seed=seed) for seed in range(3)],
        axis=0,
    )
    bagged = BaggingRegressor(Ridge(), 600, random_state=0).fit(X, NUMBERS)
    expected = np.var([member.predict(POOL) for member in bagged.estimators_], axis=0)
    assert np.corrcoef(found, expected)[0, 1] > 0.98
    assert_allclose(found.mean(), expected.mean(), rtol=0.1)


def test_a_bootstrap_of_several_labels_holds_each_label():
    class Noted(KNeighborsClassifier):
        seen = []

        def fit(self, X, y):
            Noted.seen.append(y.any(axis=0))
            return super().fit(X, y)

    rare = np.zeros((40, 4), dtype=int)
    rare[:, 0], rare[3, 1], rare[4:20, 2] = 1, 1, 1
    score(Committee(Noted(1), 30), KNeighborsClassifier(1), rare)
    assert_array_equal(np.all(Noted.seen, axis=0), [True, True, True, False])


@pytest.mark.filterwarnings("error")
def test_a_label_that_no_item_has_is_no_warning():
    rare = np.column_stack([SEVERAL, np.zeros(40, dtype=int)])
    with pytest.warns(UserWarning, match="Label not 3"):  # of the model itself
        found = score(Committee(), OneVsRestClassifier(LogisticRegression()), rare)
    assert np.ptp(found) > 0


@pytest.mark.parametrize(
    ("how", "model", "y", "message"),
    [
        ("variance", ONE_VS_REST, SEVERAL, "defined for regression targets only"),
        ("variance", LogisticRegression(), SEVERAL[:, 0], "for regression targets"),
        ("vote_entropy", Ridge(), NUMBERS, "multi-label and single-label targets only"),
    ],
)
def test_a_measure_of_another_target_is_refused(how, model, y, message):
    learner = ActiveLearner(model, Committee(measure=how)).fit(X, y)
    with pytest.raises(TypeError, match=message):
        learner.query(POOL, 2)


def test_members_of_one_label_are_refused_several():
    members = [LogisticRegression(), KNeighborsClassifier(2)]
    learner = ActiveLearner(ONE_VS_REST, Committee(members)).fit(X, SEVERAL)
    with pytest.raises(TypeError, match="is defined for single-label targets only"):
        learner.query(POOL, 2)


def test_several_numbers_per_item_have_no_committee():
    learner = ActiveLearner(Ridge(), "committee").fit(X, X[:, :2])
    with pytest.raises(TypeError, match="Train a model for each output"):
        learner.query(POOL, 2)


# Draws are those of the public functions.


def test_draws_of_a_view_are_those_of_the_posterior():
    strategy = BALD(6)
    view = view_of(MCDropout(6), Ridge(), NUMBERS)
    seed = view._query.seeds[0]
    model = Ridge().fit(X, NUMBERS)
    draws = sample_predictions(model, POOL, 6, seed, X_train=X, y_train=NUMBERS)
    assert_allclose(view.draws(6), draws)
    view = view_of(strategy, ONE_VS_REST, SEVERAL)
    draws = sample_proba(
        ONE_VS_REST, POOL, 6, view._query.seeds[0], X_train=X, y_train=SEVERAL
    )
    assert_allclose(view.draws(6), draws)
