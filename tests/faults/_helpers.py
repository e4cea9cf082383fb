"""A disk that fails at a chosen call, and scripts in processes of their own."""

import errno
import os
import subprocess
import sys
from contextlib import contextmanager

from skactive._storage import _files


def run_apart(script, *args):
    """Run a script on one thread and return its output, or raise its error.

    The test process cannot fork: torch and worker pools have threads there, and a lock
    that one of them holds stays locked in a child forever.
    """
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run(
        [sys.executable, script, *map(str, args)],
        env={**os.environ, **threads},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


NAMES = ("open", "write", "fsync", "ftruncate", "close", "replace", "unlink", "mkdir")


class FaultyDisk:
    """Count the calls, and let one, or all from one on, fail.

    Modes: "short" (half of a write is written, and that is all it says), "full" (half
    of it is written, then no space is left until `repair`), "EIO" (this call fails,
    once, an fsync after the data were written), "gone" (it fails, and so does whatever
    follows until `repair`).
    """

    def __init__(self, monkeypatch):
        self._real = {name: getattr(_files, f"_{name}") for name in NAMES}
        self._real["fsync"] = lambda handle: None  # the durability itself is not tested
        for name in NAMES:
            monkeypatch.setattr(_files, f"_{name}", self._fake(name))
        self.arm(None, None)

    def arm(self, at, mode):
        self.calls, self._at, self._mode = [], at, mode
        self.has_failed = False

    def repair(self):
        self._mode = None

    @contextmanager
    def well(self):
        """Run a block on a sound disk, without counting its calls."""
        before = self.calls, self._at, self._mode, self.has_failed
        self.arm(None, None)
        yield
        self.calls, self._at, self._mode, self.has_failed = before

    def _fake(self, name):
        real = self._real[name]

        def call(*args):
            number = len(self.calls)
            self.calls.append(name)
            if self._mode is None or number < self._at:
                return real(*args)
            if self._mode in ("EIO", "short") and number > self._at:
                return real(*args)
            if self._mode in ("short", "full") and name != "write":
                return real(*args)
            self.has_failed = True
            if (
                name == "write"
                and self._mode in ("short", "full")
                and number == self._at
            ):
                handle, data = args
                written = real(handle, bytes(data)[: len(data) // 2])
                if self._mode == "short":
                    return written
            if name == "close":
                real(*args)  # the number is free again, whatever the disk says
            kind = errno.ENOSPC if self._mode == "full" else errno.EIO
            raise OSError(kind, os.strerror(kind))

        return call
