"""SIGKILLs at random instants of a simulation; it ends as if there had been none."""

import json
import os
import random
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from tqdm import tqdm

from skactive import ActiveLearner, simulate
from skactive.simulation import Run

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="forks and kills"
)

N_ROUNDS = 20


def play(folder=None):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    X = rng.normal(size=(400, 8)) + 1.5 * np.eye(3, 8)[y]
    learner = ActiveLearner(
        LogisticRegression(solver="saga", max_iter=30),
        "margin",
        batch_size=4,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 30 iterations are too few
        return simulate(
            learner,
            X[:300],
            y[:300],
            n_initial=10,
            n_rounds=N_ROUNDS,
            X_test=X[300:],
            y_test=y[300:],
            scoring=["accuracy", "neg_log_loss"],
            noise=0.1,
            final_estimator=GaussianNB(),
            folder=folder,
        )


def run_child(folder, result):
    """Fork a child that simulates and writes its run; give its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        play(folder).to_json(result)
        os._exit(0)
    except BaseException as exc:
        os.write(2, f"{type(exc).__name__}: {exc}\n".encode())
        os._exit(1)


def rounds_on_disk(folder):
    path = folder / "runs.jsonl"
    if not path.exists():
        return []
    whole = path.read_bytes().split(b"\n")[:-1]
    return [event for event in map(json.loads, whole) if event.get("event") == "round"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "n_kills"),
    [(0, 12), (1, 12)],
)
def test_kills_change_nothing(seed, n_kills, tmp_path, capsys):
    from ._helpers import run_apart  # not at the top: this file is the script, too

    report = run_apart(__file__, seed, tmp_path, n_kills)
    assert report.startswith(f"{n_kills} kills of ")
    with capsys.disabled():
        sys.stdout.write(f"\n{report}")


def kill(seed, tmp_path, n_kills):
    # A child that is killed leaves the lock that tqdm shares with its others locked.
    tqdm.set_lock(threading.RLock())
    play()
    start = time.perf_counter()
    expected = play(tmp_path / "uninterrupted")
    seconds = time.perf_counter() - start
    rng = random.Random(seed)
    kills, runs, rounds = 0, 0, []
    while kills < n_kills:
        folder, result = tmp_path / f"simulation {runs}", tmp_path / f"run {runs}.json"
        while True:
            child = run_child(folder, result)
            if kills < n_kills:
                time.sleep(0.5 * seconds * rng.random())
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            assert code in (0, -signal.SIGKILL)
            done = rounds_on_disk(folder)
            queried = [event["queried"] for event in done]
            assert queried == [
                record["queried"] for record in expected.rounds[: len(done)]
            ]
            if code == 0:
                break
            kills += 1
            rounds.append(len(done))
        assert Run.from_json(result) == expected
        runs += 1
    assert len(set(rounds)) > n_kills // 6
    return (
        f"{kills} kills of {runs} simulations of {N_ROUNDS} rounds in {seconds:.2f} s, "
        f"after {sorted(set(rounds))} of them; all ended alike"
    )


if __name__ == "__main__":
    sys.stdout.write(kill(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])) + "\n")
