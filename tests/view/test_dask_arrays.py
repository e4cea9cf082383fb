"""Pools that are dask arrays: the same picks, and no more than a block in memory."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from skactive import ActiveLearner, get_strategy
from skactive._utils import _chunks
from skactive._utils._chunks import LazyRows, lazy_rows
from skactive._utils._containers import BlockRows, is_dask, take_rows
from skactive.view import _quantities

da = pytest.importorskip("dask.array")
Callback = pytest.importorskip("dask.callbacks").Callback

N, BLOCK = 1000, 100
X = np.random.default_rng(0).normal(size=(N, 6))
y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
PARTITIONED = get_strategy("partitioned", strategy="coreset", n_parts=8)
STRATEGIES = ["margin", "entropy", "least_confidence", "random", "badge", PARTITIONED]
MASK = np.arange(N) % 3 > 0


class Reads:
    """The numbers of rows of the blocks of a pool that were computed."""

    def __init__(self, chunks=BLOCK, array=X):
        self.sizes = []
        lock = threading.Lock()

        def note(block):
            with lock:
                self.sizes.append(len(block))
            return block

        self.pool = da.from_array(array, chunks=(chunks, -1)).map_blocks(
            note, dtype=array.dtype, meta=np.empty((0, 0), array.dtype)
        )


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of a few rows, as those of a large pool are to it."""
    monkeypatch.setattr(_chunks, "LARGE", 1)
    monkeypatch.setattr(_quantities, "LARGE", 1)
    monkeypatch.setattr(_quantities, "ROWS", 50)

    def size(row_bytes, limit=None):
        return 40

    monkeypatch.setattr(_quantities, "chunk_size", size)


def make(strategy="margin", estimator=None, array=X):
    estimator = LogisticRegression() if estimator is None else estimator
    learner = ActiveLearner(estimator, strategy, random_state=0)
    return learner.fit(array[:60], y[:60])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("chunks", [(7, 0, 400, 593), N])
def test_picks_are_those_of_the_array(strategy, chunks, small_chunks):
    learner, pool = make(strategy), da.from_array(X, chunks=(chunks, 4))
    for options in ({}, {"candidates": MASK}, {"candidates": [3, 997, 41]}):
        expected = learner.query(X, 9, **options)
        assert_array_equal(learner.query(pool, 9, **options), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, bool])
def test_picks_from_other_numbers(dtype):
    array = (X > 0.3) if dtype is bool else (4 * X).astype(dtype)
    learner = make("margin", array=array.astype(np.float32))
    found = learner.query(da.from_array(array, chunks=70), 9)
    assert_array_equal(found, learner.query(array, 9))


class Labels(ClassifierMixin, BaseEstimator):
    """A classifier of no known library, which notes how many rows it predicts."""

    def fit(self, X, y):
        self.classes_, self.sizes_ = np.unique(y), []
        return self

    def predict_proba(self, X):
        assert isinstance(X, np.ndarray)
        self.sizes_.append(len(X))
        p = 1 / (1 + np.exp(-X[:, :3]))
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


ESTIMATORS = [
    LogisticRegression(),
    make_pipeline(SelectKBest(k=4), PCA(3), LogisticRegression()),
    make_pipeline(PCA(3), RandomForestClassifier(4, random_state=0)),
    Labels(),
]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda model: str(model)[:30])
@pytest.mark.parametrize(
    ("strategy", "options"),
    [("margin", {}), ("entropy", {"candidates": MASK}), (PARTITIONED, {})],
    ids=["all", "mask", "parts"],
)
def test_one_block_is_computed_at_once(estimator, strategy, options, small_chunks):
    learner, reads = make(strategy, estimator), Reads()
    computed, read = [], []
    compute = BlockRows._compute

    def note(self, key):
        read.append(compute(self, key))
        return read[-1]

    with (
        Callback(start=computed.append),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(BlockRows, "_compute", note)
        found = learner.query(reads.pool, 9, **options)
    assert max(map(len, read)) == BLOCK
    # Nothing else is computed; a pipeline transforms a row to learn the columns.
    assert len(computed) == len(read) + isinstance(estimator, Pipeline)
    if isinstance(estimator, Labels):
        assert max(learner.estimator_.sizes_, default=0) <= 40
    assert_array_equal(found, learner.query(X, 9, **options))


def test_nothing_is_computed_that_is_not_used():
    learner, reads = make("random"), Reads()
    learner.query(reads.pool, 9)
    learner.query(reads.pool, 9, candidates=MASK)
    assert reads.sizes == []
    learner = make("margin")
    learner.query(reads.pool, 9, candidates=np.arange(250, 290))
    assert sum(reads.sizes) <= 2 * BLOCK


def test_a_block_is_computed_once_for_all_its_slices(small_chunks):
    learner, reads = make("entropy"), Reads()
    learner.query(reads.pool, 9)
    assert sum(reads.sizes) <= N + BLOCK


def test_labels_are_kept_as_an_array():
    reads = Reads()
    learner = make("margin").fit(reads.pool[:40], y[:40])
    assert isinstance(learner.X_labeled_, np.ndarray)
    picks = learner.query(reads.pool, 7)
    reads.sizes.clear()
    learner.teach(reads.pool[picks], y[picks])
    assert isinstance(learner.X_labeled_, np.ndarray)
    assert_array_equal(learner.X_labeled_, np.concatenate([X[:40], X[picks]]))
    expected = make("margin").fit(X[:40], y[:40]).teach(X[picks], y[picks])
    assert_array_equal(learner.query(reads.pool, 9), expected.query(X, 9))
    assert_array_equal(learner.estimator_.coef_, expected.estimator_.coef_)


def test_a_custom_strategy_sees_the_candidates():
    def farthest(view):
        return np.abs(np.asarray(view.X)).sum(axis=1)

    pool, learner = da.from_array(X, chunks=BLOCK), make(farthest)
    assert_array_equal(learner.query(pool, 5), learner.query(X, 5))
    expected = learner.query(X, 5, candidates=MASK)
    assert_array_equal(learner.query(pool, 5, candidates=MASK), expected)


def test_unknown_sizes_are_refused():
    pool = da.from_array(X, chunks=BLOCK)
    pool = pool[pool[:, 0] > 0]
    learner = make()
    for call in (learner.query, lambda X: learner.teach(X, y[:3])):
        with pytest.raises(ValueError, match=r"X\.compute_chunk_sizes\(\)"):
            call(pool)
    pool.compute_chunk_sizes()
    assert_array_equal(learner.query(pool, 5), learner.query(X[X[:, 0] > 0], 5))


KEYS = [slice(None), slice(95, 205), slice(3, 5), slice(7, 3), slice(900, 2, -130)]
KEYS += [[5], [999, 0, 0, 555], np.arange(0), MASK, np.arange(40, 260), [-1, -N], 7]
KEYS += [np.random.default_rng(1).permutation(N)[:400], slice(-30, None)]


@pytest.mark.long
@pytest.mark.parametrize("key", KEYS, ids=lambda key: str(key)[:12])
@pytest.mark.parametrize("chunks", [(100, 6), (33, 4), ((0, 990, 0, 10), (1, 5))])
def test_rows_are_those_of_the_array(key, chunks):
    rows = BlockRows(da.from_array(X, chunks=chunks))
    for _ in range(2):  # the second time, from the block that was kept
        found = rows[key]
        assert_array_equal(found, X[key])
        assert found.dtype == X.dtype


def test_rows_of_any_memory_order_cannot_be_written_to():
    array = np.asfortranarray(X)
    rows = lazy_rows(da.from_array(array, chunks=BLOCK))
    assert isinstance(rows, LazyRows)
    part = rows[110:150]
    assert part.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        part[0] = 1
    assert array.flags.writeable


@pytest.mark.long
def test_only_arrays_of_numbers_are_read_so():
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    assert is_dask(da.zeros((3, 2)))
    assert isinstance(take_rows(da.zeros((3, 2)), [1]), np.ndarray)
    others = [X, da.zeros(3), da.zeros((3, 2, 2)), da.zeros((3, 2), dtype="S1")]
    others.append(dd.from_pandas(pd.DataFrame({"a": [1.0], "b": [2.0]}), npartitions=1))
    assert not any(map(is_dask, others))


# A cluster ---------------------------------------------------------------------------


def note_worker(block, log):
    """Return the block, and write the process that computed it to a log."""
    with open(log, "a") as stream:
        stream.write(f"{os.getpid()}\n")
    time.sleep(0.01)
    return block


def kill_worker(log, killed):
    """Kill the process that computed the last block of the log."""
    while not log.exists() or not log.read_text().endswith("\n"):
        time.sleep(0.01)
    killed.append(int(log.read_text().split()[-1]))
    os.kill(killed[0], signal.SIGKILL)


def _query_while_a_worker_is_killed(strategy, moment, log):
    killed, learner, expected = [], make(strategy), []
    for _ in range(3):
        expected.append(learner.query(X, 9))
        learner.teach(X[expected[-1]], y[expected[-1]])
    learner = make(strategy)
    pool = da.from_array(X, chunks=(BLOCK, -1))
    pool = pool.map_blocks(note_worker, log=str(log), dtype=X.dtype, meta=X[:0])
    for number, picks in enumerate(expected):
        if number == 1:
            if moment == "during":
                log.unlink()
            killer = threading.Thread(target=kill_worker, args=(log, killed))
            killer.start()
            if moment == "between":
                killer.join()
        assert_array_equal(learner.query(pool, 9), picks)
        if number == 1:
            killer.join()
        learner.teach(pool[picks], y[picks])
    assert len(killed) == 1
    pids = set(map(int, log.read_text().split()))
    assert os.getpid() not in pids
    assert pids - set(killed)
    assert isinstance(pickle.loads(pickle.dumps(learner)).X_labeled_, np.ndarray)


@pytest.mark.slow
def test_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**settings) as cluster,
        distributed.Client(cluster) as client,
    ):
        for strategy, moment in [("margin", "during"), (PARTITIONED, "between")]:
            client.wait_for_workers(2)
            _query_while_a_worker_is_killed(strategy, moment, tmp_path / moment)
