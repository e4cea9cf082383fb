"""SIGKILLs while four threads tell labels; no acknowledged label is lost or changed.

Each thread labels the items that are its own, again and again with new labels, and
writes what it is about to tell and what was acknowledged to a log that all share. The
parent kills the process at a random instant and compares the log with the journal.
"""

import itertools
import json
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tqdm import tqdm

from skactive import ActiveLearner, LabelingSession, get_strategy
from skactive.session import read_labels

N_THREADS = 4
N_ITEMS = 40


def open_session(path, refit):
    X = np.random.default_rng(0).normal(size=(N_ITEMS, 3))
    learner = ActiveLearner(LogisticRegression(), batch_size=2, random_state=0)
    return LabelingSession(learner, X, path, refit=refit)


def label(session, thread, log):
    """Answer for ever; most answers are labels, a few are of the other kinds."""
    for turn in itertools.count():
        id = (N_THREADS * turn + thread) % N_ITEMS
        # No label occurs twice, so an old one is never taken for a new one.
        told = f"{'yes' if turn % 2 else 'no'} {thread} {turn} {os.getpid()}"
        log([thread, id, told, "telling"])
        session.tell(id, told, unasked=True)
        log([thread, id, told, "told"])
        if turn % 10 == 3:
            session.ask()
        elif turn % 10 == 6:
            session.release()


def run_child(path, log_path, refit):
    """Fork a child whose threads label until it is killed; give its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        handle = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

        def log(entry):
            os.write(handle, json.dumps(entry).encode() + b"\n")

        def work(thread):
            try:
                label(session, thread, log)
            except BaseException as exc:
                log([thread, None, f"{type(exc).__name__}: {exc}", "failed"])
                os._exit(1)

        warnings.simplefilter("ignore")
        session = open_session(path, refit)
        for thread in range(N_THREADS):
            threading.Thread(target=work, args=(thread,)).start()
        time.sleep(60)
    finally:
        os._exit(1)


def acknowledged(log_path):
    """Give the labels that must be there, and of each thread what may be."""
    labels, pending = {}, {}
    for line in log_path.read_text().splitlines():
        thread, id, told, kind = json.loads(line)
        assert kind != "failed", told
        if kind == "telling":
            pending[thread] = (id, told)
        else:
            labels[id] = told
            del pending[thread]
    return labels, pending


def kill(tmp_path, n_kills, seed=0):
    # A child that is killed leaves the lock that tqdm shares with its others locked.
    tqdm.set_lock(threading.RLock())
    """Kill `n_kills` times and return the counts."""
    rng = random.Random(seed)
    counts = Counter()
    for name in ("random", "uherding"):  # no thread may import while the process forks
        get_strategy(name)
    # Several kills per session: most sessions are opened again.
    n_per_session = min(4, n_kills // 3)
    for n in range(n_kills):
        i = n // n_per_session
        refit = [False, "background", True][i % 3]
        path, log_path = tmp_path / f"s{i}", tmp_path / f"log{i}"
        log_path.touch()
        lines = len(log_path.read_bytes().splitlines())
        child = run_child(path, log_path, refit)
        deadline = time.monotonic() + 30
        while len(log_path.read_bytes().splitlines()) == lines:  # at work
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(0.1 * rng.random() ** 2)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        labels, pending = acknowledged(log_path)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = read_labels(path)
            with open_session(path, refit) as session:
                assert session.labels == found
        counts["kills"] += 1
        counts["torn lines"] += any("torn" in str(w.message) for w in caught)
        counts["acknowledged labels checked"] += len(labels)
        counts["pending tells"] += len(pending)
        of_pending = dict(pending.values())
        for id in labels.keys() | found.keys():
            if found.get(id) != labels.get(id):
                assert found.get(id) == of_pending.get(id), (id, labels, found)
                counts["of them counted"] += 1
        # What was found is what counts from now on.
        told = [[0, id, label, kind] for id, label in found.items() for kind in _BOTH]
        log_path.write_text("".join(json.dumps(entry) + "\n" for entry in told))
    assert counts["kills"] == n_kills
    return ", ".join(f"{n} {what}" for what, n in counts.items()) + ", 0 labels lost"


_BOTH = ("telling", "told")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks and kills")
def test_kills_among_4_threads_lose_no_acknowledged_label(tmp_path, capsys):
    from ._helpers import run_apart  # not at the top: this file is the script, too

    report = run_apart(__file__, tmp_path, 90)
    assert report.startswith("90 kills, ")
    with capsys.disabled():
        sys.stdout.write(f"\n{report}")


if __name__ == "__main__":
    sys.stdout.write(kill(Path(sys.argv[1]), int(sys.argv[2])) + "\n")
