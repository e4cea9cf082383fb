"""Front steps that find rows on the disk: a query copies none of them."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skactive import ActiveLearner
from skactive._utils import _chunks
from skactive._utils._chunks import LazyRows
from skactive.features import PrecomputedFeatures
from skactive.view import PoolView, _pool_view
from skactive.view import _quantities as quantities

ROWS = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32)
Y = (ROWS[:, 0] > 0).astype(int) + (ROWS[:, 1] > 0.5)
NUMBERS = np.arange(400)
SHUFFLED = np.random.default_rng(1).permutation(400)[:300]


@pytest.fixture
def lookup(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    return PrecomputedFeatures(tmp_path / "rows.npy")


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(_chunks, "LARGE", 1)
    monkeypatch.setattr(quantities, "LARGE", 1)
    monkeypatch.setattr(_pool_view, "_CHEAP_COPY_BYTES", 1)


@pytest.mark.long
@pytest.mark.parametrize("pool", [NUMBERS, SHUFFLED], ids=["in order", "shuffled"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("strategy", ["margin", "coreset", "badge", "uherding"])
def test_picks_are_those_of_features_in_memory(
    lookup, everything_is_large, strategy, masked, pool
):
    mask = np.arange(len(pool)) % 4 > 0 if masked else None
    picks = []
    for front in (lookup, FunctionTransformer(ROWS.__getitem__)):
        model = make_pipeline(front, LogisticRegression())
        learner = ActiveLearner(model, strategy, random_state=0)
        learner.fit(NUMBERS[::20], Y[::20])
        picks.append(learner.query(pool, 8, candidates=mask))
    assert_array_equal(*picks)


def test_a_cold_start_finds_rows(lookup, everything_is_large):
    picks = []
    for front in (lookup, FunctionTransformer(ROWS.__getitem__)):
        model = make_pipeline(front, LogisticRegression())
        learner = ActiveLearner(model, cold_start="coreset", random_state=0)
        picks.append(learner.query(SHUFFLED, 8, candidates=np.arange(5, 200)))
    assert_array_equal(*picks)


def make_view(lookup, pool, *steps):
    model = make_pipeline(*steps, lookup, LogisticRegression()).fit(NUMBERS, Y)
    return PoolView(pool, estimator=model)


def test_a_pool_in_order_is_the_map_of_the_file(lookup, everything_is_large):
    view = make_view(lookup, NUMBERS)
    rows = view.take(np.arange(10, 390)).take(np.arange(2, 300)).feature_rows
    assert isinstance(rows, LazyRows)
    whole, _ = lookup.find_rows(NUMBERS)
    assert np.shares_memory(rows.X.mapped, whole.mapped)
    assert_array_equal(rows[:], ROWS[12:310])
    assert np.shares_memory(view.feature_rows.X.mapped, whole.mapped)


def test_steps_before_the_last_are_applied(lookup, everything_is_large):
    reverse = FunctionTransformer(lambda X: X[::-1])
    rows = make_view(lookup, SHUFFLED, reverse, "passthrough").feature_rows
    assert isinstance(rows, LazyRows)
    assert_array_equal(rows[:], ROWS[SHUFFLED[::-1]])


def test_steps_after_it_compute(lookup, everything_is_large):
    model = make_pipeline(lookup, StandardScaler(), LogisticRegression())
    view = PoolView(SHUFFLED, estimator=model.fit(NUMBERS, Y)).take(np.arange(50))
    assert_array_equal(view.features, model[:-1].transform(SHUFFLED[:50]))


def test_small_pools_are_copied(lookup):
    rows = make_view(lookup, SHUFFLED).take(np.arange(50)).feature_rows
    assert isinstance(rows, np.ndarray)
    assert_array_equal(rows, ROWS[SHUFFLED[:50]])


@pytest.mark.long
def test_a_query_takes_no_memory_for_the_rows(tmp_path):
    n, d = 400_000, 64
    rows = np.lib.format.open_memmap(
        tmp_path / "rows.npy", mode="w+", dtype=np.float32, shape=(n, d)
    )
    for part in np.array_split(rows, 40):
        part[:] = np.random.default_rng(0).normal(size=part.shape)
    lookup = PrecomputedFeatures(tmp_path / "rows.npy")
    pool = np.arange(n)
    model = make_pipeline(lookup, LogisticRegression(C=1e-3))
    learner = ActiveLearner(model, "margin", random_state=0)
    learner.fit(pool[:100], np.arange(100) % 3)
    tracemalloc.start()
    learner.query(pool, 10, candidates=pool[100:])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < rows.nbytes  # a copy of the candidates and their scores need more
