"""The signal that `kill`, systemd and a shutdown send."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupt_at_sigterm() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGTERM, as Ctrl-C does."""
    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # another thread than the main one gets no signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
