"""Find query strategies by name: the built-in ones and those of installed plugins.

A distribution offers strategies under the entry-point group ``skactive.strategies``;
the built-in ones use the same group. Listing imports nothing. Installing a plugin is
trusting its code, and nothing is ever fetched at run time.
"""

from sklearn.base import clone

from ._utils import _plugins
from .strategies._base import FunctionStrategy

__all__ = ["available", "get_strategy", "get_strategy_names", "register", "unregister"]


GROUP = "skactive.strategies"


class Entry(_plugins.Entry):
    """One strategy that can be asked for by name.

    Attributes
    ----------
    name : str
        What `strategy=` takes.
    value : str
        Where it is defined, as `module:object`.
    dist : str
        The distribution that offers it; "this session" after :func:`register`.
    version : str
        The version of that distribution, "" after :func:`register`.
    """

    def load(self):
        """Import the strategy's class or function.

        Returns
        -------
        strategy : type or callable

        Raises
        ------
        ImportError
            If the plugin cannot be imported, naming its distribution.
        """
        return _group.load(self)


_group = _plugins.Group(GROUP, "strategy", "strategies", "strategy", Entry)


def available():
    """List every strategy that can be named, without importing any.

    Returns
    -------
    entries : tuple of Entry
        Sorted by name. A name that several distributions offer stands there once
        for each.

    Examples
    --------
    >>> from skactive.registry import available
    >>> [entry.name for entry in available() if entry.builtin][:2]
    ['alps', 'badge']
    """
    return _group.available()


def get_strategy_names():
    """Names that `strategy=` takes, in alphabetical order.

    Returns
    -------
    names : list of str
        A built-in name stands for the built-in strategy. Any other name that several
        distributions offer appears as `dist:name` for each.
    """
    return _group.names()


def find(name):
    """Look one name up, without importing anything.

    Parameters
    ----------
    name : str
        `name` or `dist:name`.

    Returns
    -------
    entry : Entry

    Raises
    ------
    ValueError
        If no distribution offers the name, or several do and none is skactive.
    TypeError
        If `name` is no str.
    """
    return _group.find(name)


def get_strategy(name, **params):
    """Make the strategy of a name.

    Parameters
    ----------
    name : str
        A name, or `dist:name`. The name of a built-in strategy means that strategy,
        whatever plugins offer; a plugin's of the same name is `dist:name`.
    **params
        Parameters of the strategy.

    Returns
    -------
    strategy : Strategy

    Raises
    ------
    ValueError
        If the name is unknown or ambiguous, or the value of a parameter is invalid.
    ImportError
        If the plugin that offers it cannot be imported.
    TypeError
        If `name` is no str, the strategy does not take the parameters or needs others,
        or what the plugin offers is no strategy.

    Examples
    --------
    >>> from skactive import get_strategy
    >>> get_strategy("margin")
    Margin()
    """
    entry = find(name)
    offered = entry.load()
    if isinstance(offered, type):
        strategy = _group.make(entry, offered, params)
        if not callable(getattr(strategy, "select", None)):
            raise TypeError(
                f"{entry.value!r}, which {entry.dist} {entry.version} offers as the "
                f"strategy {entry.name!r}, has no method select(view, n). Derive it "
                "from skactive.strategies.Strategy."
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
    """Make a fresh strategy of whatever a user passes as one.

    Parameters
    ----------
    strategy : str, Strategy instance or callable
        A name, an instance (it is cloned), or a function `f(view)` that returns
        scores.
    argument : str, default="strategy"
        What to call the argument in error messages.

    Returns
    -------
    strategy : Strategy

    Raises
    ------
    ValueError
        If a name is unknown or ambiguous, or a parameter of the strategy is invalid.
    TypeError
        If it is no strategy.
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
        f"{argument!r} must be a name, a strategy with a method select(view, n), or a "
        f"function f(view) that returns scores, got {strategy!r}."
    )


def register(name, strategy, *, replace=False):
    """Give a class or function a name for the rest of this process.

    For notebooks and tests. Worker processes do not know the name: with `n_jobs`
    above 1 pass the object itself, or install a plugin.

    Parameters
    ----------
    name : str
        The name; it may not hold a colon.
    strategy : Strategy class, or callable
        A class that can be made without arguments, or a function `f(view)`.
    replace : bool, default=False
        Whether the name may hide one that exists.

    Raises
    ------
    ValueError
        If the name is taken, or is no good name.
    TypeError
        If `strategy` is neither a class nor a function.
    """
    if not callable(strategy) or not hasattr(strategy, "__qualname__"):
        raise TypeError(
            "'strategy' must be a Strategy class or a function f(view), got "
            f"{strategy!r}. An instance needs no name: pass it as strategy=."
        )
    _group.register(name, strategy, replace=replace)


def unregister(name):
    """Take back a name given by :func:`register`.

    Parameters
    ----------
    name : str

    Raises
    ------
    ValueError
        If this process has not registered the name.
    """
    _group.unregister(name)


def refresh():
    """Read the installed entry points again, after an installation in this process."""
    _group.refresh()
