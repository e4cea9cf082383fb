"""Items and answers as files of Label Studio, Prodigy, Argilla and doccano."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from .._storage._files import write_atomic
from .._storage._fingerprint import hash_item
from .._tables._formats import PAIR
from .._tables._label_studio import read_values, write_result
from .._tables._writer import check_folder
from .._utils._labels import is_names
from .._utils._sklearn import check_option

# The id of the pool in these files, whose own ids are those of the other program.
ID = "skactive_id"
# Argilla names its users by UUID. This one makes a UUID of a name.
_USERS = uuid.UUID("5d1c1f0c-6f8f-4b6e-9d3c-0d5f5c7a9b11")


@dataclass(frozen=True)
class Item:
    """An item of a file; `text` is a str or a pair of str, `content` its hash."""

    id: object
    text: object
    answers: tuple = ()
    content: int | None = None


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
    `people` and `times`, the first field that an answer has counts; ``{}`` stands for
    the question. `people` holds functions that write a name. `states` says which values
    of `state` are labels (True), skips (False) or neither (None). `complete(record,
    item, classes)` adds what the program wants besides.
    """

    labels: tuple
    people: dict
    texts: str = ""
    about: str = ""
    answers: str = ""
    names: str = ""  # of the people, in `about`, if `people` has only their ids
    state: str = ""
    states: dict = field(default_factory=lambda: {None: True})
    times: tuple = ()
    seconds: str = ""
    is_list: bool = False  # of JSON, and otherwise JSONL
    has_skips: bool = True
    skips: str = ""  # of people who skipped the item, in `about`, if it has no skips
    write: Callable = lambda label, item: list_names(label)
    read: Callable = lambda value, question, where: value
    write_time: Callable = lambda time: time
    complete: Callable = lambda record, item, classes: record


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


def _read_choices(result, question, where):
    _check(result, list, where, "must have 'result', a list")
    for region in result:
        _check(region, dict, where, "must have objects in 'result'")
        if region.get("type") == "choices":
            _take(_take(region, "value", dict, where), "choices", list, where)
    return _find_question(read_values(result, "choices"), question, where)


# The others ---------------------------------------------------------------------------


def _complete_prodigy(record, item, classes):
    options = [{"id": name, "text": name} for name in classes]
    return {**record, "options": options, "_view_id": "choice"}


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


FORMATS = {
    "label-studio": Format(
        labels=("result",),
        people={"completed_by": lambda name: {"email": name} if name else None},
        texts="data",
        about="data",
        answers="annotations",
        state="was_cancelled",
        states={False: True, None: True, True: False},
        times=("updated_at", "created_at"),
        seconds="lead_time",
        is_list=True,
        write=_write_choices,
        read=_read_choices,
        complete=lambda record, item, classes: {**record, "predictions": []},
    ),
    "prodigy": Format(
        labels=("accept", "label"),
        people=dict.fromkeys(("_annotator_id", "_session_id"), lambda name: name),
        about="meta",
        state="answer",
        states={"accept": True, "ignore": False, "reject": None, None: None},
        times=("_timestamp",),
        write_time=lambda time: int(datetime.fromisoformat(time).timestamp()),
        complete=_complete_prodigy,
    ),
    "argilla": Format(
        labels=("value",),
        people={"user_id": lambda name: str(uuid.uuid5(_USERS, name or ""))},
        texts="fields",
        about="metadata",
        answers="responses",
        names="annotators",
        state="status",
        states={"submitted": True, None: True, "discarded": False, "draft": None},
        is_list=True,
        has_skips=False,  # a discarded response without a value does not load
        skips="discarded_by",
        write=lambda label, item: label,
        complete=_complete_argilla,
    ),
    "doccano": Format(
        labels=("{}", "{}s"),
        people={"annotator": lambda name: name or ""},
        has_skips=False,
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
    names = list(map(_spell, state.classes or [])) or sorted(chosen)
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
                SourceAnswer(_spell(x.label), x.annotator, x.time, x.seconds)
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


def _spell(label):
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
        empty = {} if form.state else {form.labels[0].format("label"): []}
        records = [{**record, **empty}]
    return [form.complete(record, item, classes) for record in records]


def _write_answer(answer, item, form):
    written = {form.labels[0].format("label"): form.write(answer.label, item)}
    for name, write in form.people.items():
        # Label Studio refuses an unknown name, and not a missing one.
        if (person := write(answer.annotator)) is not None:
            written[name] = person
    if form.state:
        is_label = answer.label is not None
        states = (state for state, kind in form.states.items() if kind is is_label)
        written[form.state] = next(states)
    if form.times:
        written[form.times[-1]] = form.write_time(answer.time)
    if form.seconds:
        written[form.seconds] = answer.seconds
    return written


# Import -------------------------------------------------------------------------------


def read_format(path, format, names, label, several):
    """Return the items of a file as a list of Item, one for each record.

    `names` are the fields of the texts, `label` is the question, and `several` says
    whether an item can have several classes.
    """
    check_option("format", format, tuple(FORMATS))
    form = FORMATS[format]
    if not path.is_file():
        raise FileNotFoundError(f"'path' must be a file, got {str(path)!r}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise ValueError(
            f"{str(path)!r} must be UTF-8 text, got byte {exc.start} of another "
            "encoding. Convert it."
        ) from exc
    records = _split(text, path, form.is_list)
    return [_read(record, form, names, label, x, several) for x, record in records]


def _split(text, path, is_list):
    """Yield the place and the content of each record."""
    if is_list:
        records = _parse(text, repr(str(path)), "a JSON list")
        _check(records, list, repr(str(path)), "must hold a list of records")
        for number, record in enumerate(records, 1):
            yield f"record {number} of {str(path)!r}", record
        return
    for number, line in enumerate(text.split("\n"), 1):
        where = f"line {number} of {str(path)!r}"
        if line.strip():
            yield where, _parse(line, where, "a JSON object")


def _parse(text, where, expected):
    try:
        return json.loads(text)
    except ValueError as exc:
        raise ValueError(
            f"{where} must be {expected}, got {text[:40]!r} ({exc})."
        ) from exc


def _read(record, form, names, label, where, several):
    """Return a record as an Item."""
    _check(record, dict, where, "must be an object")
    fields = _take(record, form.texts, dict, where) if form.texts else record
    aside = _take(record, form.about, dict, where, {}) if form.about else record
    inside = f"{form.texts!r} in {where}" if form.texts else where
    texts = tuple(_take(fields, name, str, inside) for name in names)
    text = texts[0] if len(texts) == 1 else texts
    records, places = [record], [where]
    if form.answers:
        records = record.get(form.answers) or []
        if isinstance(records, dict):
            records = _find_question(records, label, where)
        _check(records, list, where, f"must have {form.answers!r}, a list")
        kind = form.answers.removesuffix("s")
        places = [f"{kind} {i} of {where}" for i in range(1, len(records) + 1)]
    answers = [
        _read_answer(answer, form, label, place, several)
        for answer, place in zip(records, places, strict=True)
    ]
    people = aside.get(form.names) or ()
    if len(people) == len(answers):
        answers = [
            answer and replace(answer, annotator=person or None)
            for answer, person in zip(answers, people, strict=True)
        ]
    answers = tuple(filter(None, answers))
    answers = keep_latest(answers) if form.times else answers
    skips = aside.get(form.skips) or ()
    answers += tuple(SourceAnswer(None, person or None) for person in skips)
    return Item(aside.get(ID), text, answers, hash_item(text))


def _read_answer(answer, form, label, where, several):
    """Return an answer as a SourceAnswer, None for none."""
    _check(answer, dict, where, "must be an object")
    state = answer.get(form.state)
    if state not in list(form.states):
        expected = ", ".join(repr(x) for x in form.states if x is not None)
        raise ValueError(
            f"{where} must have {form.state!r}, one of {expected}, got {state!r:.60}."
        )
    unlabeled = _read_person(answer, where, form)
    if not form.states[state]:
        return unlabeled if form.states[state] is False else None
    value = _first(answer, [name.format(label) for name in form.labels])
    value = form.read([] if value is None else value, label, where)
    chosen = _read_choice(value if isinstance(value, list) else [value], where, several)
    # An empty list without a state and a person is an item that nobody has labeled.
    is_stated = form.state or any(name in answer for name in form.people)
    is_open = chosen is None or (chosen == [] and not is_stated)
    return None if is_open else replace(unlabeled, label=chosen)


def _read_person(answer, where, form):
    """Return who answered, when and how quickly, as a SourceAnswer without label."""
    person = _first(answer, form.people)
    if isinstance(person, dict):
        person = person.get("email") or person.get("id")
    time, seconds = _first(answer, form.times), answer.get(form.seconds)
    return SourceAnswer(
        None, str(person) if person else None, str(time or ""), seconds, where
    )


def _first(record, names):
    """Return the first value that a record has under one of several names, or None."""
    values = (record.get(name) for name in names)
    return next((value for value in values if value is not None), None)


def _read_choice(labels, where, several):
    """Return the one label of a list, None if it is empty; or the list if `several`."""
    if several:
        for name in labels:
            _check(name, str, where, "must have names of classes")
        return list(dict.fromkeys(labels))
    if len(labels) > 1:
        raise ValueError(
            f"{where} must have one label, got {labels!r:.60}. Open the session "
            "with multi_label=True for several."
        )
    expected = "must have a label of text or a number"
    return _check(labels[0], str | int | float, where, expected) if labels else None


def _find_question(named, label, where):
    """Return the answers to the question `label`, or to the only question."""
    if label in named or not named:
        return named.get(label, [])
    if len(named) > 1:
        raise ValueError(
            f"{where} must answer the question {label!r}, got answers to "
            f"{', '.join(map(repr, named))}. Name one with label=."
        )
    return next(iter(named.values()))


def _take(record, key, kind, where, default=None):
    """Return the checked value of a key; without a default it must be there."""
    if default is not None and record.get(key) is None:
        return default
    what = {list: "a list", dict: "an object", str: "a text"}[kind]
    return _check(record.get(key), kind, where, f"must have {key!r}, {what}")


def _check(value, kind, where, expected):
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{where} {expected}, got {value!r:.60}.")
    return value
