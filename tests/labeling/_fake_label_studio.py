"""A small Label Studio in memory: what the bridge and its tests use of 1.23.2.

`record_label_studio.py` records what a real server says, and
`test_label_studio_recording.py` checks that the fake server says the same.
"""

import copy
import itertools
import json
import random
import re
import threading
from collections import Counter, defaultdict
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.etree import ElementTree

import httpx

TITLE = "Ensure this field has at least 3 characters."
NO_VERSION = (
    "Model version doesn't exist either as live model or as static predictions."
)
NO_TASK = (
    'contains invalid "task" field: corresponding task ID couldn\'t be retrieved from '
    "project {title} (id={id}) tasks"
)
NO_CREDENTIALS = "Authentication credentials were not provided."
NOT_FOUND_PAGE = "<!doctype html>\n<html>\n<head><title>Label Studio</title></head>"
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
PARTS = ("annotations", "predictions")
SKIPPED = "IGNORE_SKIPPED"


class Problem(Exception):
    """An answer that is no success."""

    def __init__(self, status, detail, errors=None):
        self.status = status
        self.content = {"status_code": status, "version": "1.23.2", "detail": detail}
        if errors is not None:
            self.content["validation_errors"] = errors


class PageNotFound(Exception):
    """The page for people that some addresses answer with 404."""


def _invalid(errors):
    if not isinstance(errors, dict):
        errors = {"non_field_errors": [errors]}
    return Problem(400, "Validation error", errors)


class Fault:
    """What goes wrong with the requests `first`, ..., `last` of those that match."""

    def __init__(
        self, match, nth, times, applied, *, status=None, headers=None, content=""
    ):
        self.match = re.compile(match)
        self.first, self.last = nth, nth + times - 1
        self.applied, self.status = applied, status
        self.headers, self.content = headers or {}, content
        self.seen = 0

    def hits(self, line):
        if not self.match.search(line):
            return False
        self.seen += 1
        return self.first <= self.seen <= self.last


class FakeLabelStudio:
    """A server with users (a token each), reached by `transport` or `serve`."""

    def __init__(self, *emails, seed=0, access_lifetime=300):
        self.lock = threading.RLock()
        self.draw = random.Random(seed).choice
        self.users, self.tokens, self.access = {}, {}, {}
        self.projects, self.tasks = {}, {}
        # By task id, then by their own id.
        self.annotations, self.predictions = defaultdict(dict), defaultdict(dict)
        self.task_locks = {}
        self.faults, self.log = [], []
        self.lifetime = timedelta(seconds=access_lifetime)
        self._last_time = datetime(2026, 1, 1, tzinfo=UTC)
        self._numbers = {
            kind: itertools.count(1)
            for kind in ("user", "project", "annotation", "prediction", "access")
        }
        self.transport = httpx.MockTransport(self._handle_in_process)
        for email in emails or ("ann@example.com",):
            self.add_user(email)

    # For tests

    def add_user(self, email):
        """Add a user; return the legacy token (`personal` is the other kind)."""
        user = {"id": next(self._numbers["user"]), "email": email}
        # The owner, whom the command line creates, has no user name.
        user["username"] = email.split("@")[0] if self.users else ""
        self.users[user["id"]] = user
        self.tokens[f"legacy-{email}"] = self.tokens[personal(email)] = user["id"]
        return f"legacy-{email}"

    def person(self, email, project):
        """Return a person who labels in a project, in this process."""
        http = httpx.Client(transport=self.transport, base_url="http://fake")
        return Person(http, f"legacy-{email}", project)

    def fail(self, match, *, nth=1, times=1, applied=False, **answer):
        """Fail the nth request whose "METHOD /path" matches, and `times` in all.

        The answer has `status`, `headers` and `content`; without a status the
        connection is dropped. A request that is `applied` takes effect nevertheless.
        """
        fault = Fault(match, nth, times, applied, **answer)
        self.faults.append(fault)
        return fault

    def expire_access(self):
        """Expire every short-lived token."""
        self.access.clear()

    @contextmanager
    def serve(self):
        """Serve on a free port of 127.0.0.1 in a thread; yield the URL."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(self))
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    # Requests

    def _handle_in_process(self, request):
        path = request.url.path
        answer = self.handle(
            request.method,
            path,
            dict(request.url.params),
            request.content,
            request.headers.get("authorization", ""),
        )
        if answer is None:
            raise httpx.RemoteProtocolError("the connection was dropped")
        status, headers, body = answer
        return httpx.Response(status, headers=headers, content=body)

    def handle(self, method, path, query, body, authorization):
        """Return (status, headers, body), or None for a dropped connection."""
        with self.lock:
            hits = [f for f in self.faults if f.hits(f"{method} {path}")]
            if not hits or hits[0].applied:
                answer = self._answer(method, path, query, body, authorization)
            if hits:
                fault = hits[0]
                body = fault.content.encode()
                headers = {"Content-Type": "text/html", **fault.headers}
                answer = None if fault.status is None else (fault.status, headers, body)
            self.log.append((method, path, 0 if answer is None else answer[0]))
            return answer

    def _answer(self, method, path, query, body, authorization):
        headers = {"Content-Type": "application/json"}
        try:
            content = json.loads(body) if body else None
            status, answer = self._route(method, path, query, content, authorization)
        except Problem as problem:
            status, answer = problem.status, problem.content
        except PageNotFound:
            headers = {"Content-Type": "text/html; charset=utf-8"}
            return 404, headers, NOT_FOUND_PAGE.encode()
        if status == 204:
            return status, {}, b""
        return status, headers, json.dumps(answer).encode()

    def _route(self, method, path, query, content, authorization):
        if (method, path.rstrip("/")) == ("POST", "/api/token/refresh"):
            return self._refresh(content)
        matches = ((re.fullmatch(route, path), table) for route, table in ROUTES)
        found, methods = next((pair for pair in matches if pair[0]), (None, {}))
        if found is None:
            raise PageNotFound
        user = self._authenticate(authorization)
        if method not in methods:
            raise Problem(405, f'Method "{method}" not allowed.')
        handler = getattr(self, methods[method])
        return handler(user, query, content, *map(int, found.groups()))

    def _refresh(self, content):
        user = self.tokens.get(content["refresh"])
        if user is None or not content["refresh"].endswith(".signature"):
            raise Problem(401, "Token is invalid")
        access = f"access.{next(self._numbers['access'])}.signature"
        self.access[access] = user, datetime.now(UTC) + self.lifetime
        return 200, {"access": access}

    def _authenticate(self, authorization):
        kind, _, token = authorization.partition(" ")
        if kind == "Token":
            if not token.startswith("legacy-") or token not in self.tokens:
                raise Problem(401, "Invalid token.")
            return self.tokens[token]
        user, end = self.access.get(token, (None, None))
        if user is None or end < datetime.now(UTC):
            raise Problem(401, NO_CREDENTIALS)
        return user

    def _now(self):
        """Return the time, later than any returned before."""
        step = timedelta(microseconds=1)
        self._last_time = max(datetime.now(UTC), self._last_time + step)
        return self._last_time.strftime(TIME)

    # Users and projects

    def list_users(self, user, query, content):
        return 200, list(self.users.values())

    def create_project(self, user, query, content):
        if len(content.get("title", "")) < 3:
            raise _invalid({"title": [TITLE]})
        try:
            ElementTree.fromstring(content["label_config"])
        except ElementTree.ParseError as error:
            raise _invalid({"label_config": [str(error)]}) from None
        project = {
            "id": next(self._numbers["project"]),
            "model_version": "",
            "sampling": "Sequential sampling",
            "skip_queue": "REQUEUE_FOR_OTHERS",
            "show_skip_button": True,
            "maximum_annotations": 1,
            "created_at": self._now(),
            **content,
        }
        self.projects[project["id"]] = project
        return 201, {**project, **dict.fromkeys(self._count(project))}

    def _count(self, project):
        """Return the counts that a project is listed with."""
        tasks = self._tasks_of(project)
        annotations = [a for task in tasks for a in self._annotations_of(task)]
        skipped = sum(a["was_cancelled"] for a in annotations)
        return {
            "task_number": len(tasks),
            "total_annotations_number": len(annotations) - skipped,
            "skipped_annotations_number": skipped,
            "total_predictions_number": sum(
                len(self._predictions_of(task)) for task in tasks
            ),
            "finished_task_number": sum(self._is_labeled(task) for task in tasks),
        }

    def get_project(self, user, query, content, number):
        project = self._find_project(number)
        return 200, {**project, **self._count(project)}

    def patch_project(self, user, query, content, number):
        project = self._find_project(number)
        version = content.get("model_version", project["model_version"])
        if version not in ("", project["model_version"], *self._versions(project)):
            raise _invalid({"model_version": [NO_VERSION]})
        project.update(content)
        return self.get_project(user, query, None, number)

    def delete_project(self, user, query, content, number):
        for task in self._tasks_of(self._find_project(number)):
            self._drop_task(task)
        del self.projects[number]
        return 204, None

    def _find_project(self, number):
        if number not in self.projects:
            raise Problem(404, "No Project matches the given query.")
        return self.projects[number]

    # Tasks

    def import_tasks(self, user, query, content, number):
        if number not in self.projects:
            raise PageNotFound
        project = self.projects[number]
        if not content:
            raise _invalid("load_tasks: No tasks added")
        keys = {key for _, key in _read_config(project)[0].items()}
        for i, item in enumerate(content):
            for key in sorted(keys - item.get("data", item).keys()):
                raise _invalid(
                    f'Error at item {i}: "{key}" key is expected in task data [assume: '
                    f'item["data"] = task root with values] :: {item}'
                )
        # As SQLite does: the id of a deleted last task is used again.
        first = max(self.tasks, default=0) + 1
        ids = range(first, first + len(content))
        for i, item in zip(ids, content, strict=True):
            self.tasks[i] = {
                "id": i,
                "data": item.get("data", item),
                "meta": item.get("meta", {}),
                "project": number,
                "overlap": project["maximum_annotations"],
                "created_at": self._now(),
                "updated_at": self._now(),
            }
            for given in item.get("annotations", ()):
                self._add_annotation(
                    self.tasks[i], given, completed_by=user, ground_truth=True
                )
        answer = {
            "task_count": len(ids),
            "annotation_count": sum(len(x.get("annotations", ())) for x in content),
            "prediction_count": 0,
        }
        if query.get("return_task_ids") == "true":
            answer["task_ids"] = list(ids)
        return 201, answer

    def list_tasks(self, user, query, content):
        tasks = self._tasks_of(self._find_project(int(query["project"])))
        options = json.loads(query.get("query", "{}"))
        for item in options.get("filters", {}).get("items", []):
            tasks = [task for task in tasks if self._matches(task, item)]
        order = options.get("ordering") or ["tasks:id"]
        tasks.sort(key=lambda task: task["id"], reverse=order[0].startswith("-"))
        size, page = int(query.get("page_size", 100)), int(query.get("page", 1))
        shown = tasks[(page - 1) * size : page * size]
        if not shown and page > 1:
            raise Problem(404, "Invalid page.")
        shown = [self._show_task(t, query.get("fields") == "all") for t in shown]
        if "include" in query:
            shown = [_include(task, query["include"].split(",")) for task in shown]
        annotations = [a for task in tasks for a in self._annotations_of(task)]
        return 200, {
            "tasks": shown,
            "total": len(tasks),
            "total_annotations": sum(not a["was_cancelled"] for a in annotations),
            "total_predictions": sum(len(self._predictions_of(t)) for t in tasks),
        }

    def _matches(self, task, item):
        field, value = item["filter"].removeprefix("filter:tasks:"), item["value"]
        if field == "predictions_model_versions":
            assert item["operator"] == "contains"
            versions = {p["model_version"] for p in self._predictions_of(task)}
            return any(part in version for part in value for version in versions)
        assert field in ("id", "updated_at"), field
        if field == "updated_at":
            try:
                datetime.strptime(value, TIME)
            except ValueError as error:
                raise Problem(500, str(error)) from None
        operators = {"greater": [1], "greater_or_equal": [0, 1], "equal": [0]}
        found = task[field]
        return (found > value) - (found < value) in operators[item["operator"]]

    def _show_task(self, task, full=True):
        annotations = self._annotations_of(task)
        skipped = sum(a["was_cancelled"] for a in annotations)
        predictions = self._predictions_of(task)
        return {
            **task,
            "is_labeled": self._is_labeled(task),
            "total_annotations": len(annotations) - skipped,
            "cancelled_annotations": skipped,
            "total_predictions": len(predictions),
            "annotations": annotations if full else [],
            "predictions": predictions if full else [],
        }

    def get_task(self, user, query, content, number):
        task = copy.deepcopy(self._show_task(self._find_task(number)))
        for annotation in task["annotations"]:
            who = self.users[annotation["completed_by"]]
            annotation["completed_by"] = {"id": who["id"], "email": who["email"]}
        return 200, task

    def delete_task(self, user, query, content, number):
        self._drop_task(self._find_task(number))
        return 204, None

    def _find_task(self, number):
        if number not in self.tasks:
            raise Problem(404, "No Task matches the given query.")
        return self.tasks[number]

    def _drop_task(self, task):
        for items in (self.annotations, self.predictions):
            items.pop(task["id"], None)
        for key in [key for key in self.task_locks if key[0] == task["id"]]:
            del self.task_locks[key]
        del self.tasks[task["id"]]

    def _tasks_of(self, project):
        number = project["id"]
        return [task for task in self.tasks.values() if task["project"] == number]

    def _annotations_of(self, task):
        return list(self.annotations.get(task["id"], {}).values())

    def _predictions_of(self, task):
        return list(self.predictions.get(task["id"], {}).values())

    def _is_labeled(self, task):
        ignore = self.projects[task["project"]]["skip_queue"] == SKIPPED
        users = {
            annotation["completed_by"]
            for annotation in self._annotations_of(task)
            if ignore or not annotation["was_cancelled"]
        }
        return len(users) >= task["overlap"]

    # Predictions

    def import_predictions(self, user, query, content, number):
        if number not in self.projects:
            raise PageNotFound
        project = self.projects[number]
        known = {task["id"] for task in self._tasks_of(project)}
        for item in content:
            if item.get("task") not in known:
                raise _invalid(f"{item} {NO_TASK.format(**project)}")
        valid = [item for item in content if _is_valid(project, item)]
        for item in valid:
            prediction = {
                "id": next(self._numbers["prediction"]),
                "task": item["task"],
                "project": number,
                "result": item["result"],
                "score": _as_float(item.get("score")),
                "model_version": item.get("model_version", "undefined"),
                "created_at": self._now(),
            }
            self.predictions[item["task"]][prediction["id"]] = prediction
        return 201, {"created": len(valid)}

    def _versions(self, project):
        """Return the number of predictions of each version."""
        return Counter(
            prediction["model_version"]
            for task in self._tasks_of(project)
            for prediction in self._predictions_of(task)
        )

    def list_versions(self, user, query, content, number):
        return 200, self._versions(self._find_project(number))

    def delete_version(self, user, query, content, number):
        project = self._find_project(number)
        version = (content or {}).get("model_version")
        if not version:
            raise _invalid("model_version param is required")
        n_gone = self._versions(project)[version]
        for task in self._tasks_of(project):
            for prediction in self._predictions_of(task):
                if prediction["model_version"] == version:
                    del self.predictions[task["id"]][prediction["id"]]
        if project["model_version"] == version:
            project["model_version"] = None
        return 200, {"deleted_predictions": n_gone}

    # Annotations

    def create_annotation(self, user, query, content, number):
        task = self._find_task(number)
        cancelled = query.get("was_cancelled", content.get("was_cancelled", False))
        content = {**content, "was_cancelled": cancelled in (True, "true", "1")}
        annotation = self._add_annotation(
            task, content, completed_by=user, ground_truth=False, updated_by=user
        )
        self.task_locks.pop((number, user), None)
        task["updated_at"] = self._now()
        return 201, annotation

    def _add_annotation(self, task, content, **defaults):
        now = self._now()
        annotation = {
            "id": next(self._numbers["annotation"]),
            "task": task["id"],
            "project": task["project"],
            "was_cancelled": False,
            "lead_time": None,
            "parent_prediction": None,
            "updated_by": None,
            **defaults,
            **content,
            "created_at": now,
            "updated_at": now,
        }
        annotation["lead_time"] = _as_float(annotation["lead_time"])
        self.annotations[task["id"]][annotation["id"]] = annotation
        return annotation

    def patch_annotation(self, user, query, content, number):
        annotation = self._find_annotation(number)
        kept = ("result", "was_cancelled", "lead_time", "ground_truth")
        annotation.update({key: content[key] for key in kept if key in content})
        annotation.update(updated_by=user, updated_at=self._now())
        annotation["lead_time"] = _as_float(annotation["lead_time"])
        self.tasks[annotation["task"]]["updated_at"] = self._now()
        return 200, annotation

    def delete_annotation(self, user, query, content, number):
        annotation = self._find_annotation(number)
        del self.annotations[annotation["task"]][number]
        self.tasks[annotation["task"]]["updated_at"] = self._now()
        return 204, None

    def _find_annotation(self, number):
        for annotations in self.annotations.values():
            if number in annotations:
                return annotations[number]
        raise Problem(404, "No Annotation matches the given query.")

    def act(self, user, query, content):
        """Delete tasks, or the annotations or predictions of tasks."""
        project = self._find_project(int(query["project"]))
        chosen = content["selectedItems"]
        tasks = [
            task
            for task in self._tasks_of(project)
            if chosen["all"] or task["id"] in chosen["included"]
        ]
        what = query["id"].removeprefix("delete_tasks").lstrip("_")
        n_gone = 0
        for task in tasks:
            gone = getattr(self, what).pop(task["id"], {}) if what else [task]
            n_gone += len(gone)
            if not what:
                self._drop_task(task)
            elif what == "annotations" and gone:
                task["updated_at"] = self._now()
        return 200, {"processed_items": n_gone}

    # What a person is asked next

    def get_next(self, user, query, content, number):
        project = self._find_project(number)
        tasks = [
            task
            for task in self._tasks_of(project)
            if not self._is_labeled(task)
            and all(a["completed_by"] != user for a in self._annotations_of(task))
        ]
        locked = [task for task in tasks if (task["id"], user) in self.task_locks]
        task, queue = (locked[0], "Task lock") if locked else (None, "")
        if task is None:
            task, queue = self._sample(project, tasks, user)
        if task is None:
            email = self.users[user]["email"]
            raise Problem(404, f"There are no tasks for {email}")
        self.task_locks[task["id"], user] = True
        shown = self._show_task(task)
        version = project["model_version"]
        shown["predictions"] = [
            p for p in shown["predictions"] if p["model_version"] == version
        ]
        return 200, {**shown, "annotations": [], "queue": queue}

    def _sample(self, project, tasks, user):
        free = [task for task in tasks if not self._is_taken(task, user)]
        if project["sampling"] == "Sequential sampling":
            return (free[0] if free else None), "Sequence queue"
        if project["sampling"] == "Uncertainty sampling":
            scores = {
                prediction["task"]: prediction["score"]
                for task in tasks
                for prediction in self._predictions_of(task)
                if prediction["model_version"] == project["model_version"]
            }
            queue = "Active learning or random queue"
            # As in the real server: if the current version has any open task, only
            # its tasks are asked, even if all of them are taken. The order is random if
            # the project has two members or more; Community has no page for members.
            if scores:
                free = [task for task in free if task["id"] in scores]
                free.sort(key=lambda task: scores[task["id"]] or 0)
                return (free[0] if free else None), queue
        else:
            queue = "Uniform random queue"
        return (self.draw(free) if free else None), queue

    def _is_taken(self, task, user):
        locks = sum(i == task["id"] and u != user for i, u in self.task_locks)
        truths = sum(a["ground_truth"] for a in self._annotations_of(task))
        annotations = len(self._annotations_of(task)) - truths
        return locks + annotations >= task["overlap"]


PROJECT, TASK = r"/api/projects/(\d+)", r"/api/tasks/(\d+)"
ROUTES = [
    (r"/api/users/?", {"GET": "list_users"}),
    (r"/api/projects/", {"POST": "create_project"}),
    (
        f"{PROJECT}/",
        {"GET": "get_project", "PATCH": "patch_project", "DELETE": "delete_project"},
    ),
    (f"{PROJECT}/import", {"POST": "import_tasks"}),
    (f"{PROJECT}/import/predictions", {"POST": "import_predictions"}),
    (
        f"{PROJECT}/model-versions/",
        {"GET": "list_versions", "DELETE": "delete_version"},
    ),
    (f"{PROJECT}/next/?", {"GET": "get_next"}),
    (r"/api/tasks/", {"GET": "list_tasks"}),
    (f"{TASK}/", {"GET": "get_task", "DELETE": "delete_task"}),
    (f"{TASK}/annotations/", {"POST": "create_annotation"}),
    (
        r"/api/annotations/(\d+)/",
        {"PATCH": "patch_annotation", "DELETE": "delete_annotation"},
    ),
    (r"/api/dm/actions/?", {"POST": "act"}),
]


def personal(email):
    """Return the personal access token of a user."""
    return f"refresh.{email.replace('.', '-')}.signature"


def _include(item, names):
    """Return the named fields of an item, also of the objects in it."""
    return {
        key: [_include(part, names) for part in value] if key in PARTS else value
        for key, value in item.items()
        if key in names
    }


def _as_float(value):
    return None if value is None else float(value)


def _read_config(project):
    """Return the data keys by object name, and (tag, classes) by control name."""
    objects, controls = {}, {}
    for element in ElementTree.fromstring(project["label_config"]).iter():
        name, value = element.get("name"), element.get("value", "")
        if element.get("toName"):
            choices = element.iter("Choice")
            classes = [e.get("alias") or e.get("value") for e in choices]
            controls[name] = element.tag.lower(), element.get("toName"), classes
        elif name and value.startswith("$"):
            objects[name] = value[1:]
    return objects, controls


def _is_valid(project, item):
    """Whether a prediction fits the label config; if not, it is dropped silently."""
    controls = _read_config(project)[1]
    score = item.get("score")
    if score is not None and not 0 <= score <= 1:
        return False
    if not isinstance(item.get("result"), list):
        return False
    for region in item["result"]:
        if not {"from_name", "to_name", "type", "value"} <= region.keys():
            return False
        kind, to_name, classes = controls.get(region["from_name"], ("", "", []))
        if (region["type"], region["to_name"]) != (kind, to_name):
            return False
        # A path of nested choices, a list, is dropped as well.
        if kind == "choices" and not all(
            name in classes for name in region["value"]["choices"]
        ):
            return False
    return True


def _make_handler(fake):
    """Return a handler of http.server that answers as the fake server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # headers and body in one packet: two of them wait for 40 ms

        def answer(self):
            url = httpx.URL(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            authorization = self.headers.get("Authorization", "")
            answer = fake.handle(
                self.command, url.path, dict(url.params), body, authorization
            )
            if answer is None:
                self.close_connection = True
                return
            status, headers, content = answer
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = answer

        def log_message(self, *arguments):
            pass

    return Handler


class Person:
    """Someone who labels in a project of a fake or a real Label Studio."""

    def __init__(self, http, token, project):
        self.http, self.project = http, project
        self.headers = {"Authorization": f"Token {token}"}

    def ask(self, method, path, body=None, **params):
        """Return the JSON of an answer, which must be a success."""
        response = self.http.request(
            method, path, json=body, params=params, headers=self.headers
        )
        assert response.status_code < 300, (method, path, response.text)
        return response.json() if response.content else None

    def next(self):
        """Return the task to label, or None if there is none."""
        path = f"/api/projects/{self.project}/next/"
        response = self.http.get(path, headers=self.headers)
        assert response.status_code in (200, 404), response.text
        return response.json() if response.status_code == 200 else None

    def answer(self, task, *labels, lead_time=2.5, name="label", to_name="text"):
        """Label a task; return the annotation."""
        body = {"result": choose(*labels, name=name, to_name=to_name)}
        body["lead_time"] = lead_time
        return self.ask("POST", f"/api/tasks/{task}/annotations/", body)

    def skip(self, task, lead_time=1.0):
        body = {"result": [], "was_cancelled": True, "lead_time": lead_time}
        return self.ask("POST", f"/api/tasks/{task}/annotations/", body)

    def change(self, annotation, *labels, name="label", to_name="text"):
        """Change an annotation to other labels, or a skip to an answer."""
        result = choose(*labels, name=name, to_name=to_name)
        body = {"result": result, "was_cancelled": False}
        return self.ask("PATCH", f"/api/annotations/{annotation}/", body)

    def delete(self, annotation):
        self.ask("DELETE", f"/api/annotations/{annotation}/")

    def clear(self, *tasks):
        """Delete all annotations of tasks, as the Data Manager does."""
        self._act("delete_tasks_annotations", tasks)

    def remove(self, *tasks):
        """Delete tasks, as the Data Manager does."""
        self._act("delete_tasks", tasks)

    def _act(self, action, tasks):
        body = {"selectedItems": {"all": False, "included": list(tasks)}}
        self.ask("POST", "/api/dm/actions", body, id=action, project=self.project)


def choose(*labels, name="label", to_name="text"):
    """Return the result list of an answer or a prediction."""
    region = {"from_name": name, "to_name": to_name, "type": "choices"}
    return [{**region, "value": {"choices": list(labels)}}] if labels else []
