"""Code that comes with a model is never run, and nobody is asked about it."""

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import transformers

from skactive import load, save
from skactive.bert import BertClassifier, BertFeatures

from ..conftest import TEXTS, save_encoder
from ..persistence._helpers import FILMS as TRAINING_TEXTS
from ..persistence._helpers import VERDICTS as LABELS
from ..persistence._helpers import _classifier, _reseal
from ._helpers import uncached

CODE = """
from pathlib import Path
Path(__file__).with_name("it_ran").touch()
Path({marker!r}).touch()
from transformers import {base}
class Own({base}):
    model_type = "own"
"""
CLASSES = {
    "AutoConfig": "BertConfig",
    "AutoModel": "BertModel",
    "AutoTokenizer": "PreTrainedTokenizerFast",
}


def change_json(path, **entries):
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(settings | entries))


def add_code(folder, marker, kind, *, model_type="own"):
    """Let a folder name a class of its own, in a file that leaves a marker when run."""
    content = CODE.format(marker=str(marker), base=CLASSES[kind])
    (folder / "own.py").write_text(content)
    name = "own.Own" if kind != "AutoTokenizer" else [None, "own.Own"]
    of_tokenizer = kind == "AutoTokenizer"
    file = "tokenizer_config.json" if of_tokenizer else "config.json"
    entries = {"tokenizer_class": "Own"} if of_tokenizer else {"model_type": model_type}
    change_json(folder / file, auto_map={kind: name}, **entries)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    save_encoder(folder)
    return folder


@pytest.mark.parametrize("kind", ["AutoConfig", "AutoTokenizer"])
def test_code_in_a_folder_does_not_run_whatever_the_answer(
    tmp_path, folder, kind, monkeypatch
):
    marker = tmp_path / "marker"
    add_code(folder, marker, kind)
    monkeypatch.setattr("builtins.input", lambda *args: "y")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    message = "'model' must be a model that transformers runs with its own"
    with pytest.raises(ValueError, match=message) as caught:
        BertFeatures(folder, cache=None).transform(["a"])
    assert f"got {str(folder)!r}, whose" in str(caught.value)
    assert not marker.exists()
    assert not (folder / "it_ran").exists()


@pytest.mark.slow
def test_code_in_a_folder_does_not_run_whatever_stdin_says(tmp_path, folder):
    marker = tmp_path / "marker"
    add_code(folder, marker, "AutoConfig")
    script = (
        "import sys; from skactive.bert import BertFeatures\n"
        "try: BertFeatures(sys.argv[1], cache=None).transform(['a'])\n"
        "except ValueError as exc: print(exc)\n"
        "print('left on stdin:', sys.stdin.read())\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        input="y\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert out.returncode == 0, out.stderr
    assert not marker.exists()
    assert "'model' must be a model that transformers runs with its own" in out.stdout
    assert f"got {str(folder)!r}, whose" in out.stdout
    assert "'auto_map'" in out.stdout
    assert "run the custom code" not in out.stdout
    assert out.stdout.endswith("left on stdin: y\n\n")


@pytest.mark.parametrize("kind", ["AutoConfig", "AutoModel"])
def test_code_for_a_type_that_transformers_knows_is_refused(tmp_path, folder, kind):
    # The class of transformers may compute something else with the same weights.
    add_code(folder, tmp_path / "marker", kind, model_type="bert")
    with pytest.raises(ValueError, match=r"config\.json names other code .*'auto_map'"):
        BertFeatures(folder, cache=None).transform(TEXTS)


def test_tells_what_to_do_if_transformers_has_the_architecture(tmp_path, folder):
    add_code(folder, tmp_path / "marker", "AutoModel", model_type="nomic_bert")
    message = f"Transformers {transformers.__version__} has the architecture 'nomic_b"
    with pytest.raises(ValueError, match=rf"never run\. {message}.*without 'auto_map'"):
        BertFeatures(folder, cache=None).transform(TEXTS)
    add_code(folder, tmp_path / "marker", "AutoModel", model_type="own")
    with pytest.raises(ValueError, match=r"never run\. Pass another model"):
        BertFeatures(folder, cache=None).transform(TEXTS)


def test_a_copy_without_auto_map_is_read(tmp_path, folder):
    expected = uncached(str(folder)).transform(TEXTS)
    add_code(folder, tmp_path / "marker", "AutoModel", model_type="bert")
    path = folder / "config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in settings.items() if k != "auto_map"}))
    np.testing.assert_array_equal(uncached(str(folder)).transform(TEXTS), expected)


def test_fine_tuning_refuses_code(tmp_path, folder):
    add_code(folder, tmp_path / "marker", "AutoModel")
    with pytest.raises(ValueError, match=r"'model' must be .* names other code"):
        BertClassifier(folder).fit(["good", "bad"], [0, 1])


def test_an_attention_kernel_of_the_hub_is_refused(folder):
    change_json(folder / "config.json", attn_implementation="someone/kernel")
    with pytest.raises(ValueError, match="names other code under 'attn_impl"):
        BertFeatures(folder, cache=None).transform(TEXTS)


def test_code_for_another_task_does_not_matter(folder, exact):
    change_json(
        folder / "config.json",
        auto_map={"AutoModelForSequenceClassification": "someone/else--own.Own"},
    )
    features = uncached(folder).transform(TEXTS)
    assert (features == exact.transform(TEXTS)).all()


def test_a_type_that_transformers_does_not_know_is_refused(folder):
    change_json(folder / "config.json", model_type="own")
    with pytest.raises(ValueError, match=r"model type `own` but Transformers does not"):
        BertFeatures(folder, cache=None).transform(TEXTS)


def test_load_refuses_a_copied_encoder_that_names_code(tmp_path, folder, monkeypatch):
    path = Path(
        save(_classifier(folder).fit(TRAINING_TEXTS, LABELS), tmp_path / "saved")
    )
    shutil.rmtree(folder)
    (copied,) = (path / "pretrained").iterdir()
    change_json(copied / "config.json", auto_map={"AutoModel": "someone/else--own.Own"})
    _reseal(path)
    monkeypatch.setattr("builtins.input", None)
    with pytest.raises(ValueError, match=r"names other code under 'auto_map'"):
        load(path)
