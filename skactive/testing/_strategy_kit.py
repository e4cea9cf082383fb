"""The conformance kit for query strategies."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ._common import collect, parametrize, run_all
from ._strategy_answer_checks import ANSWER_CHECKS, FIRST_ANSWER_CHECKS
from ._strategy_cases import StrategySubject
from ._strategy_object_checks import COPY_CHECKS, OBJECT_CHECKS, PURITY_CHECKS

# Causes come before consequences, so that the first failure names the cause.
_CHECKS = (
    *OBJECT_CHECKS,
    *FIRST_ANSWER_CHECKS,
    *PURITY_CHECKS,
    *COPY_CHECKS,
    *ANSWER_CHECKS,
)

# When a check applies to a strategy; the others always do.
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


def strategy_checks(strategy: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the checks that every query strategy must pass.

    Parameters
    ----------
    strategy : str, Strategy instance or callable
        A registered name, an instance, or a function `f(view)` that returns scores.

    Yields
    ------
    name : str
        Name of the check.
    check : callable
        Takes no argument; raises an AssertionError that states the fault and the
        remedy.

    Raises
    ------
    AssertionError
        If there is no check to run.

    Notes
    -----
    The checks use their own small models, which offer everything that `requires` can
    name, on numeric pools. They need no network, no training and no pytest.

    Examples
    --------
    >>> from skactive.testing import strategy_checks
    >>> for name, check in strategy_checks("margin"):
    ...     check()
    >>> name
    'check_decision_values'
    """
    subject = StrategySubject(strategy)
    yield from collect(_CHECKS, _APPLIES, subject)


def check_strategy(strategy: Any) -> list[str]:
    """Run every check on a query strategy up to the first failure.

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
        States the check that failed, the fault and the remedy.

    Examples
    --------
    >>> from skactive.testing import check_strategy
    >>> len(check_strategy("entropy")) > 20
    True
    >>> check_strategy(lambda view: range(len(view)))
    Traceback (most recent call last):
        ...
    AssertionError: '<lambda>' fails check_permuted_pool: the scores of the items \
change with their order in the pool; compute a score from what the view holds for \
the item, not from its position, and take random numbers from view.rng, not from a \
generator with a fixed seed. (A pointwise strategy gives an item the same score \
anywhere in the pool.)
    """
    return run_all(strategy_checks(strategy))


def parametrize_with_strategy_checks(
    strategies: str | Iterable[Any],
    *,
    expected_failed: Mapping[str, str] | Callable[[Any], Any] | None = None,
) -> Callable:
    """Parametrize a pytest test with every check of every strategy.

    Parameters
    ----------
    strategies : list of str, Strategy instances or callables
        The strategies to check.
    expected_failed : dict of str to str, callable or None, default=None
        Checks that are known to fail, with the reason; or a function that takes a
        strategy as given and returns such a dict. Such a test is marked
        `xfail(strict=True)`: pytest reports it if it passes.

    Returns
    -------
    decorator : callable
        Decorates a test function whose only argument is `check`, which it calls.

    Raises
    ------
    ValueError
        If there is no strategy, or `expected_failed` names an unknown check.

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
        lambda strategy: StrategySubject(strategy).label,
        expected_failed,
        argument="strategies",
    )


def _requires_only(subject, allowed, needed=None):
    """Whether a strategy declares `needed` and nothing but `allowed`."""
    requires = subject.requires
    if not isinstance(requires, frozenset | set):
        return False
    return requires <= allowed and (needed is None or needed in requires)


def _is_local_function(subject):
    """Whether it is a lambda or a local function, which pickle refuses."""
    function = getattr(subject.sample, "function", None)
    return subject.is_function and "<" in getattr(function, "__qualname__", "")
