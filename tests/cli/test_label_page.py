"""The command `label` with its page: the first screen and the end, over HTTP."""

import json
import shlex
import threading
from functools import partial

import httpx
import pytest

from skactive.cli import main
from skactive.labeling._address import find_page
from skactive.project import Project, _project
from skactive.project._ending import Progress, _measure
from skactive.session import Estimate, read_manifest

from .._tables._helpers import read_columns, write_columns

GOOD = {"good": "worth seeing", "bad": ""}


@pytest.fixture
def table(tmp_path):
    """A table of texts without any label."""
    texts = [f"a {['good', 'bad'][i % 2]} film {i}" for i in range(40)]
    columns = {"text": texts, "author": [f"author {i}" for i in range(40)]}
    write_columns(tmp_path / "films.csv", columns)
    return tmp_path / "films.csv"


@pytest.fixture
def label(table, tiny_bert, monkeypatch, capsys):
    """Run `skactive label`; `drive(post)` takes the place of the browser.

    It returns the status, what was printed, and what the page was shown in the end.
    """

    def label(drive, *options, file=table, columns=("--text", "text")):
        endings, failed = [], []

        def post(url, method, **arguments):
            reply = httpx.post(f"{url}api/{method}", json=arguments, timeout=60)
            return reply.json() if reply.status_code == 200 else reply

        def browse(url):
            try:
                listener = threading.Thread(target=listen, args=[url])
                listener.start()
                drive(lambda method, **arguments: post(url, method, **arguments))
            except BaseException as exc:
                failed.append(exc)
            httpx.post(f"{url}api/finish", json={})
            listener.join()

        def listen(url):
            with httpx.stream("GET", f"{url}events", timeout=60) as response:
                kind = None
                for line in response.iter_lines():
                    kind = line.removeprefix("event: ") if "event:" in line else kind
                    if kind == "ending" and line.startswith("data: "):
                        endings.append(json.loads(line.removeprefix("data: ")))

        monkeypatch.setattr("webbrowser.open", browse)
        place = ["label", str(file), *columns]
        place += ["--label", "label"] if columns and "--label" not in options else []
        status = main([*place, "--model", tiny_bert, *options])
        assert not failed, failed[0]
        return status, capsys.readouterr(), endings

    return label


def _begin(post, kind="single-label", classes=None, n_labels=30):
    classes = {} if kind == "regression" else classes or GOOD
    return post("begin", kind=kind, classes=classes, n_labels=n_labels)


def _answer(post, label, n=4):
    for _ in range(n):
        (item,) = post("next", client="tab", n_queries=1)
        said = label(item["text"])
        post("answer", id=item["id"], label=said, client="tab", seconds=1.0)


def _truth(text):
    return "good" if "good" in text else "bad"


KINDS = {
    "single-label": _truth,
    "multi-label": lambda text: [_truth(text)],
    "regression": lambda text: 1.5 if "good" in text else -1.0,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_first_screen_chooses_really_works(label, table, kind):
    def begin(post):
        state = post("state")
        assert state["start"]["kinds"] == list(KINDS)
        assert state["start"]["texts"] == [f"a {x} film {i}" for i, x in
            enumerate(["good", "bad", "good"])]  # fmt: skip
        assert post("next", client="tab") == []
        assert "Choose them on the page" in post("history").json()["error"]
        state = _begin(post, kind)
        assert (state["target"], state["n_labels"]) == (kind, 30)
        assert "start" not in state
        assert _begin(post, "single-label")["target"] == kind  # from another tab
        _answer(post, KINDS[kind])

    status, shown, endings = label(begin)
    assert status == 0
    assert "the page asks for the classes" in shown.err
    cells = read_columns(table.with_name("films.labeled.csv"))
    for text, said, source in zip(
        cells["text"], cells["label"], cells["label_source"], strict=True
    ):
        if source == "person":
            expected = KINDS[kind](text)
            assert said == (expected[0] if kind == "multi-label" else str(expected))
    assert cells["label_source"].count("person") == 4
    last = endings[-1]
    assert (last["done"], last["error"], last["n_labeled"]) == (True, None, 4)
    assert last["sources"] == {"given": 0, "person": 4, "model": 36}
    assert last["file"].endswith("films.labeled.csv")
    assert last["predict"].startswith("skactive predict ")
    expected = f"skactive label {table} --text text --label label --model "
    assert last["command"].startswith(expected)
    if kind == "regression":
        assert last["classes"] == []
    else:
        assert [entry["name"] for entry in last["classes"]] == ["good", "bad"]
        assert sum(entry["person"] for entry in last["classes"]) == 4
        assert "good: 0 given, " in shown.err  # the terminal says the same

    def go_on(post):  # the same command
        state = post("state")
        assert "start" not in state
        assert (state["target"], state["n_labels"]) == (kind, 30)
        assert state["n_labeled"] == 4
        about = [entry["description"] for entry in state["classes"]]
        assert about == ([] if kind == "regression" else ["worth seeing", ""])

    assert label(go_on)[0] == 0


def test_descriptions_of_the_first_screen_are_learned_from(label, table):
    def begin(post):
        _begin(post)
        (item,) = post("next", client="tab", n_queries=1)
        assert item["prediction"] in GOOD or item["prediction"] is None

    label(begin)
    manifest = read_manifest(str(table.with_suffix(".skactive") / "session"))
    assert manifest["descriptions"] == {"good": "worth seeing", "bad": ""}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "both", "classes": GOOD}, "'kind' must be"),
        ({"kind": "single-label", "classes": {"good": ""}}, "at least two"),
        ({"kind": "single-label", "classes": ["good", "bad"]}, "at least two"),
        ({"kind": "single-label", "classes": {" ": "", "bad": ""}}, "at least two"),
        ({"kind": "regression", "classes": GOOD}, "empty for numbers"),
        ({"kind": "single-label", "classes": GOOD, "n_labels": 0}, "'n_labels'"),
        ({"kind": "single-label", "classes": {"a": 1, "b": ""}}, "descriptions"),
    ],
)
def test_a_first_screen_that_is_wrong_is_said(label, table, arguments, message):
    def begin(post):
        reply = post("begin", **arguments)
        assert reply.status_code == 400
        assert message in reply.json()["error"]

    status, shown, _ = label(begin)
    assert status == 0
    assert "nothing was begun" in shown.err
    assert not table.with_name("films.labeled.csv").exists()


def test_a_class_of_the_file_must_be_named(label, tmp_path):
    texts = [f"a good film {i}" for i in range(9)]
    labels = ["good", *[None] * 8]
    write_columns(tmp_path / "one.csv", {"text": texts, "label": labels})

    def begin(post):
        assert post("state")["start"]["names"] == ["good"]
        reply = _begin(post, classes={"fine": "", "bad": ""})
        assert "must hold every label" in reply.json()["error"]
        assert [x["name"] for x in _begin(post)["classes"]] == ["good", "bad"]

    assert label(begin, file=tmp_path / "one.csv")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [(["--max-requests", "40"], "regression", "'machine' must"),
     (["--max-tokens", "13000"], "single-label", "'max_tokens' allows 13,000")],
)  # fmt: skip
def test_what_a_language_model_cannot_do_can_be_chosen_again(
    label, options, kind, message
):
    def begin(post):
        long = {"good": "worth seeing " * 200, "bad": ""}
        assert message in _begin(post, kind, long).json()["error"]
        assert "start" in post("state")
        assert [x["name"] for x in _begin(post)["classes"]] == ["good", "bad"]

    machine = ["--machine", "http://localhost:1", "--machine-model", "m"]
    assert label(begin, *machine, *options)[0] == 0


def test_a_line_of_options_needs_no_first_screen(label):
    def look(post):
        state = post("state")
        assert "start" not in state
        assert state["n_labels"] is None

    label(look, "--classes", "good,bad")


@pytest.mark.parametrize("names", [["author"], ["author,text"]])
def test_other_columns_are_shown_with_the_text(label, names):
    def look(post):
        for item in post("next", client="tab", n_queries=2):
            number = item["text"].split()[-1]
            assert item["columns"]["author"] == f"author {number}"
            assert len(item["columns"]) == len(names[0].split(","))

    label(look, "--classes", "good,bad", "--show", *names)


def test_a_column_to_show_that_is_missing_is_said(label, capsys, table, tiny_bert):
    place = ["label", str(table), "--text", "text", "--label", "label"]
    assert main([*place, "--model", tiny_bert, "--show", "autor"]) == 1
    assert "Did you mean 'author'?" in capsys.readouterr().err


def test_answers_after_the_end_are_refused_and_kept_by_the_page(label, monkeypatch):
    def drive(post):
        _begin(post)
        _answer(post, _truth, 1)
        post("finish")
        reply = post("answer", id="3", label="good", client="tab")
        assert reply.status_code == 503  # the page sends it again the next time
        may_end.set()

    may_end, finish = threading.Event(), _project.finish
    monkeypatch.setattr(
        _project, "finish", lambda *args: may_end.wait(60) and finish(*args)
    )
    _, shown, endings = label(drive)
    assert endings[-1]["n_labeled"] == 1
    assert "1 labels by people" in shown.err


def test_a_failure_in_the_end_is_shown(label, monkeypatch):
    def fail(*args):
        raise OSError("the disk is full")

    monkeypatch.setattr(Project, "train_final", fail)

    def drive(post):
        _begin(post)
        _answer(post, _truth)

    status, shown, endings = label(drive)
    assert status == 1
    assert "are safe in" in shown.err
    assert (endings[-1]["done"], endings[-1]["error"]) == (False, "the disk is full")


def test_the_steps_of_the_end_and_how_far_they_are():
    ending = Progress(lambda: 0.25)
    assert ending.state() is None
    ending.add(command="the command")
    ending.begin("features")
    assert ending.state()["steps"] == [
        {"name": "Reading the texts", "past": False, "seconds": 0, "share": 0.25}
    ]
    ending.begin("fine-tuning")
    ending.report(0.5)
    first, second = ending.state()["steps"]
    assert (first["past"], first["share"]) == (True, None)
    assert (second["name"], second["share"]) == ("Fine-tuning the encoder", 0.5)
    ending.begin("training")
    assert ending.state()["steps"][2]["share"] is None  # nobody knows
    ending.finish()
    assert all(step["past"] for step in ending.state()["steps"])


def test_a_second_command_opens_the_first_screen_that_is_shown(
    label, table, monkeypatch, capsys
):
    def drive(post):
        opened = []
        monkeypatch.setattr("webbrowser.open", opened.append)
        place = ["label", str(table), "--text", "text", "--label", "label"]
        assert main(place) == 0
        assert opened == [find_page(table.with_suffix(".skactive"))]
        assert f"{table} is open at {opened[0]}" in capsys.readouterr().err
        _begin(post)

    assert label(drive)[0] == 0
    assert find_page(table.with_suffix(".skactive")) is None


def test_the_accuracy_is_only_said_of_texts_drawn_at_random(caplog):
    caplog.set_level("INFO", "skactive.project")

    class Project:
        counts = []

        class desk:
            def quality():
                return {"sentence": "Too early to tell: why.", "agreement": ""}

        class session:
            estimate = partial(Estimate, 90, 0.851, (0.667, 0.942), 12)

    ending = Progress(lambda: 1.0)
    _measure(Project, ending)
    said = (
        "About 85 % of the pool is predicted right (67-94 %), from 12 drawn at random."
    )
    assert ending.state()["accuracy"] == said
    assert said in caplog.messages
    Project.session.estimate = partial(Estimate, 90, 0.851, (0.667, 0.942))
    ending = Progress(lambda: 1.0)
    _measure(Project, ending)
    assert ending.state()["accuracy"] == "Too early to tell: why."


QUESTIONS = ("--label", "tone:good,bad", "--label", "kind:film,book,play")
QUESTIONS += ("--label", "score:number", "--no-adapt", "--max-length", "16")


def _film(text):
    return ["film" if "good" in text else "book"]


def _reply(post, n):
    """Answer the questions of the next texts; an outbox sends each answer twice."""
    kind = {"good": "film", "bad": "book"}
    said = {
        "kind": lambda text: kind[_truth(text)],
        "score": KINDS["regression"],
        "tags": _film,
        "tone": _truth,
    }
    for _ in range(n):
        for shown in post("next", client="tab", n_queries=1):
            for name, item in shown["questions"].items():
                label = said[name](item["text"])
                about = {"id": shown["id"], "label": label, "question": name}
                for _ in range(2 * item["open"]):
                    state = post("answer", **about, client="tab", seconds=1.0)
                    assert state["question"] == name


@pytest.mark.slow
def test_several_questions_from_the_command_to_one_table(label, table):
    def begin(post):
        state = post("state")
        names = [entry["name"] for entry in state["questions"]]
        assert names == ["tone", "kind", "score"]
        assert post("state", question="score")["target"] == "regression"
        assert "must be one of" in post("state", question="sense").json()["error"]
        _reply(post, 12)

    status, shown, endings = label(begin, *QUESTIONS)
    assert status == 0, shown.err
    out = table.with_name("films.labeled.csv")
    for name in ("tone", "kind", "score"):
        assert f"{out}: {name}: 0 given, 12 person" in shown.out
        assert f"question '{name}':" in shown.err
    cells = read_columns(out)
    said = [i for i, x in enumerate(cells["tone_source"]) if x == "person"]
    assert len(said) == 12
    assert [cells["tone"][i] for i in said] == [_truth(cells["text"][i]) for i in said]
    assert [i for i, x in enumerate(cells["kind_source"]) if x == "person"] == said
    last = endings[-1]
    assert (last["done"], last["error"], last["n_labeled"]) == (True, None, 36)
    assert {*last["questions"]} == {"tone", "kind", "score"}
    tone = last["questions"]["tone"]
    assert tone["file"].endswith("films.labeled.csv")
    assert "films.kind.skactive/model" in last["questions"]["kind"]["predict"]
    typed = shlex.split(tone["command"])
    assert typed[:4] == ["skactive", "label", str(table), "--text"]
    assert typed[-len(QUESTIONS) :] == [*QUESTIONS]
    # The same command continues: neither classes nor answers are named again.
    again = [x.partition(":")[0] if "," in x else x for x in QUESTIONS]
    status, shown, _ = label(lambda post: _reply(post, 1), *again)
    assert "tone: 0 given, 13 person" in shown.out


def _question(name, kind="single-label", classes=None):
    return {"name": name, "kind": kind, "classes": GOOD if classes is None else classes}


FURTHER = [_question("tags", "multi-label", {"film": "moving pictures", "book": ""})]
FURTHER += [_question("score", "regression", {})]


@pytest.mark.slow
@pytest.mark.parametrize("folder", [(), ("--folder", "mine")])
def test_several_questions_of_the_first_screen(label, table, monkeypatch, folder):
    monkeypatch.chdir(table.parent)

    def begin(post):
        assert post("state")["start"]["name"] == "label"
        first = _question("tone") | {"more": FURTHER, "n_labels": 30}
        for _ in range(2):  # the second is from another tab
            state = post("begin", **first)
            assert [x["name"] for x in state["questions"]] == ["tone", "tags", "score"]
            assert [x["goal"] for x in state["questions"]] == [30, 30, 30]
        assert [x["description"] for x in state["classes"]] == ["worth seeing", ""]
        assert post("state", question="tags")["target"] == "multi-label"
        _reply(post, 4)

    options = *folder, "--no-adapt", "--max-length", "16"
    status, shown, endings = label(begin, *options)
    assert status == 0, shown.err
    (out,) = table.parent.glob("*.labeled.csv")
    assert f"{out.name}: tags: 0 given, 4 person" in shown.out
    cells = read_columns(out)
    for i in (i for i, x in enumerate(cells["tone_source"]) if x == "person"):
        assert cells["tone"][i] == _truth(cells["text"][i])
        assert cells["tags"][i] == _film(cells["text"][i])[0]
        assert float(cells["score"][i]) == KINDS["regression"](cells["text"][i])
    assert endings[-1]["done"]
    tone = endings[-1]["questions"]["tone"]
    assert tone["command"].startswith(f"skactive label {table} --text text --label l")

    def go_on(post):  # neither names nor kinds nor the goal are asked again
        state = post("state")
        assert "start" not in state
        about = [(x["name"], x["goal"]) for x in state["questions"]]
        assert about == [("tone", 30), ("tags", 30), ("score", 30)]
        assert post("state", question="tags")["target"] == "multi-label"
        assert post("state", question="score")["target"] == "regression"
        _reply(post, 1)

    assert "tags: 0 given, 5 person" in label(go_on, *options)[1].out
    assert "tags: 0 given, 6 person" in label(go_on, *options, columns=())[1].out
    (same,) = table.parent.glob("*.labeled.csv")
    assert same == out


def test_questions_of_the_first_screen_that_are_wrong_can_be_chosen_again(label, table):
    write_columns(table, read_columns(table) | {"topic": ["law", *[None] * 39]})

    def begin(post):
        for name, further, message in (
            ("tone", _question("tone"), "another one for each question"),
            ("tone", _question("Tone "), "another one for each question"),
            ("", _question("tone"), "another one for each question"),
            ("tone", _question("a:b"), "without a colon, got ['tone', 'a:b']"),
            ("tone", _question("kind", classes={"a": ""}), "for 'kind'"),
            ("tone", _question("text"), "must be another column than the texts"),
            ("tone", _question("topic"), "label of column 'topic', which has 'law'"),
            ("tone", {"name": "kind"}, "missing"),
        ):
            reply = post("begin", **_question(name), more=[further])
            assert reply.status_code == 400, name
            assert message in reply.json()["error"]
            assert "start" in post("state")
        assert not table.with_suffix(".skactive").joinpath("session").exists()
        state = post("begin", **_question("tone"), more=[_question("kind")])
        assert [entry["name"] for entry in state["questions"]] == ["tone", "kind"]

    status, shown, _ = label(begin, "--no-adapt", "--max-length", "16")
    assert status == 0, shown.err


@pytest.mark.slow
def test_a_folder_says_what_was_begun_by_the_command(label, table):
    depends = ("--only-if", "kind:tone=good")
    label(lambda post: _reply(post, 3), *QUESTIONS, *depends)

    def look(post):
        asked = {x["name"]: x["only_if"] for x in post("state")["questions"]}
        assert asked == {"tone": None, "kind": ["tone", "good"], "score": None}
        counts = [x["n_labeled"] for x in post("state")["questions"]]
        assert counts[0] == counts[2] > counts[1]

    status, shown, _ = label(look, *QUESTIONS[-3:], columns=())
    assert status == 0, shown.err
    record = table.with_suffix(".skactive") / "project.json"
    damaged = json.loads(record.read_text("utf-8")) | {"questions": ["tone"]}
    record.write_text(json.dumps(damaged), "utf-8")
    status, shown, _ = label(look, *QUESTIONS[-3:])
    assert status == 1
    assert "project.json is damaged" in shown.err


def test_a_folder_says_what_one_question_was_begun_for(label, capsys, table):
    def look(post):
        assert [x["name"] for x in post("state")["classes"]] == ["good", "bad"]
        _answer(post, _truth, 1)

    status, shown, _ = label(look, columns=())
    assert status == 1
    assert "name the column of texts, out of 'text', 'author', got ()" in shown.err
    label(look, "--label", "tone:good,bad", "--no-adapt")
    status, shown, _ = label(look, "--no-adapt", columns=())
    assert "0 given, 2 person" in shown.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--label", "tone", "--label", "tone:a,b"), "--label tone is given twice"),
        (("--label", "tone:a"), "must be at least two different names"),
        (("--label", "tone:a,b", "--classes", "c,d"), "--classes is for one --label"),
        (("--label", "a:x,y", "--label", "b:x,y", "--terminal"), "--terminal asks one"),
        (("--label", "a:x,y", "--label", "b"), "name the classes of 'b'"),
        (("--label", "a:x,y", "--only-if", "b:a=x"), "--only-if needs several"),
        (
            ("--label", "a:x,y", "--label", "b:x,y", "--only-if", "b:a"),
            "--only-if must be QUESTION:OTHER=LABEL, got 'b:a'",
        ),
        (
            ("--label", "a:x,y", "--label", "b:x,y", "--only-if", "b:a=z"),
            "must name a class of 'a' for 'b'",
        ),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(label, options, message):
    status, shown, _ = label(lambda post: None, *options)
    assert status in (1, 2)
    assert message in shown.err


def test_a_column_may_have_a_colon(label, table):
    columns = read_columns(table)
    write_columns(table, columns | {"is:odd": ["yes", "no", *[None] * 38]})

    def begin(post):
        assert [x["name"] for x in post("state")["classes"]] == ["yes", "no"]
        _answer(post, lambda text: "yes", 2)

    status, shown, _ = label(begin, "--label", "is:odd", "--no-adapt")
    assert status == 0, shown.err
    assert "is:odd" in read_columns(table.with_name("films.labeled.csv"))
