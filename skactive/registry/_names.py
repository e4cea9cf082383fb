"""Query strategies by name."""

from typing import Any

from sklearn.base import clone

from .._utils._plugins import (
    Plugin,
    find,
    list_entries,
    list_names,
    load,
    make,
    refuse_abstract,
    registered,
    validate,
)
from .._utils._sklearn import check_bool
from ._base import FunctionStrategy, Strategy


def available() -> tuple[Plugin, ...]:
    """Return every strategy that has a name, without importing any.

    Returns
    -------
    entries : tuple of Plugin
        Their `name`, `value`, `dist` ("this session" after `register`) and `version`,
        sorted by name. A name that several distributions offer appears once for each.

    Examples
    --------
    Where does a name come from?

    >>> from skactive.registry import available
    >>> {entry.name: entry.dist for entry in available()}["margin"]
    'skactive'
    """
    return list_entries()


def get_strategy_names() -> list[str]:
    """Return the names that `strategy=` accepts, in alphabetical order.

    Returns
    -------
    names : list of str
        The name of a built-in strategy means the built-in one. Any other name that
        several distributions offer appears as `dist:name` for each.

    Examples
    --------
    >>> from skactive import get_strategy_names
    >>> [name for name in get_strategy_names() if "bald" in name]
    ['bald', 'batchbald']
    """
    return list_names()


def get_strategy(name: str, **params: Any) -> Strategy:
    """Return the strategy of a name.

    Parameters
    ----------
    name : str
        A name, or `dist:name`. The name of a built-in strategy always means the
        built-in one; a plugin's of the same name is `dist:name`.
    **params : dict
        Parameters of the strategy.

    Returns
    -------
    strategy : Strategy
        A new instance.

    Raises
    ------
    ValueError
        If the name is unknown or ambiguous, or the value of a parameter is invalid.
    ImportError
        If the plugin that offers it cannot be imported.
    TypeError
        If `name` is not a str, a parameter is unknown or missing, or the plugin offers
        something else than a strategy.

    Examples
    --------
    >>> from skactive import ActiveLearner, get_strategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = get_strategy("greedy_sampling", space="input")
    >>> learner = ActiveLearner(LogisticRegression(), strategy)
    >>> learner = learner.fit([[-1.0], [1.0]], ["cold", "warm"])
    >>> learner.query([[-3.0], [0.1], [9.0]], 1)  # the item farthest from the labels
    array([2])
    """
    entry = find(name)
    offered = load(entry)
    if isinstance(offered, type):
        strategy = make("strategy", entry.name, offered, params)
        if not callable(getattr(strategy, "select", None)):
            raise TypeError(
                f"{entry.value!r}, which {entry.dist} {entry.version} offers as the "
                f"strategy {entry.name!r}, has no method select(view, n_queries). "
                "Derive it from skactive.strategies.Strategy."
            )
        return strategy
    if not callable(offered):
        raise TypeError(
            f"{entry.value!r}, which {entry.dist} {entry.version} offers as the "
            f"strategy {entry.name!r}, must be a class or a function f(view), got "
            f"{type(offered).__name__}."
        )
    if params:
        raise TypeError(
            f"the strategy {entry.name!r} is a plain function and takes no "
            f"parameters, got {sorted(params)}."
        )
    return FunctionStrategy(offered)


def resolve(strategy, *, argument="strategy"):
    """Return a fresh strategy from a name, an instance (which is cloned) or a function.

    `argument` is the name of the argument in errors: a ValueError for an unknown name
    or an invalid parameter, a TypeError for anything that is not a strategy.
    """
    if isinstance(strategy, str):
        return get_strategy(strategy)
    if isinstance(strategy, type):
        refuse_abstract(repr(argument), strategy)
        raise TypeError(
            f"{argument!r} must be a name, an instance or a function, got the class "
            f"{strategy.__name__}. Pass an instance: {strategy.__name__}()."
        )
    if callable(getattr(strategy, "select", None)):
        validate(strategy)
        return clone(strategy, safe=False)
    if callable(strategy):
        return FunctionStrategy(strategy)
    raise TypeError(
        f"{argument!r} must be a name, a strategy with a method select(view, n_queries)"
        f", or a function f(view) that returns scores, got {strategy!r}."
    )


def register(name: str, strategy: Any, *, replace: bool = False) -> None:
    """Register a class or function under a name for the rest of this process.

    For notebooks and tests. Worker processes do not know the name: with `n_jobs`
    above 1 pass the object itself, or install a plugin.

    Parameters
    ----------
    name : str
        The name, without a colon.
    strategy : Strategy class, or callable
        A class that can be made without arguments, or a function `f(view)`.
    replace : bool, default=False
        Whether the name may replace an existing one.

    Raises
    ------
    ValueError
        If the name is taken or invalid.
    TypeError
        If `strategy` is neither a class nor a function.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive import ActiveLearner
    >>> from skactive.registry import register
    >>> def longest(view):
    ...     return [len(text) for text in view.X]
    >>> register("longest", longest)
    >>> model = make_pipeline(CountVectorizer(), MultinomialNB())
    >>> learner = ActiveLearner(model, strategy="longest")
    >>> learner = learner.fit(["good film", "bad film"], ["yes", "no"])
    >>> pool = ["fine", "not a film for everyone", "so long"]
    >>> pool[learner.query(pool, 1)[0]]
    'not a film for everyone'
    """
    if not callable(strategy) or not hasattr(strategy, "__qualname__"):
        raise TypeError(
            "'strategy' must be a Strategy class or a function f(view), got "
            f"{strategy!r}. An instance needs no name: pass it as strategy=."
        )
    if not isinstance(name, str) or not name or ":" in name:
        raise ValueError(f"'name' must be a str without a colon, got {name!r}.")
    check_bool("replace", replace)
    taken = [entry for entry in available() if entry.name == name]
    if taken and not replace:
        raise ValueError(
            f"the strategy name {name!r} is taken by {taken[0].dist} "
            f"({taken[0].value}). Choose another or pass replace=True."
        )
    registered[name] = strategy


def unregister(name):
    """Remove a name given by :func:`register`."""
    if not isinstance(name, str) or name not in registered:
        raise ValueError(
            "'name' must be a name that this process has registered, and the strategy "
            f"name {name!r} was not registered here."
        )
    del registered[name]
