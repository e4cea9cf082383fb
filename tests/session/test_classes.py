"""Classes that are added, renamed and merged while people label."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skactive import LabelingSession
from skactive.session import read_labels

from ._helpers import events, remove_class, undoable


def test_a_class_can_be_added_to_closed_ones(open_session):
    with open_session(classes=["ham", "spam"], annotator="ann") as session:
        with pytest.raises(ValueError, match="To add a class, call add_class, or"):
            session.tell(3, "eggs", unasked=True)
        session.add_class("eggs")
        assert session.classes == ["ham", "spam", "eggs"]
        session.tell(3, "eggs", unasked=True)
        assert undoable(session)["event"] == "tell"  # classes are no answers
    for classes in (None, ["ham", "spam"]):  # the same call goes on
        with open_session(classes=classes) as session:
            assert session.classes == session.known_classes == ["ham", "spam", "eggs"]
            assert events(session)[-1]["event"] == "tell"
    with open_session(classes=["spam", "ham", "eggs", "tofu"]) as session:
        assert session.classes == ["spam", "ham", "eggs", "tofu"]


def test_a_class_can_be_added_where_any_label_is_allowed(open_session):
    with open_session() as session:
        session.tell(3, "ham", unasked=True)
        session.add_class("spam")
        assert session.classes is None
        assert session.known_classes == ["spam", "ham"]
        session.tell(4, "eggs", unasked=True)
        session.rename_class("spam", "tofu")
    session = open_session()
    assert session.known_classes == ["tofu", "ham", "eggs"]


@pytest.mark.parametrize("classes", [["ham", "spam"], None])
@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda s: s.add_class("ham"), ValueError, "a new class, got 'ham'"),
        (lambda s: s.add_class(""), ValueError, "name of a class, got ''"),
        (lambda s: s.add_class(3), TypeError, "here str; got 3"),
        (lambda s: s.add_class(None), ValueError, "name of a class, got None"),
        (lambda s: s.rename_class("ham", "ham"), ValueError, "another name than 'old'"),
        (
            lambda s: s.rename_class("eggs", "x"),
            ValueError,
            "'old' must be a class .*got 'eggs'",
        ),
        (lambda s: s.rename_class("ham", ""), ValueError, "'new' must be .*, got ''"),
        (lambda s: s.rename_class("ham", 3), TypeError, "here str; got 3 for 'new'"),
        (lambda s: s.rename_class("ham", ["a"]), TypeError, "kind in a session, here"),
    ],
)
def test_bad_names_of_classes_are_refused(open_session, classes, call, error, match):
    session = open_session(classes=classes)
    session.tell([3, 4], ["ham", "spam"], unasked=True)
    seq = session._core.state.seq
    with pytest.raises(error, match=match):
        call(session)
    assert session._core.state.seq == seq


def test_a_list_is_not_the_name_of_a_class(open_session):
    with pytest.raises(TypeError, match="'name' must be a single label, got"):
        open_session().add_class(["a", "b"])


def test_a_renamed_class_has_its_new_name_everywhere(open_session, tmp_path):
    with open_session(classes=["ham", "spam", "eggs"]) as session:
        session.tell([3, 4, 5], ["ham", "spam", "ham"], unasked=True, annotator="ann")
        session.tell([3, 4], ["spam", "ham"], annotator="bob")
        before = session.labels, session.answers
        session.rename_class("ham", "bacon", annotator="bob")
        renamed = {
            3: {"ann": "bacon", "bob": "spam"},
            4: {"ann": "spam", "bob": "bacon"},
            5: {"ann": "bacon"},
        }
        assert session.answers == renamed
        assert session.labels == {3: "spam", 4: "bacon", 5: "bacon"}
        assert session.classes == ["bacon", "spam", "eggs"]
        assert session._core.state.renamed == {"ham": "bacon"}
        match = r"got 'ham' for 6\. It was renamed to 'bacon'"
        with pytest.raises(ValueError, match=match):
            session.tell(6, "ham", unasked=True)
        assert undoable(session, "bob") == {
            "seq": 4,
            "event": "rename",
            "old": "ham",
            "new": "bacon",
        }
    assert read_labels(tmp_path / "s") == session.labels
    with open_session(classes=["ham", "spam", "eggs"]) as session:
        assert session.answers == renamed
        assert session.classes == ["bacon", "spam", "eggs"]
        assert session.history(3)[0]["label"] == "ham"  # as it was given
        assert session.undo(annotator="bob")["old"] == "ham"
        assert (session.labels, session.answers) == before
        assert session.classes == ["ham", "spam", "eggs"]
    session = open_session()
    assert (session.labels, session.answers) == before


def test_classes_are_merged_and_an_undo_separates_them(open_session):
    session = open_session(classes=["a", "b", "c"])
    session.tell([1, 2, 3], ["a", "b", "c"], unasked=True, annotator="ann")
    session.rename_class("b", "a", annotator="ann")
    assert session.labels == {1: "a", 2: "a", 3: "c"}
    assert session.classes == ["a", "c"]
    session.tell(4, "a", unasked=True, annotator="bob")
    session.add_class("d")
    session.undo(annotator="ann")
    assert session.labels == {1: "a", 2: "b", 3: "c", 4: "a"}
    assert session.classes == ["a", "b", "c", "d"]


def test_a_name_that_others_use_by_now_outlives_the_undo(open_session):
    session = open_session(classes=["a", "b"])
    session.tell(1, "a", unasked=True, annotator="ann")
    session.rename_class("a", "A", annotator="ann")
    session.tell(2, "A", unasked=True, annotator="bob")
    session.undo(annotator="ann")
    assert session.labels == {1: "a", 2: "A"}
    assert session.classes == ["a", "A", "b"]


def test_names_can_go_round(open_session):
    session = open_session(classes=["a", "b"])
    session.tell([1, 2], ["a", "b"], unasked=True)
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        session.rename_class(old, new)
    assert session.labels == {1: "b", 2: "a"}
    assert session.classes == ["b", "a"]
    assert session._core.state.renamed == {"x": "b"}
    session.tell(3, "a", unasked=True)
    with pytest.raises(ValueError, match=r"'x' for 4\. It was renamed to 'b'"):
        session.tell(4, "x", unasked=True)


def test_a_former_name_raises_a_warning_where_any_label_is_allowed(open_session):
    session = open_session()
    session.tell([1, 2], ["disaster", "no"], unasked=True)
    session.rename_class("disaster", "emergency")
    match = r"look like others: 'disaster' \(renamed to 'emergency'\)"
    with pytest.warns(UserWarning, match=match):
        session.tell(3, "disaster", unasked=True)


@pytest.mark.parametrize("refit", [True, "background"])
def test_the_model_follows_the_names(open_session, learner, data, refit):
    X, y = data
    fitted = clone(learner).fit(X[:20], y[:20])
    session = open_session(learner=fitted, refit=refit)
    session.tell(range(20, 40), y[20:40], unasked=True)
    assert set(session.learner.classes_) == {"eggs", "ham", "spam"}
    session.rename_class("spam", "a longer name")
    assert session.known_classes == ["eggs", "ham", "a longer name"]
    assert session.refit().model_age == 0
    assert set(session.learner.classes_) == {"eggs", "ham", "a longer name"}
    assert "a longer name" in session.learner.predict(X)
    assert set(fitted.y_labeled_) == {"eggs", "ham", "spam"}
    session.undo()
    assert set(session.refit().learner.classes_) == {"eggs", "ham", "spam"}


@pytest.mark.parametrize("classes", [["a", "b"], None])
def test_an_added_class_and_a_removed_one_are_undone_in_order(open_session, classes):
    def reopen():
        return open_session(classes=classes, refit=False)

    session = reopen()
    session.tell([0, 1], ["a", "b"], unasked=True)
    session.add_class("c")
    remove_class(session, "c")
    session.add_class("d")
    session.tell(2, "d", unasked=True)
    for expected in (["a", "b", "d"], ["a", "b"], ["a", "b", "c"], ["a", "b"]):
        session.undo()
        assert sorted(session.known_classes) == expected
        session.close()
        session = reopen()
        assert sorted(session.known_classes) == expected
    assert session.labels == {0: "a", 1: "b"}


def test_an_added_class_with_labels_stays(open_session):
    session = open_session(classes=["a", "b"], refit=False)
    session.add_class("c", annotator="ann")
    session.tell(0, "c", unasked=True, annotator="bob")
    assert session.undo(annotator="ann")["added"] == "c"
    assert session.classes == ["a", "b", "c"]
    assert undoable(session, "ann") is None


def test_a_class_added_in_0_2_0_is_not_undone(open_session):
    session = open_session(classes=["a", "b"], refit=False)
    session.tell(0, "a", unasked=True)
    session._core.journal.record("classes", classes=["a", "b", "c"], added="c")
    assert undoable(session)["event"] == "tell"
    session.undo()
    assert session.classes == ["a", "b", "c"]


def test_only_classes_without_labels_are_removed(open_session, data, learner):
    X, y = data
    session = open_session(learner=learner.fit(X[:20], y[:20]), refit=False)
    with pytest.raises(ValueError, match="'name' must be a class without labels"):
        remove_class(session, "ham")
    session.add_class("tofu")
    with pytest.raises(ValueError, match=r"must be a class of the session, .* got 'x'"):
        remove_class(session, "x")
    remove_class(session, "tofu")
    assert session.known_classes == ["eggs", "ham", "spam"]


def test_two_classes_stay(open_session):
    session = open_session(classes=["a", "b"])
    with pytest.raises(ValueError, match="'name' must leave two classes, got 'b'"):
        remove_class(session, "b")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["tell", "tell", "rename", "undo", "add", "remove"]),
        st.sampled_from("abcd"),
        st.sampled_from("abcd"),
        st.sampled_from(["ann", "bob"]),
        st.integers(0, 5),
    ),
    max_size=15,
)


@pytest.mark.long
@pytest.mark.slow
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(STEPS)
def test_every_label_is_one_of_the_classes(learner, tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("s") / "s"
    pool, options = [[float(i)] for i in range(6)], {"refit": False}

    def summarize(session):
        return session.labels, session.answers, session.classes, undoable(session)

    with LabelingSession(
        learner, pool, folder, classes=["a", "b"], **options
    ) as session:
        before = {}  # what there was before each event that can be undone
        for kind, first, second, who, id in steps:
            classes = session.classes
            if kind == "tell" and first in classes:
                session.tell(id, first, unasked=True, annotator=who)
            elif kind == "rename" and first in classes and first != second:
                before[session._core.state.seq + 1] = session.labels, classes
                session.rename_class(first, second, annotator=who)
            elif kind == "add" and first not in classes:
                before[session._core.state.seq + 1] = session.labels, classes
                session.add_class(first, annotator=who)
            elif kind == "remove" and len(classes) > 2 and first in classes:
                given = [a.values() for a in session.answers.values()]
                if any(first in labels for labels in given):
                    with pytest.raises(ValueError, match="a class without labels"):
                        remove_class(session, first, annotator=who)
                else:
                    before[session._core.state.seq + 1] = session.labels, classes
                    remove_class(session, first, annotator=who)
            elif kind == "undo" and (last := undoable(session, who)):
                at_once = (
                    last["seq"] == session._core.state.seq and last["seq"] in before
                )
                session.undo(annotator=who)
                if at_once:
                    assert (session.labels, session.classes) == before[last["seq"]]
            given = [a for answers in session.answers.values() for a in answers]
            assert {*session.labels.values()} <= {*session.classes}
            assert len(given) >= len(session.labels)
            assert len(set(session.classes)) == len(session.classes)
        found = summarize(session)
    with LabelingSession(
        learner, pool, folder, classes=["a", "b"], **options
    ) as session:
        assert summarize(session) == found


def test_without_classes_none_is_renamed(open_session):
    with pytest.raises(ValueError, match="of the session, which has none yet, got 'x'"):
        open_session().rename_class("x", "y")
