"""Record what a real Label Studio says to one fixed scenario.

    python -m tests.labeling.record_label_studio URL TOKEN

The server is a new one, so that its ids begin with 1; TOKEN is the legacy token of its
only user, ann@example.com. `label_studio_VERSION.json` gets a line for each request.
"""

import itertools
import json
import re
import sys
from pathlib import Path

import httpx

from skactive.labeling._label_studio._client import Client, LabelStudioError

from ._fake_label_studio import Person, choose

CONFIG = (
    '<View><Text name="text" value="$text"/>'
    '<Choices name="label" toName="text" choice="single">'
    '<Choice value="spam"/><Choice value="ham"/></Choices></View>'
)
PAIRS = (
    '<View><Text name="a" value="$first"/><Text name="b" value="$second"/>'
    '<Choices name="label" toName="a" choice="multiple">'
    '<Choice value="spam" alias="S"/><Choice value="ham"/></Choices></View>'
)
TEXTS = [
    "Win a golden teapot today",
    "Lunch moves to half past one",
    "Your parcel of moonlight waits",
    "The minutes of Tuesday are attached",
    "Cheap umbrellas, only this hour",
    "Can you water my fern next week?",
    "A prince has chosen you",
    "The printer on floor two works again",
    "Lose ten pounds of homework",
    "See you at the boat house",
    "Double your marbles at once",
    "Notes for the choir rehearsal",
]
SECOND = "second@example.com"


class Recorder(httpx.BaseTransport):
    """A transport that keeps every exchange."""

    def __init__(self, transport):
        self.transport = transport
        self.exchanges = []

    def handle_request(self, request):
        response = self.transport.handle_request(request)
        response.read()
        authorization = request.headers.get("authorization", "")
        self.exchanges.append(
            {
                "authorization": authorization,
                "method": request.method,
                "path": request.url.path,
                "query": dict(request.url.params),
                "body": json.loads(request.content) if request.content else None,
                "status": response.status_code,
                "answer": _read(response),
            }
        )
        return response


def _read(response):
    try:
        return response.json()
    except ValueError:
        return re.sub(r"\s+", " ", response.text)[:60]


def prediction(task, label, score, version):
    return {
        "task": task,
        "model_version": version,
        "score": score,
        "result": choose(label),
    }


def expect(error, call, *arguments):
    """Call something that the server refuses."""
    try:
        call(*arguments)
    except error:
        return
    raise AssertionError(f"{arguments} was accepted")


def run_scenario(client, ann, sign_up):
    """Label two rounds alone, then with a second person; try what is refused.

    `ann` makes a person of a project, `sign_up` adds the second one.
    """
    new = client.create_project("Invented mail", CONFIG)
    project = new["id"]
    tasks = client.import_tasks(project, [{"data": {"text": text}} for text in TEXTS])
    client.use_uncertainty_sampling(project)
    client.list_users()
    label_alone(client, ann(project), project, tasks)
    make_mistakes(client, project, tasks)
    other = sign_up(project)
    label_together(client, ann(project), other, project, tasks)
    for person in (ann(project), other):
        while (task := person.next()) is not None:
            person.skip(task["id"])
    label_pairs(client)
    finish(client, ann(project), project)


def label_alone(client, ann, project, tasks):
    order = [tasks[i] for i in (7, 2, 9, 4)]
    client.add_predictions(
        project,
        [prediction(t, "spam", k / 4, "first") for k, t in enumerate(order)],
    )
    client.switch_version(project, "first")
    assert ann.next()["id"] == order[0]
    assert ann.next()["id"] == order[0], "the task is locked"
    before = list(client.list_tasks(project))
    answered = ann.answer(order[0], "ham")
    assert ann.next()["id"] == order[1]
    ann.skip(order[1])
    since = max(task["updated_at"] for task in before)
    changed = [task["id"] for task in client.list_tasks(project, since=since)]
    assert sorted(changed) == sorted(order[:2])
    # The second round comes while two tasks of the first are left, one on the screen.
    assert ann.next()["id"] == order[2]
    second = [tasks[i] for i in (11, 0, 4)]
    client.add_predictions(
        project, [prediction(t, "ham", k / 3, "second") for k, t in enumerate(second)]
    )
    client.switch_version(project, "second")
    client.delete_version(project, "first")
    client.list_versions(project)
    client.list_predictions(project, "second")
    assert ann.next()["id"] == order[2], "the lock outlives a new order"
    ann.answer(order[2], "spam")
    assert ann.next()["id"] == second[0]
    skipped = ann.ask("GET", f"/api/tasks/{order[1]}/")["annotations"][0]
    ann.change(skipped["id"], "spam")
    ann.change(answered["id"], "spam")
    ann.delete(answered["id"])
    ann.answer(second[0], "ham", lead_time=None)
    ann.answer(second[0], "spam")  # a second annotation of the same person
    ann.clear(second[0])
    ann.answer(tasks[5])  # an empty answer
    list(client.list_tasks(project))
    client.get_project(project)


def make_mistakes(client, project, tasks):
    good = prediction(tasks[1], "spam", 0.5, "third")
    for bad in (
        prediction(tasks[3], "eggs", 0.5, "third"),
        prediction(tasks[3], "spam", 1.5, "third"),
        {"task": tasks[3], "model_version": "third", "score": 0.5},
    ):
        expect(LabelStudioError, client.add_predictions, project, [good, bad])
    empty = {"task": tasks[3], "model_version": "empty", "score": None, "result": []}
    client.add_predictions(project, [empty])
    unknown = prediction(10**9, "spam", 0.5, "third")
    expect(LabelStudioError, client.add_predictions, project, [good, unknown])
    expect(LabelStudioError, client.switch_version, project, "never")
    expect(LabelStudioError, client.import_tasks, project, [{"data": {"x": "y"}}])
    expect(LabelStudioError, client.create_project, "ab", CONFIG)
    client.delete_version(project, "never")
    client.delete_version(project, "third")


def label_together(client, ann, other, project, tasks):
    # With two members the order in the batch is random; one open task is certain.
    open_task = tasks[8]
    client.add_predictions(project, [prediction(open_task, "ham", 0.0, "fourth")])
    client.switch_version(project, "fourth")
    client.delete_version(project, "second")
    answer = ann.answer(tasks[10], "ham")
    other.answer(tasks[10], "spam")
    other.change(answer["id"], "spam")
    assert other.next()["id"] == open_task
    other.skip(open_task)
    ann.remove(tasks[1], tasks[11])
    reused = client.import_tasks(project, [{"data": {"text": "A late letter"}}])
    assert reused == [tasks[11]], "an id is used again"
    ann.ask("DELETE", f"/api/tasks/{tasks[6]}/")
    ann.clear(*tasks)
    list(client.list_tasks(project))
    client.delete_version(project, "fourth")
    client.list_users()
    client.get_project(project)


def label_pairs(client):
    """Pairs of texts with several classes each; some come with annotations."""
    project = client.create_project("Invented pairs", PAIRS)["id"]
    data = [{"first": a, "second": b} for a, b in itertools.pairwise(TEXTS[:5])]
    tasks = client.import_tasks(
        project,
        [
            {"data": data[0], "annotations": [{"result": choose("ham", to_name="a")}]},
            {"data": data[1], "annotations": [{"result": [], "was_cancelled": True}]},
            {"data": data[2], "annotations": []},
            {"data": data[3]},
        ],
    )
    region = choose("S", "ham", to_name="a")
    client.add_predictions(
        project,
        [
            {"task": tasks[2], "model_version": "v", "score": 1, "result": region},
            {"task": tasks[3], "model_version": "v", "result": region},
        ],
    )
    bad = {"task": tasks[2], "model_version": "v"}
    for result in (choose("spam", to_name="a"), choose("ham", to_name="b")):
        refused = [{**bad, "result": result}]
        expect(LabelStudioError, client.add_predictions, project, refused)
    list(client.list_tasks(project))
    client.get_project(project)
    expect(LabelStudioError, client.import_tasks, project, [{"data": {"first": "x"}}])


def finish(client, ann, project):
    transport = client._http._make.keywords["transport"]
    wrong = Client(client.url, "wrong", transport=transport)
    expect(LabelStudioError, wrong.get_project, project)
    wrong = Client(client.url, "a.b.c", transport=transport)
    expect(LabelStudioError, wrong.get_project, project)
    ann.ask("DELETE", f"/api/projects/{project}/")
    expect(LabelStudioError, client.get_project, project)
    expect(LabelStudioError, client.list_predictions, project, "first")
    expect(LabelStudioError, client.delete_version, project, "first")
    expect(LabelStudioError, client.add_predictions, project, [{"task": 1}])
    expect(LabelStudioError, client.import_tasks, project, [{"data": {"text": "t"}}])


def sign_up(url):
    """Sign a second user up at a real server; return the legacy token."""
    with httpx.Client(base_url=url, timeout=60) as http:
        http.get("/user/signup/")
        form = {
            "email": SECOND,
            "password": "a long invention",
            "allow_newsletters": "false",
            "csrfmiddlewaretoken": http.cookies["csrftoken"],
        }
        referer = {"Referer": f"{url}/user/signup/"}
        http.post("/user/signup/", data=form, headers=referer)
        return http.get("/api/current-user/token").json()["token"]


def main(url, token):
    with httpx.Client(base_url=url) as http:
        version = http.get("/api/version").json()["release"]
    recorder = Recorder(httpx.HTTPTransport())
    http = httpx.Client(base_url=url, transport=recorder, timeout=60)
    names = {f"Token {token}": "Token ann", "Token wrong": "Token wrong"}

    def add_second(project):
        second = sign_up(url)
        names[f"Token {second}"] = "Token second"
        return Person(http, second, project)

    with Client(url, token, transport=recorder) as client:
        run_scenario(client, lambda project: Person(http, token, project), add_second)
    for exchange in recorder.exchanges:
        exchange["authorization"] = names.get(exchange["authorization"], "")
    lines = ",\n".join(json.dumps(exchange) for exchange in recorder.exchanges)
    path = Path(__file__).parent / f"label_studio_{version}.json"
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    sys.stdout.write(
        f"{len(recorder.exchanges)} exchanges, {path.stat().st_size} bytes: {path}\n"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
