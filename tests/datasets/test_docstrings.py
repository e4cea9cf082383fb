"""Reading docstrings out of source files, and the data set made of them."""

import json
import subprocess
import sys

import numpy as np
import pytest

from skactive.datasets import _docstrings as datasets
from skactive.datasets import load_docstrings
from skactive.datasets._docstrings import (
    first_paragraph,
    mask_names,
    read_docstrings,
)

# Reading whole libraries takes long: by default, one folder of each is read.
FOLDERS = {
    "numpy": "lib",
    "scipy": "signal",
    "sklearn": "metrics",
    "torch": "nn/modules",
}
PART = f"""
from pathlib import Path
from skactive.datasets import _docstrings
def read_part(folder, read=_docstrings.read_docstrings, folders={FOLDERS}):
    return read(Path(folder, folders[Path(folder).name]))
_docstrings.read_docstrings = read_part
"""


@pytest.fixture(
    scope="module", params=["part", pytest.param("whole", marks=pytest.mark.slow)]
)
def extent(request):
    """How much of each library is read."""
    return request.param


def _load(extent, **params):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "read_docstrings", datasets.read_docstrings)
        if extent == "part":
            exec(PART, {})
        return load_docstrings(**params)


@pytest.fixture(scope="module")
def docstrings(extent):
    return _load(extent)


@pytest.fixture(scope="module")
def other_process(extent):
    """What a new interpreter reads."""
    code = (
        "import json, sys; from skactive.datasets import load_docstrings;"
        "X, y = load_docstrings(return_X_y=True);"
        "print(json.dumps({'data': X, 'target': y.tolist(),"
        " 'has_imported_torch': 'torch' in sys.modules}))"
    )
    if extent == "part":
        code = PART + code
    command = [sys.executable, "-W", "ignore", "-c", code]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def _read(tmp_path, source, name="module.py"):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return list(read_docstrings(tmp_path))


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Compute it.\n\nMore.", "Compute it."),
        ("Compute\n    it all.\n\n    More.", "Compute it all."),
        ("abs(x, /) -> Tensor\n\nCompute it.", "Compute it."),
        ("a, b = split(x, axis=0)\n\nCompute it.", "Compute it."),
        ("Title\n=====\n\nCompute it.", "Compute it."),
        ("=====\nTitle\n=====\nCompute it.", "Compute it."),
        ("See :func:`~numpy.abs` and ``x`` or `y`_.", "See numpy.abs and x or y."),
        ("See `the page <https://x.org>`_ first.", "See the page first."),
        ("Compute it::\n\n    1 + 1", "Compute it"),
        ("Parameters\n----------\nx : int", ""),
        (">>> 1 + 1", ""),
        (".. deprecated:: 1.0", ""),
        ("", ""),
    ],
)
def test_first_paragraph(docstring, expected):
    assert first_paragraph(docstring) == expected


def test_public_names_are_read_and_private_ones_are_not(tmp_path):
    source = '''"""The module."""
import functools

@functools.cache
def function():
    r"""The \\function."""
    def inner():
        """Inner."""

def _private():
    """Private."""

async def coroutine():
    """The coroutine."""

if True:
    class Class:
        """The class."""

        def method(self):
            """The method."""

        def __init__(self):
            """Dunder."""

class _Hidden:
    """Hidden."""

    def method(self):
        """Hidden method."""
'''
    assert _read(tmp_path, source) == [
        "The module.",
        "The \\function.",
        "The coroutine.",
        "The class.",
        "The method.",
    ]


@pytest.mark.parametrize(
    "call",
    [
        'add_newdoc("numpy", "abs", """The text.""")',
        'add_newdoc("numpy", "ndarray", ("sum", """a.sum()\n\nThe text."""))',
        'add_docstr(torch.abs, r"""abs(x)\n\nThe text.\n{x}""".format(x=1))',
        'add_docstr_all("abs", """abs(x)\n""" + r"""\nThe text.""")',
        'conv = _add_docstr(torch.conv, """The text.""")',
    ],
)
def test_docstrings_added_by_a_call_are_read(tmp_path, call):
    assert _read(tmp_path, call)[0].startswith("The text.")


@pytest.mark.parametrize(
    "call",
    [
        'add_newdoc("numpy", "ndarray", ("__dlpack__", """The text."""))',
        'add_newdoc("_private", """The text.""")',
        "add_newdoc()",
        "add_docstr(torch.abs, text)",
        'other("numpy", "The text.")',
    ],
)
def test_other_calls_are_not_read(tmp_path, call):
    assert _read(tmp_path, call) == []


@pytest.mark.parametrize(
    ("name", "is_read"),
    [
        ("linalg/solve.py", True),
        ("linalg/_solve.py", True),
        ("_core/numeric.py", True),
        ("_private/solve.py", False),
        ("tests/helper.py", False),
        ("linalg/test_solve.py", False),
        ("testing/helper.py", False),
        ("conftest.py", False),
        ("externals/solve.py", False),
        ("latest/solve.py", True),
        ("linalg/solve.txt", False),
    ],
)
def test_private_folders_tests_and_vendored_code_are_left_out(tmp_path, name, is_read):
    assert bool(_read(tmp_path, '"""The module."""', name)) == is_read


def test_files_that_do_not_parse_are_left_out(tmp_path):
    (tmp_path / "a.py").write_text("{{ template }} =", encoding="utf-8")
    assert _read(tmp_path, '"""The module."""') == ["The module."]


@pytest.mark.filterwarnings("error")
def test_invalid_escapes_in_sources_raise_no_warning(tmp_path):
    assert _read(tmp_path, '"""A \\d digit."""') == ["A \\d digit."]


def test_mask_names():
    text = "NumPy's np.array, input of TorchScript and pytorch; spline of sp"
    assert mask_names(text, ["numpy", "np", "torch", "pytorch", "sp"], "X") == (
        "X's X.array, input of XScript and X; spline of X"
    )


def test_texts_have_labels_of_every_library(docstrings, extent):
    assert docstrings.target_names == ["numpy", "scikit-learn", "scipy", "torch"]
    assert np.unique(docstrings.target).tolist() == docstrings.target_names
    n_texts = len(docstrings.data)
    assert n_texts == len(docstrings.target)
    assert n_texts > (3000 if extent == "whole" else 300)
    assert docstrings.target.dtype.kind == "U"
    assert all(type(text) is str for text in docstrings.data)


def test_no_text_names_a_library(docstrings):
    names = ("numpy", "scipy", "sklearn", "scikit-learn", "torch")
    named = [x for x in docstrings.data if any(name in x.lower() for name in names)]
    assert named == []


def test_texts_of_several_libraries_or_of_few_words_are_left_out(monkeypatch):
    def read(folder):
        own = f"Five words of only {folder.name[::-1]}."
        return [own, "Five words that all have.", "Just four words here."]

    monkeypatch.setattr(datasets, "read_docstrings", read)
    X, y = load_docstrings(return_X_y=True)
    owners = {text.split()[-1][-2::-1]: label for text, label in zip(X, y, strict=True)}
    assert owners == {
        "numpy": "numpy",
        "scipy": "scipy",
        "sklearn": "scikit-learn",
        "torch": "torch",
    }


def test_texts_are_unique_and_have_five_words_or_more(docstrings):
    assert len({text.casefold() for text in docstrings.data}) == len(docstrings.data)
    assert min(len(text.split()) for text in docstrings.data) == 5


@pytest.mark.slow
@pytest.mark.parametrize("extent", ["whole"], indirect=True, scope="module")
def test_the_classes_are_mixed_and_of_similar_size(docstrings):
    _, counts = np.unique(docstrings.target, return_counts=True)
    assert counts.max() <= 2500 < 3 * counts.min()
    _, head = np.unique(docstrings.target[:400], return_counts=True)
    assert head.size == 4
    assert head.min() > 40


def test_the_description_names_versions_and_counts(docstrings):
    counts = [(docstrings.target == name).sum() for name in ("numpy", "torch")]
    assert f"numpy {np.__version__}: {counts[0]};" in docstrings.DESCR
    assert f": {counts[1]}\n" in docstrings.DESCR


@pytest.mark.slow
def test_another_process_gives_the_same_texts_in_the_same_order(
    docstrings, other_process
):
    assert other_process["data"] == docstrings.data
    assert other_process["target"] == docstrings.target.tolist()


@pytest.mark.slow
def test_the_libraries_are_not_imported(other_process):
    # skactive itself imports the others.
    assert not other_process["has_imported_torch"]


def test_return_X_y_and_fewer_texts_per_library(docstrings, extent, monkeypatch):
    monkeypatch.setattr(datasets, "_LIBRARIES", {"numpy": "numpy"})
    X, y = _load(extent, max_per_library=50, return_X_y=True)
    assert y.tolist() == ["numpy"] * 50
    assert set(X) <= set(docstrings.data)


def test_few_texts_per_library_are_mixed_as_well():
    y = _load("part", max_per_library=20).target
    _, head = np.unique(y[:40], return_counts=True)
    assert head.size == 4
    assert head.min() > 5


@pytest.mark.parametrize("value", [0, -1, 2.5, "all"])
def test_max_per_library_must_be_positive(value):
    with pytest.raises(ValueError, match=r"'max_per_library' parameter .* an int"):
        load_docstrings(max_per_library=value)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(datasets._LIBRARIES, "no-such-library", "no_such_library")
    match = "'no-such-library', which is not installed here. Install it with `pip"
    with pytest.raises(ModuleNotFoundError, match=match):
        load_docstrings()


def test_a_text_of_two_libraries_is_dropped(tmp_path, monkeypatch):
    for name in ("one", "two"):
        path = tmp_path / f"docs_{name}" / "__init__.py"
        path.parent.mkdir()
        path.write_text(
            f'"""Some words that {name} alone says."""\n'
            'def f():\n    """The same five words twice."""\n'
            'def g():\n    """Too short."""\n'
            f'def h():\n    """SOME words that {name} alone says"""\n',
            encoding="utf-8",
        )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(datasets, "_LIBRARIES", {"a": "docs_one", "b": "docs_two"})
    X, y = load_docstrings(return_X_y=True)
    assert dict(zip(y.tolist(), X, strict=True)) == {
        "a": "Some words that one alone says.",
        "b": "Some words that two alone says.",
    }
