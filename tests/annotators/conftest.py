"""Servers that end with a test, and waiting times that only are recorded."""

import pytest

from skactive.annotators import ChatAnnotator, _client

from ._helpers import CLASSES, KEY, FakeChat


@pytest.fixture
def serve():
    """Return a function that starts a FakeChat."""
    servers = []

    def start(*reply):
        servers.append(FakeChat(*reply))
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def pauses(monkeypatch):
    """Record the seconds between repetitions, which take no time."""
    seconds = []
    monkeypatch.setattr(_client, "_pause", lambda stop, wait: seconds.append(wait))
    return seconds


@pytest.fixture(autouse=True)
def key(monkeypatch):
    """Set the key of the environment."""
    monkeypatch.setenv("SKACTIVE_API_KEY", KEY)
    return KEY


@pytest.fixture
def make(serve):
    """Return a function that makes an annotator, by default with its own server."""

    def make(reply=None, server=None, classes=CLASSES, **params):
        server = server or (serve(reply) if reply else serve())
        params = {"timeout": 20, "max_retries": 2, "verbose": 0, **params}
        annotator = ChatAnnotator(server.url, "tiny", classes, **params)
        annotator.server = server
        return annotator

    return make
