"""Servers on 127.0.0.1 that keep a client waiting, each in a way of its own."""

import socket
import threading
from contextlib import contextmanager, suppress

STEP = 0.05  # seconds between two bytes
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def drip(start, byte):
    """Return a reply that begins with some bytes and goes on byte by byte."""

    def write(connection, stopped):
        connection.sendall(start)
        while not stopped.wait(STEP):
            connection.sendall(byte)

    return write


def _say_nothing(connection, stopped):
    stopped.wait()


# What the server sends, by what it does. The handshake is for https.
KINDS = {
    "says nothing": _say_nothing,
    "a byte of a header": drip(b"HTTP/1.1 200 OK\r\nX: ", b"a"),
    "a byte of the status line": drip(b"HTTP/1.1 200 ", b"O"),
    "headers without end": drip(b"HTTP/1.1 200 OK\r\n", b"X-Y: 1\r\n"),
    "a byte of a chunk's header": drip(CHUNKED + b"5;", b"a"),
    "chunks of one byte": drip(CHUNKED, b"1\r\n \r\n"),
    "a byte of a trailer": drip(CHUNKED + b"0\r\nX: ", b"a"),
    "a byte of the body": drip(
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" "
    ),
    "endless 100 Continue": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless 103 Early Hints": drip(b"", b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\n"),
    "never asks for the body": drip(b"\r\n", b"\r\n"),
}
HANDSHAKES = {
    "a handshake that never begins": _say_nothing,
    "a byte of a handshake": drip(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", b"\x00"),
}


@contextmanager
def serve_badly(write):
    """Serve `write(connection, stopped)`; yield the address and the connections."""
    listener, stopped = socket.create_server(("127.0.0.1", 0)), threading.Event()
    connections = []

    def answer(connection):
        connections.append(connection)
        with connection, suppress(OSError):
            write(connection, stopped)

    def accept():
        with suppress(OSError):
            while not stopped.is_set():
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=[connection], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    host, port = listener.getsockname()
    try:
        yield f"{host}:{port}", connections
    finally:
        stopped.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def count_work():
    """Return the number of threads that ask a server, or wait for its answer."""
    return sum("(work)" in thread.name for thread in threading.enumerate())
