"""What the site needs beyond the extensions that it uses.

Pages whose Python runs, and checked links.
"""

import os
import sys
import tempfile
import uuid
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import jupyter_client
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from sphinx.util import logging
from traitlets import default

logger = logging.getLogger(__name__)
KERNEL = {"name": "python3", "display_name": "python3"}


def read_page(text):
    """Return a Markdown page as a notebook with a cell for each Python block."""
    page = read_myst_markdown_notebook(
        text, config=MdParserConfig(), code_directive="python", add_source_map=True
    )
    page.metadata.setdefault("kernelspec", KERNEL)
    return page


class KernelManager(jupyter_client.AsyncKernelManager):
    """Start kernels that use Unix sockets instead of ports.

    Several processes of the build start kernels at once, which can get the same ports.
    """

    @default("transport")
    def _choose_transport(self):
        return "tcp" if sys.platform == "win32" else "ipc"

    @default("ip")
    def _choose_sockets(self):
        if self.transport == "tcp":
            return "127.0.0.1"
        return os.path.join(tempfile.gettempdir(), f"kernel-{uuid.uuid4().hex}")


class _Anchors(HTMLParser):
    """Collect the anchors of a page and the addresses that it points to."""

    def __init__(self, page):
        super().__init__()
        self.anchors, self.targets = set(), set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(filter(None, [attrs.get("id"), attrs.get("name")]))
        if tag != "form":
            self.targets.update(filter(None, [attrs.get("href"), attrs.get("src")]))


def find_broken_links(folder):
    """Yield each page of a built site with a target inside the site that is missing."""
    folder = Path(folder).resolve()
    pages = {
        page: _Anchors(page)
        for page in sorted(folder.rglob("*.html"))
        if "_static" not in page.parts  # the theme's templates
    }
    for page, parsed in pages.items():
        for target in sorted(parsed.targets):
            path, anchor = map(unquote, urldefrag(target))
            if ":" in path or path.startswith("//"):
                continue  # another site
            file = (page.parent / path.partition("?")[0]).resolve() if path else page
            found = file.exists()
            if found and anchor and file in pages:
                found = anchor in pages[file].anchors
            if not found:
                yield page.relative_to(folder).as_posix(), target


def check_links(app, exception):
    """Warn of each broken link within the site, which fails a build with ``-W``."""
    if exception is None and app.builder.name == "html" and app.config.check_links:
        for page, target in find_broken_links(app.outdir):
            logger.warning("%s: the link %s leads nowhere", page, target)


def setup(app):
    """Connect the hooks."""
    jupyter_client.AsyncKernelManager = KernelManager  # what nbclient looks up
    app.add_config_value("check_links", True, "")
    app.connect("build-finished", check_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
