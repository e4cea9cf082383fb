"""Plugins: strategies and annotators that distributions offer by name."""

import re
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, signature
from typing import Any

GROUP = "skactive.strategies"
ANNOTATORS = "skactive.annotators"
_KINDS = {GROUP: "strategy", ANNOTATORS: "annotator"}
_SESSION = "this session"
registered: dict[str, Any] = {}  # by hand, for this process


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
    points, provenance = entry_points(), cache(_provenance)  # reading one takes 0.5 ms
    entries = {
        Plugin(point.name, point.value, *provenance(point.dist), group)
        for group in _KINDS
        for point in points.select(group=group)
    }
    return tuple(sorted(entries, key=lambda entry: (entry.name, entry.dist)))


@lru_cache
def _owners(entries):
    """Return each unambiguous name with its entry: the built-in or only one."""
    names = [entry.name for entry in entries]
    return {e.name: e for e in entries if e.builtin or names.count(e.name) == 1}


def _provenance(dist):
    """Return name and version of a distribution, even with damaged metadata."""
    try:
        return _canonical(dist.name), dist.version or ""
    except Exception:  # what damaged metadata raises differs between Pythons
        return "unknown", ""


def _canonical(dist):
    return re.sub(r"[-_.]+", "-", dist).lower()


def list_entries(group=GROUP):
    """Return the entries of a group; only strategies are registered by hand."""
    hand = _by_hand(group)
    own = [
        Plugin(name, f"{obj.__module__}:{obj.__qualname__}", _SESSION, "")
        for name, obj in hand.items()
    ]
    installed = [entry for entry in _list_installed(group) if entry.name not in hand]
    return tuple(sorted([*own, *installed], key=lambda entry: (entry.name, entry.dist)))


def _by_hand(group):
    return registered if group == GROUP else {}


def _list_installed(group):
    return tuple(entry for entry in _installed() if entry.group == group)


def list_names(group=GROUP):
    """Return the names of a group, with `dist:` where one would be ambiguous."""
    entries = list_entries(group)
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
    entries = list_entries(group)
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
    names = list_names(group)
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
        return registered[entry.name]
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
    plugins = [
        p for p in list_entries() if p.value.split(":")[0].split(".")[0] == package
    ]
    for plugin in sorted(plugins, key=lambda plugin: plugin.value != home):
        with suppress(ImportError):
            if load(plugin) is offered:
                return plugin
    return None


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
    refuse_abstract(what, cls)
    instance = cls(**params)
    validate(instance)
    return instance


def refuse_abstract(what, cls):
    """Raise a TypeError that names what an abstract class lacks."""
    if lacks := " and ".join(sorted(getattr(cls, "__abstractmethods__", ()))):
        name = cls.__name__
        raise TypeError(f"{what} is the abstract class {name}. Write its {lacks}.")


def validate(instance):
    """Check the parameters of an object that declares `_parameter_constraints`."""
    if hasattr(instance, "_parameter_constraints"):
        instance._validate_params()


def read_declared(strategy, attribute, default=frozenset()):
    """Return the names that a strategy declares in an attribute, or the default."""
    return check_names(attribute, getattr(strategy, attribute, default), default)


def check_names(attribute, names, default):
    """Return names that a strategy declares; a TypeError unless they are a set."""
    if names is not default and not isinstance(names, frozenset | set):
        raise TypeError(
            f"`{attribute}` must be a frozenset of names, got {names!r}. Write "
            "frozenset({...}) with its names, or frozenset() for none."
        )
    return names
