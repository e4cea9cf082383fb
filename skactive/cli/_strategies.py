"""The command `strategies`: the installed strategies, and whether they work."""

import inspect
import re
import warnings

from .._utils._format import format_table
from .._utils._labels import TARGETS
from .._utils._plugins import find
from ..registry import available, get_strategy
from ..testing import check_strategy
from ..view import check_declarations
from ._parser import UsageError, say, show_line


def run_strategies(names, check):
    """List the installed strategies, or those that are named."""
    entries = available()
    chosen = _find_named(names) if names else entries
    _warn_of_builtin_names(chosen)
    if check:
        number = f"{len(chosen)} strateg{'y' if len(chosen) == 1 else 'ies'}"
        say(f"Checking {number} ...")
    rows = [_list_row(entry, entries, check=check) for entry in chosen]
    header = ("name", "what it does", "targets", "needs")
    header += ("distribution", "version", "state")
    show_line(format_table(header, rows, "text"))
    is_broken = any(row[-1].startswith(("broken", "fails")) for row in rows)
    return int(check and is_broken)


def _find_named(names):
    """Return the entries of names, each once."""
    try:
        return list(dict.fromkeys(map(find, names)))
    except ValueError as exc:
        raise UsageError(
            f"argument NAME: {exc} See `skactive strategies --help`."
        ) from exc


def _warn_of_builtin_names(entries):
    builtin = {entry.name for entry in entries if entry.builtin}
    hidden = [e for e in entries if e.name in builtin and not e.builtin]
    if hidden:
        names = ", ".join(repr(entry.full_name) for entry in hidden)
        warnings.warn(
            "plugins use names of built-in strategies. The names mean the built-in "
            f"ones. Use the strategies of the plugins as {names}.",
            stacklevel=1,
        )


def _list_row(entry, entries, *, check):
    """Return the row of one strategy; an error is reported in the row."""
    summary, targets, needs = "-", "-", "-"
    try:
        strategy = get_strategy(entry.full_name)
        summary = summarize(strategy) or "-"
        check_declarations(strategy)
        requires = strategy.requires
        needs = "not declared" if requires is None else ", ".join(sorted(requires))
        targets = _targets(strategy)
    except Exception as exc:
        state = f"broken: {_describe_error(exc)}"
    else:
        state = _find_state(strategy, entry, entries, check=check)
    origin = entry.dist, entry.version or "-"
    return entry.name, summary, targets, needs or "-", *origin, state


def _find_state(strategy, entry, entries, *, check):
    """Return the state of a strategy that can be loaded."""
    state = "ok"
    if check:
        try:
            state = f"{len(check_strategy(strategy))} checks passed"
        except Exception as exc:  # a failed check, or whatever the strategy raised
            return f"fails: {_describe_error(exc)}"
    others = [e for e in entries if e.name == entry.name and e != entry]
    if any(other.builtin for other in others):
        return f"{state}, as {entry.full_name}"
    if others and not entry.builtin:
        dists = ", ".join(other.dist for other in others)
        collision = f"collides with {dists}: use {entry.full_name}"
        return f"{state}; {collision}" if check else collision
    return state


def _describe_error(exc):
    return " ".join(str(exc).split()) or type(exc).__name__


def summarize(strategy):
    """Return the first paragraph of a strategy's docstring in one line, or ""."""
    described = getattr(strategy, "function", type(strategy))
    # The docstring of a base class would not describe the strategy.
    return _first_line(inspect.cleandoc(getattr(described, "__doc__", None) or ""))


def _targets(strategy):
    """Return the targets that a strategy is defined for as a text."""
    targets = getattr(strategy, "targets", TARGETS)
    if targets >= TARGETS:
        return "all"
    order = ("single-label", "multi-label", "regression")
    return ", ".join(name for name in order if name in targets)


def _first_line(docstring):
    text = docstring.strip().split("\n\n")[0]
    return re.sub(r"\s+", " ", re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)).strip()
