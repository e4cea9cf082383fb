"""The REST API of Label Studio over httpx: tokens, retries, and clear errors."""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

try:
    import httpx
except ImportError as error:
    raise ImportError(
        'Label Studio needs httpx: pip install "skactive[label-studio]"'
    ) from error

# isort: split
from ..._utils._exchange import Exchanges, read_retry_after
from ..._utils._format import visible
from ..._utils._system import Closing

RETRIED = (429, 500, 502, 503, 504)
# With these answers and errors a request surely had no effect.
WITHOUT_EFFECT = (429, 503)
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
MAX_WAIT = 60
PAGE = 500
# A list of these fields alone comes several times faster than that of all fields.
TASK = ("id", "data", "is_labeled", "created_at", "updated_at")
ANNOTATION = ("id", "result", "completed_by", "was_cancelled", "lead_time")
PREDICTION = ("id", "model_version")
CHUNK = 1000
# Proxies often refuse a request of more than a million bytes.
CHUNK_BYTES = 800_000


class LabelStudioError(RuntimeError):
    """A request to Label Studio that failed."""


class UnavailableError(LabelStudioError):
    """The server did not answer, or answered with an error of its own."""


class NotFoundError(LabelStudioError):
    """The project or the task does not exist, or no longer exists."""


class RefusedError(LabelStudioError):
    """The server refused a request; `detail` is its reason."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class Client(Closing):
    """Talk to the Label Studio at `url` with a user's `token` of either kind.

    The server may be silent for `timeout` seconds, and an exchange takes at most
    `deadline` seconds. The event `stop` ends all requests by a StoppedError.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], Any] | None = None,
        n_retries: int = 5,
        timeout: float = 30,
        deadline: float = 300,
    ) -> None:
        self.url = check_url(url)
        self._token = check_token(token)
        self._access = ""
        self.n_retries = n_retries
        # A redirect is not followed: the token would go along.
        self._http = Exchanges(
            deadline,
            base_url=self.url,
            headers={"Accept": "application/json"},
            timeout=timeout,
            transport=transport,
            follow_redirects=False,
        )
        self.stop = self._http.stop
        self.sleep = sleep or self.stop.wait

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def close(self) -> None:
        """End all requests, and close the connections."""
        self.stop.set()
        self._http.close()

    # Projects and users

    def get_project(self, project: int) -> dict[str, Any]:
        """Return the project: its label config, model version, counts, ..."""
        return self._request("GET", f"/api/projects/{project}/")

    def create_project(self, title: str, label_config: str) -> dict[str, Any]:
        """Create a project that asks in the order of the scores."""
        body = {
            "title": title,
            "label_config": label_config,
            "sampling": "Uncertainty sampling",
            "show_skip_button": True,
            "skip_queue": "IGNORE_SKIPPED",
            "maximum_annotations": 1,
        }
        return self._request("POST", "/api/projects/", body)

    def use_uncertainty_sampling(self, project: int) -> None:
        """Set the sampling that asks in the order of the scores, if it is another."""
        sampling = "Uncertainty sampling"
        path = f"/api/projects/{project}/"
        if self._request("GET", path, key="sampling") != sampling:
            self._request("PATCH", path, {"sampling": sampling})

    def list_users(self) -> dict[int, str]:
        """Return the email, the username or the number of each user by the id."""
        return {
            user["id"]: user.get("email") or user.get("username") or str(user["id"])
            for user in self._request("GET", "/api/users/")
        }

    # Tasks

    def import_tasks(self, project: int, tasks: Iterable[dict[str, Any]]) -> list[int]:
        """Import tasks such as `{"data": {"text": ...}}`; return their ids in order."""
        path = f"/api/projects/{project}/import"
        ids: list[int] = []
        for chunk in chunk_items(tasks):
            params = {"return_task_ids": "true"}
            new = self._request("POST", path, chunk, params, key="task_ids")
            if len(new) != len(chunk):
                raise LabelStudioError(
                    f"{self.url}: {len(chunk)} tasks were sent to project {project}, "
                    f"and {len(new)} task ids came back. Look at the project."
                )
            ids.extend(new)
        return ids

    def list_tasks(
        self, project: int, *, since: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the tasks with their annotations by id, or those updated after `since`.

        An answer may appear with an earlier time than one already seen, as it is
        stored a moment after it is stamped: let `since` overlap by a minute.
        """
        filters = []
        if since is not None:
            filters.append(make_filter("updated_at", "Datetime", format_time(since)))
        return self._list_filtered(project, filters, "annotations", ANNOTATION)

    def _list_filtered(self, project, filters, parts, fields):
        """Yield tasks with the `fields` of their `parts`."""
        include = ",".join(dict.fromkeys((*TASK, parts, *fields)))
        # Pages by number would shift while tasks are deleted: each page starts
        # after the last id.
        last = 0
        while True:
            items = [*filters, make_filter("id", "Number", last)]
            query = {
                "filters": {"conjunction": "and", "items": items},
                "ordering": ["tasks:id"],
            }
            params = {
                "project": project,
                "fields": "all",
                "page": 1,
                "page_size": PAGE,
                "query": json.dumps(query),
            }
            shortened = {**params, "include": include} if include else params
            tasks = self._request("GET", "/api/tasks/", params=shortened, key="tasks")
            # The names also choose among the fields of the parts, at least in 1.23.
            if include and not _has_fields(tasks, parts, fields):
                include = ""
                continue
            yield from tasks
            if len(tasks) < PAGE:
                return
            last = tasks[-1]["id"]

    # Predictions and their versions

    def list_predictions(self, project: int, version: str) -> dict[int, list[int]]:
        """Return the ids of the predictions of a version by the task id."""
        item = make_filter("predictions_model_versions", "List", [version], "contains")
        found = {}
        for task in self._list_filtered(project, [item], "predictions", PREDICTION):
            ids = [
                prediction["id"]
                for prediction in task["predictions"]
                if prediction["model_version"] == version
            ]
            if ids:
                found[task["id"]] = ids
        return found

    def add_predictions(
        self, project: int, predictions: Iterable[dict[str, Any]]
    ) -> None:
        """Add predictions; raise RefusedError if the server drops one silently."""
        path = f"/api/projects/{project}/import/predictions"
        for chunk in chunk_items(predictions):
            created = self._request("POST", path, chunk, key="created")
            if created != len(chunk):
                detail = self._describe_dropped(project, chunk)
                raise RefusedError(
                    f"{self.url}: {len(chunk) - created} of {len(chunk)} predictions "
                    f"do not fit project {project} and were dropped: {detail}. "
                    "Compare them with the label config.",
                    detail,
                )

    def _describe_dropped(self, project, predictions):
        """Return a text about the predictions that the server does not have."""
        stored = {
            version: self.list_predictions(project, version)
            for version in {p["model_version"] for p in predictions}
        }
        dropped = [
            p for p in predictions if p["task"] not in stored[p["model_version"]]
        ]
        named = "; ".join(
            f"task {p['task']}, score {p.get('score')}, result {p.get('result')}"
            for p in dropped[:3]
        )
        return (named or "unknown ones") + ("; ..." if len(dropped) > 3 else "")

    def list_versions(self, project: int) -> list[str]:
        """Return the versions that have predictions."""
        return sorted(self._request("GET", f"/api/projects/{project}/model-versions/"))

    def switch_version(self, project: int, version: str) -> None:
        """Set the version whose scores give the order; it must have predictions."""
        body = {"model_version": version}
        self._request("PATCH", f"/api/projects/{project}/", body)

    def delete_version(self, project: int, version: str) -> None:
        """Delete the predictions of a version, if there are any."""
        body = {"model_version": version}
        self._request("DELETE", f"/api/projects/{project}/model-versions/", body)

    # One request

    def _request(self, method, path, body=None, params=None, key=None):
        """Return the JSON of the answer, or what it has under `key`."""
        refreshed = False
        while True:
            headers = {"Authorization": self._authorize()}
            response = self._send(method, path, body, params, headers)
            if response.status_code != 401 or refreshed or not is_personal(self._token):
                return self._read(response, method, path, key)
            self._access, refreshed = "", True

    def _authorize(self):
        """Return the header; a personal access token gets a short-lived one."""
        if not is_personal(self._token):
            return f"Token {self._token}"
        if not self._access:
            path, body = "/api/token/refresh", {"refresh": self._token}
            response = self._send("POST", path, body, repeatable=True)
            self._access = self._read(response, "POST", path, "access")
        return f"Bearer {self._access}"

    def _send(
        self, method, path, body=None, params=None, headers=None, *, repeatable=False
    ):
        """Return the response, after retries where a repetition does no harm."""
        repeatable = repeatable or method != "POST"
        for attempt in range(self.n_retries + 1):
            try:
                content = {"json": body, "params": params, "headers": headers}
                response = self._http.send(_read_all, method, path, **content)
            except httpx.RequestError as error:
                reason, wait = self._hide(f"{type(error).__name__}: {error}"), None
                safe = repeatable or isinstance(error, NOT_SENT)
            else:
                if response.status_code not in RETRIED:
                    return response
                reason = f"status {response.status_code}: {self._describe(response)}"
                wait = read_retry_after(response.headers, MAX_WAIT)
                safe = repeatable or response.status_code in WITHOUT_EFFECT
            if not safe:
                raise UnavailableError(
                    f"{method} {self.url}{path} failed ({reason}); it may "
                    "or may not have had an effect. Look at the project, then repeat."
                )
            if attempt < self.n_retries:
                self.sleep(2**attempt if wait is None else wait)
        raise UnavailableError(
            f"{method} {self.url}{path} failed {self.n_retries + 1} times, finally "
            f"with {reason}. Check that Label Studio runs, then repeat."
        )

    def _read(self, response, method, path, key=None):
        """Return the JSON of an answer; raise the error that its status means."""
        status, where = response.status_code, f"{method} {self.url}{path}"
        detail = self._describe(response)
        if status == 401:
            raise RefusedError(f"{where}: {self._explain_token(detail)}", detail)
        if status == 404:
            raise NotFoundError(
                f"{where} was not found ({detail}). Check the URL and the project, "
                "which may have been deleted."
            )
        if 300 <= status < 400:
            target = self._hide(response.headers.get("location", "an unknown place"))
            raise LabelStudioError(
                f"{where} is redirected to {target!r}. Redirects are not followed: "
                "give the URL where Label Studio itself answers."
            )
        if status >= 400:
            message = f"{where} was refused (status {status}): {detail}"
            raise RefusedError(message, detail)
        if not response.content and key is None:
            return None
        try:
            content = response.json()
            return content if key is None else content[key]
        except (ValueError, TypeError, KeyError):
            raise LabelStudioError(
                f"{where} was not answered as Label Studio does: {detail!r}. Check the "
                "URL: another server, a proxy or a login page may have answered."
            ) from None

    def _explain_token(self, detail):
        if is_personal(self._token):
            return (
                f"the personal access token was refused ({detail}). It may be revoked "
                "or expired: create one on the page 'Account & Settings'."
            )
        return (
            f"the legacy token was refused ({detail}). New installations do not accept "
            "legacy tokens: use a personal access token of 'Account & Settings'."
        )

    def _describe(self, response):
        """Return what the server said, shortened where it is not JSON."""
        detail, is_json = read_detail(response)
        return visible(self._hide(detail))[: 500 if is_json else 80]

    def _hide(self, text):
        """Return the text without the tokens, should a server repeat them."""
        for secret in (self._token, self._access):
            text = text.replace(secret, "...") if secret else text
        return text


def _read_all(response):
    response.read()
    return response


def is_personal(token):
    """Whether a token is a personal access token, a JWT; others are legacy tokens."""
    return token.count(".") == 2


def check_url(url):
    """Return the URL without a slash at the end."""
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"'url' must be an http or https URL, got {url!r}.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(
            "'url' must be the address of Label Studio without user name, query and "
            "fragment, such as 'https://host/label-studio'."
        )
    return url.rstrip("/")


def check_token(token):
    """Return the token without space around; an error never shows it."""
    token = token.strip() if isinstance(token, str) else ""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(
            "'token' must be a token of Label Studio's page 'Account & Settings'; this "
            "one is empty or has characters that no token has."
        )
    return token


def make_filter(field, kind, value, operator="greater"):
    """Return one condition of the Data Manager."""
    return {
        "filter": f"filter:tasks:{field}",
        "operator": operator,
        "type": kind,
        "value": value,
    }


def _has_fields(tasks, parts, fields):
    found = (part for task in tasks for part in task.get(parts, [{}]))
    return all(set(fields) <= part.keys() for part in found)


def format_time(time):
    """Return an ISO time in the only form that the filter of Label Studio reads."""
    moment = datetime.fromisoformat(time) if isinstance(time, str) else time
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def chunk_items(items):
    """Yield lists of at most CHUNK items and about CHUNK_BYTES as JSON."""
    chunk, size = [], 0
    for item in items:
        length = len(json.dumps(item))
        if chunk and (len(chunk) == CHUNK or size + length > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += length
    if chunk:
        yield chunk


def read_detail(response):
    """Return what the server said in words, and whether its answer is JSON."""
    try:
        content = response.json()
    except ValueError:
        return " ".join(response.text.split()), False
    if not isinstance(content, dict):
        return str(content), True
    lists = {key: value for key, value in content.items() if isinstance(value, list)}
    errors = content.get("validation_errors") or lists
    if not isinstance(errors, dict) or not errors:
        return str(content.get("detail", content)), True
    parts = []
    for key, value in errors.items():
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        parts.append(text if key == "non_field_errors" else f"{key}: {text}")
    return "; ".join(parts), True
