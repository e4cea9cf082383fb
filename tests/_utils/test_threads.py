"""Priorities of threads."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from skactive._utils import _repeatable
from skactive._utils._repeatable import (
    _PAUSE,
    give_way,
    pause_background,
)
from skactive._utils._system import lower_priority
from skactive.linear_model import _logistic
from skactive.linear_model._logistic import bfgs, l_bfgs

on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has priorities of threads"
)


@on_linux
def test_the_priority_is_that_of_one_thread_and_of_those_it_starts():
    def priority():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def work():
        lower_priority()
        found.append(priority())
        inner = threading.Thread(target=lambda: found.append(priority()))
        inner.start()
        inner.join()

    before, found = priority(), []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [min(before + 10, 19)] * 2
    assert priority() == before


@on_linux
def test_work_in_the_background_has_a_low_priority(monkeypatch):
    monkeypatch.setattr(_repeatable, "lower_priority", lower_priority)
    found, done = [], threading.Event()

    def work():
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        done.set()

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    _repeatable.start_in_background(work)
    assert done.wait(60)
    assert found == [min(before + 10, 19)]


class Clock:
    """Stands for the module `time`: sleeping is what makes the time pass."""

    def __init__(self):
        self.now, self.slept = 1000.0, []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_repeatable, "time", clock)
    monkeypatch.setattr(_repeatable._Pause, "until", 0.0)
    return clock


def in_background(function):
    def work():
        lower_priority()
        function()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@on_linux
def test_only_threads_of_low_priority_wait_for_the_end_of_a_pause(clock):
    in_background(give_way)
    assert clock.slept == []
    pause_background()
    give_way()
    assert clock.slept == []
    in_background(give_way)
    assert clock.slept == [pytest.approx(_PAUSE)]
    in_background(give_way)
    assert len(clock.slept) == 1


@on_linux
def test_answers_without_end_leave_half_of_the_time_to_the_background(clock):
    for _ in range(1000):
        pause_background()
        in_background(give_way)
        clock.now += _PAUSE / 10
    assert sum(clock.slept) == pytest.approx((clock.now - 1000) / 2, rel=0.1)


def test_the_steps_of_training_give_way(monkeypatch):
    calls = []
    monkeypatch.setattr(_logistic, "give_way", lambda: calls.append(1))
    goes_on = np.array([[False]])
    l_bfgs(lambda x: x - 1, np.zeros((1, 2)), lambda *_: goes_on, max_iter=2)
    assert len(calls) >= 2
    calls.clear()
    inverse = np.eye(2) / 2
    bfgs(lambda x: x - 1, np.zeros(2), inverse, lambda x, g: abs(g).max() < 0.1)
    assert calls


@pytest.mark.slow
def test_python_exits_while_threads_in_the_background_start_others():
    script = """if True:
        import threading
        from skactive._utils._repeatable import start_in_background

        def work():
            while True:
                inner = threading.Thread(target=int, daemon=True)
                inner.start()
                inner.join()

        for _ in range(20):
            start_in_background(work)
    """
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, stderr=subprocess.PIPE, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_python_exits_while_threads_of_torch_start():
    pytest.importorskip("torch")
    script = """if True:
        import time
        from contextlib import suppress

        import torch
        from skactive._utils._repeatable import in_torch_threads, start_in_background

        def work():
            while True:
                with suppress(RuntimeError):  # no new tasks while Python exits
                    list(in_torch_threads(abs, [1, 2], torch.device("cpu")))

        torch.set_num_threads(2)
        for _ in range(8):
            start_in_background(work)
        time.sleep(0.1)
    """
    command = [sys.executable, "-c", script]
    for _ in range(3):
        done = subprocess.run(command, stderr=subprocess.PIPE, timeout=120)
        assert (done.returncode, done.stderr) == (0, b"")
