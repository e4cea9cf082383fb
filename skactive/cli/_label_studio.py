"""The commands `label-studio`: a session whose questions are asked in Label Studio."""

import os

from ..labeling._label_studio._bridge import Bridge, report
from ..labeling._label_studio._client import Client
from ..labeling._label_studio._config import read_question, write_config
from ..labeling._project import Project, save_model
from ..learner import ActiveLearner
from ._options import say
from ._train import make_model, train_final


def run_create(args):
    """Run the command `label-studio create`."""
    text = args.text[0] if len(args.text) == 1 else args.text
    project = Project(args.file, text, args.label or "label")
    given = [project.given.get(row) for row in project.rows]
    classes = args.classes or list(dict.fromkeys(x for x in given if x is not None))
    if len(classes) < 2:
        raise ValueError(
            f"argument --classes: must name at least two classes, got {classes}; "
            f"{args.file} gives no others."
        )
    pair = isinstance(text, list)
    config = write_config(classes, multiple=args.multiple, pair=pair)
    for message in project.messages if args.label else ():
        say(message)
    with _connect(args) as client:
        about = client.create_project(args.title or project.path.stem, config)
        number = about["id"]
        question = read_question(about["label_config"])
        tasks = [
            _make_task(question, item, label)
            for item, label in zip(project.texts, given, strict=True)
        ]
        try:
            client.import_tasks(number, tasks)
        except BaseException:
            say(f"project {number} is incomplete: delete it, and run this again")
            raise
    print(f"{args.url.rstrip('/')}/projects/{number}: {len(tasks):,} tasks")
    return 0


def _make_task(question, item, label):
    """Return a task for a text or a pair of texts, with its label as an annotation."""
    texts = [item] if isinstance(item, str) else item
    task = {"data": dict(zip(question.keys, texts, strict=True))}
    if label is not None:
        task["annotations"] = [{"result": question.write_result(label)}]
    return task


def run_pull(args):
    """Run the command `label-studio pull`."""
    with _connect(args) as client, _open(args, client) as bridge:
        report(bridge.pull(), say)
        return _report(args, bridge)


def run_push(args):
    """Run the command `label-studio push`."""
    with _connect(args) as client, _open(args, client) as bridge:
        report(bridge.pull(), say)
        say(f"{bridge.push()} texts are asked first")
        return _report(args, bridge)


def run_run(args):
    """Run the command `label-studio run`."""
    with _connect(args) as client, _open(args, client) as bridge:
        try:
            bridge.run(args.n, interval=args.interval, say=say)
        except KeyboardInterrupt:
            say("stopped")
        status = _report(args, bridge)
        _train(args, bridge)
        return status


def run_backend(args):
    """Run the command `label-studio backend`."""
    from ..labeling._label_studio._backend import serve_backend

    def announce(url):
        say(f"connect {url} in the settings of the project, under Model")

    auth = args.auth_env and _read_variable("--auth-env", args.auth_env)
    with _connect(args) as client, _open(args, client) as bridge:
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
        return _report(args, bridge)


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
    def make_learner(folder, multi_label=False):
        target = "multi-label" if multi_label else "single-label"
        model = make_model(args, folder, target)
        return ActiveLearner(model, args.strategy, random_state=0)

    say("reading the tasks")
    bridge = Bridge(
        client,
        args.project,
        args.session,
        make_learner,
        batch=args.batch,
        left=args.left,
        question=args.question,
    )
    say(f"{len(bridge.tasks):,} texts, {len(bridge.session.labels):,} labels so far")
    return bridge


def _report(args, bridge):
    """Write the answers, and print where they are."""
    session, path = bridge.session, bridge.folder / "answers.csv"
    session.export(path, what="answers")
    print(f"{path}: {len(session.labels):,} labels, {len(session.skipped):,} skipped")
    return 0


def _train(args, bridge):
    """Train and save a model for all labels, if there are two different ones."""
    session, question = bridge.session, bridge.question
    labels = session.labels
    rest = [session.item(id) for id in bridge.tasks if id not in labels]
    data = [session.item(id) for id in labels], [*labels.values()], rest
    try:
        model, classes = train_final(args, session, bridge.folder, data)
        if model is None:
            return
        about = {"text": list(question.keys), "label": question.name}
        if question.multiple:
            about |= {"target": "multi-label", "classes": classes, "separator": "|"}
        say(f"the model is in {save_model(model, bridge.folder, about)}")
    except KeyboardInterrupt:
        say("stopped; the labels are written")
