"""The local page: a web server on 127.0.0.1 for the people at this computer."""

import hmac
import json
import logging
import secrets
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from .._utils._repeatable import pause_background
from .._utils._sklearn import check_bool
from .._utils._system import note_signals
from ..project import Project, Questions
from ..serving import HttpServer
from ..session import Desk
from ._address import find_links, find_page, recall_address, remember_address
from ._calls import call
from ._start import StartDesk

# What to install is said by `_http`, so that it comes first.
# isort: split
import anyio
from starlette.responses import FileResponse, StreamingResponse
from starlette.routing import Route

LOG = logging.getLogger("skactive.project")
MAX_BODY = 1_000_000  # of a call
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
    `links` are the addresses of the coders of the desk, by name; only they can call.
    """

    ending: Callable[[], Any] | None = None

    def __init__(
        self, desk: Desk, *, port: int | None = None, token: str | None = None
    ) -> None:
        self.desk = desk
        made = secrets.token_urlsafe(16) if token is None else token
        self.token = self.check_token(made)
        self.finished = False
        self._is_over, self._n_calls = threading.Event(), 0
        # Each page that is looked at waits for changes in a thread.
        self._waiting = anyio.CapacityLimiter(200)
        super().__init__(self._list_routes(), self._has_token, port=port)
        self.url = f"http://127.0.0.1:{self.port}/{self.token}/"
        self.links = find_links(self.url, desk.coders)
        self._coders = {link.split("/")[-2]: name for name, link in self.links.items()}

    def _has_token(self, scope, headers):
        """Whether the address of a request has the token."""
        token = scope["path"].lstrip("/").split("/")[0].encode()
        tokens = [self.token, *self._coders]
        return any(hmac.compare_digest(token, one.encode()) for one in tokens)

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
        arguments = await self.read_json(request, MAX_BODY)
        coder = self._coders.get(request.path_params["token"])
        if self._coders and coder is None:
            return self.respond(403, {"error": "Use the link of a coder."})
        if method == "finish":
            self.finished = True
            self._is_over.set()
            return self.respond(200, None)
        self._n_calls += 1
        try:
            if self._is_over.is_set():  # a page keeps its answer for the next time
                return self.respond(503, {"error": "The session was finished."})
            make = partial(call, self.desk, method, arguments, coder)
            return self.respond(*await anyio.to_thread.run_sync(make))
        finally:
            self._n_calls -= 1

    def wait(self, came):
        """Wait until a person finishes, or the list `came` of signals is not empty."""
        while not (came or self._is_over.wait(0.2)) and self._thread.is_alive():
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
    desk: Desk | Project | Questions,
    *,
    port: int | None = None,
    open_browser: bool = True,
    token: str | None = None,
    announce: Callable[[Any], Any] | None = None,
) -> bool:
    """Show the page of a desk, or of a project, until it is finished.

    The page is for the people at this computer: it listens on 127.0.0.1, and its
    address holds a secret token. The button "Finish" of the page and Ctrl-C end it;
    answers that are being stored are acknowledged first.

    Parameters
    ----------
    desk : Desk, Project or Questions
        What to label. A desk stays open. A project is opened; if it has no classes, the
        page asks for them. At the end it is finished and closed, and the page shows
        what is written. If another program serves the page of the project, that page is
        opened.
    port : int, default=None
        Port of the page. Defaults to a free one.
    open_browser : bool, default=True
        Whether to open the page in a browser.
    token : str, default=None
        Secret part of the address: at least 16 letters, digits, "-" or "_". Defaults to
        a random one. With the token and the port of the last time, a page that is still
        open goes on; a project keeps them.
    announce : callable, default=None
        Called with the address as soon as the port is bound. If the desk or the project
        has coders, each has an address: called with a dict of name to address. No
        browser is opened then.

    Returns
    -------
    finished : bool
        True after the button of the page, False after Ctrl-C. For a project, whether it
        was finished here in either way.

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
    skactive.labeling.run_prompt : The same in a terminal.

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
    >>> from skactive.labeling import serve
    >>> from skactive.session import Desk
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
    options["open_browser"] = open_browser
    if isinstance(desk, Project | Questions):
        return _serve_project(desk, options)
    if announce is not None:
        options["announce"] = lambda server: announce(server.links or server.url)
    with open_page(desk, **options) as server:
        return server.finished


def _serve_project(project, options):
    """Serve the page of a project, and finish it; return whether that was done here.

    It has the address of the last time, if its port is free, so that a page that is
    still open goes on.
    """
    project.tell()
    if (url := find_page(project.folder_)) is not None:
        _tell_links(f"{project.file} is open at", url, project.coders)
        if options["open_browser"] and not project.coders:
            webbrowser.open(url)
        return False
    is_new, announce = project.needs_classes, options["announce"]
    if is_new:
        LOG.info("the page asks for the classes")
        desk = StartDesk(project)
    else:
        desk = project.open().desk
    project.make_folder()
    if options["token"] is None:
        port, token = recall_address(project.folder_, options["port"])
        options |= {"port": port, "token": token}

    def tell(server):
        if not remember_address(project.folder_, server.url):
            path = project.folder_ / "page.json"
            LOG.info(f"{path} is another file: the address is not kept")
        _tell_links("label at", server.url, project.coders)
        LOG.info("Ctrl-C, or Finish on the page, writes the labeled table")
        if announce is not None:
            announce(server.links or server.url)

    opened = None if is_new else project
    try:
        with open_page(desk, **{**options, "announce": tell}) as server:
            opened = project.begun if is_new else opened
            if opened is None:
                LOG.info("no class was named, so nothing was begun")
                return False
            server.ending = opened.progress
            opened.finish()
            project.sources, project.counts = opened.sources, opened.counts
            return True
    finally:
        if opened is not None:
            opened.close()


def _tell_links(words, url, coders):
    """Log the address of a page, or that of each coder."""
    for name, link in (find_links(url, coders) or {"": url}).items():
        LOG.info(f"{name}: {words} {link}".removeprefix(": "))


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
        announce(server)
    if open_browser and not server.links:  # the bound socket queues the request
        threading.Thread(target=webbrowser.open, args=[server.url], daemon=True).start()
    try:
        # Ctrl-C may come at any time, also while the server starts. Python drops a
        # KeyboardInterrupt that is raised in a callback, so the signal is noted, too.
        with suppress(KeyboardInterrupt), note_signals() as came:
            server.start().wait(came)
        server.settle()
        yield server
    finally:
        server.stop()
