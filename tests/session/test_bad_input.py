"""What a session refuses, and what it says."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from skactive import LabelingSession
from skactive._storage._files import LineWriter, LockedError, read_lines
from skactive.session import Desk, read_labels


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "s" / "journal.jsonl"


def write_some(open_session):
    with open_session() as session:
        ids = session.ask().ids
        session.tell(ids[:2], ["ham", "spam"])
        session.tell(ids[2], "eggs")
        session.undo()
    return ids


def test_a_torn_last_line_is_moved_aside_and_reported(open_session, journal):
    ids = write_some(open_session)
    whole = journal.read_bytes()
    torn = b'{"v":2,"seq":6,"t":"2026'
    journal.write_bytes(whole + torn)
    with pytest.warns(UserWarning, match=r"torn.*24 bytes.*seq\":6") as caught:
        session = open_session()
    assert caught[0].filename.endswith("conftest.py")  # where it was opened
    assert session.labels == {ids[0]: "ham", ids[1]: "spam"}
    session.close()
    assert journal.read_bytes() == whole
    aside = journal.with_name("journal.jsonl.torn")
    assert aside.read_bytes() == torn + b"\n"
    journal.write_bytes(whole + b'{"v"')
    with pytest.warns(UserWarning, match="torn"):
        open_session()
    assert aside.read_bytes() == torn + b'\n{"v"\n'


@pytest.mark.parametrize(
    ("line", "change", "match"),
    [
        (3, {"event": "shout"}, "line 3 .*'shout' is not known"),
        (2, {"batch": 3}, "line 2 .*batch 3 follows"),
        (5, {"of": 1}, "line 5 .*no event 1 to take back"),
        (4, {"ids": []}, "line 4 .*contradicts earlier lines"),
        (3, {"ids": [999]}, "line 3 .*the id 999"),
        (4, {"labels": None}, "line 4 .*KeyError"),
        (5, {"of": None}, "line 5 .*KeyError: 'of'"),
        (3, {"event": "begin"}, "line 3 .*first event"),
        (2, {"v": 3}, "line 2 .*has the format version 3"),
        (4, {"seq": 9}, "line 4 .*has the number 9; expected 4"),
        (4, {"t": None}, "line 4 .*must be an event with"),
    ],
)
def test_a_line_that_contradicts_the_others_is_named(
    open_session, journal, line, change, match
):
    write_some(open_session)
    events = read_lines(journal)[0]
    changed = events[line - 1] | change
    events[line - 1] = {k: v for k, v in changed.items() if v is not None}
    journal.write_bytes(b"")
    with LineWriter(journal, checksums=True) as writer:
        for event in events:
            del event["crc"]
            writer.write(event)
    damaged = journal.read_bytes()
    with pytest.raises(ValueError, match=match):
        open_session()
    assert journal.read_bytes() == damaged  # nothing guessed, nothing changed
    with pytest.raises(ValueError, match=match):
        open_session()  # and nothing left locked


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (lambda b: b.replace(b'"ham"', b'"jam"', 1), "line 3 .*the checksum is of"),
        (lambda b: b.replace(b"}", b" }", 1), "line 1 .*checksum must be at the end"),
        (lambda b: b.replace(b'"crc"', b'"CRC"', 1), "line 1 .*has no checksum"),
        (lambda b: b.replace(b"\n", b"", 1), "line 1 .* is damaged"),
        (lambda b: b.split(b"\n", 1)[1], "line 1 .*has the number 2; expected 1"),
        (lambda b: b[:-1] + b"\v", "line 5 .* is damaged"),
        (lambda b: b[:-1] + b"J", "line 5 .* is damaged"),
    ],
)
def test_damage_names_the_line(open_session, journal, damage, match):
    write_some(open_session)
    damaged = damage(journal.read_bytes())
    journal.write_bytes(damaged)
    with pytest.raises(ValueError, match=match):
        open_session()
    assert journal.read_bytes() == damaged
    assert not journal.with_name("journal.jsonl.torn").exists()


def test_a_last_line_that_only_lacks_its_newline_counts(open_session, journal):
    with open_session() as session:
        session.tell(3, "ham", unasked=True)
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-1])
    assert read_labels(journal.parent) == {3: "ham"}
    session = open_session()
    assert session.labels == {3: "ham"}
    assert journal.read_bytes() == whole


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_journal_that_was_deleted_or_emptied_is_refused(
    open_session, journal, damage
):
    write_some(open_session)
    damage(journal)
    with pytest.raises(ValueError, match=r"journal\.jsonl' must hold the events of"):
        open_session()
    with pytest.raises(ValueError, match=r"journal\.jsonl' must hold the events of"):
        read_labels(journal.parent)


def test_a_session_that_was_killed_while_it_began_begins_again(open_session, journal):
    open_session().close()
    journal.with_name("manifest.json").unlink()  # which is written last
    assert open_session().labels == {}


def test_the_same_texts_in_another_container_are_the_same_pool(tmp_path, learner):
    texts = ["a film", "naïve 東京", "", "a film"]
    containers = [texts, tuple(texts), np.array(texts), np.array(texts, object)]
    containers += [pd.Series(texts), pd.Series(texts, dtype=object), pl.Series(texts)]
    told = {}
    for label, X in enumerate(containers):
        with LabelingSession(learner, X, tmp_path / "s") as session:
            assert session.labels == told
            session.tell([2], [label], unasked=True)
            told = session.labels
            assert told == {2: label}


def test_a_second_writer_is_refused_with_the_name_of_the_first(open_session):
    session = open_session()
    who = f"is open for writing in process {os.getpid()} on .*, since 20"
    with pytest.raises(LockedError, match=who):
        open_session()
    session.ask()  # the first goes on
    session.close()
    open_session()


@pytest.mark.slow
def test_a_second_process_is_refused_with_the_name_of_the_first(open_session):
    session = open_session()
    code = f"""
import numpy as np
from sklearn.linear_model import LogisticRegression
from skactive import ActiveLearner, LabelingSession
try:
    LabelingSession(ActiveLearner(LogisticRegression()), [[0.0]], {session.folder!r})
except RuntimeError as exc:
    print(exc)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"in process {os.getpid()} on" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_cannot_write(open_session):
    session = open_session()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            session.ask()
        except RuntimeError as exc:
            os.write(write, str(exc).encode())
        session.close()
        os._exit(0)
    os.waitpid(pid, 0)
    assert b"was opened in process" in os.read(read, 1000)
    with pytest.raises(LockedError):  # the child's close left the lock alone
        open_session()


def test_ids_unknown_or_repeated_are_refused(open_session, journal):
    session = open_session()
    a, b = session.ask(2).ids
    before = journal.read_bytes()
    for call in (session.skip, lambda ids: session.tell(ids, ["x"] * len(ids))):
        for ids, match in [
            ([a, 60, "x"], "got 60, 'x', which are not among its 60 ids"),
            ([a, b, a], f"got {a} more than once"),
            ([], "'ids' must name at least one"),
            ([a, 1.0], "got 1.0, which"),
            ([True], "got True"),
            ([[a]], r"got \["),
        ]:
            with pytest.raises(ValueError, match=match):
                call(ids)
    with pytest.raises(ValueError, match="got 99, which"):
        session.history(99)
    with pytest.raises(ValueError, match="must be items of open batches"):
        session.release([(a + 1) % 60 if (a + 1) % 60 != b else (a + 2) % 60])
    assert journal.read_bytes() == before
    assert session.labels == {}


@pytest.mark.long
@pytest.mark.parametrize(
    ("labels", "error", "match"),
    [
        (["ham"], ValueError, "one label for each of the 2 ids, got 1"),
        (["ham", None], ValueError, "must hold a label for .*, got None"),
        (["ham", float("nan")], ValueError, "must hold a label for"),
        (["ham", pd.NA], ValueError, "must hold a label for"),
        (["ham", ""], ValueError, "must hold a label for .*, got ''"),
        ([1, 10**25], ValueError, "int of at most 64 bits, got 10000"),
        ([1.0, np.inf], ValueError, "must hold a label for"),
        (["ham", 1], TypeError, "of one kind in a session, here str; got 1"),
        ([True, 1], TypeError, "here bool; got 1"),
        ("ab", TypeError, "a sequence with one label for each of the 2 ids"),
        (5, TypeError, "a sequence with one label"),
        (["ham", {"a": 1}], TypeError, "must hold str, int, bool or float, got {'a'"),
        ([[0, 1], [1]], TypeError, "here list of 2"),
        ({0: "ham", 1: "spam"}, TypeError, r"a sequence .* tell\({id: label, "),
        ({"ham", "spam"}, TypeError, "'labels' must be a sequence .* got {"),
        ({0: "ham", 1: "spam"}.keys(), TypeError, "'labels' must be a sequence"),
    ],
)
def test_labels_that_are_none_are_refused(open_session, journal, labels, error, match):
    session = open_session()
    ids = session.ask(2).ids
    before = journal.read_bytes()
    with pytest.raises(error, match=match):
        session.tell(ids, labels)
    assert journal.read_bytes() == before
    session.tell(ids, ["ham", "spam"])


@pytest.mark.parametrize("ids", [{3, 10}, {3: "ham", 10: "spam"}, None, 3.0])
def test_ids_in_no_order_are_refused(open_session, ids):
    session = open_session()
    with pytest.raises(TypeError, match="'ids' must be an id or a sequence of ids"):
        session.tell(ids, ["ham", "spam"], unasked=True)
    with pytest.raises(TypeError, match="'ids' must be an id or a sequence of ids"):
        session.skip(ids, unasked=True)
    assert session.labels == {}


def test_a_list_of_one_is_no_label_of_one_id(open_session):
    session = open_session()
    session.tell(5, "ham", unasked=True)
    with pytest.raises(TypeError, match=r"one kind .*, here str; got \['ham'"):
        session.tell(6, ["ham"], unasked=True)


@pytest.mark.parametrize("value", ["no", 1, None])
def test_an_option_that_is_neither_true_nor_false_is_refused(open_session, value):
    session = open_session()
    for call in (
        lambda: session.tell(3, "ham", unasked=value),
        lambda: session.skip(3, unasked=value),
        lambda: session.import_labels("labels.csv", ignore_unknown=value),
    ):
        with pytest.raises(TypeError, match="must be True or False, got"):
            call()


@pytest.mark.parametrize("path", [None, 5])
def test_what_is_no_path_is_refused_by_name(open_session, learner, data, path):
    match = f"must be a str or path-like, got {path}"
    with pytest.raises(TypeError, match=f"'folder' {match}"):
        LabelingSession(learner, data[0], path)
    session = open_session()
    with pytest.raises(TypeError, match=match):
        session.export(path)
    with pytest.raises(TypeError, match=match):
        session.import_labels(path)


def test_labels_of_another_kind_than_before_are_refused(open_session, learner, data):
    session = open_session()
    a, b = session.ask(2).ids
    session.tell(a, "ham")
    with pytest.raises(TypeError, match=f"here str; got 3 for {b}"):
        session.tell(b, 3)
    fitted = clone(learner).fit(data[0][:30], data[1][:30])
    other = open_session(folder=session.folder + "2", learner=fitted)
    with pytest.raises(TypeError, match="here str; got 3"):
        other.tell(other.ask(1).ids, [3])


@pytest.mark.parametrize(
    "answer", [np.array([1.0, 2.0]), np.full(60, np.nan), None, "best"]
)
def test_a_strategy_that_returns_invalid_positions_is_named(
    open_session, learner, journal, answer
):
    def nonsense_scores(view):
        return answer

    odd = clone(learner).set_params(
        strategy=nonsense_scores, cold_start=nonsense_scores
    )
    session = open_session(learner=odd)
    with pytest.raises((ValueError, TypeError), match="nonsense_scores"):
        session.ask()
    assert journal.read_bytes().count(b"\n") == 1
    session.tell(0, "ham", unasked=True)


@pytest.mark.parametrize(
    ("picks", "match"),
    [
        ([0, 0, 1, 2], "a position more than once"),
        ([0, 1, 2, 60], "got 60"),
        ([0.5] * 4, "dtype float64"),
        ([0, 1], "got 2 of them"),
        ([0, 1, 2, 7], "among the candidates, got 7, which is labeled"),
    ],
)
def test_what_goes_into_the_journal_is_checked(
    open_session, monkeypatch, journal, picks, match
):
    session = open_session()
    session.tell(7, "ham", unasked=True)
    before = journal.read_bytes()
    kind = type(session.learner)
    monkeypatch.setattr(kind, "query", lambda *args, **kwargs: np.array(picks))
    with pytest.raises(ValueError, match=f"'margin' must select.*{match}"):
        session.ask()
    assert journal.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"ids": ["a"]}, ValueError, "'ids' must name each of the 60 items .* got 1"),
        ({"ids": ["a"] * 60}, ValueError, "'ids' must be unique, got 'a' more than"),
        ({"ids": [0.5] * 60}, TypeError, r"must hold str or int, got 0.5 \(float\)"),
        ({"ids": [True] * 60}, TypeError, "must hold str or int, got True"),
        ({"ids": "a" * 60}, TypeError, "must be a sequence of n ids"),
        ({"ids": set(range(60))}, TypeError, "must be a sequence of n ids"),
        ({"refit": "later"}, ValueError, "'refit' must be True, False or 'backgro"),
        ({"n_labels": 0}, ValueError, "'n_labels' must be an int of at least 1"),
        ({"annotator": 3}, TypeError, "'annotator' must be a str or None, got 3"),
        ({"learner": "margin"}, TypeError, "'learner' must be an ActiveLearner, got"),
        ({"X": []}, ValueError, "'X' holds no items"),
        ({"X": "text"}, TypeError, "must be a sequence of items"),
    ],
)
def test_bad_arguments_are_named(open_session, tmp_path, options, error, match):
    with pytest.raises(error, match=match):
        open_session(**options)
    assert not (tmp_path / "s").exists()  # refused before anything is made


def test_an_index_with_duplicates_is_refused(open_session, data):
    with pytest.raises(ValueError, match="the index of 'X_pool' must be unique"):
        open_session(pd.DataFrame(data[0], index=[0] * 60))
    with pytest.raises(TypeError, match="the index of 'X_pool' must hold str or int"):
        open_session(pd.DataFrame(data[0], index=pd.date_range("2026", periods=60)))


@pytest.mark.parametrize(
    ("n", "error"),
    [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)],
)
def test_a_bad_number_of_items_is_refused(open_session, n, error):
    with pytest.raises(error, match="'n_queries' must be"):
        open_session().ask(n)


def test_a_folder_of_something_else_is_left_alone(open_session, tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "thesis.tex").write_text("x")
    with pytest.raises(FileExistsError, match=r"holds 'thesis\.tex' and no 'man"):
        open_session()
    (folder / "manifest.json").write_text('{"format": "skactive", "files": {}}')
    with pytest.raises(FileExistsError, match=r"a 'manifest\.json' of something"):
        open_session()
    (folder / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="must be the manifest of a session, and is"):
        open_session()
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileExistsError, match="which is a file"):
        open_session(folder=tmp_path / "file")
    # Some versions of filelock remove their file.
    assert {*os.listdir(folder)} - {"lock"} == {"manifest.json", "thesis.tex"}


def test_a_lost_or_newer_manifest_is_refused(open_session, journal):
    write_some(open_session)
    manifest = journal.with_name("manifest.json")
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**content, "format_version": 3}))
    with pytest.raises(ValueError, match=r"version 3; this version .* reads 2"):
        open_session()
    manifest.unlink()
    with pytest.raises(ValueError, match=r"holds a 'journal\.jsonl' and no 'manifest"):
        open_session()


def test_a_clock_that_goes_backwards_changes_nothing(open_session, monkeypatch):
    now = time.time()
    ticks = iter(now - 3600.0 * i for i in range(10_000))
    monkeypatch.setattr(time, "time", lambda: next(ticks))
    with open_session() as session:
        a, b = session.ask(2).ids
        session.tell([a, b], ["ham", "spam"])
        session.tell(a, "eggs")
    session = open_session()
    assert session.labels == {a: "eggs", b: "spam"}
    times = [event["time"] for event in session.history(a)]
    assert times == sorted(times, reverse=True)  # as the clock had it
    assert [event["seq"] for event in session.history(a)] == [2, 3, 4]


@pytest.mark.parametrize("argument", ["id", "label", "text"])
@pytest.mark.parametrize("value", [5, {"a": 1}, np.array([None, {}], dtype=object)])
def test_a_column_that_is_no_str_is_named(open_session, argument, value):
    with (
        open_session() as session,
        pytest.raises(TypeError, match=f"'{argument}' must be the name of a column"),
    ):
        session.import_labels("labels.csv", **{argument: value})


def test_an_annotator_is_checked_where_nothing_is_imported(open_session, tmp_path):
    with open_session() as session:
        session.export(tmp_path / "none.csv")
        with pytest.raises(TypeError, match="'annotator'"):
            session.import_labels(tmp_path / "none.csv", annotator=5)


@pytest.mark.parametrize("verbose", ["yes", [], -1, 1.5])
def test_verbose_is_a_number(open_session, verbose):
    with pytest.raises(ValueError, match="verbose' must be an int of at least 0"):
        open_session(verbose=verbose)


def test_an_empty_path_is_refused(learner, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="'folder' must name a file or folder, got ''"):
        LabelingSession(learner, data[0], "")
    assert not list(tmp_path.iterdir())


def test_an_array_without_dimensions_is_one_label(open_session):
    session = open_session()
    session.tell(1, np.array(5), unasked=True)
    assert session.labels == {1: 5}


@pytest.mark.parametrize(
    "what", [np.array([1, 2]), np.array([]), pd.DataFrame({"a": [1]}), 3, "none"]
)
@pytest.mark.parametrize("format", [None, "doccano"])
def test_an_export_of_something_else_is_refused(open_session, tmp_path, what, format):
    session = open_session()
    with pytest.raises(ValueError, match="'what' must be one of 'labels', 'answers'"):
        session.export(tmp_path / "out.jsonl", what=what, format=format)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    "label", [float("inf"), -np.inf, float("nan"), np.array(np.inf)]
)
def test_a_label_that_is_no_finite_number_is_refused(open_session, label):
    session = open_session()
    with pytest.raises(ValueError, match="Nothing was recorded"):
        session.tell(1, label, unasked=True)
    with pytest.raises(ValueError, match="Nothing was recorded"):
        session.tell([1, 2], [1.0, label], unasked=True)
    assert not session.labels


def test_an_annotator_of_a_desk_is_no_array(open_session):
    wrong = pytest.raises(ValueError, match="'annotator' must be None or a str of at")
    with Desk(open_session(refit=False)) as desk, wrong:
        desk.state(np.empty((0, 2)))


def test_a_label_that_ends_in_a_null_character_is_not_recorded(open_session):
    with open_session() as session:
        ids = session.ask().ids
        with pytest.raises(ValueError, match=r"must not end in a null .* got 'a\\x00'"):
            session.tell(ids[:2], ["ham", "a\0"])
        assert not session.labels


@pytest.mark.parametrize(
    ("strategy", "multi_label", "labeled"),
    [
        *[("greedy_sampling", several, 0) for several in (None, True, False)],
        *[("cvirs", False, 0), ("cvirs", None, 9)],
    ],
)
def test_a_strategy_for_other_targets_is_refused_at_opening(
    open_session, learner, data, tmp_path, strategy, multi_label, labeled
):
    learner = clone(learner).set_params(strategy=strategy)
    if labeled:
        learner.teach(data[0][:labeled], data[1][:labeled], refit=False)
    with pytest.raises(TypeError, match=f"'{strategy}' is defined for .* only"):
        open_session(learner=learner, multi_label=multi_label)
    assert not (tmp_path / "s" / "manifest.json").exists()


def test_a_strategy_for_what_the_labels_may_become_is_accepted(open_session, learner):
    learner = clone(learner).set_params(strategy="cvirs")
    assert open_session(learner=learner).target == "single-label"


@pytest.mark.parametrize("labels", [[1.5], [np.float64(0.5)], [[1, 0.5]]])
def test_a_fraction_is_no_class(open_session, journal, labels):
    session = open_session()
    before = journal.read_bytes()
    with pytest.raises(TypeError, match=r"must be classes.* for 3\. Nothing was rec"):
        session.tell([3], labels, unasked=True)
    assert journal.read_bytes() == before
    session.tell([3, 4], np.array([1.0, 2.0]), unasked=True)  # of a column of floats
