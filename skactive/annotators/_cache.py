"""Answers that were paid for: a file of JSON lines that several processes share."""

import threading
import time
from pathlib import Path

from .._storage._files import (
    LineWriter,
    Lock,
    LockedError,
    make_folder,
    read_sound_lines,
)

_NEEDED = {"key", "label", "confidence"}
_WAIT, _MAX_WAIT = 0.005, 60.0  # seconds, for the lock


class AnswerCache:
    """Answers by a digest of what was asked; without a path, in memory only.

    `path` is a .jsonl file, or a folder for a file answers.jsonl. When `add` returns,
    the answer is on the disk. A torn or damaged line is no answer.
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
            good = (x for x in records if isinstance(x, dict) and x.keys() >= _NEEDED)
            self.answers.update((record["key"], record) for record in good)
        return self.answers

    def add(self, key, record):
        """Keep an answer, a dict of JSON values."""
        if self.path is not None:
            make_folder(self.path.parent)
            with self._threads:  # which need not wait for the lock of processes
                lock = self._wait_for_lock()
                try:
                    with LineWriter(self.path, checksums=True) as writer:
                        writer.write({"key": key, **record})
                finally:
                    lock.release()
        self.answers[key] = record

    def _wait_for_lock(self):
        end = time.monotonic() + _MAX_WAIT
        while True:
            try:
                return Lock(f"{self.path}.lock", f"the cache {str(self.path)!r}")
            except LockedError:
                if time.monotonic() > end:
                    raise
                time.sleep(_WAIT)
