"""A build of the site says at once what it lacks."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "_ext" / "site_needs.py"
PICTURED = "from screenshots import label\n"


@pytest.fixture
def needs():
    return runpy.run_path(str(SCRIPT))


@pytest.fixture
def has(monkeypatch):
    """Choose the programs that PATH has."""

    def has(*names):
        which = lambda name: f"/bin/{name}" if name in names else None  # noqa: E731
        monkeypatch.setattr(shutil, "which", which)

    return has


@pytest.fixture
def pages(tmp_path):
    """A folder with a page that shows the labeling page, and two that do not."""
    folder = tmp_path / "docs"
    (folder / "guides").mkdir(parents=True)
    (folder / "guides" / "pictures.md").write_text(f"# A\n```python\n{PICTURED}```\n")
    (folder / "guides" / "words.md").write_text("from screenshots import run\n")
    (folder / "index.md").write_text("A label of a text.\n")
    return folder


@pytest.mark.parametrize(
    ("programs", "missing"),
    [
        ([], "no chromium and no chromedriver"),
        (["chromium"], "no chromedriver"),
        (["chromedriver"], "no chromium"),
    ],
)
def test_a_missing_browser_is_named_with_the_pages_that_need_it(
    needs, has, pages, programs, missing
):
    has(*programs)
    lack = needs["find_lack"](pages, "guides/pictures")
    assert lack.startswith("guides/pictures must show the labeling page")
    assert f"PATH has {missing}. Install both" in lack


@pytest.mark.parametrize("browser", ["chromium", "chromium-browser", "google-chrome"])
def test_a_browser_and_its_driver_are_enough(needs, has, pages, browser):
    has(browser, "chromedriver")
    assert needs["find_lack"](pages, "guides/pictures") is None


@pytest.mark.parametrize("only", ["guides/words", "index"])
def test_a_page_without_pictures_needs_no_browser(needs, has, pages, only):
    has()
    assert needs["find_lack"](pages, only) is None


def test_the_whole_site_needs_a_browser(needs, has, pages):
    has()
    needs["find_lack"].__globals__["find_missing"] = lambda *extras: []
    assert needs["find_lack"](pages).startswith("guides/pictures must show")


@pytest.mark.parametrize(
    "line",
    [
        "from screenshots import label",
        "from screenshots import run, show_several_classes",
        "from screenshots import (\n    make_texts,\n    label,\n)",
    ],
)
def test_an_import_of_a_picture_is_found(needs, pages, line):
    (pages / "index.md").write_text(f"```python\n{line}\n```\n")
    assert needs["find_pictured"](pages) == ["guides/pictures", "index"]


def test_a_built_site_is_not_read(needs, pages):
    (pages / "_build").mkdir()
    (pages / "_build" / "old.md").write_text(PICTURED)
    assert needs["find_pictured"](pages) == ["guides/pictures"]


def test_the_pictures_are_functions_of_the_module_that_takes_them(needs):
    source = (SCRIPT.parent / "screenshots.py").read_text("utf-8")
    for name in needs["PICTURES"]:
        assert f"\ndef {name}(" in source
    assert "start/tutorial" in needs["find_pictured"](ROOT / "docs")


def _describe(monkeypatch, needs, requires, versions):
    """Stand in for what is installed."""
    metadata = needs["metadata"]

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "requires", lambda name: requires)
    monkeypatch.setattr(metadata, "version", version)


REQUIRES = [
    "numpy>=2",
    "skactive[demo]; extra == 'docs'",
    "weights; extra == 'demo'",
    "sphinx>=9; extra == 'docs'",
    "pytest>=8; extra == 'test'",
]


@pytest.mark.parametrize(
    ("versions", "missing"),
    [
        ({"numpy": "2.1", "weights": "1", "sphinx": "9.0"}, []),
        ({"numpy": "2.1", "sphinx": "9.0"}, ["weights"]),
        ({"numpy": "2.1", "weights": "1", "sphinx": "8.2"}, ["sphinx>=9"]),
        ({}, ["numpy>=2", "sphinx>=9", "weights"]),
    ],
)
def test_packages_that_are_missing_are_named(needs, monkeypatch, versions, missing):
    _describe(monkeypatch, needs, REQUIRES, versions)
    assert needs["find_missing"]("docs") == missing


def test_a_missing_package_stops_a_build_of_the_whole_site(
    needs, has, pages, monkeypatch
):
    has("chromium", "chromedriver")
    _describe(monkeypatch, needs, REQUIRES, {"numpy": "2.1", "sphinx": "9.0"})
    lack = needs["find_lack"](pages)
    assert lack.startswith("The site needs weights, of the extra 'docs'. Install it: ")


def test_a_build_without_a_browser_stops_before_it_begins(tmp_path):
    pytest.importorskip("myst_nb", reason="the extra 'docs' builds the site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", str(ROOT / "docs"), str(tmp_path)],
        env={
            **os.environ,
            "PATH": str(tmp_path),
            "SKACTIVE_DOCS_ONLY": "start/tutorial",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "PATH has no chromium and no chromedriver" in done.stderr
    assert list(tmp_path.iterdir()) == []
