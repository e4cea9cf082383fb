"""Factored gradients against the outer products themselves."""

import tracemalloc

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skactive.strategies import _gradient as factors
from skactive.strategies._gradient import (
    expected_length,
    factored_distances,
    factored_norms,
    sample_apart,
)


def make(n, k=3, d=5, seed=0, dtype=np.float64):
    """Residuals of random distributions, and random inputs."""
    rng = np.random.default_rng(seed)
    residuals = rng.dirichlet(np.full(k, 0.5), n)
    residuals[np.arange(n), residuals.argmax(axis=1)] -= 1
    return residuals.astype(dtype), rng.normal(size=(n, d)).astype(dtype)


def outer(residuals, inputs):
    """The n x kd matrix that the factors stand for."""
    rows = zip(residuals, inputs, strict=True)
    return np.array([np.outer(a, h).ravel() for a, h in rows], dtype=np.float64)


each_form = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
each_k = pytest.mark.parametrize("k", [2, 3, 7])


# Lengths and distances


@each_form
@each_k
def test_norms_are_those_of_the_outer_products(k, form):
    residuals, inputs = make(30, k)
    expected = [np.linalg.norm(row) ** 2 for row in outer(residuals, inputs)]
    assert_allclose(factored_norms(residuals, form(inputs)), expected, rtol=1e-12)


@each_form
@each_k
def test_distances_are_those_of_the_outer_products(k, form):
    residuals, inputs = make(30, k)
    rows = outer(residuals, inputs)
    expected = [[((g - c) ** 2).sum() for c in rows[:4]] for g in rows]
    distances = factored_distances(
        (residuals, form(inputs)), (residuals[:4], form(inputs[:4]))
    )
    assert_allclose(distances, expected, rtol=1e-9, atol=0)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.floats(-12, 0), scale=st.floats(-6, 6))
def test_near_rows_have_accurate_distances(seed, size, scale):
    rng = np.random.default_rng(seed)
    residuals, inputs = make(1, seed=seed)
    inputs *= 10**scale
    others = residuals + 10**size * rng.normal(size=(6, 3))
    moved = inputs + 10 ** (size + scale) * rng.normal(size=(6, 5))
    exact = np.longdouble
    expected = [
        ((np.outer(a, h) - np.outer(residuals.astype(exact), inputs)) ** 2).sum()
        for a, h in zip(others.astype(exact), moved.astype(exact), strict=True)
    ]
    distances = factored_distances((others, moved), (residuals, inputs))
    assert_allclose(distances[:, 0], np.array(expected, dtype=float), rtol=0.02)


@each_form
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_equal_rows_are_at_distance_zero_exactly(dtype, scale, form):
    residuals, inputs = make(50, d=40, dtype=dtype)
    copies = np.tile(np.arange(50), 3)
    inputs = (inputs + 1) * dtype(scale)
    distances = factored_distances(
        (residuals[copies], form(inputs[copies])), (residuals, form(inputs))
    )
    same = copies[:, None] == np.arange(50)
    assert_array_equal(distances[same], 0)
    assert (distances[~same] > 0).all()


def test_gradients_of_length_zero_are_equal_whatever_their_factors():
    residuals = np.array([[0.0, 0.0], [0.0, 0.0], [0.5, -0.5]])
    inputs = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]])
    assert_array_equal(factored_norms(residuals, inputs), 0)
    distances = factored_distances((residuals, inputs), (residuals, inputs))
    assert_array_equal(distances, 0)


# Expected length


def expected_length_of_row(a, h, *, bias, squared):
    p = [*a]
    p[p.index(min(p))] += 1
    length = 0.0
    for label, weight in enumerate(p):
        error = [q - (c == label) for c, q in enumerate(p)]
        square = sum(e * x * e * x for e in error for x in [*h, *([1.0] * bias)])
        length += weight * (square if squared else square**0.5)
    return length


@each_form
@each_k
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("squared", [True, False])
def test_expected_length_is_that_of_a_loop(k, form, bias, squared):
    residuals, inputs = make(20, k)
    options = {"bias": bias, "squared": squared}
    rows = zip(residuals.tolist(), inputs.tolist(), strict=True)
    expected = [expected_length_of_row(a, h, **options) for a, h in rows]
    found = expected_length(residuals, form(inputs), **options)
    assert_allclose(found, expected, rtol=1e-12)


def test_expected_length_of_sure_rows_is_accurate():
    tiny = 10.0 ** -np.arange(1, 15)
    residuals = np.stack([-tiny, 0.75 * tiny, 0.25 * tiny], axis=1)
    inputs = np.ones((14, 4))
    # p = (1 - t, 3t/4, t/4): one term is (1 - t) |r|, the others are near t sqrt(2).
    found = expected_length(residuals, inputs, bias=False)
    leading = tiny * (np.sqrt(1 + 0.75**2 + 0.25**2) + np.sqrt(2)) * 2
    assert_allclose(found[3:], leading[3:], rtol=1e-3)
    assert expected_length(np.zeros((1, 3)), inputs[:1])[0] == 0


def test_squared_expected_length_is_that_of_gini():
    residuals, inputs = make(40)
    proba = residuals.copy()
    proba[np.arange(40), proba.argmin(axis=1)] += 1
    gini = 1 - (proba**2).sum(axis=1)
    found = expected_length(residuals, inputs, squared=True)
    assert_allclose(found, gini * (1 + (inputs**2).sum(axis=1)))


# Sampling


def squared_distances(gradients):
    """Return (n, n) squared distances between the rows of the explicit matrix."""
    return ((gradients[:, None] - gradients) ** 2).sum(axis=2)


def plain_sampling(first, distances, n, rng):
    """Run k-means++ on the explicit matrix, by the book."""
    chosen = [first]
    while len(chosen) < n:
        closest = distances[:, chosen].min(axis=1)
        chosen.append(rng.choice(len(distances), p=closest / closest.sum()))
    return chosen


def probability(picks, distances):
    """Probability that k-means++ draws these in this order, by its definition."""
    total = 1.0
    for at in range(1, len(picks)):
        closest = [min(row[c] for c in picks[:at]) for row in distances]
        total *= closest[picks[at]] / sum(closest)
    return total


def assert_drawn_by_the_book(residuals, inputs, draws, batch=3):
    gradients = outer(residuals, inputs)
    distances = squared_distances(gradients)
    rng = np.random.default_rng(0)
    found = [
        tuple(sample_apart(residuals, inputs, batch, rng).tolist())
        for _ in range(draws)
    ]
    first = int((gradients**2).sum(axis=1).argmax())
    left = [i for i in range(len(gradients)) if i != first]
    outcomes = [(first, i, j) for i in left for j in left if i != j]
    expected = np.array([draws * probability(o, distances) for o in outcomes])
    counts = np.array([found.count(o) for o in outcomes])
    assert counts.sum() == draws
    assert expected.sum() == pytest.approx(draws)
    rare = expected < 5
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        counts = np.append(counts[~rare], counts[rare].sum())
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-3


each_number_of_draws = pytest.mark.parametrize(
    "draws", [400, pytest.param(2000, marks=pytest.mark.slow)]
)


@pytest.mark.long
@each_number_of_draws
@each_k
def test_three_picks_have_the_probabilities_of_the_definition(k, draws):
    assert_drawn_by_the_book(*make(7, k, seed=k), draws)


@pytest.mark.long
@each_number_of_draws
@pytest.mark.parametrize(("batch", "patience"), [(1, 0), (2, 0), (16, 1)])
def test_passes_over_all_rows_may_come_at_any_time(monkeypatch, batch, patience, draws):
    monkeypatch.setattr(factors, "BATCH", batch)
    monkeypatch.setattr(factors, "PATIENCE", patience)
    assert_drawn_by_the_book(*make(6, seed=3), draws)


@pytest.mark.long
@pytest.mark.parametrize(
    ("draws", "plain_draws"),
    [(50, 300), pytest.param(180, 800, marks=pytest.mark.slow)],
)
def test_long_batches_are_as_spread_as_those_of_the_plain_way(draws, plain_draws):
    residuals, inputs = make(60, seed=1)
    gradients = outer(residuals, inputs)
    first = int((gradients**2).sum(axis=1).argmax())
    distances = squared_distances(gradients)

    def rest(picks):
        return distances[:, picks].min(axis=1).sum()

    rng = np.random.default_rng(0)
    # Plain runs cost less. With more of them, fewer of ours find the same differences.
    found = [rest(sample_apart(residuals, inputs, 25, rng)) for _ in range(draws)]
    plain = [
        rest(plain_sampling(first, distances, 25, rng)) for _ in range(plain_draws)
    ]
    assert scipy.stats.ks_2samp(found, plain).pvalue > 1e-3


@pytest.mark.long
@each_form
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_of_the_chosen_are_left_while_others_are_there(dtype, form):
    residuals, inputs = make(12, d=40, dtype=dtype)
    copies = np.random.default_rng(0).permutation(np.repeat(np.arange(12), 40))
    many = residuals[copies], form(inputs[copies] + dtype(3))
    for seed in range(2):
        picks = sample_apart(*many, 20, np.random.default_rng(seed))
        assert len(set(picks)) == 20
        assert sorted(copies[picks[:12]]) == list(range(12))


@pytest.mark.long
@pytest.mark.parametrize("draws", [80, pytest.param(160, marks=pytest.mark.slow)])
def test_what_remains_of_copies_is_equally_likely(draws):
    residuals, inputs = make(2)
    copies = [0] * 4 + [1] * 4
    last = np.zeros(8)
    rng = np.random.default_rng(0)
    for _ in range(draws):
        picks = sample_apart(residuals[copies], inputs[copies], 3, rng)
        last[picks[2]] += 1
    assert scipy.stats.chisquare(last).pvalue > 1e-3


@pytest.mark.long
def test_gradients_of_length_zero_are_equally_likely():
    residuals, inputs = np.zeros((6, 3)), make(6)[1]
    counts = np.zeros((2, 6))
    rng = np.random.default_rng(0)
    for _ in range(1500):
        picks = sample_apart(residuals, inputs, 2, rng)
        counts[[0, 1], picks] += 1
    assert scipy.stats.chisquare(counts, axis=1).pvalue.min() > 1e-3


def test_the_longest_comes_first_and_ties_are_random():
    residuals, inputs = make(6)
    inputs[[1, 4]], residuals[[1, 4]] = 9.0, [0.5, 0.25, -0.75]
    rng = np.random.default_rng(0)
    firsts = [sample_apart(residuals, inputs, 1, rng)[0] for _ in range(400)]
    counts = np.bincount(firsts, minlength=6)
    assert counts[[0, 2, 3, 5]].sum() == 0
    assert 160 < counts[1] < 240


@pytest.mark.long
@each_form
@pytest.mark.parametrize("n", [0, 1, 2, 40, 41])
def test_any_number_up_to_all_of_them_is_chosen_once(n, form):
    residuals, inputs = make(41)
    picks = sample_apart(residuals, form(inputs), n, np.random.default_rng(0))
    assert picks.dtype == np.intp
    assert len(set(picks)) == len(picks) == n


def test_an_empty_pool_has_nothing_to_choose():
    residuals, inputs = make(0)
    assert sample_apart(residuals, inputs, 0, None).shape == (0,)
    assert expected_length(residuals, inputs).shape == (0,)


@pytest.mark.long
def test_the_answer_does_not_depend_on_threads_chunks_or_form(tmp_path, monkeypatch):
    residuals, inputs = make(500, d=20)
    np.save(tmp_path / "inputs.npy", inputs)
    mapped = np.load(tmp_path / "inputs.npy", mmap_mode="r")

    def sample(inputs, n_jobs=1):
        rng = np.random.default_rng(5)
        return sample_apart(residuals, inputs, 60, rng, n_jobs=n_jobs)

    expected = sample(inputs)
    length = expected_length(residuals, inputs)
    monkeypatch.setattr(factors, "LIMIT", 2**12)
    assert_array_equal(sample(inputs), expected)
    assert_array_equal(sample(inputs, n_jobs=2), expected)
    assert_array_equal(sample(mapped), expected)
    assert_array_equal(sample(sparse.csr_array(inputs)), expected)
    assert_array_equal(expected_length(residuals, mapped, n_jobs=2), length)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_named(bad):
    residuals, inputs = make(5)
    inputs[3, 0] = bad
    with pytest.raises(ValueError, match="must be finite; they are not at position 3"):
        sample_apart(residuals, inputs, 2, np.random.default_rng(0))


def test_memory_is_that_of_a_few_columns():
    residuals, inputs = make(20_000, k=8, d=64, dtype=np.float32)
    tracemalloc.start()
    sample_apart(residuals, inputs, 40, np.random.default_rng(0))
    expected_length(residuals, inputs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The matrix of gradients would hold 82 MB, one copy of the inputs 10 MB.
    assert peak < 8e6
