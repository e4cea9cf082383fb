"""The server of predictions: batches, refusals and limits."""

import json
import re
import threading
from functools import partial

import httpx
import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from starlette.testclient import TestClient

from skactive._utils._labels import predict_labels
from skactive.cli._predict import _predict_exported
from skactive.serving import _prediction_server as module
from skactive.serving._http import MOST_WAITING
from skactive.serving._prediction_server import PredictionServer

TOKEN = "a-token-for-the-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
TEXTS = ["rain and wind", "a late goal", "snow", "the match", "rain", "a goal"]
LABELS = ["weather", "sport", "weather", "sport", "weather", "sport"]


def make_predict(model, classes, target):
    return lambda texts: predict_labels(model, texts, classes, target, n_top=None)


@pytest.fixture(scope="module")
def model():
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    return model.fit(TEXTS, LABELS)


@pytest.fixture
def make_client():
    """Return a function of the arguments of a server: a client that has the token."""
    opened = []

    def make(predict, **options):
        opened.append(PredictionServer(predict, TOKEN, **options))
        base = f"http://127.0.0.1:{opened[-1].port}"
        app = opened[-1].app
        client = TestClient(app, base, headers=HEADERS, raise_server_exceptions=False)
        return client

    yield make
    for server in opened:
        server.stop()


@pytest.fixture
def client(make_client, model):
    return make_client(make_predict(model, None, "single-label"))


def _post(client, texts, **more):
    return client.post("/predict", json={"texts": texts, **more})


def test_predictions_are_those_of_the_model(client, model):
    response = _post(client, TEXTS)
    assert response.status_code == 200
    found = response.json()
    assert found.keys() == {"labels", "probabilities"}
    assert found["labels"] == model.predict(TEXTS).tolist()
    expected = model.predict_proba(TEXTS).max(axis=1)
    np.testing.assert_allclose(found["probabilities"], expected)


def test_the_best_classes_are_sorted_by_probability(client, model):
    (row,) = _post(client, TEXTS[:1], n_top=5).json()["top"]
    proba = dict(zip(model.classes_, model.predict_proba(TEXTS[:1])[0], strict=True))
    assert [name for name, _ in row] == sorted(proba, key=lambda x: -proba[x])
    np.testing.assert_allclose([p for _, p in row], [proba[name] for name, _ in row])
    assert len(_post(client, TEXTS[:1], n_top=1).json()["top"][0]) == 1


def test_several_classes_and_numbers(make_client):
    several = np.array([[1, 0], [0, 1]] * 3)
    model = make_pipeline(CountVectorizer(), OneVsRestClassifier(LogisticRegression()))
    predict = make_predict(
        model.fit(TEXTS, several), ["weather", "sport"], "multi-label"
    )
    found = _post(make_client(predict), TEXTS[:2]).json()
    assert found["labels"] == [["weather"], ["sport"]]
    numbers = make_pipeline(CountVectorizer(), Ridge()).fit(TEXTS, [1, 0, 1, 0, 1, 0])
    found = _post(make_client(make_predict(numbers, None, "regression")), TEXTS).json()
    np.testing.assert_allclose(found["labels"], numbers.predict(TEXTS))
    assert found["probabilities"] == [None] * len(TEXTS)


def test_an_export_of_several_classes_has_the_probability_of_its_decisions(make_client):
    class Exported:
        target, classes = "multi-label", ["weather", "sport"]

        def predict_proba(self, texts):
            return np.array([[0.21, 0.1]] * len(texts))

        def decide(self, proba):
            return [["weather"]] * len(proba)  # above its threshold

    predict = partial(_predict_exported, Exported(), n_top=None)
    found = _post(make_client(predict), TEXTS[:2]).json()
    assert found == {"labels": [["weather"]] * 2, "probabilities": [0.21] * 2}


def test_pairs(make_client):
    seen = []

    def predict(texts):
        seen.extend(texts)
        return ["yes"] * len(texts), [1.0] * len(texts), [[]] * len(texts)

    client = make_client(predict, n_columns=2)
    assert _post(client, [["a", "b"], ["c", "d"]]).json()["labels"] == ["yes", "yes"]
    assert seen == [("a", "b"), ("c", "d")]
    assert "must hold pairs of texts, got 'a' at 0" in _post(client, ["a"]).text


def test_rows_of_a_table(make_client):
    def check(rows):
        if any(set(row) != {"text", "n"} for row in rows):
            raise ValueError("no row of the table")

    seen = []

    def predict(rows):
        seen.extend(rows)
        return ["yes"] * len(rows), [1.0] * len(rows), [[]] * len(rows)

    client = make_client(predict, check_rows=check)
    rows = [{"text": "a", "n": 1}, {"text": "b", "n": 2.5}]
    response = client.post("/predict", json={"rows": rows})
    assert response.json()["labels"] == ["yes", "yes"]
    assert seen == rows
    for body in ({"rows": [{"text": "a"}]}, {"texts": ["a"]}, {"rows": rows, "x": 1}):
        response = client.post("/predict", json=body)
        assert response.status_code == 400
        assert re.search('no row of the table|with "rows"', response.json()["error"])
    assert seen == rows


@pytest.mark.parametrize(
    "given", ["", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer é".encode()]
)
def test_requests_without_the_token_are_asked_for_it(client, given):
    headers = {"Authorization": given}
    response = client.post("/predict", json={"texts": ["a"]}, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert "labels" not in response.text


@pytest.mark.parametrize("header", ["Host", "Origin"])
def test_requests_from_elsewhere_are_refused(client, header):
    headers = {header: "http://evil.example"}
    response = client.post("/predict", json={"texts": ["a"]}, headers=headers)
    assert response.status_code == 403
    assert "www-authenticate" not in response.headers
    assert "labels" not in response.text


def test_the_health_needs_no_token(client):
    response = client.get("/health", headers={"Authorization": ""})
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_public_address_takes_any_host(make_client, model):
    client = make_client(make_predict(model, None, "single-label"), host="0.0.0.0")
    headers = {"Host": "models.example"}
    assert client.post("/predict", json={"texts": ["a"]}, headers=headers).is_success
    headers["Authorization"] = "Bearer another"
    assert client.post("/predict", json={"texts": ["a"]}, headers=headers).is_error


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], 'must be an object with "texts"'),
        ({}, 'must be an object with "texts"'),
        ({"texts": ["a"], "top": 2}, 'must be an object with "texts"'),
        ({"texts": []}, "must be a list of 1 to 1,000 texts, got []"),
        ({"texts": "a text"}, "must be a list of 1 to 1,000 texts"),
        ({"texts": ["a"] * 1001}, "must be a list of 1 to 1,000 texts"),
        ({"texts": ["a", 3]}, "must hold texts, got 3 at 1"),
        ({"texts": ["a", ["a", "b"]]}, "must hold texts, got ['a', 'b'] at 1"),
        ({"texts": [["a", "b"], "a"]}, "must hold pairs of texts, got 'a' at 1"),
        ({"texts": ["\ud800"]}, "unpaired surrogates"),
        ({"texts": ["a"], "n_top": 0}, "'n_top' must be an int of at least 1, got 0"),
    ],
)
def test_bad_input_is_refused_with_words(client, body, message):
    response = client.post("/predict", content=json.dumps(body))
    assert response.status_code == 400
    assert message in response.json()["error"]


def test_no_json_and_large_bodies_are_refused(client):
    assert client.post("/predict", content=b"{").status_code == 400
    assert client.post("/predict", content=b"x" * 1_000_001).status_code == 413
    assert client.get("/predict").status_code == 405
    assert client.get("/other").status_code == 404


def test_a_model_that_fails_is_an_error_and_the_server_goes_on(make_client):
    def predict(texts):
        if texts == ["bad"]:
            raise RuntimeError("no memory")
        return ["x"] * len(texts), [1.0] * len(texts), [[]] * len(texts)

    client = make_client(predict)
    response = _post(client, ["bad"])
    assert response.status_code == 500
    assert response.json() == {"error": "RuntimeError: no memory"}
    assert _post(client, ["good"]).json()["labels"] == ["x"]


class Gate:
    """A model that waits in its first call, and keeps the texts of each call."""

    def __init__(self):
        self.calls, self.entered, self.open = [], threading.Event(), threading.Event()

    def __call__(self, texts):
        self.calls.append(list(texts))
        self.entered.set()
        assert self.open.wait(60)
        return [text.upper() for text in texts], [1.0] * len(texts), [[]] * len(texts)


def _send_behind(predict, requests, gate=None):
    """Send requests while the first one is predicted; return their responses."""
    gate, found = gate or predict, [None] * len(requests)
    with PredictionServer(predict, TOKEN) as server:

        def send(i):
            body, url = {"texts": requests[i]}, f"{server.url}/predict"
            found[i] = httpx.post(url, json=body, headers=HEADERS, timeout=60)

        threads = [threading.Thread(target=send, args=[i]) for i in range(len(found))]
        threads[0].start()
        assert gate.entered.wait(60)
        for thread in threads[1:]:
            thread.start()
        n_waiting = sum(map(len, requests[1:]))
        while sum(len(job.texts) for job in tuple(server._jobs)) < n_waiting:
            assert any(thread.is_alive() for thread in threads[1:])
        gate.open.set()
        for thread in threads:
            thread.join()
    return found


def test_requests_that_wait_are_predicted_together(monkeypatch):
    gate = Gate()
    requests = [["first"], *([f"a{i}", f"b{i}"] for i in range(8))]
    found = _send_behind(gate, requests)
    assert [x.json()["labels"] for x in found] == [
        [text.upper() for text in texts] for texts in requests
    ]
    assert gate.calls[0] == ["first"]
    assert len(gate.calls) == 2
    assert sorted(gate.calls[1]) == sorted(
        text for texts in requests[1:] for text in texts
    )


def test_texts_and_pairs_are_not_predicted_together():
    def predict(texts):
        seen.append({type(text) for text in texts})
        return gate([str(text) for text in texts])

    seen, gate = [], Gate()
    found = _send_behind(predict, [["first"], ["a"], [["b", "c"]], ["d"]], gate)
    assert all(response.is_success for response in found)
    assert all(len(kinds) == 1 for kinds in seen)
    assert {str, tuple} == set.union(*seen)


def test_a_batch_is_limited(monkeypatch):
    monkeypatch.setattr(module, "MAX_BATCH", 4)
    gate = Gate()
    found = _send_behind(gate, [["first"], *([f"a{i}", f"b{i}"] for i in range(5))])
    assert all(response.is_success for response in found)
    assert sorted(map(len, gate.calls[1:])) == [2, 4, 4]


def test_more_texts_than_may_wait_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING", 3)
    gate = Gate()
    with PredictionServer(gate, TOKEN) as server:
        url, texts = f"{server.url}/predict", {"texts": ["a", "b"]}
        options = {"headers": HEADERS, "timeout": 60}
        first = threading.Thread(
            target=httpx.post, args=[url], kwargs={"json": texts, **options}
        )
        first.start()
        assert gate.entered.wait(60)
        second = threading.Thread(
            target=httpx.post, args=[url], kwargs={"json": texts, **options}
        )
        second.start()
        while not server._jobs:
            assert second.is_alive()
        response = httpx.post(url, json=texts, **options)
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert "More than 3 texts wait already" in response.json()["error"]
        gate.open.set()
        first.join()
        second.join()


@pytest.mark.slow
def test_more_clients_may_stay_connected_than_on_the_page():
    with PredictionServer(Gate(), TOKEN) as server:
        clients = [httpx.Client() for _ in range(MOST_WAITING + 20)]
        try:
            for _ in range(2):
                for client in clients:
                    assert client.get(f"{server.url}/health").is_success
            assert len(server._server.server_state.connections) == len(clients)
        finally:
            for client in clients:
                client.close()
