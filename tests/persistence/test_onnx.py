"""Exports predict what the model predicts, without torch."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)

from skactive import (
    ActiveLearner,
    ClassDescriptions,
    export_onnx,
    load,
    make_final_classifier,
    make_text_classifier,
    runtime,
    save,
)
from skactive._utils._sealed import hash_file
from skactive.bert import (
    AdaptedFeatures,
    BertClassifier,
    BertFeatures,
    BertRegressor,
)
from skactive.cli import main
from skactive.features import StaticFeatures
from skactive.linear_model import (
    FewLabelClassifier,
    PrototypeClassifier,
    SequentialLogisticRegression,
)
from skactive.semi_supervised import MixtureClassifier

from ..conftest import TEXTS, save_encoder
from ._helpers import _reseal

LONG = [*TEXTS, "a long day " * 40]
PAIRS = [(one, two) for one, two in zip(LONG, reversed(LONG), strict=True)]
NAMES = np.array(list("abcabcabc"))
COLUMNS = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]] * 3)  # the last is constant
NUMBERS = np.arange(9.0) * 100 - 50
TUNED = {"max_length": 40, "max_epochs": 1, "batch_size": 4, "random_state": 0}


def features(folder, **params):
    settings = {"max_length": 40, "precision": "float32", "cache": None}
    return BertFeatures(folder, **{**settings, **params})


def pipeline(folder, head, **params):
    return make_pipeline(features(folder, **params), head)


def text_classifier(folder, **params):
    settings = {"max_length": 40, "precision": "float32", "cache": None}
    return make_text_classifier(folder, adapt=False, **settings, **params)


def adapted(folder, **params):
    settings = {"n_steps": 2, "max_length": 40, "precision": "float32", "cache": None}
    features = AdaptedFeatures(folder, **settings, **params)
    return make_pipeline(features, LogisticRegression())


def static(folder, head, **params):
    return make_pipeline(StaticFeatures(folder, pca_dims=None, **params), head)


# A model for each kind that has a graph, and its labels.
MODELS = {
    "recommended": (text_classifier, NAMES),
    "two classes": (text_classifier, NAMES == "a"),
    "described": (lambda f: ClassDescriptions(text_classifier(f), list("abcd")), NAMES),
    "learner": (lambda f: ActiveLearner(text_classifier(f), "random"), NAMES),
    "prototypes": (
        lambda f: pipeline(f, PrototypeClassifier(), layers=(-1, 0), normalize=False),
        NAMES,
    ),
    "first token": (lambda f: pipeline(f, FewLabelClassifier(), pooling="cls"), NAMES),
    "last token": (lambda f: pipeline(f, LogisticRegression(), pooling="last"), NAMES),
    "maximum": (
        lambda f: pipeline(f, SequentialLogisticRegression(), pooling="max"),
        np.arange(9) % 4,
    ),
    "prompt": (
        lambda f: pipeline(f, LogisticRegression(), prompt="no ", dimensions=8),
        NAMES,
    ),
    "static": (lambda f: static(f, LogisticRegression()), NAMES),
    "static, cut": (lambda f: static(f, Ridge(), max_length=3, normalize=False), None),
    "several": (lambda f: text_classifier(f, multi_label=True), COLUMNS),
    "one vs. rest": (
        lambda f: pipeline(f, OneVsRestClassifier(LogisticRegression())),
        COLUMNS,
    ),
    "ridge": (lambda f: pipeline(f, Ridge()), None),
    "least squares": (lambda f: pipeline(f, LinearRegression()), None),
    "adapted": (lambda f: adapted(f, layers=(-1, 1)), NAMES),
    "not adapted": (lambda f: adapted(f, refit="doubling"), NAMES),
    "fine-tuned": (lambda f: BertClassifier(f, freeze=2, **TUNED), NAMES),
    "hidden layers": (
        lambda f: BertClassifier(f, head="mlp", layers=(-1, 1), **TUNED),
        NAMES,
    ),
    "convolutions": (lambda f: BertClassifier(f, head="cnn", **TUNED), NAMES),
    "fine-tuned, several": (
        lambda f: BertClassifier(
            f, thresholds="auto", validation_fraction=0.5, **TUNED
        ),
        COLUMNS,
    ),
    "fine-tuned numbers": (lambda f: BertRegressor(f, **TUNED), None),
    "final": (lambda f: make_final_classifier(text_classifier(f), f, **TUNED), NAMES),
}


def export(model, tmp_path, **params):
    return runtime.load(export_onnx(model, tmp_path / "exported", **params))


def check_equal(model, exported, texts):
    """Check that predictions and probabilities are those of the model."""
    expected = model.predict(texts)
    if exported.target == "regression":
        assert np.allclose(exported.predict(texts), expected, rtol=1e-4)
        return
    found, proba = exported.predict(texts), exported.predict_proba(texts)
    assert np.abs(proba - model.predict_proba(texts)).max() < 1e-5
    assert exported.classes == model.classes_.tolist()
    if exported.target == "multi-label":
        assert found == [np.flatnonzero(row).tolist() for row in expected]
    else:
        assert found == expected.tolist()


FAST = {"recommended", "prompt", "static", "several", "ridge", "convolutions", "final"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.slow] * (x not in FAST)) for x in MODELS],
)
def test_an_export_predicts_as_the_model(name, tiny_bert, tmp_path):
    make, y = MODELS[name]
    model = make(tiny_bert).fit(LONG, NUMBERS if y is None else y)
    check_equal(model, export(model, tmp_path), LONG)


def test_an_export_reads_pairs(tiny_bert, tmp_path):
    model = pipeline(tiny_bert, LogisticRegression()).fit(PAIRS, NAMES)
    exported = export(model, tmp_path)
    check_equal(model, exported, PAIRS)
    as_lists = exported.predict_proba([list(pair) for pair in PAIRS])
    assert np.array_equal(as_lists, exported.predict_proba(PAIRS))


def test_classes_that_one_part_of_a_mixture_lacks(tiny_bert, tmp_path):
    parts = [("one", text_classifier(tiny_bert)), ("other", text_classifier(tiny_bert))]
    model = MixtureClassifier(parts).fit(LONG, NAMES)
    model.parts_["other"] = text_classifier(tiny_bert).fit(
        LONG, np.where(NAMES == "a", "a", "z")
    )
    model.classes_ = np.array(["a", "b", "c", "z"])
    check_equal(model, export(model, tmp_path), LONG)


KINDS = ["Albert", "Camembert", "DebertaV2", "DistilBert", "Electra", "MPNet"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "ModernBert", "Roberta"])
def test_encoders_of_other_kinds(kind, tmp_path):
    folder = save_encoder(tmp_path / "encoder", kind)
    model = pipeline(folder, LogisticRegression()).fit(LONG, NAMES)
    exported = export(model, tmp_path)
    check_equal(model, exported, LONG)
    rounded = runtime.load(export_onnx(model, tmp_path / "int8", quantize="int8"))
    difference = rounded.predict_proba(LONG) - exported.predict_proba(LONG)
    assert np.abs(difference).max() < 0.2


def test_integers_of_8_bits(tiny_bert, tmp_path):
    model = text_classifier(tiny_bert).fit(LONG, NAMES)
    exact = export(model, tmp_path)
    rounded = runtime.load(
        export_onnx(model, tmp_path / "rounded", quantize="int8"), n_threads=1
    )
    difference = exact.predict_proba(LONG) - rounded.predict_proba(LONG)
    assert 0 < np.abs(difference).max() < 0.2
    assert [x._config["quantize"] for x in (exact, rounded)] == [None, "int8"]
    card = (tmp_path / "rounded" / "README.md").read_text("utf-8")
    assert re.search(r"\| Quantized +\| int8 ", card)
    graph = _graph(tmp_path / "rounded")
    kinds = [node.op_type for node in graph.node]
    # Six products in each of three layers; those of attention and the head stay.
    assert (kinds.count("MatMulInteger"), kinds.count("MatMul")) == (18, 7)
    # Of the matrices, only positions and the head are left.
    floats = [
        x.name for x in graph.initializer if x.data_type in (1, 11) and x.dims[1:]
    ]
    assert len(floats) == 2
    assert any("position" in name for name in floats)


def test_integers_that_predict_otherwise_are_an_error(tiny_bert, tmp_path, monkeypatch):
    from onnxruntime import quantization

    real = quantization.quantize_dynamic

    def quantize_other(model, *args, **kwargs):
        bias = next(x for x in model.graph.initializer if list(x.dims) == [3])
        bias.raw_data = np.array([9.0, 0, 0]).tobytes()
        real(model, *args, **kwargs)

    monkeypatch.setattr(quantization, "quantize_dynamic", quantize_other)
    model = text_classifier(tiny_bert).fit(LONG, NAMES)
    with pytest.raises(RuntimeError, match=r"difference of .*with quantize=None"):
        export_onnx(model, tmp_path / "exported", quantize="int8")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["int4", "uint8", True])
def test_a_quantization_that_there_is_not(value, exported, tmp_path):
    with pytest.raises(ValueError, match=r"'quantize' parameter .* must be .*'int8'"):
        export_onnx(exported[1], tmp_path / "new", quantize=value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.weights
@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["trec", "sst2"])
def test_integers_of_8_bits_keep_the_accuracy(name, minilm, shared_data, tmp_path):
    train, test = shared_data(f"{name}/train"), shared_data(f"{name}/test")
    train, test = train.sample(200, random_state=0), test[-500:]
    model = text_classifier(minilm).fit(train["text"].tolist(), train["label"])
    folders = [
        export_onnx(model, tmp_path / str(value), quantize=value)
        for value in (None, "int8")
    ]
    sizes = [(Path(folder) / "model.onnx").stat().st_size for folder in folders]
    assert sizes[1] < 0.27 * sizes[0]
    models = [runtime.load(folder, n_threads=1) for folder in folders]
    labels = [np.array(x.predict(test["text"].tolist())) for x in models]
    scores = [(found == test["label"]).mean() for found in labels]
    assert scores[0] > 0.6
    assert abs(scores[1] - scores[0]) <= 0.02  # ten of 500 texts
    assert (labels[0] == labels[1]).mean() >= 0.95


def _graph(folder):
    import onnx

    return onnx.load(folder / "model.onnx").graph


def test_frozen_layers_are_stored_once(tiny_bert, tmp_path):
    final = make_final_classifier(text_classifier(tiny_bert), tiny_bert, **TUNED)
    final.fit(LONG, NAMES)
    sizes = []
    for name, model in (("one", final.parts_["tuned"]), ("both", final)):
        export_onnx(model, tmp_path / name)
        weights = _graph(tmp_path / name).initializer
        sizes.append(sum(np.prod(weight.dims) for weight in weights))
    assert sizes[1] < 1.4 * sizes[0]  # only the third layer and the head are others


def test_names_of_the_columns(tiny_bert, tmp_path):
    model = text_classifier(tiny_bert, multi_label=True).fit(LONG, COLUMNS)
    exported = export(model, tmp_path, classes=["x", "y", "z"])
    rows = model.predict(LONG)
    names = [[n for n, is_on in zip("xyz", row, strict=True) if is_on] for row in rows]
    assert exported.predict(LONG) == names
    with pytest.raises(ValueError, match=r"'classes' must name the columns.* 2 names"):
        export_onnx(model, tmp_path / "other", classes=["x", "y"])


@pytest.mark.parametrize(
    "head", [DummyClassifier(), OneVsRestClassifier(LogisticRegression())]
)
def test_another_model_is_refused(head, tiny_bert, tmp_path):
    model = pipeline(tiny_bert, head).fit(LONG, NAMES)
    with pytest.raises(TypeError, match=f"SelfTraining.*got {type(head).__name__}"):
        export_onnx(model, tmp_path / "exported")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", [PCA(2), FunctionTransformer(np.abs)])
def test_a_pipeline_of_other_steps_is_refused(step, tiny_bert, tmp_path):
    steps = features(tiny_bert), step, LogisticRegression()
    model = make_pipeline(*steps).fit(LONG, NAMES)
    with pytest.raises(TypeError, match=f"got {type(step).__name__}"):
        export_onnx(model, tmp_path / "exported")


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MinMaxScaler((1, 3)),
        MaxAbsScaler(),
        Normalizer(),
        Normalizer("l1"),
        Normalizer("max"),
        FunctionTransformer(),
        "passthrough",
    ],
)
def test_a_scaler_before_the_head_is_a_part_of_the_graph(step, tiny_bert, tmp_path):
    steps = features(tiny_bert), step, LogisticRegression()
    model = make_pipeline(*steps).fit(LONG, NAMES)
    check_equal(model, export(model, tmp_path), LONG)


def test_a_model_must_be_fitted(tiny_bert, tmp_path):
    for model in (text_classifier(tiny_bert), BertClassifier(tiny_bert)):
        with pytest.raises(NotFittedError):
            export_onnx(model, tmp_path / "exported")


def test_encoders_that_read_differently(tiny_bert, tmp_path):
    other = {**TUNED, "max_length": 8, "precision": "float32"}
    final = make_final_classifier(text_classifier(tiny_bert), tiny_bert, **other)
    final.fit(LONG, NAMES)
    exported = export(final, tmp_path)
    check_equal(final, exported, LONG)
    lengths = [reading["max_length"] for reading in exported._readings]
    assert lengths == [40, 8]


def test_encoders_side_by_side(tiny_bert, tmp_path):
    union = FeatureUnion(
        [
            ("plain", features(tiny_bert)),
            ("prompt", make_pipeline(features(tiny_bert, prompt="no "), Normalizer())),
            ("none", "drop"),
        ],
        transformer_weights={"prompt": 2.5},
    )
    model = make_pipeline(union, LogisticRegression()).fit(LONG, NAMES)
    exported = export(model, tmp_path)
    check_equal(model, exported, LONG)
    assert exported.columns == []
    names = {path.name for path in (tmp_path / "exported").glob("tokenizer*")}
    assert names == {"tokenizer.json"}  # which both have


def test_nothing_to_quantize(tiny_bert, tmp_path):
    model = static(tiny_bert, LogisticRegression()).fit(LONG, NAMES)
    with pytest.raises(ValueError, match="'quantize' must be None for StaticFeatures"):
        export_onnx(model, tmp_path / "exported", quantize="int8")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_that_predicts_otherwise_is_an_error(tiny_bert, tmp_path, monkeypatch):
    import torch

    real = torch.onnx.export

    def export_other(graph, *args, **kwargs):
        real(graph, *args, **kwargs)
        graph.body[1][0].bias.add_(torch.tensor([1.0, 0.0, 0.0]))

    monkeypatch.setattr("torch.onnx.export", export_other)
    model = pipeline(tiny_bert, LogisticRegression()).fit(LONG, NAMES)
    with pytest.raises(RuntimeError, match="must predict as 'model' does"):
        export_onnx(model, tmp_path / "exported")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def exported(tiny_bert, tmp_path_factory):
    """Folder of an exported model, and its model."""
    model = text_classifier(tiny_bert).fit(LONG, NAMES)
    return Path(export_onnx(model, tmp_path_factory.mktemp("m") / "exported")), model


@pytest.fixture
def copied(exported, tmp_path):
    """A copy of the folder, to be damaged."""
    import shutil

    return Path(shutil.copytree(exported[0], tmp_path / "copied"))


@pytest.mark.parametrize("name", ["config.json", "model.onnx", "tokenizer.json"])
def test_damage_is_found(copied, name):
    content = bytearray((copied / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"'{name}'.* has changed"):
        runtime.load(copied)
    (copied / name).unlink()
    with pytest.raises(ValueError, match=f"'{name}'.* is missing"):
        runtime.load(copied)


@pytest.mark.parametrize("content", [None, "", "[]", '{"files": {}}'])
def test_another_folder_is_refused(copied, content):
    (copied / "manifest.json").unlink()
    if content is not None:
        (copied / "manifest.json").write_text(content)
    with pytest.raises(ValueError, match=r"manifest\.json"):
        runtime.load(copied)


def test_the_model_card_says_how_to_load(copied):
    card = copied / "README.md"
    assert 'skactive.runtime.load("exported")' in card.read_text("utf-8")
    card.write_text("edited")
    assert runtime.load(copied).classes == ["a", "b", "c"]


def test_an_export_is_never_overwritten(exported):
    folder, model = exported
    with pytest.raises(FileExistsError, match="'folder' must be a new folder"):
        export_onnx(model, folder)


@pytest.mark.parametrize(
    ("X", "kind", "message"),
    [
        ("a text", TypeError, "'X' must be a list of texts, got str"),
        (None, TypeError, "'X' must be a list of texts, got NoneType"),
        (["a", None], TypeError, "'X' must hold texts.* got None at position 1"),
        (["a", ("a",)], TypeError, "at position 1"),
        (["a", "\ud800"], ValueError, "at position 1"),
    ],
)
def test_bad_texts(exported, X, kind, message):
    with pytest.raises(kind, match=message):
        runtime.load(exported[0]).predict(X)


def test_no_texts_and_other_containers(exported):
    model = runtime.load(exported[0])
    assert model.predict([]) == []
    assert model.predict_proba([]).shape == (0, 3)
    expected = model.predict(LONG)
    assert model.predict(np.array(LONG)) == model.predict(iter(LONG)) == expected


def test_numbers_have_no_probabilities(tiny_bert, tmp_path):
    model = pipeline(tiny_bert, Ridge()).fit(LONG, NUMBERS)
    with pytest.raises(TypeError, match="this model predicts numbers"):
        export(model, tmp_path).predict_proba(LONG)


def test_the_rows_do_not_depend_on_the_batches(exported, monkeypatch):
    model = runtime.load(exported[0])
    expected = model.predict_proba(LONG)
    monkeypatch.setattr(runtime, "_TEXTS", 3)
    monkeypatch.setattr(runtime, "_TOKENS", 50)
    assert np.allclose(model.predict_proba(LONG), expected, atol=1e-6)


WITHOUT = """
import json, sys
for name in ("torch", "transformers", "sklearn", "scipy", "joblib", "skorch"):
    sys.modules[name] = None
from skactive import runtime
model = runtime.load(sys.argv[1], n_threads=1)
texts = json.loads(sys.argv[2])
print(json.dumps([model.predict(texts), model.predict_proba(texts).tolist()]))
"""


def test_the_runtime_needs_no_torch(exported):
    folder, model = exported
    command = [sys.executable, "-c", WITHOUT, str(folder), json.dumps(LONG)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    labels, proba = json.loads(done.stdout)
    assert labels == model.predict(LONG).tolist()
    assert np.abs(proba - model.predict_proba(LONG)).max() < 1e-5


def test_the_runtime_is_short():
    assert len(Path(runtime.__file__).read_text("utf-8").splitlines()) <= 230


def test_the_guide_predicts_without_skactive(exported, monkeypatch, capsys):
    folder, model = exported
    page = Path(__file__).parents[2] / "docs" / "guides" / "production.md"
    block = re.search(
        r"^```python\n# production\.py\n(.*?)^```", page.read_text(), re.M | re.S
    )
    assert "skactive" not in block[1]
    assert len(block[1].splitlines()) <= 30
    monkeypatch.chdir(folder.parent)
    names: dict = {}
    exec(block[1], names)
    assert len(ast.literal_eval(capsys.readouterr().out)) == 2
    found = names["predict_proba"](LONG)
    assert np.abs(found - model.predict_proba(LONG)).max() < 1e-5


def test_missing_packages_are_named(exported, monkeypatch):
    folder, model = exported
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r'pip install "skactive\[bert,onnx\]"'):
        export_onnx(model, folder.parent / "other")
    with pytest.raises(ImportError, match="pip install onnxruntime tokenizers"):
        runtime.load(folder)


def test_the_command(tiny_bert, tmp_path, capsys):
    model = text_classifier(tiny_bert, multi_label=True).fit(LONG, COLUMNS)
    save(model, tmp_path / "model")
    about = {"text": "text", "label": "label", "target": "multi-label"}
    about |= {"classes": ["x", "y", "z"], "separator": "|"}
    (tmp_path / "model.json").write_text(json.dumps(about))
    folder = tmp_path / "exported"
    command = ["export", str(tmp_path / "model"), str(folder), "--quantize", "int8"]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith(f"{folder}: ")
    exported = runtime.load(folder)
    assert exported.classes == ["x", "y", "z"]
    assert len(exported.predict(LONG)) == len(LONG)
    assert main(command) == 1
    assert "argument FOLDER: must be new, got" in capsys.readouterr().err


# Folders that somebody changed, with hashes made right


def _change(folder, name="config.json", **changes):
    content = json.loads((folder / name).read_text("utf-8"))
    for key, value in changes.items():
        place = (
            content["readings"][0] if key in content.get("readings", [{}])[0] else {}
        )
        (place if key in place else content)[key] = value
    (folder / name).write_text(json.dumps(content), "utf-8")
    if name == "config.json":
        _reseal(folder, name)


def test_a_tokenizer_outside_of_the_folder_is_not_read(copied):
    (copied.parent / "other.json").write_bytes((copied / "tokenizer.json").read_bytes())
    _change(copied, tokenizer="../other.json")
    with pytest.raises(ValueError, match=r"'config.json' in .* must fit the other"):
        runtime.load(copied)


@pytest.mark.parametrize("name", ["classes", "target"])
def test_a_config_without_a_key_is_refused(copied, name):
    content = json.loads((copied / "config.json").read_text("utf-8"))
    content.pop(name)
    (copied / "config.json").write_text(json.dumps(content), "utf-8")
    _reseal(copied, "config.json")
    with pytest.raises(ValueError, match=r"'config.json' in .* must fit the other"):
        runtime.load(copied)


@pytest.mark.parametrize("content", [b"\xff", b"[" * 100_000, b"[]", b"5"], ids=len)
def test_a_config_that_is_no_json_object_is_refused(copied, content):
    (copied / "config.json").write_bytes(content)
    _reseal(copied, "config.json")
    with pytest.raises(ValueError, match=r"'config.json' in .* must "):
        runtime.load(copied)


def test_an_unknown_format_is_refused(copied):
    _change(copied, "manifest.json", format_version=99)
    with pytest.raises(ValueError, match=r"format version 99; this .* reads 1"):
        runtime.load(copied)
    _change(copied, "manifest.json", format_version=1, format="other")
    with pytest.raises(ValueError, match=r"'manifest.json' .* of something else"):
        runtime.load(copied)


def test_files_that_the_manifest_does_not_list_and_links_are_refused(copied):
    (copied / "w.dat").write_bytes(b"")
    with pytest.raises(ValueError, match=r"'w.dat' in .* is not listed"):
        runtime.load(copied)
    (copied / "w.dat").unlink()
    (copied / "config.json").rename(copied.parent / "config.json")
    (copied / "config.json").symlink_to(copied.parent / "config.json")
    with pytest.raises(ValueError, match=r"'config.json' in .* must be a plain file"):
        runtime.load(copied)


@pytest.mark.parametrize("name", ["../config.json", "/etc/hostname"])
def test_other_paths_in_a_manifest_are_refused(copied, name):
    manifest = json.loads((copied / "manifest.json").read_text())
    files = manifest["files"] | {name: manifest["files"]["config.json"]}
    _change(copied, "manifest.json", files=files)
    with pytest.raises(ValueError, match=f"'{name}' is missing"):
        runtime.load(copied)


def test_weights_in_other_files_are_refused(copied):
    import onnx

    model = onnx.load(copied / "model.onnx")
    options = {"save_as_external_data": True, "size_threshold": 0, "location": "w.dat"}
    onnx.save(model, copied / "model.onnx", **options)
    for name in ("model.onnx", "w.dat"):
        _reseal(copied, name)
    manifest = json.loads((copied / "manifest.json").read_text())
    digest = {"sha256": hash_file(copied / "w.dat")}
    _change(copied, "manifest.json", files=manifest["files"] | {"w.dat": digest})
    with pytest.raises(ValueError, match=r"'model.onnx' in .* must hold all weights"):
        runtime.load(copied)


def test_saved_models_and_exports_name_each_other(copied, tiny_bert, tmp_path, capsys):
    folder = save(LogisticRegression(), tmp_path / "saved")
    with pytest.raises(ValueError, match=r"Use skactive\.load for what save wrote"):
        runtime.load(folder)
    with pytest.raises(ValueError, match=r"is loaded by skactive\.runtime\.load"):
        load(copied)
    assert main(["export", str(copied), str(tmp_path / "again")]) == 1
    assert "runtime.load" in capsys.readouterr().err
