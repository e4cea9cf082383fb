"""What a real Label Studio said: the fake server says it too, the client reads it."""

import json
import re
from contextlib import nullcontext
from pathlib import Path

import httpx
import pytest

from skactive.labeling._label_studio._client import Client, UnavailableError

from ._fake_label_studio import FakeLabelStudio, Person, personal
from .record_label_studio import CONFIG, SECOND, TEXTS, prediction, run_scenario

RECORDING = Path(__file__).parent / "label_studio_1.23.2.json"
TIMES = ("created_at", "updated_at")
# What the bridge reads of each kind of object.
READ = {
    "task": {"id", "data", "is_labeled", "created_at", "updated_at"},
    "annotation": {
        "id",
        "result",
        "completed_by",
        "was_cancelled",
        "lead_time",
        "created_at",
        "updated_at",
    },
    "prediction": {"id", "model_version"},
    "user": {"id", "email", "username"},
    "project": {
        "id",
        "title",
        "label_config",
        "sampling",
        "model_version",
        "task_number",
        "total_annotations_number",
    },
}
KINDS = {
    r"/api/users/": "user",
    r"/api/projects/(\d+/)?": "project",
    r"/api/projects/\d+/next/": "task",
    r"/api/tasks/\d+/": "task",
    r"/api/tasks/\d+/annotations/": "annotation",
    r"/api/annotations/\d+/": "annotation",
}
KEYS = {"tasks": "task", "annotations": "annotation", "predictions": "prediction"}


@pytest.fixture(scope="module")
def exchanges():
    return json.loads(RECORDING.read_text(encoding="utf-8"))


class Comparison:
    """Compare answers field by field, and learn which times stand for each other."""

    def __init__(self):
        self.times = {}
        self.n_read = dict.fromkeys(READ, 0)

    def translate(self, text):
        for recorded, time in self.times.items():
            text = text.replace(recorded, time)
        return text

    def check(self, fake, real, where, kind=None):
        assert type(fake) is type(real), where
        if isinstance(fake, list):
            assert len(fake) == len(real), where
            for i, (left, right) in enumerate(zip(fake, real, strict=True)):
                self.check(left, right, f"{where}[{i}]", kind)
        elif isinstance(fake, dict):
            assert fake.keys() <= real.keys(), where
            if kind is not None:
                assert READ[kind] <= fake.keys(), where
                self.n_read[kind] += 1
            for key, value in fake.items():
                if key in TIMES:
                    self.times[real[key]] = value
                else:
                    self.check(value, real[key], f"{where}.{key}", KEYS.get(key))
        else:
            assert fake == real, where


def _kind(exchange):
    """Return what the answer of a request is, where it is an object or a list of it."""
    if exchange["status"] > 201 or exchange["method"] == "DELETE":
        return None
    for pattern, kind in KINDS.items():
        if re.fullmatch(pattern, exchange["path"]):
            return kind
    return None


def test_the_fake_server_says_what_the_real_one_said(exchanges):
    fake = FakeLabelStudio("ann@example.com")
    comparison = Comparison()
    names = {
        "Token ann": "Token legacy-ann@example.com",
        "Token second": f"Token legacy-{SECOND}",
    }
    for i, exchange in enumerate(exchanges):
        where = f"{i}: {exchange['method']} {exchange['path']}"
        if exchange["authorization"] == "Token second" and len(fake.users) == 1:
            fake.add_user(SECOND)
        if isinstance(exchange["answer"], dict):
            wanted = exchange["answer"].get("id")
            # Where the real server drew a task, the fake one must allow it.
            fake.draw = lambda tasks, wanted=wanted: next(
                task for task in tasks if task["id"] == wanted
            )
        query = {k: comparison.translate(v) for k, v in exchange["query"].items()}
        body = b"" if exchange["body"] is None else json.dumps(exchange["body"])
        status, _, content = fake.handle(
            exchange["method"],
            exchange["path"],
            query,
            body,
            names.get(exchange["authorization"], exchange["authorization"]),
        )
        assert status == exchange["status"], where
        real = exchange["answer"]
        if isinstance(real, str):  # nothing, or a page
            assert content.decode()[:10] == real.strip()[:10], where
        else:
            comparison.check(json.loads(content), real, where, _kind(exchange))
    assert min(comparison.n_read.values()) >= 3, "each kind of object was compared"
    statuses = {exchange["status"] for exchange in exchanges}
    assert statuses == {200, 201, 204, 400, 401, 404}


def test_a_difference_would_be_found():
    comparison = Comparison()
    real = {"id": 5, "updated_at": "a", "result": [{"value": 1}], "more": 0}
    comparison.check({"id": 5, "updated_at": "b", "result": [{"value": 1}]}, real, "")
    assert comparison.translate("since a") == "since b"
    for change in ({"id": 6}, {"result": []}, {"result": [{"value": 2}]}, {"new": 1}):
        with pytest.raises(AssertionError):
            comparison.check({"id": 5, **change}, real, "")
    with pytest.raises(AssertionError):
        comparison.check({"id": 5}, real, "", "annotation")


def test_the_client_asks_and_reads_as_recorded(exchanges):
    left = iter(exchanges)

    def answer(request):
        exchange = next(left)
        assert request.method == exchange["method"]
        assert request.url.path == exchange["path"]
        assert dict(request.url.params) == exchange["query"]
        body = json.loads(request.content) if request.content else None
        assert body == exchange["body"]
        assert request.headers.get("authorization", "") == exchange["authorization"]
        content = exchange["answer"]
        if isinstance(content, str):
            return httpx.Response(exchange["status"], text=content)
        return httpx.Response(exchange["status"], json=content)

    transport = httpx.MockTransport(answer)
    http = httpx.Client(base_url="http://recorded", transport=transport)
    client = Client("http://recorded", "ann", transport=transport)
    run_scenario(
        client,
        lambda project: Person(http, "ann", project),
        lambda project: Person(http, "second", project),
    )
    assert next(left, None) is None


@pytest.fixture
def fake():
    return FakeLabelStudio("ann@example.com")


@pytest.fixture
def client(fake):
    with Client("http://fake", "legacy-ann@example.com", transport=fake.transport) as c:
        c.sleep = lambda seconds: None
        yield c


def test_the_fake_server_answers_over_http_too(fake):
    with fake.serve() as url, Client(url, "legacy-ann@example.com") as client:
        project = client.create_project("Invented mail", CONFIG)["id"]
        client.import_tasks(project, [{"data": {"text": "A late letter"}}])
        fake.fail("GET /api/tasks/")
        client.sleep = lambda seconds: None
        assert [t["data"]["text"] for t in client.list_tasks(project)] == [
            "A late letter"
        ]
        fake.fail("POST .*/import$", applied=True)
        with pytest.raises(UnavailableError, match="RemoteProtocolError"):
            client.import_tasks(project, [{"data": {"text": "Lost"}}])
        client.n_retries = 0
        assert len(list(client.list_tasks(project))) == 2
    with pytest.raises(UnavailableError, match="ConnectError"):
        Client(url, "x", n_retries=0).list_users()


@pytest.mark.parametrize("status", [None, 500, 502])
@pytest.mark.parametrize("applied", [False, True])
def test_a_fault_takes_effect_or_not(fake, client, status, applied):
    project = client.create_project("Invented mail", CONFIG)["id"]
    fake.fail("POST .*/import$", nth=2, status=status, applied=applied)
    for error in (None, UnavailableError, None):
        with nullcontext() if error is None else pytest.raises(error):
            client.import_tasks(project, [{"data": {"text": "one"}}])
    assert len(list(client.list_tasks(project))) == 2 + applied


def test_a_fault_is_retried_where_the_client_may(fake, client):
    waits = []
    client.sleep = waits.append
    fake.fail("GET /api/users/", times=2, status=429, headers={"Retry-After": "9"})
    assert client.list_users() == {1: "ann@example.com"}
    assert waits == [9, 9]
    assert [status for _, _, status in fake.log] == [429, 429, 200]


def test_a_personal_token_of_the_fake_server_expires(fake):
    token = personal("ann@example.com")
    with Client("http://fake", token, transport=fake.transport) as client:
        assert client.list_users() == client.list_users()
        fake.expire_access()
        assert client.list_users() == {1: "ann@example.com"}
    assert [path for _, path, _ in fake.log].count("/api/token/refresh") == 2


def test_the_fake_server_asks_in_the_order_of_the_scores(fake, client):
    project = client.create_project("Invented mail", CONFIG)["id"]
    tasks = client.import_tasks(project, [{"data": {"text": t}} for t in TEXTS])
    order = tasks[::-2]
    client.add_predictions(
        project, [prediction(t, "ham", k / 9, "v") for k, t in enumerate(order)]
    )
    client.switch_version(project, "v")
    ann = fake.person("ann@example.com", project)
    asked = []
    while len(asked) < len(tasks):
        asked.append(ann.next()["id"])
        ann.answer(asked[-1], "ham")
    assert ann.next() is None
    assert asked[: len(order)] == order
    assert sorted(asked) == tasks


def test_two_people_of_the_fake_server_are_asked_different_tasks(fake, client):
    fake.add_user(SECOND)
    project = client.create_project("Invented mail", CONFIG)["id"]
    tasks = client.import_tasks(project, [{"data": {"text": t}} for t in TEXTS])
    batch = tasks[3:7]
    client.add_predictions(project, [prediction(t, "ham", 0, "v") for t in batch])
    client.switch_version(project, "v")
    people = [fake.person(email, project) for email in ("ann@example.com", SECOND)]
    asked = []
    for _ in range(2):
        shown = [person.next()["id"] for person in people]
        for person, task in zip(people, shown, strict=True):
            person.answer(task, "spam")
        asked += shown
    assert sorted(asked) == batch
