"""Folders of BERT estimators that are not as they were written."""

import json
import shutil

import numpy as np
import pytest
import torch
from torch import nn

from skactive import load, save

from ._helpers import FILMS as TEXTS
from ._helpers import VERDICTS as LABELS
from ._helpers import _change_object, _classifier, _reseal


@pytest.fixture(scope="module")
def written(tiny_bert, tmp_path_factory):
    """Folder of a fitted classifier; a test copies it."""
    original = _classifier(tiny_bert, freeze=1).fit(TEXTS, LABELS)
    return save(original, tmp_path_factory.mktemp("bert") / "saved")


@pytest.fixture
def saved(written, tmp_path):
    return shutil.copytree(written, tmp_path / "saved")


@pytest.mark.parametrize("part", ["weights/*", "pretrained/*/model.safetensors"])
def test_a_changed_weight_is_found(saved, part):
    (path,) = saved.glob(part)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path.name}' in .* has changed since it"):
        load(saved)


def test_a_missing_tokenizer_is_named(saved):
    (path,) = saved.glob("pretrained/*/tokenizer.json")
    path.unlink()
    with pytest.raises(ValueError, match=r"/tokenizer.json' is missing"):
        load(saved)


def test_weights_of_another_network_are_refused(saved):
    from safetensors.numpy import save_file

    save_file({"head.w": np.ones(2)}, saved / "weights" / "estimator.safetensors")
    _reseal(saved)
    match = r"'weights/estimator.safetensors' must hold the weights that were trained"
    with pytest.raises(ValueError, match=match):
        load(saved)


def test_weights_of_another_shape_are_refused(saved):
    from safetensors.numpy import load_file, save_file

    path = saved / "weights" / "estimator.safetensors"
    tensors = load_file(path)
    save_file({name: np.ones(3, np.float32) for name in tensors}, path)
    _reseal(saved)
    with pytest.raises(ValueError, match=r"'weights/estimator.safetensors' does not f"):
        load(saved)


def test_a_file_that_is_no_safetensors_is_refused(saved):
    (saved / "weights" / "estimator.safetensors").write_bytes(b"\x80\x04pickle")
    _reseal(saved)
    with pytest.raises(ValueError, match=r"'weights/estimator.safetensors' does not f"):
        load(saved)


@pytest.mark.parametrize("name", ["..", "pretrained", "/tmp", None])
def test_an_encoder_that_the_manifest_does_not_list_is_refused(saved, name):
    _change_object(saved, lambda content: content["object"].update(pretrained=name))
    with pytest.raises(ValueError, match=r"names the folder .*lists no config.json"):
        load(saved)


@pytest.mark.parametrize("file", ["pytorch_model.bin", "modeling.py"])
def test_a_pickle_or_code_next_to_the_encoder_is_refused(saved, file):
    (folder,) = saved.glob("pretrained/*")
    (folder / file).write_bytes(b"")
    _reseal(saved)
    with pytest.raises(ValueError, match=f"/{file}' is a pickle or code"):
        load(saved)


def test_an_unknown_loss_is_refused(saved):
    assert hasattr(nn, "Linear")
    _change_object(saved, lambda content: content["object"].update(loss="Linear"))
    with pytest.raises(ValueError, match=r"names the loss 'Linear' at 'estimator'"):
        load(saved)


def test_an_unavailable_device_falls_back_with_a_warning(saved):
    if torch.cuda.device_count() > 7:
        pytest.skip("this machine has the device")

    def change(content):
        content["object"]["params"]["device"] = "cuda:7"

    _change_object(saved, change)
    with pytest.warns(UserWarning, match="cuda:7"):
        loaded = load(saved)
    assert len(loaded.predict(TEXTS)) == len(TEXTS)


def _tamper(name, change):
    def apply(saved):
        (path,) = saved.glob(f"pretrained/*/{name}")
        path.write_text(json.dumps(change(json.loads(path.read_text()))))

    return apply


_CODE = {"auto_map": {"AutoConfig": "evil.EvilConfig", "AutoModel": "evil.EvilModel"}}


@pytest.mark.parametrize(
    "tamper",
    [
        _tamper("tokenizer.json", lambda content: {**content, "model": {"type": "x"}}),
        _tamper("tokenizer.json", lambda content: [1]),
        _tamper("config.json", lambda content: {**content, **_CODE}),
        _tamper("config.json", lambda content: {**content, **_CODE, "model_type": "e"}),
        _tamper("config.json", lambda content: {**content, "num_hidden_layers": 10**7}),
        _tamper("config.json", lambda content: [1]),
    ],
    ids=["tokenizer", "list", "code", "type", "layers", "config"],
)
def test_a_tampered_encoder_is_refused_and_named(saved, tamper, monkeypatch):
    monkeypatch.setattr("builtins.input", None)  # nobody is asked about code
    tamper(saved)
    _reseal(saved)
    with pytest.raises(ValueError, match=r"pretrained/\w+-\w+' .*cannot be loaded"):
        load(saved)
