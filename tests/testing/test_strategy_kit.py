"""The conformance kit as plugin authors call it: what runs, what it says, its marks."""

import functools
import pickle
import random
import subprocess
import sys
import warnings
from importlib.abc import MetaPathFinder

import numpy as np
import pytest
from scipy import sparse

from skactive import get_strategy, get_strategy_names, registry
from skactive.registry import FunctionStrategy
from skactive.strategies import (
    EmbeddingKMeans,
    Margin,
    PointwiseStrategy,
    Strategy,
    top_n,
)
from skactive.testing import (
    _strategy_checks,
    check_strategy,
    parametrize_with_strategy_checks,
)
from skactive.testing._strategy_cases import StrategySubject, ask
from skactive.testing._strategy_checks import strategy_checks


def by_first_class(view):
    return view.proba[:, 0]


def names_of(strategy):
    return [name for name, _ in strategy_checks(strategy)]


# What passes


# Smaller than their defaults, with which the kit trains or draws for seconds.
SMALL = {
    "batchbald": {"n_draws": 8, "n_samples": 64},
    "committee": {"n_members": 2},
    "dal": {"n_batches": 3},
    "perceptron_ensemble": {"n_members": 3, "n_steps": 20},
}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", get_strategy_names())
def test_every_registered_strategy_passes(name):
    strategy = get_strategy(name, **SMALL[name]) if name in SMALL else name
    assert check_strategy(strategy) == names_of(name)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [
        "margin",
        "skactive:margin",
        Margin(),
        by_first_class,
        FunctionStrategy(by_first_class),
        lambda view: view.proba.max(axis=1),
        functools.partial(np.sum, axis=1),
    ],
    ids=["name", "full name", "instance", "function", "wrapped", "lambda", "partial"],
)
def test_a_strategy_may_be_given_in_any_way(strategy):
    if isinstance(strategy, functools.partial):
        strategy = functools.partial(weighted, weight=2.0)
    assert len(check_strategy(strategy)) > 20


def weighted(view, weight):
    return weight * view.proba[:, 0]


def test_a_strategy_may_refuse_sparse_features():
    class Dense(PointwiseStrategy):
        requires = frozenset({"features"})

        def score(self, view):
            if sparse.issparse(view.features):
                raise TypeError("sparse features are too wide for this strategy")
            return view.features[:, 0]

    strategy = Dense()
    said = [name for name, check in strategy_checks(strategy) if fails(check)]
    assert said == ["check_pickle"]  # its class is local


class FixedSeed(PointwiseStrategy):
    """Seed a generator with a constant."""

    def score(self, view):
        return np.random.default_rng(0).random(len(view))


class GlobalGenerator(PointwiseStrategy):
    """Use the global generator of numpy."""

    def score(self, view):
        return np.random.rand(len(view))  # noqa: NPY002


class Repeats(Strategy):
    """Choose one item n times."""

    def select(self, view, n_queries):
        return view.rng.integers(len(view), size=n_queries) // 2


class TooFew(Strategy):
    """Choose one item less."""

    def select(self, view, n_queries):
        return view.rng.permutation(len(view))[: n_queries - 1]


class Undeclared(PointwiseStrategy):
    """Look at probabilities without saying so."""

    def score(self, view):
        return view.proba[:, 0]


class Writes(PointwiseStrategy):
    """Write into the pool."""

    requires = frozenset({"features"})

    def score(self, view):
        if not isinstance(view._X, np.ndarray):
            raise TypeError("neither lists nor sparse rows can be written to")
        view._X[:, 0] += 1
        return view.features[:, 0]


class Unfinished(Strategy):
    """Lacks select."""


class Misspelled(PointwiseStrategy):
    """Require what there is not."""

    requires = frozenset({"probabilities"})

    def score(self, view):
        return view.probabilities[:, 0]


@pytest.mark.parametrize(
    ("strategy", "cause"),
    [
        (FixedSeed(), "not from a generator with a fixed seed"),
        (GlobalGenerator(), "moved the global generator of numpy"),
        (Repeats(), "a position more than once"),
        (TooFew(), "return exactly n"),
        (Undeclared(), "Add 'proba' to its `requires`"),
        (Writes(), "a query changed the data it was given"),
        (Misspelled(), "`requires` holds 'probabilities', which is unknown"),
    ],
)
def test_the_first_check_that_fails_names_the_cause(strategy, cause):
    with pytest.raises(AssertionError, match=cause):
        check_strategy(strategy)


def test_a_strategy_may_look_at_the_items_themselves():
    class Words(PointwiseStrategy):
        def score(self, view):
            return np.array([len(item) for item in view.X], dtype=float)

    checks = dict(strategy_checks(Words()))
    checks["check_texts_behind_a_pipeline"]()


def test_a_wrong_parameter_is_named_before_any_check():
    with pytest.raises(ValueError, match="The 'normalize' parameter of EmbeddingKM"):
        check_strategy(EmbeddingKMeans(normalize="no"))


def fails(check):
    try:
        check()
    except AssertionError:
        return True
    return False


class Draws(Strategy):
    """Look at everything a view can give, and choose by some of it."""

    requires = frozenset(
        {"proba", "class_scores", "draws", "features", "labeled", "gradients"}
    )

    def select(self, view, n_queries):
        residuals, inputs = view.gradients
        k = len(view.classes)
        assert residuals.shape == (len(view), k)
        assert inputs.shape[0] == len(view)
        assert view.draws(8).shape == (len(view), 8, k)
        assert view.class_scores.shape == view.proba.shape
        assert view.labeled_features.shape[0] == len(view.y_labeled)
        assert view.labeled_features.shape[1] == view.features.shape[1]
        return top_n(view.draws(8)[:, :, 0].std(axis=1), n_queries, view.rng)


def test_the_models_of_the_kit_give_whatever_can_be_required():
    assert "check_pickle" in check_strategy(Draws())


# Which checks run


def test_a_class_gets_the_checks_of_a_class():
    names = names_of("margin")
    assert {"check_init_only_stores", "check_get_and_set_params"} <= set(names)
    assert len(names) == len(set(names))


def test_a_function_has_no_parameters_to_check():
    left_out = {"check_init_only_stores", "check_get_and_set_params"}
    assert set(names_of("margin")) - set(names_of(by_first_class)) >= left_out


@pytest.mark.parametrize("where", ["lambda", "local"])
def test_what_pickle_refuses_by_nature_is_not_pickled(where):
    def local(view):
        return view.proba[:, 0]

    function = (lambda view: view.proba[:, 0]) if where == "lambda" else local
    assert "check_pickle" not in names_of(function)
    assert "check_pickle" in names_of(by_first_class)
    check_strategy(function)


def test_a_batch_strategy_is_not_checked_as_a_pointwise_one():
    left_out = set(names_of("margin")) - set(names_of(Draws()))
    assert {"check_permuted_pool", "check_scores_are_numbers"} <= left_out
    assert "check_ties_are_spread" in names_of(Draws())


@pytest.mark.parametrize(
    ("check", "strategy", "applies"),
    [
        ("check_decision_values", "margin", True),
        ("check_decision_values", "entropy", False),
        ("check_decision_values", by_first_class, False),
        ("check_cold_start", "random", True),
        ("check_cold_start", "margin", False),
        ("check_cold_start", by_first_class, False),
    ],
)
def test_some_checks_apply_by_what_is_required(check, strategy, applies):
    assert (check in names_of(strategy)) is applies


def test_every_check_states_its_rule():
    for check in _strategy_checks._CHECKS:
        rule = check.__doc__.splitlines()[0]
        assert rule.endswith("."), check.__name__
        assert check.__name__.startswith("check_")
    assert set(_strategy_checks._APPLIES) <= {
        check.__name__ for check in _strategy_checks._CHECKS
    }


def test_the_checks_come_in_an_order_that_stays():
    assert names_of("entropy") == names_of("entropy") == check_strategy("entropy")


# Faults of the call


@pytest.mark.parametrize(
    "call", [check_strategy, names_of, parametrize_with_strategy_checks]
)
def test_a_kit_that_collects_no_check_fails(monkeypatch, call):
    monkeypatch.setattr(_strategy_checks, "_CHECKS", ())
    with pytest.raises(AssertionError, match="no check was collected for 'margin'"):
        call("margin")


def test_a_kit_whose_every_check_is_left_out_fails(monkeypatch):
    names = [check.__name__ for check in _strategy_checks._CHECKS]
    never = dict.fromkeys(names, lambda subject: False)
    monkeypatch.setattr(_strategy_checks, "_APPLIES", never)
    with pytest.raises(AssertionError, match="no check was collected for 'margin'"):
        check_strategy("margin")


@pytest.mark.parametrize(
    ("strategy", "error", "message"),
    [
        ("margn", ValueError, "Did you mean 'margin'"),
        (Margin, TypeError, r"got the class Margin. Pass an instance: Margin\(\)"),
        (Unfinished, TypeError, "is the abstract class Unfinished. Write its select"),
        (5, TypeError, r"must be a name, a strategy with a method select.* got 5"),
        (None, TypeError, "got None"),
    ],
)
def test_what_is_no_strategy_is_refused(strategy, error, message):
    with pytest.raises(error, match=message):
        check_strategy(strategy)


# What a failure says


def test_a_failure_names_strategy_check_remedy_and_rule():
    message = (
        r"^'by_position' fails check_permuted_pool: the scores .* from its position.* "
        r"\(A pointwise strategy gives an item the same score anywhere in .*\.\)$"
    )

    def by_position(view):
        return np.arange(len(view))

    with pytest.raises(AssertionError, match=message):
        check_strategy(by_position)


def test_what_a_strategy_raises_is_told_and_chained():
    def unlucky(view):
        raise KeyError("luck.")

    message = (
        r"'unlucky' fails check_requires_what_it_uses: KeyError: 'luck\.'\. Repair"
    )
    with pytest.raises(AssertionError, match=message) as caught:
        check_strategy(unlucky)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_strategy_without_a_repr_can_be_named():
    class Mute(PointwiseStrategy):
        def __init__(self, weight=1.0):
            pass

        def score(self, view):
            return view.rng.random(len(view))

    with pytest.raises(AssertionError, match=r"'Mute' fails check_init_only_stores"):
        check_strategy(Mute())


def test_a_registered_name_is_what_a_failure_says():
    registry.register("by_number", lambda view: np.arange(len(view)))
    try:
        with pytest.raises(AssertionError, match="'by_number' fails check_permuted"):
            check_strategy("by_number")
    finally:
        registry.unregister("by_number")


def test_a_write_is_told_with_a_remedy_and_not_with_the_rule_of_the_check():
    def shifted(view):
        view.proba[:, 0] += 1
        return view.proba[:, 0]

    message = (
        r"it changes its view, which others share \(\w+ \w+ is read-only\)\. Work on "
        r"a copy, such as np\.array\(view\.proba\)\. \(Nothing of a view may be chan"
    )
    with pytest.raises(AssertionError, match=message):
        check_strategy(shifted)


def test_a_warning_is_not_output():
    def warned(view):
        warnings.warn("a pool without duplicates is faster", UserWarning)
        return view.rng.random(len(view))

    dict(strategy_checks(warned))["check_prints_nothing"]()


# What the kit leaves alone


def test_the_kit_leaves_the_global_generators_alone():
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    before = pickle.dumps((np.random.get_state(), random.getstate()))  # noqa: NPY002

    def careless(view):
        random.random()
        return np.random.random_sample(len(view))  # noqa: NPY002

    said = dict(strategy_checks(careless))
    with pytest.raises(AssertionError, match="moved the global generator"):
        said["check_no_global_generator"]()
    check_strategy("margin")
    after = pickle.dumps((np.random.get_state(), random.getstate()))  # noqa: NPY002
    assert after == before


@pytest.mark.slow
def test_the_kit_needs_neither_torch_nor_pytest():
    code = """
import sys
from contextlib import nullcontext
from importlib.abc import MetaPathFinder
from skactive.testing import check_strategy
assert check_strategy("margin")
assert not {"torch", "transformers", "pytest"} & set(sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


class _RefuseTorch(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise RuntimeError(f"a query imported {name}")


@pytest.mark.parametrize("name", get_strategy_names())
def test_no_query_imports_torch(name, monkeypatch):
    for module in [key for key in sys.modules if key.split(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [_RefuseTorch(), *sys.meta_path])
    subject = StrategySubject(name)
    ask(subject.make(), subject.make_case(), 5)


def test_strategies_are_made_anew_for_each_check():
    strategy = get_strategy("margin")
    check_strategy(strategy)
    assert vars(strategy) == {"aggregate": "mean"}
