"""The commands `label-studio`: a session with Label Studio as its front end."""

import json
import math
import os

from .._storage._files import write_atomic
from ..labeling._label_studio._bridge import Bridge, count, report
from ..labeling._label_studio._client import Client
from ..labeling._label_studio._config import read_question, write_config
from ..labeling._project import Project, save_model
from ..learner import ActiveLearner
from ..registry import get_strategy
from ._options import say
from ._train import make_model, train_final


def run_create(args):
    """Run the command `label-studio create`."""
    text = args.text[0] if len(args.text) == 1 else args.text
    project = Project(args.file, text, args.label or "label")
    labels = project.given if args.label else {}
    given = [labels.get(row) for row in project.rows]
    classes = args.classes or list(dict.fromkeys(x for x in given if x is not None))
    if len(classes) < 2:
        raise ValueError(
            f"argument --classes: must name at least two classes, got {classes}; "
            f"{args.file} gives no others."
        )
    pair = isinstance(text, list)
    config = write_config(classes, multiple=args.multi_label, pair=pair)
    for message in project.messages if args.label else ():
        say(message)
    with _connect(args) as client:
        about = client.create_project(args.title or project.path.stem, config)
        number = about["id"]
        question = read_question(about["label_config"])
        rest = _list_rest(args, project)
        rows = zip(project.rows, project.texts, given, rest, strict=True)
        tasks = [_make_task(question, *row) for row in rows]
        try:
            client.import_tasks(number, tasks)
        except BaseException:
            say(f"project {number} is incomplete: delete it, and run this again")
            raise
    print(f"{args.url.rstrip('/')}/projects/{number}: {count(len(tasks), 'tasks')}")
    return 0


def _list_rest(args, project):
    """Return the cells of each row without texts and label, list of dict."""
    columns = {
        name: list(map(_as_json, cells))
        for name, cells in project.columns.items()
        if name not in (*args.text, args.label) and {*map(type, cells)} != {type(None)}
    }
    return [{name: x[row] for name, x in columns.items()} for row in project.rows]


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


def run_pull(args):
    """Run the command `label-studio pull`."""
    with _connect(args) as client, _open(args, client) as bridge:
        report(bridge.pull(), say)
        _report(bridge)
        return 0


def run_push(args):
    """Run the command `label-studio push`."""
    with _connect(args) as client, _open(args, client) as bridge:
        report(bridge.pull(), say)
        say(f"{count(bridge.push(), 'texts')} in front")
        _report(bridge)
        return 0


def run_run(args):
    """Run the command `label-studio run`."""
    with _connect(args) as client, _open(args, client) as bridge:
        try:
            bridge.run(args.n_labels, interval=args.interval, say=say)
        except KeyboardInterrupt:
            say("stopped")
        except Exception:
            say("stopped by an error; the answers and the model are written first")
            raise
        finally:
            _report(bridge)
            _train(args, bridge)
        return 0


def run_backend(args):
    """Run the command `label-studio backend`."""
    from ..labeling._label_studio._backend import serve_backend

    def announce(url):
        say(f"connect {url} in the settings of the project, under Model")

    auth = args.auth_env and _read_variable("--auth-env", args.auth_env)
    with _connect(args) as client, _open(args, client) as bridge:
        try:
            serve_backend(
                bridge,
                host=args.host,
                port=args.port,
                auth=auth or None,
                announce=announce,
                every=args.every,
                interval=args.interval,
                say=say,
            )
        finally:
            _report(bridge)
        return 0


def _connect(args):
    return Client(args.url, _read_variable("--token-env", args.token_env))


def _read_variable(option, name):
    """Return an environment variable, so that no secret is on a command line."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise ValueError(
            f"argument {option}: the environment variable {name} must hold a secret, "
            "got none. Set it; the token is in your account in Label Studio."
        )
    return value


def _open(args, client):
    if getattr(args, "strategy", None):
        get_strategy(args.strategy)  # checked before anything is made

    def make_learner(folder, multi_label=False):
        path = folder / "options.json"
        known = _recall(args, path)
        target = "multi-label" if multi_label else "single-label"
        model = make_model(args, folder, target)
        write_atomic(path, json.dumps(known).encode())
        return ActiveLearner(model, args.strategy, random_state=0)

    bridge = Bridge(
        client,
        args.project,
        args.folder,
        make_learner,
        batch=getattr(args, "batch_size", 50),  # only where batches are chosen
        left=getattr(args, "left", None),
        question=args.question,
        say=say,
    )
    labels = count(len(bridge.session.labels), "labels")
    say(f"{len(bridge.tasks):,} {bridge.question.items}, {labels} so far")
    return bridge


def _recall(args, path):
    """Set the strategy and the model to those of the folder if none are named.

    Return both, dict of name to value.
    """
    known = {"strategy": "margin", "model": None}
    if path.exists():
        known = json.loads(path.read_text(encoding="utf-8"))
    known = {name: getattr(args, name, None) or known[name] for name in known}
    vars(args).update(known)
    return known


def _report(bridge):
    """Write the answers, and print where they are."""
    path, session = bridge.export(), bridge.session
    labels = count(len(session.labels), "labels")
    print(f"{path}: {labels}, {len(session.skipped):,} skipped")


def _train(args, bridge):
    """Train and save a model for all labels, if there are two different ones."""
    session, question = bridge.session, bridge.question
    labels = session.labels
    rest = [text for id, text in bridge.tasks.items() if id not in labels]
    data = [bridge.tasks[id] for id in labels], [*labels.values()], rest
    try:
        model, classes = train_final(args, session, bridge.folder, data)
        if model is None:
            say("no model yet: it needs labels of two classes")
            return
        about = {"text": list(question.keys), "label": question.name}
        if question.multiple:
            about |= {"target": "multi-label", "classes": classes, "separator": "|"}
        say(f"the model is in {save_model(model, bridge.folder, about)}")
    except KeyboardInterrupt:
        say("stopped; the labels are written")
