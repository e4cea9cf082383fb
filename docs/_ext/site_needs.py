"""What a build of the site needs; `conf.py` asks for it before anything is built."""

import re
import shutil
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

# The functions of `screenshots` that open a browser.
PICTURES = ("label", "show_several_classes")
_IMPORTED = re.compile(r"^from screenshots import \(?([\w\s,]+)", re.M)


def find_lack(folder, only=None):
    """Return what is missing for the pages of a folder, in words, or None.

    `only` is the name of the only page that is built, or None.
    """
    packages = [] if only else find_missing("docs")
    if packages:
        return (
            f"The site needs {', '.join(packages)}, of the extra 'docs'. Install it: "
            "pip install -c constraints.txt '.[docs]'."
        )
    pages = find_pictured(folder, only)
    programs = [] if find_browser() else ["chromium"]
    programs += [] if shutil.which("chromedriver") else ["chromedriver"]
    if pages and programs:
        return (
            f"{', '.join(pages)} must show the labeling page in Chromium, and PATH has "
            f"no {' and no '.join(programs)}. Install both (Debian: apt-get install "
            "chromium chromium-driver), or build one page that opens no browser, such "
            "as SKACTIVE_DOCS_ONLY=guides/few_labels."
        )
    return None


def find_browser():
    """Return the path of Chromium or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def find_pictured(folder, only=None):
    """Return the names of the pages that open a browser."""
    folder, found = Path(folder), []
    for page in sorted(folder.rglob("*.md")):
        name = page.relative_to(folder).with_suffix("").as_posix()
        if name.startswith("_build/"):
            continue
        imported = " ".join(_IMPORTED.findall(page.read_text("utf-8")))
        if only in (None, name) and {*PICTURES} & {*re.findall(r"\w+", imported)}:
            found.append(name)
    return found


def find_missing(*extras, package="skactive"):
    """Return what a package and its extras require and the environment lacks."""
    missing = []
    for requirement in map(Requirement, metadata.requires(package) or ()):
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in extras):
            continue
        if requirement.name == package:
            missing += find_missing(*requirement.extras, package=package)
        elif not _has(requirement):
            missing.append(f"{requirement.name}{requirement.specifier}")
    return sorted({*missing})


def _has(requirement):
    """Whether the environment has a version that a requirement allows."""
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return False
    return requirement.specifier.contains(version, prereleases=True)
