"""A pool encoded by worker processes: the same features, in the same words."""

import os
import pickle
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

from skactive._encoders._pretrained import Checkpoint
from skactive.bert import BertFeatures, clear_cache
from skactive.features._encoding import EncodingRun, count_workers

from ..bert._helpers import PAIRS, PLAIN, slow, uncached
from ..conftest import TEXTS, save_encoder

pytestmark = [
    pytest.mark.usefixtures("fresh_cache", "parts_of_two"),
    pytest.mark.cpu_only("only there worker processes encode"),
]

UNIQUE = list(dict.fromkeys(TEXTS))


def no_workers(*args):
    raise AssertionError("in workers")


@pytest.fixture(params=["in turn", pytest.param("processes", marks=pytest.mark.slow)])
def only_workers(request, monkeypatch):
    """Let only workers encode: processes, or this one as one, the last part first."""
    in_a_worker = []
    module = Checkpoint.module

    def guarded(*args, **kwargs):
        assert in_a_worker, "in this process"
        return module(*args, **kwargs)

    def in_turn(function, parts, n_jobs):
        for number, arguments in reversed([*enumerate(parts)]):
            in_a_worker.append(number)
            result = function(*pickle.loads(pickle.dumps(arguments)))
            in_a_worker.clear()
            yield number, pickle.loads(pickle.dumps(result))

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "module", guarded)
        if request.param == "in turn":
            patch.setattr("skactive.features._encoding.spread", in_turn)
        yield patch


# The same features -------------------------------------------------------------------


@pytest.mark.parametrize(
    "X", [slow(TEXTS), PAIRS, TEXTS * 3], ids=["texts", "pairs", "many"]
)
@pytest.mark.parametrize("cache", ["memory", "folder", slow(None)])
def test_workers_give_the_same_rows_in_order(
    tiny_bert, tmp_path, only_workers, X, cache
):
    cache = str(tmp_path) if cache == "folder" else cache
    features = BertFeatures(tiny_bert, **PLAIN, cache=cache, n_jobs=2)
    got = features.transform(X)
    only_workers.undo()
    np.testing.assert_array_equal(got, uncached(tiny_bert).transform(X))
    assert got.flags.writeable is False


@pytest.mark.parametrize("layers", [-1, (0, 2)])
def test_every_parameter_reaches_the_workers(tiny_bert, only_workers, layers):
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
        only_workers.undo()
        expected = uncached(tiny_bert, **params).transform(TEXTS)
    np.testing.assert_array_equal(got, expected)


def test_what_is_cached_needs_no_workers(features, only_workers, monkeypatch):
    got = features.set_params(n_jobs=2).transform(TEXTS)
    monkeypatch.setattr("skactive.features._encoding.encode_in_workers", no_workers)
    assert features.transform(list(TEXTS)) is got
    features.set_params(n_jobs=1)
    np.testing.assert_array_equal(features.transform(TEXTS[::-1]), got[::-1])
    if features.cache != "memory":
        clear_cache()  # as if in another process
        np.testing.assert_array_equal(features.transform(TEXTS), got)


@pytest.mark.slow
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


def test_joblib_says_where_without_n_jobs(tiny_bert, only_workers):
    with pytest.raises(AssertionError, match="in this process"):
        uncached(tiny_bert).transform(TEXTS)
    with parallel_config("loky", n_jobs=2):
        got = uncached(tiny_bert).transform(TEXTS)
        with pytest.raises(AssertionError, match="in this process"):
            uncached(tiny_bert, n_jobs=1).transform(TEXTS)
    only_workers.undo()
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
    monkeypatch.setattr("skactive.features._encoding.encode_in_workers", no_workers)
    with parallel_config(**config):
        uncached(tiny_bert).transform(TEXTS)
    with parallel_config("threading"):
        uncached(tiny_bert, n_jobs=2).transform(TEXTS)


def test_one_part_stays_here(tiny_bert, monkeypatch):
    monkeypatch.setattr("skactive.features._encoding.encode_in_workers", no_workers)
    uncached(tiny_bert, n_jobs=2).transform(["one", "two", "one"])


def test_another_device_stays_here(tiny_bert, monkeypatch):
    monkeypatch.setattr("skactive.features._encoding.encode_in_workers", no_workers)
    monkeypatch.setattr("skactive.features._encoding.choose_device", torch.device)
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


@pytest.mark.slow
def test_a_backend_that_gives_all_results_at_once(tiny_bert, here):
    with parallel_config(AllAtOnce(), n_jobs=2):
        got = uncached(tiny_bert).transform(TEXTS)
    here.undo()
    np.testing.assert_array_equal(got, uncached(tiny_bert).transform(TEXTS))


# What is told ------------------------------------------------------------------------


def test_cut_texts_are_counted_over_all_workers(tiny_bert, only_workers):
    # With the special tokens the seven different texts have 7, 7, 7, 2, 17, 18 and 3,
    # 61 in all, of which 26 are beyond the sixth.
    message = r"5 of the 7 texts encoded \(71%\) .* leaves out 43%"
    with pytest.warns(UserWarning, match=message) as caught:
        uncached(tiny_bert, max_length=6, n_jobs=2).transform(TEXTS)
    assert [w.filename for w in caught] == [__file__]


@pytest.mark.slow
def test_a_warning_of_the_workers_is_told_once(tmp_path, here):
    from safetensors.torch import load_file, save_file

    path = Path(save_encoder(tmp_path)) / "model.safetensors"
    tensors = load_file(path)
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.warns(UserWarning, match="lack 1 of the encoder's") as caught:
        uncached(str(tmp_path), n_jobs=2).transform(TEXTS)
    assert len(caught) == 1


def test_progress_over_all_workers(tiny_bert, only_workers, capfd):
    uncached(tiny_bert, n_jobs=2, verbose=1).transform(TEXTS)
    out, err = capfd.readouterr()
    assert out == ""
    assert "7/7" in err
    assert err.count("BertFeatures") == err.count("\r")  # one bar
    uncached(tiny_bert, n_jobs=2).transform(TEXTS)
    assert capfd.readouterr() == ("", "")


def test_nothing_else_moves_here(tiny_bert, only_workers):
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


@pytest.mark.slow
def test_errors_of_a_worker_come_through(tiny_bert):
    features = uncached(tiny_bert, max_length=2, n_jobs=2)
    with pytest.raises(ValueError, match="'max_length' must be more than the 2"):
        features.transform(TEXTS)
    with pytest.raises(ValueError, match=r"'X'.*surrogates.* positions: 1, 3"):
        uncached(tiny_bert, n_jobs=2).transform(["a", "\ud800", "b c", "d\udfff"])
