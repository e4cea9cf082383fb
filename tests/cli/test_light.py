"""Exports are predicted and served without the packages that training needs."""

import json
import subprocess
import sys

import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive import export_onnx, save
from skactive.bert import BertFeatures

TEXTS = ["good film", "bad film", "good", "bad"]
FRAME = pd.DataFrame({"text": TEXTS, "n": [1.0, 2.0, 4.0, 3.0]})
LABELS = ["like", "no", "like", "no"]

# Runs commands where only numpy, onnxruntime, tokenizers, starlette and uvicorn are.
LIGHT = """
import importlib.abc, json, sys, urllib.request

MISSING = set("scipy sklearn torch transformers skorch safetensors joblib filelock "
              "threadpoolctl tqdm pyarrow pandas polars skops onnx matplotlib openpyxl "
              "huggingface_hub httpx".split())

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Finder())
from skactive.cli import main

def ask(server):
    server.start()
    headers = {"Authorization": "Bearer a-token-for-the-tests"}
    url = f"{server.url}/predict"
    request = urllib.request.Request(url, sys.argv[2].encode(), headers)
    print(urllib.request.urlopen(request).read().decode())
    server.stop()

if sys.argv[2]:
    from skactive.serving import PredictionServer
    PredictionServer.run, run = ask, PredictionServer.run
    def start(server, begin=PredictionServer.start):
        PredictionServer.run = run
        return begin(server)
    PredictionServer.start = start
sys.exit(main(json.loads(sys.argv[1])))
"""


def run_light(command, body="", cwd=None):
    """Run a command without the other packages; return status, output and errors."""
    arguments = [sys.executable, "-c", LIGHT, json.dumps(command), body]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def features(folder):
    return BertFeatures(folder, max_length=40, precision="float32")


@pytest.fixture(scope="module")
def models(tiny_bert, tmp_path_factory):
    """A model of texts and one of columns, and the folder of their exports."""
    folder = tmp_path_factory.mktemp("light")
    texts = make_pipeline(features(tiny_bert), LogisticRegression())
    columns = make_column_transformer(
        (features(tiny_bert), "text"), (StandardScaler(), ["n"])
    )
    columns = make_pipeline(columns, LogisticRegression())
    export_onnx(texts.fit(TEXTS, LABELS), folder / "texts")
    export_onnx(columns.fit(FRAME, LABELS), folder / "columns")
    save(texts, folder / "saved")
    FRAME.to_csv(folder / "new.csv", index=False)
    FRAME.to_json(folder / "new.jsonl", orient="records", lines=True)
    return folder, texts, columns


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_an_export_predicts_a_table(models, suffix):
    folder, texts, columns = models
    for name, model, X in (("texts", texts, TEXTS), ("columns", columns, FRAME)):
        command = ["predict", str(folder / name), str(folder / f"new.{suffix}")]
        command += ["--out", str(folder / f"{name}.{suffix}")]
        command += ["--text", "text"] if name == "texts" else []
        status, out, errors = run_light(command)
        assert (status, errors) == (0, "")
        assert "4 predictions" in out
        path = folder / f"{name}.{suffix}"
        found = pd.read_csv(path) if suffix == "csv" else pd.read_json(path, lines=True)
        assert found["prediction"].tolist() == model.predict(X).tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("texts", {"texts": TEXTS, "n_top": 2}),
        ("columns", {"rows": FRAME.to_dict("records")}),
    ],
)
def test_an_export_answers_requests(models, name, body, monkeypatch):
    monkeypatch.setenv("SKACTIVE_TOKEN", "a-token-for-the-tests")
    folder, *fitted = models
    model = fitted[name == "columns"]
    status, out, errors = run_light(["serve", str(folder / name)], json.dumps(body))
    assert status == 0, errors
    X = TEXTS if name == "texts" else FRAME
    assert json.loads(out)["labels"] == model.predict(X).tolist()


@pytest.mark.parametrize("command", [[], ["serve"], ["predict"]])
def test_the_help_needs_no_package(command):
    assert run_light([*command, "--help"])[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["predict", "saved", "new.csv", "--text", "text"], "needs the package scipy"),
        (["serve", "saved"], "skactive export` wrote"),
        (["serve", "none"], "must be the folder of a model, got 'none'"),
        (["predict", "texts", "new.parquet", "--text", "t"], "pip install pyarrow`"),
        (["predict", "texts", "new.xlsx", "--text", "t"], "pip install openpyxl`"),
        (["predict", "texts", "new.csv"], "argument --text: name the column of texts"),
        (["predict", "columns", "new.csv", "--text", "n"], "reads the columns text, n"),
    ],
)
def test_what_is_missing_is_named(models, command, message):
    folder = models[0]
    for suffix in ("parquet", "xlsx"):
        (folder / f"new.{suffix}").write_bytes(b"any")
    status, _, errors = run_light(command, cwd=folder)
    assert status == 1
    assert message in errors
    assert errors.count("\n") == 1
