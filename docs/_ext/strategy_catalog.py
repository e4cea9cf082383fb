"""The directive `strategy-catalog`: tables of all built-in strategies.

The tables are made from the docstrings. Costs and sources are on the API pages.
"""

import inspect
import re
import sys

from skactive import get_strategy
from skactive._utils._labels import TARGETS
from skactive.registry import available

# Modules of `skactive.strategies`, in the order of the page.
FAMILIES = (
    "_uncertainty",
    "_committee",
    "_gradient",
    "_regression",
    "_coverage",
    "_clustering",
    "_contrastive",
    "_multi_label",
    "_wrappers",
)
HEADER = (
    "| name | what it queries | targets | needs | when to use |\n|---|---|---|---|---|"
)
SHORT = {"single-label": "classes", "multi-label": "labels", "regression": "numbers"}


def setup(app):
    """Register the directive."""
    # The tests write the tables without Sphinx.
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    class StrategyCatalog(SphinxDirective):
        def run(self):
            tables = self.parse_text_to_nodes(
                write_tables(), allow_section_headings=True
            )
            for node in tables:
                for table in node.findall(nodes.table):
                    table["classes"].append("catalog")
            return tables

    app.add_directive("strategy-catalog", StrategyCatalog)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_tables():
    """Return Markdown with a section for each family."""
    families = {}
    for entry in available():
        if entry.builtin:
            strategy = get_strategy(entry.full_name)
            module = type(strategy).__module__
            family = families.setdefault(module.rsplit(".", 1)[1], (module, []))
            family[1].append(_write_row(entry.name, strategy))
    if missing := sorted(set(families) - set(FAMILIES)):
        raise ValueError(f"FAMILIES lacks {missing}. Add them.")
    parts = []
    for module, rows in (families[name] for name in FAMILIES if name in families):
        title = _first_line(sys.modules[module].__doc__).rstrip(".")
        parts.append(f"## {title}\n\n{HEADER}\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _write_row(name, strategy):
    row = describe(strategy)
    link = f"{{py:class}}`{name} <skactive.strategies.{type(strategy).__name__}>`"
    when = re.match(r".*?[.;](?= |$)", row["when to use"])[0].rstrip(".;")
    what = row["definition"].removeprefix("Query ").rstrip(".")
    cells = [link, what, row["targets"], row["needs"], when]
    cells = [cell.replace("|", r"\|") for cell in cells]
    return f"| {' | '.join(cells)} |"


def describe(strategy):
    """Return what the docstring of a strategy says, as texts of one line."""
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


def _targets(strategy):
    if strategy.targets >= TARGETS:
        return "all"
    return ", ".join(SHORT[name] for name in SHORT if name in strategy.targets)


def _needs(strategy):
    needs = sorted(strategy.requires)
    parts = getattr(strategy, "parts", ())
    if parts:  # what the default parts need says nothing about others
        of_parts = [f"those of `{part}`" for part in parts]
        needs = [*sorted(strategy.own_requires), *of_parts]
    optional = sorted(getattr(strategy, "optional", frozenset()) - strategy.requires)
    return ", ".join([*needs, *(f"({name})" for name in optional)]) or "nothing"


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
