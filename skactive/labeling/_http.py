"""What the local page and the backend of Label Studio share: a small web server."""

import errno
import json
import os
import socket
import threading
import time
from typing import Self

from .._utils._sklearn import check_count

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import Response
except ImportError as error:
    raise ImportError(
        'the page needs starlette and uvicorn: pip install "skactive[label]"'
    ) from error

LOCALHOST = "127.0.0.1"


class HttpServer:
    """Serve an ASGI application on a socket that is bound."""

    def __init__(self, app, listener):
        self.app = app
        self._socket = listener
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(
            app,
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=10,
        )
        self._server = uvicorn.Server(config)
        self._thread = None

    @property
    def stopping(self) -> bool:
        """Whether the server has been asked to stop."""
        return self._server.should_exit

    def run(self) -> None:
        """Serve until a signal, `ask_to_stop` or `stop`."""
        with self._socket:
            self._server.run(sockets=[self._socket])

    def start(self) -> Self:
        """Serve in a thread; return when requests are answered."""
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.01)
        return self

    def ask_to_stop(self) -> None:
        """Stop soon; requests that are being answered are answered first."""
        self._server.should_exit = True

    def stop(self) -> None:
        """Stop; requests that are being answered are answered first."""
        self.ask_to_stop()
        if self._thread is not None:
            self._thread.join()
        self._socket.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc_info):
        self.stop()


def bind(port, host=LOCALHOST):
    """Return a socket bound to `port` of an address, or to a free port."""
    if port is not None and check_count("port", port) > 65535:
        raise ValueError(f"'port' must be at most 65535, got {port}.")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":  # a new server may follow a killed one at once
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port or 0))
        listener.listen(128)
    except socket.gaierror as error:
        listener.close()
        raise ValueError(
            f"'host' must be an address of this computer, got {host!r}. Pass "
            f"{LOCALHOST!r} to serve this computer only."
        ) from error
    except OSError as error:
        listener.close()
        raise OSError(
            error.errno or errno.EADDRINUSE,
            f"'port' must be a free port, got {port} ({error.strerror}). Pass another "
            "one, or None for a free one",
        ) from error
    return listener


def make_app(routes):
    """Return an application whose refusals are JSON objects."""

    async def refuse(request, error):
        content = {"error": error.detail}
        return respond(error.status_code, content, error.headers)

    return Starlette(routes=routes, exception_handlers={HTTPException: refuse})


async def read_json(request, max_body):
    """Return the JSON content of a request of at most `max_body` bytes."""
    refusal = HTTPException(413, f"A request may have {max_body} bytes.")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > max_body:
        raise refusal
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > max_body:
            raise refusal
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body must be JSON: {error}") from error


def respond(status, content, headers=None):
    """Return a JSON response."""
    text = json.dumps(content)
    return Response(text, status, headers, media_type="application/json")
