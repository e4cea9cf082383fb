"""The house rules that a machine can check."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import skactive

PACKAGE = Path(skactive.__file__).parent

# A module imports only from lower floors or its own (DESIGN, "The house").
FLOORS = {
    "_sklearn": 0,
    "_texts": 0,
    "_random": 0,
    "_containers": 0,
    "_labels": 0,
    "_positions": 0,
    "_chunks": 0,
    "_faiss": 0,
    "_files": 0,
    "_lines": 0,
    "_lock": 0,
    "_clones": 0,
    "_linalg": 0,
    "_params": 0,
    "_progress": 0,
    "_pipelines": 0,
    "_threads": 0,
    "measures": 1,
    "medoids": 1,
    "selection": 1,
    "committees": 1,
    "perceptrons": 1,
    "clustering": 1,
    "distances": 1,
    "neighbors": 1,
    "centers": 1,
    "covers": 1,
    "factors": 1,
    "configurations": 1,
    "joint": 1,
    "softmax": 1,
    "curvature": 1,
    "logloss": 1,
    "quasi_newton": 1,
    "tracking": 1,
    "nearby": 1,
    "plugins": 2,
    "strategies": 2,
    "registry": 2,
    "bert": 3,
    "linear": 3,
    "posterior": 3,
    "laplace": 3,
    "logistic": 3,
    "ensembles": 3,
    "capabilities": 4,
    "quantities": 4,
    "sharing": 4,
    "tracked": 4,
    "view": 4,
    "_delegation": 4,
    "learner": 4,
    "simulation": 4,
    "runs": 4,
    "initial": 4,
    "stopping": 4,
    "persistence": 5,
    "session": 5,
    "experiments": 5,
    "protocols": 5,
    "scenarios": 5,
    "analysis": 5,
    "plotting": 5,
    "report": 5,
    "testing": 5,
    "datasets": 5,
    "_docstrings": 5,
    "_tables": 5,
    "_strategy_table": 5,
    "demo": 5,
    "demo_plot": 5,
    "demo_report": 5,
    "_cli": 5,
    "_commands": 5,
    "__main__": 5,
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def _room(path):
    """The top-level module or package that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def _imported_rooms(path):
    """Top-level rooms of skactive that a file imports anywhere, even lazily."""
    package = ("skactive", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            start = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{start}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "skactive" and len(parts) > 1:
                yield parts[1]


def _find_upward(path):
    own = FLOORS[_room(path)]
    return [room for room in _imported_rooms(path) if FLOORS.get(room, 0) > own]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_from_its_floor_or_below(path):
    if path.name == "__init__.py" and path.parent == PACKAGE:
        pytest.skip("the package's front door knows every floor")
    assert _room(path) in FLOORS, f"give {_room(path)} a floor"
    assert _find_upward(path) == []


def test_the_map_for_contributors_names_every_module():
    path = Path(__file__).parents[1] / "CONTRIBUTING.md"
    text = path.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| (.*?) \|", text, flags=re.MULTILINE)
    named = {room: int(n) for n, cell in rows for room in re.findall(r"`(\w+)`", cell)}
    assert named == FLOORS


def test_an_upward_import_would_be_found(tmp_path, monkeypatch):
    package = tmp_path / "skactive"
    package.mkdir()
    (package / "measures.py").write_text("def f():\n    from .learner import X\n")
    monkeypatch.setitem(globals(), "PACKAGE", package)
    assert _find_upward(package / "measures.py") == ["learner"]


def test_every_room_on_the_plan_exists():
    rooms = {_room(path) for path in MODULES}
    assert set(FLOORS) - rooms == set()


def test_only_one_file_imports_scikit_learn_privates():
    offenders = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            parts = [*node.module.split("."), *(alias.name for alias in node.names)]
            if parts[0] == "sklearn" and any(p.startswith("_") for p in parts):
                offenders.append(path.name)
    assert set(offenders) == {"_sklearn.py"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_holds_one_idea(path):
    assert len(path.read_text().splitlines()) <= 375


def _run(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_import_loads_no_torch():
    code = """
import skactive, sys
skactive.ActiveLearner, skactive.get_strategy("margin"), skactive.simulate
import skactive.testing, skactive.datasets
heavy = {"torch", "transformers", "skorch", "matplotlib"} & set(sys.modules)
assert not heavy, heavy
"""
    result = _run(code)
    assert result.returncode == 0, result.stderr


def test_import_adds_nothing_heavy_to_that_of_scikit_learn():
    # The time itself is noise in a test; what decides it is what gets imported.
    code = """
import sys, sklearn
before = set(sys.modules)
import skactive
new = {name.split(".")[0] for name in set(sys.modules) - before}
assert new <= {"skactive", "typing", "importlib"}, new
"""
    result = _run(code)
    assert result.returncode == 0, result.stderr


def test_public_names_are_all_there():
    assert set(skactive.__all__) <= set(dir(skactive))
    for name in skactive.__all__:
        assert getattr(skactive, name) is not None


def test_submodules_are_found_without_an_import_of_their_own():
    code = """
import sys, skactive
assert {"bert", "analysis", "plotting", "stopping"} <= set(dir(skactive))
assert "torch" not in sys.modules
assert "SimulatedLearner" in dir(skactive.simulation)
assert "run_experiment" in dir(skactive.experiments)
assert "load_table" in dir(skactive.datasets)
assert "torch" not in sys.modules
assert skactive.bert.BertFeatures.__name__ == "BertFeatures"
assert all(getattr(skactive, name) is not None for name in dir(skactive))
"""
    result = _run(code)
    assert result.returncode == 0, result.stderr


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Learner'"):
        skactive.Learner  # noqa: B018


def test_nothing_is_pickled():
    for path in MODULES:
        text = path.read_text()
        assert "import pickle" not in text or path.parent.name == "testing", path


def test_every_model_is_loaded_without_its_own_code():
    calls = [
        node
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "from_pretrained"
    ]
    assert calls
    for call in calls:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        assert given["trust_remote_code"].value is False, ast.unparse(call)


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert skactive.__version__ == version("skactive")
