"""Farthest-first choice against double loops and the best possible choice."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

from skactive._math import _k_center as centers
from skactive._math._k_center import k_center

METRICS = ["euclidean", "cosine"]


def draw(n, d, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def draw_grid(n, d, seed=0, dtype=np.float64):
    """Rows of small whole numbers: many are equal or equally far."""
    return np.random.default_rng(seed).integers(-2, 3, (n, d)).astype(dtype)


def direction(row):
    length = math.sqrt(math.fsum(value * value for value in row))
    return [value / length for value in row] if length else row


def tabulate(X, labeled, metric):
    """Distances (n, n + m) of rows to all rows and to the labeled, in float64."""
    rows = [*X.astype(np.float64).tolist(), *labeled.astype(np.float64).tolist()]
    if metric == "cosine":
        rows = [direction(row) for row in rows]
    return [[math.dist(a, b) for b in rows] for a in rows[: len(X)]]


def loop(table, n, b):
    """The definition by a double loop; column j of the table is center j."""
    nearest, picks = [min(row[n:]) for row in table], []
    for _ in range(b):
        picks.append(max(set(range(n)) - set(picks), key=nearest.__getitem__))
        columns = zip(nearest, table, strict=True)
        nearest = [min(known, row[picks[-1]]) for known, row in columns]
    return picks


def assert_each_pick_is_farthest(table, picks, n):
    """With ties any of the farthest will do."""
    chosen = list(range(n, len(table[0])))
    assert len(set(picks)) == len(picks)
    for step, pick in enumerate(picks):
        if chosen:
            left = set(range(n)) - set(picks[:step])
            farthest = max(min(table[i][j] for j in chosen) for i in left)
            reached = min(table[pick][j] for j in chosen)
            # What rounding in float64 cannot tell apart counts as equal.
            assert reached**2 == pytest.approx(farthest**2, rel=1e-9, abs=1e-8)
        chosen.append(pick)


def choose(X, b, seed=0, **kwargs):
    return k_center(X, b, np.random.default_rng(seed), **kwargs).tolist()


blocks = st.tuples(st.integers(1, 60), st.integers(1, 20))


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 50),
    m=st.integers(1, 15),
    d=st.integers(1, 8),
    b=st.integers(1, 50),
    dtype=st.sampled_from([np.float32, np.float64]),
    kind=st.sampled_from([np.asarray, sparse.csr_array]),
    metric=st.sampled_from(METRICS),
    blocks=blocks,
)
def test_picks_are_those_of_the_double_loop(
    seed, n, m, d, b, dtype, kind, metric, blocks
):
    d += metric == "cosine"  # on a line there are only two directions
    X, labeled, b = draw(n, d, seed, dtype), draw(m, d, seed + 1, dtype), min(b, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centers, "ROWS", blocks[0])
        patch.setattr(centers, "CENTERS", blocks[1])
        picks = choose(kind(X), b, labeled=kind(labeled), metric=metric)
    assert picks == loop(tabulate(X, labeled, metric), n, b)


@pytest.mark.parametrize("far", [1e3, 1e5, 1e7])
@pytest.mark.parametrize("known", [False, True])
def test_one_row_far_out_does_not_make_the_other_picks_random(far, known):
    X, labeled = np.vstack([draw(40, 3), np.full(3, far)]), draw(2, 3, 1)
    table = tabulate(X, labeled, "euclidean")
    known = {"distances": (np.array(table)[:41, 41:] ** 2).min(axis=1)} if known else {}
    for seed in range(3):
        assert choose(X, 20, seed, labeled=labeled, **known) == loop(table, 41, 20)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 40),
    m=st.integers(0, 10),
    d=st.integers(1, 4),
    b=st.integers(1, 40),
    shift=st.sampled_from([0, 300]),
    dtype=st.sampled_from([np.float32, np.float64]),
    metric=st.sampled_from(METRICS),
    blocks=blocks,
)
def test_with_ties_each_pick_is_one_of_the_farthest(
    seed, n, m, d, b, shift, dtype, metric, blocks
):
    X, labeled = (draw_grid(k, d, seed, dtype) + dtype(shift) for k in (n, m))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centers, "ROWS", blocks[0])
        patch.setattr(centers, "CENTERS", blocks[1])
        picks = choose(X, min(b, n), seed, labeled=labeled, metric=metric)
    assert_each_pick_is_farthest(tabulate(X, labeled, metric), picks, n)


@pytest.mark.parametrize("m", [0, 30])
@pytest.mark.parametrize("values", [draw, draw_grid])
def test_picks_do_not_depend_on_the_blocks_or_threads(monkeypatch, values, m):
    X, labeled = values(1500, 5, 0, np.float32), values(m, 5, 1, np.float32)
    expected = choose(X, 40, labeled=labeled)
    for rows, columns, n_jobs in [(1024, 7, 1), (100, 1024, 3), (33, 5, 1)]:
        monkeypatch.setattr(centers, "ROWS", rows)
        monkeypatch.setattr(centers, "CENTERS", columns)
        assert choose(X, 40, labeled=labeled, n_jobs=n_jobs) == expected


def test_float32_rows_that_a_product_cannot_tell_apart_are_measured(monkeypatch):
    monkeypatch.setattr(centers, "ROWS", 8)
    X = np.ones((60, 6), dtype=np.float32)
    X[:, 0] += np.random.default_rng(0).random(60, dtype=np.float32) / 500
    X[::2] *= -1  # so that no shift of the origin helps
    labeled = X[:2] / 2
    table = tabulate(X, labeled, "euclidean")
    assert choose(X, 8, labeled=labeled) == loop(table, 60, 8)


@pytest.mark.parametrize("m", [0, 2])
@pytest.mark.parametrize("seed", range(8))
def test_the_radius_is_at_most_twice_the_best_possible(seed, m):
    X, labeled, b = draw(11, 2, seed), draw(m, 2, seed + 100), 3
    table = cdist(np.concatenate([X, labeled]), X)

    def radius(picks):
        return table[[*picks, *range(11, 11 + m)]].min(axis=0).max()

    best = min(radius(picks) for picks in itertools.combinations(range(11), b))
    assert radius(choose(X, b, seed, labeled=labeled)) <= 2 * best + 1e-12


def test_equal_candidates_are_equally_likely():
    X, labeled = np.repeat([[1.0], [4.0]], [3, 5], axis=0), np.zeros((1, 1))
    firsts = [choose(X, 2, seed, labeled=labeled) for seed in range(600)]
    counts = np.bincount([first for first, _ in firsts], minlength=8)
    assert_array_equal(counts[:3], 0)
    assert counts[3:].min() > 85
    assert {second for _, second in firsts} == {0, 1, 2}


def test_without_labels_the_first_is_any():
    firsts = [choose(draw(5, 2), 1, seed)[0] for seed in range(300)]
    assert np.bincount(firsts, minlength=5).min() > 35


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("value", [0.0, 2.0])
@pytest.mark.parametrize("m", [0, 1])
def test_a_pool_of_equal_rows_is_chosen_at_random(monkeypatch, value, metric, m):
    monkeypatch.setattr(centers, "ROWS", 7)
    X = np.full((40, 3), value, dtype=np.float32)
    picks = choose(X, 40, labeled=X[:m], metric=metric)
    assert sorted(picks) == list(range(40))
    assert picks != sorted(picks)


def test_copies_come_last():
    X = draw(20, 3)
    picks = choose(np.concatenate([X, X]), 40)
    assert len({pick % 20 for pick in picks[:20]}) == 20


def test_a_memory_map_is_read_in_chunks(tmp_path):
    X = draw(20_000, 64, 0, np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for metric in METRICS:
        tracemalloc.start()
        picks = choose(mapped, 30, labeled=mapped[:50], metric=metric)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < X.nbytes / 1.5
        assert picks == choose(X, 30, labeled=X[:50], metric=metric)


def test_an_unknown_metric_is_refused():
    with pytest.raises(ValueError, match=r"metric must be one of .*; got 'l1'"):
        choose(draw(3, 2), 1, metric="l1")
