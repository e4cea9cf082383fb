"""What is called: a function, its valid arguments, and what must hold afterwards."""

import contextlib
import signal
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

import joblib
import numpy as np

# Seconds of the processor that a call may take; the argument is then too large.
LONGEST = 10


def _nothing(*args):
    return None


@dataclass
class Target:
    """One call.

    name : shown in the report
    arguments : gives valid arguments, made afresh
    call : called with the subject and the arguments
    subject : makes what the call may change, such as a learner
    state : of a subject, what a failed call must leave alone
    check : of result, subject and arguments, names a fault or gives None
    ordered : arguments whose order counts, where a dict or set cannot be right
    same_kind : arguments whose kind must be that of another: {"y_test": "y"}
    repeats : whether equal calls give equal results
    aliases : other names for an argument in messages, such as that of its file
    pools : for an argument, its own wrong values: label to function
    """

    name: str
    arguments: Callable
    call: Callable
    subject: Callable = _nothing
    state: Callable = _nothing
    check: Callable = _nothing
    ordered: tuple = ()
    same_kind: Mapping = ()
    repeats: bool = False
    aliases: Mapping = ()
    pools: Mapping = ()


def perform(target, wrong, counts, judge):
    """Make one call with some wrong arguments and count how it ended.

    wrong : dict of argument to (label, function that makes the value)
    """
    valid = target.arguments()
    arguments = valid | {name: make() for name, (_, make) in wrong.items()}
    shown = ", ".join(f"{name}={label}" for name, (label, _) in wrong.items())
    call = f"{target.name}({shown})"
    subject = target.subject()
    before = target.state(subject)
    try:
        with _limited():
            result = target.call(subject, **arguments)
    except _HangError:
        counts.add("accepted", call)
        counts.silent.append(f"{call} took more than {LONGEST} s")
        return
    except Exception as exc:
        aliases = dict(target.aliases)
        names = [n for name in wrong for n in (name, *aliases.get(name, ()))]
        counts.add(judge(exc, names), call, exc)
        if target.state(subject) != before:
            counts.silent.append(f"{call} failed and changed the state")
        return
    counts.add("accepted", call)
    fault = _find_fault(target, result, subject, arguments, valid, wrong)
    if fault:
        counts.silent.append(f"{call} was accepted: {fault}")


class _HangError(BaseException):
    """A call took too long."""


@contextlib.contextmanager
def _limited():
    """Interrupt a call after `LONGEST` seconds of the processor, where this exists."""
    if not hasattr(signal, "SIGPROF"):
        yield
        return

    def interrupt(number, frame):
        raise _HangError

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _find_fault(target, result, subject, arguments, valid, wrong):
    for name in target.ordered:
        if isinstance(arguments[name], Mapping | Set):
            return f"{name!r} has no order, or keys for values"
    for name, other in dict(target.same_kind).items():
        if name in wrong and other not in wrong and arguments[name] is not None:
            kinds = {np.asarray(a).dtype.kind for a in (arguments[name], valid[other])}
            if len({"if".find(k) >= 0 for k in kinds}) > 1:
                return f"{name!r} is of another kind than {other!r}"
    if fault := target.check(result, subject, arguments):
        return fault
    unseeded = "random_state" in wrong or "seed" in wrong
    if target.repeats and not unseeded:
        fresh = target.arguments() | {name: make() for name, (_, make) in wrong.items()}
        again = target.call(target.subject(), **fresh)
        if _hash(again) != _hash(result):
            return "a repeated call gave another result"
    return None


def _hash(result):
    try:
        return joblib.hash(result)
    except TypeError:  # it holds what cannot be pickled, such as a generator
        return None
