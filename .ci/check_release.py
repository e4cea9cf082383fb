"""Check what the wheel and the sdist contain.

python .ci/check_release.py WHEEL SDIST
"""

import email
import gzip
import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Files of the package that are not Python, and where code and fonts of others would be.
ASSETS = {"html", "css", "gz", "js", "pyi", "svg", "toml", "typed"}
NOTICE = re.compile(r"copyright (\(c\)|\d)|©|@license|@font-face", re.IGNORECASE)


def read_version():
    """Return the version, which is written in one place."""
    source = (ROOT / "skactive" / "__init__.py").read_text("utf-8")
    return re.search(r'^__version__ = "(.+)"$', source, flags=re.MULTILINE)[1]


def check_wheel(path, version):
    """Check that the wheel holds the package, its license and nothing else."""
    wheel = zipfile.ZipFile(path)
    names = set(wheel.namelist())
    info = f"skactive-{version}.dist-info"
    files = {name for name in names if not name.startswith(f"{info}/")}
    expected = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "skactive").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert files == expected, files ^ expected
    kinds = {name.rpartition(".")[2] for name in files} - {"py"}
    assert kinds == ASSETS, f"new kinds of files: whose are they? {kinds ^ ASSETS}"
    assert {name for name in names - files if "licenses/" in name} == {
        f"{info}/licenses/LICENSE"
    }
    # Everything in the wheel is this project's own: a notice of another owner, a
    # minified file or an embedded font would need its license next to LICENSE.
    for name in sorted(files):
        data = wheel.read(name)
        if name.endswith(".json.gz"):  # texts of others, with their licenses
            texts = json.loads(gzip.decompress(data))
            assert {"licenses", "texts"} <= texts.keys(), f"{name} has no licenses"
            continue
        text = data.decode("utf-8")
        assert not NOTICE.search(text), f"{name} may need a license of its own"
    metadata = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
    assert metadata["Version"] == version
    assert metadata["License-Expression"] == "BSD-3-Clause"
    points = wheel.read(f"{info}/entry_points.txt").decode()
    assert "skactive = skactive.cli:main" in points
    print(f"{path.name}: {len(files)} files, {path.stat().st_size / 1e6:.2f} MB")


def check_sdist(path, version):
    """Check that the sdist has what its tests, docs and citation need."""
    top = f"skactive-{version}"
    with tarfile.open(path) as archive:
        names = {name.removeprefix(f"{top}/") for name in archive.getnames()}
    listed = {
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "SECURITY.md",
        "benchmarks",
        "constraints.txt",
        "docs",
        "hatch_build.py",
        "packaging",
        "pyproject.toml",
        "skactive",
        "tests",
    }
    found = {name.partition("/")[0] for name in names}
    assert listed <= found, listed - found
    assert not {x for x in names if {"__pycache__", "_build"} & {*x.split("/")}}
    print(f"{path.name}: {len(names)} files, {path.stat().st_size / 1e6:.2f} MB")


def check_version(version):
    """Check that the changelog and the citation name the version and its date."""
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heading = re.search(r"^## (\S+)(?: - (\S+))?$", changelog, flags=re.MULTILINE)
    assert heading[1] == version, f"the changelog begins with {heading[1]}"
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {version}\n" in citation
    assert f"\ndate-released: {heading[2]}\n" in citation


if __name__ == "__main__":
    wheel, sdist = map(Path, sys.argv[1:])
    number = read_version()
    check_version(number)
    check_wheel(wheel, number)
    check_sdist(sdist, number)
