"""Every answer of a file of another program is read or named."""

import csv
import json

import pytest

from skactive import LabelingSession

TEXTS = ["fire in town", "nice day", "flood", "lunch"]


@pytest.fixture
def load(learner, tmp_path):
    """Import a file of another program into a new session; return both results."""
    opened = []

    def load(records, format, name=None, *, label="label", text=None, **options):
        name = name or ("x.jsonl" if format in ("prodigy", "doccano") else "x.json")
        write(tmp_path / name, records)
        folder = tmp_path / f"s{len(opened)}"
        session = LabelingSession(
            learner, TEXTS, folder, refit=False, annotator="me", **options
        )
        opened.append(session)
        given = {} if text is None else {"text": text}
        path = tmp_path / name
        imported = session.import_labels(path, format=format, label=label, **given)
        left_out = {reason: len(where) for reason, where in imported.left_out.items()}
        return session, left_out

    yield load
    for session in opened:
        session.close()


def write(path, records):
    if path.suffix == ".csv":
        names = list(dict.fromkeys(name for record in records for name in record))
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names, quoting=csv.QUOTE_NONNUMERIC)
            writer.writeheader()
            writer.writerows(records)
    elif path.suffix == ".json":
        path.write_text(json.dumps(records, indent=1), encoding="utf-8")
    else:
        lines = "".join(json.dumps(record) + "\n" for record in records)
        path.write_text(lines, encoding="utf-8")


# Prodigy ------------------------------------------------------------------------------


def judge(text, label, answer, by="tweets-ann"):
    """Return a record as `textcat.teach` and `classification` write it."""
    return {
        "text": text,
        "label": label,
        "_input_hash": hash(text) % 10**9,
        "_task_hash": hash((text, label)) % 10**9,
        "spans": [{"start": 0, "end": 4, "label": label}],  # of a pattern
        "_view_id": "classification",
        "answer": answer,
        "_timestamp": 1774000000,
        "_session_id": by,
    }


def test_prodigy_choices_that_name_no_class_are_named(load):
    task = {"options": [{"id": "a", "text": "A"}], "_view_id": "choice"}
    records = [
        {**task, "text": "fire in town", "accept": [], "answer": "accept"},
        {**task, "text": "nice day", "accept": ["a"], "answer": "reject"},
        {**task, "text": "flood", "accept": ["a"], "answer": "accept"},
        {**task, "text": "lunch"},
    ]
    with pytest.warns(UserWarning, match=r"1 without a class \(line 1.*1 rejected "):
        session, left_out = load(records, "prodigy")
    assert session.labels == {2: "a"}
    assert left_out == {"without a class": 1, "rejected task": 1, "no answer": 1}


@pytest.mark.parametrize("answer", ["accept", "reject"])
def test_prodigy_judgments_of_one_label_are_named(load, answer):
    judged = judge("flood", "spam", answer)
    error = "line 1 of .* got answers to 'view classification'"
    with pytest.raises(ValueError, match=error):
        load([judged], "prodigy", classes=["spam", "ham"])
    good = {"text": "lunch", "accept": ["ham"], "answer": "accept"}
    session, left_out = load([judged, good], "prodigy", classes=["spam", "ham"])
    assert session.labels == {3: "ham"}
    assert left_out == {"not asked: view classification": 1}


@pytest.mark.parametrize("view", ["ner_manual", "spans_manual", "text_input"])
def test_prodigy_views_without_classes_are_named(load, view):
    spans = {"spans": [{"start": 0, "end": 4, "label": "A"}], "user_input": "fine"}
    odd = {"text": "flood", **spans, "answer": "accept", "_view_id": view}
    with pytest.raises(ValueError, match=f"line 1 of .* got answers to 'view {view}'"):
        load([odd], "prodigy", multi_label=True)
    good = {"text": "lunch", "accept": ["a"], "answer": "accept", "_view_id": "choice"}
    session, left_out = load([odd, good], "prodigy", multi_label=True)
    assert session.labels == {3: ["a"]}
    assert left_out == {f"not asked: view {view}": 1}


def test_prodigy_the_text_of_an_option_counts_if_it_is_the_class(load):
    options = [{"id": 1, "text": "good"}, {"id": 2, "text": "bad"}]
    task = {"options": options, "answer": "accept", "_view_id": "choice"}
    records = [{**task, "text": "flood", "accept": [2]}]
    swapped = [{"id": "a", "text": "b"}, {"id": "b", "text": "a"}]
    ids = [{**task, "options": swapped, "text": "flood", "accept": ["a"]}]
    assert load(ids, "prodigy", classes=["a", "b"])[0].labels == {2: "a"}
    assert load(records, "prodigy", classes=["good", "bad"])[0].labels == {2: "bad"}
    assert load(records, "prodigy")[0].labels == {2: 2}


# Label Studio -------------------------------------------------------------------------


def result(kind, value, name):
    return {"from_name": name, "to_name": "text", "type": kind, "value": value}


def task(text, *results, **annotation):
    about = {"completed_by": 1, "was_cancelled": False, "updated_at": "2026-01-01"}
    return {
        "data": {"text": text},
        "annotations": [{"result": list(results), **about, **annotation}],
        "predictions": [{"result": [result("choices", {"choices": ["no"]}, "label")]}],
    }


def test_label_studio_completions_of_old_versions_are_read(load):
    records = [
        {
            "data": {"text": text},
            "completions": [
                {"result": [choice], "created_at": 160, "skipped": skipped}
            ],
        }
        for text, choice, skipped in (
            ("flood", result("choices", {"choices": ["a"]}, "label"), False),
            ("lunch", result("choices", {"choices": ["a"]}, "label"), True),
        )
    ]
    session, left_out = load(records, "label-studio")
    assert (session.labels, session.skipped, left_out) == ({2: "a"}, [3], {})


@pytest.mark.parametrize(
    ("kind", "value", "label"),
    [
        ("rating", {"rating": 4}, 4),
        ("number", {"number": 2.0}, 2.0),
        ("taxonomy", {"taxonomy": [["food", "fruit"]]}, "fruit"),
        ("choices", {"choices": ["a"]}, "a"),
    ],
)
def test_label_studio_other_controls_are_read(load, kind, value, label):
    records = [task("flood", result(kind, value, "quality"))]
    assert load(records, "label-studio")[0].labels == {2: label}


def test_label_studio_what_names_no_class_is_named(load):
    choice = result("choices", {"choices": ["a"]}, "kind")
    comment = result("textarea", {"text": ["fine"]}, "comment")
    part = result("choices", {"choices": ["b"], "start": 0, "end": 2}, "kind")
    draft = {"data": {"text": "lunch"}, "annotations": [], "drafts": [{"result": []}]}
    records = [
        task("fire in town", choice, comment),
        task("nice day"),
        task("flood", choice, part),
        draft,
    ]
    with pytest.warns(UserWarning, match="1 without a class.*1 draft"):
        session, left_out = load(records, "label-studio")
    assert session.labels == {0: "a", 2: "a"}
    assert left_out == {
        "not asked: comment": 1,
        "not asked: kind of a part of the text": 1,
        "without a class": 1,
        "draft": 1,
    }
    with pytest.raises(ValueError, match="with classes, got answers to 'comment'"):
        load([task("flood", comment)], "label-studio", multi_label=True)


def test_label_studio_an_answer_to_another_question_is_none(load):
    kind = result("choices", {"choices": ["a"]}, "kind")
    language = result("choices", {"choices": ["en"]}, "language")
    records = [task("flood", kind, language), task("lunch", language)]
    with pytest.warns(UserWarning, match="1 without a class|^$") as caught:
        session, left_out = load(records, "label-studio", label="kind")
    assert len(caught) == 1
    assert session.labels == {2: "a"}
    assert left_out["not asked: language"] == 2
    session, _ = load(records, "label-studio", label="kind", multi_label=True)
    assert session.labels == {2: ["a"], 3: []}
    with pytest.raises(ValueError, match=r"'kinds' with classes, got .* 'kind', 'la"):
        load(records, "label-studio", label="kinds")


def test_label_studio_csv_is_a_table(load):
    row = {"annotation_id": 7, "annotator": 1, "id": 77, "lead_time": 4.5}
    records = [
        {**row, "sentiment": "a", "text": "flood"},
        {**row, "sentiment": "", "text": "lunch"},
    ]
    session, left_out = load(records, None, "x.csv", label="sentiment")
    assert (session.labels, left_out) == ({2: "a"}, {})
    with pytest.raises(ValueError, match=r"line 2 of .* must have 'data', an object"):
        load(records, "label-studio", "x.csv")


# Argilla ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_argilla_1_records_are_read(load, name):
    about = {"prediction": [["no", 0.9]], "annotation_agent": "ann", "metadata": None}
    records = [
        {"text": "fire in town", "annotation": "a", "status": "Validated", **about},
        {"text": "nice day", "annotation": None, "status": "Discarded", **about},
        {"text": "flood", "annotation": "a", "status": "Default", **about},
        {"text": "lunch", "annotation": None, "status": "Default", **about},
    ]
    with pytest.warns(UserWarning, match="1 draft"):
        session, left_out = load(records, "argilla", name)
    assert session.answers == {0: {"ann": "a"}}
    assert (session.skipped, left_out) == ([1], {"draft": 1, "no answer": 1})
    nested = [
        {"inputs": {"text": x["text"]}, **{k: x[k] for k in x if k != "text"}}
        for x in records[:2]
    ]
    assert load(nested, "argilla")[0].labels == {0: "a"}
    several = [{**records[0], "annotation": ["a", "b"]}]
    assert load(several, "argilla", multi_label=True)[0].labels == {0: ["a", "b"]}
    spans = [{**records[0], "annotation": [["A", 0, 4]]}]
    with pytest.raises(ValueError, match="with classes, got answers to 'spans'"):
        load(spans, "argilla", multi_label=True)


def test_argilla_feedback_records_are_read(load):
    def respond(status, **values):
        values = {name: {"value": value} for name, value in values.items()}
        return {"user_id": "u1", "status": status, "values": values}

    records = [
        {
            "fields": {"text": "fire in town"},
            "responses": [respond("submitted", label="a", stars=4, why="so")],
            "suggestions": [{"question_name": "label", "value": "no"}],
        },
        {"fields": {"text": "nice day"}, "responses": [respond("discarded")]},
        {"fields": {"text": "flood"}, "responses": [respond("draft", label="a")]},
        {"fields": {"text": "lunch"}, "responses": []},
    ]
    with pytest.warns(UserWarning, match="1 draft"):
        session, left_out = load(records, "argilla")
    assert session.answers == {0: {"u1": "a"}}
    assert session.skipped == [1]
    assert left_out == {
        "not asked: stars": 1,
        "not asked: why": 1,
        "draft": 1,
        "no answer": 1,
    }
    with pytest.warns(UserWarning, match="1 draft"):
        assert load(records, "argilla", label="stars")[0].labels == {0: 4}


def test_argilla_rankings_and_spans_are_no_classes(load):
    spans = [{"start": 0, "end": 4, "label": "A"}]
    ranked = [{"value": "a", "rank": 1}]
    for value in (spans, ranked):
        responses = {"order": [{"value": value, "user_id": "u1"}]}
        records = [{"fields": {"text": "flood"}, "responses": responses}]
        with pytest.raises(ValueError, match="with classes, got answers to 'order'"):
            load(records, "argilla", multi_label=True)
        responses["topic"] = [{"value": "a", "user_id": "u1"}]
        session, left_out = load(records, "argilla")
        assert (session.labels, left_out) == ({2: "a"}, {"not asked: order": 1})


def test_argilla_flattened_records_are_refused(load):
    records = [{"text": "flood", "label.responses": ["a"], "label.suggestion": "b"}]
    with pytest.raises(ValueError, match=r"must have 'fields', an object, got None\. "):
        load(records, "argilla")


# doccano ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.csv"])
@pytest.mark.parametrize("text", ["text", "data"])
def test_doccano_exports_of_classes_are_read(load, name, text):
    labels = [["a"], [], ["a", "b"]]
    if name == "x.csv":
        labels = ["#".join(label) for label in labels]
    records = [
        {
            "id": i,
            text: TEXTS[i],
            "label": label,
            "Comments": "" if name == "x.csv" else [],
        }
        for i, label in enumerate(labels)
    ]
    session, left_out = load(records, "doccano", name, multi_label=True)
    assert session.labels == {0: ["a"], 2: ["a", "b"]}
    assert left_out == {"no answer": 1}
    with pytest.raises(ValueError, match=r"must have one label, .* multi_label=True"):
        load(records, "doccano", name)


def test_doccano_a_class_with_the_mark_between_classes_stays_whole(load):
    records = [
        {"id": 1, "text": "flood", "label": "C#"},
        {"id": 2, "text": "lunch", "label": "a#b"},
    ]
    classes = ["C#", "a#b"]
    session, _ = load(records, "doccano", "x.csv", classes=classes)
    assert session.labels == {2: "C#", 3: "a#b"}


def test_doccano_other_tasks_are_named(load):
    spans = {"text": "flood", "label": [[0, 4, "A"]], "Comments": []}
    related = {
        "text": "flood",
        "entities": [{"id": 1}],
        "relations": [],
        "Comments": [],
    }
    ids = {"text": "flood", "annotations": [{"label": 1, "user": 1}], "meta": {}}
    for record, name in ((spans, "spans"), (related, "entities"), (ids, "annotations")):
        with pytest.raises(ValueError, match=f"line 1 of .* got answers to '{name}'"):
            load([record], "doccano", multi_label=True)
    intent = {"text": "flood", "cats": ["a"], "entities": [[0, 4, "A"]]}
    session, left_out = load([intent], "doccano")
    assert (session.labels, left_out) == ({2: "a"}, {"not asked: entities": 1})
    open_ids = {"text": "lunch", "annotations": [], "meta": {}}
    assert load([open_ids], "doccano")[1] == {"no answer": 1}


def test_a_zip_archive_is_named(load, tmp_path):
    (tmp_path / "all.zip").write_bytes(b"PK\x03\x04\xff\xfe\x80")
    session, _ = load([{"text": "flood", "label": []}], "doccano")
    with pytest.raises(ValueError, match="unpack it if it is a ZIP archive"):
        session.import_labels(tmp_path / "all.zip", format="doccano")


# The program of a file ----------------------------------------------------------------

FILES = {
    "label-studio x.json": [task("flood")],
    "prodigy x.jsonl": [judge("flood", "a", "reject")],
    "argilla x.json": [{"fields": {"text": "flood"}, "responses": {}}],
    "argilla x.jsonl": [{"text": "flood", "annotation": "a", "prediction": None}],
    "doccano x.jsonl": [{"text": "flood", "label": ["a"], "Comments": []}],
    "doccano y.jsonl": [{"text": "flood", "annotations": []}],
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("other", [None, "another"])
def test_the_program_of_a_file_is_named(load, file, other):
    format, name = file.split()
    if other:
        other = "doccano" if format != "doccano" else "prodigy"
    with pytest.raises(ValueError, match=f"'format' must be {format!r} for .*{name}"):
        load(FILES[file], other, name)


def test_a_table_with_like_columns_is_a_table(load):
    for records in (
        [{"text": "flood", "label": "a", "answer": "b", "annotation": "c"}],
        [{"text": "flood", "label": "a", "data": "b", "status": "c"}],
    ):
        for name in ("x.csv", "x.jsonl"):
            assert load(records, None, name)[0].labels == {2: "a"}
