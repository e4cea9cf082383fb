"""The page of all built-in strategies, written from their classes."""

import inspect
import re
import sys

from ..registry import available, get_strategy

# In the order in which a reader meets them; each is a module of `strategies`.
FAMILIES = (
    "uncertainty",
    "bayesian",
    "committee",
    "gradient",
    "badge",
    "influence",
    "coverage",
    "clusters",
    "typiclust",
    "density",
    "representative",
    "discriminative",
    "composite",
)
COLUMNS = ("name", "definition", "needs", "cost", "when to use", "source")


def describe(strategy):
    """Read off a strategy's class what a table says of it.

    Parameters
    ----------
    strategy : Strategy
        With the paragraphs `Cost: ` and `When to use: ` in the Notes of its
        docstring.

    Returns
    -------
    row : dict of str to str
        Keys "definition", "needs", "cost", "when to use" and "source"; one line each.

    Raises
    ------
    ValueError
        If the docstring lacks one of them.

    Examples
    --------
    >>> from skactive import get_strategy
    >>> from skactive.cli._strategies import describe
    >>> describe(get_strategy("entropy"))["needs"]
    'proba'
    """
    docstring = inspect.getdoc(type(strategy)) or ""
    sections = _sections(docstring)
    row = {
        "definition": _first_line(docstring),
        "needs": _needs(strategy),
        "cost": _paragraph(sections.get("Notes", ""), "Cost: "),
        "when to use": _paragraph(sections.get("Notes", ""), "When to use: "),
        "source": _one_line(sections.get("References", "").split("\n\n")[0]),
    }
    missing = [key for key, value in row.items() if not value]
    if missing:
        raise ValueError(
            f"the docstring of {type(strategy).__name__} must say its "
            f"{' and '.join(missing)}; see skactive/strategies/uncertainty.py."
        )
    return row


def summarize(strategy):
    """Return the first paragraph of a strategy's docstring in one line, or ""."""
    described = getattr(strategy, "function", type(strategy))
    # The docstring of a base class would say nothing of the strategy.
    return _first_line(inspect.cleandoc(getattr(described, "__doc__", None) or ""))


def strategy_tables():
    """Write a Markdown table of each family of built-in strategies.

    Returns
    -------
    markdown : str

    Raises
    ------
    ValueError
        If a docstring lacks a part, or a family has no place in the order.
    """
    families = {}
    for entry in available():
        if entry.builtin:
            strategy = get_strategy(entry.full_name)
            module = type(strategy).__module__
            family = families.setdefault(module.rsplit(".", 1)[1], (module, {}))
            family[1][entry.name] = describe(strategy)
    homeless = sorted(set(families) - set(FAMILIES))
    if homeless:
        raise ValueError(f"FAMILIES lacks {homeless}. Say where they stand.")
    parts = []
    for family in FAMILIES:
        if family not in families:
            continue
        module, rows = families[family]
        title = _one_line(_first_line(sys.modules[module].__doc__)).rstrip(".")
        parts.append(f"### {title}\n\n{_table(rows)}")
    return "\n\n".join(parts) + "\n"


def _table(rows):
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for name, row in rows.items():
        cells = [f"`{name}`", *(row[column] for column in COLUMNS[1:])]
        lines.append("| " + " | ".join(c.replace("|", r"\|") for c in cells) + " |")
    return "\n".join(lines)


def _needs(strategy):
    requires = strategy.requires
    if requires is None:
        return "whatever it asks"
    needs = sorted(requires)
    parts = getattr(strategy, "_parts", ())
    if parts:  # what the default parts need says nothing about others
        needs = [*sorted(strategy._needs), *(f"what `{part}` needs" for part in parts)]
    optional = sorted(getattr(strategy, "optional", frozenset()) - requires)
    said = ", ".join(needs) or "nothing"
    return said + (f"; uses {', '.join(optional)} if there" if optional else "")


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
