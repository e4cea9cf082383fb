"""The local page: a web server on 127.0.0.1 for the people at this computer."""

import hmac
import json
import secrets
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from .._storage._files import write_atomic
from .._utils._repeatable import pause_background, start_daemon
from .._utils._sklearn import check_bool
from ..serving._http import (
    LOCALHOST,
    MAX_BODY,
    Guard,
    HttpServer,
    bind,
    check_token,
    make_app,
    read_json,
    respond,
)
from ..session import Desk
from ._calls import call

# What to install is said by `_http`, so that it comes first.
# isort: split
import anyio
from starlette.responses import FileResponse, StreamingResponse
from starlette.routing import Route

_FIND_SECONDS = 5.0  # for a page that is served already
PAGE = Path(__file__).parent / "_page"
FILES = {
    "": ("index.html", "text/html"),
    "labeling.js": ("labeling.js", "text/javascript"),
    "labeling.css": ("labeling.css", "text/css"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}


class LabelingServer(HttpServer):
    """Serve the page of a desk on 127.0.0.1, on `port` or on a free one.

    `ending` is None or returns what the pages show after the end, a JSON object.
    """

    ending: Callable[[], Any] | None = None

    def __init__(
        self, desk: Desk, *, port: int | None = None, token: str | None = None
    ) -> None:
        self.desk = desk
        self.token = secrets.token_urlsafe(16) if token is None else check_token(token)
        self.finished = False
        self._is_over, self._n_calls = threading.Event(), 0
        # Each page that is looked at waits for changes in a thread.
        self._waiting = anyio.CapacityLimiter(200)
        guard = Guard(make_app(self._list_routes()), self._has_token)
        super().__init__(guard, bind(port))
        self.url = f"http://{LOCALHOST}:{self.port}/{self.token}/"

    def _has_token(self, scope, headers):
        """Whether the address of a request has the token."""
        token = scope["path"].lstrip("/").split("/")[0].encode()
        return hmac.compare_digest(token, self.token.encode())

    def _list_routes(self):
        async def send_file(name, kind, request):
            return FileResponse(PAGE / name, media_type=kind)

        return [
            Route("/{token}/events", self.send_events),
            Route("/{token}/api/{method}", self.answer_call, methods=["POST"]),
            *(
                Route(f"/{{token}}/{path}", partial(send_file, *file))
                for path, file in FILES.items()
            ),
        ]

    async def answer_call(self, request):
        """Return the response to one call of a method of the desk."""
        method = request.path_params["method"]
        if method in ("answer", "skip"):
            pause_background()
        arguments = await read_json(request, MAX_BODY)
        if method == "finish":
            self.finished = True
            self._is_over.set()
            return respond(200, None)
        self._n_calls += 1
        try:
            if self._is_over.is_set():  # a page keeps its answer for the next time
                return respond(503, {"error": "The session was finished."})
            make = partial(call, self.desk, method, arguments)
            return respond(*await anyio.to_thread.run_sync(make))
        finally:
            self._n_calls -= 1

    def wait(self):
        """Wait until a person finishes."""
        while not self._is_over.wait(0.2) and self._thread.is_alive():
            pass

    def settle(self):
        """Refuse all calls from now on, and wait for those under way."""
        self._is_over.set()
        while self._n_calls:
            time.sleep(0.01)

    async def send_events(self, request):
        """Return a stream of the versions of the desk."""
        return StreamingResponse(self._events(), media_type="text/event-stream")

    async def _events(self):
        version, shown, seconds = -1, None, 0.5
        yield "retry: 500\n\n"
        while seconds:  # the last look, when the server stops, does not wait
            seconds = 0 if self.stopping else 0.5
            if self._is_over.is_set():
                await anyio.sleep(0.2)
            else:
                new = await anyio.to_thread.run_sync(
                    self.desk.wait, version, seconds, limiter=self._waiting
                )
                if new != version and not self._is_over.is_set():
                    version = new
                    yield f"data: {version}\n\n"
            ending = json.dumps(self.ending()) if self.ending else None
            if ending != shown:
                shown = ending
                yield f"event: ending\ndata: {ending}\n\n"
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
    address holds a secret token. The button "Finish" of the page and Ctrl-C end it;
    answers that are being stored are acknowledged first.

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

    Notes
    -----
    Requests without the token (401), or with a foreign ``Host`` or ``Origin`` (403),
    are refused, and bodies above 1 MB before they are read (413). The page loads
    nothing from elsewhere and runs nothing inline (``Content-Security-Policy:
    default-src 'self'``). Texts and names of classes are inserted as text: HTML in them
    is shown, and not interpreted. There are no cookies, and files of the session are
    not served. A connection without a complete request is closed after 20 seconds.

    Examples
    --------
    A program may press "Finish" as well, here as soon as the page is there:

    >>> import tempfile, threading
    >>> from urllib.request import urlopen
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skactive import ActiveLearner, LabelingSession
    >>> from skactive.labeling import Desk, serve
    >>> def finish(url):
    ...     threading.Thread(target=urlopen, args=[f"{url}api/finish", b"{}"]).start()
    >>> learner = ActiveLearner(LogisticRegression())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     session = LabelingSession(learner, ["good", "bad"], folder, classes=[1, 0])
    ...     with session, Desk(session) as desk:
    ...         finished = serve(desk, open_browser=False, announce=finish)
    >>> print("finished by the button" if finished else "interrupted")
    finished by the button
    """
    options = {"port": port, "token": token, "announce": announce}
    with open_page(desk, open_browser=open_browser, **options) as server:
        return server.finished


@contextmanager
def open_page(
    desk, *, port=None, open_browser=True, token=None, announce=None
) -> Iterator[LabelingServer]:
    """Show the page of a desk, and yield its server after the end; see `serve`.

    Until the block ends, the pages show what `ending` of the server returns.
    """
    check_bool("open_browser", open_browser)
    server = LabelingServer(desk, port=port, token=token)
    if announce is not None:
        announce(server.url)
    if open_browser:  # the bound socket queues the browser's request
        threading.Thread(target=webbrowser.open, args=[server.url], daemon=True).start()
    try:
        with suppress(KeyboardInterrupt):  # at any time, also while it starts
            server.start().wait()
        server.settle()
        yield server
    finally:
        server.stop()


def recall_address(folder, port=None):
    """Return the port and the token of a project's last page, or None for new ones.

    A page that is still open goes on if both are the same. The token is for its port
    only, and for this folder only: a page never sends it to another program, and a copy
    of the project does not know it.
    """
    last = _read_address(folder / "page.json") or {}
    if port not in (None, last.get("port")) or last.get("folder") != _identify(folder):
        return port, None
    try:
        token = check_token(last["token"])
        bind(last["port"]).close()
    except (OSError, ValueError, TypeError):
        return port, None
    return last["port"], token


def remember_address(folder, url):
    """Keep the port and the token of the page of a project; return whether it is so.

    A file "page.json" of somebody else is left alone.
    """
    path = folder / "page.json"
    if path.is_symlink() or (path.exists() and _read_address(path) is None):
        return False
    parts = urlsplit(url)
    about = {"port": parts.port, "token": parts.path.strip("/")}
    about["folder"] = _identify(folder)
    write_atomic(path, json.dumps(about).encode(), mode=0o600)
    return True


def _read_address(path):
    """Return what `remember_address` wrote, dict, or None."""
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    known = {"port", "token"}, {"port", "token", "folder"}
    return about if isinstance(about, dict) and about.keys() in known else None


def find_page(folder):
    """Return the address of the page of a project if it is served now, or None."""
    about = _read_address(folder / "page.json") or {}
    with suppress(OSError, HTTPException):
        if about.get("folder") == _identify(folder):
            url = f"http://{LOCALHOST}:{about['port']}/{about['token']}/"
            opener = build_opener(ProxyHandler({}))
            # Another program may have the port now, and never end its reply.
            start_daemon(opener.open, url).result(_FIND_SECONDS).close()
            return url
    return None


def _identify(folder):
    """Return what distinguishes a folder from its copies."""
    return [str(folder.absolute()), folder.stat().st_ino]
