"""Accuracy and expected gain, from arrays."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from statsmodels.stats.contingency_tables import mcnemar

from skactive.estimation._gain import (
    beats_majority,
    calibrate_proba,
    estimate_gain,
    gain_of_labels,
    is_enough,
)
from skactive.estimation._held_out import OutOfFold, out_of_fold


@pytest.mark.parametrize("seed", range(5))
def test_better_than_the_most_frequent_class_is_mcnemars_test(seed):
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, 60, p=[0.5, 0.3, 0.2])
    proba = rng.random((60, 3)) + (0.15 * seed) * np.eye(3)[codes]
    right = proba.argmax(axis=1) == codes
    frequent = codes == np.bincount(codes).argmax()
    table = [[np.sum(a & b) for b in (frequent, ~frequent)] for a in (right, ~right)]
    statistic = mcnemar(table, exact=False, correction=False).statistic
    expected = statistic > 4 and table[0][1] > table[1][0]
    assert beats_majority(proba, codes) == expected
    assert not beats_majority(np.ones((60, 3)), codes)


def test_the_temperature_is_the_best_one_for_held_out_labels():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(500, 3)) * 2
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(3, p=p) for p in truth])
    flat = truth**0.4
    flat /= flat.sum(axis=1, keepdims=True)
    found = calibrate_proba(flat[:50], flat, codes)

    def loss(power):
        scaled = flat**power
        scaled /= scaled.sum(axis=1, keepdims=True)
        return -np.log(scaled[np.arange(500), codes]).mean()

    best = min(np.linspace(0.5, 5, 451), key=loss)
    expected = flat[:50] ** best
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=0.01)
    assert abs(best - 2.5) < 0.5


def test_the_gain_is_the_loss_of_smaller_models_extrapolated():
    # Of five models with 80 of 100 labels, each differs at one of ten items, where it
    # loses 0.8 - 0.2: the loss is b (1/80 - 1/100) = 0.06, so b = 24. The next 25
    # labels gain b (1/100 - 1/125).
    proba = np.tile([0.8, 0.2], (10, 1))
    codes = np.zeros((5, 10), dtype=int)
    codes[np.arange(5), np.arange(5)] = 1
    gain, (low, high) = estimate_gain(proba, codes, np.full(5, 0.8), 100, 25)
    assert gain == pytest.approx(24 * (1 / 100 - 1 / 125))
    assert (low + high) / 2 == pytest.approx(gain)
    further, _ = estimate_gain(proba, codes, np.full(5, 0.8), 100, 100)
    assert further == pytest.approx(24 * (1 / 100 - 1 / 200))
    same = np.zeros((5, 10), dtype=int)
    none, (low, high) = estimate_gain(proba, same, np.full(5, 0.8), 100, 25)
    assert none == 0
    # New texts differ, even where nothing changes: about .5 / sqrt(n).
    assert low == -high
    assert high >= 1.95 * 0.25 / np.sqrt(10)


@pytest.mark.long
@pytest.mark.slow
def test_the_gain_of_a_known_problem():
    # Two normal distributions: what 100 further labels add is measured on new items.
    rng = np.random.default_rng(0)
    mean = np.full(10, 0.3)

    def draw(n):
        y = rng.integers(2, size=n)
        return rng.normal(size=(n, 10)) + np.where(y == 1, 1, -1)[:, None] * mean, y

    X_new, y_new = draw(4000)
    model = LogisticRegression()
    expected, realized, covered = [], [], []
    for seed in range(60):
        X, y = draw(260)
        found = out_of_fold(model, X[:160], y[:160], X_new, seed=seed)
        gain, (low, high) = gain_of_labels(found, 100)
        before = model.fit(X[:160], y[:160]).score(X_new, y_new)
        realized.append(model.fit(X, y).score(X_new, y_new) - before)
        expected.append(gain)
        covered.append(low <= realized[-1] <= high)
    assert np.mean(realized) > 0.005
    assert np.mean(expected) == pytest.approx(np.mean(realized), rel=0.35)
    assert np.mean(covered) >= 0.92


def test_what_is_enough_for_a_gain():
    assert is_enough(150, 15, 20, 100)
    assert not is_enough(149, 2, 20, 100)
    assert not is_enough(150, 16, 20, 100)
    assert not is_enough(150, 2, 19, 100)
    assert is_enough(40, 4, 20, 1)
    assert not is_enough(39, 2, 20, 1)


def test_no_gain_is_told_from_too_little():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=150)
    X = rng.normal(size=(150, 3)) + 2 * y[:, None]
    model = LogisticRegression()
    assert gain_of_labels(out_of_fold(model, X, y, X), 100) is not None
    for few in (
        out_of_fold(model, X[:149], y[:149], X),  # labels for this horizon
        out_of_fold(model, X, y, X[:19]),  # unlabeled items
        out_of_fold(model, X, y),
        out_of_fold(model, X, rng.permutation(y), X),  # nothing to learn
    ):
        assert gain_of_labels(few, 100) is None
    assert gain_of_labels(out_of_fold(model, X[:40], y[:40], X), 26) is not None
    assert gain_of_labels(out_of_fold(model, X[:39], y[:39], X), 10) is None
    assert isinstance(out_of_fold(model, X, y), OutOfFold)
