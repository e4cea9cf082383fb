"""Priorities of threads."""

import os
import sys
import threading

import pytest

from skactive._utils._repeatable import lower_priority


@pytest.mark.skipif(sys.platform != "linux", reason="priorities of threads are Linux's")
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
    assert found == [max(10, before)] * 2
    assert priority() == before
