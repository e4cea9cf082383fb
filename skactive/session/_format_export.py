"""Items and answers as files of Label Studio, Prodigy, Argilla and doccano."""

import json
import uuid
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from .._storage._files import write_atomic
from .._utils._labels import is_names
from .._utils._sklearn import check_option
from ._import_export import PAIR

FORMATS = ("label-studio", "prodigy", "argilla", "doccano")
# The id of the pool in these files, whose own ids are those of the other program.
ID = "skactive_id"
# Argilla names its users by UUID. This one makes a UUID of a name.
_USERS = uuid.UUID("5d1c1f0c-6f8f-4b6e-9d3c-0d5f5c7a9b11")


@dataclass(frozen=True)
class Item:
    """An item with its answers, None for a skip; `text` is a str or a pair of str."""

    id: object
    text: object
    answers: tuple = ()


@dataclass(frozen=True)
class FileAnswer:
    """An answer in a file; a skip has no `label`; `where` names its place.

    The label is a list of str if an item can have several classes.
    """

    label: object
    annotator: object = None
    time: str = ""
    seconds: float | None = None
    where: str = ""


def export_format(path, what, format, pool, state, events, classes):
    """Write items for another program; see `LabelingSession.export`.

    `classes` are the allowed ones; None stands for those of the answers.
    """
    check_option("format", format, FORMATS)
    check_option("what", what, ("labels", "answers", "open"))
    path = Path(path).expanduser()
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"'path' must be in a folder that exists, got {str(path)!r}. Make "
            f"{str(path.parent)!r} first."
        )
    write, is_lines = _WRITERS[format]
    items = _list_items(pool, state, events, what)
    chosen = {x for item in items for answer in item.answers for x in _choices(answer)}
    names = list(map(_spell, classes or [])) or sorted(chosen)
    records = [record for item in items for record in write(item, names)]
    if is_lines:
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
        content = "".join(lines)
    else:
        content = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
    # What UTF-8 cannot hold becomes an escape of JSON, such as \ud800.
    write_atomic(path, content.encode("utf-8", "backslashreplace"))


def _list_items(pool, state, events, what):
    """Return the labeled and skipped items, or the open ones, as a list of Item."""
    if pool.kind is None:
        raise ValueError(
            "'format' must be None for a pool without texts: the files of other "
            "programs hold texts. Export a table."
        )
    if what == "open":
        found = {id: () for number in sorted(state.open) for id in state.open[number]}
    else:
        found = {
            id: tuple(
                FileAnswer(
                    _spell(given.label),
                    given.annotator,
                    given.time,
                    given.seconds,
                )
                for given in answer.given
            )
            for id, answer in state.answers.items()
        }
        for id, (seq, _) in state.skipped.items():
            event = events[seq - 1]
            skip = FileAnswer(None, event.get("by"), event["t"])
            found[id] = (*found.get(id, ()), skip)
    texts = pool.texts(pool.positions(found))
    return [
        Item(id, text, answers)
        for (id, answers), text in zip(found.items(), texts, strict=True)
    ]


def _spell(label):
    """Return a label as the name of a class, or as a list of names."""
    if is_names(label):
        return list(label)
    return json.dumps(label) if isinstance(label, list) else str(label)


def _choices(answer):
    """Return the names of the classes of an answer, as a list; none for a skip."""
    if answer.label is None:
        return []
    return answer.label if isinstance(answer.label, list) else [answer.label]


def _fields(text):
    if isinstance(text, str):
        return {"text": text}
    return dict(zip(PAIR, text, strict=True))


def write_result(choices, name="label", to_name="text"):
    """Return the `result` of Label Studio for names of classes; empty without any."""
    about = {"from_name": name, "to_name": to_name, "type": "choices"}
    return [{**about, "value": {"choices": choices}}] if choices else []


def _write_label_studio(item, classes):
    fields = _fields(item.text)
    annotations = []
    for answer in item.answers:
        annotation = {
            "result": write_result(_choices(answer), to_name=next(iter(fields))),
            "was_cancelled": answer.label is None,
            "created_at": answer.time,
            "lead_time": answer.seconds,
        }
        if answer.annotator:  # an unknown name is refused, a missing one is not
            annotation["completed_by"] = {"email": answer.annotator}
        annotations.append(annotation)
    yield {
        "data": {**fields, ID: item.id},
        "annotations": annotations,
        "predictions": [],
    }


def _write_prodigy(item, classes):
    task = {
        **_fields(item.text),
        "options": [{"id": name, "text": name} for name in classes],
        "meta": {ID: item.id},
        "_view_id": "choice",
    }
    if not item.answers:
        yield task
    for answer in item.answers:
        skipped = answer.label is None
        time = datetime.fromisoformat(answer.time)
        by = answer.annotator
        yield {
            **task,
            "accept": _choices(answer),
            "answer": "ignore" if skipped else "accept",
            **({"_annotator_id": by, "_session_id": by} if by else {}),
            "_timestamp": int(time.timestamp()),
        }


def _write_argilla(item, classes):
    given = [answer for answer in item.answers if answer.label is not None]
    skips = [answer for answer in item.answers if answer.label is None]
    responses = [
        {
            "value": answer.label,
            "user_id": str(uuid.uuid5(_USERS, answer.annotator or "")),
            "status": "submitted",
        }
        for answer in given
    ]
    metadata = {ID: item.id}
    if given:
        metadata["annotators"] = [answer.annotator or "" for answer in given]
    if skips:  # a discarded response without a value does not load
        metadata["discarded_by"] = [answer.annotator or "" for answer in skips]
    yield {
        "id": str(item.id),
        "fields": _fields(item.text),
        "metadata": metadata,
        "suggestions": {},
        "responses": {"label": responses} if responses else {},
        "vectors": {},
        "status": "completed" if responses else "pending",
    }


def _write_doccano(item, classes):
    record = {ID: item.id, **_fields(item.text)}
    given = [answer for answer in item.answers if answer.label is not None]
    if not item.answers:
        yield {**record, "label": []}
    for answer in given:
        yield {**record, "label": _choices(answer), "annotator": answer.annotator}


_WRITERS = {
    "label-studio": (_write_label_studio, False),
    "prodigy": (_write_prodigy, True),
    "argilla": (_write_argilla, False),
    "doccano": (_write_doccano, True),
}
