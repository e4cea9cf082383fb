"""The folder of a session: a manifest, and a journal with a line for every event."""

import errno
import json
import os
import threading
import zlib

from .._storage._files import (
    LineWriter,
    Lock,
    make_folder,
    read_lines,
    utc_now,
    write_atomic,
)
from .._utils._format import warn_caller
from ._pool import renumber

MANIFEST = "manifest.json"
JOURNAL = "journal.jsonl"
LOCK = "lock"
TORN = "journal.jsonl.torn"
FORMAT = "skactive session"
FORMAT_VERSION = 2
_KEYS = {"v", "seq", "t", "event"}


class Journal:
    """The events of a session, each on the disk before it counts, and their state.

    The folder is new, empty or that of a session, and is locked until `close`.
    `manifest` is None in a new folder until :meth:`begin`. `events` is a list of dicts;
    the line number of an event is its `seq`. `state` is None until :meth:`follow`.
    `lock` guards all of this. `then` is called after each recorded event. Raise
    LockedError, FileExistsError for other files, OSError, or ValueError for damage.
    Warn if a torn last line was moved away.
    """

    def __init__(self, folder):
        self.folder = os.path.realpath(os.path.expanduser(folder))
        self._writer = self._lock = None
        self._pid = os.getpid()
        self.events, self._size = [], 0
        self.state = self.then = None
        self.lock = threading.RLock()
        self._check_folder()
        make_folder(self.folder)
        try:
            self._lock = self._lock_folder()
            self.manifest = read_manifest(self.folder)
            if self.manifest is not None:
                self._open()
        except BaseException:
            self.close()
            raise

    def file(self, name):
        """Return the path of a file of the session."""
        return os.path.join(self.folder, name)

    def begin(self, manifest, others):
        """Write the files of a new session; the manifest is the last one."""
        for name, data in others.items():
            write_atomic(self.file(name), data)
        # A journal is never empty, so that one that was emptied is noticed.
        write_atomic(self.file(JOURNAL), b"")
        with LineWriter(self.file(JOURNAL), checksums=True) as writer:
            writer.write(_new_event(1, "begin"))
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "created": _now(),
            **manifest,
        }
        manifest["crc"] = _checksum(manifest)
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        write_atomic(self.file(MANIFEST), text.encode("utf-8", "surrogatepass"))
        self.manifest = manifest
        self._open()

    def _open(self):
        self.events, torn = read_events(self.folder)
        if torn is not None:
            self._keep(torn)
            warn_caller(
                f"the last line of {self.file(JOURNAL)!r} was torn, as by a kill in "
                f"the middle of writing: {len(torn)} bytes, {torn[:60]!r}. It was "
                f"never acknowledged, does not count, and was moved to "
                f"{self.file(TORN)!r}."
            )
        self._writer = LineWriter(self.file(JOURNAL), checksums=True)
        self._size = self._writer.size

    def _keep(self, torn):
        """Append a torn line to the file of earlier torn lines."""
        before = b""
        if os.path.exists(self.file(TORN)):
            with open(self.file(TORN), "rb") as stream:
                before = stream.read()
        if not before.endswith(torn + b"\n"):  # else killed before it was cut off
            write_atomic(self.file(TORN), before + torn + b"\n")

    def _lock_folder(self):
        try:
            return Lock(self.file(LOCK), f"the session in {self.folder!r}")
        except OSError as exc:
            if exc.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            raise type(exc)(
                exc.errno,
                f"'folder' must be a folder that can be written, got {self.folder!r} "
                f"({exc.strerror}). To read the labels of a session in it, call "
                "skactive.session.read_labels(folder); to continue the session, copy "
                "the folder",
            ) from exc

    def follow(self, state):
        """Keep a state up to date with the events, from the first on."""
        self.state = state
        state.fold(self.events)

    def sync(self):
        """Apply events that an interruption kept from being applied."""
        self.catch_up()
        self.state.fold(self.events)

    def record(self, event, **fields):
        """Add an event, and apply it to the state; see `append`."""
        self.append(event, **fields)
        self.state.fold(self.events)
        if self.then is not None:
            self.then()

    def append(self, event, **fields):
        """Add an event of a kind; it is on the disk when this returns.

        Fields that are None are left out. Raise an OSError if the disk fails; nothing
        was then added. Raise a RuntimeError if the folder or the journal was changed by
        others.
        """
        self.catch_up()
        self._lock.check()
        record = _new_event(len(self.events) + 1, event)
        record |= {key: value for key, value in fields.items() if value is not None}
        try:
            self._writer.write(record)
        except RuntimeError as exc:
            exc.add_note(f"This {event!r} was not acknowledged.")
            raise
        except OSError as exc:
            exc.add_note(
                f"This {event!r} was not recorded in {self.file(JOURNAL)!r}; what was "
                "recorded before is safe. Repeat the call once the disk works."
            )
            raise
        self.events.append(record)
        self._size = self._writer.size

    def catch_up(self):
        """Read the journal again if an interruption came just after a write."""
        if self._writer is None:
            raise ValueError(
                f"the session in {self.folder!r} is closed. Open it again with "
                "LabelingSession(...)."
            )
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"the session in {self.folder!r} was opened in process {self._pid}, "
                f"and this is its child {os.getpid()}. Use it in one process."
            )
        if self._size != self._writer.size:
            self.read_again()

    def read_again(self):
        """Read all events from the disk."""
        self.events, _ = read_events(self.folder)
        self._size = self._writer.size

    @property
    def closed(self):
        """Whether `close` was called."""
        return self._writer is None

    def close(self):
        """Release the folder; harmless if repeated."""
        writer, self._writer = self._writer, None
        lock, self._lock = self._lock, None
        try:
            if writer is not None:
                writer.close()
        finally:
            if lock is not None:
                lock.release()

    def _check_folder(self):
        if not os.path.lexists(self.folder):
            return
        if not os.path.isdir(self.folder):
            raise FileExistsError(
                f"'folder' must be a folder, got {self.folder!r}, which is a file. "
                "Pass another folder."
            )
        names = os.listdir(self.folder)
        foreign = [name for name in names if not _is_ours(name)]
        if foreign and MANIFEST not in names:
            raise FileExistsError(
                f"'folder' must be a new folder or that of a session, got "
                f"{self.folder!r}, which holds {sorted(foreign)[0]!r} and no "
                f"{MANIFEST!r}. Pass another folder."
            )


def read_events(folder):
    """Return the events of a session and a torn last line, or raise a ValueError."""
    path = os.path.join(folder, JOURNAL)
    try:
        events, torn = read_lines(path)
    except FileNotFoundError:
        events = []
    if not events:
        raise ValueError(
            f"{path!r} must hold the events of the session, and is missing or empty. "
            f"Restore it from a copy. If nothing was answered yet, delete {folder!r} "
            "and begin again."
        )
    for number, event in enumerate(events, start=1):
        fault = ""
        if not isinstance(event, dict) or not event.keys() >= _KEYS:
            fault = f"must be an event with {', '.join(sorted(_KEYS))}"
        elif event["v"] != FORMAT_VERSION:
            fault = f"has the format version {event['v']!r}; expected {FORMAT_VERSION}"
        elif event.pop("crc", None) is None:
            fault = "has no checksum"
        elif event["seq"] != number:
            fault = f"has the number {event['seq']!r}; expected {number}"
        if fault:
            raise ValueError(
                f"line {number} of {path!r} {fault}. Nothing was guessed or changed. "
                "Restore the file from a copy."
            )
    return renumber(events), torn


def list_history(events, id):
    """Return the events of an item as dicts; see `LabelingSession.history`."""
    undone = {event["of"] for event in events if event["event"] == "undo"}
    entries = []
    for event in events:
        if id not in event.get("ids", ()):
            continue
        entry = {"seq": event["seq"], "time": event["t"], "event": event["event"]}
        if "labels" in event:
            position = event["ids"].index(id)
            entry["label"] = event["labels"][position]
            for name in ("seconds", "shown"):
                if name in event:
                    entry[name] = event[name][position]
        entry |= {
            key: event[key] for key in ("batch", "flag", "text", "way") if key in event
        }
        entry["annotator"] = event.get("by")
        entry["undone"] = event["seq"] in undone
        entries.append(entry)
    return entries


def check_last(state, seq, annotator):
    """Raise a ValueError unless an event is the one that an annotator would undo."""
    last = state.last_undoable(annotator)
    if last is None or last["seq"] != seq:
        raise ValueError(
            f"'seq' must be the number of the last event, got {seq!r}. "
            "Something else was answered or undone since. Nothing was changed."
        )


def describe_event(event):
    """Return an event that can be undone, or None, as the state shows it."""
    if event is None:
        return None
    ids, labels = event.get("ids", ()), event.get("labels", ())
    names = (event.get(x) for x in ("new", "added", "removed", "name"))
    return {
        "seq": event["seq"],
        "event": event["event"],
        "n_items": len(ids),
        "id": ids[0] if len(ids) == 1 else None,
        "label": labels[0] if len(labels) == 1 else None,
        "name": next((name for name in names if name is not None), None),
    }


def read_manifest(folder):
    """Return the manifest of a session; None if there is no session yet."""
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, "rb") as stream:
            content = stream.read()
    except FileNotFoundError:
        if _holds_answers(folder):
            raise ValueError(
                f"{folder!r} holds a {JOURNAL!r} and no {MANIFEST!r}. Restore "
                f"{MANIFEST!r} from a copy of the folder."
            ) from None
        return None
    try:
        manifest = json.loads(content.decode("utf-8", "surrogatepass"))
        is_ours = manifest["format"] == FORMAT
    except (ValueError, LookupError, TypeError, RecursionError) as exc:
        raise ValueError(
            f"{path!r} must be the manifest of a session, and is not "
            f"({type(exc).__name__}: {exc}). Restore it from a copy."
        ) from exc
    if not is_ours:
        raise FileExistsError(
            f"'folder' must be a new folder or that of a session, got {folder!r}, "
            f"which holds a {MANIFEST!r} of something else. Pass another folder."
        )
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path!r} has the format version {version!r}; this version of skactive "
            f"reads {FORMAT_VERSION}. Install the version that wrote it."
        )
    if manifest.pop("crc", None) != _checksum(manifest):
        raise ValueError(
            f"{path!r} is damaged: its checksum does not match its content. Nothing "
            "was guessed or changed. Restore it from a copy."
        )
    return manifest


def _holds_answers(folder):
    """Whether the journal holds more than the first event of a session."""
    try:
        events, _ = read_lines(os.path.join(folder, JOURNAL))
    except FileNotFoundError:
        return False
    except ValueError:
        return True
    return any(not isinstance(e, dict) or e.get("event") != "begin" for e in events)


def _checksum(manifest):
    content = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(content.encode()):08x}"


def _is_ours(name):
    ours = (LOCK, f"{LOCK}.holder", JOURNAL, TORN, "pool.npy")
    return name in ours or name.endswith(".tmp")


def _new_event(seq, event):
    return {"v": FORMAT_VERSION, "seq": seq, "t": _now(), "event": event}


def _now():
    return utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
