"""Answers out of a session and into another, as files of other programs."""

import json
from datetime import datetime

import pytest

from skactive import LabelingSession

TEXTS = ["fire in town", "nice day", "flood", "lunch", 'a "naïve"\nline', "fire"]
FORMATS = {
    "label-studio": "json",
    "prodigy": "jsonl",
    "argilla": "json",
    "doccano": "jsonl",
}


@pytest.fixture
def open_texts(learner, tmp_path):
    """Open a session over texts; nothing is trained in these tests."""
    opened = []

    def open_texts(name="s", X=TEXTS, **options):
        options = {"refit": False, "annotator": "me", **options}
        opened.append(LabelingSession(learner, X, tmp_path / name, **options))
        return opened[-1]

    yield open_texts
    for session in opened:
        session.close()


@pytest.fixture
def write(tmp_path):
    """Write records as a file of a format, and return its path."""

    def write(records, format):
        path = tmp_path / f"given.{FORMATS[format]}"
        if FORMATS[format] == "json":
            path.write_text(json.dumps(records), encoding="utf-8")
        else:
            lines = "".join(json.dumps(record) + "\n" for record in records)
            path.write_text(lines, encoding="utf-8")
        return path

    return write


# By hand, in the form that the documentation of the program shows.
def choice(name, question="label"):
    return {
        "from_name": question,
        "to_name": "text",
        "type": "choices",
        "id": "Dx_aB91ISN",
        "origin": "manual",
        "value": {"choices": [name]},
    }


LABEL_STUDIO = [
    {
        "id": 11,
        "data": {"text": "fire in town"},
        "created_at": "2026-03-09T21:52:49.513742Z",
        "project": 8,
        "annotations": [
            {
                "id": 1001,
                "result": [choice("disaster")],
                "was_cancelled": False,
                "ground_truth": False,
                "created_at": "2026-03-09T22:16:08.728353Z",
                "updated_at": "2026-03-09T22:16:08.728378Z",
                "lead_time": 4.288,
                "task": 11,
                "completed_by": {"id": 1, "email": "ann@example.org"},
            },
            {
                "id": 1002,
                "result": [choice("no")],
                "was_cancelled": False,
                "updated_at": "2026-03-09T22:17:08.728378Z",
                "lead_time": 2.5,
                "completed_by": 2,
            },
        ],
        "predictions": [{"result": [choice("no")], "score": 0.9}],
    },
    {
        "id": 12,
        "data": {"text": "nice day"},
        "annotations": [{"result": [], "was_cancelled": True, "completed_by": 2}],
        "predictions": [],
    },
    {
        "id": 13,
        "data": {"text": "flood"},
        "annotations": [],
        "predictions": [{"result": [choice("disaster")], "score": 0.8}],
    },
]
PRODIGY = [
    {
        "text": "fire in town",
        "options": [{"id": "disaster", "text": "Disaster"}, {"id": "no", "text": "No"}],
        "meta": {"source": "tweets"},
        "_input_hash": -1455588271,
        "_task_hash": 1232119432,
        "_view_id": "choice",
        "accept": [label],
        "answer": "accept",
        "_timestamp": 1774000000,
        "_annotator_id": f"tweets-{annotator}",
        "_session_id": f"tweets-{annotator}",
    }
    for label, annotator in (("disaster", "ann"), ("no", "bob"))
] + [
    {"text": "nice day", "accept": [], "answer": "ignore", "_annotator_id": "bob"},
    {"text": "flood", "accept": [], "answer": "reject", "_annotator_id": "bob"},
    {"text": "lunch", "accept": ["no"], "answer": "accept", "_session_id": "eve"},
]
USERS = [
    "c5f4e9a0-7d0f-4c0e-8d1e-0a5b2c3d4e5f",
    "0b6d2f3c-1111-4222-8333-444455556666",
]
ARGILLA = [
    {
        "id": "t1",
        "fields": {"text": "fire in town"},
        "metadata": {"source": "tweets"},
        "suggestions": {"label": {"value": "no", "score": 0.9, "agent": "model"}},
        "responses": {
            "label": [
                {"value": "disaster", "user_id": USERS[0]},
                {"value": "no", "user_id": USERS[1], "status": "submitted"},
            ]
        },
        "vectors": {},
        "status": "completed",
        "_server_id": "5a9d2f3c-1111-4222-8333-444455556666",
    },
    {
        "id": "t2",
        "fields": {"text": "nice day"},
        "responses": {
            "label": [{"value": None, "user_id": USERS[1], "status": "discarded"}]
        },
    },
    {
        "id": "t3",
        "fields": {"text": "flood"},
        "responses": {
            "label": [{"value": "no", "user_id": USERS[0], "status": "draft"}]
        },
        "status": "pending",
    },
]
DOCCANO = [
    {"id": 7, "text": "fire in town", "label": ["disaster"], "Comments": []},
    {"id": 8, "text": "nice day", "label": []},
    {"id": 9, "text": "lunch", "label": ["no"], "Comments": []},
]


@pytest.mark.parametrize(
    ("format", "records", "answers", "skipped"),
    [
        (
            "label-studio",
            LABEL_STUDIO,
            {0: {"ann@example.org": "disaster", "2": "no"}},
            [1],
        ),
        (
            "prodigy",
            PRODIGY,
            {0: {"tweets-ann": "disaster", "tweets-bob": "no"}, 3: {"eve": "no"}},
            [1],
        ),
        ("argilla", ARGILLA, {0: {USERS[0]: "disaster", USERS[1]: "no"}}, [1]),
        ("doccano", DOCCANO, {0: {"me": "disaster"}, 3: {"me": "no"}}, []),
    ],
)
def test_documented_files_are_read(
    open_texts, write, format, records, answers, skipped
):
    session = open_texts()
    path = write(records, format)
    imported = session.import_labels(path, format=format)
    assert session.answers == answers
    assert session.skipped == skipped
    assert imported.added == list(answers)
    seq = session._core.state.seq
    again = session.import_labels(path, format=format)
    assert again.unchanged == list(answers)
    assert again.added == again.conflicts == again.unknown == []
    assert session._core.state.seq == seq


def test_seconds_of_label_studio_are_kept(open_texts, write):
    session = open_texts()
    session.import_labels(write(LABEL_STUDIO, "label-studio"), format="label-studio")
    assert [event["seconds"] for event in session.history(0)] == [4.288, 2.5]


def test_an_import_is_one_answer_of_each_person_and_bad_seconds_are_left_out(
    open_texts, write
):
    session = open_texts()
    people = [("ann", "a", 1.0), ("bob", "b", 2.0), ("ann", "c", 3.0), ("eve", "d", -1)]
    tasks = [
        {
            "data": {"text": text},
            "annotations": [
                {
                    "result": [choice(label)],
                    "lead_time": seconds,
                    "completed_by": {"email": person},
                    "updated_at": f"2026-01-0{9 - id}",
                }
            ],
        }
        for id, (text, (person, label, seconds)) in enumerate(
            zip(TEXTS, people, strict=False)
        )
    ]
    session.import_labels(write(tasks, "label-studio"), format="label-studio")
    assert [session.history(id)[0]["seconds"] for id in (0, 1, 2)] == [1.0, 2.0, 3.0]
    assert session.history(3)[0].get("seconds") is None
    for person, ids in (("eve", [3]), ("bob", [1]), ("ann", [0, 2])):
        assert session.undo(annotator=person)["ids"] == ids
    assert session.labels == {}


@pytest.mark.long
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("labels", [("pos", "neg"), (0, 1), (True, False), ("1", "2")])
def test_answers_of_several_people_survive_a_round_trip(
    open_texts, tmp_path, format, labels
):
    first = open_texts("first", classes=labels)
    first.tell([0, 4, 5], [labels[0], labels[1], labels[0]], unasked=True)
    first.tell([0, 4], [labels[1], labels[1]], annotator="bob", seconds=[1.5, 2])
    first.skip([2], unasked=True, annotator="bob")
    path = tmp_path / f"all.{FORMATS[format]}"
    first.export(path, format=format)
    second = open_texts("second", classes=labels)
    imported = second.import_labels(path, format=format)
    assert second.answers == first.answers
    assert second.labels == first.labels
    assert second.skipped == ([] if format == "doccano" else [2])
    assert sorted(imported.added) == [0, 4, 5]
    if format == "label-studio":
        assert second.history(0)[-1]["seconds"] == 1.5


@pytest.mark.parametrize("format", FORMATS)
def test_open_items_are_exported_without_answers(open_texts, tmp_path, format):
    session = open_texts()
    session.tell(0, "no", unasked=True)
    asked = session.ask(2).ids
    path = tmp_path / f"todo.{FORMATS[format]}"
    session.export(path, what="open", format=format)
    imported = session.import_labels(path, format=format)
    assert imported.added == imported.unchanged == []
    text = path.read_text("utf-8")
    records = json.loads(text) if FORMATS[format] == "json" else text.splitlines()
    assert len(records) == len(asked) == 2


def test_files_have_the_form_that_the_programs_load(open_texts, tmp_path):
    session = open_texts(classes=["disaster", "no"])
    session.tell(0, "disaster", unasked=True, seconds=2.0)
    records = {}
    for format, suffix in FORMATS.items():
        path = tmp_path / f"one.{suffix}"
        session.export(path, format=format)
        (records[format],) = (
            json.loads(path.read_text("utf-8"))
            if suffix == "json"
            else map(json.loads, path.read_text("utf-8").splitlines())
        )
    (annotation,) = records["label-studio"]["annotations"]
    assert records["label-studio"]["data"] == {"text": TEXTS[0], "skactive_id": 0}
    assert annotation["result"] == [
        {
            key: value
            for key, value in choice("disaster").items()
            if key not in ("id", "origin")
        }
    ]
    assert (annotation["was_cancelled"], annotation["lead_time"]) == (False, 2.0)
    assert annotation["completed_by"] == {"email": "me"}
    task = records["prodigy"]
    assert [option["id"] for option in task["options"]] == ["disaster", "no"]
    assert (task["accept"], task["answer"]) == (["disaster"], "accept")
    assert task["_annotator_id"] == "me"
    told = datetime.fromisoformat(session.history(0)[0]["time"])
    assert task["_timestamp"] == int(told.timestamp())
    record = records["argilla"]
    assert (record["id"], record["fields"]) == ("0", {"text": TEXTS[0]})
    (response,) = record["responses"]["label"]
    assert (response["value"], response["status"]) == ("disaster", "submitted")
    assert len(response["user_id"]) == 36
    assert records["doccano"]["text"] == TEXTS[0]
    assert records["doccano"]["label"] == ["disaster"]


def test_answers_without_a_name_stay_without_one(open_texts, tmp_path):
    for format, suffix in FORMATS.items():
        first = open_texts(f"{format} 1", annotator=None)
        first.tell(0, "no", unasked=True)
        path = tmp_path / f"unnamed.{suffix}"
        first.export(path, format=format)
        assert "completed_by" not in path.read_text("utf-8")
        second = open_texts(f"{format} 2", annotator=None)
        second.import_labels(path, format=format)
        assert second.answers == {0: {None: "no"}}


def test_pairs_of_texts_survive_a_round_trip(open_texts, tmp_path):
    pairs = [("a", "b"), ("a", "c"), ("b", "b")]
    for format, suffix in FORMATS.items():
        first = open_texts(f"{format} 1", X=pairs)
        first.tell([1, 2], ["yes", "no"], unasked=True)
        first.export(tmp_path / f"pairs.{suffix}", format=format)
        second = open_texts(f"{format} 2", X=pairs)
        second.import_labels(tmp_path / f"pairs.{suffix}", format=format)
        assert second.labels == first.labels


def test_copies_of_a_text_are_found_by_the_id_of_the_pool(open_texts, tmp_path):
    texts = ["same", "other", "same", "same"]
    first = open_texts("first", X=texts)
    first.tell([2, 0], ["no", "yes"], unasked=True)
    first.tell([2], ["yes"], annotator="bob")
    first.export(tmp_path / "x.jsonl", format="prodigy")
    second = open_texts("second", X=texts)
    second.import_labels(tmp_path / "x.jsonl", format="prodigy")
    assert second.answers == first.answers


def test_two_people_who_answer_one_text_answer_one_copy(open_texts, write):
    session = open_texts(X=["same", "same", "other"])
    tasks = [
        {"text": "same", "accept": ["x"], "answer": "accept", "_annotator_id": by}
        for by in ("ann", "bob", "bob")
    ]
    session.import_labels(write(tasks, "prodigy"), format="prodigy")
    assert session.answers == {0: {"ann": "x", "bob": "x"}, 1: {"bob": "x"}}


def test_the_last_annotation_of_a_person_counts(open_texts, write):
    task = {"data": {"text": "flood"}, "annotations": []}
    for label, time in (("a", "2026-01-03"), ("b", "2026-01-02"), (None, "2026-01-04")):
        task["annotations"].append(
            {
                "result": [choice(label)] if label else [],
                "was_cancelled": label is None,
                "updated_at": time,
                "completed_by": 1,
            }
        )
    session = open_texts()
    session.import_labels(write([task], "label-studio"), format="label-studio")
    assert session.answers == {2: {"1": "a"}}
    assert session.skipped == []


def test_nested_choices_are_read_and_regions_are_not(open_texts, write):
    about = choice("odd")
    about["value"] |= {"start": 0, "end": 4, "text": "flood"}
    result = [about, choice(["bad", "sad"])]
    task = {"data": {"text": "flood"}, "annotations": [{"result": result}]}
    session = open_texts()
    session.import_labels(write([task], "label-studio"), format="label-studio")
    assert session.labels == {2: "sad"}


def test_one_of_several_questions_is_named(open_texts, write):
    session = open_texts()
    result = [choice("spam", "kind"), choice("en", "language")]
    task = {"data": {"review": "flood"}, "annotations": [{"result": result}]}
    path = write([task], "label-studio")
    with pytest.raises(
        ValueError,
        match=r"annotation 1 of record 1 of .*given.json' "
        r"must answer the question 'label' with classes, got .* 'kind', 'language'",
    ):
        session.import_labels(path, format="label-studio", text="review")
    session.import_labels(path, format="label-studio", text="review", label="language")
    assert session.labels == {2: "en"}


def test_other_answers_of_the_same_person_are_conflicts(open_texts, write):
    session = open_texts(annotator="eve")
    session.tell(3, "yes", unasked=True)
    imported = session.import_labels(write(PRODIGY, "prodigy"), format="prodigy")
    assert imported.conflicts == [(3, "yes", "no")]
    assert imported.added == [0]
    assert session.answers[3] == {"eve": "yes"}


def test_unknown_items_are_refused_or_ignored(open_texts, write):
    path = write([*DOCCANO, {"text": "new", "label": ["no"]}], "doccano")
    session = open_texts()
    with pytest.raises(ValueError, match="1 items that are not in the pool: 'new'"):
        session.import_labels(path, format="doccano")
    assert session.labels == {}
    imported = session.import_labels(path, format="doccano", ignore_unknown=True)
    assert imported.unknown == ["new"]
    assert session.labels == {0: "disaster", 3: "no"}


GOOD = {"text": "flood", "accept": ["no"], "answer": "accept"}


@pytest.mark.parametrize(
    ("format", "content", "match"),
    [
        ("prodigy", '{"text": "flood"', "line 1 of .* cannot be read as JSON"),
        ("prodigy", "[1]", "record 1 of .* must be an object, got 1. Export it again"),
        (
            "prodigy",
            json.dumps(GOOD) + "\n\n" + json.dumps({**GOOD, "answer": "yes"}),
            "line 3 of .* must have 'answer', one of 'accept', 'ignore', 'reject', got",
        ),
        ("prodigy", json.dumps({**GOOD, "accept": ["a", "b"]}), "must have one label"),
        ("prodigy", json.dumps({**GOOD, "accept": [None]}), "a label of text or a num"),
        ("prodigy", json.dumps({**GOOD, "text": 7}), "must have 'text', a text, got 7"),
        (
            "prodigy",
            json.dumps({"answer": "accept"}),
            "must have 'text', a text, got N",
        ),
        (
            "prodigy",
            json.dumps(GOOD) + "\n" + json.dumps({**GOOD, "accept": ["x"]}),
            r"several for 1: line 1 of .*bad\.jsonl' and line 2 of .*bad\.jsonl'\. K",
        ),
        ("label-studio", "{}", "line 1 of .* must have 'data', an object, got None"),
        ("label-studio", "[{]", r"must be a JSON list, got '\[\{\]'"),
        ("label-studio", "", "must hold records, got none"),
        (
            "label-studio",
            '[{"text": "flood"}]',
            "record 1 of .* must have 'data', an o",
        ),
        (
            "label-studio",
            '[{"data": {"text": "flood"}, "annotations": [{"result": 3}]}]',
            "annotation 1 of record 1 of .* must be an answer in the form of the pro",
        ),
        (
            "label-studio",
            '[{"data": {"review": "flood"}, "annotations": []}]',
            "'data' in record 1 of .* must have 'text', a text",
        ),
        ("argilla", '[{"id": "1"}]', "record 1 of .* must have 'fields', an object"),
        (
            "argilla",
            '[{"fields": {"text": "flood"}, "responses": {"label": [{"status": 1}]}}]',
            "response 1 of record 1 of .* must have 'status', one of 'submitted',",
        ),
        ("doccano", '{"text": "flood", "label": ["a", "b"]}', "must have one label"),
        ("doccano", '{"review": "flood", "label": ["a"]}', "must have 'text', a text"),
    ],
)
def test_a_malformed_file_is_refused_whole(
    open_texts, tmp_path, format, content, match
):
    path = tmp_path / f"bad.{FORMATS[format]}"
    path.write_text(content)
    session = open_texts()
    with pytest.raises(ValueError, match=match) as caught:
        session.import_labels(path, format=format)
    assert "Nothing was recorded" in str(caught.value)
    assert str(path) in str(caught.value)
    assert session._core.state.seq == 1


def test_nothing_is_recorded_if_a_later_annotator_uses_an_unknown_class(
    open_texts, write
):
    session = open_texts(classes=["disaster", "yes"])
    with pytest.raises(ValueError, match="among the classes of the session"):
        session.import_labels(write(PRODIGY, "prodigy"), format="prodigy")
    assert session._core.state.seq == 1


def test_what_cannot_be_done_is_refused(open_texts, open_session, tmp_path):
    session = open_texts("texts")
    with pytest.raises(ValueError, match="'format' must be one of 'label-studio', 'p"):
        session.export(tmp_path / "x.json", format="brat")
    with pytest.raises(ValueError, match="'format' must be one of 'label-studio', 'p"):
        session.import_labels(tmp_path / "x.json", format="brat")
    with pytest.raises(FileNotFoundError, match="must be a file"):
        session.import_labels(tmp_path / "x.json", format="argilla")
    with pytest.raises(FileNotFoundError, match="in a folder that exists"):
        session.export(tmp_path / "none" / "x.json", format="argilla")
    (tmp_path / "latin.jsonl").write_bytes("é".encode("latin-1"))
    with pytest.raises(ValueError, match="must be UTF-8 text, got byte 0"):
        session.import_labels(tmp_path / "latin.jsonl", format="doccano")
    numbers = open_session()
    for use in (numbers.export, numbers.import_labels):
        with pytest.raises(ValueError, match="None for a pool without texts"):
            use(tmp_path / "latin.jsonl", format="doccano")


# Several classes of one item

NAMED = {"fire in town": ["fire", "town"], "nice day": [], "flood": ["town"]}
SEVERAL = {
    "label-studio": [
        {
            "data": {"text": text},
            "annotations": [
                {
                    "result": [
                        {**choice(""), "value": {"choices": names[::-1]}},
                    ][: len(names)],
                    "was_cancelled": False,
                    "completed_by": {"email": "ann@example.org"},
                }
            ],
        }
        for text, names in NAMED.items()
    ],
    "prodigy": [
        {
            "text": text,
            "options": [{"id": name, "text": name} for name in ("fire", "town")],
            "accept": names[::-1],
            "answer": "accept",
            "_annotator_id": "ann@example.org",
        }
        for text, names in NAMED.items()
    ],
    "argilla": [
        {
            "fields": {"text": text},
            "metadata": {"annotators": ["ann@example.org"]},
            "responses": {
                "label": [{"value": names[::-1], "user_id": "5", "status": "submitted"}]
            },
        }
        for text, names in NAMED.items()
    ],
    "doccano": [
        {"text": text, "label": names[::-1], "annotator": "ann@example.org"}
        for text, names in NAMED.items()
    ],
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "options", [{"multi_label": True}, {"classes": ["fire", "town"]}]
)
def test_lists_of_names_are_imported(open_texts, write, format, options):
    session = open_texts(**options)
    if "classes" in options:
        session.tell(5, ["fire", "town"], unasked=True)
    path = write(SEVERAL[format], format)
    session.import_labels(path, format=format)
    assert [session.labels[id] for id in (0, 1, 2)] == list(NAMED.values())
    assert session.answers[0] == {"ann@example.org": ["fire", "town"]}
    again = session.import_labels(path, format=format)
    assert (sorted(again.unchanged), again.conflicts) == ([0, 1, 2], [])
    session.tell(0, ["fire"], annotator="ann@example.org")
    again = session.import_labels(path, format=format)
    ((id, own, other),) = again.conflicts
    assert (id, own, set(other)) == (0, ["fire"], {"fire", "town"})


@pytest.mark.parametrize("format", FORMATS)
def test_lists_of_names_go_out_and_come_back(open_texts, tmp_path, format):
    session = open_texts(classes=["town", "fire", "sun"])
    session.tell(
        {0: ["fire", "town"], 2: [], 3: ["sun"]}, unasked=True, annotator="ann"
    )
    session.tell({0: ["town"]}, unasked=True, annotator="bob")
    session.skip(4, unasked=True)
    path = tmp_path / f"x.{FORMATS[format]}"
    session.export(path, format=format)
    other = open_texts("other", multi_label=True, classes=["town", "fire", "sun"])
    other.import_labels(path, format=format)
    assert other.answers == session.answers
    assert '[\\"' not in path.read_text("utf-8")  # no list within a str


@pytest.mark.parametrize("format", FORMATS)
def test_lists_of_names_are_refused_where_one_class_is_told(open_texts, write, format):
    session = open_texts()
    with pytest.raises(ValueError, match=r"must have one label, .*multi_label=True"):
        session.import_labels(write(SEVERAL[format], format), format=format)
    assert session.labels == {}


def test_items_that_nobody_labeled_have_no_empty_list(open_texts, write, tmp_path):
    session = open_texts(multi_label=True)
    opened = [{"text": "flood", "label": []}, {"text": "lunch", "label": ["sun"]}]
    session.import_labels(write(opened, "doccano"), format="doccano")
    assert session.labels == {3: ["sun"]}
    for names, error in (([3], "must have names"), ([None], "must have names")):
        records = [{"text": "flood", "label": names}]
        with pytest.raises(ValueError, match=error):
            session.import_labels(write(records, "doccano"), format="doccano")
