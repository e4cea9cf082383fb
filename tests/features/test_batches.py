"""BatchEncoder on batches of each kind, and in workers of Ray and Dask."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

from skactive.bert import BatchEncoder, BertFeatures
from skactive.features import PrecomputedFeatures

from ..bert._helpers import PLAIN, uncached

TEXTS = [f"the film {'is long ' * (i % 9)}{i}" for i in range(120)]


def float32(model, **params):
    return BatchEncoder(model, **{**PLAIN, **params})


def test_a_dict_of_arrays(tiny_bert):
    batch = {"text": np.array(TEXTS, dtype=object), "id": np.arange(120)}
    found = float32(tiny_bert)(batch)
    assert list(batch) == ["text", "id"]
    assert list(found) == ["text", "id", "vector"]
    expected = uncached(tiny_bert).transform(TEXTS)
    np.testing.assert_array_equal(found["vector"], expected)


def test_a_data_frame(tiny_bert):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"body": TEXTS, "n": 1}, index=range(50, 170))
    found = float32(tiny_bert, text="body", vectors="f", pooling="cls")(frame)
    assert found.index.equals(frame.index)
    expected = uncached(tiny_bert, pooling="cls").transform(TEXTS)
    np.testing.assert_array_equal(np.stack(found["f"]), expected)


@pytest.mark.parametrize("kind", ["table", "record_batch"])
def test_tables_of_pairs(tiny_bert, kind, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pairs = {"a": TEXTS, "b": TEXTS[::-1], "id": list(range(120))}
    found = float32(tiny_bert, text=("a", "b"))(getattr(pa, kind)(pairs))
    expected = uncached(tiny_bert).transform(list(zip(TEXTS, TEXTS[::-1], strict=True)))
    table = found if kind == "table" else pa.Table.from_batches([found])
    pq.write_table(table, tmp_path / "vectors.parquet")
    stored = PrecomputedFeatures(tmp_path / "vectors.parquet", id="id")
    np.testing.assert_array_equal(stored.transform([7, 3]), expected[[7, 3]])


def test_empty_batches(tiny_bert):
    pd = pytest.importorskip("pandas")
    encode = float32(tiny_bert)
    assert encode({"text": np.array([], dtype=object)})["vector"].shape == (0, 16)
    assert list(encode(pd.DataFrame({"text": []}))) == ["text", "vector"]


def test_a_pickle_holds_the_parameters(tiny_bert):
    encode = float32(tiny_bert, max_length=9)
    encode({"text": TEXTS[:2]})
    content = pickle.dumps(encode)
    assert len(content) < 2000
    again = pickle.loads(content)
    found, expected = (each({"text": TEXTS})["vector"] for each in (again, encode))
    np.testing.assert_array_equal(found, expected)


def test_errors(tiny_bert):
    with pytest.raises(TypeError, match="max_len"):
        BatchEncoder(tiny_bert, max_len=3)
    with pytest.raises(KeyError, match=r"'text' must be a column.*'body'"):
        float32(tiny_bert)({"body": TEXTS})
    with pytest.raises(TypeError, match="every item of 'X' must be a str"):
        float32(tiny_bert)({"text": ["a", None]})
    with pytest.raises(TypeError, match="'batch' must be a dict of arrays"):
        float32(tiny_bert)(TEXTS)


# Engines ---------------------------------------------------------------------------


class SlowEncoder(BatchEncoder):
    """Take a while, and write the process and the number of texts to a log."""

    def __init__(self, model, *, log, **params):
        super().__init__(model, **params)
        self.log = log

    def __call__(self, batch):
        found = super().__call__(batch)
        time.sleep(0.1)
        with open(self.log, "a") as stream:
            stream.write(f"{os.getpid()}\n")
        return found


def kill_one(log, killed):
    """Kill the process that finishes the first batch."""
    while not log.exists() or not log.read_text().endswith("\n"):
        time.sleep(0.01)
    killed.append(int(log.read_text().split()[0]))
    os.kill(killed[0], signal.SIGKILL)


def expected_in_batches(model, n):
    bert = BertFeatures(model, precision="float32", cache=None)
    return np.concatenate([bert.transform(TEXTS[i : i + n]) for i in range(0, 120, n)])


@pytest.mark.slow
def test_ray_while_a_worker_dies(tiny_bert, tmp_path):
    ray = pytest.importorskip("ray")
    log, killed = tmp_path / "log", []
    # Workers import this module by name.
    environment = {"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}}
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        runtime_env=environment,
        log_to_driver=False,
    )
    try:
        dataset = ray.data.from_items(
            [{"id": i, "text": text} for i, text in enumerate(TEXTS)],
            override_num_blocks=12,
        )
        options = {"model": tiny_bert, "precision": "float32", "log": str(log)}
        vectors = dataset.map_batches(
            SlowEncoder, fn_constructor_kwargs=options, batch_size=10, concurrency=2
        )
        threading.Thread(target=kill_one, args=(log, killed), daemon=True).start()
        vectors = vectors.materialize()
        rows = sorted(vectors.take_all(), key=lambda row: row["id"])
        vectors.write_parquet(tmp_path / "vectors")
    finally:
        ray.shutdown()
    assert len(killed) == 1
    assert len(set(log.read_text().split())) >= 2
    assert [row["id"] for row in rows] == list(range(120))
    expected = expected_in_batches(tiny_bert, 10)
    np.testing.assert_array_equal(np.stack([row["vector"] for row in rows]), expected)
    stored = PrecomputedFeatures(tmp_path / "vectors", id="id")
    np.testing.assert_array_equal(stored.transform(range(120)), expected)


@pytest.mark.slow
def test_dask_while_a_worker_dies(tiny_bert, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    log, killed = tmp_path / "log", []
    frame = pd.DataFrame({"id": range(120), "text": TEXTS})
    encode = SlowEncoder(tiny_bert, precision="float32", log=str(log))
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster):
        pool = dd.from_pandas(frame, npartitions=12)
        vectors = pool.map_partitions(encode, meta=encode(frame[:0]))
        log.unlink()
        threading.Thread(target=kill_one, args=(log, killed), daemon=True).start()
        vectors = vectors.persist()
        found = vectors.compute()
        schema = pa.schema({"id": pa.int64(), "vector": pa.list_(pa.float32())})
        vectors[["id", "vector"]].to_parquet(
            tmp_path / "vectors", schema=schema, write_index=False
        )
    assert len(killed) == 1
    assert len(set(log.read_text().split())) >= 2
    assert found["id"].tolist() == list(range(120))
    expected = expected_in_batches(tiny_bert, 10)
    np.testing.assert_array_equal(np.stack(found["vector"]), expected)
    stored = PrecomputedFeatures(tmp_path / "vectors", id="id")
    np.testing.assert_array_equal(stored.transform(range(120)), expected)
