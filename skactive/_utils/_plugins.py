"""Entry points of installed distributions, found by name.

Listing them imports nothing, and nothing is downloaded at run time.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, signature

from ._sklearn import check_bool

_SESSION = "this session"


@dataclass(frozen=True)
class Plugin:
    """One offered thing: its name, `module:object`, distribution and version.

    A thing registered by hand has the distribution "this session" and the version "".
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
        """The unambiguous name, `dist:name`."""
        return f"{self.dist}:{self.name}"


class Group:
    """An entry-point group.

    `kind` and `plural` name one and several of its things in errors, and `argument` the
    argument that accepts one. `registered` maps names to what was registered by hand.
    """

    def __init__(self, name, kind, plural, argument):
        self.name = name
        self.kind = kind
        self.plural = plural
        self.argument = argument
        self.registered = {}

    def installed(self):
        """Return the installed entries, sorted by name and distribution."""
        return _read(self.name)

    def available(self):
        """Return all entries, sorted by name, without importing anything.

        A name of several distributions has an entry for each. A name registered by hand
        hides the installed ones.
        """
        own = [
            Plugin(name, f"{obj.__module__}:{obj.__qualname__}", _SESSION, "")
            for name, obj in self.registered.items()
        ]
        installed = [e for e in self.installed() if e.name not in self.registered]
        return tuple(sorted([*own, *installed], key=lambda e: (e.name, e.dist)))

    def names(self):
        """Return the names in alphabetical order.

        A built-in name means the built-in thing. Any other name of several
        distributions appears as `dist:name` for each.
        """
        entries = self.available()
        owners = _owners(entries)
        return sorted(
            entry.name if owners.get(entry.name) == entry else entry.full_name
            for entry in entries
        )

    def find(self, name):
        """Return the entry of `name` or `dist:name`, without importing anything.

        Raise a ValueError for unknown and ambiguous names, and a TypeError for other
        types.
        """
        if not isinstance(name, str):
            raise TypeError(
                f"'name' must be a str, got {name!r}. A {self.kind} itself needs no "
                f"name: pass it as {self.argument}=."
            )
        owners = _owners(_read(self.name))
        if name in owners and name not in self.registered:
            return owners[name]
        dist, _, short = name.partition(":") if ":" in name else ("", "", name)
        entries = self.available()
        # What the session registered in place of an installed one hides that name,
        # but not the long way to it.
        pool = (*entries, *self.installed()) if dist else entries
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
                f"the {self.kind} name {name!r} is offered by {offers}. Say which: "
                f"{choices}."
            )
        names = self.names()
        if dist:
            known = [entry.name for entry in entries]
            shorts = get_close_matches(short.lower(), dict.fromkeys(known), n=3)
            shorts = [short] if short in known else shorts
            close = [e.full_name for s in shorts for e in entries if e.name == s]
        else:
            close = get_close_matches(name.lower(), names, n=3)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise ValueError(
            f"unknown {self.kind} {name!r}.{hint} Installed are: {', '.join(names)}. "
            f"Plugins add names through the entry-point group {self.name!r}."
        )

    def load(self, entry):
        """Import and return the object of an entry; an ImportError names the plugin."""
        if entry.dist == _SESSION:
            return self.registered[entry.name]
        try:
            return EntryPoint(entry.name, entry.value, self.name).load()
        except Exception as exc:  # whatever a plugin raises while it is imported
            raise ImportError(
                f"the {self.kind} {entry.name!r} of {entry.dist} {entry.version} "
                f"cannot be loaded from {entry.value!r}: {type(exc).__name__}: {exc}. "
                f"Repair or uninstall {entry.dist}; other {self.plural} are not "
                "affected."
            ) from exc

    def register(self, name, offered, *, replace=False):
        """Name something for the rest of this process; taken names are a ValueError."""
        if not isinstance(name, str) or not name or ":" in name:
            raise ValueError(f"'name' must be a str without a colon, got {name!r}.")
        check_bool("replace", replace)
        taken = [entry for entry in self.available() if entry.name == name]
        if taken and not replace:
            raise ValueError(
                f"the {self.kind} name {name!r} is taken by {taken[0].dist} "
                f"({taken[0].value}). Choose another or pass replace=True."
            )
        self.registered[name] = offered

    def unregister(self, name):
        """Remove a name given by :meth:`register`, or raise a ValueError."""
        if not isinstance(name, str) or name not in self.registered:
            raise ValueError(
                "'name' must be a name that this process has registered, and the "
                f"{self.kind} name {name!r} was not registered here."
            )
        del self.registered[name]

    @staticmethod
    def refresh():
        """Read the installed entry points again, after an installation."""
        _read.cache_clear()


_VARIADIC = {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}


def make(kind, name, cls, params):
    """Return an instance of the class that `name` stands for, with checked parameters.

    Raise a TypeError if a parameter is unknown or missing, and a ValueError if its
    value is invalid.
    """
    accepted = signature(cls).parameters.values()
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
        maker = f"get_{kind.replace(' ', '_')}"
        raise TypeError(
            f"{missing[0]!r} must be given: {what} has no default for it. Pass "
            f"an instance, such as {maker}({name!r}, {given})."
        )
    instance = cls(**params)
    validate(instance)
    return instance


def validate(instance):
    """Check the parameters of an object that declares `_parameter_constraints`."""
    if hasattr(instance, "_parameter_constraints"):
        instance._validate_params()


@cache
def _read(group):
    """Return the entries of a group, cached: reading takes about 20 ms."""
    entries = {
        Plugin(point.name, point.value, *_provenance(point))
        for point in entry_points(group=group)
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
