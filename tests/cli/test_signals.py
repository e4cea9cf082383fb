"""SIGTERM, which `kill`, systemd and a shutdown send."""

import signal
import threading

import pytest

from skactive._utils._system import interrupt_at_sigterm
from skactive.cli import main


def test_sigterm_interrupts_a_command(monkeypatch, capsys):
    # Without the handler, this process would end here.
    def run(**options):
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("skactive.cli._strategies.run_strategies", run)
    before = signal.getsignal(signal.SIGTERM)
    assert main(["strategies"]) == 130
    assert capsys.readouterr().err == "\nskactive: interrupted\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_thread_gets_no_signals():
    seen = []

    def work():
        with interrupt_at_sigterm():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]


def test_an_error_restores_the_handler():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ValueError, match="x"), interrupt_at_sigterm():
        raise ValueError("x")
    assert signal.getsignal(signal.SIGTERM) is before
