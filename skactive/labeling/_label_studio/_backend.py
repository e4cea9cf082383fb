"""An ML backend of Label Studio: the predictions of a bridge's model, in its page."""

import base64
import hmac
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...serving import HttpServer

# What to install is said by `_http`, so that it comes first.
# isort: split
import anyio
from starlette.exceptions import HTTPException
from starlette.routing import Route

MAX_BODY = 50_000_000  # bytes of the tasks that Label Studio sends in one request
MAX_EVENT = 1_000_000  # and of all other requests
SECONDS_TO_END = 5.0  # of a request to Label Studio, once the backend stops
CHUNK = 200  # texts that are predicted before the next look whether someone waits
# Changes of the project are made by the bridge itself, and hold no answers.
UNINTERESTING = {"PROJECT_CREATED", "PROJECT_UPDATED"}


class Backend(HttpServer):
    """Serve the model of a bridge; `auth` is "user:password", or None for everyone.

    Requests of browser pages are refused, and on 127.0.0.1 requests to another host.
    """

    def __init__(
        self,
        bridge: Any,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        auth: str | None = None,
    ) -> None:
        self.bridge = bridge
        self._auth = None if auth is None else _encode_auth(auth)
        self._predicting = anyio.CapacityLimiter(1)
        routes = [
            Route("/", self.answer_health),
            Route("/health", self.answer_health),
            Route("/versions", self.answer_versions),
            Route("/setup", self.answer_setup, methods=["POST"]),
            Route("/predict", self.answer_predict, methods=["POST"]),
            Route("/webhook", self.answer_webhook, methods=["POST"]),
            Route("/train", self.answer_webhook, methods=["POST"]),
        ]
        place: dict[str, Any] = {"host": host, "port": port, "has_pages": False}
        challenge = 'Basic realm="skactive"'
        super().__init__(routes, self._has_password, challenge=challenge, **place)
        self.url = f"http://{host}:{self.port}"

    def _has_password(self, scope, headers):
        """Whether a request has the user and the password, if there are any."""
        sent = headers.get("authorization", "").encode()
        return not self._auth or hmac.compare_digest(sent, self._auth)

    async def answer_health(self, request):
        """Return the state of the backend; Label Studio waits for one second."""
        return self.respond(200, {"status": "UP", "model_class": "skactive"})

    async def answer_versions(self, request):
        """Return the versions of the model: the newest alone is kept."""
        version = self.bridge.version
        return self.respond(200, {"versions": [version] if version else []})

    async def answer_setup(self, request):
        """Return the version: Label Studio asks again for what has another one."""
        self._check_project(await _read_object(request))
        return self.respond(200, {"model_version": self.bridge.version})

    async def answer_predict(self, request):
        """Return one prediction for each task, in their order.

        Before there is a model, a task gets an empty list: Label Studio then stores
        nothing. One request is predicted at a time, and no longer than someone waits.
        """
        content = await _read_object(request, MAX_BODY)
        self._check_project(content)
        texts = [self._read_text(task) for task in _list_tasks(content)]
        results = []
        for start in range(0, len(texts), CHUNK):
            async with self._predicting:
                if await request.is_disconnected():
                    break
                part = texts[start : start + CHUNK]
                results += await anyio.to_thread.run_sync(self._predict, part)
        params = content.get("params")
        if isinstance(params, dict) and params.get("context") is not None:
            empty = {"result": [], "score": 0.0, "model_version": self.bridge.version}
            results = [result or empty for result in results]
        return self.respond(200, {"results": results})

    async def answer_webhook(self, request):
        """Wake the bridge, which reads what is new from Label Studio itself.

        Only the action and the project are used. Label Studio waits for one second and
        repeats nothing. What it sends by itself has the password if the webhook has it
        as a header, and what "Start Training" sends always has it.
        """
        content = await _read_object(request)
        self._check_project(content)
        action = str(content.get("action"))
        if action == "START_TRAINING" or request.url.path == "/train":
            self.bridge.train_soon.set()
        if action not in UNINTERESTING:
            self.bridge.wake.set()
        return self.respond(200, {"status": "ok"})

    def _check_project(self, content):
        """Refuse a project that is not that of the bridge."""
        project, own = content.get("project", ""), self.bridge.project
        project = str(project.get("id", "") if isinstance(project, dict) else project)
        if project and project.partition(".")[0] != str(own):
            raise HTTPException(
                400, f"This backend serves project {own}, not {project[:20]!r}."
            )

    def _read_text(self, task):
        """Return the text of a task, or None if it has none or is blind."""
        text = None
        with suppress(ValueError, LookupError, TypeError, AttributeError):
            text = self.bridge.question.read_text(task)
        return None if text is None or self.bridge.is_blind(task, text) else text

    def _predict(self, texts):
        """Return the predictions of texts, some of which may be None."""
        results = [[] for _ in texts]
        present = [i for i, text in enumerate(texts) if text is not None]
        # A version that is too old costs one more request, one that is too new would
        # keep an old prediction.
        version = self.bridge.version
        try:
            answers = self.bridge.predict([texts[i] for i in present])
        except Exception as error:
            logging.getLogger(__name__).exception("predict failed")
            message = f"predict failed: {type(error).__name__}: {error}"
            raise HTTPException(500, message) from error
        for i, (result, score) in zip(present, answers, strict=True):
            if result:
                about = {"score": score, "model_version": version}
                results[i] = {"result": result, **about}
        return results


def serve_backend(
    bridge: Any,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    auth: str | None = None,
    announce: Callable[[str], Any] | None = None,
    **options: Any,
) -> None:
    """Serve the model of a bridge, and run the bridge, until Ctrl-C or its end.

    `options` are those of `Bridge.run`; its errors are raised.
    """
    backend = Backend(bridge, host=host, port=port, auth=auth)
    stop, errors = threading.Event(), []

    def run():
        try:
            bridge.run(stop=stop, **options)
        except Exception as error:
            if not bridge.client.stop.is_set():
                errors.append(error)
        finally:
            backend.ask_to_stop()

    if announce is not None:
        announce(backend.url)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        with suppress(KeyboardInterrupt):  # uvicorn repeats it when it has stopped
            backend.run()
    finally:
        stop.set()
        bridge.wake.set()
        thread.join(SECONDS_TO_END)
        bridge.client.stop.set()
        thread.join()
    if errors:
        raise errors[0]


def _encode_auth(auth):
    """Return the header that a user and a password are sent as."""
    if not isinstance(auth, str) or not auth.isascii() or not all(auth.partition(":")):
        raise ValueError(
            "'auth_env' must name a variable with user:password in ASCII, both not "
            "empty. Correct the variable."
        )
    return b"Basic " + base64.b64encode(auth.encode())


async def _read_object(request, max_body=MAX_EVENT):
    """Return the JSON object of a request."""
    content = await HttpServer.read_json(request, max_body)
    if not isinstance(content, dict):
        raise HTTPException(400, "the body must be a JSON object.")
    return content


def _list_tasks(content):
    """Return the tasks of a request."""
    tasks = content.get("tasks")
    if not isinstance(tasks, list) or not all(isinstance(t, dict) for t in tasks):
        raise HTTPException(400, "'tasks' must be a list of tasks.")
    return tasks
