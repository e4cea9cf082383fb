"""Labels as tables: what others read, and what they send back."""

import csv
import io
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from .._storage._files import write_atomic
from .._storage._fingerprint import hash_ids, hash_item
from .._utils._containers import take_rows
from .._utils._sklearn import check_option, check_path
from .._utils._threads import synchronized
from ..datasets._reader import is_untyped, read_cells
from ..simulation._run import Run
from ._manifest import read_contents
from ._pool import Batch, assign_rows, shorten
from ._state import is_missing, read_session

HASH = "content_hash"
PAIR = ["text_1", "text_2"]


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
    unknown : list
        Ids of items that the pool does not have; their texts where there are no ids.
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
    check_option("'what'", what, ("labels", "answers", "open"))
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"'path' must be in a folder that exists, got {str(path)!r}. Make "
            f"{str(path.parent)!r} first."
        )
    rows = list(state.answers.items())
    if what == "answers":
        rows = [(id, given) for id, answer in rows for given in answer.given]
    elif what == "open":
        rows = [
            (id, None) for number in sorted(state.open) for id in state.open[number]
        ]
    ids, answers = [id for id, _ in rows], [answer for _, answer in rows]
    columns = {
        "id": ids,
        **_item_columns(pool, ids),
        "label": [answer and answer.label for answer in answers],
        "annotator": [answer and answer.annotator for answer in answers],
        "time": [answer and answer.time for answer in answers],
    }
    try:
        content = writer(columns)
    except UnicodeEncodeError as exc:
        raise ValueError(
            f"a text, label or id holds {exc.object[exc.start : exc.end]!r}, half of a "
            f"character, which {path.suffix} cannot hold. Name a .jsonl file."
        ) from exc
    write_atomic(path, content)


def _item_columns(pool, ids):
    """Give the items as columns of texts, or else of hashes to match them by."""
    positions = pool.positions(ids)
    if pool.texts is None:
        hashes = pool.contents[positions].tolist()
        return {HASH: [f"blake2b:{content:016x}" for content in hashes]}
    texts = [pool.texts[position] for position in positions]
    if isinstance(pool.texts[0], str):
        return {"text": texts}
    return {name: [text[i] for text in texts] for i, name in enumerate(PAIR)}


def _to_csv(columns):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow(
            json.dumps(cell) if isinstance(cell, list) else escape(cell) for cell in row
        )
    return stream.getvalue().encode("utf-8")


def _to_jsonl(columns):
    rows = zip(*columns.values(), strict=True)
    lines = [
        json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n"
        for row in rows
    ]
    # What UTF-8 cannot hold becomes an escape of JSON, such as \ud800.
    return "".join(lines).encode("utf-8", "backslashreplace")


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
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as exc:
        raise ValueError(
            f"Parquet does not take these ids or labels ({exc}): a column must be of "
            "one type, and int of at most 64 bits. Name a .jsonl file."
        ) from exc
    return stream.getvalue()


_WRITERS = {".csv": _to_csv, ".jsonl": _to_jsonl, ".parquet": _to_parquet}


def import_table(path, id, label, text, pool, answers, kind, ignore_unknown):
    """Read labels and compare them with those of a session.

    Parameters
    ----------
    path : str or path-like
        A table, or the folder of a session.
    id, label, text : str, or None, or for `text` two str
        Columns; see `LabelingSession.import_labels`.
    pool : Pool
    answers : dict of id to Answer
        The session's own.
    kind : str or None
        The kind of the labels so far.
    ignore_unknown : bool

    Returns
    -------
    imported : ImportedLabels
    labels : dict of id to label
        Those to record.

    Raises
    ------
    ValueError
        If an item is unknown or has two labels in the file.
    """
    check_path("path", path)
    path = Path(path).expanduser()
    if path.is_dir():
        rows = _read_session(path)
    else:
        rows = _read_table(path, id, label, text, pool, kind)
    imported, labels = ImportedLabels(), {}
    changed, contradictory = [], []
    found = assign_rows([(row.id, row.content) for row in rows], pool, answers)
    for row, id in zip(rows, found, strict=True):
        if id is None:
            imported.unknown.append(row.text if row.id is None else row.id)
            changed += [row.id] * (row.id in pool)
        elif labels.setdefault(id, row.label) != row.label:
            contradictory.append(id)
    if imported.unknown and not ignore_unknown:
        note = f" The content of {shorten(changed)} is another one." if changed else ""
        raise ValueError(
            f"{str(path)!r} has labels of {len(imported.unknown)} items that are not "
            f"in the pool: {shorten(imported.unknown)}.{note} Pass ignore_unknown=True "
            "to leave them out. Nothing was recorded."
        )
    if contradictory:
        raise ValueError(
            f"{str(path)!r} gives {len(contradictory)} items more than one label: "
            f"{shorten(contradictory)}. Keep one for each. Nothing was recorded."
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


@dataclass(frozen=True)
class _Row:
    """A label, and what a table says of the item that it belongs to."""

    label: object
    id: object = None
    content: int | None = None
    text: object = None


def _read_session(folder):
    manifest, events, state = read_session(folder)
    contents = read_contents(folder, manifest, events)
    ids = [id for id, answer in state.answers.items() if not is_missing(answer.label)]
    return [
        _Row(state.answers[id].label, id, contents[content] or None)
        for id, content in zip(ids, hash_ids(ids).tolist(), strict=True)
    ]


def _read_table(path, id, label, text, pool, kind):
    default = [HASH]
    if pool.texts is not None:
        default = ["text"] if isinstance(pool.texts[0], str) else PAIR
    given = [] if text is None else [text] if isinstance(text, str) else list(text)
    if given and (pool.texts is None or len(given) != len(default)):
        held = {HASH: "no texts", "text": "texts"}.get(default[0], "pairs of texts")
        raise ValueError(
            f"'text' must name the columns of what the pool holds, which is {held}, "
            f"got {text!r}."
        )
    needed = [label, *given, *([] if id == "id" else [id])]
    columns, _, _ = read_cells(path, needed, [id, *default])
    named = given or (default if columns.keys() >= set(default) else [])
    if id not in columns and not named:
        try:
            read_cells(path, [id])
        except ValueError as exc:
            raise ValueError(
                f"{exc} Name the column of the ids with id=, or that of the texts "
                "with text=."
            ) from exc
    nothing = [None] * len(columns[label])
    ids = columns.get(id, nothing)
    items = zip(*(columns[name] for name in named), strict=True) if named else nothing
    labeled = [
        row
        for row in zip(columns[label], ids, items, strict=True)
        if not is_missing(row[0])
    ]
    if is_untyped(path):
        labeled = _read_untyped(labeled, pool, kind, path)
    rows = []
    for label, id, item in labeled:
        content, shown = None, item
        if item is not None:
            shown = item[0] if len(item) == 1 else item
            content = _read_content(shown, pool)
        rows.append(_Row(label, id, content, shown))
    return rows


def _read_content(item, pool):
    """Give the hash of an item, None where a cell is empty."""
    if pool.texts is not None:
        return None if item is None else hash_item(item)
    digest = re.fullmatch("blake2b:([0-9a-f]{16})", item or "")
    return int(digest[1], 16) if digest else None


def _read_untyped(rows, pool, kind, path):
    """Give the cells of a CSV or TSV file their types; there, 7 and "7" look alike."""
    looks = {}
    for known in pool.ids:
        looks.setdefault(str(known), []).append(known)
    read_label = find_reading(kind, [label for label, _, _ in rows], path)
    read = []
    for label, id, item in rows:
        if id is not None:
            same = looks.get(unescape(id), [id])
            if len(same) > 1:
                raise ValueError(
                    f"{str(path)!r} names the item {id}, and the ids {shorten(same)} "
                    "of the pool look alike there. Use a .jsonl or .parquet file. "
                    "Nothing was recorded."
                )
            id = same[0]
        if item is not None:
            item = _restore(tuple(cell or "" for cell in item), pool)
        read.append((read_label(label), id, item))
    return read


def _restore(item, pool):
    """Give a text as it was before it was escaped, if it was."""
    if pool.texts is None:
        return item
    unescaped = tuple(map(unescape, item))
    shown = unescaped[0] if len(item) == 1 else unescaped
    return unescaped if pool.find(hash_item(shown)) else item


_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")


def escape(cell):
    """Keep a spreadsheet from running a text as a formula.

    Parameters
    ----------
    cell : object
        What is no `str` is left as it is.

    Returns
    -------
    cell : object
        Behind an apostrophe if it begins with one of ``= + - @``, a tab or a line
        break, or with apostrophes before one of these. :func:`unescape` undoes it.

    Examples
    --------
    >>> from skactive.session._tables import escape, unescape
    >>> escape("=1+1"), escape("'=1+1"), escape("a=1"), escape(-1)
    ("'=1+1", "''=1+1", 'a=1', -1)
    >>> unescape("'=1+1"), unescape("'a'")
    ('=1+1', "'a'")
    """
    is_formula = isinstance(cell, str) and _FORMULA.match(cell)
    return f"'{cell}" if is_formula else cell


def unescape(cell):
    """Undo :func:`escape`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def find_reading(kind, cells, path):
    """Choose what the labels of a file stand for.

    Parameters
    ----------
    kind : str or None
        The kind of a session's labels; None goes by the looks of all cells.
    cells : list of str
    path : Path
        The file, for the error.

    Returns
    -------
    read : callable
        `read(cell) -> label`.

    Raises
    ------
    ValueError
        If a cell is not of that kind.
    """
    if kind is None:
        for read in (_read_number, _read_bool, _read_list):
            with suppress(ValueError):
                for cell in cells:
                    read(cell)
                return read
        return unescape
    read = _READINGS[kind.split()[0]]
    for cell in cells:
        try:
            read(cell)
        except ValueError as exc:
            raise ValueError(
                f"{str(path)!r} has the label {cell!r}, and the session's labels are "
                f"of the kind {kind!r}. Write them in one way. Nothing was recorded."
            ) from exc
    return read


def _read_number(cell):
    if not _NUMBER.fullmatch(cell):
        raise ValueError(cell)
    return int(cell) if _INTEGER.fullmatch(cell) else float(cell)


def _read_bool(cell):
    return bool(("False", "True").index(cell))


def _read_list(cell):
    value = json.loads(cell)
    if not isinstance(value, list):
        raise ValueError(cell)
    return value


_READINGS = {
    "str": unescape,
    "number": _read_number,
    "bool": _read_bool,
    "list": _read_list,
}


class ReadingMixin:
    """The part of a session that changes nothing."""

    @property
    @synchronized
    def labels(self):
        """The present labels, dict of id to label."""
        return {id: answer.label for id, answer in self._state.answers.items()}

    @property
    @synchronized
    def answers(self):
        """The last label by each annotator, dict of id to dict of annotator to label.

        As a table, one column for each annotator: ``pandas.DataFrame(answers).T``.
        """
        return {
            id: {given.annotator: given.label for given in answer.given}
            for id, answer in self._state.answers.items()
        }

    @property
    def classes(self):
        """The labels that are allowed, list; None allows any."""
        return self._state.classes or self._journal.manifest.get("classes")

    @property
    @synchronized
    def skipped(self):
        """Items set aside, list of ids."""
        return list(self._state.skipped)

    @property
    @synchronized
    def open_batches(self):
        """What was asked and not answered, list of Batch."""
        return [self._batch(number) for number in sorted(self._state.open)]

    @property
    def learner(self):
        """The present model; with `refit=True` trained on all labels."""
        with self._choosing:
            return self._models.get().learner

    @property
    @synchronized
    def model_age(self):
        """How many labels the model does not know as they are now."""
        return self._models.age()

    @property
    @synchronized
    def run(self):
        """The labels so far as a :class:`skactive.simulation.Run`, without scores.

        A round is what was answered of one batch, in the order of the answers; labels
        of items never asked for are rounds of their own. Stopping rules look at it.
        """
        batch_of = {}
        for number, (ids, _) in self._state.batches.items():
            batch_of.update(dict.fromkeys(ids, number))
        answered = list(self._state.answers)
        positions = self._pool.positions(answered)
        groups = groupby(range(len(answered)), lambda i: batch_of.get(answered[i]))
        rounds = [{"asked": [int(positions[i]) for i in group]} for _, group in groups]
        return Run(rounds, info={"pool_size": len(self._pool)})

    @property
    def path(self):
        """The folder."""
        return self._journal.folder

    @synchronized
    def history(self, id):
        """List what happened to an item.

        Parameters
        ----------
        id : str or int

        Returns
        -------
        events : list of dict
            In order: `seq`, `time`, `event` ("ask", "tell", "skip", "release"),
            `label` and `batch` where there is one, `annotator`, and `undone`, whether
            it was taken back.
        """
        (id,) = self._pool.read_ids([id], name="id")
        events = self._journal.events
        undone = {event["of"] for event in events if event["event"] == "undo"}
        found = []
        for event in events:
            if id not in event.get("ids", ()):
                continue
            entry = {"seq": event["seq"], "time": event["t"], "event": event["event"]}
            if "labels" in event:
                entry["label"] = event["labels"][event["ids"].index(id)]
            if "batch" in event:
                entry["batch"] = event["batch"]
            entry["annotator"] = event.get("by")
            entry["undone"] = event["seq"] in undone
            found.append(entry)
        return found

    @synchronized
    def export(self, path, *, what="labels"):
        """Write a table: CSV, JSONL or Parquet, by the suffix of its name.

        The file appears whole or not at all. Columns are `id`, the text (`text`, or
        `text_1` and `text_2`) or else `content_hash`, `label`, `annotator` and `time`.
        In CSV, a text that a spreadsheet would run as a formula gets an apostrophe in
        front, which `import_labels` takes away again.

        Parameters
        ----------
        path : str or path-like
            A file that may exist; Parquet needs pyarrow.
        what : {"labels", "answers", "open"}, default="labels"
            The label of each labeled item; or the answer of each annotator, in rows of
            their own; or the items that wait for an answer, with an empty `label` for
            someone to fill in and `import_labels` to read.
        """
        if not self._journal.closed:
            self._sync()
        check_path("path", path)
        export_table(path, what, self._pool, self._state)

    def _batch(self, number):
        """Give what is left of a batch."""
        ids = tuple(self._state.open[number])
        items = take_rows(self._pool.X, self._pool.positions(ids))
        return Batch(ids, items, number, self._whom(number))

    def _whom(self, number):
        _, annotator = self._state.batches[number]
        return annotator

    def __repr__(self):
        return (
            f"LabelingSession({self.path!r}: {len(self._state.answers)} of "
            f"{len(self._pool)} labeled)"
        )
