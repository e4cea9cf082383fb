"""The folder of a session on the disk: one manifest, and one line for every event."""

from __future__ import annotations

import json
import os
import time
import warnings
from datetime import UTC, datetime

from skactive._files import LineWriter, make_folder, read_lines, write_atomic
from skactive._lock import Lock
from skactive.session.matching import renumber

__all__ = ["JOURNAL", "MANIFEST", "Journal", "read_events"]

MANIFEST = "manifest.json"
JOURNAL = "journal.jsonl"
LOCK = "lock"
FORMAT = "skactive session"
FORMAT_VERSION = 1
_KEYS = {"v", "seq", "t", "event"}


class Journal:
    """The events of a session, each on the disk before it counts.

    Parameters
    ----------
    path : str or path-like
        A new or empty folder, or that of a session. It is locked until `close`.

    Attributes
    ----------
    folder : str
        Absolute path.
    manifest : dict or None
        None in a new folder, until :meth:`begin`.
    events : list of dict
        All events; the number of one, `seq`, is its line.

    Raises
    ------
    LockedError
        If another session has the folder open.
    FileExistsError
        If it holds other files.
    ValueError
        If a line or the manifest is damaged, naming it.

    Warns
    -----
    UserWarning
        If a torn last line was dropped.
    """

    def __init__(self, path):
        self.folder = os.path.realpath(os.path.expanduser(path))
        self._writer = self._lock = None
        self._pid = os.getpid()
        self.events, self._size = [], 0
        self._check_folder()
        make_folder(self.folder)
        try:
            self._lock = Lock(self.file(LOCK), f"the session in {self.folder!r}")
            self.manifest = _read_manifest(self.folder)
            if self.manifest is not None:
                self._open()
        except BaseException:
            self.close()
            raise

    def file(self, name):
        """Give the path of a file of the session."""
        return os.path.join(self.folder, name)

    def begin(self, manifest, others):
        """Write what a new session begins with.

        Parameters
        ----------
        manifest : dict
            Written last: a folder without it is no session yet.
        others : dict of str to bytes
            Other files.
        """
        for name, data in others.items():
            write_atomic(self.file(name), data)
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "created": _now(),
            **manifest,
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        write_atomic(self.file(MANIFEST), text.encode("utf-8", "surrogatepass"))
        self.manifest = manifest
        self._open()

    def _open(self):
        if os.path.exists(self.file(JOURNAL)):
            self.events, torn = read_events(self.folder)
            if torn is not None:
                warnings.warn(
                    f"the last line of {self.file(JOURNAL)!r} was torn, as by a kill "
                    f"in the middle of writing: {len(torn)} bytes that were never "
                    f"acknowledged were dropped, {torn[:60]!r}.",
                    UserWarning,
                    stacklevel=4,  # the caller of LabelingSession
                )
        self._writer = LineWriter(self.file(JOURNAL))
        self._size = self._writer.size

    def append(self, event, **fields):
        """Add an event; it is on the disk when this returns.

        Parameters
        ----------
        event : str
            Its kind.
        **fields : dict
            What JSON takes. None is left out.

        Raises
        ------
        OSError
            If the disk is full or fails. Nothing was then added.
        """
        self.catch_up()
        record = {"v": 1, "seq": len(self.events) + 1, "t": _now(), "event": event}
        record |= {key: value for key, value in fields.items() if value is not None}
        try:
            self._writer.write(record)
        except OSError as exc:
            exc.add_note(
                f"This {event!r} was not recorded in {self.file(JOURNAL)!r}; what was "
                "recorded before is safe. Repeat the call once the disk is well."
            )
            raise
        self.events.append(record)
        self._size = self._writer.size

    def catch_up(self):
        """Read again what was written, if an interruption came just after that."""
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
        """Let go of the folder; harmless if repeated."""
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
                f"'path' must be a folder, got {self.folder!r}, which is a file. Pass "
                "another path."
            )
        names = os.listdir(self.folder)
        foreign = [name for name in names if not _is_ours(name)]
        if foreign and MANIFEST not in names:
            raise FileExistsError(
                f"'path' must be a new folder or that of a session, got "
                f"{self.folder!r}, which holds {sorted(foreign)[0]!r} and no "
                f"{MANIFEST!r}. Pass another path."
            )


def read_events(folder):
    """Read the events of a session, and tell a torn last line from damage.

    Parameters
    ----------
    folder : str

    Returns
    -------
    events : list of dict
        With the ids that the items have in the last pool.
    torn : bytes or None

    Raises
    ------
    ValueError
        If a line is damaged, missing or of another format, naming it.
    """
    path = os.path.join(folder, JOURNAL)
    events, torn = read_lines(path)
    for number, event in enumerate(events, start=1):
        fault = None
        if not isinstance(event, dict) or not event.keys() >= _KEYS:
            fault = f"must be an event with {', '.join(sorted(_KEYS))}"
        elif event["v"] != 1:
            fault = f"is of format version {event['v']!r}; this skactive reads 1"
        elif event["seq"] != number:
            fault = (
                f"is event {event['seq']!r}, where event {number} belongs: lines are "
                "missing, repeated or in another order"
            )
        if fault:
            raise ValueError(
                f"line {number} of {path!r} {fault}. Nothing was guessed or changed. "
                "Restore the file from a copy."
            )
    return renumber(events), torn


def _read_manifest(folder):
    """Read the manifest, or give None where there is no session yet."""
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, "rb") as stream:
            content = stream.read().decode("utf-8", "surrogatepass")
    except FileNotFoundError:
        journal = os.path.join(folder, JOURNAL)
        if os.path.exists(journal) and os.path.getsize(journal):
            raise ValueError(
                f"{folder!r} holds a {JOURNAL!r} and no {MANIFEST!r}. Restore "
                f"{MANIFEST!r} from a copy of the folder."
            ) from None
        return None
    try:
        manifest = json.loads(content)
        is_ours = manifest["format"] == FORMAT
    except (ValueError, LookupError, TypeError) as exc:
        raise ValueError(
            f"{path!r} must be the manifest of a session, and is not "
            f"({type(exc).__name__}: {exc}). Restore it from a copy."
        ) from exc
    if not is_ours:
        raise FileExistsError(
            f"'path' must be a new folder or that of a session, got {folder!r}, which "
            f"holds a {MANIFEST!r} of something else. Pass another path."
        )
    if manifest.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path!r} is of format version {manifest.get('format_version')!r}; this "
            f"version of skactive reads {FORMAT_VERSION}. Install the version that "
            "wrote it."
        )
    return manifest


def _is_ours(name):
    return name in (LOCK, JOURNAL, "pool.npy") or name.endswith(".tmp")


def _now():
    now = datetime.fromtimestamp(time.time(), UTC)
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
