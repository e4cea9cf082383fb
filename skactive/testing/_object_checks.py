"""Checks of a strategy as a scikit-learn object: parameters, copies, declarations."""

import inspect
import pickle

import joblib
import numpy as np
from sklearn.base import clone

from ..view._quantities import check_declarations
from ._cases import ask, ensure, make_case


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
    """`select(view, n)` takes a view and a number."""
    select = getattr(subject.sample, "select", None)
    ensure(callable(select), "there is no method select(view, n); write one.")
    try:
        inspect.signature(select).bind(None, 1)
    except TypeError as exc:
        raise AssertionError(
            f"select does not take (view, n): {exc}; other arguments belong into "
            "__init__ as parameters."
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
    try:
        made = cls(**marks)
    except Exception as exc:
        raise AssertionError(
            f"__init__ works on its parameters ({type(exc).__name__}: {exc}); let it "
            "store them, and check them in select or score."
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
        f"__init__ sets {extra} beside its parameters; compute them in select or "
        "score, as set_params does not run __init__ again.",
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
    """`clone` gives a strategy with the same parameters that asks the same."""
    strategy, case = subject.make(), make_case()
    copied = clone(strategy)
    ensure(type(copied) is type(strategy), "clone gives an object of another class.")
    ensure(
        repr(copied) == repr(strategy),
        f"clone turned {strategy!r} into {copied!r}; keep parameters in attributes of "
        "the same names.",
    )
    ensure(
        np.array_equal(ask(copied, case, 5), ask(strategy, case, 5)),
        "a clone asks for other items; keep whatever decides in parameters, not in "
        "attributes that clone leaves out.",
    )


def check_pickle(subject):
    """A strategy survives pickling and asks the same after it."""
    strategy, case = subject.make(), make_case()
    try:
        restored = pickle.loads(pickle.dumps(strategy))
    except Exception as exc:
        raise AssertionError(
            f"it cannot be pickled ({type(exc).__name__}: {exc}); define classes and "
            "functions at the top of a module, and hold no open files or lambdas."
        ) from exc
    ensure(
        repr(restored) == repr(strategy)
        and np.array_equal(ask(restored, case, 5), ask(strategy, case, 5)),
        "after pickling it asks for other items; keep in parameters whatever decides.",
    )


def check_keeps_no_state(subject):
    """A query leaves the strategy as it was."""
    strategy = subject.make()
    before, contents = dict(vars(strategy)), _contents(strategy)
    ask(strategy, make_case(), 5)
    after = vars(strategy)
    changed = [
        name
        for name in sorted(before.keys() | after.keys())
        if name not in before or name not in after or before[name] is not after[name]
    ]
    changed = changed or [
        name
        for name, content in _contents(strategy).items()
        if content != contents[name]
    ]
    ensure(
        not changed,
        f"select changed the attributes {changed}; keep what a query computes in local "
        "variables, as the learner makes a fresh strategy for each.",
    )


def _contents(strategy):
    """Hash each attribute, so that a list that grew in place is noticed."""
    hashes = {}
    for name, value in vars(strategy).items():
        try:
            hashes[name] = joblib.hash(value)
        except Exception:  # such as a lambda, which has no content to hash
            hashes[name] = None
    return hashes


#: In the order in which they run; those of a class do not apply to functions.
OBJECT_CHECKS = (
    check_requires_known_names,
    check_select_is_a_method,
    check_init_only_stores,
    check_get_and_set_params,
)
#: They compare answers, so they run once it is known that answers are valid.
COPY_CHECKS = (check_keeps_no_state, check_clone, check_pickle)
