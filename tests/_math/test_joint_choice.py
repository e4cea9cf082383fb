"""The choice of a batch against greedy brute force, however little is looked at."""

import math

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal

from skactive._math import _joint as joint

from ._helpers import choose, draw, information_by_loops, joint_information


def greedy_by_hand(draws, n):
    picks = []
    for _ in range(n):
        rest = [i for i in range(len(draws)) if i not in picks]
        picks.append(max(rest, key=lambda i: information_by_loops(draws[[*picks, i]])))
    return picks, [information_by_loops(draws[picks[: m + 1]]) for m in range(n)]


@pytest.mark.parametrize(("n", "t", "k"), [(9, 5, 2), (7, 8, 3), (5, 3, 7)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_choice_is_that_of_greedy_brute_force(n, t, k, dtype):
    draws = draw(n, t, k, seed=n).astype(dtype)
    positions, information = choose(draws, 4)
    expected, values = greedy_by_hand(draws.astype(float), 4)
    assert_array_equal(positions, expected)
    assert_allclose(information, values, atol=1e-6 if dtype == np.float32 else 1e-12)


def test_the_choice_gives_the_published_numbers():
    # As in scikit-activeml's test; its first four are no estimates, and peers agree.
    rng = np.random.RandomState(0)
    proba = rng.random(2 * 200 * 10).reshape(10, 200, 2)
    draws = (proba / proba.sum(axis=2, keepdims=True)).swapaxes(0, 1)
    positions, information = choose(draws, 6)
    assert_array_equal(positions, [147, 107, 8, 61, 15, 26])
    published = [0.26082319, 0.51374567, 0.73904878, 0.93539158]
    assert_allclose(information[:4], published, rtol=1e-6)  # theirs are float32
    assert_allclose(information[4:], [1.111, 1.262], atol=5e-4)


def disagree(n, t, k, seed):
    """Draws of linear models that are far apart, as after few labels."""
    rng = np.random.default_rng(seed)
    X, models = rng.normal(size=(n, 8)), rng.normal(size=(t, 8, k))
    odds = np.exp(np.einsum("nd,tdk->ntk", X, models))
    return odds / odds.sum(axis=2, keepdims=True)


@pytest.fixture
def looked(monkeypatch):
    """Count the candidates that are looked at closely, and make shortlists short."""
    counts = []
    gains = joint.Configurations.gains

    def count(self, some, working_bytes, rough=False):
        counts.append(0 if rough else len(some))
        return gains(self, some, working_bytes, rough)

    monkeypatch.setattr(joint.Configurations, "gains", count)
    monkeypatch.setattr(joint, "SHORTLIST", 10)
    return counts


@pytest.mark.long
@pytest.mark.parametrize("pool", [disagree, draw])
@pytest.mark.parametrize(("k", "b", "share"), [(2, 10, 0.5), (3, 7, 0.6), (7, 4, 0.8)])
def test_looking_at_few_candidates_finds_what_looking_at_all_finds(
    pool, k, b, share, looked, monkeypatch
):
    for seed in range(4):
        draws = pool(400, 12, k, seed)
        looked.clear()
        lazy = choose(draws, b)
        assert sum(looked) < 400 * (b - 1) * share
        with monkeypatch.context() as patch:
            patch.setattr(joint, "BLOCK", 400)
            looked.clear()
            eager = choose(draws, b)
        assert sum(looked) == 400 * (b - 1)
        assert_array_equal(lazy[0], eager[0])
        assert_allclose(lazy[1], eager[1], atol=1e-12)


@pytest.mark.long
def test_a_shortlist_finds_what_looking_at_all_finds(looked, monkeypatch):
    losses = []
    for seed in range(6):
        draws = disagree(500, 30, 3, seed)
        looked.clear()
        short, _ = choose(draws, 8, n_samples=500)
        assert sum(looked) < 500 * 7 / 2
        with monkeypatch.context() as patch:
            patch.setattr(joint, "BLOCK", 500)
            full, _ = choose(draws, 8, n_samples=500)
        found = [joint_information(draws[some]) for some in (full, short)]
        losses.append(1 - found[1] / found[0])
    assert np.mean(losses) < 1e-4


@pytest.mark.long
@pytest.mark.parametrize("n_samples", [30, 10**6])
@pytest.mark.parametrize("working_bytes", [1, 5000, 2**30])
def test_working_memory_changes_nothing(n_samples, working_bytes):
    draws = draw(90, 6, 3)
    params = {"n_samples": n_samples}
    positions, information = choose(draws, 9, **params)
    found = choose(draws, 9, working_bytes=working_bytes, **params)
    assert_array_equal(found[0], positions)
    assert_allclose(found[1], information, atol=1e-12)


def test_chunks_of_configurations_change_nothing(monkeypatch):
    draws = draw(40, 6, 3)
    expected = choose(draws, 7, n_samples=100)
    monkeypatch.setattr(joint, "chunk_size", lambda row_bytes, limit=0: 5)
    for found, value in zip(choose(draws, 7, n_samples=100), expected, strict=True):
        assert_allclose(found, value, atol=1e-12)


def test_a_sample_chooses_about_as_well_as_all_configurations():
    draws = np.repeat(draw(60, 20, 3, concentration=2.0), 5, axis=0)
    exact, sampled = (
        joint_information(draws[choose(draws, 9, n_samples=n)[0]]) for n in (3**9, 999)
    )
    alone = np.array([joint_information(row[None]) for row in draws])
    assert sampled > exact - 0.01
    assert joint_information(draws[np.argsort(-alone)[:9]]) < exact - 0.1


def test_the_reported_information_of_a_sample_is_about_right():
    draws = draw(300, 20, 3, concentration=2.0)
    positions, information = choose(draws, 10, n_samples=2000)
    found = [joint_information(draws[positions[: m + 1]]) for m in range(10)]
    assert_allclose(information, found, rtol=5e-3)
    assert_allclose(information[:7], found[:7], atol=1e-12)  # 3^6 < 2000: exact


def test_of_duplicates_one_is_enough():
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    unsure = np.array([[0.9, 0.1], [0.1, 0.9]])
    best, other = sure[[0, 0, 1, 1]], unsure[[0, 1, 0, 1]]
    draws = np.array([best] * 10 + [other] * 10)
    for seed in range(10):
        positions, _ = choose(draws, 2, seed)
        assert positions[0] < 10 <= positions[1]


def test_noisy_duplicates_may_be_asked_twice():
    unsure = np.array([[0.7, 0.3], [0.3, 0.7]])
    hardly = np.array([[0.51, 0.49], [0.49, 0.51]])
    positions, _ = choose(np.array([unsure, hardly, unsure]), 3)
    assert set(positions[:2]) == {0, 2}


def test_when_all_is_told_the_choice_starts_anew():
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    draws = np.array([sure, sure, (sure + 1) / 3, np.full((2, 2), 0.5)])
    for seed in range(5):
        positions, information = choose(draws, 4, seed)
        assert set(positions[:2]) == {0, 1}
        assert_array_equal(positions[2:], [2, 3])
        assert_allclose(information, math.log(2))


@pytest.mark.parametrize("t", [1, 5])
def test_where_nothing_can_be_told_anything_is_chosen(t):
    draws = np.repeat(draw(30, 1, 3), t, axis=1)
    firsts = {choose(draws, 4, seed)[0][0] for seed in range(20)}
    assert len(firsts) > 10
    positions, information = choose(draws, 30)
    assert_array_equal(np.sort(positions), range(30))
    assert_allclose(information, 0, atol=1e-12)


@pytest.mark.long
def test_equal_candidates_are_chosen_equally_often():
    draws = np.repeat(draw(1, 4, 3), 6, axis=0)
    counts = np.zeros(6, dtype=int)
    for seed in range(600):
        counts[choose(draws, 2, seed)[0]] += 1
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_one_seed_one_choice():
    draws = draw(60, 10, 4, concentration=2.0)
    first, second = (choose(draws, 10, 5, n_samples=50) for _ in range(2))
    assert_array_equal(first[0], second[0])
    assert_array_equal(first[1], second[1])


@pytest.mark.parametrize("n", [0, 1, 5, 9])
def test_exactly_n_are_chosen_or_all_there_are(n):
    positions, information = choose(draw(5, 4, 3), n)
    assert positions.dtype == np.intp
    assert len(positions) == len(information) == min(n, 5)
    assert len(set(positions.tolist())) == min(n, 5)


def test_the_draws_stay_as_they_were():
    draws = draw(20, 4, 3)
    before = draws.copy()
    draws.flags.writeable = False
    choose(draws, 5, n_samples=10)
    assert_array_equal(draws, before)


@pytest.mark.long
@pytest.mark.parametrize("k", [2, 7])
def test_probabilities_of_zero_and_one_are_ordinary(k):
    draws = np.eye(k)[np.random.default_rng(0).integers(k, size=(12, 9))]
    positions, information = choose(draws, 4)
    expected, values = greedy_by_hand(draws, 4)
    # Many candidates tie, so what was reached is compared, pick by pick.
    assert_allclose(information[0], values[0], atol=1e-12)
    found = [information_by_loops(draws[positions[: m + 1]]) for m in range(4)]
    assert_allclose(information, found, atol=1e-3)
    assert len(set(positions.tolist())) == len(expected)
