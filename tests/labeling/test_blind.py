"""A person who tries to read what a machine said about audited texts."""

import json
import shutil
import time
from concurrent.futures import wait

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.annotators import ColumnAnnotator
from skactive.labeling._calls import METHODS, call
from skactive.labeling._prompt import describe_item, describe_state

N = 20
BASE = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(10, 10 + N)]
TEXTS = BASE + [f"{text.upper()} " for text in BASE]  # copies, but for capitals
OTHER = {"yes": "no", "no": "yes"}
VARYING = {"time", "version", "seconds"}


class Moody(LogisticRegression):
    """Swaps the classes of some rows: another opinion about these texts alone."""

    rows: frozenset = frozenset()

    def predict_proba(self, X):
        proba = super().predict_proba(X)
        swapped = [row.toarray().tobytes() in self.rows for row in X]
        proba[swapped] = proba[swapped][:, ::-1]
        return proba

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


FRONT = HashingVectorizer(n_features=2**10)
LEARNER = ActiveLearner(
    make_pipeline(FRONT, Moody(C=100)), "random", batch_size=3, random_state=0
)


CALLED = set()


def read(desk, method, **arguments):
    """Return what a call of the page returns, without times."""
    CALLED.add(method)

    def strip(content):
        if isinstance(content, list):
            return [strip(part) for part in content]
        if not isinstance(content, dict):
            return content
        return {k: strip(v) for k, v in content.items() if k not in VARYING}

    status, content = call(desk, method, arguments)
    while desk.check()["computing"]:  # a later call must not meet half a list
        time.sleep(0.01)
    wait([*desk._jobs.values()])
    return status, strip(content)


def read_everything(desk):
    """Return all that a person can read before and after an answer."""
    found = [read(desk, name) for name in ("state", "check", "quality", "history")]
    found += [read(desk, "search", query="", n_items=99, where={})]
    found.append(read(desk, "search", query="good film", n_items=99, how="meaning"))
    found.append(read(desk, "search", query="film.*1", n_items=99, how="regex"))
    found.append(read(desk, "themes", n_themes=3))
    likely = [{"likely": name} for name in ("maybe", "never")]
    for where in (*likely, {"before": "maybe"}, {"only": "doubtful"}):
        found.append(read(desk, "history", where=where, only_ids=True))
    found += [read(desk, "more", label=x, doubtful=y) for x in OTHER for y in (0, 1)]
    for id in range(len(TEXTS)):
        found.append(read(desk, "item", id=json.dumps(id)))
        found.append(read(desk, "item", id=json.dumps(id), held_out=True))
    for id in range(0, len(TEXTS), 6):
        found += [read(desk, x, id=json.dumps(id)) for x in ("explain", "similar")]
        found.append(describe_item(desk.item(id)))
    found.append(describe_state(desk.state()))
    found.append(desk.session.suspicious(100))
    return found


def label(desk, blind):
    """Label, correct and undo; return all that can be read in between."""
    seen = []

    def answer(item, said):
        own = {"id": item["id"], "label": said, "client": "tab", "seconds": 1.0}
        own["example"] = TEXTS[json.loads(item["id"])]
        seen.append(read(desk, "answer", **own))

    for number in range(4):
        seen.append(read(desk, "draw", random_only=number == 1))
        items = desk.next("tab")
        wait(desk._jobs.values())  # what is asked for meanwhile has a number as well
        seen.append(read(desk, "next", client="tab"))
        for item in items:
            id = item["id"]
            truth = "yes" if "good" in item["text"].casefold() else "no"
            said = OTHER[truth] if id % 5 == 0 else truth
            answer({"id": json.dumps(id)}, said)
    desk.session.refit()
    read(desk, "state")
    seen.append(read(desk, "edit_class", name="no", description="dull", place=0))
    seen.append(read(desk, "edit_class", name="no", new="never"))
    seen.append(read_everything(desk))  # of the model before it had this name
    for _ in range(3):
        undo = desk.state()["undo"]
        seen.append(read(desk, "undo", seq=undo["seq"], client="tab"))
    seen.append(read_everything(desk))
    read(desk, "add_class", name="maybe")
    ids = [json.dumps(id) for id in range(0, len(TEXTS), 7)]
    seen.append(read(desk, "answer_all", ids=ids, label="maybe", client="tab"))
    read(desk, "add_class", name="empty")
    seen.append(read(desk, "remove_class", name="empty"))
    for id in (fresh[0] for fresh in (np.flatnonzero(blind), np.flatnonzero(~blind))):
        one = {"id": json.dumps(int(id))}
        seen.append(read(desk, "flag", **one))
        seen.append(read(desk, "note", text="a note", **one))
        seen.append(read(desk, "skip", client="tab", **one))
        undo = desk.state()["undo"]
        seen.append(read(desk, "undo", seq=undo["seq"], client="tab"))
    read(desk, "release", client="tab")
    desk.session.refit()
    read(desk, "state")
    seen.append(read_everything(desk))
    hidden = [id for id in np.flatnonzero(blind).tolist() if id < N]
    answered = [id for id in hidden if id in desk.session.labels]
    fresh = [id for id in hidden if id not in desk.session.labels]
    for id in (answered[0], fresh[0], fresh[1] + N):  # the last one is a copy
        one = {"id": json.dumps(id)}
        for said in ("yes", "no"):
            read(desk, "item", **one)
            answer(one, said)
            seen.append(read(desk, "state"))
        seen.append(read_everything(desk))
        undo = desk.state()["undo"]
        seen.append(read(desk, "undo", seq=undo["seq"], client="tab"))
        seen.append(read(desk, "state"))
    desk.session.refit()
    read(desk, "state")
    seen.append(read_everything(desk))
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["suggestions", "model"])
def test_nothing_that_can_be_read_depends_on_a_machine_where_it_is_blind(
    open_desk, monkeypatch, machine
):
    found, said = [], []
    for swap in (False, True):
        guesses = {id: ("yes", "no")[id % 3 == 0] for id in range(len(TEXTS))}
        # Estimates need 20 labels, and are of the whole audit; there are fewer here.
        desk = open_desk(TEXTS, LEARNER, {"refit": False, "audit_every": 4})
        session = desk.session
        blind = np.array(session._core.queue.find_blind(range(len(TEXTS))))
        assert (blind[:N] == blind[N:]).all()
        assert 6 <= blind.sum() <= 40
        if swap and machine == "suggestions":
            guesses = {x: OTHER[y] if blind[x] else y for x, y in guesses.items()}
        elif swap:
            rows = FRONT.transform([TEXTS[x] for x in np.flatnonzero(blind)])
            rows = frozenset(row.toarray().tobytes() for row in rows)
            monkeypatch.setattr(Moody, "rows", rows)
        session.annotate(ColumnAnnotator(TEXTS, list(guesses.values())))
        found.append(label(desk, blind))
        predicted = session.newest_model.learner.predict(TEXTS).tolist()
        said.append((session.machine_answers, predicted))
        desk.close()
        session.close()
        shutil.rmtree(session.folder)
    assert said[0] != said[1]
    assert {*METHODS} == CALLED  # a new call is read here as well
    for before, after in zip(*found, strict=True):
        assert before == after
