"""Collect the conformance checks of a strategy and run them."""

from ._answer_checks import ANSWER_CHECKS, FIRST_ANSWER_CHECKS
from ._cases import Subject
from ._object_checks import COPY_CHECKS, OBJECT_CHECKS
from ._purity_checks import PURITY_CHECKS
from ._runs import collect, parametrize, run_all

# What others are a consequence of comes first, so that a failure names the cause.
_CHECKS = (
    *OBJECT_CHECKS,
    *FIRST_ANSWER_CHECKS,
    *PURITY_CHECKS,
    *COPY_CHECKS,
    *ANSWER_CHECKS,
)

# When a check says something about a strategy; those not named always do.
_APPLIES = {
    "check_init_only_stores": lambda s: not s.is_function,
    "check_get_and_set_params": lambda s: not s.is_function,
    "check_pickle": lambda s: not _is_local_function(s),
    "check_permuted_pool": lambda s: s.is_pointwise,
    "check_scores_are_numbers": lambda s: s.is_pointwise,
    "check_ties_are_spread": lambda s: s.is_pointwise,
    "check_no_fixed_seed_for_ties": lambda s: s.is_pointwise,
    "check_decision_values": lambda s: _requires_only(
        s, {"class_scores", "features", "labeled"}, "class_scores"
    ),
    "check_cold_start": lambda s: _requires_only(s, {"features", "surprisal"}),
}


def strategy_checks(strategy):
    """Yield the checks that every query strategy has to pass.

    Parameters
    ----------
    strategy : str, Strategy instance or callable
        A registered name, an instance, or a function `f(view)` that returns scores.

    Yields
    ------
    name : str
        Name of the check.
    check : callable
        Takes no argument; raises an AssertionError that says what to repair.

    Raises
    ------
    AssertionError
        If there is no check to run.

    Notes
    -----
    The checks bring their own small models, which give everything that `requires` can
    name, on numeric pools; no network, no training and no pytest are involved.

    Examples
    --------
    >>> from skactive.testing import strategy_checks
    >>> for name, check in strategy_checks("margin"):
    ...     check()
    >>> name
    'check_decision_values'
    """
    subject = Subject(strategy)
    yield from collect(_CHECKS, _APPLIES, subject)


def check_strategy(strategy):
    """Run every check on a query strategy, and stop at the first that fails.

    Parameters
    ----------
    strategy : str, Strategy instance or callable
        A registered name, an instance, or a function `f(view)` that returns scores.

    Returns
    -------
    names : list of str
        The checks that ran; all of them passed.

    Raises
    ------
    AssertionError
        Names the check that failed and says what to repair.

    Examples
    --------
    >>> from skactive.testing import check_strategy
    >>> len(check_strategy("entropy")) > 20
    True
    >>> check_strategy(lambda view: range(len(view)))
    Traceback (most recent call last):
        ...
    AssertionError: '<lambda>' fails check_permuted_pool: the scores of the items \
change with their order in the pool; score an item by what the view says of it, not \
by its position, and take random numbers from view.rng, not from a generator with a \
fixed seed. (A pointwise strategy follows an item wherever it stands in the pool.)
    """
    return run_all(strategy_checks(strategy))


def parametrize_with_strategy_checks(strategies, *, expected_failed=None):
    """Make a pytest test run once per strategy and check.

    Parameters
    ----------
    strategies : list of str, Strategy instances or callables
        What to check.
    expected_failed : dict of str to str, callable or None, default=None
        Checks that are known to fail, with the reason; or a function that takes a
        strategy as given and returns such a dict. Such a test is marked
        `xfail(strict=True)`: it has to fail, or pytest reports it.

    Returns
    -------
    decorator : callable
        For a test function with the one argument `check`, which it calls.

    Raises
    ------
    ValueError
        If there is no strategy, or `expected_failed` names no check of it.

    Examples
    --------
    >>> from skactive.testing import parametrize_with_strategy_checks
    >>> @parametrize_with_strategy_checks(["random", "margin"])
    ... def test_strategy(check):
    ...     check()
    """
    strategies = [strategies] if isinstance(strategies, str) else list(strategies)
    return parametrize(
        strategies,
        strategy_checks,
        lambda strategy: Subject(strategy).label,
        expected_failed,
        argument="strategies",
    )


def _requires_only(subject, allowed, needed=None):
    """Whether a strategy that declares its needs stays within some of them."""
    requires = subject.requires
    if not isinstance(requires, frozenset | set):
        return False
    return requires <= allowed and (needed is None or needed in requires)


def _is_local_function(subject):
    """Whether it is a lambda or lives inside a function, which pickle refuses."""
    function = getattr(subject.sample, "function", None)
    return subject.is_function and "<" in getattr(function, "__qualname__", "")
