"""mypy and pyright read scripts of a user: a good one, and one of mistakes."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import skactive

from ..conftest import absent

HERE = Path(__file__).parent
ROOT = Path(skactive.__file__).parents[1]
SCRIPTS = ["good_script.py", "bad_script.py", "attributes.py"]

pytestmark = pytest.mark.slow


def _exported_classes():
    modules = [import_module(f"skactive.{name}") for name in skactive._SUBMODULES]
    pairs = [(m, n) for m in modules for n in getattr(m, "__all__", ())]
    return [(m.__name__, n) for m, n in pairs if inspect.isclass(getattr(m, n))]


def _documented_attributes(cls):
    section = re.search(
        r"^Attributes\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+\n|\Z)",
        inspect.getdoc(cls) or "",
        re.DOTALL | re.MULTILINE,
    )
    heads = re.findall(r"^\w[^:\n]*", section[1], re.MULTILINE) if section else []
    return [name.strip() for head in heads for name in head.split(",")]


def _script_of_attributes():
    """Return a script that reads every documented attribute of every class."""
    lines, n = [], 0
    for module, name in _exported_classes():
        names = _documented_attributes(getattr(sys.modules[module], name))
        if names:
            lines += [f"import {module}", f"def f{n}(x: {module}.{name}) -> object:"]
            lines.append(f"    return ({', '.join(f'x.{a}' for a in names)},)")
            n += len(names)
    assert n > 100
    return "\n".join(lines) + "\n"


def _run_mypy(folder):
    (folder / "mypy.ini").write_text(
        "[mypy]\nstrict = true\nfollow_imports = silent\n"
        "[mypy-sklearn.*]\nignore_missing_imports = true\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini"]
    # mypy finds an installed package itself, and refuses to be told its folder.
    path = {} if "site-packages" in ROOT.parts else {"MYPYPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "--cache-dir", "cache", *SCRIPTS],
        cwd=folder,
        env={**os.environ, **path},
        capture_output=True,
        text=True,
    )
    # It also exits with 1 when it refuses its settings, and prints that elsewhere.
    assert re.match("Found|Success", done.stdout.split("\n")[-2:][0]), done
    found = re.findall(r"^(.*?):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return [(path, int(n), what) for path, n, what in found]


def _run_pyright(folder):
    places = [str(Path(sys.executable).parent), os.environ["PATH"]]
    program = shutil.which("pyright", path=os.pathsep.join(places))
    if program is None:
        absent("pyright is not installed")
    settings = {"include": SCRIPTS, "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(
        json.dumps({**settings, "reportUnusedExpression": False})
    )
    command = [program, "--outputjson", "--pythonpath", sys.executable, "-p", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [
        (Path(it["file"]).name, it["range"]["start"]["line"] + 1, it["message"])
        for it in json.loads(done.stdout)["generalDiagnostics"]
        if it["severity"] == "error"
    ]


@pytest.fixture(scope="module", params=["mypy", "pyright"])
def errors(request, tmp_path_factory):
    """Return a function that gives the errors of a script: lines and messages."""
    folder = tmp_path_factory.mktemp("checker")
    for script in SCRIPTS[:2]:
        shutil.copy(HERE / script, folder)
    (folder / "attributes.py").write_text(_script_of_attributes())
    found = {"mypy": _run_mypy, "pyright": _run_pyright}[request.param](folder)
    return lambda script: [(line, text) for path, line, text in found if path == script]


def test_a_good_script_has_no_error(errors):
    assert errors("good_script.py") == []


def test_each_mistake_is_reported_on_its_line(errors):
    lines = (HERE / "bad_script.py").read_text().splitlines()
    mistakes = {n: x for n, x in enumerate(lines, 1) if x.endswith("# mistake")}
    found = dict(errors("bad_script.py"))
    assert {n: x for n, x in mistakes.items() if n not in found} == {}
    assert {n: x for n, x in found.items() if n not in mistakes} == {}


def test_every_documented_attribute_is_known(errors):
    assert errors("attributes.py") == []
