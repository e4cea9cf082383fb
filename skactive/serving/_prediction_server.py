"""A server that answers requests with the predictions of a model, in batches."""

import hmac
import logging
from collections import deque

from .._utils._checks import check_count, refuse_surrogates
from ._http import (
    HOSTS,
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
    """Serve the predictions of a model on a port, or on a free one.

    `predict(texts)` returns labels, scores and best classes, see `predict_labels`.
    `n_columns` is 1 for texts, 2 for pairs, and None for any. For a model of tables,
    `check_rows(rows)` raises an error for rows, dicts, that it does not read. Requests
    that wait while others are predicted are predicted together.
    """

    def __init__(
        self,
        predict,
        token,
        *,
        n_columns=None,
        check_rows=None,
        host=LOCALHOST,
        port=None,
    ):
        self._predict, self._token = predict, check_token(token)
        self._n_columns, self._check_rows = n_columns, check_rows
        self._jobs, self._lock = deque(), anyio.Lock()
        routes = [
            Route("/health", self.answer_health),
            Route("/predict", self.answer_predict, methods=["POST"]),
        ]
        guard = Guard(
            make_app(routes), self._has_token, HOSTS if host in HOSTS else None
        )
        super().__init__(guard, bind(port, host), most_waiting=200)
        self.url = f"http://{host}:{self.port}"

    def _has_token(self, scope, headers):
        """Whether a request has the token, or asks for nothing but the health."""
        given = headers.get("authorization", "").removeprefix("Bearer ").encode()
        return scope["path"] == "/health" or hmac.compare_digest(
            given, self._token.encode()
        )

    async def answer_health(self, request):
        """Return a response that says that the model is loaded."""
        return respond(200, {"status": "ok"})

    async def answer_predict(self, request):
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
        known = {name, "n_top"}
        if not isinstance(content, dict) or not {name} <= content.keys() <= known:
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
            found = self._predict(
                [tuple(x) if isinstance(x, list) else x for x in texts]
            )
        except Exception as error:
            logging.getLogger(__name__).exception("a prediction failed")
            for job in jobs:
                job.response = 500, {"error": f"{type(error).__name__}: {error}"}
            return
        start = 0
        for job in jobs:
            place = slice(start, start + len(job.texts))
            labels, scores, best = (column[place] for column in found)
            content = {"labels": labels, "probabilities": scores}
            if job.n_top:
                content["top"] = [row[: job.n_top] for row in best]
            job.response, start = (200, content), place.stop
