"""Answers that were paid for: a file of JSON lines that several processes share."""

import threading
import time
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from .._storage._files import (
    LineWriter,
    Lock,
    LockedError,
    make_folder,
    read_sound_lines,
)
from .._utils._format import warn_caller

_NEEDED = {"key", "label", "confidence", "crc"}
_WAIT, _MAX_WAIT = 0.005, 60.0  # seconds, for the lock
_QUICK = 200  # looks at the lock before they become rare


class AnswerCache:
    """Answers by a digest of what was asked; without a path, in memory only.

    `path` is a .jsonl file, or a folder for a file answers.jsonl. When `add` returns,
    the answer is on the disk. A torn or damaged line is no answer, nor is one without a
    checksum.
    """

    def __init__(self, path):
        self.path = None if path is None else Path(path).expanduser().absolute()
        if path is not None and self.path.suffix.lower() != ".jsonl":
            self.path /= "answers.jsonl"
        self.answers, self._threads = {}, threading.Lock()

    def read(self):
        """Return all answers by key, with those of other processes."""
        if self.path is not None and self.path.exists():
            records, _ = read_sound_lines(self.path)
            for x in records:
                if isinstance(x, dict) and x.keys() >= _NEEDED:
                    self.answers[x["key"]] = x
        return self.answers

    def add(self, key, record):
        """Keep an answer, a dict of JSON values."""
        if self.path is not None:
            # Threads need not wait for the lock of processes.
            writer = partial(LineWriter, self.path, checksums=True)
            with self._threads, self.hold(), writer() as lines:
                lines.write({"key": key, **record})
        self.answers[key] = record

    @contextmanager
    def hold(self, name="", wait=time.sleep, seconds=_MAX_WAIT):
        """Hold a lock once no other process does; a true `wait(seconds)` gives up."""
        lock, end = None, time.monotonic() + seconds
        for n in count() if self.path is not None else ():
            make_folder(self.path.parent)
            try:
                lock = Lock(f"{self.path}{name}.lock", f"the cache {str(self.path)!r}")
                break
            except LockedError as exc:
                if n == _QUICK:
                    warn_caller(f"{self.path} is in use by {exc.holder}: waiting.")
                if wait(_WAIT if n < _QUICK else 0.1) or time.monotonic() > end:
                    raise
        try:
            yield
        finally:
            if lock is not None:
                lock.release()
