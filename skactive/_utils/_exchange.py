"""Exchanges over HTTP that end in time, whatever the server sends."""

import socket
import threading
import time
from concurrent.futures import wait
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial

import httpx

from ._repeatable import StoppedError, find_stop, start_daemon

_LOOK = 0.1  # seconds between two looks at `stop`


class Exchanges:
    """A client of httpx whose exchanges end after `deadline` seconds.

    httpx limits the time of each part that it waits for, so a byte now and then keeps
    an exchange alive without end. Each exchange therefore runs in a thread, which is
    given up with its connection at the deadline, or once the event `stop` is set.
    `options` are those of `httpx.Client`.
    """

    def __init__(self, deadline, **options):
        self.stop = find_stop()
        self._deadline, self._idle, self._lock = deadline, [], threading.Lock()
        context = httpx.create_ssl_context(trust_env=options.get("trust_env", True))
        self._make = partial(httpx.Client, verify=context, **options)

    def close(self):
        """Close the connections."""
        while self._idle:
            self._idle.pop().client.close()

    def send(self, read, method, url, **content):
        """Return `read(response)` for the response to a request.

        Raise a ReadTimeout at the deadline, and a StoppedError once `stop` is set.
        """
        self._check()
        end = time.monotonic() + self._deadline
        with self._lock:
            line = self._idle.pop() if self._idle else _Line(self._make())
        outcome = start_daemon(line.exchange, read, method, url, **content)
        try:
            while (left := end - time.monotonic()) > 0:
                if wait([outcome], min(left, _LOOK)).done:
                    return outcome.result()
                self._check()
            raise httpx.ReadTimeout(f"no end within {self._deadline:g} seconds")
        finally:
            if outcome.done():
                self._idle.append(line)
            else:
                line.give_up()

    def _check(self):
        if self.stop.is_set():
            raise StoppedError("the client is closed.")


class _Line:
    """A client for one exchange at a time."""

    def __init__(self, client):
        self.client, self._socket, self._is_given_up = client, None, False

    def exchange(self, read, method, url, **content):
        """Return `read(response)` for the response to a request."""
        content["extensions"] = {"trace": self._trace}
        try:
            with self.client.stream(method, url, **content) as response:
                return read(response)
        finally:
            if self._is_given_up:
                self.client.close()

    def _trace(self, step, about):
        """Keep the socket of a new connection; stop if nobody waits any more."""
        stream = about.get("return_value")
        if hasattr(stream, "get_extra_info"):
            self._socket = stream.get_extra_info("socket")
        if self._is_given_up:
            raise httpx.ReadTimeout("given up")

    def give_up(self):
        """End the exchange of another thread."""
        self._is_given_up = True
        with suppress(OSError, TypeError):  # there may be no connection
            # Not the method of SSLSocket, which would let the thread send plain text.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def read_retry_after(headers, most):
    """Return the seconds of the header Retry-After, at most `most`, or None."""
    value = headers.get("retry-after", "")
    with suppress(ValueError):
        return min(max(0.0, float(value)), most)
    with suppress(ValueError, OverflowError):
        moment = parsedate_to_datetime(value)
        moment = moment.replace(tzinfo=moment.tzinfo or UTC)
        return min(max(0.0, (moment - datetime.now(UTC)).total_seconds()), most)
    return None
