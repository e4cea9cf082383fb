"""Find query strategies by name: the built-in ones and those of installed plugins.

A distribution offers strategies under the entry-point group ``skactive.strategies``;
the built-in ones use the same group. Listing imports nothing. Installing a plugin is
trusting its code, and nothing is ever fetched at run time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from sklearn.base import clone

from .strategies.base import FunctionStrategy

__all__ = [
    "GROUP",
    "Entry",
    "available",
    "get_strategy",
    "get_strategy_names",
    "refresh",
    "register",
    "resolve",
    "unregister",
]

GROUP = "skactive.strategies"

# What this process has registered by hand: name -> class or function.
_registered = {}


@dataclass(frozen=True)
class Entry:
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

    name: str
    value: str
    dist: str
    version: str

    @property
    def builtin(self):
        """Whether skactive itself offers it."""
        return self.dist == "skactive"

    @property
    def full_name(self):
        """The name that is never ambiguous, `dist:name`."""
        return f"{self.dist}:{self.name}"

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
        if self.dist == _SESSION:
            return _registered[self.name]
        try:
            return EntryPoint(self.name, self.value, GROUP).load()
        except Exception as exc:  # whatever a plugin raises while it is imported
            raise ImportError(
                f"the strategy {self.name!r} of {self.dist} {self.version} cannot be "
                f"loaded from {self.value!r}: {type(exc).__name__}: {exc}. Repair or "
                f"uninstall {self.dist}; other strategies are not affected."
            ) from exc


_SESSION = "this session"


@cache
def _installed():
    """Read the entry points once; it takes some 20 ms."""
    entries = {
        Entry(point.name, point.value, *_provenance(point))
        for point in entry_points(group=GROUP)
    }
    return tuple(sorted(entries, key=lambda entry: (entry.name, entry.dist)))


def _provenance(point):
    """Name and version of a distribution; an interrupted removal may leave neither."""
    try:
        return _canonical(point.dist.name), point.dist.version or ""
    except Exception:  # what damaged metadata raises differs between Pythons
        return "unknown", ""


def _canonical(dist):
    return re.sub(r"[-_.]+", "-", dist).lower()


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
    ['entropy', 'least_confidence']
    """
    own = [
        Entry(name, f"{obj.__module__}:{obj.__qualname__}", _SESSION, "")
        for name, obj in _registered.items()
    ]
    installed = [entry for entry in _installed() if entry.name not in _registered]
    return tuple(sorted([*own, *installed], key=lambda e: (e.name, e.dist)))


def get_strategy_names():
    """Names that `strategy=` takes, in alphabetical order.

    Returns
    -------
    names : list of str
        A name that several distributions offer appears as `dist:name` for each.
    """
    entries = available()
    names = [entry.name for entry in entries]
    return sorted(
        entry.name if names.count(entry.name) == 1 else entry.full_name
        for entry in entries
    )


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
        If no distribution offers the name, or several do.
    TypeError
        If `name` is no str.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"'name' must be a str, got {name!r}. A strategy itself needs no name: "
            "pass it as strategy=."
        )
    dist, _, short = name.partition(":") if ":" in name else ("", "", name)
    entries = available()
    # What the session registered in place of an installed strategy hides that name,
    # but not the long way to it.
    pool = (*entries, *_installed()) if dist else entries
    matches = {
        entry
        for entry in pool
        if entry.name == short and (not dist or entry.dist == _canonical(dist))
    }
    if len(matches) == 1:
        return matches.pop()
    if matches:
        found = sorted(matches, key=lambda entry: entry.dist)
        offers = " and ".join(f"{e.dist} {e.version} ({e.value})" for e in found)
        choices = " or ".join(repr(e.full_name) for e in found)
        raise ValueError(
            f"the strategy name {name!r} is offered by {offers}. Say which: {choices}."
        )
    names = get_strategy_names()
    if dist:
        full = [entry.full_name for entry in entries]
        close = [entry.full_name for entry in entries if entry.name == short]
        close = close or get_close_matches(name, full, n=3, cutoff=0.8)
    else:
        close = get_close_matches(name.lower(), names, n=3)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ValueError(
        f"unknown strategy {name!r}.{hint} Installed are: {', '.join(names)}. Plugins "
        f"add names through the entry-point group {GROUP!r}."
    )


def get_strategy(name, **params):
    """Make the strategy of a name.

    Parameters
    ----------
    name : str
        A name, or `dist:name` where several distributions offer one.
    **params
        Parameters of the strategy.

    Returns
    -------
    strategy : Strategy

    Raises
    ------
    ValueError
        If the name is unknown or ambiguous.
    ImportError
        If the plugin that offers it cannot be imported.
    TypeError
        If `name` is no str, or what the plugin offers is no strategy or does not take
        the parameters.

    Examples
    --------
    >>> from skactive import get_strategy
    >>> get_strategy("margin")
    Margin()
    """
    entry = find(name)
    offered = entry.load()
    if isinstance(offered, type):
        strategy = offered(**params)
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
    """
    if isinstance(strategy, str):
        return get_strategy(strategy)
    if isinstance(strategy, type):
        raise TypeError(
            f"{argument!r} must be a name, an instance or a function, got the class "
            f"{strategy.__name__}. Pass an instance: {strategy.__name__}()."
        )
    if callable(getattr(strategy, "select", None)):
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
    if not isinstance(name, str) or not name or ":" in name:
        raise ValueError(f"'name' must be a str without a colon, got {name!r}.")
    if not callable(strategy) or not hasattr(strategy, "__qualname__"):
        raise TypeError(
            "'strategy' must be a Strategy class or a function f(view), got "
            f"{strategy!r}. An instance needs no name: pass it as strategy=."
        )
    taken = [entry for entry in available() if entry.name == name]
    if taken and not replace:
        raise ValueError(
            f"the strategy name {name!r} is taken by {taken[0].dist} "
            f"({taken[0].value}). Choose another or pass replace=True."
        )
    _registered[name] = strategy


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
    if name not in _registered:
        raise ValueError(f"the strategy name {name!r} was not registered here.")
    del _registered[name]


def refresh():
    """Read the installed entry points again, after an installation in this process."""
    _installed.cache_clear()
