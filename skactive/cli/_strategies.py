"""The command `strategies`: the installed strategies, and whether they work."""

import inspect
import re
import warnings

from .._utils._format import format_table
from ..registry import available, get_strategy
from ..strategies._base import TARGETS
from ..testing import check_strategy
from ..view._quantities import check_declarations


def run_strategies(args):
    """List the installed strategies."""
    entries = available()
    _warn_of_builtin_names(entries)
    rows = [_list_row(entry, entries, check=args.check) for entry in entries]
    header = ("name", "what it does", "targets", "needs")
    header += ("distribution", "version", "state")
    print(format_table(header, rows, "text"))
    is_broken = any(row[-1].startswith(("broken", "fails")) for row in rows)
    return int(args.check and is_broken)


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
    summary, targets, needs, state = "-", "-", "-", "ok"
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
        others = [e for e in entries if e.name == entry.name and e != entry]
        if any(other.builtin for other in others):
            state = f"ok, as {entry.full_name}"
        elif others and not entry.builtin:
            others = [other.dist for other in others]
            state = f"collides with {', '.join(others)}: use {entry.full_name}"
        if check:
            state = _find_failure(strategy) or state
    origin = entry.dist, entry.version or "-"
    return entry.name, summary, targets, needs or "-", *origin, state


def _find_failure(strategy):
    try:
        check_strategy(strategy)
    except Exception as exc:  # a failed check, or whatever the strategy raised
        return f"fails: {_describe_error(exc)}"
    return ""


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
