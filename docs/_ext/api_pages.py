"""API reference: a page for each exported name, in groups.

The groups are the pages of docs/api, written by hand. autosummary makes the page of
each name from `_templates/autosummary`. This extension checks that each exported name
is in one group, and finds the comments that document constants.
"""

import importlib
import pkgutil
import re
from pathlib import Path

from sphinx.util import logging

import skactive

logger = logging.getLogger(__name__)
PLUMBING = {"get_metadata_routing", "get_params", "set_params"}


def list_exported():
    """Return the full name of everything that skactive exports."""
    modules = ["learner", "posterior", "registry", "runtime", "semi_supervised"]
    modules += [
        module.name
        for module in pkgutil.iter_modules(skactive.__path__)
        if module.ispkg and not module.name.startswith("_")
    ]
    names = {f"skactive.{name}" for name in skactive.__all__} - {"skactive.__version__"}
    for module in modules:
        exported = importlib.import_module(f"skactive.{module}").__all__
        names |= {f"skactive.{module}.{name}" for name in exported}
    return names


def _read(fullname):
    module, _, name = fullname.rpartition(".")
    return getattr(importlib.import_module(module), name)


def list_grouped(folder):
    """Return the full names in the tables of the pages in a folder."""
    found = []
    for page in sorted(Path(folder).glob("*.rst")):
        module = None
        for line in page.read_text("utf-8").splitlines():
            if directive := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = directive[1]
            elif module and (name := re.fullmatch(r"   (\w+)", line)):
                found.append(f"{module}.{name[1]}")
    return found


def check_groups(app):
    """Warn of a name in no group, of one in two groups, and of one that is no name."""
    grouped, exported = list_grouped(Path(app.srcdir) / "api"), list_exported()
    # What several packages export has one page.
    shown = {id(_read(name)) for name in exported & set(grouped)}
    elsewhere = {name for name in exported if id(_read(name)) in shown}
    twice = {name for name in grouped if grouped.count(name) > 1}
    for problem, names in {
        "no group of docs/api": exported - elsewhere,
        "two groups of docs/api": twice,
        "a group of docs/api, but not exported": set(grouped) - exported,
    }.items():
        for name in sorted(names):
            logger.warning("%s is in %s", name, problem)


def read_comment(fullname):
    """Return the lines of the `#:` comment above a constant, in whatever module."""
    package, _, name = fullname.rpartition(".")
    comment = re.compile(rf"(?m)((?:^#:.*\n)+)^{name} = ")
    for folder in importlib.import_module(package).__path__:
        for file in sorted(Path(folder).glob("*.py")):
            if found := comment.search(file.read_text("utf-8")):
                return [line[2:].strip() for line in found[1].splitlines()]
    return []


def document_constant(app, what, name, obj, options, lines):
    """Replace the docstring of a constant's type by the comment of the constant."""
    if what == "data":
        lines[:] = read_comment(name)


def skip_plumbing(app, what, name, member, skip, options):
    """Leave out what is inherited from others, and what only scikit-learn calls."""
    home = getattr(getattr(member, "fget", member), "__module__", None) or "skactive"
    foreign = not home.startswith("skactive")
    return True if foreign or name in PLUMBING else None


def configure(app, config):
    """Set what the pages of names need."""
    config.default_role = "obj"  # `name` is code, and a link where the name has a page
    config.toc_object_entries_show_parents = "hide"
    config.smartquotes = False  # values such as "auto" are typed with straight quotes
    config.templates_path.append("_templates")
    gallery = "sphinx_gallery.gen_gallery" in config.extensions
    config.autosummary_context["gallery"] = gallery


def setup(app):
    """Connect the hooks."""
    app.connect("config-inited", configure)
    app.connect("builder-inited", check_groups)
    app.connect("autodoc-skip-member", skip_plumbing)
    # After numpydoc, which would read the docstring of the type.
    app.connect("autodoc-process-docstring", document_constant, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
