"""Several people: what is hidden from whom, how much they agree, what is settled."""

import itertools
import threading
import warnings

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.session import Desk
from skactive.session._coders import SETTLED, find_widest

TEXTS = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(400)]
LEARNER = ActiveLearner(
    make_pipeline(HashingVectorizer(n_features=2**8), LogisticRegression()),
    "random",
    batch_size=5,
    random_state=0,
)
OPTIONS = {"classes": ["yes", "no", "maybe"], "refit": False}


@pytest.fixture
def open_shared(open_session):
    def open_shared(overlap=0.2, audit_every=10, **options):
        options = {**OPTIONS, "overlap": overlap, "audit_every": audit_every, **options}
        return open_session(TEXTS, learner=LEARNER, **options)

    return open_shared


def label_all(session, say, n=None, people=("ann", "bob")):
    """Let people answer in turn until `n` texts have labels, or none is left."""
    for who in itertools.cycle(people):
        batches = [session.ask(5, annotator=who)]
        if not batches[0]:
            batches = [session.ask(5, annotator=other) for other in people]
        if not any(batches) or (n is not None and len(session.labels) >= n):
            return
        for batch in filter(None, batches):
            labels = [say(batch.annotator, id) for id in batch.ids]
            session.tell(batch.ids, labels, annotator=batch.annotator)


def list_twice(session):
    return {id for id, given in session.answers.items() if len(given) == 2}


@pytest.mark.parametrize(
    ("overlap", "every"),
    [(0.05, 10), (0.2, 10), (0.3, 10), (0.7, 10), (0.2, 3), (1, 10)],
)
def test_a_share_of_the_texts_is_answered_by_two_and_all_are_of_the_audit(
    open_shared, overlap, every
):
    session = open_shared(overlap, every)
    label_all(session, lambda who, id: "yes")
    twice = list_twice(session)
    assert len(session.labels) == len(TEXTS)
    error = 3 * np.sqrt(len(TEXTS) * overlap * (1 - overlap))
    assert abs(len(twice) - overlap * len(TEXTS)) <= error + 1
    assert twice <= {*session._core.state.audited}
    assert all(len(given) <= 2 for given in session.answers.values())


def test_the_share_holds_where_all_texts_are_drawn_at_random(open_shared):
    session = open_shared(0.3)
    session._core.queue.draw_at_random(True)
    label_all(session, lambda who, id: "yes")
    assert 90 < len(list_twice(session)) < 150
    session._core.queue.draw_at_random(False)  # what is shared stays so
    assert not session.ask(annotator="ann")


def test_a_folder_that_moves_keeps_the_overlap(open_shared):
    with open_shared(annotator="ann") as session:
        for _ in range(20):
            session.tell(ids := session.ask(5).ids, ["yes"] * len(ids))
        audited = {*session._core.state.audited}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = open_shared(None, annotator="bob")
    assert session._core.queue.find_hidden("bob") == audited
    again = session.ask(100).ids
    assert audited == {*again} & {*session.labels}
    assert len(audited) == 20
    session.tell(again, ["no"] * len(again))
    assert session.agreement().n_items == 20
    assert not session._core.queue.find_hidden("bob")


def test_nothing_is_hidden_without_an_audit_or_an_overlap(open_shared, tmp_path):
    for number, options in enumerate([(0.5, None), (0.0, 2)]):
        session = open_shared(*options, folder=tmp_path / str(number))
        session.tell(ids := session.ask(20, annotator="ann").ids, ["yes"] * len(ids))
        assert not session._core.queue.find_hidden("bob")


def differ(session, *labels):
    """Have a text that people answer differently; return it."""
    id = session.ask(1, annotator="ann").ids[0]
    for who, label in zip(("ann", "bob", "eve"), labels, strict=False):
        session.tell(id, label, annotator=who, unasked=True)
    return id


@pytest.fixture
def desk(open_shared):
    with Desk(open_shared(1.0)) as desk:
        yield desk


def settle(desk, id, label, who="eve"):
    return desk.answer(id, label, "tab", who, way=SETTLED)


def test_a_decision_is_the_label_and_no_answer(desk):
    session, id = desk.session, differ(desk.session, "yes", "no")
    assert desk.state()["n_disputed"] == 1
    found = desk.history(where={"only": "disputed"}, annotator="eve")
    assert [item["id"] for item in found["items"]] == [id]
    said = [(one["annotator"], one["label"]) for one in desk.item(id)["said"]]
    assert said == [("ann", "yes"), ("bob", "no")]
    before = session.agreement()
    state = settle(desk, id, "yes", "bob")
    assert state["n_disputed"] == 0
    assert session.labels[id] == "yes"
    assert session.answers[id] == {"ann": "yes", "bob": "no"}
    assert session.agreement() == before
    assert before.share == 0
    item = desk.item(id)
    assert (item["label"], item["annotator"], item["way"]) == ("yes", "bob", SETTLED)
    n = session._core.state.seq
    settle(desk, id, "yes", "bob")  # sent twice
    assert session._core.state.seq == n
    settle(desk, id, "maybe")  # decided anew
    assert session.labels[id] == "maybe"
    session.undo(annotator="eve")
    assert session.labels[id] == "yes"
    session.undo(annotator="bob")
    assert session.labels[id] == "no"
    assert desk.state()["n_disputed"] == 1


def test_only_answers_that_differ_are_settled(desk):
    id = differ(desk.session, "yes", "yes")
    with pytest.raises(ValueError, match="'way' must be None, as no two answers"):
        settle(desk, id, "yes")
    with pytest.raises(ValueError, match="no two answers to 399 differ"):
        settle(desk, 399, "yes")


@pytest.mark.parametrize(
    ("who", "answer", "label", "n_disputed"),
    [
        ("bob", "no", "yes", 0),  # the same again
        ("bob", "yes", "yes", 0),  # as decided
        ("bob", "maybe", "maybe", 1),  # neither was settled about
        ("ann", "no", "no", 0),  # both agree on another one
        ("eve", "no", "yes", 0),  # was settled about
        ("eve", "maybe", "maybe", 1),
        ("bob", None, "yes", 0),  # withdrawn: the decision stays
    ],
)
def test_another_answer_reopens_what_it_was_not_settled_about(
    desk, open_shared, who, answer, label, n_disputed
):
    session, id = desk.session, differ(desk.session, "yes", "no")
    settle(desk, id, "yes", "ann")
    if answer is None:
        session.withdraw(id, annotator=who)
    else:
        session.tell(id, answer, annotator=who)
    assert session.labels[id] == label
    assert desk.state()["n_disputed"] == n_disputed
    session.undo(annotator=who)
    assert session.labels[id] == "yes" or who == "ann"
    session.close()
    assert open_shared(None).labels == session.labels


def test_without_any_answer_there_is_no_decision(desk):
    session, id = desk.session, differ(desk.session, "yes", "no")
    settle(desk, id, "yes")
    session.withdraw(id, annotator="ann")
    session.withdraw(id, annotator="bob")
    assert id not in session.labels
    with pytest.raises(ValueError, match="that 'eve' answered"):
        session.withdraw(id, annotator="eve")


def test_decisions_follow_the_names_of_classes(desk):
    session, id = desk.session, differ(desk.session, "yes", "no")
    settle(desk, id, "maybe")
    with pytest.raises(ValueError, match="must be a class without labels"):
        desk.remove_class("maybe")
    desk.edit_class("maybe", new="open")
    assert session.labels[id] == "open"
    other = differ(session, "yes", "no")
    assert desk.state()["n_disputed"] == 1
    desk.edit_class("no", "eve", new="yes")  # merged
    assert session.labels[other] == "yes"
    assert desk.state()["n_disputed"] == 0
    assert session.labels[id] == "yes"  # both agree now
    session.undo(annotator="eve")
    assert (session.labels[id], desk.state()["n_disputed"]) == ("open", 1)


def test_a_decision_counts_in_shares(desk):
    session, ids = desk.session, []
    for _ in range(3):
        ids.append(differ(session, "yes", "no"))
    assert {*session._core.queue.choose_sample(True)[0].values()} == {"no"}
    desk.item(ids[0], annotator="eve")
    settle(desk, ids[0], "yes")
    assert session._core.queue.choose_sample(True)[0][ids[0]] == "yes"


def test_notes_are_kept_by_person_and_hidden_with_the_answer(desk):
    session = desk.session
    id = session.ask(1, annotator="ann").ids[0]
    desk.note(id, "of ann", "ann")
    assert desk.item(id, annotator="bob")["note"] == ""
    session.tell(id, "yes", annotator="ann")
    assert desk.note(id, "of bob", "bob")["note"] == "of bob"
    assert desk.item(id, annotator="bob")["label"] is None
    session.tell(id, "no", annotator="bob", unasked=True)
    notes = [one["note"] for one in desk.item(id, annotator="bob")["said"]]
    assert notes == ["of ann", "of bob"]
    assert session._core.join_notes(id) == "ann: of ann\nbob: of bob"


def test_agreement_is_of_the_first_blind_answers_to_shared_texts(open_shared):
    session = open_shared(0.5, 2)
    wrong = lambda who, id: "no" if who == "bob" and id % 4 == 0 else "yes"  # noqa: E731
    label_all(session, wrong, 200)
    twice = sorted(list_twice(session))
    expected = np.mean([wrong("bob", id) == "yes" for id in twice])
    assert session.agreement().share == pytest.approx(expected)
    session.tell(twice, ["yes"] * len(twice), annotator="bob")  # a later answer
    session.tell(twice[0], "no", annotator="eve")  # who saw both
    shared = session._core.queue.find_shared(session.labels)
    others = [id for id in session.labels if id not in shared]
    session.tell(others, ["no"] * len(others), annotator="eve")  # not drawn for two
    assert session.agreement().share == pytest.approx(expected)
    assert session.agreement().n_items == len(twice)
    said = Desk(session).quality()["agreement"]
    n, same = len(twice), round(expected * len(twice))
    assert said.startswith(f"ann and bob agree on {same} of {n} texts (")
    assert "; Krippendorff's alpha " in said
    answers = [["yes"] * len(twice), [wrong("bob", id) for id in twice]]
    assert f", Cohen's kappa {cohen_kappa_score(*answers):.2f} (" in said
    yes = round(100 * expected)
    assert f"100 % are yes according to ann, {yes} % according to bob" in said or (
        f"0 % are no according to ann, {100 - yes} % according to bob" in said
    )


def test_agreement_says_what_is_missing(open_shared):
    session = open_shared(1.0)
    desk = Desk(session)
    for n in range(10):
        expected = f"agreement after 10 texts with two answers, {n} so far"
        assert desk.quality()["agreement"] == expected
        differ(session, "yes", "yes")
    said = desk.quality()["agreement"]
    assert said == "ann and bob agree on 10 of 10 texts (100 %, 72-100 %)"


def test_there_are_no_words_on_agreement_without_an_overlap(open_shared):
    assert Desk(open_shared(0)).quality()["agreement"] == ""


def test_the_choice_of_the_person_moves_shares_by_so_much():
    """Against all ways to choose whose answers count, one person for all texts."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        both = rng.choice(["a", "b", "c"], (30, 2)).tolist()
        widest = {}
        for name in "abc":
            shares = [np.mean([row[who] == name for row in both]) for who in (0, 1)]
            widest[name] = np.var(shares)  # half a chance each
        name, one, other = find_widest(list(map(tuple, both)))
        assert (one - other) ** 2 / 4 == pytest.approx(max(widest.values()))
        assert widest[name] == pytest.approx(max(widest.values()))
    assert find_widest([(["a"], ["a", "b"]), ([], ["b"])]) == ("b", 0.0, 1.0)


def test_leases_undo_and_seconds_are_of_each_person(open_shared):
    session = open_shared(1.0)
    with Desk(session) as desk:
        (mine,) = desk.next("tab 1", "ann", 1)
        (other,) = desk.next("tab 2", "bob", 1)
        assert mine["id"] == other["id"]  # both answer it at the same time
        desk.answer(mine["id"], "yes", "tab 1", "ann", seconds=2.0)
        assert desk.next("tab 2", "bob", 1)[0]["id"] == other["id"]
        assert desk.next("tab 3", "bob", 1)[0]["id"] != other["id"]
        state = desk.answer(other["id"], "no", "tab 2", "bob", seconds=5.0)
        assert state["undo"]["label"] == "no"
        given = session._core.state.answers[mine["id"]].given
        assert [(x.annotator, x.seconds) for x in given] == [("ann", 2.0), ("bob", 5.0)]
        seq = desk.state("ann")["undo"]["seq"]
        with pytest.raises(ValueError, match="'seq' must be the number"):
            desk.undo(seq, "tab 2", "bob")
        desk.undo(seq, "tab 1", "ann")
        assert session.answers[mine["id"]] == {"bob": "no"}


@pytest.mark.slow
def test_two_people_answer_in_threads_and_nothing_is_lost_or_given_twice(open_shared):
    session = open_shared(0.25, refit="background")
    asked, errors = {"ann": [], "bob": []}, []
    with Desk(session) as desk:

        def work(who):
            try:
                while items := desk.next(f"tab of {who}", who, 1):
                    id = items[0]["id"]
                    asked[who].append(id)
                    desk.answer(id, "yes" if id % 3 else "no", f"tab of {who}", who)
                    if len(asked[who]) >= 400:
                        return
            except Exception as exc:
                errors.append(exc)

        threads = [threading.Thread(target=work, args=[who]) for who in asked]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []
    assert all(len({*ids}) == len(ids) for ids in asked.values())
    both = {*asked["ann"]} & {*asked["bob"]}
    assert both == {*session._core.queue.find_shared([*both])}
    assert {*asked["ann"]} | {*asked["bob"]} == {*session.labels} == {*range(400)}
    for who, ids in asked.items():
        answered = [id for id, given in session.answers.items() if who in given]
        assert {*answered} == {*ids}
