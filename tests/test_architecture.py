"""The house rules that a machine can check, as CONTRIBUTING names them."""

import ast
import functools
import inspect
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import skactive
from skactive import learner, posterior, runtime

PACKAGE = Path(skactive.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}

# A module imports from its own room and from lower floors only.
FLOORS = (
    {"_utils"},
    {"_math", "_storage", "runtime"},
    {"_encoders", "_tables", "estimation", "linear_model", "registry"},
    {"features", "posterior", "strategies"},
    {"annotators", "bert", "view"},
    {"learner", "semi_supervised"},
    {"stopping"},
    {"simulation"},
    {"analysis", "datasets", "persistence"},
    {"plotting", "serving", "session", "testing"},
    {"project"},
    {"labeling"},
    {"cli"},
    {"__init__", "__main__"},
)
# The wing of people; all other rooms are the core, which knows nothing of people.
PEOPLE = {"annotators", "cli", "labeling", "project", "session"}
# Names that a room lends to another one without listing them; may only fall.
MOST_LENT = 56
# Places outside `session` that reach into the core of a session; may only fall.
MOST_REACHED = 9
# Classes of one name. The list may only become shorter.
SAME_NAMES: set = set()
PUBLIC_MODULES = {"__init__", "__main__", "learner", "posterior", "runtime"}


def _name(path):
    return path.relative_to(PACKAGE).as_posix()


def _room(path):
    """Return the top-level module or folder of a file."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def _imports(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def _imported_rooms(path, tree):
    """Yield the rooms that a file imports anywhere, even lazily."""
    package = path.relative_to(PACKAGE).parts[:-1]
    for node in _imports(tree):
        if not node.level:
            continue
        base = package[: len(package) - node.level + 1]
        parts = [*base, *(node.module.split(".") if node.module else [])]
        yield from [parts[0]] if parts else [alias.name for alias in node.names]


def _find_upward(path, tree):
    floor = {room: i for i, rooms in enumerate(FLOORS) for room in rooms}
    own = _room(path)
    return [
        (_name(path), room)
        for room in _imported_rooms(path, tree)
        if room in floor and room != own and floor[room] >= floor[own]
    ]


def _listed(folder):
    """Return the names that the `__init__` of a folder imports or lists."""
    tree = TREES[PACKAGE / folder / "__init__.py"]
    listed = {alias.name for node in _imports(tree) for alias in node.names}
    strings = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant))
    return listed | {value for value in strings if isinstance(value, str)}


def _find_private_imports(path, tree):
    """Return the names that a file imports from another folder, which lists them not.

    Folders whose name begins with an underscore are shared by all, inner ones too.
    """
    package = path.relative_to(PACKAGE).parts[:-1]
    hits = set()
    for node in _imports(tree):
        base = package[: len(package) - node.level + 1]
        parts = [*base, *(node.module.split(".") if node.module else [])]
        folders = [
            PACKAGE.joinpath(*parts[: i + 1])
            for i, part in enumerate(parts)
            if part.startswith("_")
        ]
        if not node.level or not parts or any(map(Path.is_dir, folders)):
            continue
        if parts[0] != _room(path) and (PACKAGE / parts[0]).is_dir():
            names = {alias.name for alias in node.names}
            if len(parts) == 1:  # not a module of the folder, whatever it lists
                names -= _listed(parts[0])
            hits |= {f"{_room(path)}: {'.'.join(parts)}.{name}" for name in names}
    return hits


@functools.cache
def _code_lines(path):
    """Return the numbers of the lines that hold code: no docstring, no comment."""
    source, documented = path.read_text(encoding="utf-8"), set()
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                documented.update(range(first.lineno, first.end_lineno + 1))
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT}
    skipped |= {tokenize.DEDENT, tokenize.ENDMARKER}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines - documented


def test_the_package_has_few_entries():
    entries = {p.stem for p in PACKAGE.iterdir() if p.name != "__pycache__"}
    assert len(entries) <= 32, sorted(entries)


def test_public_means_exported():
    public = [
        path
        for path in MODULES
        if not path.stem.startswith("_")
        and (path.parent != PACKAGE or path.stem not in PUBLIC_MODULES)
    ]
    assert public == []


def _public_modules():
    folders = [
        getattr(skactive, path.parent.name)
        for path in MODULES
        if path.name == "__init__.py" and path.parent.parent == PACKAGE
        if not path.parent.name.startswith("_")
    ]
    modules = [skactive, learner, posterior, runtime]
    return [*modules, *folders]


def test_exported_names_exist_and_are_documented():
    for module in _public_modules():
        assert module.__all__, module
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                assert value.__doc__, (module, name)


def test_every_exported_callable_has_an_example():
    section = re.compile(r"\nExamples\n-{8}\n(?:[^>]+\n\n)?>>> ")
    missing = {
        f"{module.__name__}.{name}"
        for module in _public_modules()
        for name in module.__all__
        if callable(value := getattr(module, name))
        and not section.search(inspect.getdoc(value))
    }
    assert missing == set()


def _unwrap(member):
    """Return the function of a class method, property or `available_if` method."""
    for attribute in ("__func__", "fget", "func", "fn"):
        member = getattr(member, attribute, member)
    return member


def _exported_functions():
    """Return the exported functions, and the methods of the exported classes."""
    found = {}
    for module in _public_modules():
        for name in module.__all__:
            value = getattr(module, name)
            for holder in value.__mro__ if inspect.isclass(value) else ():
                if holder.__module__.startswith("skactive."):
                    for key, member in vars(holder).items():
                        if key == "__init__" or not key.startswith("_"):
                            found[f"{holder.__qualname__}.{key}"] = _unwrap(member)
            found[name] = value
    return {
        name: inspect.unwrap(value)
        for name, value in found.items()
        if inspect.isfunction(value) and value.__module__ != "typing"
    }


def _unannotated(function):
    """Return the parameters without annotation, and whether the result has none."""
    parameters = inspect.signature(function).parameters.values()
    missing = [
        parameter.name
        for parameter in parameters
        if parameter.annotation is parameter.empty
        and parameter.name not in ("self", "cls")
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if function.__name__ != "__init__" and "return" not in function.__annotations__:
        missing.append("return")
    return missing


def test_the_exported_api_is_annotated():
    functions = _exported_functions()
    missing = {name: _unannotated(f) for name, f in functions.items()}
    assert {name: names for name, names in missing.items() if names} == {}


def test_a_missing_annotation_would_be_found():
    def function(self, a, b: int, *args, **kwargs):
        pass

    assert _unannotated(function) == ["a", "return"]


def test_private_modules_export_nothing():
    offenders = [
        _name(path)
        for path in MODULES
        if path.stem.startswith("_") and path.stem != "__init__"
        for node in TREES[path].body
        if isinstance(node, ast.Assign)
        and getattr(node.targets[0], "id", "") == "__all__"
    ]
    assert offenders == []


def _only_stores(function):
    """Whether a function is an `__init__` that only stores its parameters."""
    return function.name == "__init__" and all(
        isinstance(line, ast.Assign) and isinstance(line.value, ast.Name)
        for line in function.body
    )


def test_files_and_functions_have_a_size_that_a_reader_can_hold():
    for path in MODULES:
        lines = _code_lines(path)
        assert len(lines) <= 400, (_name(path), len(lines))
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.FunctionDef) and not _only_stores(node):
                size = len(lines & set(range(node.lineno, node.end_lineno + 1)))
                assert size <= 60, (_name(path), node.name, size)


def test_every_room_has_a_floor():
    assert {_room(path) for path in MODULES} == set().union(*FLOORS)


def test_contributing_lists_the_floors():
    text = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(
        encoding="utf-8"
    )
    listed = {}
    for floor, names in re.findall(r"^\| (\d+) \| ([^|]+) \|", text, re.MULTILINE):
        listed.setdefault(int(floor), set()).update(re.findall(r"`(\w+)`", names))
    assert listed == dict(enumerate(FLOORS, start=1))


def test_a_module_imports_only_from_its_room_and_lower_floors():
    assert [hit for path in MODULES for hit in _find_upward(path, TREES[path])] == []


def test_an_upward_import_would_be_found():
    path = PACKAGE / "_math" / "_scores.py"
    tree = ast.parse("def f():\n    from ..learner import ActiveLearner\n")
    assert _find_upward(path, tree) == [("_math/_scores.py", "learner")]


def test_the_core_imports_nothing_of_people():
    found = {
        (_name(path), room)
        for path in MODULES
        if _room(path) not in PEOPLE | {"__init__", "__main__"}
        for room in _imported_rooms(path, TREES[path])
    }
    assert [hit for hit in found if hit[1] in PEOPLE] == []


def test_contributing_says_how_large_each_wing_is():
    sizes = {"core": 0, "people": 0}
    for path in MODULES:
        wing = "people" if _room(path) in PEOPLE else "core"
        sizes[wing] += len(_code_lines(path))
    text = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(
        encoding="utf-8"
    )
    said = re.search(r"core has ([\d,]+) and the wing of people ([\d,]+) lines", text)
    core, people = (int(number.replace(",", "")) for number in said.groups())
    # In hundreds: who makes a wing grow changes the figure in the same commit.
    assert (core, people) == tuple(round(n, -2) for n in sizes.values())


def _exported(room):
    """Return the names in the `__all__` of a room."""
    path = PACKAGE / room / "__init__.py"
    tree = TREES[path if path in TREES else PACKAGE / f"{room}.py"]
    return {
        constant.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and getattr(node.targets[0], "id", "") == "__all__"
        for constant in ast.walk(node.value)
        if isinstance(constant, ast.Constant)
    }


def _find_lent(path, tree):
    """Return the names that a file takes from rooms that do not list them.

    Folders whose name begins with an underscore are shared by all.
    """
    package = path.relative_to(PACKAGE).parts[:-1]
    found = set()
    for node in _imports(tree):
        base = package[: len(package) - node.level + 1]
        parts = [*base, *(node.module.split(".") if node.module else [])]
        if not node.level or not parts or parts[0] == _room(path):
            continue
        if parts[0].startswith("_") and (PACKAGE / parts[0]).is_dir():
            continue
        names = {alias.name for alias in node.names} - _exported(parts[0])
        found |= {f"{parts[0]}.{name}" for name in names}
    return found


def test_few_names_leave_a_room_by_a_side_door():
    lent = set().union(*(_find_lent(path, TREES[path]) for path in MODULES))
    assert len(lent) <= MOST_LENT, sorted(lent)


def _attributes(path):
    return [n for n in ast.walk(TREES[path]) if isinstance(n, ast.Attribute)]


def test_few_places_reach_into_a_session():
    others = [path for path in MODULES if _room(path) != "session"]
    cores = [n for path in others for n in _attributes(path) if n.attr == "_core"]
    assert len(cores) <= MOST_REACHED


def test_a_session_is_not_handed_to_its_own_parts():
    handed = [
        (path.stem, node.name)
        for path in MODULES
        if _room(path) == "session"
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.FunctionDef)
        and "session" in [argument.arg for argument in node.args.args]
    ]
    assert handed == [("_desk", "__init__")]


def test_a_lent_name_would_be_found():
    path = PACKAGE / "stopping" / "_base.py"
    lines = (
        "def f():\n    from ..view import PoolView, check_target",
        "from .._math._scores import entropy",
        "from . import Plateau",
    )
    assert _find_lent(path, ast.parse("\n".join(lines))) == {"view.check_target"}


def test_a_module_imports_from_another_folder_what_this_lists():
    found = set().union(*(_find_private_imports(p, TREES[p]) for p in MODULES))
    assert found == set()


def test_an_import_of_a_private_name_would_be_found():
    path = PACKAGE / "stopping" / "_base.py"
    lines = (
        "from ..view._query import PoolQuery",
        "from ..view._pool_view import PoolView",  # though the folder lists it
        "from ..view import PoolView, _other",
    )
    assert _find_private_imports(path, ast.parse("\n".join(lines))) == {
        "stopping: view._query.PoolQuery",
        "stopping: view._pool_view.PoolView",
        "stopping: view._other",
    }


def _find_options(tree):
    """Return the strings of a file that name an option of the command line."""
    strings = [n for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in strings
        if isinstance(node.value, str)
        and id(node) not in documented
        and re.search(r"(?<![\w-])--[a-z]", node.value)
    ]


def test_only_the_command_line_speaks_of_options():
    found = {
        _name(path): options
        for path in MODULES
        if _room(path) != "cli" and (options := _find_options(TREES[path]))
    }
    assert found == {}


def test_an_option_in_an_error_would_be_found():
    lines = '"""With --docs."""\nraise ValueError(f"{1} with --folder NEW.")'
    assert _find_options(ast.parse(lines)) == [" with --folder NEW."]


def test_no_two_classes_have_one_name():
    homes = {}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(_name(path))
    twice = {name for name, files in homes.items() if len(files) > 1}
    assert twice - SAME_NAMES == set()


def test_no_circle_of_files():
    graph = {}
    for path in MODULES:
        package = path.relative_to(PACKAGE).parts[:-1]
        graph[path] = set()
        for node in _imports(TREES[path]):  # inside functions, too
            if node.level:
                base = PACKAGE.joinpath(*package[: len(package) - node.level + 1])
                base = base.joinpath(*(node.module or "").split("."))
                names = [base / f"{alias.name}.py" for alias in node.names]
                files = [base.with_suffix(".py"), *names]
                graph[path].update(file for file in files if file in TREES)
    done, path_to = set(), []

    def visit(file):
        assert file not in path_to, [_name(p) for p in [*path_to, file]]
        if file not in done:
            path_to.append(file)
            for other in sorted(graph[file]):
                visit(other)
            path_to.pop()
            done.add(file)

    for file in graph:
        visit(file)


def test_imports_inside_the_package_are_relative():
    for path in MODULES:
        for node in _imports(TREES[path]):
            assert node.level or not (node.module or "").startswith("skactive"), (
                _name(path),
                node.lineno,
            )


def test_only_two_files_import_scikit_learn_privates():
    offenders = set()
    for path in MODULES:
        for node in _imports(TREES[path]):
            if node.level or not node.module:
                continue
            parts = [*node.module.split("."), *(alias.name for alias in node.names)]
            if parts[0] == "sklearn" and any(p.startswith("_") for p in parts):
                offenders.add(_name(path))
    assert offenders == {"_utils/_bases.py", "_utils/_sklearn.py"}


def _run(code):
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_import_loads_no_torch():
    _run("""
import skactive, sys
before = set(sys.modules)
assert {"bert", "analysis", "plotting", "stopping"} <= set(dir(skactive))
skactive.ActiveLearner, skactive.get_strategy("margin"), skactive.simulate
import skactive.testing, skactive.datasets
assert "SimulatedLearner" in dir(skactive.simulation)
assert skactive.bert.BertFeatures.__name__ == "BertFeatures"
assert all(getattr(skactive, name) is not None for name in dir(skactive))
heavy = {"torch", "transformers", "skorch", "matplotlib"} & set(sys.modules)
assert not heavy, heavy
""")


def test_import_adds_nothing_heavy_to_that_of_scikit_learn():
    # The time itself is noise in a test; what decides it is what gets imported.
    _run("""
import sys, sklearn
before = set(sys.modules)
import skactive
new = {name.split(".")[0] for name in set(sys.modules) - before}
assert new <= {"skactive", "typing", "importlib"}, new
""")


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Learner'"):
        skactive.Learner  # noqa: B018


def test_nothing_is_pickled():
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text or path.parent.name == "testing", path


def test_every_model_is_loaded_without_its_own_code():
    calls = [
        node
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "from_pretrained"
    ]
    assert calls
    for call in calls:
        if ast.unparse(call.func) == "model2vec.StaticModel.from_pretrained":
            continue  # a table and a tokenizer; the format has no code
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        assert given["trust_remote_code"].value is False, ast.unparse(call)


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert skactive.__version__ == version("skactive")
