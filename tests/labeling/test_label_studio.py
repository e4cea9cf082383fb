"""The bridge, as people run it, with the real Label Studio and with its stand-in.

`.ci/label_studio` starts the real one. People are simulated: they label what Label
Studio gives them next.
"""

import base64
import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, namedtuple
from contextlib import contextmanager
from unittest.mock import patch

import httpx
import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, make_text_classifier, simulate
from skactive.datasets import load_docstrings
from skactive.labeling._label_studio import _bridge
from skactive.labeling._label_studio._bridge import Bridge
from skactive.labeling._label_studio._client import Client
from skactive.labeling._label_studio._config import write_config
from skactive.project import ProjectSettings, Trainer
from skactive.session import read_labels
from skactive.session._state import read_session

from ..conftest import absent
from ._fake_label_studio import FakeLabelStudio, personal
from ._helpers import listening

AUTH = "bridge:secret"
PATIENCE = 900  # seconds for what takes a few, or minutes on a busy computer
VARIABLES = [f"SKACTIVE_LABEL_STUDIO_{name}" for name in ("URL", "TOKEN", "TOKENS")]

Site = namedtuple("Site", "url token people texts labels model batch")


@pytest.fixture(scope="module")
def live(minilm):
    """The real server, and 1,600 real texts, which need no download."""
    if not all(name in os.environ for name in VARIABLES):
        absent(f"{' or '.join(VARIABLES)} is not set: run .ci/label_studio")
    url, token, people = (os.environ[name] for name in VARIABLES)
    texts, labels = load_docstrings(max_per_library=400, return_X_y=True)
    return Site(url, token, people.split(), texts, labels.tolist(), minilm, 20)


@pytest.fixture
def fake(tiny_bert):
    """The stand-in, invented texts and an encoder of random weights."""
    topics = ["film", "match", "stock", "song", "storm"]
    labels = [("good", "bad")[i // 3 % 2] for i in range(160)]
    texts = [f"a {x} {topics[i % 5]}, number {i}" for i, x in enumerate(labels)]
    emails = "ann@example.com", "bob@example.com"
    server = FakeLabelStudio(*emails)
    people = [f"legacy-{email}" for email in emails]
    with server.serve() as url:
        yield Site(url, personal(emails[0]), people, texts, labels, tiny_bert, 8)


@pytest.fixture
def site(request):
    return request.getfixturevalue(request.param)


class People:
    """Two people who label what Label Studio gives them next, one after the other."""

    def __init__(self, site, n):
        self.clients = [
            httpx.Client(
                base_url=site.url,
                headers={"Authorization": f"Token {token}"},
                timeout=PATIENCE,
            )
            for token in site.people
        ]
        texts = site.texts[:n]
        self.labels = dict(zip(texts, site.labels, strict=False))
        self.classes = sorted(set(self.labels.values()))
        with Client(site.url, site.token) as client:
            config = write_config(self.classes)
            self.project = client.create_project("invented", config)["id"]
            self.ids = client.import_tasks(
                self.project, [{"data": {"text": text}} for text in texts]
            )
        self.seen, self.given, self.made = {}, [], Counter()

    def ask(self, path, person=0, method="GET", **options):
        response = self.clients[person].request(method, path, **options)
        assert response.is_success, (method, path, response.text)
        return response.json() if response.content else None

    def version(self):
        return self.ask(f"/api/projects/{self.project}/")["model_version"]

    def tasks(self):
        """Return all tasks, as the page of Label Studio lists them."""
        query = {"project": self.project, "fields": "all", "page_size": 1000}
        return self.ask("/api/tasks/", params=query)["tasks"]

    def pending(self, version):
        """Return the tasks that are to be labeled first, in their order."""
        scores, tasks = {}, self.tasks()
        for task in tasks:
            for prediction in task["predictions"]:
                if prediction["model_version"] == version:
                    scores[task["id"]] = prediction["score"]
        order = sorted(scores, key=scores.get)
        if len(order) > len(self.seen.get(version, ())):
            self.seen[version] = order
        done = {task["id"] for task in tasks if task["is_labeled"]}
        return [id for id in order if id not in done]

    def label_next(self):
        """Label one text or skip it; return whether there was one to label first."""
        version = self.version()
        order = self.pending(version)
        if not version or not order:
            return False
        person = self.made["answers"] % 2
        task = self.ask(f"/api/projects/{self.project}/next/", person)
        if (version, order) == (self.version(), self.pending(version)):
            assert task["id"] == order[0]
            self.made["in order"] += 1
        self.answer(task, person, skip=self.made["answers"] == 4)
        return True

    def answer(self, task, person, skip=False, label=None):
        label = label or self.labels[task["data"]["text"]]
        self.made["answers"] += 1
        body = {
            "result": [] if skip else self.result(label),
            "was_cancelled": skip,
            "lead_time": 0.5 + self.made["answers"] / 8,
        }
        path = f"/api/tasks/{task['id']}/annotations/"
        annotation = self.ask(path, person, "POST", json=body)
        self.given.append((task, annotation["id"], person))

    def result(self, label):
        about = {"from_name": "label", "to_name": "text", "type": "choices"}
        return [{**about, "value": {"choices": [label]}}]

    def change_minds(self):
        """Update an answer, delete one, and give a second answer to a third text."""
        (one, first, person), (_, second, other), (task, _, third) = self.given[:3]
        given = self.labels[one["data"]["text"]]
        body = {"result": self.result(next(x for x in self.classes if x != given))}
        self.ask(f"/api/annotations/{first}/", person, "PATCH", json=body)
        self.ask(f"/api/annotations/{second}/", other, "DELETE")
        self.answer(task, 1 - third, label=self.classes[-1])

    def answers(self):
        """Return what the server has: {task: {person: (label, seconds)}} and skips."""
        names = {user["id"]: user["email"] for user in self.ask("/api/users/")}
        labels, skips = {}, set()
        for task in self.tasks():
            for annotation in task["annotations"]:
                if annotation["was_cancelled"]:
                    skips.add(task["id"])
                    continue
                (region,) = annotation["result"]
                (label,) = region["value"]["choices"]
                by = names[annotation["completed_by"]]
                seconds = round(annotation["lead_time"], 3)
                labels.setdefault(task["id"], {})[by] = label, seconds
        return labels, skips - labels.keys()


class Process:
    """A command `skactive label-studio`, in a process that can be killed."""

    def __init__(self, site, people, folder, action, **more):
        self.folder, self.log = folder, folder.with_suffix(".log")
        self.given = site, people, folder, more
        options = {
            "url": site.url,
            "token-env": "TOKEN",
            "project": people.project,
            "folder": folder,
            **({"batch-size": site.batch} if action == "run" else {}),
            "model": site.model,
            **more,
        }
        words = [str(x) for key in options for x in (f"--{key}", options[key])]
        self.command = [sys.executable, "-m", "skactive", "label-studio", action]
        self.command += [*words, *(["--no-fine-tuning"] if action == "run" else [])]
        self.environment = {**os.environ, "TOKEN": site.token, "AUTH": AUTH}

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdout=log,
                stderr=log,
                # A shell's background jobs ignore Ctrl-C, and so would this one.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def kill(self):
        assert self.process.poll() is None, self.log.read_text()
        self.process.kill()
        self.process.wait()

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        assert self.process.wait(PATIENCE) == 0, self.log.read_text()

    def runs(self):
        return self.process.poll() is None

    def until(self, condition):
        """Wait until a condition holds."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert self.runs(), self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)

    def events(self):
        lines = (self.folder / "session" / "journal.jsonl").read_text("utf-8")
        return [json.loads(line) for line in lines.splitlines()]

    def answers(self):
        """Return what the session has, as `People.answers` returns it."""
        _, _, state = read_session(self.folder / "session")
        labels = {
            _number(id): {x.annotator: (x.label, x.seconds) for x in answer.given}
            for id, answer in state.answers.items()
        }
        return labels, set(map(_number, state.skipped))


class Thread(Process):
    """The same in a thread, with a model that needs no encoder."""

    def start(self):
        self.log.touch()
        self.end = threading.Event()
        self.process = threading.Thread(target=self.work)
        self.process.start()

    def work(self):
        site, people, folder, options = self.given
        with (
            Client(site.url, site.token) as client,
            open_bridge(
                client, people.project, folder, _make_light, batch=site.batch
            ) as b,
        ):
            b.run(stop=self.end, **options)

    def runs(self):
        return self.process.is_alive()

    def kill(self):
        self.end.set()
        self.process.join(PATIENCE)

    stop = kill


@contextmanager
def open_bridge(client, project, folder, make_learner, **options):
    """Open a bridge whose session has the learner of a function of the folder."""
    settings = ProjectSettings(client.url, folder=folder)
    make = lambda trainer: make_learner(trainer.folder)  # noqa: E731
    with (
        patch.object(Trainer, "make_learner", make),
        Bridge(client, project, settings, **options) as bridge,
    ):
        yield bridge


def _make_light(folder):
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    return ActiveLearner(model, random_state=0)


@pytest.fixture
def start(site, tmp_path):
    """Start a command for people; it is killed at the end of the test."""
    started = []

    def start(people, action, kind=Process, **options):
        started.append(kind(site, people, tmp_path / "bridge", action, **options))
        started[-1].start()
        return started[-1]

    yield start
    for process in started:
        if process.runs():
            process.kill()


def _number(id):
    """Return the number of a task of the session."""
    return int(id.partition("-")[0])


SCENARIOS = [
    pytest.param("fake", 0, id="fake"),
    pytest.param("fake", 4, id="fake-killed", marks=pytest.mark.slow),
    pytest.param("live", 20, id="live-killed", marks=pytest.mark.label_studio),
]
LIVE = pytest.param("live", marks=pytest.mark.label_studio)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("site", "n_kills"), SCENARIOS, indirect=["site"])
def test_the_session_holds_what_people_said(site, n_kills, start, capsys):
    people = People(site, 300 if n_kills and len(site.texts) > 300 else 60)
    begun = time.monotonic()
    bridge = start(people, "run", Process if n_kills else Thread, interval=0.1)
    bridge.until(lambda: people.version() and people.pending(people.version()))
    needed = time.monotonic() - begun
    phase = min(needed, 40)  # kills fall between the start and the next batch
    n_answers, rng = 3 * site.batch, np.random.default_rng(0)
    for kill in range(n_kills):
        quota = n_answers * (kill + 1) // (n_kills + 1)
        end = time.monotonic() + rng.uniform(0.3, 1.5) * phase
        while time.monotonic() < end:
            if people.made["answers"] >= quota or not people.label_next():
                time.sleep(0.05)
            if people.made["answers"] == 10:
                people.change_minds()
        bridge.kill()
        bridge.start()
    while people.made["answers"] < n_answers:
        bridge.until(people.label_next)
        if people.made["answers"] == 10:
            people.change_minds()
    bridge.until(lambda: bridge.answers() == people.answers())
    bridge.until(lambda: _is_whole(bridge, people))
    bridge.stop()

    expected, skipped = people.answers()
    assert bridge.answers() == (expected, skipped)
    assert len(skipped) == 1
    assert Counter(map(len, expected.values())).keys() == {1, 2}
    labels = read_labels(bridge.folder / "session")
    assert {_number(id) for id in labels} == expected.keys()
    for id, label in labels.items():
        assert label in {given for given, _ in expected[_number(id)].values()}
    _check_events(bridge.events())
    _check_batches(bridge.events(), people.seen)
    assert len(people.seen) >= 3
    # The others were given while the bridge changed the order.
    assert people.made["in order"] >= people.made["answers"] / 2
    with capsys.disabled():
        sys.stdout.write(
            f"\n{dict(people.made)}, {len(people.seen)} batches, {n_kills} kills, "
            f"{needed:.1f} s until the first batch\n"
        )


@pytest.mark.slow
@pytest.mark.parametrize("site", ["fake"], indirect=True)
def test_sigterm_writes_the_answers_and_the_model(site, start):
    people = People(site, 60)
    bridge = start(people, "run", interval=0.1)
    bridge.until(lambda: people.version() and people.pending(people.version()))
    while people.made["answers"] < 6:
        bridge.until(people.label_next)
    bridge.until(lambda: bridge.answers() == people.answers())
    bridge.stop(signal.SIGTERM)
    with open(bridge.folder / "answers.csv", encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == 5  # one of the six is a skip
    assert (bridge.folder / "model").is_dir()


def _is_whole(bridge, people):
    """Whether exactly the open questions of the session are to be labeled first."""
    waiting = set()
    for event in bridge.events():
        if event["event"] == "ask":
            waiting.update(event["ids"])
        elif event["event"] in ("tell", "skip"):
            waiting.difference_update(event["ids"])
    pending = people.pending(people.version())
    return {_number(id) for id in waiting} == {*pending} != set()


def _check_events(events):
    """Check that no answer was recorded twice, and no withdrawal without an answer."""
    answers = {}
    for event in events:
        if event["event"] == "tell":
            seconds = event.get("seconds", [None] * len(event["ids"]))
            for id, *said in zip(event["ids"], event["labels"], seconds, strict=True):
                assert answers.get((id, event["by"])) != said
                answers[id, event["by"]] = said
        elif event["event"] == "skip":
            for id in event["ids"]:
                assert answers.get((id, event["by"])) != "skip"
                answers[id, event["by"]] = "skip"
        elif event["event"] == "withdraw":
            for id in event["ids"]:
                assert answers.pop((id, event["by"]))


def _check_batches(events, seen):
    """Check that each version held its batch, in its order, and asked texts only."""
    asked, n_found = [], 0
    for number, event in enumerate((e for e in events if e["event"] == "ask"), 1):
        batch = [_number(id) for id in event["ids"]]
        asked += batch
        for version, order in seen.items():
            if version.endswith(f"-{number}"):
                n_found += 1
                assert [id for id in order if id in batch] == batch
                assert {*order} <= {*asked}
    assert n_found == len(seen)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("site", ["fake", LIVE], indirect=True)
def test_the_accuracy_is_that_of_a_simulation(site, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_bridge, "AUDIT_EVERY", None)  # a simulation has no audit
    n_pool, n_rounds = (600, 10) if site.batch == 20 else (60, 5)
    people, batch = People(site, n_pool), site.batch
    X, y = site.texts[:n_pool], site.labels[:n_pool]
    X_test, y_test = site.texts[n_pool:][:1000], site.labels[n_pool:][:1000]

    def make_learner(folder):
        options = {"max_length": 64, "cache": "memory"}
        model = make_text_classifier(site.model, adapt=False, **options)
        return ActiveLearner(model, "margin", batch_size=batch, random_state=0)

    asked, scores = [], []
    place = {id: i for i, id in enumerate(people.ids)}
    with (
        Client(site.url, site.token) as client,
        open_bridge(
            client, people.project, tmp_path, make_learner, batch=batch
        ) as bridge,
    ):
        for _ in range(n_rounds):
            bridge.push()
            order = people.pending(people.version())
            asked.append([place[id] for id in order])
            for id in order:
                task = people.ask(f"/api/projects/{people.project}/next/")
                assert task["id"] == id
                people.answer(task, 0)
            bridge.pull()
            bridge.refit()
            scores.append(bridge.session.learner.score(X_test, y_test))
    run = simulate(
        make_learner(None),
        X,
        y,
        n_initial=0,
        n_rounds=n_rounds,
        X_test=X_test,
        y_test=y_test,
    )
    expected = [record["queried"] for record in run.rounds if record["queried"]]
    assert asked == expected
    scored = [record["scores"]["accuracy"] for record in run.rounds[-n_rounds:]]
    np.testing.assert_allclose(scores, scored, rtol=0, atol=1e-12)
    with capsys.disabled():
        shown = f"accuracy after {batch * n_rounds} labels: {scores[-1]:.3f}"
        sys.stdout.write(f"\n{shown}\n")


NESTED = (
    '<View><Text name="help" value="Read it:"/><Text name="text" value="$text"/>'
    '<Labels name="span" toName="text"><Label value="word"/></Labels>'
    '<Choices name="part" toName="text" perRegion="true"><Choice value="odd"/>'
    "</Choices>"
    '<Choices name="label" toName="text" allowNested="true"><Choice value="good"/>'
    '<Choice value="bad"><Choice value="rude"/><Choice value="sad"/></Choice>'
    "</Choices></View>"
)


@pytest.mark.parametrize("site", [LIVE], indirect=True)
def test_nested_choices_and_other_columns(site, tmp_path):
    texts = [f"{('fine', 'poor')[i % 2]} thing {i}" for i in range(12)]
    with Client(site.url, site.token) as client:
        project = client.create_project("nested", NESTED)["id"]
        data = [{"text": text, "row": i, "user": None} for i, text in enumerate(texts)]
        ids = client.import_tasks(project, [{"data": x} for x in data])
        people = httpx.Client(
            base_url=site.url, headers={"Authorization": f"Token {site.people[0]}"}
        )
        for i, choice in enumerate([["bad", "rude"], ["good"], ["bad", "sad"], "good"]):
            span = {"start": 0, "end": 4, "text": texts[i][:4]}
            about = {"to_name": "text", "id": "s1"}
            result = [
                {**about, "from_name": "part", "type": "choices"},
                {"from_name": "label", "to_name": "text", "type": "choices"},
            ]
            result[0]["value"] = {**span, "choices": ["odd"]}
            result[1]["value"] = {"choices": [choice]}
            path = f"/api/tasks/{ids[i]}/annotations/"
            assert people.post(path, json={"result": result}).status_code == 201
        with open_bridge(client, project, tmp_path, _make_light, batch=4) as bridge:
            assert str(bridge.pull()) == "4 labels"
            assert [*bridge.session.labels.values()] == ["rude", "good", "sad", "good"]
            assert bridge.push() == 4
            (version,) = client.list_versions(project)
            assert len(client.list_predictions(project, version)) == 4
            with open(bridge.export(), encoding="utf-8") as stream:
                rows = list(csv.DictReader(stream))
        assert [row["row"] for row in rows] == ["0", "1", "2", "3"]
        # The same server under another name.
        other = site.url.replace("127.0.0.1", "localhost")
        said = []
        with (
            Client(other, site.token) as moved,
            listening(said.append),
            open_bridge(moved, project, tmp_path, _make_light) as bridge,
        ):
            assert not bridge.pull()
        assert said[0].endswith(f"is now {other}; the folder goes on")


@pytest.mark.parametrize("site", [LIVE], indirect=True)
def test_a_backend_predicts_with_the_newest_model(site, start, tmp_path):
    people = People(site, 60)
    audited = _list_audited(site, people.project, tmp_path / "other")
    predicted = sorted({*people.ids} - audited)
    assert 0 < len(predicted) < len(people.ids)
    # Nothing is pulled until a webhook comes. One model is trained as soon as there is
    # a label, and others only when this is asked for.
    options = {"auth-env": "AUTH", "every": 1000, "interval": 3600}
    backend = start(people, "backend", **options)
    backend.until(lambda: re.search(r"connect (\S+)", backend.log.read_text()))
    user, password = AUTH.split(":")
    body = {
        "project": people.project,
        "url": re.search(r"connect (\S+)", backend.log.read_text())[1],
        "auth_method": "BASIC_AUTH",
        "basic_auth_user": user,
        "basic_auth_pass": password,
    }
    about = people.ask("/api/ml", method="POST", json=body)
    assert about["readable_state"] == "Connected"
    # Label Studio makes the webhook without the password, as a header adds it.
    query = {"project": people.project}
    (hook,) = people.ask("/api/webhooks/", params=query)
    header = {"Authorization": f"Basic {base64.b64encode(AUTH.encode()).decode()}"}
    path = f"/api/webhooks/{hook['id']}/"
    people.ask(path, method="PATCH", params=query, json={"headers": header})

    def newest():
        return people.ask(f"/api/ml/{about['id']}/versions")["versions"]

    def label():
        """Label the next task; return it as the page gets it."""
        task = people.ask(f"/api/projects/{people.project}/next/")
        people.answer(task, 0)
        return task

    def is_recorded():
        return len(backend.answers()[0]) == people.made["answers"]

    def retrieve():
        """Retrieve predictions; return the ids of the tasks of each version."""
        query = {"id": "retrieve_tasks_predictions", "project": people.project}
        body = {"selectedItems": {"all": True, "excluded": []}}
        people.ask("/api/dm/actions", method="POST", params=query, json=body)
        found = {}
        for task in people.tasks():
            for prediction in task["predictions"]:
                assert 0 <= prediction["score"] <= 1
                found.setdefault(prediction["model_version"], []).append(task["id"])
        return {version: sorted(ids) for version, ids in found.items()}

    assert retrieve() == {}
    for _ in range(20):
        label()
    backend.until(is_recorded)
    (first,) = newest()
    assert retrieve() == {first: predicted}
    while (task := label())["id"] in audited:
        assert task["predictions"] == []
    # The page shows what the model predicts.
    assert [x["model_version"] for x in task["predictions"]] == [first]
    backend.until(is_recorded)
    assert newest() == [first]
    people.ask(f"/api/ml/{about['id']}/train", method="POST", json={})
    backend.until(lambda: newest() != [first])
    assert retrieve()[newest()[0]] == predicted
    backend.stop()
    assert backend.answers() == people.answers()


def _list_audited(site, project, folder):
    """Return the tasks that the audit can draw, from another folder of the project."""
    with (
        Client(site.url, site.token) as client,
        open_bridge(client, project, folder, _make_light) as bridge,
    ):
        is_blind = bridge.session.is_blind
        return {bridge.number(id) for id in bridge.tasks if is_blind(id)}
