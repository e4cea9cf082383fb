"""The same bits with every number of torch's threads."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from skactive._encoders import _encoder
from skactive._utils._repeatable import in_torch_threads, one_torch_thread
from skactive.bert import BertClassifier, BertFeatures

from ..conftest import TEXTS
from ._helpers import DEVLIN, slow

pytestmark = [
    pytest.mark.usefixtures("fresh_cache"),
    pytest.mark.cpu_only(
        "about torch's threads and equal bits with any number of them"
    ),
]

CPU = torch.device("cpu")
TEXTS_80 = [f"{text} {i}" for i in range(10) for text in TEXTS]
LABELS_80 = ["film" if "film" in text else "other" for text in TEXTS_80]


def in_new_thread(function):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def classifier(model, **params):
    defaults = {"max_epochs": 1, "n_draws": 3, "lr": 1e-3, "random_state": 0}
    return BertClassifier(model, **{**DEVLIN, **defaults, **params})


@pytest.fixture(scope="module")
def fitted(tiny_bert):
    return classifier(tiny_bert).fit(TEXTS_80, LABELS_80)


# The mechanism -----------------------------------------------------------------------


def test_every_layer_of_the_encoder_gives_way(tiny_bert, monkeypatch):
    calls = []
    monkeypatch.setattr(_encoder, "give_way", lambda: calls.append(1))
    BertFeatures(tiny_bert).fit_transform(TEXTS)
    assert calls


def test_one_torch_thread_ends_with_the_block(set_threads):
    set_threads(3)
    with one_torch_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


def test_one_torch_thread_leaves_other_threads_alone(set_threads):
    set_threads(3)
    with one_torch_thread():
        assert in_new_thread(torch.get_num_threads) == 3
    assert in_new_thread(torch.get_num_threads) == 3


def test_tasks_run_in_threads_of_one_torch_thread(set_threads):
    set_threads(2)
    meet = threading.Barrier(2, timeout=60)

    def run(task):
        meet.wait()  # breaks unless two run at once
        return task, torch.get_num_threads()

    got = list(in_torch_threads(run, range(4), CPU))
    assert got == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert torch.get_num_threads() == 2


def test_an_error_in_a_thread_reaches_the_caller(set_threads):
    set_threads(2)
    results = in_torch_threads(lambda task: 1 // task, [1, 1, 0, 1], CPU)
    assert [next(results), next(results)] == [1, 1]  # what is done before is not lost
    with pytest.raises(ZeroDivisionError):
        next(results)


@pytest.mark.parametrize(("n_threads", "device"), [(1, "cpu"), (2, "mps")])
def test_the_calling_thread_does_it_alone(set_threads, n_threads, device):
    set_threads(n_threads)
    here = threading.get_ident()
    tasks, device = [0, 1], torch.device(device)
    got = in_torch_threads(lambda task: threading.get_ident(), tasks, device)
    assert list(got) == [here, here]


# The bits ----------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("pooling", ["mean", slow("cls")])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["Bert", "DistilBert", slow("Albert"), slow("MPNet")])
def test_features(tiny_encoder, same_for_all_threads, kind, precision, pooling):
    features = BertFeatures(
        tiny_encoder(kind), precision=precision, pooling=pooling, batch_tokens=64
    )
    same_for_all_threads(lambda: features.transform(TEXTS_80))


@pytest.mark.long
@pytest.mark.parametrize(
    "params", [slow({}), {"freeze": 2}, slow({"head": "cnn"})], ids=str
)
def test_training(tiny_bert, same_for_all_threads, params):
    def fit():
        model = classifier(tiny_bert, **params).fit(TEXTS_80, LABELS_80)
        weights = model.net_.module_.state_dict().values()
        changes = model.layer_changes_["mean"]
        losses = [epoch["train_loss"] for epoch in model.history_]
        flat = torch.cat([weight.flatten().double() for weight in weights]).numpy()
        return np.concatenate([flat, changes, losses])

    same_for_all_threads(fit)


@pytest.mark.long
@pytest.mark.parametrize(
    "method",
    [
        *("predict_proba", "transform", "sample_proba"),
        *("embedding_gradients", "boundary_distance"),
    ],
)
def test_what_a_classifier_tells(fitted, same_for_all_threads, method):
    same_for_all_threads(lambda: getattr(fitted, method)(TEXTS_80))


@pytest.mark.long
@pytest.mark.parametrize(
    "params",
    [{"mc_dropout": "full"}, {"mc_dropout": "gaussian"}, slow({"head": "mlp"})],
    ids=str,
)
def test_draws(tiny_bert, same_for_all_threads, params):
    model = classifier(tiny_bert, **params).fit(TEXTS_80, LABELS_80)
    same_for_all_threads(lambda: model.sample_proba(TEXTS_80))


@pytest.mark.slow
@pytest.mark.parametrize("capability", ["avx2", "default"])
def test_with_the_kernels_for_another_processor(capability):
    """Most tests of the bits again, as without AVX-512 and without AVX2."""
    bits = "test_features or test_training or sample_proba or embedding_gradients"
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, __file__, "-k", bits],
        env=os.environ | {"ATEN_CPU_CAPABILITY": capability},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
