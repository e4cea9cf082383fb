"""Batches against double loops with math.dist."""

import math
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from skactive.analysis import class_coverage, describe_batches
from skactive.simulation import Run


def measure(name, batch, pool, **options):
    """One measure of one batch."""
    run = Run([{"queried": batch}])
    return describe_batches(run, pool, measures=[name], **options)[name].item()


diversity = partial(measure, "diversity")
representativeness = partial(measure, "representativeness")
redundancy = partial(measure, "redundancy")


def loop_diversity(batch, pool):
    return 1 / (
        sum(min(math.dist(x, pool[b]) for b in batch) for x in pool) / len(pool)
    )


def loop_representativeness(batch, pool, n_neighbors):
    means = []
    for b in batch:
        others = sorted(
            math.dist(pool[b], x) for i, x in enumerate(pool) if i != b
        )[:n_neighbors]  # fmt: skip
        means.append(sum(others) / len(others))
    return 1 / (sum(means) / len(means))


def loop_redundancy(batch, pool):
    def cosine(x, z):
        dot = sum(a * b for a, b in zip(x, z, strict=True))
        return dot / (math.hypot(*x) * math.hypot(*z) or 1)

    return sum(
        max(cosine(pool[i], pool[j]) for j in batch if j != i) for i in batch
    ) / len(batch)


def draw(n=80, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


KINDS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}
each_kind = pytest.mark.parametrize("kind", KINDS)
BATCH = [70, 3, 12, 40, 41]


@each_kind
def test_diversity_by_a_double_loop(kind):
    pool = draw()
    found = diversity(BATCH, KINDS[kind](pool))
    assert_allclose(found, loop_diversity(BATCH, pool.tolist()), rtol=1e-6)


@each_kind
@pytest.mark.parametrize("n_neighbors", [1, 10, 500])
def test_representativeness_by_a_double_loop(kind, n_neighbors):
    pool = draw()
    found = representativeness(BATCH, KINDS[kind](pool), n_neighbors=n_neighbors)
    expected = loop_representativeness(BATCH, pool.tolist(), n_neighbors)
    assert_allclose(found, expected, rtol=1e-6)


@each_kind
def test_redundancy_by_a_double_loop(kind):
    pool = draw()
    pool[3] = 0
    found = redundancy(BATCH, KINDS[kind](pool))
    assert_allclose(found, loop_redundancy(BATCH, pool.tolist()), rtol=1e-6)


def test_ten_neighbors_by_default():
    pool = draw()
    expected = loop_representativeness(BATCH, pool.tolist(), 10)
    assert_allclose(representativeness(BATCH, pool), expected)


def test_the_item_itself_is_no_neighbor_and_its_duplicate_is():
    pool = np.array([[0.0], [0.0], [3.0], [7.0]])
    assert representativeness([0], pool, n_neighbors=2) == 1 / 1.5  # 0 and 3
    assert representativeness([0, 1], pool, n_neighbors=1) == math.inf


def test_the_order_of_a_batch_does_not_matter():
    pool = draw(30)
    for find in (diversity, representativeness, redundancy):
        assert_allclose(find([4, 9, 20], pool), find([20, 4, 9], pool))


def test_spread_batches_are_diverse_and_outliers_not_representative():
    centers = np.array([[0, 0], [10, 0], [0, 10]])
    pool = np.repeat(centers, 20, axis=0) + draw(60, 2)
    pool = np.concatenate([pool, [[60, 60], [-60, 60], [60, -60]]])
    assert diversity([0, 20, 40], pool) > diversity([0, 1, 2], pool)
    dense, outliers = ([0, 20, 40], [60, 61, 62])
    assert representativeness(dense, pool) > 5 * representativeness(outliers, pool)
    pool[1] = pool[2] = 2 * pool[0]
    assert redundancy([0, 1, 2], pool) == pytest.approx(1)


def test_limits():
    pool = draw(4)
    assert diversity([0, 1, 2, 3], pool) == math.inf
    assert math.isnan(redundancy([0], pool))
    assert redundancy([0, 1], np.array([[1.0, 0], [-2.0, 0]])) == -1


def test_redundancy_in_chunks(monkeypatch):
    pool = draw(50)
    expected = redundancy(range(50), pool)
    monkeypatch.setattr("skactive.analysis._queried.chunk_size", lambda _: 7)
    assert_allclose(redundancy(range(50), pool), expected)


@pytest.mark.parametrize(
    ("batch", "pool", "message"),
    [
        ([4], draw(4), r"'run.queried' must lie in \[0, 4\)"),
        ([1, 1], draw(4), "'run.queried' names 1 positions more than once"),
        ([0], [1.0, 2.0], r"'features' must be features of shape \(n, d\)"),
        ([0], [["a"], ["b"]], r"'features' must be numeric features of shape \(n, d\)"),
        ([0], [[np.nan], [1.0]], "'features' holds NaN"),
    ],
)
def test_what_cannot_be_measured_is_refused(batch, pool, message):
    with pytest.raises((TypeError, ValueError), match=message):
        representativeness(batch, pool)


def test_k_below_one_is_refused():
    with pytest.raises(ValueError, match=r"'n_neighbors' parameter .* must be an int"):
        representativeness([0], draw(4), n_neighbors=0)


# Runs


def test_rounds_are_measured_among_what_was_left():
    pool = draw(30)
    order = np.random.default_rng(1).permutation(30).tolist()
    batches = [order[:5], order[5:12], [], order[12:13], order[13:20]]
    measured = describe_batches(
        Run([{"queried": b} for b in batches]), pool, n_neighbors=3
    )
    done = []
    for i, batch in enumerate(batches):
        left = [p for p in range(30) if p not in done]
        rows = pool[left].tolist()
        places = [left.index(p) for p in batch]
        done += batch
        if not batch:
            assert all(math.isnan(values[i]) for values in measured.values())
            continue
        assert_allclose(measured["diversity"][i], loop_diversity(places, rows))
        expected = loop_representativeness(places, rows, 3)
        assert_allclose(measured["representativeness"][i], expected)
        if len(batch) > 1:
            expected = loop_redundancy(places, rows)
            assert_allclose(measured["redundancy"][i], expected)
        else:
            assert math.isnan(measured["redundancy"][i])


def test_a_pool_that_is_used_up():
    measured = describe_batches(Run([{"queried": [1, 0]}, {"queried": [2]}]), draw(3))
    assert math.isnan(measured["representativeness"][1])
    assert measured["diversity"][1] == math.inf


def test_only_what_is_asked_for():
    run = Run([{"queried": [0, 1]}])
    assert set(describe_batches(run, draw(4), measures=["redundancy"])) == {
        "redundancy"
    }
    with pytest.raises(ValueError, match=r"'measures' must be among .* got 'entropy'"):
        describe_batches(run, draw(4), measures=["entropy"])
    with pytest.raises(ValueError, match=r"'run.queried' must lie in \[0, 1\)"):
        describe_batches(run, draw(1))
    assert len(describe_batches(Run(), draw(4))["diversity"]) == 0


# Classes


def test_class_coverage_by_hand():
    y = ["b", "a", "a", "c", "b", "a", "d"]
    run = Run(
        [{"queried": [1, 2]}, {"queried": []}, {"queried": [0, 5]}, {"queried": [3]}]
    )
    coverage = class_coverage(run, y)
    assert coverage.classes.tolist() == ["a", "b", "c", "d"]
    assert coverage.counts.tolist() == [
        [2, 0, 0, 0],
        [2, 0, 0, 0],
        [3, 1, 0, 0],
        [3, 1, 1, 0],
    ]
    assert coverage.n_labeled.tolist() == [2, 2, 4, 5]
    assert coverage.n_seen.tolist() == [1, 1, 2, 3]
    assert coverage.imbalance.tolist() == [2, 2, 3, 3]
    assert coverage.first == {"a": 1, "b": 3, "c": 5, "d": None}


def test_class_coverage_of_numbers_bools_and_nothing():
    run = Run([{"queried": [2, 0]}])
    assert class_coverage(run, np.array([5, 5, 7])).first == {5: 2, 7: 1}
    assert class_coverage(run, [False, False, True]).first == {False: 2, True: 1}
    coverage = class_coverage(Run([{"queried": []}]), [0, 1])
    assert coverage.counts.tolist() == [[0, 0]]
    assert coverage.first == {0: None, 1: None}
    assert class_coverage(Run(), [0, 1]).counts.shape == (0, 2)


def test_class_coverage_refuses_another_pools_labels():
    run = Run([{"queried": [2, 0]}])
    with pytest.raises(ValueError, match=r"'run.queried' must lie in \[0, 2\)"):
        class_coverage(run, [0, 1])
    with pytest.raises(TypeError, match="an indicator matrix of 0 and 1, got"):
        class_coverage(run, np.full((3, 2), 2))


def test_class_coverage_as_a_frame():
    pytest.importorskip("pandas")
    frame = class_coverage(Run([{"queried": [2, 0]}]), ["a", "a", "b"]).to_frame()
    assert list(frame) == ["n_labeled", "n_seen", "a", "b"]
    assert frame.iloc[0].tolist() == [2, 2, 1, 1]
