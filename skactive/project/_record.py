"""What a project is about: its table, columns and kind, and the files that it wrote."""

import json
import os
import re
import shlex
from contextlib import suppress
from glob import escape
from itertools import count
from pathlib import Path

from .._storage._files import write_atomic
from .._storage._outputs import find_mode, make_private_folder, write_own
from .._utils._system import find_named, to_form

RECORD = "project.json"
LABELED, PREDICTED = "labeled", "predicted"  # what `label` and `predict` wrote
CHOSEN, DESCRIPTIONS = "chosen", "descriptions"  # on the first screen of the page
ONLY_IF = "only_if"  # another question and its label
QUESTIONS = "questions"  # of each text, in the record of the first one
_OURS = ("model", "model.json")  # files that a project replaces
KINDS = {
    "single-label": "one class per text",
    "multi-label": "several classes per text",
    "regression": "numbers (regression=True)",
}


def find_folder(path, about, folder=None):
    """Return the absolute folder of a project, which is new or was begun for `about`.

    `about` holds the name of the file, the columns of texts, labels and ids, the target
    and the separator. By default the folder is next to the table: FILE.skactive for the
    labels of the first project, and FILE.LABEL.skactive for each other column.
    """
    folder = _choose(path, about) if folder is None else Path(folder)
    folder = folder.expanduser().absolute()
    if folder.exists() and not folder.is_dir():
        raise ValueError(
            f"'folder' must be a folder, got the file {show(folder)}. Name another one."
        )
    check_record(folder, about)
    return folder


def _choose(path, about):
    plain, labels = plain_folder(path), about["label"]
    if not _is_begun(plain):
        return plain
    record = _read_begun(plain, about)
    if not _is_of(record, path):
        raise ValueError(
            f"{show(plain)} belongs to {record['file']}. For {path.name}, add "
            f"folder=NEW; or folder={shlex.quote(show(plain))}, if it has the "
            "same texts."
        )
    if _same(record["label"], labels):
        return plain
    name = (
        re.sub(r"[^\w.+-]+", "_", "+".join(sorted(labels))).strip("._")[:40] or "label"
    )
    for n in count(1):
        number = f"-{n}" if n > 1 else ""
        other = find_named(plain.with_name(f"{path.stem}.{name}{number}.skactive"))
        if not _is_begun(other):
            return other
        record = _read_begun(other, about)
        if _is_of(record, path) and _same(record["label"], labels):
            return other


def plain_folder(path):
    """Return the absolute folder of the first project of a table.

    A copy made on another system may have given it another case or Unicode form.
    """
    plain = path.with_suffix(".skactive").expanduser().absolute()
    other = find_named(plain)
    return other if other == plain or _is_of(read_record(other), path) else plain


def _is_of(record, path):
    """Whether a record is of a table, whose name may have another form now."""
    other = path.parent / record.get("file", "?")
    is_other = other.exists() and path.exists() and not other.samefile(path)
    return to_form(other.name) == to_form(path.name) and not is_other


def make_folder(folder, path):
    """Create the folder of a project, or raise an OSError that names it.

    Only its owner opens it if others may not read the table in `path`.
    """
    try:
        make_private_folder(folder, find_mode(path), RECORD)
    except OSError as exc:
        raise OSError(
            f"'folder' must be a folder to write into, got {str(folder)!r} "
            f"({exc.strerror}). Name another one."
        ) from exc


def recall_choice(path, labels, folder=None):
    """Return what was chosen on the first screen of the page, dict; empty for none.

    `labels` are the columns of the labels, and `folder` is that of the project or None.
    """
    with suppress(ValueError):  # said when the project is opened
        about = {"file": path.name, "label": labels}
        folder = _choose(path, about) if folder is None else Path(folder).expanduser()
        return read_record(folder).get(CHOSEN, {})
    return {}


def recall_begun(path, label, folder=None):
    """Return the record of what was begun with a table, dict; empty for nothing.

    With a column of labels, only questions are found that the page began in its place.
    A record that has several questions comes before others.
    """
    plain = plain_folder(path) if folder is None else Path(folder).expanduser()
    others = plain.parent.glob(f"{escape(path.stem)}.*.skactive")
    begun = []
    for one in [plain, *sorted(others if folder is None else plain.glob("*"))]:
        with suppress(ValueError):  # said when the project is opened
            record = read_record(one)
            is_right = not label or record.get(CHOSEN, {}).get("label") == label
            begun += [record] if is_right and record.get("file") == path.name else []
    return min(begun, key=lambda record: QUESTIONS not in record, default={})


def check_record(folder, about):
    """Raise a ValueError unless a folder is new, or was begun for `about`."""
    if not _is_begun(folder):
        names = _OURS if not read_record(folder) else ()
        if found := [name for name in names if os.path.lexists(folder / name)]:
            raise ValueError(
                f"{show(folder)} holds {found[0]!r}, and no project. Name another "
                "one with folder=."
            )
        return
    record = _read_begun(folder, about)
    for name, advice in (
        ("label", "that column"),
        ("text", "that column"),
        ("id", "the same ids"),
        ("separator", "the same separator"),
        ("target", "that kind of labels"),
    ):
        same = _same if name == "label" else lambda one, two: one == two
        if not same(record[name], about[name]):
            raise ValueError(
                f"{show(folder)} was begun {_say(name, record[name])}. Use {advice}, "
                "or folder=NEW."
            )


def _say(name, value):
    if name == "target":
        return f"for {KINDS[value]}"
    if value is None:
        return f"without {name}="
    return f"with {name}={shlex.join([value] if isinstance(value, str) else value)}"


def _same(one, two):
    return sorted(one) == sorted(two)


def _is_begun(folder):
    """Whether a folder holds a session, which may be damaged."""
    files = ("manifest.json", "journal.jsonl")
    return any(os.path.lexists(folder / "session" / name) for name in files)


def _read_begun(folder, about):
    """Return the record of a folder that holds a session."""
    if record := read_record(folder):
        return record
    content = shlex.quote(json.dumps(about, ensure_ascii=False))
    raise ValueError(
        f"{show(folder)} has a session, but no {RECORD}, so that its columns are "
        "unknown. Add folder=NEW to begin another one. Only if its answers are for "
        f"label={shlex.join(about['label'])}: continue it after echo {content} > "
        f"{shlex.quote(show(folder / RECORD))}"
    )


def read_record(folder):
    """Return the record of a project, dict; empty without one."""
    path = folder / RECORD
    try:
        record = json.loads(path.read_bytes())
        lists = record["text"], record["label"]
        names = [name for names in lists for name in names] + [record["file"]]
        options = [record["id"], record["separator"]]
        good = all(isinstance(names, list) and names for names in lists)
        good = good and record["target"] in KINDS
        good = good and all(isinstance(name, str) for name in names)
        good = good and all(isinstance(x, str | None) for x in options)
        keys = LABELED, PREDICTED, CHOSEN, DESCRIPTIONS, QUESTIONS
        good = good and all(isinstance(record.get(key, {}), dict) for key in keys)
        asked = record.get(QUESTIONS) or {"kinds": (), "only_if": None}
        good = good and isinstance(asked["only_if"], dict | None)
        for name, kind in asked["kinds"]:
            good = (
                good and isinstance(name, str | list) and isinstance(kind, str | None)
            )
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, LookupError, TypeError, RecursionError):
        good = False
    if not good:
        raise ValueError(
            f"{show(path)} is damaged, or not of skactive: it must hold the columns of "
            "a project. Restore it from a copy, or name another one with folder=."
        )
    return record


def write_record(folder, about):
    """Record what a project is about; what it wrote stays recorded."""
    content = json.dumps({**read_record(folder), **about}, ensure_ascii=False, indent=1)
    write_atomic(folder / RECORD, content.encode("utf-8", "surrogatepass"))


def write_output(folder, kind, path, write, mode):
    """Write a file by `write(path)`, and record its SHA-256 in the folder of a project.

    What is at `path`, and is not the last file of this `kind` there, is kept under
    another path. Return a message about that, or None.
    """
    try:
        record = read_record(folder)
    except (ValueError, OSError):
        record = {}
    wrote = record.get(kind, {})
    path = Path(path)
    name = os.path.join(os.path.realpath(path.parent), path.name)
    with suppress(ValueError):  # on another drive
        name = os.path.relpath(name, os.path.realpath(folder))
    name = to_form(Path(name).as_posix())
    digest, kept = write_own(path, write, wrote.get(name), mode)
    if record:
        with suppress(OSError):  # the next time, this file is kept
            write_record(folder, {kind: {**wrote, name: digest}})
    if kept is None:
        return None
    other = "model or program" if kind == PREDICTED else "program"
    return f"{path} was changed, or is of another {other}: it is kept as {kept}"


def write_predicted(folder, path, write, mode):
    """Write a file of predictions; see `write_output`."""
    return write_output(folder, PREDICTED, path, write, mode)


def show(path):
    """Return a path as a person would type it."""
    path = os.fspath(path)
    with suppress(ValueError):
        relative = os.path.relpath(path)
        return path if relative.startswith("..") else relative
    return path
