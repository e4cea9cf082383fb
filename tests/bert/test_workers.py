"""A pool encoded by worker processes: the same features, whatever happens to them."""

import os
import signal
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch
from joblib import parallel_config
from joblib._parallel_backends import LokyBackend
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skactive.bert import BertFeatures, clear_cache
from skactive.bert.encoding import EncodingRun
from skactive.bert.workers import _one_thread, _process, count_workers, spread

from ..conftest import TEXTS, absent, save_encoder
from .counting import uncached
from .encoding import PAIRS, run_python

pytestmark = pytest.mark.usefixtures("fresh_cache")

UNIQUE = list(dict.fromkeys(TEXTS))


@pytest.fixture(autouse=True)
def parts_of_two(monkeypatch):
    """Make several parts of few texts; workers encode a part as it comes."""
    monkeypatch.setattr("skactive.bert.batches._PART_TEXTS", 2)


@pytest.fixture(autouse=True)
def one_thread_here():
    """Compute here as workers do: several threads add in another order."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture
def here(monkeypatch):
    """Let nothing be encoded in this process."""
    with monkeypatch.context() as patch:
        patch.setattr("skactive.bert.checkpoint.Checkpoint.module", refuse)
        yield patch


def refuse(*args, **kwargs):
    raise AssertionError("in this process")


def no_workers(*args):
    raise AssertionError("in workers")


# The same features -------------------------------------------------------------------


@pytest.mark.parametrize("X", [TEXTS, PAIRS, TEXTS * 3], ids=["texts", "pairs", "many"])
@pytest.mark.parametrize("cache", ["memory", "folder", None])
def test_workers_give_the_same_rows_in_order(tiny_bert, tmp_path, here, X, cache):
    cache = str(tmp_path) if cache == "folder" else cache
    features = BertFeatures(tiny_bert, precision="float32", cache=cache, n_jobs=2)
    got = features.transform(X)
    here.undo()
    np.testing.assert_array_equal(got, uncached(tiny_bert).transform(X))
    assert got.flags.writeable is False


@pytest.mark.parametrize("layers", [-1, (0, 2)])
def test_every_parameter_reaches_the_workers(tiny_bert, layers):
    params = {
        "pooling": "max",
        "layers": layers,
        "max_length": 6,
        "normalize": True,
        "batch_tokens": 7,
        "precision": "bfloat16",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = uncached(tiny_bert, n_jobs=2, **params).transform(TEXTS)
        expected = uncached(tiny_bert, **params).transform(TEXTS)
    np.testing.assert_array_equal(got, expected)


def test_what_is_cached_needs_no_workers(features, here, monkeypatch):
    got = features.set_params(n_jobs=2).transform(TEXTS)
    monkeypatch.setattr("skactive.bert.encoding.encode_in_workers", no_workers)
    assert features.transform(list(TEXTS)) is got
    features.set_params(n_jobs=1)
    np.testing.assert_array_equal(features.transform(TEXTS[::-1]), got[::-1])
    if features.cache != "memory":
        clear_cache()  # as if in another process
        np.testing.assert_array_equal(features.transform(TEXTS), got)


def test_a_grid_search_in_workers_has_no_workers_of_its_own(tiny_bert, cache):
    X = [f"{text} {i}" for i in range(3) for text in UNIQUE]
    y = ["film" if "film" in text else "other" for text in X]
    grid = {"logisticregression__C": [0.1, 1]}
    scores = []
    for n_jobs in (1, 2):
        encoder = BertFeatures(tiny_bert, cache=cache, n_jobs=n_jobs)
        pipeline = make_pipeline(encoder, LogisticRegression())
        search = GridSearchCV(pipeline, grid, cv=3, n_jobs=n_jobs).fit(X, y)
        scores.append(search.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(*scores)


# Where -------------------------------------------------------------------------------


def test_joblib_says_where_without_n_jobs(tiny_bert, here):
    with pytest.raises(AssertionError, match="in this process"):
        uncached(tiny_bert).transform(TEXTS)
    with parallel_config("loky", n_jobs=2):
        got = uncached(tiny_bert).transform(TEXTS)
        with pytest.raises(AssertionError, match="in this process"):
            uncached(tiny_bert, n_jobs=1).transform(TEXTS)
    here.undo()
    np.testing.assert_array_equal(got, uncached(tiny_bert).transform(TEXTS))


@pytest.mark.parametrize(
    "config",
    [
        {"backend": "threading", "n_jobs": 2},
        {"backend": "sequential", "n_jobs": 2},
        {"prefer": "threads", "n_jobs": 2},
        {"backend": "loky", "n_jobs": 1},
        {"backend": "loky"},
    ],
    ids=str,
)
def test_threads_and_single_jobs_stay_here(tiny_bert, monkeypatch, config):
    monkeypatch.setattr("skactive.bert.encoding.encode_in_workers", no_workers)
    with parallel_config(**config):
        uncached(tiny_bert).transform(TEXTS)
    with parallel_config("threading"):
        uncached(tiny_bert, n_jobs=2).transform(TEXTS)


def test_one_part_stays_here(tiny_bert, monkeypatch):
    monkeypatch.setattr("skactive.bert.encoding.encode_in_workers", no_workers)
    uncached(tiny_bert, n_jobs=2).transform(["one", "two", "one"])


def test_another_device_stays_here(tiny_bert, monkeypatch):
    monkeypatch.setattr("skactive.bert.encoding.encode_in_workers", no_workers)
    monkeypatch.setattr(EncodingRun, "encode_here", lambda *args: iter([np.arange(7)]))
    uncached(tiny_bert, n_jobs=2, device="meta").transform(TEXTS)


def test_count_of_workers():
    assert count_workers(None) == 1
    assert count_workers(3) == 3
    assert count_workers(-1) == joblib.cpu_count()
    with parallel_config("loky", n_jobs=4):
        assert [count_workers(n) for n in (None, 1, 2)] == [4, 1, 2]


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2"])
def test_refuses_a_bad_number_of_jobs(tiny_bert, n_jobs):
    with pytest.raises(ValueError, match="n_jobs"):
        uncached(tiny_bert, n_jobs=n_jobs).transform(TEXTS)


class AllAtOnce(LokyBackend):
    """Gives its results together, as Ray's backend and multiprocessing do."""

    supports_return_generator = False


def test_a_backend_that_gives_all_results_at_once(tiny_bert, here):
    with parallel_config(AllAtOnce(), n_jobs=2):
        got = uncached(tiny_bert).transform(TEXTS)
    here.undo()
    np.testing.assert_array_equal(got, uncached(tiny_bert).transform(TEXTS))


# What is told ------------------------------------------------------------------------


def test_cut_texts_are_counted_over_all_workers(tiny_bert):
    # With the special tokens the seven different texts have 7, 7, 7, 2, 17, 18 and 3.
    message = "5 of the 7 texts encoded have more than 6 tokens"
    with pytest.warns(UserWarning, match=message) as caught:
        uncached(tiny_bert, max_length=6, n_jobs=2).transform(TEXTS)
    assert [w.filename for w in caught] == [__file__]


def test_a_warning_of_the_workers_is_told_once(tmp_path, here):
    from safetensors.torch import load_file, save_file

    path = Path(save_encoder(tmp_path)) / "model.safetensors"
    tensors = load_file(path)
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.warns(UserWarning, match="lack 1 of the encoder's") as caught:
        uncached(str(tmp_path), n_jobs=2).transform(TEXTS)
    assert len(caught) == 1


def test_progress_over_all_workers(tiny_bert, capfd):
    uncached(tiny_bert, n_jobs=2, verbose=1).transform(TEXTS)
    out, err = capfd.readouterr()
    assert out == ""
    assert "7/7" in err
    assert err.count("BertFeatures") == err.count("\r")  # one bar
    uncached(tiny_bert, n_jobs=2).transform(TEXTS)
    assert capfd.readouterr() == ("", "")


def test_nothing_else_moves_here(tiny_bert):
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    numpy_before = np.random.get_state()[1].copy()  # noqa: NPY002
    torch_before, threads = torch.get_rng_state(), torch.get_num_threads()
    environment = dict(os.environ)
    uncached(tiny_bert, n_jobs=2).transform(TEXTS)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert torch.get_num_threads() == threads
    assert dict(os.environ) == environment


def test_errors_of_a_worker_come_through(tiny_bert):
    features = uncached(tiny_bert, max_length=2, n_jobs=2)
    with pytest.raises(ValueError, match="'max_length' must be more than the 2"):
        features.transform(TEXTS)
    with pytest.raises(ValueError, match=r"'X'.*surrogates.* positions: 1, 3"):
        uncached(tiny_bert, n_jobs=2).transform(["a", "\ud800", "b c", "d\udfff"])


# The workers -------------------------------------------------------------------------


def n_threads():
    return torch.get_num_threads()


def test_a_worker_has_one_thread():
    with parallel_config("loky", inner_max_num_threads=2, n_jobs=2):
        others = [joblib.delayed(n_threads)()] * 2
        before = joblib.Parallel()(others)
        assert before == [2, 2] or joblib.cpu_count() == 1
        assert list(dict(spread(n_threads, [()] * 4, None)).values()) == [1] * 4
        assert joblib.Parallel()(others) == before


@pytest.mark.parametrize(("home", "inside"), [(_process(), 3), (("other", 1), 1)])
def test_the_threads_of_the_user_stay(home, inside):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        with _one_thread(home):
            assert torch.get_num_threads() == inside
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_other_weights_at_a_worker_are_refused(tiny_bert, monkeypatch):
    def spread_elsewhere(function, parts, n_jobs):
        save_encoder(folder, initializer_range=0.4)
        for number, arguments in enumerate(parts):
            yield number, function(*arguments)

    folder = Path(tiny_bert).with_name("changing")
    save_encoder(folder)
    monkeypatch.setattr("skactive.bert.workers.spread", spread_elsewhere)
    with pytest.raises(ValueError, match=r"'model' must be the same.*changing'"):
        uncached(str(folder), n_jobs=2).transform(TEXTS)


def test_workers_open_a_folder_wherever_they_are(tiny_bert, tmp_path, monkeypatch):
    def spread_elsewhere(function, parts, n_jobs):
        monkeypatch.chdir(tmp_path)
        for number, arguments in enumerate(parts):
            yield number, function(*arguments)

    expected = uncached(tiny_bert).transform(TEXTS)
    monkeypatch.chdir(Path(tiny_bert).parent)
    monkeypatch.setattr("skactive.bert.workers.spread", spread_elsewhere)
    got = uncached(Path(tiny_bert).name, n_jobs=2).transform(TEXTS)
    np.testing.assert_array_equal(got, expected)


def test_workers_open_a_model_by_its_name(tmp_path, tiny_bert):
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--someone--tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / commit).symlink_to(tiny_bert)
    script = (
        "from skactive.bert import BertFeatures, batches, workers\n"
        "def spread(function, tasks, n_jobs):\n"
        "    for number, task in enumerate(tasks):\n"
        "        print(task[1].model, task[1].revision, n_jobs, end=' ')\n"
        "        yield number, function(*task)\n"
        "workers.spread = spread\n"
        "batches._PART_TEXTS = 1\n"
        "b = BertFeatures('someone/tiny', revision='main', n_jobs=2)\n"
        "print(b.transform(['a', 'b']).shape)\n"
    )
    out = run_python(script, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))
    assert out.stderr == ""
    assert out.stdout == "someone/tiny main 2 " * 2 + "(2, 16)\n"


# Dying -------------------------------------------------------------------------------


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def die_once(folder, number):
    """Count a call; number 5 dies the first time, when others are done."""
    calls = folder / str(number)
    calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
    if number == 5 and calls.read_text() == "x":
        wait_for((folder / "go").exists)
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


needs_kill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX only")


@needs_kill
def test_a_dead_workers_part_is_done_again_and_no_other(tmp_path):
    done = {}
    for number, result in spread(die_once, [(tmp_path, i) for i in range(9)], 2):
        assert number not in done
        done[number] = result
        if len(done) == 4:  # by the other worker
            early = list(done)
            (tmp_path / "go").touch()
    assert done == {i: i**2 for i in range(9)}
    assert (tmp_path / "5").read_text() == "xx"
    assert [(tmp_path / str(i)).read_text() for i in early] == ["x"] * 4


class Mortal(EncodingRun):
    """Dies with a part half done, as long as the model's folder holds lives."""

    def encode_here(self, texts, parts, out):
        for positions in super().encode_here(texts, parts, out):
            for life in (Path(self.checkpoint.name) / "lives").iterdir():
                life.unlink(missing_ok=True)
                os.kill(os.getpid(), signal.SIGKILL)
            yield positions


@pytest.fixture
def mortal(tmp_path, monkeypatch):
    """Give features whose workers die some times, the weights under a new name."""
    monkeypatch.setattr("skactive.bert.features.EncodingRun", Mortal)

    def make(n_lives, **params):
        folder = Path(save_encoder(tmp_path / "model"))
        (folder / "lives").mkdir()
        for life in range(n_lives):
            (folder / "lives" / str(life)).touch()
        return BertFeatures(folder, precision="float32", **params)

    return make


@needs_kill
def test_features_of_workers_that_die(mortal, tmp_path):
    features = mortal(1, cache=str(tmp_path / "cache"), n_jobs=2)
    got = features.transform(TEXTS)
    assert not list(Path(features.model, "lives").iterdir())
    np.testing.assert_array_equal(got, uncached(features.model).transform(TEXTS))


@needs_kill
def test_workers_that_die_time_after_time(mortal, tmp_path, monkeypatch):
    features = mortal(0, cache=str(tmp_path / "cache"), n_jobs=2)
    first = features.transform(TEXTS[:4])
    monkeypatch.setattr("skactive.bert.workers._DEATHS", 2)
    for life in range(10):
        Path(features.model, "lives", str(life)).touch()
    with pytest.raises(RuntimeError, match=r"died 2 times \(Termin.*; 0 of 2 parts"):
        features.transform(TEXTS)
    np.testing.assert_array_equal(features.transform(TEXTS[:4]), first)


# Dask --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    """Two processes of dask.distributed."""
    try:
        import distributed
    except ImportError:
        absent("distributed is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(**options, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        yield cluster


def test_dask_encodes_a_pool(cluster, tiny_bert, here):
    with parallel_config("dask"):
        assert count_workers(None) == 2
        threads = dict(spread(n_threads, [()] * 4, None))
        got = uncached(tiny_bert).transform(TEXTS)
    here.undo()
    assert list(threads.values()) == [1] * 4
    np.testing.assert_array_equal(got, uncached(tiny_bert).transform(TEXTS))


@needs_kill
def test_dask_encodes_a_pool_whose_worker_dies(cluster, mortal):
    features = mortal(1, cache=None)
    with parallel_config("dask"):
        got = features.transform(TEXTS)
    assert not list(Path(features.model, "lives").iterdir())
    np.testing.assert_array_equal(got, uncached(features.model).transform(TEXTS))
