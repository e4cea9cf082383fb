"""Covering by balls against sets of neighbors and the best possible choice."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from skactive._math import _coverage as covers
from skactive._math._coverage import ball_cover, pure_radius

METRICS = ["euclidean", "cosine"]


def draw(n, d, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def draw_grid(n, d, seed=0, dtype=np.float64):
    """Rows of small whole numbers: many are equal or equally far."""
    return np.random.default_rng(seed).integers(-2, 3, (n, d)).astype(dtype)


def find_balls(X, Y, radius):
    """For each row of X the set of the rows of Y that it covers, in float64."""
    X, Y = (Z.astype(np.float64).tolist() for Z in (X, Y))
    return [{j for j, b in enumerate(Y) if math.dist(a, b) <= radius} for a in X]


def assert_each_pick_covers_most(balls, covered, picks):
    """Go through the picks; with ties any of the best will do."""
    covered = set(covered)
    assert len(set(picks)) == len(picks)
    for step, pick in enumerate(picks):
        left = set(range(len(balls))) - set(picks[:step])
        assert len(balls[pick] - covered) == max(len(balls[i] - covered) for i in left)
        covered |= balls[pick]


def choose(X, b, radius, seed=0, **kwargs):
    return ball_cover(X, b, radius, np.random.default_rng(seed), **kwargs).tolist()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 50),
    m=st.integers(0, 8),
    d=st.integers(1, 4),
    b=st.integers(1, 50),
    radius=st.sampled_from([0.0, 0.3, 1.0, 2.0, 3.0]),
    values=st.sampled_from([draw, draw_grid]),
    shift=st.sampled_from([0, 300]),
    dtype=st.sampled_from([np.float32, np.float64]),
    kind=st.sampled_from([np.asarray, sparse.csr_array]),
    blocks=st.tuples(st.integers(1, 60), st.integers(1, 20)),
    n_jobs=st.sampled_from([1, 2]),
)
def test_each_pick_covers_most_of_what_is_left(
    seed, n, m, d, b, radius, values, shift, dtype, kind, blocks, n_jobs
):
    X, labeled = (
        values(k, d, seed + i, dtype) + dtype(shift) for i, k in enumerate((n, m))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covers, "ROWS", blocks[0])
        patch.setattr(covers, "BLOCK", blocks[1])
        more = {"labeled": kind(labeled), "n_jobs": n_jobs}
        picks = choose(kind(X), min(b, n), radius, seed, **more)
    covered = set().union(*find_balls(labeled, X, radius))
    assert_each_pick_covers_most(find_balls(X, X, radius), covered, picks)


def test_the_cosine_compares_directions():
    X = draw(60, 3)
    scaled = X / np.sqrt((X**2).sum(axis=1, keepdims=True))
    picks = choose(X, 20, 0.4, metric="cosine")
    assert_each_pick_covers_most(find_balls(scaled, scaled, 0.4), (), picks)
    assert choose(sparse.csr_array(X), 20, 0.4, metric="cosine") == picks
    zeros = np.zeros((9, 3))
    assert len(choose(np.concatenate([X, zeros]), 69, 0.4, metric="cosine")) == 69


@pytest.mark.parametrize("seed", range(8))
def test_greedy_covers_its_share_of_the_best_possible(seed):
    X, b = draw(12, 2, seed), 3
    balls = find_balls(X, X, 0.6)

    def covered(picks):
        return len(set().union(*(balls[i] for i in picks)))

    best = max(covered(picks) for picks in itertools.combinations(range(12), b))
    assert covered(choose(X, b, 0.6, seed)) >= (1 - 1 / math.e) * best


def test_two_clumps_are_covered_by_two_picks():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.01, (30, 2)), rng.normal(5, 0.01, (5, 2))])
    for seed in range(20):
        first, second, _ = choose(X, 3, 1.0, seed)
        assert first < 30 <= second


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_ball_ends_exactly_at_its_radius(dtype):
    X = np.array([[0.0], [3.0], [6.0], [9.5]], dtype=dtype) + dtype(1000)
    assert choose(X, 1, 3.0) == [1]
    counts = [choose(X, 1, 2.999, seed)[0] for seed in range(100)]
    assert set(counts) == {0, 1, 2, 3}
    assert choose(X, 1, np.inf) in ([0], [1], [2], [3])


def test_the_rest_is_random_when_all_is_covered(monkeypatch):
    monkeypatch.setattr(covers, "BLOCK", 3)
    X = np.zeros((30, 2))
    for labeled in (None, X[:1]):
        picks = choose(X, 30, 1.0, labeled=labeled)
        assert sorted(picks) == list(range(30))
        assert picks != sorted(picks)
    firsts = [choose(X[:5], 1, 1.0, seed)[0] for seed in range(300)]
    assert np.bincount(firsts).min() > 35


@pytest.mark.long
@pytest.mark.parametrize("values", [draw, draw_grid])
def test_picks_do_not_depend_on_the_blocks_or_threads(monkeypatch, values):
    X = values(1200, 4, 0, np.float32)
    expected = choose(X, 60, 1.0, labeled=X[:3])
    for rows, block, n_jobs in [(1024, 5, 3), (100, 256, 2), (33, 60, 1)]:
        monkeypatch.setattr(covers, "ROWS", rows)
        monkeypatch.setattr(covers, "BLOCK", block)
        assert choose(X, 60, 1.0, labeled=X[:3], n_jobs=n_jobs) == expected


def test_a_memory_map_is_taken_as_the_array_is(tmp_path):
    X = draw(800, 6, 0, np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert choose(mapped, 20, 1.5) == choose(X, 20, 1.5)


# The radius


def purity_at(radius, X, clusters):
    balls = find_balls(X, X, radius)
    pure = [len({clusters[j] for j in ball}) == 1 for ball in balls]
    return sum(pure) / len(pure)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(2, 40),
    k=st.integers(1, 4),
    purity=st.sampled_from([0.05, 0.5, 0.8, 0.95, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
    kind=st.sampled_from([np.asarray, sparse.csr_array]),
    rows=st.integers(1, 50),
)
def test_no_larger_radius_is_pure_enough(seed, n, k, purity, dtype, kind, rows):
    X = draw(n, 2, seed, dtype)
    clusters = np.random.default_rng(seed).integers(k, size=n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covers, "ROWS", rows)
        radius = pure_radius(kind(X), clusters, np.random.default_rng(0), purity=purity)
    assert purity_at(radius, X, clusters) >= purity
    rows = X.astype(np.float64).tolist()
    larger = [math.dist(a, b) for a in rows for b in rows if math.dist(a, b) > radius]
    if math.isinf(radius):
        assert larger == []
    else:
        assert purity_at(min(larger), X, clusters) < purity


def test_the_radius_from_a_sample_is_near_that_of_all(monkeypatch):
    X = np.concatenate([draw(1000, 3), draw(1000, 3, 1) + 4])
    clusters = np.repeat([0, 1], 1000)
    expected = pure_radius(X, clusters, np.random.default_rng(0))
    monkeypatch.setattr(covers, "SAMPLED", 500)
    found = pure_radius(X, clusters, np.random.default_rng(0))
    assert found != expected
    assert found == pytest.approx(expected, rel=0.1)


def test_the_radius_between_directions():
    X = np.array([[5.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 0.1]])
    clusters = np.array([0, 0, 1, 1])
    rng = np.random.default_rng(0)
    radius = pure_radius(X, clusters, rng, purity=1.0, metric="cosine")
    assert radius == pytest.approx(math.sqrt(2))
    assert radius < math.sqrt(2)
    assert_array_equal(ball_cover(X, 2, radius, rng, metric="cosine") // 2, [0, 1])
