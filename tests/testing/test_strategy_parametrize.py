"""The decorator that makes a test of each strategy and check: ids and marks."""

import pytest

from skactive.strategies import Margin
from skactive.testing import parametrize_with_strategy_checks
from skactive.testing._strategy_checks import strategy_checks

pytest_plugins = ["pytester"]


def by_first_class(view):
    return view.proba[:, 0]


def names_of(strategy):
    return [name for name, _ in strategy_checks(strategy)]


def params_of(strategies, **kwargs):
    """The rows that the decorator gives to pytest."""
    mark = parametrize_with_strategy_checks(strategies, **kwargs)
    assert mark.args[0] == "check"
    return mark.args[1]


def test_each_strategy_and_check_has_an_id_of_its_own():
    params = params_of(["margin", Margin(), by_first_class])
    ids = [param.id for param in params]
    assert len(set(ids)) == len(ids)
    assert "margin-check_clone" in ids
    assert "Margin()-check_clone" in ids
    assert "by_first_class-check_clone" in ids
    assert len(ids) == 2 * len(names_of("margin")) + len(names_of(by_first_class))


def test_a_single_name_needs_no_list():
    assert [p.id for p in params_of("margin")] == [p.id for p in params_of(["margin"])]


@pytest.mark.parametrize("strategies", [[], (), iter([])], ids=["list", "tuple", "it"])
def test_no_strategy_at_all_is_refused(strategies):
    with pytest.raises(ValueError, match="'strategies' is empty, so that nothing"):
        parametrize_with_strategy_checks(strategies)


@pytest.mark.parametrize("as_function", [False, True])
def test_known_failures_are_marked_as_strict_xfail(as_function):
    failing = {"check_clone": "not yet"}
    given = (lambda strategy: failing) if as_function else failing
    marks = {p.id: p.marks for p in params_of(["margin"], expected_failed=given)}
    (mark,) = marks.pop("margin-check_clone")
    assert mark.name == "xfail"
    assert mark.kwargs == {"reason": "not yet", "strict": True}
    assert not any(marks.values())


def test_failures_may_be_expected_of_some_strategies_only():
    def expected(strategy):
        return {"check_clone": "not yet"} if strategy == "random" else None

    params = params_of(["margin", "random"], expected_failed=expected)
    assert [p.id for p in params if p.marks] == ["random-check_clone"]


def test_an_unknown_check_among_the_expected_is_refused():
    message = (
        r"'expected_failed' must name .* \['check_clon'\]\. Did you mean 'check_clone'"
    )
    with pytest.raises(ValueError, match=message):
        parametrize_with_strategy_checks("margin", expected_failed={"check_clon": "?"})


@pytest.mark.long
def test_pytest_reports_failures_expected_ones_and_those_that_passed(pytester):
    pytester.makepyfile(
        """
        import numpy as np
        from skactive.testing import parametrize_with_strategy_checks

        def by_position(view):
            return np.arange(len(view))

        @parametrize_with_strategy_checks([by_position])
        def test_plain(check):
            check()

        known = {
            "check_permuted_pool": "a demonstration",
            "check_ties_are_spread": "a demonstration",
            "check_clone": "wrongly expected",
        }

        @parametrize_with_strategy_checks([by_position], expected_failed=known)
        def test_expected(check):
            check()
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    n = len(names_of(by_first_class))
    result.assert_outcomes(passed=2 * n - 7, failed=3 + 2, xfailed=2)
    result.stdout.fnmatch_lines(
        ["*XPASS(strict)*wrongly expected*", "FAILED *by_position-check_permuted_pool*"]
    )
