"""Features of sentence-transformers models against those of the library itself."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Dense, Normalize, Pooling, Transformer

from skactive import load, save
from skactive.bert import BertFeatures

from ..bert._helpers import PAIRS, grid, run_python, slow, uncached
from ..conftest import TEXTS, save_encoder

WORDS = [text for text in TEXTS if text]  # one token at least beside the special ones


def dense(out, activation, width=16):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Dense(width, out, activation_function=activation)


@pytest.fixture(scope="module")
def mean_and_dense(tmp_path_factory):
    """Folder of a model with a mean and a dense layer, for tests that copy it."""
    folder = tmp_path_factory.mktemp("sentences")
    return save_sentences(folder, "mean", dense(8, torch.nn.Tanh()))


def save_sentences(
    folder,
    pooling,
    *modules,
    kind="Bert",
    sizes=None,
    width=16,
    max_length=None,
    **options,
):
    """Save a tiny model of sentence-transformers."""
    base = folder / "base"
    base.mkdir(parents=True)
    save_encoder(base, kind, **(sizes or {}))
    encoder = Transformer(str(base), max_seq_length=max_length)
    pooled = Pooling(width, pooling_mode=pooling)
    model = SentenceTransformer(modules=[encoder, pooled, *modules], device="cpu")
    for name, value in options.items():
        setattr(model, name, value)
    model.save(str(folder / "saved"))
    return str(folder / "saved")


def encode(folder, texts):
    return SentenceTransformer(folder, device="cpu").encode(texts)


MODULES = {
    "mean": ("mean", ()),
    "cls and Normalize": ("cls", (Normalize(),)),
    "max and Dense": ("max", (dense(8, torch.nn.Tanh()),)),
    "last token": ("lasttoken", ()),
    "Dense, Normalize": ("mean", (dense(5, torch.nn.Identity()), Normalize())),
    "mean and max": (("mean", "max"), ()),
}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    grid(
        [(kind, name) for kind in ("Bert", "DistilBert") for name in MODULES],
        # Every module once, on packed or on padded texts.
        lambda kind, name: (
            (kind == "Bert") is (name in ("cls and Normalize", "max and Dense"))
            and name not in ("mean", "Dense, Normalize")
        ),
    ),
)
def test_auto_gives_what_sentence_transformers_encodes(tmp_path, name, kind):
    pooling, modules = MODULES[name]
    folder = save_sentences(tmp_path, pooling, *modules, kind=kind)
    expected = encode(folder, WORDS)
    features = uncached(folder, pooling="auto")
    np.testing.assert_allclose(features.transform(WORDS), expected, rtol=0, atol=1e-5)
    assert len(features.get_feature_names_out()) == expected.shape[1]


def test_auto_follows_the_modules_for_pairs(tmp_path):
    folder = save_sentences(tmp_path, "cls", Normalize())
    expected = encode(folder, PAIRS)
    features = uncached(folder, pooling="auto").transform(PAIRS)
    np.testing.assert_allclose(features, expected, rtol=0, atol=1e-5)


def test_auto_cuts_where_the_model_cuts(tmp_path):
    folder = save_sentences(tmp_path, "mean", max_length=6)
    expected = encode(folder, WORDS)
    with pytest.warns(UserWarning, match="more than 6 tokens .* most that the model"):
        features = uncached(folder, pooling="auto").transform(WORDS)
    np.testing.assert_allclose(features, expected, rtol=0, atol=1e-5)


def test_auto_puts_the_default_prompt_first(tmp_path):
    options = {"prompts": {"query": "the team "}, "default_prompt_name": "query"}
    folder = save_sentences(tmp_path, "mean", **options)
    expected = encode(folder, WORDS)
    features = uncached(folder, pooling="auto").transform(WORDS)
    np.testing.assert_allclose(features, expected, rtol=0, atol=1e-5)
    with pytest.warns(UserWarning, match="pooling='mean' gives other features"):
        assert abs(uncached(folder).transform(WORDS) - expected).max() > 0.01


def test_auto_lowers_the_case_where_the_model_does(tmp_path):
    folder = save_sentences(tmp_path, "mean")
    path = tmp_path / "saved" / "sentence_bert_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"do_lower_case": True}))
    tokenizer = tmp_path / "saved" / "tokenizer.json"
    settings = json.loads(tokenizer.read_text())
    settings["normalizer"] |= {"lowercase": False, "strip_accents": False}
    tokenizer.write_text(json.dumps(settings))
    upper = ["The FILM is a joy", "STOCKS fell"]
    features = uncached(folder, pooling="auto").transform(upper)
    np.testing.assert_allclose(features, encode(folder, upper), rtol=0, atol=1e-5)


@pytest.mark.weights
def test_auto_reads_the_files_of_earlier_versions(minilm):
    features = uncached(minilm, pooling="auto").transform(WORDS)
    np.testing.assert_allclose(features, encode(minilm, WORDS), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_auto_reads_the_modules_of_a_model_from_the_hub(tmp_path):
    folder = save_sentences(tmp_path, "max", dense(8, torch.nn.Tanh()))
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "home" / "hub" / "models--someone--sentences"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / commit).symlink_to(folder)
    script = (
        "import numpy as np, sys\n"
        "from skactive.bert import BertFeatures\n"
        "features = BertFeatures('someone/sentences', pooling='auto', "
        "precision='float32', normalize=False)\n"
        "np.save(sys.argv[1], features.transform(sys.argv[2:]))\n"
    )
    home = str(tmp_path / "home")
    target = tmp_path / "out.npy"
    out = run_python(script, target, *WORDS, HF_HUB_OFFLINE="1", HF_HOME=home)
    assert out.returncode == 0, out.stderr
    np.testing.assert_allclose(
        np.load(target), encode(folder, WORDS), rtol=0, atol=1e-5
    )


def test_auto_is_the_mean_for_other_models(tiny_bert, exact):
    features = uncached(tiny_bert, pooling="auto", layers=(1, -1)).transform(TEXTS)
    expected = exact.set_params(layers=(1, -1)).transform(TEXTS)
    np.testing.assert_array_equal(features, expected)


@pytest.mark.long
def test_the_cache_tells_dense_layers_apart(tmp_path, fresh_cache):
    kept = {"pooling": "auto", "cache": str(tmp_path / "cache")}
    rows = []
    for name in ("one", "two"):
        module = dense(8, torch.nn.Tanh())
        with torch.no_grad():
            module.linear.weight.mul_(1 if name == "one" else 2)
        folder = save_sentences(tmp_path / name, "mean", module)
        rows.append(BertFeatures(folder, **kept).transform(WORDS))
    assert abs(rows[0] - rows[1]).max() > 0.001


@pytest.mark.long
@pytest.mark.parametrize(
    ("modules", "params", "warns"),
    [
        (("cls", ()), {"pooling": "mean"}, True),
        slow(("max", (dense(8, torch.nn.Tanh()),)), {"pooling": "max"}, True),
        (("mean", (Normalize(),)), {"pooling": "mean"}, False),
        (("cls", ()), {"pooling": "mean", "layers": (-2, -1)}, False),
        slow(("cls", ()), {"pooling": "auto"}, False),
    ],
)
def test_warns_of_features_that_the_model_was_not_trained_for(
    tmp_path, recwarn, modules, params, warns
):
    pooling, others = modules
    features = uncached(save_sentences(tmp_path, pooling, *others), **params)
    recwarn.clear()
    features.transform(WORDS)
    messages = [str(w.message) for w in recwarn if w.category is UserWarning]
    told = [message for message in messages if "Pass pooling='auto'" in message]
    assert len(told) == warns


def change_module(folder, number, filename="modules.json", **entries):
    path = tmp = folder / filename
    content = json.loads(path.read_text())
    (content[number] if number is not None else content).update(entries)
    tmp.write_text(json.dumps(content))


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "filename", "entries", "message"),
    [
        (2, "modules.json", {"type": "own.Dense"}, "the module own.Dense in '2_Dense'"),
        (0, "modules.json", {"type": "own.Transformer"}, "the modules own.Transformer"),
        (0, "modules.json", {"path": "0_Transformer"}, "the modules sentence_trans"),
        (
            None,
            "1_Pooling/config.json",
            {"pooling_mode": "weightedmean"},
            "the pooling 'weightedmean'",
        ),
        (
            None,
            "2_Dense/config.json",
            {"activation_function": "os.system"},
            "the activation os.system in '2_Dense'",
        ),
    ],
)
def test_auto_is_the_mean_with_a_warning_for_modules_that_it_cannot_follow(
    mean_and_dense, tmp_path, number, filename, entries, message
):
    folder = shutil.copytree(mean_and_dense, tmp_path / "saved")
    change_module(folder, number, filename, **entries)
    folder = str(folder)
    automatic = uncached(folder, pooling="auto")
    with pytest.warns(UserWarning, match=f"'auto' is the mean .*{message}.* is not"):
        features = automatic.transform(WORDS)
    with pytest.warns(UserWarning, match="Pass pooling='auto'"):
        np.testing.assert_array_equal(features, uncached(folder).transform(WORDS))
    copy = load(save(automatic, tmp_path / "bundle", bundle=True))
    np.testing.assert_array_equal(features, copy.transform(WORDS))


def test_auto_is_the_mean_of_other_layers_than_the_last(mean_and_dense):
    automatic = uncached(mean_and_dense, pooling="auto", layers=2).transform(WORDS)
    expected = uncached(mean_and_dense, layers=2).transform(WORDS)
    np.testing.assert_array_equal(automatic, expected)


def test_auto_names_a_dense_layer_without_weights(mean_and_dense, tmp_path):
    folder = str(shutil.copytree(mean_and_dense, tmp_path / "saved"))
    (tmp_path / "saved" / "2_Dense" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"'model'.*module in '2_Dense' cannot be"):
        uncached(folder, pooling="auto").transform(WORDS)


def test_a_bundle_holds_the_modules(tmp_path):
    folder = save_sentences(tmp_path, "max", dense(8, torch.nn.Tanh()), Normalize())
    features = uncached(folder, pooling="auto")
    expected = features.fit_transform(WORDS)
    saved = save(features, tmp_path / "bundle", bundle=True)
    shutil.rmtree(folder)
    np.testing.assert_array_equal(load(saved).transform(WORDS), expected)


def test_a_module_in_a_pickle_is_not_bundled(tmp_path):
    folder = Path(save_sentences(tmp_path, "max", dense(8, torch.nn.Tanh())))
    (weights,) = folder.glob("2_Dense/model.safetensors")
    torch.save(load_file(weights), weights.with_name("pytorch_model.bin"))
    weights.unlink()
    features = uncached(str(folder), pooling="auto")
    with pytest.raises(ValueError, match="'model' must hold no pickle to be bundled"):
        save(features, tmp_path / "bundle", bundle=True)
