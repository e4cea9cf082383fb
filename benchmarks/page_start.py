"""From a command to the first text, the first model and the first number of a page.

    python benchmarks/page_start.py --peers FOLDER    # with environments of the peers
    python benchmarks/page_start.py --smoke

The same table of docstrings is opened in skactive, Label Studio and Potato, each by its
own command, in turns. A script is the person: it makes the account and the project
where one needs them, asks for a text, and answers with the right label at a pace.
Seconds of the wall are counted from the command to: a page that answers; the first
text; the first model, with the number of labels it learned from; the first estimate of
the accuracy with an interval, with the number of labels. "none" means that the tool has
none without a server of the user's own. Potato trains by its own configuration for
active learning (logistic regression on TF-IDF).

FOLDER has a virtual environment for each peer, named as its package; those that are
missing are left out:

    python -m venv FOLDER/label-studio
    FOLDER/label-studio/bin/pip install label-studio==1.23.2
    python -m venv FOLDER/potato-annotation
    FOLDER/potato-annotation/bin/pip install potato-annotation==2.12.1

Options:
    --peers FOLDER
    --rows 1000
    --most 200       answers
    --pace 1.0       seconds per answer
    --repeats 3
Smoke: --rows 60 --most 12 --pace 0.01 --repeats 1
"""

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import numpy as np
from _harness import parse, table

from skactive.datasets import load_docstrings

STAGES = ("page", "first text", "first model", "first number")


class Client:
    """HTTP with cookies."""

    def __init__(self, url, headers=None):
        self._url, self._headers = url, headers or {}
        self._open = build_opener(HTTPCookieProcessor(CookieJar())).open

    def __call__(self, path, data=None, form=False):
        """Get a path, or post data; return the text."""
        headers, body = dict(self._headers), None
        if data is not None:
            body = (urlencode(data) if form else json.dumps(data)).encode()
            kind = "x-www-form-urlencoded" if form else "json"
            headers["Content-Type"] = f"application/{kind}"
        with self._open(Request(self._url + path, body, headers)) as reply:
            return reply.read().decode()

    def json(self, path, data=None):
        return json.loads(self(path, data))

    def wait(self, path, seconds=300):
        """Get a path again and again until it answers."""
        end = time.monotonic() + seconds
        while True:
            try:
                return self(path)
            except (URLError, ConnectionError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)


class Person:
    """Answers texts at a pace with the right labels, and stops the clock at stages."""

    def __init__(self, texts, labels, args):
        self.answers = dict(zip(texts, labels, strict=True))
        self.args, self.stages, self._start = args, {}, time.perf_counter()

    def reach(self, stage, n_labels=None):
        if stage not in self.stages:
            self.stages[stage] = time.perf_counter() - self._start, n_labels


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def label_with_skactive(folder, bin_folder, person):
    """`skactive label`, with its defaults and the weights of MiniLM."""
    file = folder / "table.jsonl"
    command = [sys.executable, "-m", "skactive", "label", str(file), "--text", "text"]
    classes = ",".join(sorted(set(person.answers.values())))
    command += ["--label", "topic", "--classes", classes, "--no-browser"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    yield process
    url = next(x for x in iter(process.stderr.readline, "") if "http://" in x).split()
    client = Client(url[-1])
    client("")
    person.reach("page")
    for n in range(person.args.most):
        item = client.json("api/next", {"client": "tab", "n_queries": 1})[0]
        person.reach("first text")
        label = person.answers[item["text"]]
        answer = {"id": item["id"], "label": label, "client": "tab", "seconds": 1.0}
        time.sleep(person.args.pace)
        state = client.json("api/answer", answer)
        if state["model"]["n_labels"]:
            person.reach("first model", state["model"]["n_labels"])
            if client.json("api/quality", {})["interval"]:
                person.reach("first number", n + 1)
                return


def label_with_label_studio(folder, bin_folder, person):
    """Label Studio: an account, a project, its texts, and the next task."""
    port, token = free_port(), secrets.token_hex(20)
    environment = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "data"),
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "COLLECT_ANALYTICS": "False",
        "LATEST_VERSION_CHECK": "False",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
    }
    command = [bin_folder / "label-studio", "start", "--no-browser", "--port", port]
    command += ["--internal-host", "127.0.0.1", "--username", "ann@example.com"]
    command += ["--password", secrets.token_hex(20), "--user-token", token]
    with open(folder / "log", "w") as log:
        yield subprocess.Popen(
            [*map(str, command)], env=os.environ | environment, stdout=log, stderr=log
        )
    headers = {"Authorization": f"Token {token}"}
    client = Client(f"http://127.0.0.1:{port}/", headers)
    client.wait("health")
    person.reach("page")
    choices = "".join(f'<Choice value="{x}"/>' for x in {*person.answers.values()})
    config = '<View><Text name="text" value="$text"/><Choices name="c" toName="text">'
    config += f"{choices}</Choices></View>"
    project = client.json("api/projects", {"title": "topics", "label_config": config})
    number = project["id"]
    tasks = [{"data": {"text": text}} for text in person.answers]
    client.json(f"api/projects/{number}/import", tasks)
    assert client.json(f"api/projects/{number}/next")["data"]["text"] in person.answers
    person.reach("first text")


def label_with_potato(folder, bin_folder, person):
    """Potato with active learning, and no password."""
    labels = sorted(set(person.answers.values()))
    config = {
        "annotation_task_name": "topics",
        "task_dir": str(folder),
        "output_annotation_dir": "out",
        "output_annotation_format": "jsonl",
        "data_files": ["table.jsonl"],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "user_config": {"allow_all_users": True, "users": []},
        "require_password": False,
        "admin_api_key": "key",
        "annotation_schemes": [
            {
                "annotation_type": "radio",
                "name": "topic",
                "description": "topic",
                "labels": labels,
            }
        ],
        "active_learning": {"enabled": True, "schema_names": ["topic"]},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    port = free_port()
    command = [bin_folder / "potato", "start", folder / "config.yaml", "-p", port]
    command += ["--host", "127.0.0.1"]
    with open(folder / "log", "w") as log:
        yield subprocess.Popen([*map(str, command)], cwd=folder, stdout=log, stderr=log)
    client = Client(f"http://127.0.0.1:{port}/", {"X-API-Key": "key"})
    client.wait("health")
    person.reach("page")
    page = client("auth", {"email": "ann", "action": "login"}, form=True)
    texts = {str(i): label for i, label in enumerate(person.answers.values())}
    for n in range(person.args.most):
        (id,) = re.findall(r'id="instance_id"[^>]*value="(\d+)"', page)
        person.reach("first text")
        time.sleep(person.args.pace)
        said = {"instance_id": id, "annotations": {f"topic:{texts[id]}": texts[id]}}
        client("updateinstance", said)
        page = client("annotate", {"action": "next_instance", "instance_id": id}, True)
        stats = client.json("admin/active-learning/stats")
        if stats.get("models_trained") or stats.get("training_count"):
            person.reach("first model", n + 1)
            return


TOOLS = {
    "skactive": label_with_skactive,
    "label-studio": label_with_label_studio,
    "potato-annotation": label_with_potato,
}


def measure(tool, bin_folder, texts, labels, args):
    """The seconds, and labels, of each stage that a tool reaches."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        rows = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "table.jsonl").write_text(lines, encoding="utf-8")
        person = Person(texts, labels, args)
        steps = TOOLS[tool](folder, bin_folder, person)
        process = next(steps)
        try:
            for _ in steps:
                pass
        finally:
            process.terminate()
            process.wait()
    return person.stages


def main():
    args = parse(__doc__)
    X, y = load_docstrings(max_per_library=args.rows // 4, return_X_y=True)
    texts = [*dict.fromkeys(" ".join(text.split()) for text in X)]
    own = dict(zip((" ".join(text.split()) for text in X), y, strict=True))
    labels = [str(own[text]) for text in texts]
    tools = {"skactive": None}
    for name in list(TOOLS)[1:] if args.peers else ():
        if (args.peers / name / "bin").exists():
            tools[name] = args.peers / name / "bin"
    found = {name: [] for name in tools}
    for _ in range(args.repeats):
        for name, bin_folder in tools.items():
            found[name].append(measure(name, bin_folder, texts, labels, args))
            print(name, found[name][-1], f"load {os.getloadavg()[0]:.1f}", flush=True)
    rows = []
    for name, runs in found.items():
        cells = []
        for stage in STAGES:
            reached = [run[stage] for run in runs if stage in run]
            seconds = np.median([s for s, _ in reached]) if reached else None
            counts = sorted({n for _, n in reached if n is not None})
            cells.append("none" if not reached else f"{seconds:.1f}")
            if counts:
                cells[-1] += f" ({counts[0]} to {counts[-1]} labels)"
        rows.append([name, *cells])
    print(*table(["tool", *STAGES], rows), sep="\n")


if __name__ == "__main__":
    main()
