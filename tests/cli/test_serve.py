"""The command `serve`: a saved model over HTTP."""

import json
import shutil
import threading

import httpx
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import export_onnx, make_text_classifier, save
from skactive._utils._labels import predict_labels
from skactive.cli import main
from skactive.serving import PredictionServer

TOKEN = "a-token-for-the-tests"


@pytest.fixture
def folder(tmp_path):
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    model.fit(["good film", "bad film", "good", "bad"], ["like", "no", "like", "no"])
    save(model, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def serve(folder, monkeypatch):
    """Return a function that serves the model while `work(url)` runs."""
    servers, is_there, run = [], threading.Event(), PredictionServer.run

    def remember(server):
        servers.append(server)
        is_there.set()
        run(server)

    def start(work, *options):
        monkeypatch.setattr(PredictionServer, "run", remember)
        status = []
        command = ["serve", str(folder), *options]
        thread = threading.Thread(target=lambda: status.append(main(command)))
        thread.start()
        assert is_there.wait(60)
        try:
            while not servers[0]._server.started:
                assert thread.is_alive()
            work(servers[0].url)
        finally:
            servers[0].ask_to_stop()
            thread.join()
        return status[0]

    return start


def _ask(url, token=TOKEN, texts=("good",)):
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.post(f"{url}/predict", json={"texts": texts}, headers=headers)


def test_the_token_of_the_environment(serve, monkeypatch, capsys):
    monkeypatch.setenv("MY_TOKEN", TOKEN)

    def work(url):
        assert _ask(url).json()["labels"] == ["like"]
        assert _ask(url, "another").status_code == 401

    assert serve(work, "--token-env", "MY_TOKEN") == 0
    printed = capsys.readouterr().err
    assert "/predict, with the header Authorization: Bearer $MY_TOKEN" in printed
    assert printed.endswith("stopped\n")
    assert TOKEN not in printed


def test_a_random_token_is_printed(serve, monkeypatch, capsys):
    monkeypatch.delenv("SKACTIVE_TOKEN", raising=False)
    found = []

    def work(url):
        token = capsys.readouterr().err.split("Bearer ")[1].strip()
        found.append(_ask(url, token).status_code)

    assert serve(work) == 0
    assert found == [200]


def test_a_model_of_pairs_takes_pairs(serve, folder, monkeypatch):
    class Pairs(ClassifierMixin, BaseEstimator):
        classes_ = ("no", "yes")

        def predict_proba(self, X):
            return np.array([[a == b, a != b] for a, b in X], dtype=float)

    about = {"text": ["title", "body"], "label": "label", "stamp": None}
    (folder.parent / "model.json").write_text(json.dumps(about))
    monkeypatch.setattr("skactive.persistence.load", lambda folder: Pairs())
    monkeypatch.setenv("SKACTIVE_TOKEN", TOKEN)

    def work(url):
        assert _ask(url).status_code == 400
        assert _ask(url, texts=[["a", "b"]]).json()["labels"] == ["yes"]

    assert serve(work) == 0


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_an_export_is_served_as_the_model(
    serve, folder, tiny_bert, monkeypatch, several
):
    pytest.importorskip("onnxruntime")
    texts, y = ["good film", "bad film", "good", "bad"], [0, 1, 0, 1]
    if several:
        y = np.eye(2, dtype=int)[y]
    model = make_text_classifier(tiny_bert, several, precision="float32").fit(texts, y)
    shutil.rmtree(folder)
    export_onnx(model, folder, classes=["like", "no"] if several else None)
    monkeypatch.setenv("SKACTIVE_TOKEN", TOKEN)
    names = ["like", "no"] if several else None
    target = "multi-label" if several else "single-label"
    labels, scores, best = predict_labels(model, texts, names, target)

    def work(url):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        content = {"texts": texts, "n_top": 2}
        found = httpx.post(f"{url}/predict", json=content, headers=headers).json()
        assert found["labels"] == labels
        np.testing.assert_allclose(found["probabilities"], scores, atol=1e-4)
        for ours, theirs in zip(found["top"], best, strict=True):
            assert dict(ours) == pytest.approx(dict(map(tuple, theirs)), abs=1e-4)

    assert serve(work) == 0


def test_other_computers_need_a_token_of_the_environment(folder, monkeypatch, capsys):
    monkeypatch.delenv("SKACTIVE_TOKEN", raising=False)
    assert main(["serve", str(folder), "--host", "0.0.0.0"]) == 1
    assert "SKACTIVE_TOKEN must hold a token, got none" in capsys.readouterr().err


def test_a_short_token_and_no_model_are_refused(folder, monkeypatch, capsys):
    monkeypatch.setenv("SKACTIVE_TOKEN", "short")
    assert main(["serve", str(folder)]) == 1
    assert "'token' must be at least 16 letters" in capsys.readouterr().err
    assert main(["serve", str(folder.parent / "none")]) == 1
    assert "must be the folder of a model" in capsys.readouterr().err


def test_a_token_of_any_printable_characters(serve, monkeypatch, capsys):
    token, found = "+/=!\"#$%&'()*,-.:;<>?@[\\]^_`{|}~ab1", []
    monkeypatch.setenv("SKACTIVE_TOKEN", token)
    serve(lambda url: found.append(_ask(url, token).status_code))
    assert found == [200]
    assert token not in capsys.readouterr().err


@pytest.mark.parametrize("token", ["short+/", "a secret with blanks", "sécret" * 4])
def test_a_refused_token_is_not_shown(folder, monkeypatch, capsys, token):
    monkeypatch.setenv("SKACTIVE_TOKEN", token)
    assert main(["serve", str(folder)]) == 1
    err = capsys.readouterr().err
    assert f"got {len(token)} characters" in err
    assert token not in err


def test_pairs_for_a_model_of_texts_are_an_error_of_the_client(serve, monkeypatch):
    monkeypatch.setenv("SKACTIVE_TOKEN", TOKEN)
    replies = []
    pairs = [["good", "film"], ["bad", "film"]]
    serve(lambda url: replies.extend([_ask(url, texts=pairs), _ask(url)]))
    assert [reply.status_code for reply in replies] == [400, 200]
    assert "'texts' must hold texts, got" in replies[0].json()["error"]
