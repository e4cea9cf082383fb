"""Dozens of SIGKILLs at random instants of a session; nothing acknowledged is lost.

A child process labels by a script whose next step depends on the session alone. Each
answer goes to a log of its own before `tell` (what may be in the journal) and after it
(what must be). The parent kills the child at a random instant, looks at what is on the
disk, and starts another child, until the session is done.
"""

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

from skactive import ActiveLearner, LabelingSession

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="forks and kills"
)

N_ITEMS = 80


def make_pool():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=N_ITEMS)
    X = rng.normal(size=(N_ITEMS, 4)) + 2.0 * np.eye(3, 4)[y]
    return X, y, [f"item {i}" for i in range(N_ITEMS)]


def open_session(path, refit, **options):
    X, _, ids = make_pool()
    learner = ActiveLearner(
        LogisticRegression(solver="saga", max_iter=20, tol=1e-2),
        strategy="margin",
        batch_size=5,
        random_state=0,
    )
    return LabelingSession(learner, X, path, ids, refit=refit, **options)


def step(session, refit, log):
    """Do what the session's state calls for; False when it is at its end."""
    _, y, ids = make_pool()
    truth = dict(zip(ids, y.tolist(), strict=True))
    digits = {id: int(id.split()[1]) for id in ids}
    if any(label != truth[id] for id, label in session.labels.items()):
        slip = session._core.state.undoable[-1]
        told = dict(zip(slip["ids"], slip["labels"], strict=True))
        log(["undoing", told])
        session.undo()
        log(["undone", told])
    elif any(digits[id] % 2 for id in session.skipped):
        session.undo()
    elif not session.open_batches:
        if refit is False and session.model_age:
            session.refit()
        return bool(session.ask())
    else:
        id, *others = session.open_batches[0].ids
        events = [event["event"] for event in session.history(id)]
        if digits[id] % 11 == 3 and "skip" not in events:
            session.skip(id)
            return True
        is_slip = digits[id] % 7 == 2 and "tell" not in events
        told = {id: (truth[id] + 1) % 3 if is_slip else truth[id]}
        if digits[id] % 5 == 0:  # several at once
            told |= {other: truth[other] for other in others[:2]}
        log(["telling", told])
        session.tell(list(told), list(told.values()))
        log(["told", told])
    return True


def run_child(path, log_path, refit):
    """Fork a child that works on the session; give its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        handle = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

        def log(entry):
            os.write(handle, json.dumps(entry).encode() + b"\n")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_session(path, refit) as session:
                while step(session, refit, log):
                    pass
        os._exit(0)
    except BaseException as exc:
        os.write(2, f"{type(exc).__name__}: {exc}\n".encode())
        os._exit(1)


def read_log(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def acknowledged(log):
    """Give the labels that must be there, and those that may be there."""
    labels, pending = {}, {}
    for kind, told in log:
        pending = told if kind.endswith("ing") else {}
        if kind in ("told", "found"):
            labels.update(told)
        elif kind == "undone":
            for id in told:
                del labels[id]
    return labels, pending


def strip(path):
    events = map(json.loads, (path / "journal.jsonl").read_bytes().splitlines())
    return [{k: event[k] for k in event.keys() - {"t", "crc"}} for event in events]


def finish(path, refit, log_path):
    """Let a child work to the end; give the session's final state and the seconds."""
    start = time.perf_counter()
    _, status = os.waitpid(run_child(path, log_path, refit), 0)
    assert os.waitstatus_to_exitcode(status) == 0
    seconds = time.perf_counter() - start
    with open_session(path, refit) as session:
        proba = session.learner.predict_proba(make_pool()[0])
        state = session.labels, session.skipped, session.open_batches, proba
    return state, seconds


def assert_same(state, expected):
    assert state[:3] == expected[:3]
    np.testing.assert_array_equal(state[3], expected[3])


@pytest.mark.long
@pytest.mark.slow
def test_kills_lose_no_acknowledged_label(tmp_path, capsys):
    from ._helpers import run_apart  # not at the top: this file is the script, too

    report = run_apart(__file__, tmp_path, 60)
    with capsys.disabled():
        sys.stdout.write(f"\n{report}")


def kill(tmp_path, n_kills):
    # A child that is killed leaves the lock that tqdm shares with its others locked.
    tqdm.set_lock(threading.RLock())
    rng = random.Random(0)
    counts = Counter()
    whole = {}
    for refit in (True, False):
        path = tmp_path / f"whole {refit}"
        whole[refit] = (*finish(path, refit, tmp_path / "log"), strip(path))
        (tmp_path / "log").unlink()

    for i in range(10_000):
        if counts["resumed"] >= n_kills:
            break
        refit = i % 2 == 0
        expected, seconds, journal = whole[refit]
        path, log_path = tmp_path / f"s{i}", tmp_path / f"log{i}"
        for _ in range(n_kills // 2):  # both kinds of sessions are killed
            child = run_child(path, log_path, refit)
            # Often soon after the start: opening, resuming and refitting die too.
            time.sleep(rng.choice([0.05, 0.2, 0.6]) * seconds * rng.random())
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                assert os.waitstatus_to_exitcode(status) == 0
                break
            counts["kills"] += 1
            if not path.joinpath("manifest.json").exists():
                counts["before the session began"] += 1
                continue
            labels, pending = acknowledged(read_log(log_path))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with open_session(path, refit) as session:
                    found = session.labels
            counts["torn lines"] += any("torn" in str(w.message) for w in caught)
            counts["resumed"] += 1
            counts["acknowledged labels checked"] += len(labels)
            differing = {
                id
                for id in labels.keys() | found.keys()
                if labels.get(id) != found.get(id)
            }
            assert differing in (set(), set(pending))  # one tell, or undo, as a whole
            counts["kills in a tell or undo"] += bool(pending)
            log_path.write_text(json.dumps(["found", found]) + "\n")
            lines = strip(path)
            assert lines == journal[: len(lines)]
        state, _ = finish(path, refit, log_path)
        assert_same(state, expected)
        assert strip(path) == journal
        counts["sessions ended as the uninterrupted one"] += 1

    assert counts["resumed"] >= n_kills
    return ", ".join(f"{n} {what}" for what, n in counts.items())


@pytest.mark.long
def test_a_kill_between_a_write_and_its_newline_is_reported(tmp_path):
    # Random instants hardly ever tear one write; here is what such a kill leaves.
    finish(tmp_path / "s", True, tmp_path / "log")
    journal = Path(tmp_path / "s" / "journal.jsonl")
    content = journal.read_bytes()
    last = content.splitlines(keepends=True)[-1]
    for length in (1, len(last) // 2, len(last) - 2):
        journal.write_bytes(content[: len(content) - len(last) + length])
        with pytest.warns(UserWarning, match=f"torn.*{length} bytes"):
            session = open_session(tmp_path / "s", True)
        session.close()
        assert journal.read_bytes() == content[: -len(last)]
    journal.write_bytes(content[:-1])  # the whole line, and so it counts
    open_session(tmp_path / "s", True).close()
    assert journal.read_bytes() == content


if __name__ == "__main__":
    sys.stdout.write(kill(Path(sys.argv[1]), int(sys.argv[2])) + "\n")
