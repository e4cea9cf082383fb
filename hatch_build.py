"""Readme of the package index, where links into the repository do not work."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ReadmeHook(MetadataHookInterface):
    """Makes the links of README.md absolute, with the address `[project.urls] Source`.

    Without that address, links become their words, and pictures are left out.
    """

    def update(self, metadata):
        """Set the readme."""
        text = Path(self.root, "README.md").read_text("utf-8")
        address = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": make_absolute(text, address),
        }


def make_absolute(text, address):
    """Return Markdown whose links and pictures work outside the repository."""
    relative = r"\]\((?!https?:|#)([^)]+)\)"
    if address:
        raw = f"{address.rstrip('/')}/raw/HEAD"
        text = re.sub(r"(!\[[^]]*)" + relative, rf"\1]({raw}/\2)", text)
        return re.sub(relative, rf"]({address.rstrip('/')}/blob/HEAD/\1)", text)
    text = re.sub(r"!\[[^]]*" + relative + r"\n*", "", text)
    return re.sub(r"\[([^]]*)" + relative, r"\1", text)
