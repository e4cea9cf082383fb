"""A process that adapts encoders for another one and leaves the results in a cache.

It reads a line of JSON from its standard input, and ends when that input ends, so that
it does not outlive the process that waits for it. The last line that it writes is
"done" or an error.
"""

import json
import os
import sys

from .._utils._repeatable import start_daemon
from .._utils._system import lower_priority
from ._adapted import AdaptedFeatures
from ._points import is_kept


def main():
    """Train what is asked for, then compute the features of the texts."""
    lower_priority()
    task = json.loads(sys.stdin.readline())
    start_daemon(_follow_parent)
    try:
        answer = _adapt(task)
    except Exception as exc:  # shown by the session
        answer = f"{type(exc).__name__}: {exc}".replace("\n", " ")
    sys.stdout.write(f"\n{answer}\n")
    sys.stdout.flush()


def _adapt(task):
    trained, pool = [], _read(task["texts"])
    n = max(len(texts) for _, texts, *_ in task["encoders"])
    for params, texts, labels, weights in task["encoders"]:
        features = AdaptedFeatures(**params, verbose=0)
        trained.append(features.fit(_read(texts), labels, weights))
        if len(pool) and len(texts) == n:  # those of folds read no other texts
            features.transform(pool)
    is_done = all(map(is_kept, trained))
    return "done" if is_done else "its results could not be written"


def _read(texts):
    """Return texts, or pairs of texts, from lists of JSON."""
    return [text if isinstance(text, str) else tuple(text) for text in texts]


def _follow_parent():
    sys.stdin.read()
    os._exit(1)
