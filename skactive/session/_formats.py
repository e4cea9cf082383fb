"""Items and answers as files of Label Studio, Prodigy, Argilla and doccano."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .._storage._files import write_atomic
from .._tables._formats import PAIR
from .._tables._label_studio import read_questions, write_result
from .._tables._writer import check_folder
from .._utils._labels import is_names
from .._utils._sklearn import check_option

# The id of the pool in these files, whose own ids are those of the other program.
ID = "skactive_id"
NO_ANSWER = "no answer"  # why a record or an answer is left out
# Argilla names its users by UUID. This one makes a UUID of a name.
_USERS = uuid.UUID("5d1c1f0c-6f8f-4b6e-9d3c-0d5f5c7a9b11")


@dataclass(frozen=True)
class Item:
    """An item of a file; `text` is a str or a pair of str, `content` its hash.

    `left_out` holds why and where the file says something that is no answer.
    """

    id: object
    text: object
    answers: tuple = ()
    content: int | None = None
    left_out: tuple = ()


@dataclass(frozen=True)
class SourceAnswer:
    """An answer of a person to an item, in a file or another program.

    Parameters
    ----------
    label : label or None
        A list of str if an item can have several classes. None stands for a skip.
    annotator : str, default=None
        Name of the person.
    time : str, default=""
        Time of the answer in ISO 8601. Only the order of the times counts.
    seconds : float, default=None
        Time that the answer took.
    where : str, default=""
        Its place in a file, for errors.

    See Also
    --------
    skactive.LabelingSession.sync : Takes over answers of another program.

    Examples
    --------
    >>> from skactive.session import SourceAnswer
    >>> SourceAnswer("spam", "ann", seconds=2.5).annotator
    'ann'
    """

    label: Any
    annotator: str | None = None
    time: str = ""
    seconds: float | None = None
    where: str = ""


@dataclass(frozen=True)
class Format:
    """Names of the fields in the files of a program.

    `texts` and `about` name the objects with the texts and with the id of the pool, ""
    stands for the record itself. `answers` names the list of answers, or the object
    that has one for each question; without it, the record is an answer. Of `labels`,
    `people`, `states` and `times`, the first field that an answer has counts; ``{}``
    stands for the question. `people` holds functions that write a name. `meanings` says
    which values of `states` are labels (True) or skips (False), or what they are
    instead. `complete(record, item, classes)` adds what the program wants besides.

    `read(value, answer, wanted)` returns a dict of question to value, or why there is
    none. The question is None in programs with one question. The value is None if it is
    no class. `shapes` holds fields that only this program writes into one record, and
    how such a record differs.
    """

    labels: tuple
    people: dict
    texts: str = ""
    about: str = ""
    answers: str = ""
    names: str = ""  # of the people, in `about`, if `people` has only their ids
    states: tuple = ()
    meanings: dict = field(default_factory=lambda: {None: True})
    times: tuple = ()
    seconds: str = ""
    is_list: bool = False  # of JSON, and otherwise JSONL
    has_skips: bool = True
    has_blanks: bool = False  # no answer to a question can be an empty list
    skips: str = ""  # of people who skipped the item, in `about`, if it has no skips
    write: Callable = lambda label, item: list_names(label)
    read: Callable = lambda value, answer, wanted: _read_values(value)
    write_time: Callable = lambda time: time
    complete: Callable = lambda record, item, classes: record
    shapes: tuple = ()


def list_names(label):
    """Return the names of the classes of a label, as a list; none for a skip."""
    if label is None:
        return []
    return label if isinstance(label, list) else [label]


# Label Studio -------------------------------------------------------------------------


def keep_latest(answers):
    """Return the last answer of each person; a label always counts for more."""
    ranked = sorted(answers, key=lambda answer: (answer.label is not None, answer.time))
    latest = {answer.annotator: answer for answer in ranked}
    return tuple(sorted(latest.values(), key=lambda answer: answer.time))


def _write_choices(label, item):
    to_name = "text" if isinstance(item.text, str) else PAIR[0]
    return write_result(list_names(label), to_name=to_name)


# The others ---------------------------------------------------------------------------


def _complete_prodigy(record, item, classes):
    options = [{"id": name, "text": name} for name in classes]
    return {**record, "options": options, "_view_id": "choice"}


def _read_task(value, task, wanted):
    if value is None:
        return {f"view {task.get('_view_id')}": None}
    if task["answer"] == "reject":
        return "rejected task"
    # The id of an option is the label, unless only its text is a class.
    texts = {option["id"]: option.get("text") for option in task.get("options") or ()}
    known = wanted.classes
    odd = {x for x in value if x not in known and texts.get(x) in known}
    return {None: [texts[x] if x in odd else x for x in value]}


def _complete_argilla(record, item, classes):
    responses = record["responses"]
    return {
        "id": str(item.id),
        **record,
        "suggestions": {},
        "responses": {"label": responses} if responses else {},
        "vectors": {},
        "status": "completed" if responses else "pending",
    }


def _read_values(values, answer=None, wanted=None):
    """Return the labels of an object by question, or the label of the only one."""
    found = {}
    for name, value in (values if isinstance(values, dict) else {None: values}).items():
        value = value.get("value") if isinstance(value, dict) else value
        parts = value if isinstance(value, list) else [value]
        if any(isinstance(part, list | dict) for part in parts):
            found[name or "spans"] = None
        elif value is not None:
            found[name] = value
    return found


def _read_document(value, record, wanted):
    if isinstance(value, str) and value not in wanted.classes:
        names = value.split("#")
        value = names if all(names) else value
    is_open = value == [] and "annotator" not in record
    found = {} if is_open else _read_values(value)
    ids = {name: None for name in ("entities", "annotations") if record.get(name)}
    return {**ids, **found} or NO_ANSWER


_FLAT = dict.fromkeys(("texts", "about", "answers"), "")
FORMATS = {
    "label-studio": Format(
        labels=("result",),
        people={"completed_by": lambda name: {"email": name} if name else None},
        texts="data",
        about="data",
        answers="annotations",
        states=("was_cancelled", "skipped"),
        meanings={False: True, None: True, True: False},
        times=("updated_at", "created_at"),
        seconds="lead_time",
        is_list=True,
        has_blanks=True,
        write=_write_choices,
        read=lambda result, answer, wanted: read_questions(result or []),
        complete=lambda record, item, classes: {**record, "predictions": []},
        shapes=(
            (("data", "annotations"), {}),
            (("data", "completions"), {"answers": "completions"}),
        ),
    ),
    "prodigy": Format(
        labels=("accept",),
        people=dict.fromkeys(("_annotator_id", "_session_id"), lambda name: name),
        about="meta",
        states=("answer",),
        meanings={"accept": True, "ignore": False, "reject": True, None: NO_ANSWER},
        times=("_timestamp",),
        write_time=lambda time: int(datetime.fromisoformat(time).timestamp()),
        read=_read_task,
        complete=_complete_prodigy,
        shapes=((("answer", "_view_id"), {}), (("answer", "_input_hash"), {})),
    ),
    "argilla": Format(
        labels=("value", "values", "annotation"),
        people={"user_id": lambda name: str(uuid.uuid5(_USERS, name or ""))},
        texts="fields",
        about="metadata",
        answers="responses",
        names="annotators",
        states=("status",),
        meanings={"submitted": True, None: True, "discarded": False, "Discarded": False}
        | {"Validated": True}
        | dict.fromkeys(("draft", "Default", "Edited"), "draft"),
        is_list=True,
        has_skips=False,  # a discarded response without a value does not load
        skips="discarded_by",
        write=lambda label, item: label,
        read=_read_values,
        complete=_complete_argilla,
        shapes=(
            (("fields", "responses"), {}),
            (("annotation", "prediction", "text"), _FLAT),
            (("annotation", "prediction"), {**_FLAT, "texts": "inputs"}),
        ),
    ),
    "doccano": Format(
        labels=("{}", "{}s", "cats"),
        people={"annotator": lambda name: name or ""},
        has_skips=False,
        read=_read_document,
        shapes=tuple(
            (("text", name), {})
            for name in ("Comments", "annotation_approver", "annotations")
        ),
    ),
}


# Export -------------------------------------------------------------------------------


def export_format(path, what, format, state):
    """Write items for another program; see `LabelingSession.export`."""
    check_option("format", format, tuple(FORMATS))
    check_option("what", what, ("labels", "answers", "open"))
    path = check_folder(path)
    items = _list_items(state, what)
    chosen = {x for item in items for a in item.answers for x in list_names(a.label)}
    names = list(map(spell, state.classes or [])) or sorted(chosen)
    form = FORMATS[format]
    records = [record for item in items for record in _write(item, form, names)]
    if form.is_list:
        content = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
    else:
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
        content = "".join(lines)
    # What UTF-8 cannot hold becomes an escape of JSON, such as \ud800.
    write_atomic(path, content.encode("utf-8", "backslashreplace"))


def _list_items(state, what):
    """Return the labeled and skipped items, or the open ones, as a list of Item."""
    if state.pool.kind is None:
        raise ValueError(
            "'format' must be None for a pool without texts: the files of other "
            "programs hold texts. Export a table."
        )
    if what == "open":
        answers_of = {
            id: () for batch in sorted(state.open) for id in state.open[batch]
        }
    else:
        answers_of = {
            id: tuple(
                SourceAnswer(spell(x.label), x.annotator, x.time, x.seconds)
                for x in answer.given
            )
            for id, answer in state.answers.items()
        }
        for id, (seq, _) in state.skipped.items():
            event = state.events[seq - 1]
            skip = SourceAnswer(None, event.get("by"), event["t"])
            answers_of[id] = (*answers_of.get(id, ()), skip)
    texts = state.pool.texts(state.pool.positions(answers_of))
    return [
        Item(id, text, answers)
        for (id, answers), text in zip(answers_of.items(), texts, strict=True)
    ]


def spell(label):
    """Return a label as the name of a class, or as a list of names."""
    if is_names(label):
        return list(label)
    return json.dumps(label) if isinstance(label, list) else str(label)


def _write(item, form, classes):
    """Return the records of an item."""
    texts = [item.text] if isinstance(item.text, str) else item.text
    names = ["text"] if isinstance(item.text, str) else PAIR
    record = {}
    fields = dict(zip(names, texts, strict=True))
    for part, cells in ((form.texts, fields), (form.about, {ID: item.id})):
        (record.setdefault(part, {}) if part else record).update(cells)
    answers = [a for a in item.answers if form.has_skips or a.label is not None]
    written = [_write_answer(answer, item, form) for answer in answers]
    if form.names and answers:
        record[form.about][form.names] = [answer.annotator or "" for answer in answers]
    skips = [a.annotator or "" for a in item.answers if a.label is None]
    if form.skips and skips:
        record[form.about][form.skips] = skips
    if form.answers:
        records = [{**record, form.answers: written}]
    elif item.answers:
        records = [{**record, **answer} for answer in written]
    else:
        empty = {} if form.states else {form.labels[0].format("label"): []}
        records = [{**record, **empty}]
    return [form.complete(record, item, classes) for record in records]


def _write_answer(answer, item, form):
    written = {form.labels[0].format("label"): form.write(answer.label, item)}
    for name, write in form.people.items():
        # Label Studio refuses an unknown name, and not a missing one.
        if (person := write(answer.annotator)) is not None:
            written[name] = person
    if form.states:
        is_label = answer.label is not None
        states = (state for state, kind in form.meanings.items() if kind is is_label)
        written[form.states[0]] = next(states)
    if form.times:
        written[form.times[-1]] = form.write_time(answer.time)
    if form.seconds:
        written[form.seconds] = answer.seconds
    return written
