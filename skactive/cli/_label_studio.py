"""The commands `label-studio`: a session with Label Studio as its front end."""

import math
import os
from contextlib import contextmanager

from .._tables._formats import name_once
from ..labeling._label_studio._bridge import Bridge, count, report
from ..labeling._label_studio._client import Client
from ..labeling._label_studio._config import read_question, write_config
from ..project import Project, ProjectSettings
from ._parser import say, show_line


def run_create(url, token_env, file, text, label, classes, multi_label, title):
    """Run the command `label-studio create`."""
    project = Project(file, text, label or "label")
    labels = project.given if label else {}
    given = [labels.get(i) for i in range(len(project.texts))]
    classes = classes or list(dict.fromkeys(labels.values()))
    if len(classes) < 2:
        raise ValueError(
            f"argument --classes: must name at least two classes, got {classes}; "
            f"{file} gives no others."
        )
    config = write_config(classes, multiple=multi_label, pair=len(text) > 1)
    for message in project.messages if label else ():
        say(message)
    with _connect(url, token_env) as client:
        about = client.create_project(title or project.file_.stem, config)
        number = about["id"]
        question = read_question(about["label_config"])
        rest = _list_rest(project.table, {*text, label})
        rows = zip(project.table.rows, project.texts, given, rest, strict=True)
        tasks = [_make_task(question, *row) for row in rows]
        try:
            client.import_tasks(number, tasks)
        except BaseException:
            say(f"project {number} is incomplete: delete it, and run this again")
            raise
    show_line(f"{url.rstrip('/')}/projects/{number}: {count(len(tasks), 'tasks')}")
    return 0


def _list_rest(table, known):
    """Return the other cells of each row than those of `known`, list of dict."""
    keys = [key for key in table.file.columns if key not in known]
    columns = {name_once(key): table.file.cells(key) for key in keys}
    columns = {
        name: list(map(_as_json, cells))
        for name, cells in columns.items()
        if {*map(type, cells)} != {type(None)}
    }
    return [{name: x[row] for name, x in columns.items()} for row in table.rows]


def _as_json(cell):
    """Return a cell of a table as JSON holds it; dates become texts."""
    is_number = isinstance(cell, float) and math.isfinite(cell)
    return cell if is_number or isinstance(cell, int | None) else str(cell)


def _make_task(question, row, item, label, rest):
    """Return a task for a text or a pair of texts, with its label as an annotation.

    By the number of the row, from 0, and by the rest, answers find their rows again.
    """
    texts = [item] if isinstance(item, str) else item
    own = {**dict(zip(question.keys, texts, strict=True)), "row": row}
    rest = {f"column_{x}" if x in own else x: cell for x, cell in rest.items()}
    task = {"data": own | rest}
    if label is not None:
        task["annotations"] = [{"result": question.write_result(label)}]
    return task


@contextmanager
def _open(
    url,
    token_env,
    project,
    question,
    batch_size=50,
    left=None,
    no_fine_tuning=False,
    **options,
):
    """Open the session of the options of a command, and say what there is."""
    settings = ProjectSettings(url, fine_tuning=not no_fine_tuning, **options)
    options = {"batch": batch_size, "left": left, "question": question}
    with (
        _connect(url, token_env) as client,
        Bridge(client, project, settings, **options) as bridge,
    ):
        labels = count(len(bridge.session.labels), "labels")
        say(f"{len(bridge.tasks):,} {bridge.question.items}, {labels} so far")
        yield bridge


def run_pull(**options):
    """Run the command `label-studio pull`."""
    with _open(**options) as bridge:
        report(bridge.pull())
        _report(bridge)
        return 0


def run_push(**options):
    """Run the command `label-studio push`."""
    with _open(**options) as bridge:
        report(bridge.pull())
        say(f"{count(bridge.push(), 'texts')} in front")
        _report(bridge)
        return 0


def run_run(n_labels, interval, **options):
    """Run the command `label-studio run`."""
    with _open(**options) as bridge:
        try:
            bridge.run(n_labels, interval=interval)
        except KeyboardInterrupt:
            say("stopped")
        except Exception:
            say("stopped by an error; the answers and the model are written first")
            raise
        finally:
            _report(bridge)
            bridge.train_final()
        return 0


def run_backend(host, port, auth_env, every, interval, **options):
    """Run the command `label-studio backend`."""
    from ..labeling._label_studio._backend import serve_backend

    def announce(url):
        say(f"connect {url} in the settings of the project, under Model")

    auth = auth_env and _read_variable("--auth-env", auth_env)
    with _open(**options) as bridge:
        try:
            serve_backend(
                bridge,
                host=host,
                port=port,
                auth=auth or None,
                announce=announce,
                every=every,
                interval=interval,
            )
        finally:
            _report(bridge)
        return 0


def _connect(url, token_env):
    return Client(url, _read_variable("--token-env", token_env))


def _read_variable(option, name):
    """Return an environment variable, so that no secret is on a command line."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise ValueError(
            f"argument {option}: the environment variable {name} must hold a secret, "
            "got none. Set it; the token is in your account in Label Studio."
        )
    return value


def _report(bridge):
    """Write the answers, and print where they are."""
    path, session = bridge.export(), bridge.session
    labels = count(len(session.labels), "labels")
    show_line(f"{path}: {labels}, {len(session.skipped):,} skipped")
