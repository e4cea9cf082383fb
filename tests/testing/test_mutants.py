"""Every check of the kit notices a strategy that is faulty in just that respect.

The faulty strategies stand in the folder `mutants`, with what the check has to say of
each: those in `MUTANTS` fail one check only, those in `GRAVE` others as well.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

from skactive.testing import check_strategy, strategy_checks
from skactive.testing._kit import _CHECKS


def load(path):
    """Import a file by its path, so that what it holds can be pickled."""
    name = f"kit_mutants_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FOLDER = Path(__file__).parent / "mutants"
MODULES = [load(path) for path in sorted(FOLDER.glob("*.py"))]


def rows(table):
    """One row for each check and mutant: the check, the mutant, the message."""
    return [
        pytest.param(check, mutant, message, id=f"{check}-{type(mutant).__name__}")
        for module in MODULES
        for check, mutants in getattr(module, table).items()
        for mutant, message in mutants
    ]


def failures(strategy):
    """Run every check, and give what those that failed said."""
    said = {}
    for name, check in strategy_checks(strategy):
        try:
            check()
        except AssertionError as exc:
            said[name] = str(exc)
    return said


@pytest.mark.parametrize(("check", "strategy", "message"), rows("MUTANTS"))
def test_a_mutant_fails_its_check_and_no_other(check, strategy, message):
    assert set(failures(strategy)) == {check}
    with pytest.raises(AssertionError, match=f"fails {check}: .*{message}"):
        check_strategy(strategy)


@pytest.mark.parametrize(("check", "strategy", "message"), rows("GRAVE"))
def test_a_grave_fault_is_told_by_its_check(check, strategy, message):
    with pytest.raises(AssertionError, match=f"fails {check}: .*{message}"):
        dict(strategy_checks(strategy))[check]()


def test_every_check_has_a_mutant():
    mutated = {row.values[0] for row in rows("MUTANTS")}
    assert mutated == {check.__name__ for check in _CHECKS}
