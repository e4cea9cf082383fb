"""What the local page, the server of predictions and Label Studio share."""

import asyncio
import errno
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from .._utils._checks import check_count
from .._utils._system import claim_port

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.responses import Response
except ImportError as error:
    raise ImportError(
        'the page needs starlette and uvicorn: pip install "skactive[label]"'
    ) from error

# isort: split
import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

LOCALHOST = "127.0.0.1"
HOSTS = (LOCALHOST, "localhost")
REQUEST_SECONDS = 10.0  # a request must be there twice this long after its connection
MOST_WAITING = 50  # connections that may be open without a request
_MOST_CONNECTIONS = 200
_MOST_HEADER_BYTES = 32_768
_MOST_UNREAD_BYTES = 262_144  # h11 limits what is not complete, and nothing else
_BACKLOG = 128  # connections that may wait to be accepted
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_QUIET_SECONDS = 60.0  # after a message that the system is full
MAX_BODY = 1_000_000
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class _Protocol(H11Protocol):
    """HTTP on one connection, which is closed if a request does not arrive in time."""

    def connection_made(self, transport):
        super().connection_made(transport)
        self._before, self._since = None, self.loop.time()
        self._watch()
        waiting = [one for one in self.connections if one._waits]
        if len(waiting) > self.config.most_waiting:
            # Who never asked for anything goes first.
            rank = {one: (one.cycle is not None, one._since) for one in waiting}
            min(waiting, key=rank.get).transport.close()

    @property
    def _waits(self):
        """Whether a request, or the rest of one, is to come."""
        is_open = not self.transport.is_closing()
        return is_open and self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _watch(self):
        """Close the connection if it waits for the same request as at the last look."""
        if self.transport.is_closing():
            return
        part = (self.cycle, self.conn.their_state) if self._waits else None
        if part is not None and part == self._before:
            self.transport.close()
        self._before = part
        self.loop.call_later(REQUEST_SECONDS, self._watch)


class _Listener(socket.socket):
    """Socket with its own number of connections that may wait.

    asyncio accepts at once as many as it lets wait, and reports each that it has no
    descriptor for, thousands of times a minute. So it is given the number 1.
    """

    def listen(self, _=None):
        """Accept connections."""
        super().listen(_BACKLOG)


class _Server(uvicorn.Server):
    """Server that says once in a while that no descriptor is left for a connection."""

    _quiet_until = 0.0

    async def startup(self, sockets=None):
        """Start to serve."""
        asyncio.get_running_loop().set_exception_handler(self._report)
        await super().startup(sockets)

    def _report(self, loop, context):
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _FULL:
            loop.default_exception_handler(context)
        elif loop.time() > self._quiet_until:
            self._quiet_until = loop.time() + _QUIET_SECONDS
            logging.getLogger(__name__).error("no more connections: %s", error)


def bind(port, host=LOCALHOST):
    """Return a socket bound to `port` of an address, or to a free port."""
    if port is not None and check_count("port", port) > 65535:
        raise ValueError(f"'port' must be at most 65535, got {port}.")
    # Where TCP is named, asyncio sets TCP_NODELAY. Else the body of a reply, which is
    # written after its headers, may wait 40 ms for the browser to acknowledge these.
    listener = _Listener(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    claim_port(listener)
    try:
        listener.bind((host, port or 0))
        listener.listen()
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


async def _refuse(request, error):
    return respond(error.status_code, {"error": error.detail}, error.headers)


async def read_json(request: Any, max_body: int) -> Any:
    """Return the JSON content of a request of at most `max_body` bytes."""
    refusal = HTTPException(413, f"A request may have {max_body} bytes.")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > max_body:
        raise refusal
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > max_body:
                raise refusal
    except ClientDisconnect as error:
        raise HTTPException(400, "the request ended early") from error
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body must be JSON: {error}") from error


def respond(status: int, content: Any, headers: Any = None) -> Response:
    """Return a JSON response."""
    text = json.dumps(content)
    return Response(text, status, headers, media_type="application/json")


def check_token(token: str, allowed: str = r"[\w-]", others: str = "'-' or '_'") -> str:
    """Return the token, by default one that is a part of an address; none is shown."""
    is_text = isinstance(token, str)
    if not is_text or not re.fullmatch(f"{allowed}{{16,}}", token, re.ASCII):
        got = f"{len(token)} characters" if is_text else type(token).__name__
        raise ValueError(
            f"'token' must be at least 16 letters, digits, {others}, got {got}. Make "
            "one with `secrets.token_urlsafe(16)`."
        )
    return token


class Guard:
    """Refuse whoever has no token or comes from another site; see `HttpServer`."""

    def __init__(self, app, has_token, host, challenge, has_pages):
        self.app, self._has_token, self._is_local = app, has_token, host in HOSTS
        self._challenge, self._has_pages = challenge, has_pages

    async def __call__(self, scope, receive, send):
        async def send_safely(message):
            if message["type"] == "http.response.start":
                safe = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *safe]
            await send(message)

        refusal = self._refuse(scope)
        app = self.app if refusal is None else respond(*refusal)
        await app(scope, receive, send_safely)

    def _refuse(self, scope):
        """Return the status, content and headers of a refusal, or None."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin", "")
        name, _, port = host.partition(":")
        is_named = name in HOSTS and (not port or port.isdecimal())
        if self._is_local and not is_named:
            return 403, {"error": "This server is only for this computer."}
        if origin and not (self._has_pages and origin == f"http://{host}"):
            return 403, {"error": "The request comes from another page."}
        if not self._has_token(scope, headers):
            content = {"error": "The token of this server is missing or wrong."}
            return 401, content, {"WWW-Authenticate": self._challenge}
        return None


class HttpServer:
    """Serve routes at a port of an address of this computer, or at a free one.

    Refused are requests for which `has_token(scope, headers)` is False, whose sender is
    asked for a `challenge`; requests of pages of other sites, and without `has_pages`
    of all pages; and on 127.0.0.1 those to another host. `most_waiting` connections may
    be open without a request.
    """

    def __init__(
        self,
        routes: list,
        has_token: Callable[[Any, Any], bool],
        *,
        host: str = LOCALHOST,
        port: int | None = None,
        challenge: str = "Bearer",
        has_pages: bool = True,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        app = Starlette(routes=routes, exception_handlers={HTTPException: _refuse})
        self.app = Guard(app, has_token, host, challenge, has_pages)
        self._socket = bind(port, host)
        self.port = self._socket.getsockname()[1]
        config = uvicorn.Config(
            self._respond,
            interface="asgi3",
            loop="asyncio",
            backlog=1,  # see _Listener
            log_config=None,
            log_level="error",
            access_log=False,
            lifespan="off",
            http=_Protocol,
            ws="none",
            limit_concurrency=_MOST_CONNECTIONS,
            h11_max_incomplete_event_size=_MOST_UNREAD_BYTES,
            server_header=False,
            timeout_graceful_shutdown=10,
        )
        config.most_waiting = most_waiting  # type: ignore[attr-defined]
        self._server = _Server(config)
        self._thread: threading.Thread | None = None

    # What handlers of requests use.
    read_json, respond = staticmethod(read_json), staticmethod(respond)
    check_token = staticmethod(check_token)

    @staticmethod
    def check_port(port: int) -> None:
        """Raise an OSError unless a port is free."""
        bind(port).close()

    async def _respond(self, scope, receive, send):
        """Answer a request, unless its address and headers are too long."""
        n_bytes = len(scope["raw_path"]) + len(scope["query_string"])
        n_bytes += sum(len(name) + len(value) for name, value in scope["headers"])
        app = self.app
        if n_bytes > _MOST_HEADER_BYTES:
            error = f"Address and headers may have {_MOST_HEADER_BYTES} bytes."
            app = respond(431, {"error": error})
        await app(scope, receive, send)

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
