"""The audit is blind: first answers count, and nothing tells what a machine said."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.annotators import ColumnAnnotator

N = 200
TRUTH = ["yes" if i % 2 else "no" for i in range(N)]
TEXTS = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(N)]
OTHER = {"yes": "no", "no": "yes"}
LEARNER = ActiveLearner(
    make_pipeline(HashingVectorizer(n_features=2**10), LogisticRegression(C=10)),
    "random",
    batch_size=10,
    random_state=0,
)


@pytest.fixture
def session(open_session):
    session = open_session(TEXTS, learner=LEARNER, audit_every=2)
    session.annotate(ColumnAnnotator(TEXTS, TRUTH))
    while len(session.labels) < 80:
        ids = session.ask().ids
        # Every fifth answer is wrong.
        said = [OTHER[TRUTH[id]] if id % 5 == 0 else TRUTH[id] for id in ids]
        session.tell(ids, said, annotator="ann")
    return session


def figures(session):
    estimate = session.estimate()
    return [
        session.prevalence().estimates[None, "yes"].value,
        session.quality().accuracy.value,
        session.compare("column").quality.accuracy.value,
        (estimate.accuracy, estimate.n_audited),
    ]


@pytest.mark.slow
def test_a_later_answer_never_replaces_the_first_in_an_estimate(session, open_session):
    wrong = [id for id in session.audited if id % 5 == 0]
    assert wrong
    expected = session.compare("column").quality.accuracy.value
    assert expected < 0.95
    # All estimates have the first answers, whatever the training data is.
    sample = session._core.queue.choose_sample(True)[0]
    session.tell(wrong, [TRUTH[id] for id in wrong], annotator="ann")
    assert [session.labels[id] for id in wrong] == [TRUTH[id] for id in wrong]
    assert session._core.queue.choose_sample(True)[0] == sample
    assert session._core.queue.choose_sample(False)[0] == sample
    assert session.compare("column").quality.accuracy.value == expected
    share = session.prevalence().estimates[None, "yes"].value
    said = np.mean([label == "yes" for label in sample.values()])
    assert share == pytest.approx(said, abs=0.12)
    # The model follows the training data, and is wrong about the first answers.
    right = np.mean([TRUTH[id] == label for id, label in sample.items()])
    assert session.estimate().accuracy < right + 0.1
    assert session.quality().accuracy.value < right + 0.1
    before = figures(session)
    session.close()
    again = open_session(TEXTS, learner=LEARNER, audit_every=2)
    assert figures(again) == before


def test_an_undone_answer_is_not_the_first(session):
    id = session.audited[0]
    session.withdraw(id, annotator="ann")
    session.tell(id, "no", annotator="ann")
    assert session._core.queue.choose_sample(True)[0][id] == "no"
    session.undo(annotator="ann")  # a slip of the finger
    session.tell(id, "yes", annotator="ann")
    assert session._core.queue.choose_sample(True)[0][id] == "yes"
    session.tell(id, "no", annotator="ann")
    session.undo(annotator="ann")
    assert session._core.queue.choose_sample(True)[0][id] == "yes"


def test_a_first_answer_with_help_leaves_an_item_out(session):
    id = session.audited[0]
    session.withdraw(id, annotator="ann")
    session.tell(id, "no", annotator="ann", shown="suggestion")
    session.tell(id, "no", annotator="ann")  # what was seen is not forgotten
    sample, seen = session._core.queue.choose_sample(True)
    assert (id in sample, seen) == (False, [id])
    assert session._core.queue.choose_sample(False)[0][id] == "no"
    session.tell(id, "yes", annotator="bob")  # he saw nothing
    assert session._core.queue.choose_sample(True)[0][id] == "yes"


def test_a_first_answer_has_the_present_names(session):
    id = session.audited[0]
    session.rename_class("yes", "agree")
    session.rename_class("no", "yes")
    first = OTHER[TRUTH[id]] if id % 5 == 0 else TRUTH[id]
    expected = {"yes": "agree", "no": "yes"}[first]
    assert session._core.queue.choose_sample(True)[0][id] == expected


def test_a_first_answer_of_a_class_that_no_label_has_any_more_is_an_error(session):
    session.add_class("odd")
    id = session.audited[0]
    session.withdraw(id, annotator="ann")
    session.tell(id, "odd", annotator="ann")
    session.tell(id, TRUTH[id], annotator="ann")
    assert session._core.queue.choose_sample(True)[0][id] == "odd"
    assert session.estimate().accuracy is not None


def test_what_the_audit_can_draw_is_not_suspicious(session):
    found = [id for id, *_ in session.suspicious(100)]
    wrong = {id for id in session.labels if id % 5 == 0}
    blind = {id for id in wrong if session.is_blind(id)}
    assert blind
    assert wrong - blind <= {*found}
    assert not any(map(session.is_blind, found))


def test_without_an_audit_all_answers_are_compared(open_session):
    session = open_session(TEXTS, learner=LEARNER)
    said = [OTHER[TRUTH[id]] if id % 5 == 0 else TRUTH[id] for id in range(80)]
    session.tell(range(80), said, unasked=True)
    assert {id for id, *_ in session.suspicious(100)} >= {*range(0, 80, 5)}


def test_copies_in_other_capitals_or_with_other_blanks_are_blind(open_session):
    copies = [f"  {text.upper()} ".replace(" ", "\u00a0 ") for text in TEXTS]
    session = open_session(TEXTS + copies, learner=LEARNER, audit_every=5)
    blind = np.array(list(map(session.is_blind, range(2 * N))))
    reserved = session._core.queue.draws.reserved
    expected = reserved[:N] | reserved[N:]
    assert expected.sum() > reserved.sum() / 2
    assert (blind[:N] == expected).all()
    assert (blind[N:] == expected).all()


@pytest.mark.parametrize("kind", ["pairs", "rows"])
def test_copies_of_pairs_are_blind_and_rows_of_numbers_have_none(open_session, kind):
    if kind == "rows":
        X = np.zeros((100, 2))
    else:
        X = [(f"{'A' if i % 2 else 'a'} {i // 2}", "b") for i in range(100)]
    session = open_session(X, audit_every=5)
    reserved = session._core.queue.draws.reserved
    expected = reserved
    if kind == "pairs":
        expected = np.repeat(reserved.reshape(-1, 2).any(axis=1), 2)
    assert list(map(session.is_blind, range(100))) == expected.tolist()
    assert 0 < expected.sum() < 100


def test_what_the_audit_draws_behind_the_reserved_texts_is_blind_from_then_on(
    open_session,
):
    session = open_session([*TEXTS[:30], "GOOD FILM NUMBER 29"], audit_every=1)
    session._core.queue.draws.__dict__["reserved"] = np.zeros(31, dtype=bool)
    assert not any(map(session.is_blind, range(31)))
    (drawn,) = session.ask(1).ids
    assert list(map(session.is_blind, range(31))) == [
        TEXTS[:30][drawn].casefold() == text.casefold()
        for text in [*TEXTS[:30], "GOOD FILM NUMBER 29"]
    ]
