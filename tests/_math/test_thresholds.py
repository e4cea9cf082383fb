"""Tuned thresholds against all of them, by scikit-learn's F1."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from skactive._math._scores import tune_thresholds


def every_threshold(p):
    """Return a threshold below, between and above all probabilities."""
    values = np.unique(p)
    return [values[0] / 2, *((values[1:] + values[:-1]) / 2), (values[-1] + 1) / 2]


def best_f1(p, y):
    return max(f1_score(y, p > t, zero_division=0) for t in every_threshold(p))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("decimals", [1, 8])  # with ties, and without
def test_each_label_has_the_best_f1_of_all_thresholds(seed, decimals):
    rng = np.random.default_rng(seed)
    y = rng.random((40, 4)) < [0.5, 0.2, 0.9, 0.1]
    y[:3] = True
    p = np.clip(0.3 * y + 0.7 * rng.random(y.shape), 0.01, 0.99).round(decimals)
    found = tune_thresholds(p, y.astype(int), shrinkage=0)
    assert ((found > 0) & (found < 1)).all()
    for j in range(4):
        best = best_f1(p[:, j], y[:, j])
        assert f1_score(y[:, j], p[:, j] > found[j]) == pytest.approx(best)


def test_rare_labels_are_close_to_the_threshold_that_predicts_as_many_labels():
    rng = np.random.default_rng(0)
    y = np.zeros((50, 3), dtype=int)
    y[:20, 0], y[:2, 1] = 1, 1
    p = rng.random(y.shape)
    own, found = (tune_thresholds(p, y, shrinkage) for shrinkage in (0, 30))
    common = found[2]  # no positive item
    assert (p > common).sum() == 22
    for j, n in ((0, 20), (1, 2)):
        expected = (n * own[j] + 30 * common) / (n + 30)
        assert found[j] == pytest.approx(expected)


def test_among_equal_probabilities_the_number_of_labels_is_the_nearest():
    p = np.array([[0.9, 0.5, 0.5, 0.5, 0.1, 0.1]]).T
    for n_positive, n_predicted in ((1, 1), (2, 1), (3, 4), (4, 4), (6, 6)):
        y = np.c_[np.arange(6) < n_positive, np.zeros(6)]
        found = tune_thresholds(np.c_[p, 0 * p], y, shrinkage=1e9)
        assert (p > found[0]).sum() == n_predicted


def test_a_few_items_that_tell_nothing_do_not_get_every_label():
    rng = np.random.default_rng(0)
    y = (np.arange(8)[:, None] % 4 == np.arange(4)).astype(int)
    p = np.clip(0.25 + 0.02 * rng.normal(size=y.shape), 0, 1)
    assert (p > tune_thresholds(p, y)).sum() <= 1.5 * y.sum()


def test_among_equals_the_nearest_to_one_half():
    y = np.repeat([1, 0], 4)
    for p, expected in (([0.9] * 4 + [0.2] * 4, 0.55), ([0.3] * 4 + [0.1] * 4, 0.2)):
        found = tune_thresholds(np.array([p]).T, y[:, None])
        assert found[0] == pytest.approx(expected)


@pytest.mark.parametrize("p", [0.0, 0.4])
def test_no_label_at_all_leaves_one_half(p):
    assert tune_thresholds(np.full((6, 2), p), np.zeros((6, 2))).tolist() == [0.5, 0.5]


def test_neighboring_floats_are_told_apart():
    low = 0.3
    p = np.array([[np.nextafter(low, 1)]] * 3 + [[low]] * 3)
    found = tune_thresholds(p, np.repeat([1, 0], 3)[:, None])
    assert (p > found).ravel().tolist() == [True] * 3 + [False] * 3
