"""The worker processes: their threads, the models they open, and their deaths."""

import os
import signal
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch
from joblib import parallel_config

from skactive.bert import BertFeatures
from skactive.features._encoding import (
    EncodingRun,
    _call,
    _process,
    count_workers,
    spread,
)

from ..bert._helpers import PLAIN, run_python, uncached
from ..conftest import TEXTS, absent, save_encoder

pytestmark = [
    pytest.mark.usefixtures("fresh_cache", "parts_of_two"),
    pytest.mark.cpu_only("only there worker processes encode"),
]

# The workers -------------------------------------------------------------------------


def n_threads():
    return torch.get_num_threads()


@pytest.mark.slow
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
        assert _call(home, n_threads, "part", ()) == ("part", inside)
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
    monkeypatch.setattr("skactive.features._encoding.spread", spread_elsewhere)
    with pytest.raises(ValueError, match=r"'model' must be the same.*changing'"):
        uncached(str(folder), n_jobs=2).transform(TEXTS)


def test_workers_open_a_folder_wherever_they_are(tiny_bert, tmp_path, monkeypatch):
    def spread_elsewhere(function, parts, n_jobs):
        monkeypatch.chdir(tmp_path)
        for number, arguments in enumerate(parts):
            yield number, function(*arguments)

    expected = uncached(tiny_bert).transform(TEXTS)
    monkeypatch.chdir(Path(tiny_bert).parent)
    monkeypatch.setattr("skactive.features._encoding.spread", spread_elsewhere)
    got = uncached(Path(tiny_bert).name, n_jobs=2).transform(TEXTS)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.slow
def test_workers_open_a_model_by_its_name(hub_home):
    script = (
        "from skactive.features import BertFeatures, _encoding\n"
        "from skactive._encoders import _tokens\n"
        "def spread(function, tasks, n_jobs):\n"
        "    for number, task in enumerate(tasks):\n"
        "        print(task[1].model, task[1].revision, n_jobs, end=' ')\n"
        "        yield number, function(*task)\n"
        "_encoding.spread = spread\n"
        "_tokens._PART_TEXTS = 1\n"
        "b = BertFeatures('someone/tiny', revision='main', n_jobs=2)\n"
        "print(b.transform(['a', 'b']).shape)\n"
    )
    out = run_python(script, HF_HUB_OFFLINE="1", HF_HOME=hub_home)
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
@pytest.mark.slow
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
    monkeypatch.setattr("skactive.features._bert.EncodingRun", Mortal)

    def make(n_lives, **params):
        folder = Path(save_encoder(tmp_path / "model"))
        (folder / "lives").mkdir()
        for life in range(n_lives):
            (folder / "lives" / str(life)).touch()
        return BertFeatures(folder, **PLAIN, **params)

    return make


@pytest.mark.slow
@needs_kill
def test_features_of_workers_that_die(mortal, tmp_path):
    features = mortal(1, cache=str(tmp_path / "cache"), n_jobs=2)
    got = features.transform(TEXTS)
    assert not list(Path(features.model, "lives").iterdir())
    np.testing.assert_array_equal(got, uncached(features.model).transform(TEXTS))


@pytest.mark.slow
@needs_kill
def test_workers_that_die_time_after_time(mortal, tmp_path, monkeypatch):
    features = mortal(0, cache=str(tmp_path / "cache"), n_jobs=2)
    first = features.transform(TEXTS[:4])
    monkeypatch.setattr("skactive.features._encoding._DEATHS", 2)
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


@pytest.mark.slow
def test_dask_encodes_a_pool(cluster, tiny_bert, here):
    with parallel_config("dask"):
        assert count_workers(None) == 2
        threads = dict(spread(n_threads, [()] * 4, None))
        got = uncached(tiny_bert).transform(TEXTS)
    here.undo()
    assert list(threads.values()) == [1] * 4
    np.testing.assert_array_equal(got, uncached(tiny_bert).transform(TEXTS))


@pytest.mark.slow
@needs_kill
def test_dask_encodes_a_pool_whose_worker_dies(cluster, mortal):
    features = mortal(1, cache=None)
    with parallel_config("dask"):
        got = features.transform(TEXTS)
    assert not list(Path(features.model, "lives").iterdir())
    np.testing.assert_array_equal(got, uncached(features.model).transform(TEXTS))
