"""BertFeatures is quiet, and leaves everything else alone."""

import os
import warnings

import numpy as np
import pytest
import torch

from skactive.bert import BertFeatures

from ..bert._helpers import run_python
from ..conftest import TEXTS, save_encoder


def test_silent_by_default(tmp_path, capfd):
    folder = save_encoder(tmp_path)
    capfd.readouterr()
    BertFeatures(folder, cache=None).transform(TEXTS)
    assert capfd.readouterr() == ("", "")


def test_load_restores_the_verbosity_of_transformers(tmp_path):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_info()
    try:
        BertFeatures(save_encoder(tmp_path), cache=None).transform(TEXTS)
        assert logging.get_verbosity() == logging.INFO
        assert logging.is_progress_bar_enabled() == before[1]
    finally:
        logging.set_verbosity(before[0])


def test_progress_on_stderr_when_verbose(exact, capfd):
    exact.set_params(verbose=1).transform(TEXTS)
    out, err = capfd.readouterr()
    assert out == ""
    assert "7/7" in err
    assert "text/s" in err


def test_no_global_state_moves(tmp_path):
    # A checkpoint without pooler: transformers draws one at random on loading.
    folder = save_encoder(tmp_path)
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    numpy_before = np.random.get_state()[1].copy()  # noqa: NPY002
    torch_before = torch.get_rng_state()
    threads, grad = torch.get_num_threads(), torch.is_grad_enabled()
    environment = dict(os.environ)
    BertFeatures(folder, cache=None).fit(TEXTS).transform(TEXTS)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert (torch.get_num_threads(), torch.is_grad_enabled()) == (threads, grad)
    assert not torch.is_inference_mode_enabled()
    assert dict(os.environ) == environment


def test_random_pooler_does_not_move_the_generator(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = save_encoder(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = {k: v for k, v in load_file(path).items() if "pooler" not in k}
    save_file(tensors, path, metadata={"format": "pt"})
    before = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BertFeatures(folder, cache=None).transform(TEXTS)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_constructing_cloning_and_unpickling_import_no_torch(tiny_bert):
    script = (
        "import pickle, sys\n"
        "from sklearn.base import clone\n"
        "from skactive.bert import BertFeatures\n"
        "b = pickle.loads(pickle.dumps(clone(BertFeatures('a/b'))))\n"
        "repr(b)\n"
        "print('torch' in sys.modules, 'transformers' in sys.modules)\n"
    )
    assert run_python(script).stdout.split() == ["False", "False"]
