"""Checks of a strategy as an object, and of what a query must leave unchanged."""

import inspect
import sys
from dataclasses import replace
from types import ModuleType

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import clone

from ..view import check_declarations
from ._strategy_cases import (
    ask,
    changed_names,
    ensure,
    forbid_output,
    read_contents,
    restore_pickled,
    run_with_global_seeds,
    score,
)

# Parameters, copies, declarations


def check_requires_known_names(subject):
    """`requires`, `optional` and `targets` are sets of known names."""
    requires = subject.requires
    ensure(
        requires is not None or subject.is_function,
        "`requires` is None; make it a frozenset of names, frozenset() for a strategy "
        "that needs no model.",
    )
    try:
        check_declarations(subject.sample)
    except TypeError as exc:
        raise AssertionError(str(exc)) from exc


def check_select_is_a_method(subject):
    """`select(view, n_queries)` takes a view and a number."""
    select = getattr(subject.sample, "select", None)
    ensure(callable(select), "there is no method select(view, n_queries); write one.")
    try:
        inspect.signature(select).bind(None, 1)
    except TypeError as exc:
        raise AssertionError(
            f"select does not take (view, n_queries): {exc}; make other arguments "
            "parameters of __init__."
        ) from exc


def check_init_only_stores(subject):
    """`__init__` stores its parameters as they are and sets nothing else."""
    cls = type(subject.sample)
    kinds = {p.kind for p in inspect.signature(cls).parameters.values()}
    ensure(
        not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD},
        "__init__ takes *args or **kwargs; name every parameter, so that get_params "
        "and a grid search find it.",
    )
    names = list(inspect.signature(cls).parameters)
    # Objects that support nothing: whatever __init__ does with them shows.
    marks = {name: object() for name in names}
    with forbid_output("__init__"):
        try:
            made = cls(**marks)
        except Exception as exc:
            raise AssertionError(
                f"__init__ works on its parameters ({type(exc).__name__}: {exc}); only "
                "store them there, and check them in select or score."
            ) from exc
    changed = [name for name in names if getattr(made, name, None) is not marks[name]]
    ensure(
        not changed,
        f"__init__ does not store {changed} as given under the same name; write "
        "self.name = name and convert where it is used.",
    )
    extra = sorted(set(vars(made)) - set(names))
    ensure(
        not extra,
        f"__init__ sets {extra} in addition to its parameters; compute them in "
        "select or score, as set_params does not run __init__ again.",
    )


def check_get_and_set_params(subject):
    """`set_params(**get_params())` changes nothing, and unknown names are refused."""
    strategy = subject.make()
    params = strategy.get_params(deep=False)
    ensure(
        strategy.set_params(**params) is strategy,
        "set_params does not return self; inherit it from skactive.strategies."
        "Strategy.",
    )
    after = strategy.get_params(deep=False)
    ensure(
        after.keys() == params.keys()
        and all(after[name] is params[name] for name in params),
        f"set_params(**get_params()) turned {params} into {after}; give back what was "
        "set.",
    )
    try:
        strategy.set_params(no_such_parameter=1)
    except ValueError:
        return
    raise AssertionError(
        "set_params took the unknown name 'no_such_parameter'; raise ValueError, so "
        "that a misspelled grid search fails."
    )


def check_clone(subject):
    """`clone` returns a strategy with the same parameters and the same answers."""
    strategy, case = subject.make(), subject.make_case()
    copied = clone(strategy)
    ensure(type(copied) is type(strategy), "clone returns an object of another class.")
    ensure(
        repr(copied) == repr(strategy),
        f"clone turned {strategy!r} into {copied!r}; keep parameters in attributes of "
        "the same names.",
    )
    ensure(
        np.array_equal(ask(copied, case, 5), ask(strategy, case, 5)),
        "a clone asks for other items; keep everything that matters in parameters, "
        "not in attributes that clone leaves out.",
    )


def check_pickle(subject):
    """A strategy can be pickled and gives the same answers afterwards."""
    strategy, case = subject.make(), subject.make_case()
    restored = restore_pickled(strategy)
    ensure(
        repr(restored) == repr(strategy)
        and np.array_equal(ask(restored, case, 5), ask(strategy, case, 5)),
        "after pickling it asks for other items; keep everything that matters in "
        "parameters.",
    )


def check_keeps_no_state(subject):
    """A query leaves the strategy as it was."""
    strategy = subject.make()
    before = read_contents(vars(strategy))
    ask(strategy, subject.make_case(), 5)
    changed = changed_names(before, read_contents(vars(strategy)))
    ensure(
        not changed,
        f"select changed the attributes {changed}; keep what a query computes in local "
        "variables, as the learner makes a fresh strategy for each.",
    )


# Data, model, generators, torch


def check_input_is_unchanged(subject):
    """A query writes neither into the pool nor into the arrays of the view."""
    for convert in (np.array, sparse.csr_array, np.ndarray.tolist):
        case = subject.make_case().with_rows(convert)
        if convert is sparse.csr_array and not _takes(subject, case):
            continue
        strategy = subject.make()
        view = case.view(strategy)
        before = joblib.hash([case.X, view.X, case.X_labeled, case.y_labeled])
        strategy.select(view, 5)
        ensure(
            joblib.hash([case.X, view.X, case.X_labeled, case.y_labeled]) == before,
            "a query changed the data it was given; work on a copy, such as "
            "list(view.X) or np.array(view.features).",
        )
        added = [name for name in vars(view) if not name.startswith("_")]
        ensure(not added, f"a query sets {added} of the view; use local variables.")
        fresh = case.view(strategy)
        arrays = {"proba", "class_scores", "predictions", "variance", "boundary"}
        for name in sorted(arrays & set(strategy.requires or ())):
            ensure(
                np.array_equal(getattr(view, name), getattr(fresh, name)),
                f"a query changed view.{name}, which others share; work on a copy: "
                f"np.array(view.{name}).",
            )


def check_model_is_unchanged(subject):
    """A query changes nothing that a prediction depends on."""
    case = subject.make_case()
    learner = case.learner(subject)
    before = joblib.hash(learner.estimator_)
    learner.query(case.X, 5)
    ensure(
        joblib.hash(learner.estimator_) == before,
        "a query changed the fitted estimator; train and set parameters on "
        "sklearn.base.clone(view.estimator) instead.",
    )


def check_no_global_generator(subject):
    """No global random generator is used."""
    case = subject.make_case()
    picks, moved = run_with_global_seeds(
        subject.make, lambda strategy: ask(strategy, case, 6)
    )
    ensure(
        not moved,
        f"a query moved the global generator of {' and '.join(moved)}; take random "
        "numbers from view.rng, and integer seeds from view.rng.integers(2**31).",
    )
    ensure(
        np.array_equal(*picks),
        "a query depends on a global random seed; take random numbers from view.rng "
        "only.",
    )


def check_prints_nothing(subject):
    """A query prints nothing."""
    with forbid_output("a query"):
        ask(subject.make(), subject.make_case(), 5)


def check_permuted_pool(subject):
    """A pointwise strategy gives an item the same score anywhere in the pool."""
    case = subject.make_case(fixed_draws=True)
    strategy = subject.make()
    scores = score(strategy, case)
    if not np.array_equal(scores, score(strategy, case, seed=1)):
        return  # its scores are random, so there is nothing to follow
    order = np.random.default_rng(3).permutation(len(case.X))
    permuted = replace(case, X=case.X[order])
    ensure(
        np.allclose(score(strategy, permuted), scores[order], rtol=1e-6),
        "the scores of the items change with their order in the pool; compute a "
        "score from what the view holds for the item, not from its position, and take "
        "random numbers from view.rng, not from a generator with a fixed seed.",
    )
    if np.unique(scores).size < scores.size:
        return
    picks, again = ask(strategy, case, 6), ask(strategy, permuted, 6)
    ensure(
        np.array_equal(order[again], picks),
        f"it asked for {picks.tolist()}, and for {order[again].tolist()} when the same "
        "pool was in another order; order by the scores alone.",
    )


def check_no_fixed_seed_for_ties(subject):
    """Another seed of the learner breaks ties differently."""
    case = subject.make_case(n=20, equal=True)
    answers = {
        tuple(case.learner(subject, random_state=seed).query(case.X, 5).tolist())
        for seed in range(3)
    }
    ensure(
        len(answers) > 1,
        "three seeds gave the same batch of equal candidates; take random numbers from "
        "view.rng, and seed nothing with a constant.",
    )


def check_module_without_torch(subject):
    """The strategy's module does not import torch."""
    target = subject.sample.function if subject.is_function else type(subject.sample)
    module = sys.modules.get(getattr(target, "__module__", None))
    held = [
        name
        for name, value in vars(module or object).items()
        if isinstance(value, ModuleType) and value.__name__.split(".")[0] == "torch"
    ]
    ensure(
        not held,
        f"its module imports torch (as {held}); import it where it is needed, so that "
        "listing strategies stays fast.",
    )


def _takes(subject, case):
    """Whether the strategy answers on this input; another check requires it."""
    try:
        ask(subject.make(), case, 5)
    except Exception:
        return False
    return True


#: In the order in which they run; checks of a class do not apply to functions.
OBJECT_CHECKS = (
    check_requires_known_names,
    check_select_is_a_method,
    check_init_only_stores,
    check_get_and_set_params,
)
PURITY_CHECKS = (
    check_input_is_unchanged,
    check_model_is_unchanged,
    check_no_global_generator,
    check_prints_nothing,
    check_permuted_pool,
    check_no_fixed_seed_for_ties,
    check_module_without_torch,
)
#: They compare answers, so they run once it is known that answers are valid.
COPY_CHECKS = (check_keeps_no_state, check_clone, check_pickle)
