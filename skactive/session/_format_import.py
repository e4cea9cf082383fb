"""Answers from files of Label Studio, Prodigy, Argilla and doccano."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

from .._storage._fingerprint import hash_item
from .._utils._labels import same_label
from .._utils._sklearn import check_option, check_path
from ._format_export import FORMATS, ID, FileAnswer, Item
from ._ids import shorten
from ._import_export import PAIR, ImportedLabels, check_columns, find_reading
from ._pool import assign_rows


def import_format(path, columns, pool, state, kind, format, annotator, ignore_unknown):
    """Read answers and compare them with those of a session.

    Return an ImportedLabels, answers to record as a dict of annotator to dict of id to
    FileAnswer, and a dict of annotator to ids to skip. Raise a ValueError if the file
    is malformed or an item is unknown.
    """
    check_option("format", format, FORMATS)
    check_path("path", path)
    _, label, names = check_columns(*columns)
    if pool.kind is None:
        raise ValueError(
            "'format' must be None for a pool without texts: items are found by their "
            "texts. Import a table."
        )
    names = names or (["text"] if pool.kind == "text" else PAIR)
    path = Path(path).expanduser()
    found = _read_items(path, format, names, label, kind)
    found = [
        replace(
            item,
            answers=tuple(
                replace(a, annotator=a.annotator or annotator) for a in item.answers
            ),
        )
        for item in found
    ]
    imported = ImportedLabels()
    ids = _find_items(found, pool, state.answers)
    for item, id in zip(found, ids, strict=True):
        if id is None and item.answers:
            imported.unknown.append(item.text)
    if imported.unknown and not ignore_unknown:
        raise ValueError(
            f"{str(path)!r} has answers to {len(imported.unknown)} items that are not "
            f"in the pool: {shorten(imported.unknown)}. Pass ignore_unknown=True to "
            "ignore them. Nothing was recorded."
        )
    return imported, *_compare(zip(ids, found, strict=True), state, imported)


def _compare(found, state, imported):
    """Return the labels and the skips that the session does not have."""
    new, skipped = {}, {}
    for id, item in found:
        for answer in item.answers if id is not None else ():
            if answer.label is None:
                skipped.setdefault(answer.annotator, {})[id] = None
                continue
            labels = new.setdefault(answer.annotator, {})
            before = labels.get(id)
            if before is not None and not same_label(before.label, answer.label):
                raise ValueError(
                    f"{answer.where} has the label {answer.label!r}, and {before.where}"
                    f" has {before.label!r} for the same item and annotator. Keep one. "
                    "Nothing was recorded."
                )
            labels[id] = answer
    for by, labels in new.items():
        for id in list(labels):
            given = state.answers[id].given if id in state.answers else ()
            own = [old.label for old in given if old.annotator == by]
            if not own:
                imported.added.append(id)
                continue
            if same_label(own[0], labels[id].label):
                imported.unchanged.append(id)
            else:
                imported.conflicts.append((id, own[0], labels[id].label))
            del labels[id]
    labeled = {id for labels in new.values() for id in labels} | state.answers.keys()
    for by, ids in skipped.items():
        skipped[by] = [id for id in ids if id not in {*labeled, *state.skipped}]
    imported.added[:] = dict.fromkeys(imported.added)
    imported.unchanged[:] = dict.fromkeys(imported.unchanged)
    return (
        {by: labels for by, labels in new.items() if labels},
        {by: ids for by, ids in skipped.items() if ids},
    )


def _find_items(found, pool, preferred):
    """Return the id of each item, None if the pool lacks it.

    An annotator answers each of several copies of a text once, so the same text is
    another copy when an annotator answers it again.
    """
    keys, seen = [], Counter()
    for item in found:
        same = item.id if isinstance(item.id, str | int) else None, item.text
        who = (*same, tuple(sorted(str(a.annotator) for a in item.answers)))
        keys.append((*same, seen[who]))
        seen[who] += 1
    unique = list(dict.fromkeys(keys))
    rows = [(id if id in pool else None, hash_item(text)) for id, text, _ in unique]
    ids = dict(zip(unique, assign_rows(rows, pool, preferred), strict=True))
    return [ids[key] for key in keys]


def _read_items(path, format, names, label, kind):
    """Return the items of a file as a list of Item, one for each record."""
    read, is_lines = _READERS[format]
    if not path.is_file():
        raise FileNotFoundError(f"'path' must be a file, got {str(path)!r}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise ValueError(
            f"{str(path)!r} must be UTF-8 text, got byte {exc.start} of another "
            "encoding. Convert it. Nothing was recorded."
        ) from exc
    records = _split_lines(text, path) if is_lines else _split_list(text, path)
    found = []
    for where, record in records:
        _check(record, dict, where, "must be an object")
        found.append(read(record, names, label, where, kind == "names"))
    if kind in (None, "str", "names", "str or names"):
        return found
    # These programs name classes by str; the session has other labels.
    cells = [answer.label for item in found for answer in item.answers]
    reading = find_reading(kind, [x for x in cells if isinstance(x, str)], path)
    return [
        replace(
            item,
            answers=tuple(
                replace(answer, label=reading(answer.label))
                if isinstance(answer.label, str)
                else answer
                for answer in item.answers
            ),
        )
        for item in found
    ]


def _split_lines(text, path):
    for number, line in enumerate(text.split("\n"), 1):
        where = f"line {number} of {str(path)!r}"
        if line.strip():
            yield where, _parse(line, where, "a JSON object")


def _split_list(text, path):
    records = _parse(text, repr(str(path)), "a JSON list")
    _check(records, list, repr(str(path)), "must hold a list of records")
    for number, record in enumerate(records, 1):
        yield f"record {number} of {str(path)!r}", record


def _parse(text, where, expected):
    try:
        return json.loads(text)
    except ValueError as exc:
        raise ValueError(
            f"{where} must be {expected}, got {text[:40]!r} ({exc}). Nothing was "
            "recorded."
        ) from exc


def _check(value, kind, where, expected):
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(
            f"{where} {expected}, got {_shorten(value)}. Nothing was recorded."
        )
    return value


def _shorten(value):
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _take(record, key, kind, where, default=None):
    """Return the checked value of a key; without a default it must be there."""
    if default is not None and record.get(key) is None:
        return default
    what = {list: "a list", dict: "an object", str: "a text"}[kind]
    return _check(record.get(key), kind, where, f"must have {key!r}, {what}")


def _read_text(fields, names, where):
    texts = tuple(_take(fields, name, str, where) for name in names)
    return texts[0] if len(texts) == 1 else texts


def _read_choice(labels, where, several):
    """Return the one label of a list, None if it is empty; or the list if `several`."""
    if several:
        for name in labels:
            _check(name, str, where, "must have names of classes")
        return list(dict.fromkeys(labels))
    if len(labels) > 1:
        raise ValueError(
            f"{where} must have one label, got {_shorten(labels)}. Open the session "
            "with multi_label=True for several. Nothing was recorded."
        )
    return (
        _check(
            labels[0], str | int | float, where, "must have a label of text or a number"
        )
        if labels
        else None
    )


def _find_question(named, label, where):
    """Return the answers to the question `label`, or to the only question."""
    if label in named or not named:
        return named.get(label, [])
    if len(named) > 1:
        raise ValueError(
            f"{where} must answer the question {label!r}, got answers to "
            f"{', '.join(map(repr, named))}. Name one with label=. Nothing was "
            "recorded."
        )
    return next(iter(named.values()))


def _read_label_studio(task, names, label, where, several):
    data = _take(task, "data", dict, where)
    answers = []
    for number, annotation in enumerate(_take(task, "annotations", list, where, []), 1):
        place = f"annotation {number} of {where}"
        _check(annotation, dict, place, "must be an object")
        answers.append(_read_annotation(annotation, label, place, several))
    text = _read_text(data, names, f"'data' in {where}")
    return Item(data.get(ID), text, keep_latest(filter(None, answers)))


def keep_latest(answers):
    """Return the last answer of each person; a label always counts for more."""
    ranked = sorted(answers, key=lambda answer: (answer.label is not None, answer.time))
    latest = {answer.annotator: answer for answer in ranked}
    return tuple(sorted(latest.values(), key=lambda answer: answer.time))


def read_values(result, key):
    """Return the values in a `result` of Label Studio, dict of control to list.

    Values of a region of the text are left out. The value of nested choices is the last
    name of the path to it.
    """
    found = {}
    for region in result or ():
        value = region.get("value")
        if isinstance(value, dict) and key in value and "start" not in value:
            values = [value[key]] if isinstance(value[key], str) else value[key]
            last = [x[-1] if isinstance(x, list) and x else x for x in values]
            found.setdefault(region.get("from_name"), []).extend(last)
    return found


def _read_annotation(annotation, label, where, several):
    """Return the answer of an annotation of Label Studio, or None."""
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        by = by.get("email") or by.get("id")
    time = annotation.get("updated_at") or annotation.get("created_at") or ""
    seconds = annotation.get("lead_time")
    answer = FileAnswer(None, str(by) if by else None, str(time), seconds, where)
    if annotation.get("was_cancelled"):
        return answer
    result = _take(annotation, "result", list, where, [])
    for region in result:
        _check(region, dict, where, "must have objects in 'result'")
        if region.get("type") == "choices":
            _take(_take(region, "value", dict, where), "choices", list, where)
    named = read_values(result, "choices")
    chosen = _read_choice(_find_question(named, label, where), where, several)
    return None if chosen is None else replace(answer, label=chosen)


def _read_prodigy(task, names, label, where, several):
    meta = _take(task, "meta", dict, where, {})
    text = _read_text(task, names, where)
    by = task.get("_annotator_id") or task.get("_session_id")
    given = FileAnswer(None, by, str(task.get("_timestamp") or ""), None, where)
    answers = ("accept", "reject", "ignore", None)
    if (answer := task.get("answer")) not in answers:
        raise ValueError(
            f"{where} must have 'answer', one of 'accept', 'reject' and 'ignore', got "
            f"{_shorten(answer)}. Nothing was recorded."
        )
    found = [given] if answer == "ignore" else []
    if answer == "accept":
        labels = _take(task, "accept", list, where, [])
        if "accept" not in task and task.get("label") is not None:
            labels = [task["label"]]  # a question about one class
        chosen = _read_choice(labels, where, several)
        found = [] if chosen is None else [replace(given, label=chosen)]
    return Item(meta.get(ID), text, tuple(found))


def _read_argilla(record, names, label, where, several):
    fields = _take(record, "fields", dict, where)
    metadata = _take(record, "metadata", dict, where, {})
    named = _take(record, "responses", dict, where, {})
    responses = _find_question(named, label, where)
    _check(responses, list, where, "must have a list of responses to a question")
    users = metadata.get("annotators") or []
    found = []
    for number, response in enumerate(responses, 1):
        place = f"response {number} of {where}"
        _check(response, dict, place, "must be an object")
        status = response.get("status") or "submitted"
        by = response.get("user_id")
        if len(users) == len(responses):
            by = users[number - 1]
        answer = FileAnswer(None, by or None, where=place)
        if status == "submitted":
            value = response.get("value")
            given = value if isinstance(value, list) else [value]
            chosen = _read_choice(given, place, several)
            found += [] if chosen is None else [replace(answer, label=chosen)]
        elif status == "discarded":
            found.append(answer)
        elif status != "draft":
            raise ValueError(
                f"{place} must have the status 'submitted', 'discarded' or 'draft', "
                f"got {_shorten(status)}. Nothing was recorded."
            )
    skips = metadata.get("discarded_by") or []
    found += [FileAnswer(None, by or None, where=where) for by in skips]
    return Item(metadata.get(ID), _read_text(fields, names, where), tuple(found))


def _read_doccano(record, names, label, where, several):
    labels = record.get(label, record.get(f"{label}s", []))
    labels = labels if isinstance(labels, list) else [labels]
    chosen = _read_choice(labels, where, several)
    answer = FileAnswer(chosen, record.get("annotator"), where=where)
    # An empty list without an annotator is an item that nobody has labeled.
    is_open = chosen is None or (not chosen and "annotator" not in record)
    answers = () if is_open else (answer,)
    return Item(record.get(ID), _read_text(record, names, where), answers)


_READERS = {
    "label-studio": (_read_label_studio, False),
    "prodigy": (_read_prodigy, True),
    "argilla": (_read_argilla, False),
    "doccano": (_read_doccano, True),
}
