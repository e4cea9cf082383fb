"""The recipes of other package managers name what the package needs."""

import re
import tomllib
from pathlib import Path

import pytest

import skactive

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTORCH = {"torch": "pytorch"}  # its name on conda-forge


def find_names(requirements):
    return {re.split(r"[<>=!~ \[]", line)[0]: line for line in requirements}


def test_the_conda_recipe_has_the_version_and_the_dependencies():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "packaging" / "recipe.yaml").read_text("utf-8"))
    assert recipe["context"]["version"] == skactive.__version__
    run = recipe["requirements"]["run"]
    assert run[0] == "python >=${{ python_min }}"
    assert [line.replace(" ", "") for line in run[1:]] == PROJECT["dependencies"]
    optional = PROJECT["optional-dependencies"]["bert"]
    wanted = [
        line.replace(name, PYTORCH.get(name, name), 1)
        for name, line in find_names(optional).items()
    ]
    constraints = recipe["requirements"]["run_constraints"]
    assert [line.replace(" ", "") for line in constraints] == wanted
    assert PROJECT["scripts"] == {"skactive": "skactive.cli:main"}
    assert recipe["build"]["python"]["entry_points"] == ["skactive = skactive.cli:main"]


def test_the_container_installs_what_an_export_and_the_server_need():
    text = (ROOT / "packaging" / "Dockerfile").read_text("utf-8")
    (line,) = re.findall(r"^RUN pip install .*constraints\.txt (.*)$", text, re.M)
    extras = PROJECT["optional-dependencies"]
    server = {name for name in find_names(extras["label"]) if name != "skactive"}
    export = find_names(extras["onnx"]).keys() - {"onnx"}
    assert {*line.split()} == {*server, *export, "numpy"}
    assert "USER model" in text
