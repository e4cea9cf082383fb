"""The command `strategies`: the installed strategies and their documentation."""

import inspect
import re
import sys
import warnings

from .._utils._format import format_table
from ..registry import available, get_strategy
from ..strategies._base import TARGETS
from ..testing import check_strategy
from ..view._quantities import check_declarations

# Modules of `strategies`, in the order of the documentation.
FAMILIES = (
    "_uncertainty",
    "_bayesian",
    "_committee",
    "_gradient",
    "_influence",
    "_regression",
    "_coverage",
    "_clustering",
    "_representative",
    "_contrastive",
    "_multi_label",
    "_wrappers",
)
COLUMNS = ("name", "definition", "targets", "needs", "cost", "when to use", "source")


def run_strategies(args):
    """List the installed strategies, or print the tables of the documentation."""
    if args.markdown:
        print(strategy_tables(), end="")
        return 0
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


def describe(strategy):
    """Return the cells of a strategy in the tables, read from its docstring."""
    docstring = inspect.getdoc(type(strategy)) or ""
    sections = _sections(docstring)
    row = {
        "definition": _first_line(docstring),
        "targets": _targets(strategy),
        "needs": _needs(strategy),
        "cost": _paragraph(sections.get("Notes", ""), "Cost: "),
        "when to use": _paragraph(sections.get("Notes", ""), "When to use: "),
        "source": _one_line(sections.get("References", "").split("\n\n")[0]),
    }
    missing = [key for key, value in row.items() if not value]
    if missing:
        raise ValueError(
            f"the docstring of {type(strategy).__name__} must state its "
            f"{' and '.join(missing)}; see skactive/strategies/_uncertainty.py."
        )
    return row


def summarize(strategy):
    """Return the first paragraph of a strategy's docstring in one line, or ""."""
    described = getattr(strategy, "function", type(strategy))
    # The docstring of a base class would not describe the strategy.
    return _first_line(inspect.cleandoc(getattr(described, "__doc__", None) or ""))


def strategy_tables():
    """Return Markdown with a table for each family of built-in strategies."""
    families = {}
    for entry in available():
        if entry.builtin:
            strategy = get_strategy(entry.full_name)
            module = type(strategy).__module__
            family = families.setdefault(module.rsplit(".", 1)[1], (module, {}))
            family[1][entry.name] = describe(strategy)
    if missing := sorted(set(families) - set(FAMILIES)):
        raise ValueError(f"FAMILIES lacks {missing}. Add them.")
    parts = []
    for family in FAMILIES:
        if family not in families:
            continue
        module, rows = families[family]
        title = _one_line(_first_line(sys.modules[module].__doc__)).rstrip(".")
        parts.append(f"### {title}\n\n{_table(rows)}")
    return "\n\n".join(parts) + "\n"


def _table(rows):
    table = []
    for name, row in rows.items():
        cells = [f"`{name}`", *(row[column] for column in COLUMNS[1:])]
        table.append([cell.replace("|", r"\|") for cell in cells])
    return format_table(COLUMNS, table, "markdown")


def _targets(strategy):
    """Return the targets that a strategy is defined for as a text."""
    targets = getattr(strategy, "targets", TARGETS)
    if targets >= TARGETS:
        return "all"
    order = ("single-label", "multi-label", "regression")
    return ", ".join(name for name in order if name in targets)


def _needs(strategy):
    requires = strategy.requires
    if requires is None:
        return "not declared"
    needs = sorted(requires)
    parts = getattr(strategy, "_parts", ())
    if parts:  # what the default parts need says nothing about others
        needs = [*sorted(strategy._needs), *(f"what `{part}` needs" for part in parts)]
    optional = sorted(getattr(strategy, "optional", frozenset()) - requires)
    listed = ", ".join(needs) or "nothing"
    return listed + (f"; uses {', '.join(optional)} if there" if optional else "")


def _sections(docstring):
    """Split a numpydoc docstring into its sections by their titles."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", docstring, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _first_line(docstring):
    return _one_line(docstring.strip().split("\n\n")[0])


def _paragraph(notes, start):
    for block in notes.split("\n\n"):
        if block.strip().startswith(start):
            return _one_line(block)[len(start) :]
    return ""


def _one_line(text):
    return re.sub(r"\s+", " ", re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)).strip()
