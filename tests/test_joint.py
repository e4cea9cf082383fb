"""Joint information against sums over all configurations of labels, and its bounds."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skactive import joint
from skactive.joint import joint_information, select_jointly


def draw(n, t, k, seed=0, concentration=0.5):
    return np.random.default_rng(seed).dirichlet(np.full(k, concentration), (n, t))


def by_hand(draws):
    """H(y_1..y_m) - H(y_1..y_m | w) with a loop over all configurations of labels."""
    m, t, k = draws.shape
    entropy = 0.0
    for labels in itertools.product(range(k), repeat=m):
        likelihoods = [
            math.prod(draws[i, s, y] for i, y in enumerate(labels)) for s in range(t)
        ]
        p = math.fsum(likelihoods) / t
        entropy -= p * math.log(p) if p > 0 else 0.0
    return entropy - scipy.stats.entropy(draws, axis=2).mean(axis=1).sum()


def greedy_by_hand(draws, n):
    picks = []
    for _ in range(n):
        rest = [i for i in range(len(draws)) if i not in picks]
        picks.append(max(rest, key=lambda i: by_hand(draws[[*picks, i]])))
    return picks, [by_hand(draws[picks[: m + 1]]) for m in range(n)]


def choose(draws, n, seed=0, **params):
    return select_jointly(draws, n, np.random.default_rng(seed), **params)


# The information of a batch


@pytest.mark.parametrize(("m", "k"), [(1, 2), (2, 3), (3, 4), (4, 2), (4, 3), (2, 7)])
@pytest.mark.parametrize("t", [1, 2, 9])
def test_the_information_is_the_sum_over_all_configurations(m, t, k):
    draws = draw(m, t, k, seed=m)
    assert joint_information(draws) == pytest.approx(by_hand(draws), abs=1e-12)


def test_one_label_tells_its_mutual_information():
    draws = draw(1, 6, 3)
    mean = scipy.stats.entropy(draws[0].mean(axis=0))
    expected = mean - scipy.stats.entropy(draws[0], axis=1).mean()
    assert joint_information(draws) == pytest.approx(expected, abs=1e-12)


def test_no_label_tells_nothing():
    assert joint_information(np.empty((0, 5, 3))) == 0.0


def test_independent_items_add_up():
    # Two coins, each known to a factor of the model of its own.
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    first, second = sure[[0, 0, 1, 1]], sure[[0, 1, 0, 1]]
    assert joint_information(np.array([first, second])) == pytest.approx(math.log(4))


def test_a_chunk_of_the_sum_changes_nothing(monkeypatch):
    draws = draw(8, 5, 3)
    whole = joint_information(draws)
    monkeypatch.setattr(joint, "chunk_size", lambda row_bytes, limit=0: 7)
    assert joint_information(draws) == pytest.approx(whole, abs=1e-13)


@pytest.mark.parametrize(("m", "k"), [(11, 2), (5, 7)])
def test_the_sampled_information_comes_to_the_exact_one(m, k):
    draws = draw(m, 12, k, concentration=2.0)
    exact = joint_information(draws)

    def error(n_samples):
        found = [
            joint_information(
                draws, exact_up_to=1, n_samples=n_samples, rng=np.random.default_rng(i)
            )
            for i in range(20)
        ]
        return np.abs(np.array(found) - exact).mean(), np.mean(found) - exact

    few, many = error(20), error(1000)
    assert many[0] < few[0] / 4
    assert many[0] < 2e-3 * exact
    assert abs(few[1]) < few[0]  # too high as often as too low
    assert error(k**m)[0] < 1e-10


def test_a_sample_needs_a_generator():
    with pytest.raises(ValueError, match="`rng` is needed for 30 labels of 3 classes"):
        joint_information(draw(30, 2, 3))


def test_a_large_batch_tells_no_more_than_there_is():
    draws = draw(200, 8, 3, concentration=0.2)
    rng = np.random.default_rng(0)
    found = joint_information(draws, n_samples=50, rng=rng)
    assert found == pytest.approx(math.log(8), abs=1e-9)
    assert found <= math.log(8)


# The choice


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
    gains = joint._Configurations.gains

    def count(self, some, working_bytes, rough=False):
        counts.append(0 if rough else len(some))
        return gains(self, some, working_bytes, rough)

    monkeypatch.setattr(joint._Configurations, "gains", count)
    monkeypatch.setattr(joint, "SHORTLIST", 10)
    return counts


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
    joint_information(draws[:3])
    assert_array_equal(draws, before)


@pytest.mark.parametrize("k", [2, 7])
def test_probabilities_of_zero_and_one_are_ordinary(k):
    draws = np.eye(k)[np.random.default_rng(0).integers(k, size=(12, 9))]
    positions, information = choose(draws, 4)
    expected, values = greedy_by_hand(draws, 4)
    # Many candidates tie, so what was reached is compared, pick by pick.
    assert_allclose(information[0], values[0], atol=1e-12)
    found = [by_hand(draws[positions[: m + 1]]) for m in range(4)]
    assert_allclose(information, found, atol=1e-3)
    assert len(set(positions.tolist())) == len(expected)


# The sample of configurations


def test_thinning_keeps_every_sum_right_on_average():
    values = np.random.default_rng(0).gamma(0.3, size=60)
    other = np.random.default_rng(1).normal(size=60)
    sums = []
    for seed in range(4000):
        kept, shares = joint._thin(values, 20, np.random.default_rng(seed))
        assert len(kept) == 20
        assert_allclose((values[kept] / shares).sum(), values.sum(), rtol=1e-9)
        sums.append((other[kept] * values[kept] / shares).sum())
    error = np.mean(sums) - (other * values).sum()
    assert abs(error) < 4 * np.std(sums) / math.sqrt(len(sums))


def test_thinning_keeps_the_large_for_certain():
    values = np.array([0.01] * 30 + [5.0, 7.0])
    for seed in range(30):
        kept, shares = joint._thin(values, 6, np.random.default_rng(seed))
        assert_array_equal(kept[-2:], [30, 31])
        assert_array_equal(shares[-2:], [1, 1])
        assert_allclose(shares[:-2], 4 / 30)


def test_thinning_leaves_few_as_they_are_but_for_what_is_nothing():
    kept, shares = joint._thin(np.array([0.3, 0.0, 1e-14, 0.1]), 10, None)
    assert_array_equal(kept, [0, 3])
    assert_array_equal(shares, [1, 1])


# Properties

shapes = st.tuples(st.integers(1, 6), st.integers(1, 6), st.sampled_from([2, 3, 7]))


@st.composite
def some_draws(draw):
    n, t, k = draw(shapes)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows = rng.dirichlet(np.full(k, draw(st.sampled_from([0.02, 0.3, 5.0]))), (n, t))
    certain = np.eye(k)[rng.integers(k, size=(n, t))]
    return np.where(rng.random((n, 1, 1)) < 0.3, certain, rows)


@settings(deadline=None, max_examples=60)
@given(draws=some_draws(), n_samples=st.sampled_from([1, 4, 4096]))
def test_the_information_stays_in_its_bounds(draws, n_samples):
    n, t, _ = draws.shape
    positions, information = choose(draws, n, n_samples=n_samples)
    alone = np.array([joint_information(row[None]) for row in draws])
    slack = 1e-12
    assert (information >= 0).all()
    assert (np.diff(information) >= 0).all()
    assert (information <= math.log(t)).all()
    assert (information <= np.cumsum(alone[positions]) + slack).all()
    assert information[0] == pytest.approx(alone.max(), abs=slack)
    for exact_up_to in (1, 2**24):
        rng = np.random.default_rng(0)
        found = joint_information(draws, exact_up_to=exact_up_to, rng=rng)
        assert 0 <= found <= min(math.log(t), alone.sum() + slack)


@settings(deadline=None, max_examples=60)
@given(draws=some_draws(), data=st.data())
def test_the_order_of_a_batch_does_not_matter(draws, data):
    order = data.draw(st.permutations(range(len(draws))))
    found = joint_information(draws[order])
    assert found == pytest.approx(joint_information(draws), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(draws=some_draws())
def test_a_further_label_never_tells_less(draws):
    found = [joint_information(draws[:m]) for m in range(len(draws) + 1)]
    assert (np.diff(found) >= -1e-12).all()


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1000), data=st.data())
def test_permuting_the_pool_permutes_the_choice(seed, data):
    draws = draw(12, 5, 3, seed)
    order = np.array(data.draw(st.permutations(range(12))))
    positions, information = choose(draws, 4)
    found, values = choose(draws[order], 4)
    assert_allclose(values, information, atol=1e-12)
    assert_array_equal(order[found], positions)
