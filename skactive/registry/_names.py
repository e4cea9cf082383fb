"""Names of strategies and annotators: built-in ones and those of plugins."""

import re
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, signature
from typing import Any

from sklearn.base import clone

from .._utils._sklearn import check_bool
from ._base import FunctionStrategy

GROUP = "skactive.strategies"
ANNOTATORS = "skactive.annotators"
_KINDS = {GROUP: "strategy", ANNOTATORS: "annotator"}
_SESSION = "this session"
_registered: dict[str, Any] = {}  # by hand, for this process


@dataclass(frozen=True)
class Plugin:
    """One offered thing: its name, `module:object`, distribution and version.

    A thing registered by hand has the distribution "this session" and the version "".
    `group` is that of its entry point.
    """

    name: str
    value: str
    dist: str
    version: str
    group: str = GROUP

    @property
    def builtin(self):
        """Whether skactive itself offers it."""
        return self.dist == "skactive"

    @property
    def full_name(self):
        """The unambiguous name, `dist:name`."""
        return f"{self.dist}:{self.name}"


@cache
def _installed():
    """Return the installed entries, cached: reading takes about 20 ms."""
    points = entry_points()
    entries = {
        Plugin(point.name, point.value, *_provenance(point), group)
        for group in _KINDS
        for point in points.select(group=group)
    }
    return tuple(sorted(entries, key=lambda entry: (entry.name, entry.dist)))


@lru_cache
def _owners(entries):
    """Return each unambiguous name with its entry: the built-in or only one."""
    names = [entry.name for entry in entries]
    return {e.name: e for e in entries if e.builtin or names.count(e.name) == 1}


def _provenance(point):
    """Return name and version of a distribution, even with damaged metadata."""
    try:
        return _canonical(point.dist.name), point.dist.version or ""
    except Exception:  # what damaged metadata raises differs between Pythons
        return "unknown", ""


def _canonical(dist):
    return re.sub(r"[-_.]+", "-", dist).lower()


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
    return _list(GROUP)


def _list(group):
    """Return the entries of a group; only strategies are registered by hand."""
    hand = _by_hand(group)
    own = [
        Plugin(name, f"{obj.__module__}:{obj.__qualname__}", _SESSION, "")
        for name, obj in hand.items()
    ]
    installed = [entry for entry in _list_installed(group) if entry.name not in hand]
    return tuple(sorted([*own, *installed], key=lambda entry: (entry.name, entry.dist)))


def _by_hand(group):
    return _registered if group == GROUP else {}


def _list_installed(group):
    return tuple(entry for entry in _installed() if entry.group == group)


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
    return _list_names(GROUP)


def _list_names(group):
    entries = _list(group)
    owners = _owners(entries)
    return sorted(
        entry.name if owners.get(entry.name) == entry else entry.full_name
        for entry in entries
    )


def find(name, group=GROUP):
    """Return the entry of `name` or `dist:name`, without importing anything."""
    kind = _KINDS[group]
    if not isinstance(name, str):
        raise TypeError(
            f"'name' must be a str, got {name!r}. The {kind} itself needs no name: "
            f"pass it as {kind}=."
        )
    installed = _list_installed(group)
    owners = _owners(installed)
    if name in owners and name not in _by_hand(group):
        return owners[name]
    entries = _list(group)
    dist, _, short = name.partition(":") if ":" in name else ("", "", name)
    # What the session registered in place of an installed one hides that name, but not
    # the long way to it.
    matches = {
        entry
        for entry in ((*entries, *installed) if dist else entries)
        if entry.name == short and (not dist or entry.dist == _canonical(dist))
    }
    if len(matches) == 1:
        return matches.pop()
    if matches:
        found = sorted(matches, key=lambda entry: entry.dist)
        offers = " and ".join(f"{e.dist} {e.version} ({e.value})" for e in found)
        choices = " or ".join(repr(e.full_name) for e in found)
        raise ValueError(
            f"the {kind} name {name!r} is offered by {offers}. Say which: {choices}."
        )
    names = _list_names(group)
    if dist:
        known = [entry.name for entry in entries]
        shorts = get_close_matches(short.lower(), dict.fromkeys(known), n=3)
        shorts = [short] if short in known else shorts
        close = [e.full_name for s in shorts for e in entries if e.name == s]
    else:
        close = get_close_matches(name.lower(), names, n=3)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ValueError(
        f"unknown {kind} {name!r}.{hint} Installed are: {', '.join(names)}. "
        f"Plugins add names through the entry-point group {group!r}."
    )


def load(entry):
    """Import the class or function; an ImportError names the distribution."""
    if entry.dist == _SESSION:
        return _registered[entry.name]
    try:
        return EntryPoint(entry.name, entry.value, entry.group).load()
    except Exception as exc:  # whatever a plugin raises while it is imported
        kind = _KINDS[entry.group]
        raise ImportError(
            f"the {kind} {entry.name!r} of {entry.dist} {entry.version} cannot be "
            f"loaded from {entry.value!r}: {type(exc).__name__}: {exc}. Repair or "
            f"uninstall {entry.dist}; other {entry.group.partition('.')[2]} are not "
            "affected."
        ) from exc


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


_signature = lru_cache(signature)  # a loop asks for it several times a round
_VARIADIC = {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}


def make(kind, name, cls, params):
    """Return an instance of the class that `name` stands for, with checked parameters.

    Raise a TypeError if a parameter is unknown or missing, and a ValueError if its
    value is invalid.
    """
    accepted = _signature(cls).parameters.values()
    what = f"the {kind} {name!r}"
    kinds = {parameter.kind for parameter in accepted}
    names = [p.name for p in accepted if p.kind not in _VARIADIC]
    unknown = sorted(set(params) - set(names))
    if unknown and Parameter.VAR_KEYWORD not in kinds:
        close = get_close_matches(unknown[0], names, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else "Leave it out."
        takes = ", ".join(map(repr, names)) or "no parameters"
        raise TypeError(
            f"{unknown[0]!r} must be a parameter of {what}, which takes {takes}. {hint}"
        )
    missing = [
        p.name
        for p in accepted
        if p.kind not in _VARIADIC
        and p.default is Parameter.empty
        and p.name not in params
    ]
    if missing:
        given = ", ".join(f"{name}=..." for name in missing)
        raise TypeError(
            f"{missing[0]!r} must be given: {what} has no default for it. Pass "
            f"an instance, such as {cls.__name__}({given})."
        )
    instance = cls(**params)
    validate(instance)
    return instance


def validate(instance):
    """Check the parameters of an object that declares `_parameter_constraints`."""
    if hasattr(instance, "_parameter_constraints"):
        instance._validate_params()


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
    _registered[name] = strategy


def unregister(name):
    """Remove a name given by :func:`register`."""
    if not isinstance(name, str) or name not in _registered:
        raise ValueError(
            "'name' must be a name that this process has registered, and the strategy "
            f"name {name!r} was not registered here."
        )
    del _registered[name]


def refresh():
    """Read the installed entry points again, after an installation in this process."""
    _installed.cache_clear()
