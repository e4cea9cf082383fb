"""Every check of the kit finds a strategy that breaks its rule.

The faulty strategies are in the folder `strategy_mutants`, each with a part of the
message of the check. Those in `MUTANTS` fail one check only, those in `GRAVE` several.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

from skactive.testing._strategy_checks import _CHECKS, strategy_checks


def load(path):
    """Import a file by its path, so that its classes can be pickled."""
    name = f"kit_mutants_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FOLDER = Path(__file__).parent / "strategy_mutants"
MODULES = [load(path) for path in sorted(FOLDER.glob("*.py"))]


def rows(table):
    """Return a row for each check and mutant: the check, the mutant, the message."""
    return [
        pytest.param(check, mutant, message, id=f"{check}-{type(mutant).__name__}")
        for module in MODULES
        for check, mutants in getattr(module, table).items()
        for mutant, message in mutants
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("check", "strategy", "message"), [*rows("MUTANTS"), *rows("GRAVE")]
)
def test_a_check_finds_its_mutant(check, strategy, message):
    with pytest.raises(AssertionError, match=f"fails {check}: .*{message}"):
        dict(strategy_checks(strategy))[check]()


def failures(strategy):
    """Run every check, and return the messages of those that failed."""
    said = {}
    for name, check in strategy_checks(strategy):
        try:
            check()
        except AssertionError as exc:
            said[name] = str(exc)
    return said


@pytest.mark.slow
@pytest.mark.parametrize(("check", "strategy", "message"), rows("MUTANTS"))
def test_a_mutant_fails_no_other_check(check, strategy, message):
    failed = failures(strategy)
    # Checks of a further target repeat those of the first one.
    assert {name for name in failed if "[" not in name} == {check}


def test_every_check_has_a_mutant():
    mutated = {row.values[0] for row in rows("MUTANTS")}
    assert mutated == {check.__name__ for check in _CHECKS}
