"""Signatures of the public names fit a tooltip, and the stubs list these names."""

import ast
import inspect
import typing
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import skactive

PACKAGE = Path(skactive.__file__).parent
PACKAGES = ["skactive", *(f"skactive.{name}" for name in skactive._SUBMODULES)]
pytestmark = pytest.mark.filterwarnings("ignore:Widget:DeprecationWarning")
STUBS = sorted(path.parent for path in PACKAGE.rglob("__init__.pyi"))


def _public_callables():
    """Yield the name and the object of each exported callable, methods included."""
    for package in PACKAGES:
        module = import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if callable(value):
                yield f"{package}.{name}", value
            for key in dir(value) if inspect.isclass(value) else ():
                member = getattr(value, key)
                origin = getattr(member, "__module__", None) or ""
                if key[0] != "_" and inspect.isroutine(member) and "skactive" in origin:
                    yield f"{package}.{name}.{key}", member


def _signature(value):
    try:
        return inspect.signature(value)
    except ValueError:  # an exception
        return None


def test_signatures_fit_a_tooltip():
    found = {name: _signature(value) for name, value in _public_callables()}
    found = {name: signature for name, signature in found.items() if signature}
    assert len(found) > 400
    assert [name for name, x in found.items() if "numpy._typing" in str(x)] == []
    long = {
        name: str(x)
        for name, x in found.items()
        if len(str(x)) > 300 and len([p for p in x.parameters if p != "self"]) <= 6
    }
    assert long == {}


def test_query_has_a_return_type():
    hints = typing.get_type_hints(skactive.ActiveLearner.query)
    positions = NDArray[np.intp]
    assert hints["return"] == positions | tuple[positions, NDArray]


def test_annotations_of_public_names_can_be_resolved():
    for _, value in _public_callables():
        function = value.__init__ if inspect.isclass(value) else value
        if value is not skactive.load:  # its result is a name of a stub
            typing.get_type_hints(inspect.unwrap(function))


@pytest.mark.parametrize("folder", STUBS, ids=lambda folder: folder.name)
def test_a_stub_lists_the_names_of_its_package(folder):
    name = ".".join(["skactive", *folder.relative_to(PACKAGE).parts])
    module = import_module(name)
    tree = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8"))
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    stubbed = {alias.asname for node in imported for alias in node.names}
    stubbed |= {x.target.id for x in tree.body if isinstance(x, ast.AnnAssign)}
    assert stubbed >= set(dir(module))
    assert [x for x in stubbed if not hasattr(module, x)] == []
