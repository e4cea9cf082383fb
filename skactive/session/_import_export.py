"""Labels as tables: exports for other programs, and imports of their labels."""

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .._storage._fingerprint import hash_item
from .._tables._formats import PAIR, is_untyped
from .._tables._labels import find_sources, read_labels
from .._tables._reader import TableFile
from .._tables._writer import unescape, write_table
from .._utils._format import is_missing, reprs
from .._utils._labels import same_label
from .._utils._sklearn import check_path
from ._foreign import Wanted, find_format, read_format, tell_left_out
from ._formats import Item, SourceAnswer, spell
from ._manifest import read_contents
from ._pool import assign_rows, is_id
from ._state import read_session

HASH = "content_hash"
_TEXTS = {"text": ["text"], "pair": PAIR}  # columns of a pool of this kind


@dataclass(frozen=True)
class ImportedLabels:
    """Result of an import.

    Attributes
    ----------
    added : list of ids
        Items that got the label of the file.
    unchanged : list of ids
        Items that had this label already.
    conflicts : list of (id, label in the session, label in the file)
        Items with another label, which they keep.
    unknown : list
        Ids of items that are not in the pool; their texts if there are no ids.
    left_out : dict of reason to list of places
        Lines or records of another program that are no answer, such as rejected tasks.
    """

    added: list[Any] = field(default_factory=list)
    unchanged: list[Any] = field(default_factory=list)
    conflicts: list[tuple[Any, Any, Any]] = field(default_factory=list)
    unknown: list[Any] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)


def export_table(path, what, state, predictions=None, more=None):
    """Write labels or items; see `LabelingSession.export`.

    `predictions` holds the labels and the scores of all items, two lists, for "pool".
    `more(id)` returns further cells, dict of column to cell.
    """
    path, pool = Path(path).expanduser(), state.pool
    rows = list(state.answers.items())
    if what == "answers":
        rows = [(id, one) for id, answer in rows for one in answer.given]
    elif what == "open":
        rows = [(id, None) for n in sorted(state.open) for id in state.open[n]]
    elif what == "pool":
        answered = {copy: one for id, one in rows for copy in pool.copies_of(id)}
        answered |= state.answers
        rows = [(id, answered.get(id)) for id in pool.ids]
    ids, answers = [id for id, _ in rows], [answer for _, answer in rows]
    columns = {
        "id": ids,
        **_item_columns(pool, ids),
        "label": [answer and answer.label for answer in answers],
        "annotator": [answer and answer.annotator for answer in answers],
        "time": [answer and answer.time for answer in answers],
    }
    if what == "pool":
        _add_predictions(columns, *predictions)
    if what != "open":
        columns["seconds"] = [answer and answer.seconds for answer in answers]
        columns["note"] = [state.notes.get(id, "") for id in ids]
        columns["flag"] = [id in state.flags for id in ids]
    if what == "answers":
        columns["way"] = [answer.way for answer in answers]
        columns["shown"] = [answer.shown for answer in answers]
    cells = [more(id) for id in ids] if more else []
    for name in dict.fromkeys(name for each in cells for name in each):
        free = name
        while free in columns:
            free = f"task_{free}"
        columns[free] = [each.get(name) for each in cells]
    write_table(path, columns, suffixes=(".csv", ".jsonl", ".parquet"))


def _add_predictions(columns, predicted, proba):
    """Add predictions, and use them as the labels of items without an answer."""
    labels, sources = [], []
    for label, other in zip(columns["label"], predicted, strict=True):
        by_person = label is not None
        labels.append(label if by_person else other)
        sources.append("person" if by_person else None if other is None else "model")
    columns |= {"label": labels, "label_source": sources}
    rounded = [None if p is None else round(p, 4) for p in proba]
    columns |= {"prediction": predicted, "probability": rounded}


def _item_columns(pool, ids):
    """Return the items as columns of texts, or else of hashes."""
    positions = pool.positions(ids)
    if pool.kind is None:
        hashes = pool.contents[positions].tolist()
        return {HASH: [f"blake2b:{content:016x}" for content in hashes]}
    texts = pool.texts(positions)
    if pool.kind == "text":
        return {"text": texts}
    return {name: [text[i] for text in texts] for i, name in enumerate(PAIR)}


def read_answers(path, columns, state, kind, format, annotator, ignore_unknown):
    """Return the answers in a file, the unknown items, and what was left out.

    The answers are a dict of id to list, and what was left out is a dict of reason to
    places. `columns` are the names of the columns of ids, labels and texts, and
    `annotator` stands for one that the file does not name. Raise a ValueError if an
    item is unknown or has two labels of one annotator.
    """
    check_path("path", path)
    id, label, names = _check_columns(*columns)
    path, pool, read = Path(path).expanduser(), state.pool, None
    if (seems := find_format(path)) not in (None, format):
        raise ValueError(
            f"'format' must be {seems!r} for {str(path)!r}, which has the fields of "
            f"that program, got {format!r}."
        )
    if format is not None:
        items, read = _read_format(path, format, names, label, state, kind)
    elif path.is_dir():
        items = _read_session(path)
    else:
        items = _read_table(path, id, label, names, pool, kind)
    items = [_finish(item, annotator, read) for item in items]
    answers_of, unknown, changed, contradictory = {}, [], [], []
    for item, id in zip(items, _find_items(items, pool, state.answers), strict=True):
        if id is None and item.answers:
            unknown.append(item.text if item.id is None else item.id)
            changed += [item.id] * (item.id in pool)
            continue
        for answer in item.answers:
            own = answers_of.setdefault(id, {})
            before = own.get(answer.annotator)
            if before is None or before.label is None:
                own[answer.annotator] = answer
            elif answer.label is not None and not same_label(
                before.label, answer.label
            ):
                places = [before.where, answer.where]
                contradictory.append(" and ".join(places) if all(places) else repr(id))
    if unknown and not ignore_unknown:
        note = f" The content of {reprs(changed)} differs." if changed else ""
        raise ValueError(
            f"{str(path)!r} has labels of {len(unknown)} items that are not in the "
            f"pool: {reprs(unknown)}.{note} Pass ignore_unknown=True to ignore them."
        )
    if contradictory:
        raise ValueError(
            f"{str(path)!r} must give each item one label, got several for "
            f"{len(contradictory)}: {'; '.join(contradictory[:5])}. Keep one for each."
        )
    left_out = tell_left_out(items, path)
    return {id: list(own.values()) for id, own in answers_of.items()}, unknown, left_out


def _finish(item, annotator, read):
    """Return an item with typed labels and names; times only order the answers."""
    answers = []
    for answer in item.answers:
        label = answer.label
        if read is not None and isinstance(label, str):
            label = read(label)
        person = answer.annotator or annotator
        answers.append(replace(answer, label=label, annotator=person, time=""))
    return replace(item, answers=tuple(answers))


def _find_items(items, pool, preferred):
    """Return the id of each item, None if the pool lacks it.

    An annotator answers each of several copies of a text once, so the same text is
    another copy when an annotator answers it again.
    """
    keys, seen = [], Counter()
    for item in items:
        same = item.id if is_id(item.id) else None, item.content
        who = (*same, tuple(sorted(str(a.annotator) for a in item.answers)))
        keys.append((*same, seen[who]))
        seen[who] += 1
    unique = list(dict.fromkeys(keys))
    rows = [(id, content) for id, content, _ in unique]
    ids = dict(zip(unique, assign_rows(rows, pool, preferred), strict=True))
    return [ids[key] for key in keys]


def _check_columns(id, label, text):
    """Return the names of the columns; those of the texts as a list."""
    texts = text if isinstance(text, list | tuple) else [text]
    texts = [] if text is None else texts
    named = [("id", id), ("label", label), *(("text", name) for name in texts)]
    for name, column in named:
        if not isinstance(column, str):
            raise TypeError(
                f"{name!r} must be the name of a column, as str; got {column!r}."
            )
    return id, label, list(texts)


def _read_format(path, format, names, label, state, kind):
    """Return the items of a file, and the function that converts labels or None."""
    if state.pool.kind is None:
        raise ValueError(
            "'format' must be None for a pool without texts: items are found by their "
            "texts. Import a table."
        )
    names, classes = names or _TEXTS[state.pool.kind], map(spell, state.classes or ())
    wanted = Wanted(names, label, kind == "names", list(classes))
    items = read_format(path, format, wanted)
    cells = [
        x.label for item in items for x in item.answers if isinstance(x.label, str)
    ]
    # These programs name classes by str; the session may have other labels.
    is_named = kind in (None, "str", "names", "str or names")
    return items, None if is_named else find_reading(kind, cells, path)


def _read_session(folder):
    manifest, events, state = read_session(folder)
    ids = [id for id, answer in state.answers.items() if not is_missing(answer.label)]
    contents = read_contents(folder, manifest, events, ids)
    return [
        Item(id, None, (SourceAnswer(state.answers[id].label),), content or None)
        for id, content in zip(ids, contents, strict=True)
    ]


def _read_table(path, id, label, given, pool, kind):
    default = _TEXTS.get(pool.kind, [HASH])
    if given and (pool.kind is None or len(given) != len(default)):
        held = {"text": "texts", "pair": "pairs of texts"}.get(pool.kind, "no texts")
        raise ValueError(
            f"'text' must name the columns of what the pool holds, which is {held}, "
            f"got {given[0] if len(given) == 1 else given!r}."
        )
    table = TableFile(path)
    label = table.find(label)
    named = list(map(table.find, given or []))
    if not named and set(default) <= set(table.names):
        named = default
    try:
        key = table.find(id, optional=bool(named))
    except ValueError as exc:
        raise ValueError(
            f"{exc} Name the column of the ids with id=, or that of the texts with "
            "text=."
        ) from exc
    keys = [label, *named, *([] if key is None else [key])]
    table.read([*keys, *find_sources(table.names)])
    labels = read_labels(table, label, typed=False).values
    nothing = [None] * len(labels)
    ids = nothing if key is None else table.cells(key)
    items = zip(*map(table.cells, named), strict=True) if named else nothing
    rows = zip(labels, ids, items, strict=True)
    labeled = [row for row in rows if row[0] is not None]
    if is_untyped(path):
        labeled = _read_untyped(labeled, pool, kind, path)
    read = []
    for label, id, item in labeled:
        content, shown = None, item
        if item is not None:
            shown = item[0] if len(item) == 1 else item
            content = _read_content(shown, pool)
        read.append(Item(id, shown, (SourceAnswer(label),), content))
    return read


def _read_content(item, pool):
    """Return the hash of an item, None for an empty cell."""
    if pool.kind is not None:
        return None if item is None else hash_item(item)
    digest = re.fullmatch("blake2b:([0-9a-f]{16})", item or "")
    return int(digest[1], 16) if digest else None


def _read_untyped(rows, pool, kind, path):
    """Convert the cells of a CSV or TSV file; there, 7 and "7" are the same."""
    index = pool.by_content()
    read_label = find_reading(kind, [label for label, _, _ in rows], path)
    read = []
    for label, id, item in rows:
        if id is not None:
            same = _find_ids(unescape(id), pool) or [id]
            if len(same) > 1:
                raise ValueError(
                    f"{str(path)!r} names the item {id}, and the ids {reprs(same)} "
                    "of the pool look alike there. Use a .jsonl or .parquet file."
                )
            id = same[0]
        if item is not None:
            item = _restore(tuple(cell or "" for cell in item), pool, index)
        read.append((read_label(label), id, item))
    return read


def _find_ids(cell, pool):
    """Return the ids of the pool that look like a cell, list."""
    numbers = [int(cell)] if _WHOLE.fullmatch(cell) else []
    return [id for id in (*numbers, cell) if id in pool]


def _restore(item, pool, index):
    """Return a text as it was before it was escaped, if it was."""
    if pool.kind is None:
        return item
    unescaped = tuple(map(unescape, item))
    shown = unescaped[0] if len(item) == 1 else unescaped
    return unescaped if index.get(hash_item(shown)) else item


_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,300}")


def find_reading(kind, cells, path):
    """Return the function that converts the label cells of a file.

    `kind` is the kind of the labels of the session; None decides by all cells, and so
    does "str or names" between these. Raise a ValueError if a cell is not of that kind.
    """
    if kind in (None, "str or names"):
        typed = (_read_integer, _read_bool, _read_list)
        for read in typed if kind is None else typed[2:]:
            with suppress(ValueError):
                for cell in cells:
                    read(cell)
                return read
        return str
    read = _READINGS[kind.split()[0]]
    for cell in cells:
        try:
            read(cell)
        except ValueError as exc:
            raise ValueError(
                f"{str(path)!r} has the label {cell!r}, and the session's labels are "
                f"of the kind {kind!r}. Write them in one way."
            ) from exc
    return read


def _read_integer(cell):
    if not _WHOLE.fullmatch(cell):
        raise ValueError(cell)
    return int(cell)


def _read_bool(cell):
    return bool(("False", "True").index(cell))


def _read_list(cell):
    value = json.loads(cell)
    if not isinstance(value, list):
        raise ValueError(cell)
    return value


_READINGS = {
    "str": str,
    "number": float,
    "integer": _read_integer,
    "bool": _read_bool,
    "list": _read_list,
    "names": _read_list,
}
