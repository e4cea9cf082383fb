"""The conformance kit for query strategies, with the checks of their answers."""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ..learner import ActiveLearner
from ._strategy_cases import (
    GivenProba,
    GivenScores,
    StrategySubject,
    as_picks,
    ask,
    collect,
    ensure,
    read_numbers,
    score,
)
from ._strategy_object_checks import COPY_CHECKS, OBJECT_CHECKS, PURITY_CHECKS


def check_requires_what_it_uses(subject):
    """A strategy uses only what its `requires` declares."""
    strategy = subject.make()
    view = subject.make_case().view(strategy)
    allow, refused = view._check_allowed, []

    def note(capability):
        try:
            allow(capability)
        except AttributeError as exc:
            # hasattr and getattr swallow it, and never find anything.
            refused.append(str(exc))
            raise

    view._check_allowed = note
    try:
        strategy.select(view, 5)
    except AttributeError:
        if not refused:
            raise
    ensure(not refused, "".join(refused[:1]))


def check_picks_are_positions(subject):
    """A batch holds n different integer positions in the view."""
    for seed in range(5):
        ask(subject.make(), subject.make_case(), 7, seed=seed)


def check_batch_of_one(subject):
    """A batch may hold a single item."""
    ask(subject.make(), subject.make_case(), 1)


def check_whole_pool(subject):
    """A batch may be the whole pool, and a pool a single item."""
    ask(subject.make(), subject.make_case(n=9), 9)
    ask(subject.make(), subject.make_case(n=1), 1)


def check_pool_smaller_than_batch(subject):
    """A query for more items than there are returns all of them."""
    case = subject.make_case(n=6)
    picks = case.learner(subject).query(case.X, 20)
    ensure(
        sorted(picks) == list(range(6)),
        f"a query for 20 of 6 items gave {picks.tolist()}; select all n of the view.",
    )


def check_candidates_only(subject):
    """Only candidates are queried, whether given as positions or as a mask."""
    case = subject.make_case()
    rows = np.array([28, 3, 17, 11, 5, 22, 8, 29])
    ask(subject.make(), case, 4, rows=rows)
    learner = case.learner(subject)
    picks = learner.query(case.X, 4, candidates=rows)
    as_picks(picks, 4, len(case.X))
    ensure(
        set(picks) <= set(rows),
        f"a query limited to {rows.tolist()} gave {picks.tolist()}; select only "
        "items of the view.",
    )
    mask = np.zeros(len(case.X), dtype=bool)
    mask[rows] = True
    everyone = learner.query(case.X, len(rows), candidates=mask)
    ensure(
        sorted(everyone) == sorted(rows),
        f"a query for all of {sorted(rows)} gave {sorted(everyone)}; select only "
        "items of the view.",
    )


def check_rounds_of_a_loop(subject):
    """Three rounds of query and teach never ask for an item twice."""
    case = subject.make_case()
    learner = case.learner(subject)
    unlabeled = np.arange(len(case.X))
    for _ in range(3):
        picks = learner.query(case.X, 4, candidates=unlabeled)
        as_picks(picks, 4, len(case.X))
        ensure(
            np.isin(picks, unlabeled).all(),
            f"it asked for {picks.tolist()}, some of which are labeled already; "
            "select only items of the view.",
        )
        unlabeled = np.setdiff1d(unlabeled, picks)
        learner.teach(case.X[picks], case.y_labeled[: len(picks)])


def check_same_seed_same_answer(subject):
    """Two strategies with the same seed ask for the same items."""
    case = subject.make_case()
    for seed in range(3):
        first = ask(subject.make(), case, 6, seed=seed)
        second = ask(subject.make(), case, 6, seed=seed)
        ensure(
            np.array_equal(first, second),
            f"with one seed it asked for {first.tolist()}, then {second.tolist()}; "
            "take random numbers from view.rng only, and do not iterate over sets.",
        )


def check_asking_twice(subject):
    """A strategy, or a learner, that is queried twice gives the same answer."""
    strategy, case = subject.make(), subject.make_case()
    learner = case.learner(subject)
    for answer in (lambda: ask(strategy, case, 6), lambda: learner.query(case.X, 6)):
        first, second = answer(), answer()
        ensure(
            np.array_equal(first, second),
            f"asked twice it gave {first.tolist()}, then {second.tolist()}; keep "
            "nothing from one query to the next, and take random numbers from "
            "view.rng only.",
        )


def check_scores_are_numbers(subject):
    """Each candidate has one score, which may be infinite but not NaN."""
    for k in (2, 3):
        # More than a chunk, so that strategies that work in chunks have a last one.
        score(subject.make(), subject.make_case(n=300, k=k))


def check_zero_and_one_probabilities(subject):
    """Probabilities of exactly 0 and 1 are accepted."""
    for k in (2, 3):
        certain = np.eye(k)[np.arange(12) % k]
        certain[-1] = [0.5, 0.5, 0.0][:k]
        _answer(subject, _small_case(subject, k=k, proba=certain))


def check_two_classes(subject):
    """Two classes are accepted."""
    _answer(subject, subject.make_case(k=2))


def check_seven_classes(subject):
    """Seven classes are accepted."""
    _answer(subject, _small_case(subject, k=7))


def check_one_label_per_class(subject):
    """One labeled item per class is enough."""
    _answer(subject, _small_case(subject, k=2, n_labeled=2))
    _answer(subject, _small_case(subject, k=4, n_labeled=4))


def check_labels_of_any_kind(subject):
    """Class labels may be any values, not only column numbers."""
    case = subject.make_case()
    codes = np.unique(case.y_labeled, return_inverse=True)[1]
    picks = []
    for y in (case.y_labeled, codes, codes * 10 - 10):
        model = GivenProba().fit(case.X_labeled, y)
        renamed = replace(case, model=model, y_labeled=y)
        picks.append(ask(subject.make(), renamed, 5).tolist())
    ensure(
        picks[0] == picks[1] == picks[2],
        f"it asked for {picks[0]}, {picks[1]} and {picks[2]} when only the names of "
        "the classes changed; look columns up in view.classes, and do not sort or "
        "compute with labels.",
    )


def check_equal_candidates(subject):
    """A pool of equal candidates gets a valid answer."""
    _answer(subject, subject.make_case(equal=True))


def check_ties_are_spread(subject):
    """Equal candidates are selected at random, not in the order of the pool."""
    case = subject.make_case(n=20, equal=True)
    strategy = subject.make()
    picks = np.array([ask(strategy, case, 3, seed=seed) for seed in range(15)])
    # 15 batches of 3 out of 20 reach all but a few of them.
    reached = np.unique(picks).size
    ensure(
        reached >= 12,
        f"15 seeds reached {reached} of 20 equal candidates; {_BREAK_TIES}",
    )
    # Of an item and its 12 or 36 copies, the same one nearly always is no chance.
    for n_items in (3, 1):
        tied = replace(case, X=subject.make_case(n=3).X[np.arange(36) % n_items])
        picks = np.array([ask(strategy, tied, 2, seed=seed) for seed in range(12)])
        for position, rows in enumerate(picks.T):
            most = sum(
                np.bincount(rows[rows % n_items == i]).max(initial=0)
                for i in range(n_items)
            )
            ensure(
                most < 11,
                f"among equal candidates, 12 seeds gave {rows.tolist()} at place "
                f"{position} of a batch; {_BREAK_TIES}",
            )


_BREAK_TIES = (
    "break ties with skactive.strategies.top_n(scores, n, view.rng), not with argsort "
    "or argmax."
)


def check_duplicate_rows(subject):
    """Duplicate rows in the pool are accepted."""
    case = subject.make_case(n=6)
    _answer(subject, replace(case, X=np.repeat(case.X, 3, axis=0)))


def check_floats_of_32_and_64_bits(subject):
    """Probabilities and features may be float32 or float64."""
    # The pools of the other checks are float64.
    _answer(subject, _small_case(subject).with_rows(lambda X: X.astype(np.float32)))


def check_memory_mapped_input(subject):
    """Memory-mapped arrays, which cannot be written to, are accepted."""
    case = _small_case(subject)
    with tempfile.TemporaryDirectory() as folder:

        def store(X):
            path = Path(folder, f"{len(X)}.npy")
            np.save(path, X)
            return np.load(path, mmap_mode="r")

        stored = case.with_rows(store)
        _answer(subject, stored)
        del stored  # an open map keeps its file on some systems


def check_sparse_features(subject):
    """Sparse matrices are accepted, or refused with an error that names them."""
    case = _small_case(subject).with_rows(sparse.csr_array)
    try:
        _answer(subject, case)
    except (TypeError, ValueError) as exc:
        ensure(
            "sparse" in str(exc).lower(),
            f"on sparse features it raised {type(exc).__name__}: {exc}; handle "
            "scipy.sparse features, or refuse them with a TypeError that "
            "contains 'sparse'.",
        )


def check_texts_behind_a_pipeline(subject):
    """Texts behind a pipeline get the same answer as the numbers that it returns.

    This does not hold for strategies that use the items themselves.
    """
    case = subject.make_case()
    model = make_pipeline(FunctionTransformer(read_numbers), clone(case.model))
    as_texts = replace(case, model=model).with_rows(
        lambda X: [" ".join(map(repr, row)) for row in X.tolist()]
    )
    from_numbers = ask(subject.make(), case, 5)
    strategy = subject.make()
    view, was_read = _watch_items(as_texts.view(strategy))
    try:
        picks = strategy.select(view, 5)
    except Exception as exc:
        ensure(
            not was_read,
            f"on texts behind a pipeline it raised {type(exc).__name__}: {exc}; "
            "use view.features (and require 'features') rather than view.X, or pass "
            "items of a type that it accepts.",
        )
        raise
    from_texts = as_picks(picks, 5, len(view))
    ensure(
        bool(was_read) or np.array_equal(from_numbers, from_texts),
        f"it asked for {from_numbers.tolist()} among rows of numbers and for "
        f"{from_texts.tolist()} among texts that a pipeline turns into them; use "
        "view.features (and require 'features') rather than view.X.",
    )


def _watch_items(view):
    """Return the view and a list that grows when a strategy reads `view.X`."""
    was_read = []

    class Watched(type(view)):
        @property
        def X(self):
            was_read.append(True)
            return super().X

    view.__class__ = Watched
    return view, was_read


def check_decision_values(subject):
    """A strategy that requires class scores works on decision values as well."""
    for k in (2, 4):
        _answer(subject, _small_case(subject, k=k, model=GivenScores()))


def check_cold_start(subject):
    """A strategy that requires no model works before any label."""
    X = subject.make_case().X
    strategy = subject.strategy
    learner = ActiveLearner(GivenProba(), strategy, cold_start=strategy, random_state=0)
    as_picks(learner.query(X, 5), 5, len(X))


def _small_case(subject, **kwargs):
    """Return a case of 12 candidates: choosing nearly all of 30 is slow for some."""
    return subject.make_case(n=12, **kwargs)


def _answer(subject, case):
    """Query for nearly all, and either for a few or, if pointwise, for the scores."""
    ask(subject.make(), case, case.X.shape[0] - 1)
    if subject.is_pointwise:
        score(subject.make(), case)
    else:
        ask(subject.make(), case, 3)


#: In the order in which they run; other checks need valid answers.
FIRST_ANSWER_CHECKS = (
    check_requires_what_it_uses,
    check_picks_are_positions,
    check_batch_of_one,
    check_whole_pool,
    check_scores_are_numbers,
)
ANSWER_CHECKS = (
    check_zero_and_one_probabilities,
    check_same_seed_same_answer,
    check_asking_twice,
    check_pool_smaller_than_batch,
    check_candidates_only,
    check_rounds_of_a_loop,
    check_two_classes,
    check_seven_classes,
    check_one_label_per_class,
    check_labels_of_any_kind,
    check_equal_candidates,
    check_duplicate_rows,
    check_ties_are_spread,
    check_floats_of_32_and_64_bits,
    check_memory_mapped_input,
    check_sparse_features,
    check_texts_behind_a_pipeline,
    check_decision_values,
    check_cold_start,
)


#: Also run for each further target that a strategy declares.
TARGET_CHECKS = (
    *FIRST_ANSWER_CHECKS,
    check_zero_and_one_probabilities,
    check_same_seed_same_answer,
    check_asking_twice,
    check_equal_candidates,
    check_duplicate_rows,
    check_floats_of_32_and_64_bits,
    check_rounds_of_a_loop,
)


# Causes come before consequences, so that the first failure names the cause.
_CHECKS = (
    *OBJECT_CHECKS,
    *FIRST_ANSWER_CHECKS,
    *PURITY_CHECKS,
    *COPY_CHECKS,
    *ANSWER_CHECKS,
)


def _has_classes(subject):
    return subject.target == "single-label"


def _requires_only(subject, *allowed):
    """Whether a strategy declares nothing but the `allowed` names."""
    requires = subject.requires
    return isinstance(requires, frozenset | set) and requires <= set(allowed)


def _can_be_pickled(subject):
    """Whether it is no lambda and no local function, which pickle refuses."""
    function = getattr(subject.sample, "function", None)
    return not subject.is_function or "<" not in getattr(function, "__qualname__", "")


# When a check applies to a strategy; checks that are not listed always do.
_APPLIES = {
    "check_init_only_stores": lambda s: not s.is_function,
    "check_get_and_set_params": lambda s: not s.is_function,
    "check_pickle": _can_be_pickled,
    "check_permuted_pool": lambda s: s.is_pointwise,
    "check_scores_are_numbers": lambda s: s.is_pointwise,
    "check_no_fixed_seed_for_ties": lambda s: s.is_pointwise,
    "check_two_classes": _has_classes,
    "check_seven_classes": _has_classes,
    "check_one_label_per_class": _has_classes,
    "check_labels_of_any_kind": _has_classes,
    "check_decision_values": lambda s: (
        _has_classes(s)
        and _requires_only(s, "class_scores", "features", "labeled")
        and "class_scores" in s.requires
    ),
    "check_cold_start": lambda s: _requires_only(s, "features", "surprisal"),
}


def strategy_checks(strategy):
    """Yield the names of the checks of a strategy, and the checks without argument."""
    subject = StrategySubject(strategy)
    yield from collect(_CHECKS, _APPLIES, subject)
    for target in subject.other_targets:
        other = StrategySubject(strategy, target)
        for name, check in collect(TARGET_CHECKS, _APPLIES, other):
            yield f"{name}[{target}]", check


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

    Notes
    -----
    The checks use their own small models, which offer everything that `requires` can
    name, on numeric pools. They need no network, no training and no pytest. For each
    further target that the strategy declares, some of them run again.

    Examples
    --------
    A built-in strategy passes all checks. A strategy that uses the positions does not:

    >>> from skactive.testing import check_strategy
    >>> print(check_strategy("entropy")[0])
    check_requires_known_names
    >>> try:
    ...     check_strategy(lambda view: range(len(view)))
    ... except AssertionError as error:
    ...     print(str(error).split(":")[0])
    '<lambda>' fails check_permuted_pool
    """
    names = []
    for name, check in strategy_checks(strategy):
        check()
        names.append(name)
    return names


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
    In a test file, pytest runs each check as a test of its own:

    >>> from skactive.testing import parametrize_with_strategy_checks
    >>> @parametrize_with_strategy_checks(["random", "margin"])
    ... def test_strategy(check):
    ...     check()
    >>> cases = test_strategy.pytestmark[0].args[1]
    >>> cases[0].id
    'random-check_requires_known_names'
    """
    import pytest

    strategies = [strategies] if isinstance(strategies, str) else list(strategies)
    if not strategies:
        raise ValueError(
            "'strategies' is empty, so that nothing would be checked. Name at least "
            "one strategy."
        )
    params, check_names, reasons = [], set(), dict[str, str]()
    for strategy in strategies:
        label = StrategySubject(strategy).label
        failing = expected_failed or {}
        failing = failing if isinstance(failing, Mapping) else failing(strategy) or {}
        reasons.update(failing)
        for name, check in strategy_checks(strategy):
            check_names.add(name)
            marks = []
            if name in failing:
                marks = [pytest.mark.xfail(reason=failing[name], strict=True)]
            params.append(pytest.param(check, id=f"{label}-{name}", marks=marks))
    if unknown := sorted(set(reasons) - check_names):
        close = get_close_matches(unknown[0], check_names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"'expected_failed' must name checks of these strategies, got {unknown}."
            f"{hint}"
        )
    return pytest.mark.parametrize("check", params)
