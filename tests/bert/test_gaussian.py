"""Normal draws of a linear head's outputs: their moments, and who may use them."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import norm

from skactive import ActiveLearner
from skactive.bert import BertRegressor
from skactive.bert._draws import GaussianOutputs, normal_points
from skactive.view import PoolView

from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import review_classifier as classifier
from ._helpers import slow

NUMBERS = np.array([0.5, -1.0, 2.0, -2.0, 1.0, 0.0, 1.5, -0.5])
INDICATOR = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]] * 2)


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def layer(k=3, d=4, rate=0.3, relative=False):
    weight, bias = numbers(k, d), numbers(k, seed=1)
    return weight, bias, GaussianOutputs(weight, bias, rate, relative)


def enumerated(weight, bias, rate, x):
    """Outputs (2^d, k) under every mask of x, and the masks' probabilities."""
    masks = np.array(list(product([0.0, 1.0], repeat=len(x))))
    chance = np.prod(np.where(masks == 1, 1 - rate, rate), axis=1)
    return (masks * x / (1 - rate)) @ weight.T + bias, chance


def weighted(outputs, chance):
    mean = chance @ outputs
    away = outputs - mean
    return mean, (away * chance[:, None]).T @ away


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("relative", [False, True])
def test_moments_are_those_of_all_masks(rate, relative):
    weight, bias, outputs = layer(rate=rate, relative=relative)
    x = numbers(5, 4, seed=2)
    mean, covariance = outputs.moments(x)
    for i in range(5):
        all_outputs, chance = enumerated(
            weight.numpy(), bias.numpy(), rate, x[i].numpy()
        )
        if relative:
            all_outputs = all_outputs[:, 1:] - all_outputs[:, :1]
        expected = weighted(all_outputs, chance)
        np.testing.assert_allclose(mean[i], expected[0], atol=1e-12)
        np.testing.assert_allclose(covariance[i], expected[1], atol=1e-12)


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("n_draws", [4, 50])
def test_draws_have_the_moments_exactly(n_draws, relative):
    outputs = layer(relative=relative)[2]
    x = numbers(5, 4, seed=2).float()
    draws = outputs.draw(x, normal_points(n_draws, outputs.size, seed=0)).numpy()
    assert draws.shape == (5, n_draws, 3)
    if relative:
        assert (draws[:, :, 0] == 0).all()
        draws = draws[:, :, 1:]
    mean, covariance = outputs.moments(x)
    for i in range(5):
        np.testing.assert_allclose(draws[i].mean(axis=0), mean[i], atol=1e-5)
        found = np.cov(draws[i].T, bias=True)
        np.testing.assert_allclose(found, covariance[i], atol=1e-4)


def test_what_is_drawn_from_is_left_as_it_is():
    x = numbers(5, 4, seed=2)
    before = x.clone()
    layer()[2].moments(x)
    assert torch.equal(x, before)


def test_outputs_that_cannot_vary_do_not():
    weight, bias = torch.zeros(3, 2), torch.tensor([1.0, 2.0, 3.0])
    weight[2, 0] = 4.0
    outputs = GaussianOutputs(weight, bias, 0.5)
    x = torch.tensor([[1.0, 5.0], [0.0, 0.0]])
    draws = outputs.draw(x, normal_points(8, 3, seed=0))
    torch.testing.assert_close(draws[0, :, :2], bias[:2].expand(8, 2))
    torch.testing.assert_close(draws[1], bias.expand(8, 3))
    assert draws[0, :, 2].std(correction=0).item() == pytest.approx(4.0)


@pytest.mark.parametrize(("n", "q"), [(2, 1), (4, 3), (50, 3), (1000, 7)])
def test_points_have_exact_moments(n, q):
    points = normal_points(n, q, seed=0)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(points.T @ points / n, np.eye(q), atol=1e-12)
    np.testing.assert_array_equal(normal_points(n, q, seed=0), points)
    assert q == n - 1 or np.abs(normal_points(n, q, seed=1) - points).max() > 0.01


@pytest.mark.parametrize(("n", "q"), [(1, 1), (1, 5), (3, 3), (3, 90)])
def test_few_points_are_points(n, q):
    points = normal_points(n, q, seed=0)
    assert points.shape == (n, q)
    assert np.isfinite(points).all()


def test_points_are_normal():
    points = np.sort(normal_points(2000, 2, seed=3), axis=0)
    chance = (np.arange(2000) + 0.5) / 2000
    for column in points.T:
        np.testing.assert_allclose(column[20:-20], norm.ppf(chance)[20:-20], atol=0.1)


@pytest.fixture(scope="module")
def fitted(tiny_encoder):
    return classifier(tiny_encoder("Bert"), dropout=0.4, mc_dropout="gaussian").fit(
        X, Y
    )


def test_classifier_draws_with_the_moments_of_masks(fitted):
    found = fitted.sample_proba(X, 16)
    assert found.shape == (8, 16, 2)
    masked = fitted.set_params(mc_dropout="head").sample_proba(X, 40_000)
    fitted.set_params(mc_dropout="gaussian")
    found, masked = (np.log(p[:, :, 1] / p[:, :, 0]) for p in (found, masked))
    np.testing.assert_allclose(
        found.mean(axis=1), masked.mean(axis=1), atol=5 * masked.std() / 200
    )
    np.testing.assert_allclose(found.std(axis=1), masked.std(axis=1), rtol=0.03)


def test_several_labels_draw_with_the_moments_of_masks(tiny_encoder):
    model = classifier(tiny_encoder("Bert"), dropout=0.4, mc_dropout="gaussian")
    model.fit(X, INDICATOR)
    found = model.sample_proba(X, 16)
    masked = model.set_params(mc_dropout="head").sample_proba(X, 40_000)
    found, masked = (np.log(p) - np.log1p(-p) for p in (found, masked))
    for a, b in zip(found, masked, strict=True):
        error = 5 * b.std() / 200
        np.testing.assert_allclose(a.mean(axis=0), b.mean(axis=0), atol=error)
        scale = np.cov(b.T).max()
        np.testing.assert_allclose(
            np.cov(a.T, bias=True), np.cov(b.T), atol=0.05 * scale
        )


def test_regressor_draws_with_the_moments_of_masks(tiny_encoder):
    model = BertRegressor(
        tiny_encoder("Bert"),
        dropout=0.4,
        max_epochs=1,
        mc_dropout="gaussian",
        precision="float32",
    ).fit(X, NUMBERS)
    found = model.sample_predictions(X, 16, random_state=0)
    masked = model.set_params(mc_dropout="head").sample_predictions(X, 40_000)
    np.testing.assert_allclose(found.mean(axis=1), model.predict(X), atol=1e-5)
    np.testing.assert_allclose(found.std(axis=1), masked.std(axis=1), rtol=0.03)


def test_draws_repeat_for_a_seed_and_hardly_depend_on_it(fitted):
    first = fitted.sample_proba(X, 64, random_state=5)
    np.testing.assert_array_equal(fitted.sample_proba(X, 64, random_state=5), first)
    other = fitted.sample_proba(X, 64, random_state=6)
    assert np.abs(other - first).max() > 1e-3
    np.testing.assert_allclose(other.mean(axis=1), first.mean(axis=1), atol=1e-3)


def test_draws_do_not_depend_on_the_other_texts(fitted, monkeypatch):
    draws = fitted.sample_proba(X)
    order = np.array([3, 7, 0, 0, 4])
    found = fitted.sample_proba([X[i] for i in order])
    np.testing.assert_allclose(found, draws[order], atol=1e-6)
    np.testing.assert_allclose(found[2], found[3], atol=1e-6)
    monkeypatch.setattr("skactive.bert._draws._CHUNK", {"cpu": 1})
    monkeypatch.setattr("skactive.bert._draws._ROWS", 3)
    np.testing.assert_allclose(fitted.sample_proba(X), draws, atol=1e-6)


def test_without_dropout_there_is_no_spread(tiny_encoder):
    model = classifier(tiny_encoder("Bert"), dropout=0.0, mc_dropout="gaussian")
    proba = model.fit(X, Y).predict_proba(X)
    draws = model.sample_proba(X, 5)
    np.testing.assert_allclose(draws, np.repeat(proba[:, None], 5, axis=1), atol=1e-6)


@pytest.mark.parametrize("head", ["mlp", slow("cnn")])
def test_other_heads_are_refused(tiny_encoder, head):
    model = classifier(tiny_encoder("Bert"), head=head, mc_dropout="gaussian")
    model.fit(X, Y)
    with pytest.raises(ValueError, match="got 'gaussian': outputs are normal where"):
        model.sample_proba(X, 3)


def test_only_strategies_that_look_at_single_texts_may_use_them(tiny_encoder):
    model = classifier(tiny_encoder("Bert"), dropout=0.4, mc_dropout="gaussian")
    pool = [f"{text} again" for text in X]
    learner = ActiveLearner(model, "bald", random_state=0).fit(X, Y)
    assert len(learner.query(pool, 3)) == 3
    learner.set_params(strategy="batchbald")
    with pytest.raises(TypeError, match="'batchbald' needs draws of one and the same"):
        learner.query(pool, 3)
    learner.estimator_.set_params(mc_dropout="head")
    assert len(learner.query(pool, 3)) == 3


def test_a_view_gives_them_row_by_row_only(fitted):
    view = PoolView(X, estimator=fitted, rng=np.random.default_rng(0))
    assert not fitted.draws_jointly
    means = view.map_draws(lambda draws: draws.mean(axis=1), 8)
    assert means.shape == (8, 2)
    with pytest.raises(TypeError, match="mc_dropout='head'"):
        view.draws(8)
