"""The backend of Label Studio over HTTP, with the requests that Label Studio sends."""

import signal
import socket
import threading
import time
from types import SimpleNamespace

import httpx
import pytest
from starlette.testclient import TestClient

from skactive._utils._repeatable import start_daemon
from skactive.labeling._label_studio import _backend
from skactive.labeling._label_studio._backend import Backend, serve_backend
from skactive.labeling._label_studio._client import Client

from .._utils._hostile import KINDS, serve_badly

TEXTS = ["a good film", "a bad film", "a long film"]


class StubBridge:
    """A bridge whose model finds the class of a text in the text."""

    def __init__(self):
        self.project = 7
        self.version = ""
        self.wake, self.train_soon = threading.Event(), threading.Event()
        self.asked, self.client = [], SimpleNamespace(stop=threading.Event())
        self.question = SimpleNamespace(read_text=lambda task: task["data"]["review"])

    def is_blind(self, task, text):
        return "blind" in text

    def refit(self):
        number = 1 if not self.version else int(self.version[-1]) + 1
        self.version = f"skactive-0a1b2c3d-m{number}"

    def predict(self, texts):
        self.asked.append(texts)
        if not self.version:
            return [([], 0.0) for _ in texts]
        return [([{"value": {"choices": [text.split()[1]]}}], 0.5) for text in texts]


@pytest.fixture
def bridge():
    return StubBridge()


@pytest.fixture
def open_client(bridge):
    """Open a client of a backend with options; the backend's socket is closed."""
    opened = []

    def open_client(**options):
        opened.append(Backend(bridge, **options))
        options = {"raise_server_exceptions": False, "base_url": "http://127.0.0.1"}
        return TestClient(opened[-1].app, **options)

    yield open_client
    for backend in opened:
        backend.stop()


@pytest.fixture
def client(open_client):
    return open_client()


def _request(texts=TEXTS, **content):
    """Return the body of a request of `/predict`, as Label Studio 1.23.2 sends it."""
    tasks = [
        {"id": 40 + i, "data": {"review": text}, "project": 7, "annotations": []}
        for i, text in enumerate(texts)
    ]
    params = {"login": None, "password": None, "context": None}
    return {"tasks": tasks, "project": "7.1795378659", "params": params, **content}


def _read(response):
    """Return (class, score, version) of each prediction of a response."""
    assert response.status_code == 200
    return [
        result
        and (
            result["result"][0]["value"]["choices"][0],
            result["score"],
            result["model_version"],
        )
        for result in response.json()["results"]
    ]


@pytest.mark.parametrize("path", ["/", "/health"])
def test_health(client, path):
    assert client.get(path).json()["status"] == "UP"


def test_the_version_changes_with_every_refit(client, bridge):
    body = {"project": "7.1795378659", "schema": "<View/>", "access_token": "secret"}
    assert client.post("/setup", json=body).json() == {"model_version": ""}
    assert client.get("/versions").json() == {"versions": []}
    seen = set()
    for _ in range(3):
        bridge.refit()
        seen.add(client.post("/setup", json=body).json()["model_version"])
        assert client.get("/versions").json() == {"versions": [bridge.version]}
        assert {v for *_, v in _read(client.post("/predict", json=_request()))} <= seen
    assert len(seen) == 3


def test_predictions_come_in_the_order_of_the_tasks(client, bridge, monkeypatch):
    monkeypatch.setattr(_backend, "CHUNK", 2)
    bridge.refit()
    read = _read(client.post("/predict", json=_request()))
    assert read == [(name, 0.5, bridge.version) for name in ("good", "bad", "long")]
    assert bridge.asked == [TEXTS[:2], TEXTS[2:]]


def test_a_task_without_a_text_gets_no_prediction(client, bridge):
    bridge.refit()
    body = _request()
    body["tasks"][1]["data"] = {"other": "a bad film"}
    del body["tasks"][2]["data"]
    read = _read(client.post("/predict", json=body))
    assert read == [("good", 0.5, bridge.version), [], []]


def test_a_task_of_the_audit_gets_no_prediction(client, bridge):
    bridge.refit()
    body = _request()
    body["tasks"][1]["data"] = {"review": "a blind film"}
    before, blind, after = _read(client.post("/predict", json=body))
    assert blind == []
    assert before
    assert after
    assert bridge.asked == [[TEXTS[0], TEXTS[2]]]


def test_before_there_is_a_model_nothing_is_predicted(client):
    assert _read(client.post("/predict", json=_request())) == [[], [], []]
    # A page that asks for one task expects an object.
    body = _request(TEXTS[:1], params={"context": {"result": []}})
    (result,) = client.post("/predict", json=body).json()["results"]
    assert result["result"] == []


def test_a_refit_during_a_prediction_keeps_the_older_version(client, bridge):
    bridge.refit()
    old, predict = bridge.version, bridge.predict

    def predict_and_refit(texts):
        bridge.refit()
        return predict(texts)

    bridge.predict = predict_and_refit
    assert {v for *_, v in _read(client.post("/predict", json=_request()))} == {old}
    assert bridge.version != old


@pytest.mark.parametrize("action", ["ANNOTATION_CREATED", "ANNOTATIONS_DELETED", None])
def test_a_webhook_wakes_the_bridge(client, bridge, action):
    content = {"action": action, "annotation": {"id": 3}, "project": {"id": 7}}
    assert client.post("/webhook", json=content).json() == {"status": "ok"}
    assert bridge.wake.is_set()
    assert not bridge.train_soon.is_set()


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/webhook", {"action": "START_TRAINING", "project": {"id": 7}}),
        ("/train", {"annotations": [], "project": "7.1795378659"}),
    ],
)
def test_start_training_trains_at_once(client, bridge, path, content):
    assert client.post(path, json=content).json() == {"status": "ok"}
    assert bridge.train_soon.is_set()
    assert bridge.wake.is_set()


def test_a_change_that_the_bridge_makes_does_not_wake_it(client, bridge):
    content = {"action": "PROJECT_UPDATED", "project": {"id": 7}}
    assert client.post("/webhook", json=content).status_code == 200
    assert not bridge.wake.is_set()


def test_another_project_is_refused(client):
    for path in ("/setup", "/predict", "/train", "/webhook"):
        response = client.post(path, json=_request(project="8.1795378659"))
        assert response.status_code == 400
        assert "serves project 7, not '8.1795378659'" in response.json()["error"]


def test_the_webhook_of_another_project_wakes_nobody(client, bridge):
    content = {"action": "START_TRAINING", "project": {"id": 8, "title": "other"}}
    response = client.post("/webhook", json=content)
    assert response.status_code == 400
    assert "serves project 7, not '8'" in response.json()["error"]
    assert not bridge.wake.is_set()
    assert not bridge.train_soon.is_set()


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/setup", b"{", "the body must be JSON"),
        ("/webhook", b"\xff", "the body must be JSON"),
        ("/predict", b"[" * 100_000, "the body must be JSON"),
        ("/predict", b"[]", "the body must be a JSON object"),
        ("/predict", b"{}", "'tasks' must be a list of tasks"),
        ("/predict", b'{"tasks": [3]}', "'tasks' must be a list of tasks"),
        ("/predict", b'{"tasks": [], "project": 8}', "serves project 7"),
    ],
)
def test_a_body_that_cannot_be_used(client, path, body, message):
    response = client.post(path, content=body)
    assert response.status_code == 400
    assert message in response.json()["error"]


def test_a_large_body_is_refused(client, monkeypatch):
    monkeypatch.setattr(_backend, "MAX_BODY", 100)
    for content in (b" " * 101, iter([b" " * 100, b"{}"])):
        assert client.post("/predict", content=content).status_code == 413
    assert client.post("/webhook", content=b"{}").status_code == 200


@pytest.mark.parametrize("path", ["/setup", "/webhook", "/train"])
def test_only_tasks_may_be_large(client, path):
    content = b'{"action": "' + b"x" * 1_000_000 + b'"}'
    assert client.post(path, content=content).status_code == 413
    assert client.post(path, content=b"{}").status_code == 200


def test_a_failure_is_an_error_without_a_traceback(client, bridge, caplog):
    bridge.predict = lambda texts: 1 / 0
    response = client.post("/predict", json=_request())
    assert response.status_code == 500
    assert response.json() == {
        "error": "predict failed: ZeroDivisionError: division by zero"
    }
    assert "predict failed" in caplog.text
    assert client.get("/nowhere").json() == {"error": "Not Found"}
    assert client.get("/predict").json() == {"error": "Method Not Allowed"}


def test_a_password_is_asked_for_on_every_path(open_client, bridge):
    client = open_client(auth="ann:a secret: with colons")
    wrong = [None, ("ann", "wrong"), ("bob", "a secret: with colons")]
    calls = [
        ("GET", "/"),
        ("GET", "/versions"),
        ("POST", "/setup"),
        ("POST", "/predict"),
        ("POST", "/train"),
        ("POST", "/webhook"),
    ]
    for method, path in calls:
        for auth in wrong:
            response = client.request(method, path, auth=auth)
            assert response.status_code == 401
            assert response.headers["www-authenticate"].startswith("Basic")
        assert not bridge.wake.is_set()
        right = ("ann", "a secret: with colons")
        response = client.request(method, path, auth=right, json=_request([]))
        assert response.status_code == 200
        bridge.wake.clear()
    assert client.get("/nowhere").status_code == 401


@pytest.mark.parametrize("auth", ["ann", ":secret", "ann:", "änn:secret", 3])
def test_a_password_that_cannot_be_sent(bridge, auth):
    with pytest.raises(ValueError, match="a variable with user:password in ASCII"):
        Backend(bridge, auth=auth)


def test_pages_of_a_browser_are_refused(client, bridge):
    headers = {"Origin": "http://evil.example"}
    assert client.get("/versions", headers=headers).status_code == 403
    for path in ("/predict", "/webhook", "/train"):
        response = client.post(path, json=_request(), headers=headers)
        assert response.status_code == 403
    assert not bridge.wake.is_set()
    assert not bridge.train_soon.is_set()


def test_another_host_is_refused_where_only_this_computer_is_served(open_client):
    odd = {"Host": "localhost:80@evil.example"}
    assert open_client().get("/", headers=odd).status_code == 403
    headers = {"Host": "evil.example"}
    assert open_client().get("/", headers=headers).status_code == 403
    assert open_client().get("/", headers={"Host": "localhost:9"}).is_success
    assert open_client(host="0.0.0.0").get("/", headers=headers).is_success


def test_only_this_computer_is_served_by_default(bridge):
    with Backend(bridge) as backend:
        assert backend._socket.getsockname()[0] == "127.0.0.1"
        assert httpx.get(f"{backend.url}/health").json()["status"] == "UP"
    with pytest.raises(ValueError, match="'host' must be an address"):
        Backend(bridge, host="no such host")


def test_health_is_answered_during_a_slow_prediction(bridge):
    begun, go_on = threading.Event(), threading.Event()
    predict = bridge.predict

    def predict_slowly(texts):
        begun.set()
        go_on.wait(60)
        return predict(texts)

    bridge.refit()
    bridge.predict = predict_slowly
    replies = []
    with Backend(bridge) as backend:
        post = lambda: replies.append(  # noqa: E731
            httpx.post(f"{backend.url}/predict", json=_request(), timeout=60)
        )
        thread = threading.Thread(target=post)
        thread.start()
        begun.wait(60)
        assert httpx.get(f"{backend.url}/health", timeout=60).status_code == 200
        assert httpx.post(f"{backend.url}/webhook", json={}, timeout=60).is_success
        assert not replies
        go_on.set()
        thread.join()
    assert [name for name, *_ in _read(replies[0])] == ["good", "bad", "long"]


def test_nothing_is_predicted_for_whom_has_gone(bridge, monkeypatch):
    monkeypatch.setattr(_backend, "CHUNK", 1)
    begun, go_on = threading.Event(), threading.Event()

    def predict(texts):
        bridge.asked.append(texts)
        begun.set()
        go_on.wait(60)
        return [([], 0.0)]

    bridge.predict = predict
    body = httpx.Request("POST", "http://backend/predict", json=_request()).content
    with Backend(bridge) as backend:
        with socket.create_connection(("127.0.0.1", backend.port)) as connection:
            connection.sendall(
                b"POST /predict HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            begun.wait(60)
        # The end of the connection is seen before this request is answered.
        assert httpx.get(f"{backend.url}/health").status_code == 200
        go_on.set()
    assert bridge.asked == [TEXTS[:1]]


def test_the_bridge_runs_while_the_backend_is_served(bridge):
    said = []

    def run(*, stop):
        said.append("running")
        bridge.wake.wait(60)
        raise RuntimeError("the project is gone")

    bridge.run = run
    ask = lambda url: threading.Timer(  # noqa: E731
        0.2, lambda: httpx.post(f"{url}/webhook", json={})
    ).start()
    with pytest.raises(RuntimeError, match="the project is gone"):
        serve_backend(bridge, announce=ask)
    assert said == ["running"]


def test_ctrl_c_waits_for_no_request_to_label_studio(bridge, monkeypatch):
    monkeypatch.setattr(_backend, "SECONDS_TO_END", 0.2)
    with serve_badly(KINDS["a byte of a header"]) as (host, connections):
        bridge.client = Client(f"http://{host}", "a-token", timeout=600, deadline=600)
        bridge.run = lambda *, stop: bridge.client.list_users()

        def interrupt():
            while not connections:
                time.sleep(0.02)
            signal.raise_signal(signal.SIGINT)

        start = time.monotonic()
        serve_backend(bridge, announce=lambda url: start_daemon(interrupt))
        assert time.monotonic() - start < 60
