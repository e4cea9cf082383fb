"""The build of the site finds links that lead nowhere."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("myst_nb", reason="the extra 'docs' builds the site")


@pytest.fixture
def site():
    path = Path(__file__).parents[2] / "docs" / "_ext" / "skactive_site.py"
    spec = importlib.util.spec_from_file_location("skactive_site", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_that_lead_nowhere_are_found(site, tmp_path):
    (tmp_path / "guides").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="guides/one.html#known">1</a> <a href="guides/one.html#unknown">2</a>'
        '<a href="guides/two.html">3</a> <a href="https://example.org/x">4</a>'
    )
    (tmp_path / "guides" / "one.html").write_text(
        '<h1 id="known">One</h1><a href="../index.html?x=1">5</a><img src="no.png">'
    )
    assert list(site.find_broken_links(tmp_path)) == [
        ("guides/one.html", "no.png"),
        ("index.html", "guides/one.html#unknown"),
        ("index.html", "guides/two.html"),
    ]
