"""A process of `skactive label` that has written everything ends, whatever waits."""

import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from tests._utils._hostile import drip
from tests.annotators._helpers import FakeChat, chat

from .._tables._helpers import read_columns, write_columns
from ..conftest import SKACTIVE

PATIENCE = 240  # seconds; a reply is given up after six times 60 seconds
REPLIES = {
    "says nothing": lambda connection, stopped: stopped.wait(),
    "a byte of a header": drip(b"HTTP/1.1 200 OK\r\nX: ", b"a"),
}


@pytest.fixture
def silent():
    """Return a function that starts a server, which answers a text and then waits."""
    servers, stopped = [], threading.Event()

    def start(kind):
        def reply(text, body):
            if len(server.requests) == 1:
                return chat('{"label": "good"}')
            return lambda handler: REPLIES[kind](handler.connection, stopped)

        server = FakeChat(reply)
        servers.append(server)
        return server

    yield start
    stopped.set()
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def table(tmp_path):
    """A table of texts with few labels."""
    texts = [f"a {['good', 'bad'][i % 2]} film {i}" for i in range(40)]
    labels = ["good", "bad", "good", "bad"] + [None] * 36
    write_columns(tmp_path / "films.csv", {"text": texts, "label": labels})
    return tmp_path / "films.csv"


def finish(process, url):
    httpx.post(f"{url}api/finish", json={}, timeout=60)


def interrupt(process, url):
    process.send_signal(signal.SIGINT)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "end"),
    [
        ("says nothing", finish),
        ("a byte of a header", interrupt),
    ],
)
def test_label_ends_although_its_machine_is_silent(table, tiny_bert, silent, kind, end):
    server = silent(kind)
    command = [sys.executable, *SKACTIVE, "label", table, "--text", "text", "--label"]
    command += ["label", "--model", tiny_bert, "--no-browser", "--no-fine-tuning"]
    command += ["--machine", server.url, "--machine-model", "tiny"]
    # A shell that runs the tests in the background lets its children ignore Ctrl-C.
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    said = []
    try:
        for line in process.stderr:
            said.append(line)
            if "label at " in line:
                url = line.split("label at ")[1].strip()
            if "writes the labeled table" in line:
                late = time.monotonic() + 60  # a busy machine may give up before
                while len(server.requests) < 5 and time.monotonic() < late:
                    time.sleep(0.1)  # four at a time
                end(process, url)
            if "the model is in" in line:
                break
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert table.with_name("films.labeled.csv").exists()
    cells = read_columns(table.with_name("films.labeled.csv"))
    assert set(cells["label_source"]) == {"given", "model"}
