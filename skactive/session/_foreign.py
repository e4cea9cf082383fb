"""Answers in files of Label Studio, Prodigy, Argilla and doccano."""

import json
from contextlib import suppress
from dataclasses import dataclass, replace

from .._storage._fingerprint import hash_item
from .._tables._formats import is_untyped, open_text, read_records
from .._tables._label_studio import PART
from .._tables._reader import TableFile, list_columns
from .._utils._format import warn_caller
from .._utils._sklearn import check_option
from ._formats import (
    FORMATS,
    ID,
    NO_ANSWER,
    Item,
    SourceAnswer,
    keep_latest,
    list_names,
)

# What is listed without a warning, as is NO_ANSWER.
OTHER, LATER = "not asked: ", "replaced by a later answer"


@dataclass(frozen=True)
class Wanted:
    """What an import looks for.

    `names` are the fields of the texts, `several` says whether an item can have several
    classes, and `classes` holds the names of those of the session, or nothing.
    """

    names: list
    question: str
    several: bool
    classes: list


def read_format(path, format, wanted):
    """Return the items of a file as a list of Item, one for each record."""
    check_option("format", format, tuple(FORMATS))
    if not path.is_file():
        raise FileNotFoundError(f"'path' must be a file, got {str(path)!r}.")
    try:
        records = list(_split(path))
    except UnicodeDecodeError as exc:
        raise ValueError(
            f"{str(path)!r} must be UTF-8 text, got byte {exc.start} of another "
            "encoding. Convert it, or unpack it if it is a ZIP archive."
        ) from exc
    if not records:
        raise ValueError(f"{str(path)!r} must hold records, got none. Export it again.")
    form = FORMATS[format]
    items = [_read(record, form, wanted, where) for where, record in records]
    wanted = replace(wanted, question=_find_question(items, wanted.question))
    return [_choose(item, form, wanted) for item in items]


def find_format(path):
    """Return the program whose fields the first record of a file has, or None."""
    with suppress(ValueError, OSError):
        is_json = path.suffix.lower() == ".json"
        _, first = next(_split(path), (None, {})) if is_json else (None, None)
        fields = list_columns(path) if first is None else first
        for name, form in FORMATS.items():
            if _find_shape(fields, form) is not None:
                return name
    return None


def _find_shape(fields, form):
    """Return how a record with some fields differs, None if it is of no shape."""
    shapes = (changes for names, changes in form.shapes if set(names) <= set(fields))
    return next(shapes, None)


def tell_left_out(items, path):
    """Return the places of what is no answer, dict by reason; warn of some reasons."""
    places = {}
    for reason, where in (x for item in items for x in item.left_out):
        places.setdefault(reason, []).append(where)
    told = [
        f"{len(where)} {reason} ({where[0]}{', ...' * (len(where) > 1)})"
        for reason, where in places.items()
        if not reason.startswith((NO_ANSWER, OTHER, LATER))
    ]
    if told:
        warn_caller(
            f"{str(path)!r} has answers that are no labels, which `left_out` of the "
            f"result lists: {'; '.join(told)}. Label these items here."
        )
    return places


def _split(path):
    """Yield the place and the content of each record."""
    name = repr(str(path))
    if is_untyped(path):
        table = TableFile(path).read()
        rows = zip(*table.columns.values(), strict=True)
        for line, row in zip(table.places, rows, strict=True):
            yield f"line {line} of {name}", dict(zip(table.columns, row, strict=True))
        return
    with open_text(path) as file:
        is_list = file.read(100).lstrip().startswith("[")
    if not is_list:
        for line, record, _ in read_records(path):
            yield f"line {line} of {name}", record
        return
    with open_text(path) as file:
        text = file.read()
    try:
        records = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ValueError(
            f"{name} must be a JSON list, got {text[:40]!r} ({exc}). Export it again."
        ) from exc
    for number, record in enumerate(records, 1):
        where = f"record {number} of {name}"
        yield where, _check(record, dict, where, "must be an object")


def _read(record, form, wanted, where):
    """Return a record as an Item; a label is a dict by question, or a reason."""
    form = replace(form, **_find_shape(record, form) or {})
    fields = _take(record, form.texts, dict, where) if form.texts else record
    aside = _take(record, form.about, dict, where, {}) if form.about else record
    inside = f"{form.texts!r} in {where}" if form.texts else where
    # Some versions of doccano write "data".
    fields = {"text": fields.get("data"), **fields}
    texts = tuple(_take(fields, name, str, inside) for name in wanted.names)
    text = texts[0] if len(texts) == 1 else texts
    answers, places = [record], [where]
    if form.answers:
        answers = record.get(form.answers) or []
        if isinstance(answers, dict):
            answers = [
                {**_check(x, dict, where, "must have objects"), "value": {name: x}}
                for name in answers
                for x in _take(answers, name, list, where)
            ]
        _check(answers, list, where, f"must have {form.answers!r}, a list")
        kind = form.answers.removesuffix("s")
        places = [f"{kind} {i} of {where}" for i in range(1, len(answers) + 1)]
    read = [
        _read_answer(x, form, wanted, place)
        for x, place in zip(answers, places, strict=True)
    ]
    people = aside.get(form.names) or ()
    if len(people) == len(read):
        read = [
            replace(x, annotator=y or None) for x, y in zip(read, people, strict=True)
        ]
    read += [SourceAnswer("draft", None, where=where)] * bool(record.get("drafts"))
    read += [
        SourceAnswer(None, person or None) for person in aside.get(form.skips) or ()
    ]
    read = read or [SourceAnswer(NO_ANSWER, where=where)]
    return Item(aside.get(ID), text, tuple(read), hash_item(text))


def _read_answer(answer, form, wanted, where):
    """Return an answer as a SourceAnswer; its label is as that of `_read`."""
    _check(answer, dict, where, "must be an object")
    state, person = _first(answer, form.states), _read_person(answer, where, form)
    if state not in list(form.meanings):
        expected = ", ".join(repr(x) for x in form.meanings if x is not None)
        raise ValueError(
            f"{where} must have {form.states[0]!r}, one of {expected}, got "
            f"{state!r:.60}. Export it again."
        )
    meaning = form.meanings[state]
    if meaning is False:
        return person
    value = _first(answer, [name.format(wanted.question) for name in form.labels])
    if meaning is not True:
        return replace(person, label=NO_ANSWER if value is None else meaning)
    try:
        return replace(person, label=form.read(value, answer, wanted))
    except (TypeError, KeyError, AttributeError) as exc:
        raise ValueError(
            f"{where} must be an answer in the form of the program, got {value!r:.60} "
            f"({exc}). Export it again."
        ) from exc


def _read_person(answer, where, form):
    """Return who answered, when and how quickly, as a SourceAnswer without label."""
    person = _first(answer, (*form.people, "annotation_agent"))
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


def _find_question(items, label):
    """Return `label` if it has answers with classes, or the only question that has."""
    answers = [x for item in items for x in item.answers if isinstance(x.label, dict)]
    answers = [answer for answer in answers if answer.label]
    named = [pair for answer in answers for pair in answer.label.items()]
    questions = {name for name, value in named if value is not None}
    if label in questions or None in questions or not answers:
        return label
    if len(questions) > 1 or not questions or label != "label":
        asked = sorted(questions or {name for name, _ in named})
        raise ValueError(
            f"{answers[0].where} must answer the question {label!r} with classes, got "
            f"answers to {', '.join(map(repr, asked))}. Name a question with label=."
        )
    return questions.pop()


def _choose(item, form, wanted):
    """Return an Item with the answers to one question."""
    answers, left_out = [], []
    asked = {wanted.question, wanted.question + PART}
    for answer in item.answers:
        named = answer.label
        if not isinstance(named, dict):
            left_out += [] if named is None else [(named, answer.where)]
            answers += [answer] if named is None else []
            continue
        others = named.keys() - {None, wanted.question}
        left_out += [(f"{OTHER}{name}", answer.where) for name in sorted(others)]
        value = named.get(None, named.get(wanted.question))
        is_blank = form.has_blanks and asked.isdisjoint(named)
        if value is not None or is_blank:
            value = _read_choice(list_names(value), answer.where, wanted.several)
        elif others:
            continue
        if value is not None:
            answers.append(replace(answer, label=value))
        else:
            left_out.append(("without a class", answer.where))
    latest = keep_latest(answers) if form.times else answers
    left_out += [(LATER, x.where) for x in answers if x not in latest]
    return replace(item, answers=tuple(latest), left_out=tuple(left_out))


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


def _take(record, key, kind, where, default=None):
    """Return the checked value of a key; without a default it must be there."""
    if default is not None and record.get(key) is None:
        return default
    what = {list: "a list", dict: "an object", str: "a text"}[kind]
    return _check(record.get(key), kind, where, f"must have {key!r}, {what}")


def _check(value, kind, where, expected):
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{where} {expected}, got {value!r:.60}. Export it again.")
    return value
