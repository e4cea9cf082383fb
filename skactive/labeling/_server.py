"""The local page: a web server on 127.0.0.1 for the people at this computer."""

import errno
import hmac
import json
import os
import re
import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

from .._utils._sklearn import check_bool, check_count
from ._calls import call
from ._desk import Desk

try:
    import anyio
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import FileResponse, Response, StreamingResponse
    from starlette.routing import Route
except ImportError as error:
    raise ImportError(
        'the page needs starlette and uvicorn: pip install "skactive[label]"'
    ) from error

PAGE = Path(__file__).parent / "_page"
FILES = {
    "": ("index.html", "text/html"),
    "labeling.js": ("labeling.js", "text/javascript"),
    "labeling.css": ("labeling.css", "text/css"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
MAX_BODY = 1_000_000
TOO_LARGE = {"error": f"A request may have {MAX_BODY} bytes."}
HOSTS = ("127.0.0.1", "localhost")
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


class LabelingServer:
    """Serve the page of a desk on 127.0.0.1, on `port` or on a free one."""

    def __init__(
        self, desk: Desk, *, port: int | None = None, token: str | None = None
    ) -> None:
        self.desk = desk
        self.token = secrets.token_urlsafe(16) if token is None else check_token(token)
        self.finished = False
        self._socket = bind(port)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/{self.token}/"
        # Each page that is looked at waits for changes in a thread.
        self._waiting = anyio.CapacityLimiter(200)
        self.app = make_app(self)
        config = uvicorn.Config(
            self.app,
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=10,
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until a signal, `stop`, or the button of the page."""
        with self._socket:
            self._server.run(sockets=[self._socket])

    def start(self) -> Self:
        """Serve in a thread; return when requests are answered."""
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """Stop; answers that are being stored are acknowledged first."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
        self._socket.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc_info):
        self.stop()

    async def answer_call(self, request):
        """Return the response to one call of a method of the desk."""
        method = request.path_params["method"]
        body = await _read_body(request)
        if body is None:
            return _json(413, TOO_LARGE)
        try:
            arguments = json.loads(body)
        except (ValueError, RecursionError) as error:
            return _json(400, {"error": f"the body must be JSON: {error}"})
        if method == "finish":
            self.finished = self._server.should_exit = True
            return _json(200, None)
        make = partial(call, self.desk, method, arguments)
        return _json(*await anyio.to_thread.run_sync(make))

    async def send_events(self, request):
        """Return a stream of the versions of the desk."""
        return StreamingResponse(self._events(), media_type="text/event-stream")

    async def _events(self):
        version = -1
        yield "retry: 500\n\n"
        while not self._server.should_exit:
            new = await anyio.to_thread.run_sync(
                self.desk.wait, version, 0.5, limiter=self._waiting
            )
            if new != version:
                version = new
                yield f"data: {version}\n\n"
        yield f"event: stop\ndata: {json.dumps(self.finished)}\n\n"


def serve(
    desk: Desk,
    *,
    port: int | None = None,
    open_browser: bool = True,
    token: str | None = None,
    announce: Callable[[str], Any] | None = None,
) -> bool:
    """Show the page of a desk until it is finished.

    The page is for the people at this computer: it listens on 127.0.0.1, and its
    address holds a secret token. See `docs/labeling.md`. The button "Finish" of the
    page and Ctrl-C end it; answers that are being stored are acknowledged first.

    Parameters
    ----------
    desk : Desk
        What to label. It stays open.
    port : int, default=None
        Port of the page. Defaults to a free one.
    open_browser : bool, default=True
        Whether to open the page in a browser.
    token : str, default=None
        Secret part of the address: at least 16 letters, digits, "-" or "_". Defaults to
        a random one. With the token and the port of the last time, a page that is still
        open goes on.
    announce : callable, default=None
        Called with the address as soon as the port is bound.

    Returns
    -------
    finished : bool
        True after the button of the page, False after Ctrl-C.

    Raises
    ------
    ImportError
        If starlette or uvicorn is missing.
    OSError
        If `port` is taken.
    ValueError
        If `port` or `token` is invalid.

    See Also
    --------
    skactive.labeling.LabelingWidget : The same in a notebook.

    Examples
    --------
    >>> from skactive.labeling import Desk, serve
    >>> def label(session):
    ...     with Desk(session, goal=200) as desk:
    ...         serve(desk, announce=print)
    """
    check_bool("open_browser", open_browser)
    server = LabelingServer(desk, port=port, token=token)
    if announce is not None:
        announce(server.url)
    if open_browser:  # the bound socket queues the browser's request
        threading.Thread(target=webbrowser.open, args=[server.url], daemon=True).start()
    with suppress(KeyboardInterrupt):  # uvicorn repeats the signal when it has stopped
        server.run()
    return server.finished


def check_token(token):
    """Return the token, which is a part of the address."""
    if not isinstance(token, str) or not re.fullmatch(r"[\w-]{16,}", token, re.ASCII):
        raise ValueError(
            "'token' must be at least 16 letters, digits, '-' or '_', got "
            f"{token!r}. Pass None for a random one."
        )
    return token


def bind(port):
    """Return a socket bound to `port` of 127.0.0.1, or to a free one."""
    if port is not None and check_count("port", port) > 65535:
        raise ValueError(f"'port' must be at most 65535, got {port}.")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":  # a new server may follow a killed one at once
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOSTS[0], port or 0))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise OSError(
            error.errno or errno.EADDRINUSE,
            f"'port' must be a free port, got {port} ({error.strerror}). Pass another "
            "one, or None for a free one",
        ) from error
    return listener


def make_app(server):
    """Return the application: the page, its files and the methods of the desk."""

    async def send_file(name, kind, request):
        return FileResponse(PAGE / name, media_type=kind)

    routes = [
        Route("/{token}/events", server.send_events),
        Route("/{token}/api/{method}", server.answer_call, methods=["POST"]),
        *(
            Route(f"/{{token}}/{path}", partial(send_file, *file))
            for path, file in FILES.items()
        ),
    ]
    return Guard(Starlette(routes=routes), server.token)


class Guard:
    """Refuse whoever has no token, comes from another site or sends too much."""

    def __init__(self, app, token):
        self.app, self.token = app, token

    async def __call__(self, scope, receive, send):
        async def send_safely(message):
            if message["type"] == "http.response.start":
                safe = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *safe]
            await send(message)

        refusal = self._refuse(scope)
        app = self.app if refusal is None else _json(*refusal)
        await app(scope, receive, send_safely)

    def _refuse(self, scope):
        """Return the status and content of a refusal, or None."""
        headers = {key.decode("latin-1"): value for key, value in scope["headers"]}
        host, origin, length = (
            headers.get(key, b"").decode("latin-1")
            for key in ("host", "origin", "content-length")
        )
        token = scope["path"].lstrip("/").split("/")[0].encode()
        if host.rpartition(":")[0] not in HOSTS and host not in HOSTS:
            return 403, {"error": "This page is only for this computer."}
        if origin and origin != f"http://{host}":
            return 403, {"error": "The request comes from another page."}
        if not hmac.compare_digest(token, self.token.encode()):
            return 403, {"error": "The address is not that of this session."}
        if length and not (length.isdecimal() and int(length) <= MAX_BODY):
            return 413, TOO_LARGE
        return None


async def _read_body(request):
    """Return the body, also one of unknown length, or None if it is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            return None
    return bytes(body)


def _json(status, content):
    return Response(json.dumps(content), status, media_type="application/json")
