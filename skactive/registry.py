"""Find query strategies by name: the built-in ones and those of installed plugins.

A distribution offers strategies under the entry-point group ``skactive.strategies``;
the built-in ones use the same group. Listing imports nothing. Installing a plugin means
trusting its code, and nothing is fetched at run time.
"""

from contextlib import suppress
from typing import Any

from sklearn.base import clone

from ._utils import _plugins
from .strategies import FunctionStrategy

__all__ = ["available", "get_strategy", "get_strategy_names", "register", "unregister"]


GROUP = "skactive.strategies"


_group = _plugins.Group(GROUP, "strategy", "strategies", "strategy")


def available() -> tuple[_plugins.Plugin, ...]:
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
    return _group.available()


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
    return _group.names()


def find(name):
    """Return the entry of `name` or `dist:name`, without importing anything."""
    return _group.find(name)


def load(entry):
    """Import the class or function; an ImportError names the distribution."""
    return _group.load(entry)


def find_plugin(offered):
    """Return the plugin that offers a strategy's class or function, or None."""
    home = f"{offered.__module__}:{getattr(offered, '__qualname__', '')}"
    package = offered.__module__.split(".")[0]
    # An entry point may also name a class where it is imported to.
    plugins = [p for p in available() if p.value.split(":")[0].split(".")[0] == package]
    for plugin in sorted(plugins, key=lambda plugin: plugin.value != home):
        with suppress(ImportError):
            if load(plugin) is offered:
                return plugin
    return None


def get_strategy(name: str, **params: Any) -> Any:
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
        strategy = _plugins.make("strategy", entry.name, offered, params)
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
        raise TypeError(
            f"{argument!r} must be a name, an instance or a function, got the class "
            f"{strategy.__name__}. Pass an instance: {strategy.__name__}()."
        )
    if callable(getattr(strategy, "select", None)):
        _plugins.validate(strategy)
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
    >>> from skactive.registry import register, unregister
    >>> def longest(view):
    ...     return [len(text) for text in view.X]
    >>> register("longest", longest)
    >>> model = make_pipeline(CountVectorizer(), MultinomialNB())
    >>> learner = ActiveLearner(model, strategy="longest")
    >>> learner = learner.fit(["good film", "bad film"], ["yes", "no"])
    >>> pool = ["fine", "not a film for everyone", "so long"]
    >>> pool[learner.query(pool, 1)[0]]
    'not a film for everyone'
    >>> unregister("longest")
    """
    if not callable(strategy) or not hasattr(strategy, "__qualname__"):
        raise TypeError(
            "'strategy' must be a Strategy class or a function f(view), got "
            f"{strategy!r}. An instance needs no name: pass it as strategy=."
        )
    _group.register(name, strategy, replace=replace)


def unregister(name: str) -> None:
    """Remove a name given by :func:`register`.

    Parameters
    ----------
    name : str
        The name.

    Raises
    ------
    ValueError
        If this process has not registered the name.

    Examples
    --------
    >>> from skactive import get_strategy_names
    >>> from skactive.registry import register, unregister
    >>> register("shortest", lambda view: [-len(text) for text in view.X])
    >>> "shortest" in get_strategy_names()
    True
    >>> unregister("shortest")
    >>> "shortest" in get_strategy_names()
    False
    """
    _group.unregister(name)


def refresh():
    """Read the installed entry points again, after an installation in this process."""
    _group.refresh()
