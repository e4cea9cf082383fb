"""Labels as tables: what others read, and what they send back."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from skactive._containers import take_rows
from skactive._files import write_atomic
from skactive._params import check_path
from skactive._tables import is_untyped, read_cells
from skactive.session.answers import is_missing
from skactive.session.journal import MANIFEST, read_events
from skactive.session.pool import shorten
from skactive.session.state import State

__all__ = ["ImportedLabels", "export_table", "import_table"]

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


@dataclass(frozen=True)
class ImportedLabels:
    """What became of the labels of a file.

    Attributes
    ----------
    added : list of ids
        They have this label now.
    unchanged : list of ids
        They had it before.
    conflicts : list of (id, label of the session, label of the file)
        They keep the session's.
    unknown : list of ids
        The pool does not have them.
    """

    added: list = field(default_factory=list)
    unchanged: list = field(default_factory=list)
    conflicts: list = field(default_factory=list)
    unknown: list = field(default_factory=list)


def export_table(path, what, pool, state):
    """Write labels, or items that wait for one; see `LabelingSession.export`."""
    path = Path(path).expanduser()
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise ValueError(
            f"'path' must end in one of {', '.join(_WRITERS)}, which names the format; "
            f"got {str(path)!r}."
        )
    if what not in ("labels", "open"):
        raise ValueError(f"'what' must be 'labels' or 'open', got {what!r}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"'path' must be in a folder that exists, got {str(path)!r}. Make "
            f"{str(path.parent)!r} first."
        )
    ids = list(state.answers)
    if what == "open":
        ids = [id for number in sorted(state.open) for id in state.open[number]]
    answers = [state.answers.get(id) if what == "labels" else None for id in ids]
    columns = {
        "id": ids,
        **_text_columns(pool, ids),
        "label": [answer and answer.label for answer in answers],
        "annotator": [answer and answer.annotator for answer in answers],
        "time": [answer and answer.time for answer in answers],
    }
    write_atomic(path, writer(columns))


def _text_columns(pool, ids):
    """Give the items as columns of texts, as far as they are texts or pairs."""
    if not ids:
        return {}
    items = take_rows(pool.X, pool.positions(ids))
    if getattr(items, "ndim", 1) == 2 or hasattr(items, "iter_rows"):
        items = items.to_numpy() if hasattr(items, "to_numpy") else items
    items = items.to_list() if hasattr(items, "to_list") else items
    items = items.tolist() if hasattr(items, "tolist") else list(items)
    if all(isinstance(item, str) for item in items):
        return {"text": items}
    if all(_is_pair(item) for item in items):
        return {f"text_{i + 1}": [item[i] for item in items] for i in range(2)}
    return {}


def _is_pair(item):
    is_row = isinstance(item, list | tuple) and len(item) == 2
    return is_row and all(isinstance(text, str) for text in item)


def _to_csv(columns):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow(
            json.dumps(cell) if isinstance(cell, list) else cell for cell in row
        )
    return stream.getvalue().encode("utf-8", "surrogatepass")


def _to_jsonl(columns):
    rows = zip(*columns.values(), strict=True)
    lines = [
        json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n"
        for row in rows
    ]
    return "".join(lines).encode("utf-8", "surrogatepass")


def _to_parquet(columns):
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as exc:
        raise ImportError(
            "writing Parquet files needs pyarrow. Install it with `pip install "
            "pyarrow`, or name a .csv or .jsonl file."
        ) from exc
    stream = io.BytesIO()
    try:
        pq.write_table(pa.table(columns), stream)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as exc:
        raise ValueError(
            f"Parquet does not take these ids or labels ({exc}): a column must be of "
            "one type. Name a .jsonl file."
        ) from exc
    return stream.getvalue()


_WRITERS = {".csv": _to_csv, ".jsonl": _to_jsonl, ".parquet": _to_parquet}


def import_table(path, id, label, pool, answers, ignore_unknown):
    """Read labels and compare them with those of a session.

    Parameters
    ----------
    path : str or path-like
        A table, or the folder of a session.
    id, label : str
        Columns.
    pool : Pool
    answers : dict of id to Answer
        The session's own.
    ignore_unknown : bool

    Returns
    -------
    imported : ImportedLabels
    labels : dict of id to label
        Those to record.

    Raises
    ------
    ValueError
        If an id is unknown or has two labels in the file.
    """
    check_path("path", path)
    path = Path(path).expanduser()
    if path.is_dir():
        pairs = _read_session(path)
    else:
        pairs = _read_table(path, id, label, pool, answers)
    imported, labels = ImportedLabels(), {}
    contradictory = []
    for id, label in pairs:
        if id not in pool:
            imported.unknown.append(id)
        elif id in labels:
            if labels[id] != label:
                contradictory.append(id)
        else:
            labels[id] = label
    if imported.unknown and not ignore_unknown:
        raise ValueError(
            f"{str(path)!r} has {len(imported.unknown)} ids that are not in the pool: "
            f"{shorten(imported.unknown)}. Pass ignore_unknown=True to leave them out. "
            "Nothing was recorded."
        )
    if contradictory:
        raise ValueError(
            f"{str(path)!r} gives {len(contradictory)} ids more than one label: "
            f"{shorten(contradictory)}. Leave one for each. Nothing was recorded."
        )
    for id, label in list(labels.items()):
        if id not in answers:
            imported.added.append(id)
            continue
        own = answers[id].label
        if own == label:
            imported.unchanged.append(id)
        else:
            imported.conflicts.append((id, own, label))
        del labels[id]
    return imported, labels


def _read_session(folder):
    if not (folder / MANIFEST).is_file():
        raise FileNotFoundError(
            f"'path' must be a table or the folder of a session, got {str(folder)!r}, "
            f"which has no {MANIFEST!r}."
        )
    events, _ = read_events(folder)  # a torn last line was never acknowledged
    state = State(_Anything())
    state.fold(events)
    return [(id, answer.label) for id, answer in state.answers.items()]


class _Anything:
    """The ids of a pool that is not here."""

    def __contains__(self, id):
        return True


def _read_table(path, id, label, pool, answers):
    columns, _, _ = read_cells(path, list(dict.fromkeys([id, label])))
    rows = zip(columns[id], columns[label], strict=True)
    pairs = [(i, x) for i, x in rows if not is_missing(x)]
    if not is_untyped(path) or not pairs:
        return pairs
    # In such a file, the id 7 and the id "7" look alike.
    looks = {str(known): known for known in pool.ids}
    kinds = {type(answer.label) for answer in answers.values()}
    to_label = _find_reading(kinds, [x for _, x in pairs], path)
    return [(looks.get(i, i), to_label(x)) for i, x in pairs]


def _find_reading(kinds, texts, path):
    """Choose what the texts of labels stand for."""
    if kinds == {str}:
        return str
    if not kinds:
        return int if all(map(_INTEGER.fullmatch, texts)) else str
    readings = {
        bool: {"True": True, "False": False}.__getitem__,
        int: int,
        float: float,
        list: json.loads,
    }
    kind = float if kinds == {int, float} else kinds.pop()
    for text in texts:
        try:
            readings[kind](text)
        except (ValueError, LookupError) as exc:
            raise ValueError(
                f"{str(path)!r} has the label {text!r}, and the session's labels are "
                f"of the type {kind.__name__}. Write them in one way. Nothing was "
                "recorded."
            ) from exc
    return readings[kind]
