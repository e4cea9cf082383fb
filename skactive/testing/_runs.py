"""Collect checks, run them, and make tests of them: the same for every kit."""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial


def collect(checks, applies, subject):
    """Yield the checks that say something about a subject.

    Parameters
    ----------
    checks : sequence of callable
        Each takes the subject; the first line of its docstring is the rule.
    applies : dict of str to callable
        For some checks by name, whether they apply to the subject; the rest do.
    subject : object
        With a `label`.

    Yields
    ------
    name : str
    check : callable
        Takes no argument; raises an AssertionError that says what to repair.

    Raises
    ------
    AssertionError
        If there is no check to run.
    """
    applicable = [
        check
        for check in checks
        if applies.get(check.__name__, lambda subject: True)(subject)
    ]
    if not applicable:
        raise AssertionError(
            f"no check was collected for {subject.label!r}, so nothing is known of it; "
            "reinstall skactive."
        )
    for check in applicable:
        yield check.__name__, partial(_run, check, subject)


def run_all(checks):
    """Run checks one after the other, up to the first that fails.

    Parameters
    ----------
    checks : iterable of (str, callable)
        From :func:`collect`.

    Returns
    -------
    names : list of str
        Of the checks that ran.
    """
    names = []
    for name, check in checks:
        check()
        names.append(name)
    return names


def parametrize(objects, checks_of, label_of, expected_failed, *, argument):
    """Make a pytest decorator of objects and their checks.

    Parameters
    ----------
    objects : list
        What to check.
    checks_of : callable
        `checks_of(object)` yields names and checks.
    label_of : callable
        `label_of(object)` is its part in the names of the tests.
    expected_failed : dict, callable or None
        Checks that are known to fail, with the reason.
    argument : str
        What the caller's argument is called.

    Returns
    -------
    decorator : callable
    """
    import pytest

    if not objects:
        raise ValueError(
            f"{argument!r} is empty, so that nothing would be checked. Name at least "
            f"one {_SINGULAR[argument]}."
        )
    params, known, reasons = [], set(), {}
    for subject in objects:
        label = label_of(subject)
        failing = expected_failed or {}
        failing = failing if isinstance(failing, Mapping) else failing(subject) or {}
        reasons.update(failing)
        for name, check in checks_of(subject):
            known.add(name)
            marks = ()
            if name in failing:
                marks = pytest.mark.xfail(reason=failing[name], strict=True)
            params.append(pytest.param(check, id=f"{label}-{name}", marks=marks))
    unknown = sorted(set(reasons) - known)
    if unknown:
        close = get_close_matches(unknown[0], known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"'expected_failed' names {unknown}, which is no check of these "
            f"{argument}.{hint}"
        )
    return pytest.mark.parametrize("check", params)


_SINGULAR = {"strategies": "strategy", "estimators": "estimator"}


def _run(check, subject):
    """Run one check; whatever it raises becomes an error that names it."""
    rule = check.__doc__.splitlines()[0]
    try:
        check(subject)
    except Exception as exc:
        fault = str(exc)
        if not isinstance(exc, AssertionError):
            said = str(exc).rstrip(".")
            fault = f"{type(exc).__name__}: {said}. Repair what raises it."
        raise AssertionError(
            f"{subject.label!r} fails {check.__name__}: {fault} ({rule})"
        ) from exc
