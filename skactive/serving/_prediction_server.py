"""A server that answers requests with the predictions of a model, in batches."""

import hmac
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from .._utils._checks import check_count, refuse_surrogates
from ._http import LOCALHOST, MAX_BODY, HttpServer, check_token, read_json, respond

# What to install is said by `_http`, so that it comes first.
# isort: split
import anyio
from starlette.routing import Route

MAX_TEXTS = 1000  # of a request
MAX_BATCH = 256  # texts that are predicted at a time, or those of one request
MAX_WAITING = 10_000  # texts that may wait for a prediction


class Job:
    """The texts of a request, and the response once it is known."""

    def __init__(self, texts, n_top):
        self.texts, self.n_top = texts, n_top
        self.response = None


class PredictionServer(HttpServer):
    """Serve the predictions of a model over HTTP.

    Requests that wait while others are predicted are predicted together. The command
    ``skactive serve`` is this class with a saved model.

    Parameters
    ----------
    predict : callable
        Called with a list of texts; returns three lists: the labels, the probabilities
        or None, and for each text pairs of class and probability, the best first.
    token : str
        What requests must send, at least 16 printable ASCII characters without blanks.
    n_columns : int, default=None
        1 for texts, 2 for pairs. Defaults to any.
    check_rows : callable, default=None
        For a model of tables: called with rows, a list of dict; raises an error for
        rows that it does not read.
    host : str, default="127.0.0.1"
        Address of this computer to listen on.
    port : int, default=None
        Defaults to a free port.

    Attributes
    ----------
    url : str
        The address.

    Raises
    ------
    ImportError
        If starlette or uvicorn is missing.
    OSError
        If `port` is taken.

    See Also
    --------
    skactive.runtime.load : Loads an exported model without torch.

    Notes
    -----
    ``POST /predict`` takes ``{"texts": [...], "n_top": 3}`` with the header
    ``Authorization: Bearer TOKEN``, and returns the lists "labels", "probabilities" and
    "top". ``GET /health`` needs no token.

    Examples
    --------
    >>> import json
    >>> from urllib.request import Request, urlopen
    >>> from skactive.serving import PredictionServer
    >>> def predict(texts):
    ...     labels = ["good" if "good" in text else "bad" for text in texts]
    ...     return labels, [1.0] * len(texts), [[] for _ in texts]
    >>> headers = {"Authorization": "Bearer a-secret-of-16-letters"}
    >>> with PredictionServer(predict, "a-secret-of-16-letters") as server:
    ...     body = json.dumps({"texts": ["a good day"]}).encode()
    ...     with urlopen(Request(f"{server.url}/predict", body, headers)) as reply:
    ...         print(json.load(reply)["labels"])
    ['good']
    """

    def __init__(
        self,
        predict: Callable[[list], Any],
        token: str,
        *,
        n_columns: int | None = None,
        check_rows: Callable[[list], Any] | None = None,
        host: str = LOCALHOST,
        port: int | None = None,
    ) -> None:
        self._predict = predict
        self._token = check_token(token, "[!-~]", "or signs of ASCII without blanks")
        self._n_columns, self._check_rows = n_columns, check_rows
        self._jobs: deque[Job] = deque()
        self._lock = anyio.Lock()
        routes = [
            Route("/health", self._answer_health),
            Route("/predict", self._answer_predict, methods=["POST"]),
        ]
        options: dict[str, Any] = {"host": host, "port": port, "most_waiting": 200}
        super().__init__(routes, self._has_token, **options)
        self.url = f"http://{host}:{self.port}"

    def _has_token(self, scope, headers):
        """Whether a request has the token, or asks for nothing but the health."""
        token = headers.get("authorization", "").removeprefix("Bearer ").encode()
        return scope["path"] == "/health" or hmac.compare_digest(
            token, self._token.encode()
        )

    async def _answer_health(self, request):
        """Return a response that says that the model is loaded."""
        return respond(200, {"status": "ok"})

    async def _answer_predict(self, request):
        """Return a response with the predictions for the texts of a request."""
        try:
            job = self._make_job(await read_json(request, MAX_BODY))
        except (ValueError, TypeError) as error:
            return respond(400, {"error": str(error)})
        if sum(len(one.texts) for one in self._jobs) + len(job.texts) > MAX_WAITING:
            message = f"More than {MAX_WAITING:,} texts wait already. Try again later."
            return respond(503, {"error": message}, {"Retry-After": "1"})
        self._jobs.append(job)
        async with self._lock:  # first come, first served
            if job.response is None:
                await anyio.to_thread.run_sync(self._answer, self._take_jobs())
        return respond(*job.response)

    def _make_job(self, content):
        name = "texts" if self._check_rows is None else "rows"
        allowed = {name, "n_top"}
        if not isinstance(content, dict) or not {name} <= content.keys() <= allowed:
            raise ValueError(
                f'the body must be an object with "{name}" and maybe "n_top", got '
                f"{content!r:.100}."
            )
        texts, n_top = content[name], content.get("n_top")
        if not isinstance(texts, list) or not 0 < len(texts) <= MAX_TEXTS:
            raise ValueError(
                f"'{name}' must be a list of 1 to {MAX_TEXTS:,} {name}, got "
                f"{texts!r:.100}. Send several requests."
            )
        (self._check_rows or self._check_texts)(texts)
        return Job(texts, 0 if n_top is None else check_count("n_top", n_top))

    def _check_texts(self, texts):
        n_columns = self._n_columns or (2 if isinstance(texts[0], list) else 1)
        kind = "texts" if n_columns == 1 else "pairs of texts"
        for i, text in enumerate(texts):
            parts = [text] if n_columns == 1 else text
            is_list = isinstance(parts, list) and len(parts) == n_columns
            if not is_list or not all(isinstance(part, str) for part in parts):
                raise TypeError(f"'texts' must hold {kind}, got {text!r:.100} at {i}.")
        refuse_surrogates(texts)

    def _take_jobs(self):
        """Return the jobs of the next batch: all of texts, or all of pairs."""
        jobs, room, kind = [], MAX_BATCH, type(self._jobs[0].texts[0])
        while self._jobs and isinstance(self._jobs[0].texts[0], kind):
            room -= len(self._jobs[0].texts)
            if jobs and room < 0:
                break
            jobs.append(self._jobs.popleft())
        return jobs

    def _answer(self, jobs):
        """Predict the texts of some jobs, and give each its response."""
        texts = [text for job in jobs for text in job.texts]
        try:
            columns = self._predict(
                [tuple(x) if isinstance(x, list) else x for x in texts]
            )
        except Exception as error:
            logging.getLogger(__name__).exception("a prediction failed")
            for job in jobs:
                job.response = 500, {"error": f"{type(error).__name__}: {error}"}
            return
        start = 0
        for job in jobs:
            rows = slice(start, start + len(job.texts))
            labels, scores, best = (column[rows] for column in columns)
            content = {"labels": labels, "probabilities": scores}
            if job.n_top:
                content["top"] = [row[: job.n_top] for row in best]
            job.response, start = (200, content), rows.stop
