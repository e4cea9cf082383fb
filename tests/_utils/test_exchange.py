"""Exchanges over HTTP with servers that keep a client waiting."""

import subprocess
import sys
import threading
import time

import httpx
import pytest

from skactive._utils._exchange import Exchanges
from skactive._utils._repeatable import (
    StoppedError,
    map_in_daemons,
    start_daemon,
    stopped_by,
)

from ._hostile import HANDSHAKES, KINDS, count_work, serve_badly

PATIENCE = 30  # seconds; a busy machine may be slow
LONG = 600


def read(response):
    return response.read()


def answer(connection, stopped):
    """Answer two requests of a connection."""
    for _ in range(2):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, *HANDSHAKES])
def test_an_exchange_ends_at_the_deadline_whatever_the_server_sends(kind):
    write = {**KINDS, **HANDSHAKES}[kind]
    scheme = "https" if kind in HANDSHAKES else "http"
    before = count_work()
    with serve_badly(write) as (host, _):
        client, start = Exchanges(1, timeout=LONG), time.monotonic()
        with pytest.raises(httpx.TransportError):
            client.send(read, "POST", f"{scheme}://{host}/", content=b"x")
        assert time.monotonic() - start < PATIENCE
        client.close()
        if kind not in HANDSHAKES:  # a thread in a handshake ends by its own limit
            until(lambda: count_work() == before)


def test_the_time_of_a_server_that_reads_nothing_is_limited():
    with serve_badly(KINDS["says nothing"]) as (host, _):
        client, start = Exchanges(1, timeout=LONG), time.monotonic()
        with pytest.raises(httpx.ReadTimeout, match="no end within 1 seconds"):
            client.send(read, "POST", f"http://{host}/", content=bytes(10**8))
        assert time.monotonic() - start < PATIENCE


@pytest.mark.parametrize("kind", ["says nothing", "a byte of a header"])
def test_a_stop_ends_an_exchange(kind):
    with serve_badly(KINDS[kind]) as (host, connections):
        client = Exchanges(LONG, timeout=LONG)
        threading.Timer(0.3, client.stop.set).start()
        with pytest.raises(StoppedError):
            client.send(read, "GET", f"http://{host}/")
        assert len(connections) == 1
        with pytest.raises(StoppedError):
            client.send(read, "GET", f"http://{host}/")
        assert len(connections) == 1


def test_a_client_takes_the_stop_of_the_block_that_it_is_made_in():
    stop = threading.Event()
    with stopped_by(stop):
        assert Exchanges(1).stop is stop
    assert Exchanges(1).stop is not stop


def test_a_connection_is_used_again_after_an_answer_and_not_after_a_stop():
    with serve_badly(answer) as (host, connections):
        client = Exchanges(PATIENCE)
        assert client.send(read, "GET", f"http://{host}/") == b"ok"
        assert client.send(read, "GET", f"http://{host}/") == b"ok"
        assert len(connections) == 1
        with pytest.raises(httpx.ConnectError):
            client.send(read, "GET", "http://127.0.0.1:1/")
        assert client.send(read, "GET", f"http://{host}/") == b"ok"
        client.close()


def test_an_error_of_the_reader_is_raised():
    def refuse(response):
        raise ValueError("too long")

    client = Exchanges(PATIENCE)
    with serve_badly(answer) as (host, _), pytest.raises(ValueError, match="too long"):
        client.send(refuse, "GET", f"http://{host}/")


@pytest.mark.slow
def test_the_exit_of_python_waits_for_no_exchange():
    code = (
        "import socket\n"
        "from skactive._utils._exchange import Exchanges, start_daemon\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        f"client = Exchanges({LONG}, timeout={LONG})\n"
        "url = f'http://127.0.0.1:{server.getsockname()[1]}/'\n"
        "start_daemon(client.send, lambda x: x, 'GET', url)\n"
        "server.accept()[0].recv(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=2 * PATIENCE)


# Calls in threads


def test_at_most_so_many_calls_run_at_a_time():
    lock, counts, open_now = threading.Lock(), [], []

    def call(i):
        with lock:
            open_now.append(i)
            counts.append(len(open_now))
        time.sleep(0.01)
        with lock:
            open_now.remove(i)
        return i * i

    stop = threading.Event()
    assert sorted(map_in_daemons(call, range(20), 3, stop)) == [
        i * i for i in range(20)
    ]
    assert max(counts) <= 3
    assert not stop.is_set()


def test_an_error_stops_the_other_calls_and_starts_no_more():
    stop, begun = threading.Event(), []

    def call(i):
        begun.append(i)
        if i == 2:
            raise ValueError("no")
        assert stop.wait(PATIENCE)

    with pytest.raises(ValueError, match="no"):
        list(map_in_daemons(call, range(100), 4, stop))
    assert stop.is_set()
    assert len(begun) <= 4


def test_a_caller_who_leaves_stops_the_calls():
    stop = threading.Event()
    results = map_in_daemons(lambda i: i or stop.wait(PATIENCE), [1, 0, 0], 2, stop)
    assert next(results) == 1
    results.close()
    assert stop.is_set()


def test_a_call_in_a_daemon_returns_or_raises():
    assert start_daemon(max, 1, 2).result(PATIENCE) == 2
    with pytest.raises(TypeError):
        start_daemon(max).result(PATIENCE)
