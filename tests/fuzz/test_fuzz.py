"""Call the public API with wrong arguments: errors are clean, nothing wrong is silent.

The number of calls and the seed come from the environment:

    SKACTIVE_FUZZ_CALLS=14400 SKACTIVE_FUZZ_SEED=1 pytest tests/fuzz -s -k learner

`-s` prints the table of counts and what was obscure; `-k` chooses a group of
`groups.py`. `judging.py` holds the rule by which a call is counted.
"""

import os
import random
import warnings

import pytest

from .groups import GROUPS
from .judging import HEAD, Counts, judge
from .targets import perform
from .values import wrong_values

N_CALLS = int(os.environ.get("SKACTIVE_FUZZ_CALLS", "1000"))
SEED = os.environ.get("SKACTIVE_FUZZ_SEED", "0")
pytestmark = pytest.mark.fuzz
# Share of obscure errors that a group may have. No call may be silently wrong.
LIMIT = 0.02


def run_group(targets, n_calls, seed):
    """Make calls with one or two wrong arguments each, and count how they ended."""
    rng = random.Random(seed)
    counts = Counts()
    for _ in range(n_calls):
        target = rng.choice(targets)
        valid = target.arguments()
        names = rng.sample(sorted(valid), min(len(valid), rng.choice((1, 1, 1, 2))))
        wrong = {}
        for name in names:
            pool = dict(target.pools).get(name) or wrong_values(name, valid[name])
            label = rng.choice(sorted(pool))
            wrong[name] = label.strip(), pool[label]
        perform(target, wrong, counts, judge)
    return counts


@pytest.fixture(scope="module")
def table():
    """Collect the rows of all groups that ran here, and print them at the end."""
    rows = {}
    yield rows
    lines = [HEAD, *(counts.row(name) for name, counts in rows.items())]
    print("", *lines, sum(rows.values(), Counts()).row("sum"), sep="\n")  # noqa: T201


@pytest.fixture
def quiet(tmp_path, monkeypatch):
    """Work in an empty folder, without warnings."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", GROUPS)
def test_a_wrong_argument_is_named(name, request, tmp_path, table):
    make, share = GROUPS[name]
    targets = list(make(tmp_path))
    for target in targets:  # a base that fails would hide what the values do
        try:
            target.call(target.subject(), **target.arguments())
        except Exception as exc:
            raise AssertionError(f"{target.name}: valid arguments fail") from exc
    counts = run_group(targets, round(N_CALLS * share), f"{SEED} {name}")
    table[name] = counts
    report = f"{HEAD}\n{counts.row(name)}\n{counts.report()}"
    if request.config.getoption("capture") == "no":
        print(f"\n{report}")  # noqa: T201
    assert not counts.silent, report
    assert counts.obscure <= LIMIT * counts.calls, report
