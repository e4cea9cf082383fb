"""k-means in bounded memory against scikit-learn's, the rest against double loops."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from skactive._math import _clustering as clustering
from skactive._math._clustering import assign, k_means, nearest_rows


def make_rng(seed=0):
    return np.random.default_rng(seed)


def draw_blobs(n=400, k=8, d=5, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % k)
    middles = 100 * rng.permutation(np.eye(max(k, d))[:k, : max(k, d)])
    return (middles[y] + rng.normal(size=(n, max(k, d)))).astype(dtype), y


def all_distances(X, centers):
    X, centers = np.asarray(X, dtype=np.float64), np.asarray(centers, dtype=np.float64)
    return np.array([[sum((x - c) ** 2) ** 0.5 for c in centers] for x in X])


@pytest.fixture
def small_samples(monkeypatch):
    """Let k-means see only a part of even a small set of rows."""
    monkeypatch.setattr(clustering, "ROWS_PER_CLUSTER", 20)


@pytest.fixture
def small_chunks(monkeypatch):
    """Cut even a small set of rows into many chunks."""
    monkeypatch.setattr(clustering, "chunk_size", lambda row_bytes: 7)


CONVERSIONS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "int": lambda X: X.round().astype(int),
    "csr": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "csr float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "csc": sparse.csc_array,
}
each_kind = pytest.mark.parametrize(
    "convert", CONVERSIONS.values(), ids=CONVERSIONS.keys()
)


# k_means


@each_kind
def test_k_means_finds_separated_blobs_as_scikit_learn_does(convert):
    X, y = draw_blobs()
    centers, labels = k_means(convert(X), 8, make_rng())
    theirs = KMeans(8, n_init=5, random_state=0).fit(X)
    assert adjusted_rand_score(labels, y) == 1
    assert adjusted_rand_score(labels, theirs.labels_) == 1
    order = theirs.cluster_centers_[theirs.predict(np.asarray(centers, dtype=float))]
    assert_allclose(centers, order, atol=0.3 if "int" in str(convert) else 0.5)
    assert centers.shape == (8, 8)
    assert labels.dtype == np.intp


def test_k_means_is_about_as_good_as_scikit_learn_at_its_end():
    X = load_digits().data
    ours = []
    for seed in range(3):
        centers, labels = k_means(X, 30, make_rng(seed))
        ours.append(((X - centers[labels]) ** 2).sum())
    theirs = [
        KMeans(30, n_init=1, max_iter=300, random_state=seed).fit(X).inertia_
        for seed in range(3)
    ]
    assert np.mean(ours) < 1.02 * np.mean(theirs)


@pytest.mark.long
@each_kind
@pytest.mark.usefixtures("small_samples")
def test_k_means_on_a_sample_labels_every_row(convert):
    X, y = draw_blobs(n=1000)
    centers, labels = k_means(convert(X), 8, make_rng())
    assert adjusted_rand_score(labels, y) == 1
    rounded = X.round() if "int" in str(convert) else X
    assert_array_equal(labels, all_distances(rounded, centers).argmin(axis=1))


def test_labels_say_which_centre_is_nearest():
    X = make_rng(3).normal(size=(300, 4))
    centers, labels = k_means(X, 12, make_rng())
    assert_array_equal(labels, all_distances(X, centers).argmin(axis=1))


@pytest.mark.parametrize("rows_per_cluster", [256, 20])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_rows_of_another_matrix_are_clustered_along(
    convert, rows_per_cluster, monkeypatch
):
    monkeypatch.setattr(clustering, "ROWS_PER_CLUSTER", rows_per_cluster)
    X, _ = draw_blobs(n=600)
    joined = k_means(convert(X), 8, make_rng())
    apart = k_means(convert(X[:410]), 8, make_rng(), also=convert(X[410:]))
    assert_allclose(apart[0], joined[0])
    assert_array_equal(apart[1], joined[1])
    none = k_means(convert(X), 8, make_rng(), also=convert(X)[:0])
    assert_array_equal(none[1], joined[1])


@pytest.mark.parametrize("rows_per_cluster", [256, 20])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_normalized_is_as_if_the_rows_had_been(convert, rows_per_cluster, monkeypatch):
    monkeypatch.setattr(clustering, "ROWS_PER_CLUSTER", rows_per_cluster)
    X, _ = draw_blobs(n=500)
    X *= np.arange(1, 501)[:, None]
    X[::50] = 0
    once = k_means(convert(X), 9, make_rng(), normalize=True)
    before = k_means(convert(normalize(X)), 9, make_rng())
    assert_allclose(once[0], before[0], atol=1e-12)
    assert_array_equal(once[1], before[1])
    found = assign(convert(X), once[0], normalize=True)
    assert_allclose(found[1], all_distances(normalize(X), once[0]).min(axis=1))
    rows = nearest_rows(convert(X), once[0], make_rng(), normalize=True)
    assert_array_equal(rows, nearest_rows(normalize(X), once[0], make_rng()))


def test_one_seed_gives_one_answer_and_another_another():
    X = make_rng(1).normal(size=(300, 4))
    first, second, other = (k_means(X, 20, make_rng(seed))[0] for seed in (0, 0, 1))
    assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_threads_change_nothing():
    X = make_rng(1).normal(size=(3000, 8)).astype(np.float32)
    with threadpool_limits(1):
        alone = k_means(X, 20, make_rng())
    with threadpool_limits(4):
        together = k_means(X, 20, make_rng())
    assert_array_equal(alone[0], together[0])
    assert_array_equal(alone[1], together[1])


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("different", [1, 3])
def test_fewer_different_rows_than_clusters_warn_of_nothing(convert, different):
    X = np.repeat(make_rng().normal(size=(different, 3)), 20, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        centers, labels = k_means(convert(X), 7, make_rng())
        rows = nearest_rows(convert(X), centers, make_rng())
    assert centers.shape == (7, 3)
    assert_allclose(centers[labels], X, atol=1e-12)
    assert len(set(rows)) == 7


def test_labels_hold_where_a_cluster_ran_empty():
    # scikit-learn's own labels miss the center at (0, 1) here for some seeds.
    X = np.zeros((20, 2))
    X[[10, 18, 19], 1] = 1
    for seed in range(20):
        centers, labels = k_means(X, 5, make_rng(seed))
        assert_allclose(centers[labels], X, atol=1e-12)


def test_more_clusters_than_rows_are_as_many_as_rows():
    X = np.arange(6.0).reshape(3, 2)
    centers, labels = k_means(X, 10, make_rng())
    assert_array_equal(np.sort(centers, axis=0), X)
    assert sorted(labels) == [0, 1, 2]


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("rows_per_cluster", [256, 10])
def test_a_read_only_memory_map_is_read_and_not_written(
    normalized, rows_per_cluster, monkeypatch, tmp_path
):
    monkeypatch.setattr(clustering, "ROWS_PER_CLUSTER", rows_per_cluster)
    X, _ = draw_blobs(dtype=np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    centers, labels = k_means(mapped, 8, make_rng(), normalize=normalized)
    rows = nearest_rows(mapped, centers, make_rng(), normalize=normalized)
    expected = k_means(X, 8, make_rng(), normalize=normalized)
    assert_array_equal(labels, expected[1])
    assert_array_equal(rows, nearest_rows(X, centers, make_rng(), normalize=normalized))
    assert_array_equal(mapped, X)


@pytest.mark.parametrize("convert", [np.array, sparse.csr_array])
def test_the_rows_stay_as_they_were(convert):
    X, _ = draw_blobs()
    given_rows = convert(X)
    for normalized in (False, True):
        centers, _ = k_means(given_rows, 8, make_rng(), normalize=normalized)
        nearest_rows(given_rows, centers, make_rng(), normalize=normalized)
    now = given_rows.toarray() if sparse.issparse(given_rows) else given_rows
    assert_array_equal(now, X)


@pytest.mark.long
def test_memory_stays_below_that_of_the_rows(monkeypatch):
    X = make_rng().random((300_000, 32), dtype=np.float32)
    size = clustering.chunk_size
    monkeypatch.setattr(clustering, "chunk_size", lambda b: size(b, 2**22))
    tracemalloc.start()
    centers, _ = k_means(X, 10, make_rng(), normalize=True)
    nearest_rows(X, centers, make_rng(), normalize=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 2


# assign


@each_kind
@pytest.mark.parametrize("offset", [0, 300])
def test_assign_is_the_double_loop(convert, offset):
    rng = make_rng(2)
    X = convert(10 * rng.normal(size=(60, 4)) + offset)
    centers = 10 * rng.normal(size=(9, 4)) + offset
    dense = X.toarray() if sparse.issparse(X) else X
    expected = all_distances(dense, centers)
    labels, distances = assign(X, centers.astype(np.float32))
    assert_array_equal(labels, expected.argmin(axis=1))
    coarse = X.dtype == np.float32 or offset > 0
    assert_allclose(distances, expected.min(axis=1), rtol=2e-3 if coarse else 1e-5)


@pytest.mark.usefixtures("small_chunks")
def test_assign_does_not_depend_on_chunks_or_threads():
    X, centers = make_rng(0).normal(size=(100, 3)), make_rng(1).normal(size=(5, 3))
    expected = all_distances(X, centers)
    for n_jobs in (1, 2):
        labels, distances = assign(X, centers, n_jobs=n_jobs)
        assert_array_equal(labels, expected.argmin(axis=1))
        assert_allclose(distances, expected.min(axis=1))


def test_no_rows_have_no_labels():
    labels, distances = assign(np.empty((0, 3)), np.eye(3))
    assert labels.shape == distances.shape == (0,)


# nearest_rows


def nearest_rows_by_loops(X, centers):
    """The definition: a wanted row goes to the center it is nearest to, then again."""
    distances = all_distances(X, centers)
    n, k = distances.shape
    found, free = {}, set(range(n))
    while len(found) < k:
        rest = [j for j in range(k) if j not in found]
        offers = []
        for j in rest:
            offers.append(min((distances[i, j], i, j) for i in free))
        for _, i, j in sorted(offers):
            if i in free:
                found[j] = i
                free.remove(i)
            elif len(found) and len(rest) < k:  # not the first pass: what is left
                found[j] = min((distances[i, j], i) for i in free)[1]
                free.remove(found[j])
    return [found[j] for j in range(k)]


@each_kind
@pytest.mark.parametrize("seed", range(4))
def test_nearest_rows_are_those_of_the_double_loop(convert, seed):
    rng = make_rng(seed)
    X = convert(10 * rng.normal(size=(40, 3)))
    centers = 5 * rng.normal(size=(12, 3))  # crowded, so that rows are contested
    dense = X.toarray() if sparse.issparse(X) else X
    rows = nearest_rows(X, centers, make_rng())
    assert_array_equal(rows, nearest_rows_by_loops(dense, centers))


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("seed", range(4))
def test_nearest_rows_do_not_depend_on_chunks(seed):
    rng = make_rng(seed)
    X, centers = rng.normal(size=(60, 3)), 0.3 * rng.normal(size=(20, 3))
    rows = nearest_rows(X, centers, make_rng())
    assert_array_equal(rows, nearest_rows_by_loops(X, centers))


def test_a_few_centres_at_a_time_still_share_no_row(monkeypatch):
    monkeypatch.setattr(clustering, "TOGETHER", 3)
    X = make_rng(0).normal(size=(30, 2))
    rows = nearest_rows(X, np.zeros((25, 2)), make_rng())
    nearest = np.argsort((X**2).sum(axis=1))[:25]
    assert sorted(rows) == sorted(nearest)


@pytest.mark.long
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("small_chunks")
def test_copies_of_a_row_are_equally_likely(dtype):
    row = make_rng(1).normal(size=300).astype(dtype)
    X = np.vstack([np.tile(row, (20, 1)), 5 + np.eye(300, dtype=dtype)[:5]])
    counts = np.zeros(25, dtype=int)
    for seed in range(600):
        rows = nearest_rows(X, row[None] + dtype(0.01), make_rng(seed))
        counts[rows] += 1
    assert counts[20:].sum() == 0
    assert scipy.stats.chisquare(counts[:20]).pvalue > 1e-3


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_copies_of_the_only_centre_are_equally_likely(value):
    X = np.full((40, 2), value)
    first = [nearest_rows(X, X[:1], make_rng(seed))[0] for seed in range(400)]
    assert np.unique(first).size == 40


def test_more_centres_than_rows_are_an_error():
    with pytest.raises(ValueError, match="3 centers need as many rows; got 2"):
        nearest_rows(np.zeros((2, 1)), np.zeros((3, 1)), make_rng())


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_distances_without_a_number_are_an_error(value):
    X = np.full((4, 2), value, dtype=np.float32)
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match="NaN or numbers too large to be squared"),
    ):
        nearest_rows(X, np.zeros((3, 2), dtype=np.float32), make_rng())


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(st.tuples(*[st.integers(-3, 3)] * 2), min_size=1, max_size=25),
    k=st.integers(1, 25),
    seed=st.integers(0, 99),
    kind=st.sampled_from(["float64", "float32", "csr"]),
)
def test_any_rows_have_clusters_and_distinct_nearest_rows(rows, k, seed, kind):
    X = np.array(rows, dtype=np.float64)
    k = min(k, len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        centers, labels = k_means(CONVERSIONS[kind](X), k, make_rng(seed))
        found = nearest_rows(CONVERSIONS[kind](X), centers, make_rng(seed))
    assert np.isfinite(centers).all()
    distances = all_distances(X, centers)
    reached = distances[np.arange(len(X)), labels]
    assert_allclose(reached, distances.min(axis=1), atol=1e-2)
    assert len(set(found.tolist())) == k
    # Whoever got the first row gets one as near as any.
    best = distances.min()
    assert distances[found, np.arange(k)].min() == pytest.approx(best, abs=1e-2)


@pytest.mark.long
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 99), k=st.integers(2, 7))
def test_separated_blobs_are_found_in_any_order_of_the_rows(seed, k):
    X, y = draw_blobs(n=80, k=k, seed=seed)
    order = make_rng(seed).permutation(80)
    for rows in (np.arange(80), order):
        labels = k_means(X[rows], k, make_rng(seed))[1]
        assert adjusted_rand_score(labels, y[rows]) == 1
