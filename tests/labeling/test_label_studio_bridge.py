"""The bridge, over a Label Studio in memory: answers, order, interruptions."""

import csv
import json
import threading
from datetime import timedelta
from itertools import count

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.labeling._label_studio._bridge import Bridge
from skactive.labeling._label_studio._client import (
    Client,
    LabelStudioError,
    NotFoundError,
    UnavailableError,
)
from skactive.labeling._label_studio._config import write_config
from skactive.project import ProjectSettings, Trainer

from ._fake_label_studio import FakeLabelStudio, choose
from ._helpers import listening

TEXTS = [f"{('fine', 'poor')[i % 2]} {i % 5} thing number {i}" for i in range(24)]
ANN, BOB = "ann@example.com", "bob@example.com"


@pytest.fixture(autouse=True)
def classifier(monkeypatch):
    """A classifier of words takes the place of that of the settings."""
    monkeypatch.setattr(
        Trainer,
        "make_learner",
        lambda trainer: make_learner(trainer.target == "multi-label"),
    )


def make_learner(multi_label):
    model = LogisticRegression()
    model = OneVsRestClassifier(model) if multi_label else model
    estimator = make_pipeline(TfidfVectorizer(), model)
    return ActiveLearner(estimator, cold_start="random", random_state=0)


class Site:
    """A project in a server in memory, and bridges to it."""

    def __init__(self, folder, texts=TEXTS, people=(ANN, BOB), **config):
        self.server, self.folder = FakeLabelStudio(*people), folder
        self.opened, self.url = [], "http://fake"
        with self.client() as client:
            config = write_config(config.pop("classes", ["good", "bad"]), **config)
            self.project = client.create_project("texts", config)["id"]
            keys = ["text"] if isinstance(texts[0], str) else ["text_1", "text_2"]
            rows = [[text] if isinstance(text, str) else text for text in texts]
            self.add(*(dict(zip(keys, row, strict=True)) for row in rows))
        self.ann = self.server.person(ANN, self.project)
        self.bob = self.server.person(BOB, self.project)

    def client(self, **options):
        return Client(
            *(self.url, f"legacy-{ANN}"),
            transport=self.server.transport,
            sleep=lambda seconds: None,
            **options,
        )

    def bridge(self, *, batch=4, left=0, folder=None, n_retries=0, **options):
        self.close()
        client = self.client(n_retries=n_retries)
        settings = ProjectSettings(self.url, folder=folder or self.folder)
        bridge = Bridge(
            client, self.project, settings, batch=batch, left=left, **options
        )
        self.opened.append(bridge)
        return bridge

    def close(self):
        while self.opened:
            self.opened.pop().close()

    def add(self, *data):
        with self.client() as client:
            return client.import_tasks(self.project, [{"data": x} for x in data])

    def truth(self):
        """Return what people said, (task, email) to label, and the skipped tasks."""
        tasks = self.ann.ask("GET", "/api/tasks/", project=self.project, fields="all")
        labels, skipped = {}, set()
        for task in tasks["tasks"]:
            annotations = sorted(task["annotations"], key=lambda a: a["updated_at"])
            for annotation in annotations:
                email = self.server.users[annotation["completed_by"]]["email"]
                for region in annotation["result"]:
                    labels[task["id"], email] = region["value"]["choices"][0]
            if annotations and all(a["was_cancelled"] for a in annotations):
                skipped.add(task["id"])
        return labels, skipped


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path / "bridge")
    yield site
    site.close()


@pytest.fixture
def alone(tmp_path):
    """A site with one person, who gets the tasks in the order of their scores."""
    site = Site(tmp_path / "bridge", people=[ANN])
    yield site
    site.close()


def recorded(bridge):
    """Return what a session holds, as `Site.truth` does."""
    labels = {
        (bridge.number(id), by): label
        for id, answers in bridge.session.answers.items()
        for by, label in answers.items()
    }
    return labels, {bridge.number(id) for id in bridge.session.skipped}


def shown(site, n=4):
    """Return the next `n` tasks that a person gets, and answer them."""
    found = []
    for _ in range(n):
        if (task := site.ann.next()) is None:
            break
        found.append(task["id"])
        site.ann.answer(task["id"], "good" if "fine" in task["data"]["text"] else "bad")
    return found


# Answers ------------------------------------------------------------------------------


def test_labels_skips_changes_and_deletes_of_two_people_arrive(site):
    bridge = site.bridge()
    first = site.ann.answer(1, "good", lead_time=7.25)
    site.bob.answer(1, "bad")
    site.bob.skip(2)
    assert str(bridge.pull()) == "2 labels, 1 skip"
    assert recorded(bridge) == ({(1, ANN): "good", (1, BOB): "bad"}, {2})
    (id,) = bridge.session.answers
    assert bridge.session.history(id)[0]["seconds"] == 7.25
    site.ann.change(first["id"], "bad")
    site.bob.clear(2)
    bridge.pull()
    assert recorded(bridge) == ({(1, ANN): "bad", (1, BOB): "bad"}, set())
    site.ann.delete(first["id"])
    assert str(bridge.pull()) == "1 withdrawn"
    assert recorded(bridge) == site.truth() == ({(1, BOB): "bad"}, set())


def test_answers_that_were_given_before_the_bridge_arrive(site):
    site.ann.answer(3, "good")
    bridge = site.bridge()
    bridge.pull()
    assert recorded(bridge) == ({(3, ANN): "good"}, set())


def test_a_second_pull_records_nothing(site):
    site.ann.answer(3, "good")
    site.bob.skip(4)
    bridge = site.bridge()
    bridge.pull()
    before = bridge.session._core.state.seq
    assert not bridge.pull()
    assert not site.bridge().pull()
    assert site.opened[0].session._core.state.seq == before


def test_of_several_annotations_by_one_person_the_newest_label_counts(site):
    site.ann.answer(1, "good")
    site.ann.answer(1, "bad")
    site.ann.skip(1)
    bridge = site.bridge()
    bridge.pull()
    assert recorded(bridge) == ({(1, ANN): "bad"}, set())


def test_an_annotation_without_a_choice_is_no_answer(site):
    site.ann.answer(1)
    bridge = site.bridge()
    assert not bridge.pull()


def test_several_classes_for_a_text_arrive_as_lists(tmp_path):
    site = Site(tmp_path, classes=["a", "b", "c"], multiple=True)
    bridge = site.bridge()
    site.ann.answer(1, "a", "c")
    bridge.pull()
    assert [*bridge.session.labels.values()] == [["a", "c"]]
    assert bridge.push() == 4
    site.close()


def test_a_model_of_several_classes_is_trained_and_predicts(tmp_path):
    site = Site(tmp_path, classes=["a", "b", "c"], multiple=True)
    bridge = site.bridge()
    for task, chosen in ((1, "ab"), (2, "b"), (3, ""), (4, "a"), (5, "ab")):
        site.ann.answer(task, *chosen)
    bridge.pull()
    labels = [*bridge.session.labels.values()]
    assert labels == [["a", "b"], ["b"], [], ["a"], ["a", "b"]]
    assert bridge.push() == 4
    model = bridge.session.learner
    y = [[name in label for name in "abc"] for label in labels]
    np.testing.assert_array_equal(model.y_labeled_, np.array(y).astype(int))
    texts = [*bridge.tasks.values()]
    predicted, p = model.predict(texts), model.predict_proba(texts)
    for row, q, (result, margin) in zip(
        predicted, p, bridge.predict(texts), strict=True
    ):
        expected = [name for name, x in zip("abc", row, strict=True) if x]
        shown = [name for region in result for name in region["value"]["choices"]]
        assert shown == expected
        assert margin == pytest.approx(np.where(row, q, 1 - q).min())
    site.close()


def test_pairs_of_texts_are_one_item(tmp_path):
    pairs = [("one", "two"), ("three", "four")]
    site = Site(tmp_path, pairs, pair=True)
    bridge = site.bridge()
    assert [*bridge.tasks.values()] == pairs
    site.ann.answer(2, "bad", to_name="text_1")
    bridge.pull()
    assert [*bridge.session.labels.values()] == ["bad"]
    site.close()


def configure(site, *controls, texts='<Text name="text" value="$text"/>'):
    """Set the labeling configuration of a site."""
    config = f"<View>{texts}{''.join(controls)}</View>"
    site.server.projects[site.project]["label_config"] = config


def choose_from(*choices, name="label", more=""):
    return f'<Choices name="{name}" toName="text" {more}>{"".join(choices)}</Choices>'


GOOD, BAD = '<Choice value="good"/>', '<Choice value="bad"/>'
NESTED = (
    '<Choice value="bad"><Choice value="rude" alias="R"/><Choice value="sad"/></Choice>'
)


def test_of_nested_choices_the_last_name_is_the_class(site):
    configure(site, choose_from(GOOD, NESTED, more='allowNested="true"'))
    bridge = site.bridge()
    assert bridge.session.classes == ["good", "bad", "R", "sad"]
    site.ann.answer(1, ["bad", "R"])
    site.ann.answer(2, ["good"])
    site.ann.answer(3, "good")
    assert str(bridge.pull()) == "3 labels"
    assert not bridge.pull()
    labels = [*bridge.session.labels.values()]
    assert labels == ["R", "good", "good"]
    bridge.push()
    assert {len(x) for x in site.server.predictions.values()} == {1}


def test_several_nested_choices_arrive_as_lists(site):
    more = 'choice="multiple" allowNested="true"'
    configure(site, choose_from(GOOD, NESTED, more=more))
    bridge = site.bridge()
    site.ann.answer(1, ["bad", "R"], ["good"])
    bridge.pull()
    assert [*bridge.session.labels.values()] == [["good", "R"]]


def test_choices_of_the_same_name_are_refused(site):
    other = '<Choice value="kind"><Choice value="sad"/></Choice>'
    configure(site, choose_from(GOOD, NESTED, other))
    with pytest.raises(
        ValueError, match="must have different choices, got 'sad' twice"
    ):
        site.bridge()


def test_choices_about_regions_are_refused(site):
    configure(site, choose_from(GOOD, BAD, more='perRegion="true"'))
    for question in (None, "label"):
        with pytest.raises(
            ValueError, match="must ask about the whole text, got perRe"
        ):
            site.bridge(question=question)


def test_choices_about_regions_are_no_question_beside_those_about_texts(site):
    about = choose_from(GOOD, BAD, name="span", more='perRegion="true"')
    configure(site, about, choose_from(GOOD, BAD))
    bridge = site.bridge()
    assert bridge.question.name == "label"
    site.ann.answer(1, "good", name="span")
    assert not bridge.pull()


def test_a_text_of_the_configuration_is_no_part_of_an_item(site):
    texts = '<Text name="help" value="Read it:"/><Text name="text" value="$text"/>'
    configure(site, choose_from(GOOD, BAD), texts=texts)
    bridge = site.bridge()
    assert [*bridge.tasks.values()] == TEXTS
    assert bridge.question.items == "texts"


def test_a_question_about_a_text_of_the_configuration_is_refused(site):
    texts = '<Text name="text" value="Read it"/>'
    configure(site, choose_from(GOOD, BAD), texts=texts)
    with pytest.raises(ValueError, match="must label a <Text> with a key of the tasks"):
        site.bridge()


def test_answers_are_written_with_the_data_of_their_tasks(site):
    data = {"id": 7, "user": "ann", "tags": ["a", "b"]}
    (number,) = site.add({"text": "+1 for it", **data})
    site.ann.answer(number, "good")
    site.ann.answer(1, "bad")
    bridge = site.bridge()
    bridge.pull()
    with open(bridge.export(), encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2
    (row,) = [row for row in rows if row["text"] == "'+1 for it"]
    assert (row["task_id"], row["user"], row["tags"]) == ("7", "ann", '["a", "b"]')
    (row,) = [row for row in rows if row["text"] == TEXTS[0]]
    assert (row["task_id"], row["user"], row["tags"]) == ("", "", "")


def test_notes_arrive(site):
    config = site.server.projects[site.project]["label_config"]
    area = '<TextArea name="why" toName="text"/></View>'
    site.server.projects[site.project]["label_config"] = config.replace("</View>", area)
    bridge = site.bridge()
    region = {"from_name": "why", "to_name": "text", "type": "textarea"}
    result = [{**region, "value": {"text": ["irony"]}}]
    made = site.ann.ask("POST", "/api/tasks/1/annotations/", {"result": result})
    bridge.pull()
    assert [*bridge.session.notes.values()] == ["irony"]
    site.ann.delete(made["id"])
    bridge.pull()
    assert bridge.session.notes == {}


def test_answers_from_elsewhere_stay(site):
    bridge = site.bridge()
    id = next(iter(bridge.tasks))
    bridge.session.tell({id: "good"}, unasked=True, annotator="by hand")
    bridge.pull()
    site.bridge().pull()
    assert site.opened[0].session.answers == {id: {"by hand": "good"}}


def test_a_label_outside_the_vocabulary_is_reported_once_until_it_is_allowed(site):
    bridge = site.bridge()
    site.ann.answer(1, "other")
    site.ann.answer(2, "good")
    (message,) = bridge.pull().messages
    assert "the label 'other' of task 1 by ann@example.com is not recorded" in message
    assert not bridge.pull().messages
    assert recorded(bridge)[0] == {(2, ANN): "good"}
    project = site.server.projects[site.project]
    project["label_config"] = write_config(["good", "bad", "other"])
    site.ann.answer(3, "other")
    bridge.pull()
    assert recorded(bridge)[0] == site.truth()[0]


# Tasks --------------------------------------------------------------------------------


def test_new_tasks_join_the_pool(site):
    bridge = site.bridge()
    (number,) = site.add({"text": "a fine new text"})
    site.ann.answer(number, "good")
    bridge.pull()
    assert "a fine new text" in bridge.tasks.values()
    assert recorded(bridge)[0] == {(number, ANN): "good"}


def test_the_answers_to_a_deleted_task_are_withdrawn(site):
    bridge = site.bridge()
    site.ann.answer(1, "good")
    site.ann.answer(2, "bad")
    bridge.pull()
    site.ann.remove(1, 5)
    for _ in range(3):  # the number of tasks must be wrong twice
        bridge._full_after = 0.0
        bridge.pull()
    assert recorded(bridge) == site.truth() == ({(2, ANN): "bad"}, set())
    assert len(bridge.tasks) == len(TEXTS) - 2
    assert len(bridge.session.pool_ids) == len(TEXTS) - 2


def test_a_task_that_was_deleted_while_no_bridge_ran_is_left_out(site):
    bridge = site.bridge()
    site.ann.answer(1, "good")
    site.ann.answer(2, "bad")
    bridge.pull()
    site.ann.remove(1)
    bridge = site.bridge()
    bridge.pull()
    assert recorded(bridge) == ({(2, ANN): "bad"}, set())
    assert 1 not in map(bridge.number, bridge.session.pool_ids)


def test_a_new_task_with_an_old_number_is_another_item(site):
    bridge = site.bridge()
    last = len(TEXTS)
    site.ann.answer(last, "good")
    bridge.pull()
    site.ann.remove(last)
    assert site.add({"text": "something else"}) == [last]
    bridge.pull()
    assert recorded(bridge) == ({}, set())
    assert "something else" in bridge.tasks.values()
    assert TEXTS[-1] not in bridge.tasks.values()


def test_a_task_without_a_text_is_reported_and_left_out(site):
    (number,) = site.add({"text": ""})
    bridge = site.bridge()
    (message,) = bridge.pull().messages
    assert f"task {number} must have a text in its data under 'text'" in message
    assert len(bridge.tasks) == len(TEXTS)


def test_a_project_without_tasks_is_refused(site):
    site.ann.remove(*range(1, len(TEXTS) + 1))
    with pytest.raises(ValueError, match="project 1 must have tasks with a text"):
        site.bridge()


# Order --------------------------------------------------------------------------------


def test_people_get_the_batch_in_its_order_round_after_round(alone):
    bridge = alone.bridge()
    for _ in range(3):
        assert bridge.push() == 4
        (batch,) = bridge.session.open_batches
        assert shown(alone) == [bridge.number(id) for id in batch.ids]
        bridge.pull()
        assert bridge.session.open_batches == []
    assert recorded(bridge) == alone.truth()


def test_only_the_batch_has_the_current_version(site):
    bridge = site.bridge()
    for _ in range(2):
        shown(site)
        bridge.pull()
        bridge.push()
    with site.client() as client:
        (version,) = client.list_versions(site.project)
        found = client.list_predictions(site.project, version)
        assert client.get_project(site.project)["model_version"] == version
    (batch,) = bridge.session.open_batches
    assert found.keys() == {bridge.number(id) for id in batch.ids}
    assert all(len(predictions) == 1 for predictions in found.values())


def test_batches_of_an_earlier_folder_are_removed_but_not_its_backend(site):
    site.bridge().push()
    old = f"skactive-{site.opened[0]._key}-m7"
    result = choose("good")
    prediction = {"task": 1, "model_version": old, "score": 0.5, "result": result}
    with site.client() as client:
        client.add_predictions(site.project, [prediction])
    bridge = site.bridge(folder=site.folder.with_name("other"))
    bridge.push()
    with site.client() as client:
        assert client.list_versions(site.project) == sorted(
            [old, site.server.projects[site.project]["model_version"]]
        )


def test_the_predictions_are_those_of_the_model(site):
    bridge = site.bridge()
    bridge.push()
    shown(site)
    bridge.pull()
    bridge.push()
    (batch,) = bridge.session.open_batches
    expected = bridge.session.learner.predict(list(batch.items))
    tasks = [
        site.ann.ask("GET", f"/api/tasks/{bridge.number(id)}/") for id in batch.ids
    ]
    results = [task["predictions"][0]["result"] for task in tasks]
    found = [
        [name for x in result for name in x["value"]["choices"]] for result in results
    ]
    blind = [bridge.session.is_blind(id) for id in batch.ids]
    assert any(blind)
    assert not all(blind)
    assert found == [
        [] if hidden else [label] for hidden, label in zip(blind, expected, strict=True)
    ]


def test_two_folders_of_a_project_predict_nothing_for_the_same_tasks(site):
    def find_blind(bridge):
        return [bridge.is_blind({"id": i}, text) for i, text in enumerate(TEXTS, 1)]

    blind = find_blind(site.bridge())
    assert any(blind)
    assert not all(blind)
    other = site.bridge(folder=site.folder.with_name("other"))
    assert find_blind(other) == blind
    assert other.is_blind({"id": len(TEXTS) + 1}, "a task that was not read yet")


def test_the_next_batch_follows_what_is_left_of_the_last_one(alone):
    bridge = alone.bridge(left=2)
    bridge.push()
    (batch,) = bridge.session.open_batches
    alone.ann.answer(bridge.number(batch.ids[0]), "good")
    bridge.pull()
    assert bridge.push() == 3  # three are left: nothing is chosen
    alone.ann.answer(bridge.number(batch.ids[1]), "bad")
    bridge.pull()
    assert bridge.push() == 6
    first, second = bridge.session.open_batches
    order = [*batch.ids[2:], *second.ids]
    assert first.ids == batch.ids[2:]
    assert shown(alone, 6) == [bridge.number(id) for id in order]


def test_a_task_that_needs_a_second_annotation_stays_in_front(site):
    for task in site.server.tasks.values():
        task["overlap"] = 2
    bridge = site.bridge()
    bridge.push()
    done = [bridge.number(id) for id in bridge.session.open_batches[0].ids]
    for number in done:
        site.ann.answer(number, "good")
    site.bob.answer(done[0], "bad")
    bridge.pull()
    bridge.push()
    with site.client() as client:
        (version,) = client.list_versions(site.project)
        asked = client.list_predictions(site.project, version).keys()
    assert asked > {*done[1:]}
    assert done[0] not in asked


def test_a_push_is_repeated_if_somebody_chose_another_version(site):
    bridge = site.bridge()
    bridge.push()
    version = site.server.projects[site.project]["model_version"]
    site.ann.ask("PATCH", f"/api/projects/{site.project}/", {"model_version": ""})
    bridge.pull()
    bridge.push()
    assert site.server.projects[site.project]["model_version"] == version


# Interruptions ------------------------------------------------------------------------


def few(values, quick):
    """Return the values, all but the quick ones marked as slow."""
    return [
        value if value in quick else pytest.param(value, marks=pytest.mark.slow)
        for value in values
    ]


def play(site, interrupt):
    """Play three rounds with a bridge that is opened again after each interruption."""
    for number in range(4):
        for _ in range(3):
            try:
                bridge = site.bridge()
                interrupt(bridge)
                bridge.pull()
                if number == 3:
                    return bridge
                bridge.push()
                break
            except (UnavailableError, InterruptedError):
                continue
        made = [site.ann.answer(n, "good") for n in (1 + number, 11 + number)]
        site.bob.answer(1 + number, "bad")
        site.bob.skip(6 + number)
        if number:
            site.ann.delete(made[0]["id"])
            site.ann.change(made[1]["id"], "bad")
    raise AssertionError("the fault came back")


def check_nothing_is_lost_or_doubled(site, bridge):
    assert recorded(bridge) == site.truth()
    path = site.folder / "session" / "journal.jsonl"
    last = {}
    for event in map(json.loads, path.read_text().splitlines()):
        for place, id in enumerate(event.get("ids", ())):
            if event["event"] in ("tell", "withdraw", "skip"):
                said = event["event"], event.get("labels", {place: None})[place]
                assert last.get((id, event["by"])) != said
                last[id, event["by"]] = said


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("applied", [False, True], ids=["lost", "applied"])
@pytest.mark.parametrize("nth", few(range(1, 25, 2), {5, 13}))
def test_a_connection_that_breaks_at_any_request_costs_nothing(site, nth, applied):
    site.server.fail(" /api/(projects|tasks|users)(?!.*annotations)", nth=nth)
    site.server.faults[-1].applied = applied
    bridge = play(site, lambda bridge: None)
    assert site.server.faults[-1].seen >= nth
    site.server.faults.clear()
    check_nothing_is_lost_or_doubled(site, bridge)
    bridge.push()
    asked = [
        e["ids"] for e in bridge.session._core.journal.events if e["event"] == "ask"
    ]
    with site.client() as client:
        version = client.get_project(site.project)["model_version"]
        found = client.list_predictions(site.project, version)
    assert found.keys() == {bridge.number(id) for id in asked[-1]}
    assert all(len(predictions) == 1 for predictions in found.values())


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("nth", few(range(1, 8), {2, 5}))
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_stop_at_any_line_of_the_journal_costs_nothing(site, nth, before):
    number = count(1)

    def interrupt(bridge):
        journal = bridge.session._core.journal
        append = journal.append

        def stop(*args, **fields):
            this = next(number)
            if before and this == nth:
                raise InterruptedError
            append(*args, **fields)
            if this == nth:
                raise InterruptedError

        journal.append = stop

    check_nothing_is_lost_or_doubled(site, play(site, interrupt))
    assert next(number) > nth


@pytest.mark.parametrize("request_line", ["GET /api/users", "GET /api/tasks"])
@pytest.mark.parametrize("opened_before", [False, True])
def test_a_bridge_goes_on_after_a_failed_pull(site, request_line, opened_before):
    bridge = site.bridge() if opened_before else None
    site.ann.answer(1, "good")
    site.server._last_time += timedelta(hours=1)  # longer than the pulls overlap
    site.bob.answer(2, "bad")
    bridge = bridge or site.bridge()
    site.server.fail(request_line, status=502)
    with pytest.raises(UnavailableError):
        bridge.pull()
    bridge.pull()
    assert (
        recorded(bridge) == site.truth() == ({(1, ANN): "good", (2, BOB): "bad"}, set())
    )


def test_a_deleted_project_is_named_and_the_answers_stay(site):
    bridge = site.bridge()
    site.ann.answer(1, "good")
    bridge.pull()
    site.ann.ask("DELETE", f"/api/projects/{site.project}/")
    with pytest.raises(NotFoundError, match="may have been deleted"):
        bridge.pull()
    assert [*bridge.session.labels.values()] == ["good"]


def test_tasks_that_are_deleted_before_a_push_are_left_out(site):
    bridge = site.bridge()
    bridge.pull()
    bridge.session.ask()
    gone = [bridge.number(id) for id in bridge.session.open_batches[0].ids[:2]]
    site.ann.remove(*gone)
    bridge.run(1, interval=0.01, stop=Once())
    assert {*shown(site)}.isdisjoint(gone)


class Once:
    """An event that is set when it is looked at for the second time."""

    def __init__(self):
        self.n_looks = 0

    def is_set(self):
        self.n_looks += 1
        return self.n_looks > 1

    def wait(self, seconds):
        return self.is_set()


# Runs ---------------------------------------------------------------------------------


def test_a_run_ends_with_the_labels_that_were_wanted(site):
    bridge, said = site.bridge(left=1), []

    def say(message):
        said.append(message)
        shown(site)

    with listening(say):
        bridge.run(10, interval=0.01)
    assert len(bridge.session.labels) >= 10
    assert recorded(bridge)[0].items() <= site.truth()[0].items()
    assert said[0] == "0 labels; 4 texts in front"


def test_a_run_ends_when_no_text_is_left(site):
    bridge, said = site.bridge(), []

    def say(message):
        said.append(message)
        shown(site)

    with listening(say):
        bridge.run(interval=0.01)
    assert len(bridge.session.labels) == len(TEXTS)
    assert said[-1] == "24 labels; no text is left"


def test_a_run_waits_for_a_server_that_is_away_for_a_while(site):
    bridge, said = site.bridge(n_retries=1), []
    site.server.fail("GET", times=6, status=502)
    site.ann.answer(1, "good")
    with listening(said.append):
        bridge.run(1, interval=0.01)
    assert len(bridge.session.labels) == 1
    assert "status 502" in said[0]


def test_a_run_gives_up_on_a_server_that_stays_away(site):
    bridge = site.bridge()
    site.server.fail("GET", times=1000, status=502)
    with pytest.raises(UnavailableError, match="status 502"):
        bridge.run(1, interval=0.01)


def test_a_run_looks_at_once_when_it_is_woken(site):
    bridge = site.bridge()
    thread = threading.Thread(target=bridge.run, args=(1,), kwargs={"interval": 600})
    thread.start()
    site.ann.answer(1, "good")
    while thread.is_alive():
        bridge.wake.set()
        thread.join(0.05)
    assert recorded(bridge)[0] == {(1, ANN): "good"}


def test_a_run_that_is_woken_all_the_time_looks_once_per_second(site):
    bridge = site.bridge()

    class Stop:
        waits = ()

        def is_set(self):
            return len(self.waits) == 3

        def wait(self, seconds):
            self.waits += (seconds,)
            bridge.wake.set()
            return self.is_set()

    site.server.log.clear()
    stop = Stop()
    bridge.run(interval=600, stop=stop)
    assert stop.waits == (1.0, 1.0, 1.0)
    assert [path for _, path, _ in site.server.log].count("/api/tasks/") == 3


def test_a_backend_gets_a_new_version_after_each_training(site):
    bridge, versions = site.bridge(), []

    def say(message):
        if "the model is" in message:
            versions.append(bridge.version)
            site.ann.answer(3 + 2 * len(versions), "good")
            site.ann.answer(4 + 2 * len(versions), "bad")

    site.ann.answer(1, "good")
    site.ann.answer(2, "bad")
    with listening(say):
        bridge.run(7, every=2, interval=0.01)
    assert len({*versions}) == len(versions) == 3
    assert site.server.projects[site.project]["model_version"] in ("", None)
    ((result, margin),) = bridge.predict(["fine 1 thing"])
    proba = bridge.session.newest_model.learner.predict_proba(["fine 1 thing"])[0]
    assert result[0]["value"]["choices"][0] in ("good", "bad")
    assert margin == pytest.approx(abs(proba[0] - proba[1]))


# Arguments ----------------------------------------------------------------------------


def test_a_folder_belongs_to_one_project(site):
    site.bridge()
    site.close()
    with site.client() as client:
        other = client.create_project("other", write_config(["good", "bad"]))["id"]
    site.project = other
    with pytest.raises(
        ValueError, match=r"'folder' must be .* project 2 .*project=1\."
    ):
        site.bridge()


def test_a_folder_follows_a_server_to_another_address(site):
    site.bridge()
    site.ann.answer(1, "good")
    said = []
    site.url = "http://other"
    with listening(said.append):
        bridge = site.bridge()
    assert said[0] == (
        "the server was http://fake and is now http://other; the folder goes on"
    )
    bridge.pull()
    assert recorded(bridge)[0] == {(1, ANN): "good"}
    again = []
    with listening(again.append):
        site.bridge()
    assert again == ["reading the tasks"]


def test_a_new_project_of_the_same_number_is_another_one(site):
    site.bridge()
    site.server.projects[site.project]["created_at"] = "2026-02-02T02:02:02.000000Z"
    with pytest.raises(ValueError, match="Name another folder"):
        site.bridge()


def test_a_folder_that_knows_no_time_of_creation_is_bound_to_the_url(site):
    site.bridge()
    path = site.folder / "bridge.json"
    about = json.loads(path.read_text())
    del about["created_at"]
    path.write_text(json.dumps(about))
    site.url = "http://other"
    with pytest.raises(ValueError, match="an unknown time"):
        site.bridge()
    site.url = "http://fake"
    site.bridge()
    assert "created_at" in json.loads(path.read_text())


def test_a_smaller_batch_is_no_other_learner(site, recwarn):
    site.bridge(batch=4)
    site.bridge(batch=9)
    assert not [x for x in recwarn if "learner" in str(x.message)]


def test_another_kind_of_question_is_refused(site):
    bridge = site.bridge()
    config = write_config(["good", "bad"], multiple=True)
    site.server.projects[site.project]["label_config"] = config
    with pytest.raises(ValueError, match="the labeling configuration of project 1"):
        bridge.pull()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("<View", "the labeling configuration must be XML"),
        ("<View/>", "'question' must be a control <Choices>"),
        (
            '<View><Image name="a" value="$a"/><Choices name="b" toName="a"/></View>',
            "must label a <Text>",
        ),
    ],
)
def test_a_configuration_without_a_question_about_texts_is_refused(
    site, config, message
):
    site.server.projects[site.project]["label_config"] = config
    with pytest.raises(ValueError, match=message):
        site.bridge()


def test_one_of_several_questions_is_named(site):
    config = site.server.projects[site.project]["label_config"]
    more = '<Choices name="tone" toName="text"><Choice value="x" alias="y"/></Choices>'
    site.server.projects[site.project]["label_config"] = config.replace(
        "</View>", f"{more}</View>"
    )
    with pytest.raises(ValueError, match=r"it has 'label', 'tone'\. Name"):
        site.bridge()
    assert site.bridge(question="tone").question.classes == ["y"]


def test_a_wrong_token_is_explained(site, tmp_path):
    client, said = Client("http://fake", "nobody", transport=site.server.transport), []
    settings = ProjectSettings("http://fake", folder=tmp_path / "x")
    with listening(said.append), pytest.raises(LabelStudioError, match="token"):
        Bridge(client, 1, settings)
    assert not said
    assert not (tmp_path / "x").exists()
