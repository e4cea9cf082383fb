"""Pairs of texts to encode, and scripts run in a process of their own."""

import os
import subprocess
import sys

PAIRS = [
    ("the film is", "a joy"),
    ("no", "the team won the match"),
    ("", "a"),
    ("a", ""),
]


def run_python(script, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
