"""Run a test's script in a process of its own, which can be forked safely."""

import os
import subprocess
import sys


def run_apart(script, *args):
    """Run a script on one thread; what it prints, or an AssertionError with its error.

    The test process cannot fork: torch and worker pools have threads there, and a lock
    that one of them holds stays locked in a child for ever.
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
