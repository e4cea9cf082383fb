"""Bars are shown where a person is looking, and nowhere else."""

import io
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from skactive._utils import _format as _progress
from skactive._utils._format import progress_bar, report_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    """Run a bar with a stream as stderr; return what it wrote."""

    def run(verbose, stream, delay=0.0):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(_progress, "_DELAY", delay)
        with progress_bar(verbose, total=2, desc="encoding", mininterval=0) as bar:
            bar.update(2)
        return stream.getvalue()

    return run


def test_auto_shows_a_bar_on_a_terminal_and_removes_it(shown):
    text = shown("auto", Terminal())
    assert "encoding: 100%" in text
    assert text.split("\r")[-2].strip() == ""


def test_auto_shows_nothing_for_short_work(shown):
    assert shown("auto", Terminal(), delay=60.0).strip() == ""


def test_auto_shows_nothing_in_a_log(shown):
    assert shown("auto", io.StringIO()) == ""


def test_auto_shows_nothing_in_a_worker_process(shown, monkeypatch):
    worker = SimpleNamespace(name="LokyProcess-1")
    monkeypatch.setattr("multiprocessing.current_process", lambda: worker)
    assert shown("auto", Terminal()) == ""


def test_auto_shows_nothing_where_the_environment_hides_bars():
    code = (
        "import skactive._utils._format as f; f._on_terminal = lambda: True; "
        "f._DELAY = 0; f.progress_bar('auto', total=2).update(2)"
    )
    shown = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **environment},
            capture_output=True,
            check=True,
        ).stderr
        for environment in ({}, {"TQDM_DISABLE": "1"})
    ]
    assert b"0%" in shown[0]
    assert shown[1] == b""


@pytest.mark.parametrize("verbose", [0, False])
def test_off_shows_nothing_on_a_terminal(shown, verbose):
    assert shown(verbose, Terminal()) == ""


@pytest.mark.parametrize("verbose", [1, True])
def test_on_shows_a_bar_in_a_log(shown, verbose):
    assert "encoding: 100%" in shown(verbose, io.StringIO())


def test_auto_shows_a_bar_in_a_notebook(shown, monkeypatch):
    kernel = SimpleNamespace(config={"IPKernelApp": {}})
    ipython = SimpleNamespace(get_ipython=lambda: kernel)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert "encoding: 100%" in shown("auto", io.StringIO())


@pytest.mark.parametrize("verbose", ["auto", 0])
def test_progress_is_reported_also_by_hidden_bars(verbose):
    shares = []
    with report_progress(shares.append):
        with progress_bar(verbose, total=4) as bar:
            bar.update()
            bar.update(3)
        progress_bar(verbose, iterable=[1]).close()  # of unknown length
    with progress_bar(verbose, total=4) as bar:
        bar.update()
    assert shares == [0.25, 1.0]
