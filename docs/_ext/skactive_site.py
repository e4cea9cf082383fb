"""What the site needs beyond the extensions that it uses: pages whose Python runs."""

from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

KERNEL = {"name": "python3", "display_name": "python3"}


def read_page(text):
    """Return a Markdown page as a notebook with a cell for each Python block."""
    page = read_myst_markdown_notebook(
        text, config=MdParserConfig(), code_directive="python", add_source_map=True
    )
    page.metadata.setdefault("kernelspec", KERNEL)
    return page


def skip_foreign_members(app, what, name, member, skip, options):
    """Leave out members that skactive inherits from scikit-learn and skorch."""
    home = getattr(getattr(member, "fget", member), "__module__", None) or ""
    return True if home and not home.startswith("skactive") else None


def setup(app):
    """Connect the hooks."""
    app.connect("autodoc-skip-member", skip_foreign_members)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
