"""The built-in data set: first paragraphs of public docstrings, from source files."""

import ast
import gc
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import warnings
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._utils._sklearn import Interval, validate_params

# Tests and vendored copies of other projects do not document the library itself.
_FOREIGN = re.compile(r"(^|_)(tests?|testing|testutils)($|_)|^(conftest|externals)$")
# numpy keeps its public functions in a private folder; elsewhere a private folder
# holds private code, while a private file often holds public names.
_PUBLIC_FOLDERS = {"_core"}

_ROLE = re.compile(r":(?:\w+:)*\w+:(?=`)")
_LINK = re.compile(r"`{1,2}~?([^`]*?)(?:\s*<[^`<>]*>)?`{1,2}_{0,2}")
_UNDERLINE = re.compile(r"^([=\-~^*#\"'])\1{2,}$")
_SIGNATURE = re.compile(r"^[\w.]+(, [\w.]+)*( = [\w.]+)?\(.*\)?\s*(->.*)?$", re.DOTALL)
_SECTIONS = re.compile(
    r"^(parameters|args|arguments|returns?|yields|raises|attributes|methods|notes?|"
    r"examples?|see also|references|usage|copyright)\b",
    re.IGNORECASE,
)
_WHOLE_WORD = re.compile(r"^(np|sp)$")


def read_docstrings(folder):
    """Read the first paragraph of every public docstring below a package's folder.

    The files are parsed, never imported.
    """
    for path in _source_files(Path(folder)):
        for docstring in _read(path):
            paragraph = first_paragraph(docstring)
            if paragraph:
                yield paragraph


def _read(path):
    """Return the docstrings of a file, none if it is not code for this Python."""
    # A syntax tree is many objects and no cycles: collecting garbage while it exists
    # finds nothing, and takes two fifths of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in others' sources
            return list(_docstrings(ast.parse(path.read_bytes())))
    except (SyntaxError, ValueError):  # templates, code for other versions
        return []
    finally:
        if collects:
            gc.enable()


def first_paragraph(docstring):
    """Return the first paragraph of prose of a docstring."""
    for block in re.split(r"\n\s*\n", docstring.strip()):
        lines = [line.strip() for line in block.strip().split("\n")]
        if len(lines) > 1 and _SECTIONS.match(lines[0]):
            return ""
        if any(map(_UNDERLINE.match, lines)):  # a title
            lines = lines[max(i for i, x in enumerate(lines) if _UNDERLINE.match(x)) :]
            lines = lines[1:]
        text = " ".join(lines).strip()
        if not text or _SIGNATURE.match(text):
            continue
        if text.startswith((">>>", "..", ":", "* ", "- ", "{", "@")):
            return ""
        text = _LINK.sub(r"\1", _ROLE.sub("", text))
        return " ".join(text.split()).removesuffix("::").strip()
    return ""


def mask_names(text, names, token="library"):
    """Replace names in a text, in any case and inside longer identifiers."""
    return _names_pattern(tuple(names)).sub(token, text)


@cache
def _names_pattern(names):
    parts = []
    for name in sorted(names, key=len, reverse=True):
        escaped = re.escape(name)
        whole = _WHOLE_WORD.match(name)
        parts.append(rf"(?<![A-Za-z]){escaped}(?![A-Za-z])" if whole else escaped)
    return re.compile("|".join(parts), re.IGNORECASE)


def _source_files(root):
    for folder, subfolders, names in os.walk(root):
        # os.walk visits only the subfolders that are left in the list.
        subfolders[:] = sorted(filter(_is_public_folder, subfolders))
        for name in sorted(names):
            if name.endswith(".py") and not _FOREIGN.search(name[:-3]):
                yield Path(folder, name)


def _is_public_folder(name):
    if _FOREIGN.search(name):
        return False
    return not name.startswith("_") or name in _PUBLIC_FOLDERS


def _docstrings(tree):
    docstring = ast.get_docstring(tree, clean=False)
    if docstring:
        yield docstring
    yield from _inner_docstrings(tree)


def _inner_docstrings(node):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if child.name.startswith("_"):
                continue
            docstring = ast.get_docstring(child, clean=False)
            if docstring:
                yield docstring
            if isinstance(child, ast.ClassDef):
                yield from _inner_docstrings(child)
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _inner_docstrings(child)
        elif isinstance(child, ast.Expr | ast.Assign):
            yield from _added_docstring(child.value)


def _added_docstring(call):
    """Yield the docstring that a call such as ``add_newdoc`` adds to compiled code."""
    if not isinstance(call, ast.Call):
        return
    function = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if not function.lstrip("_").startswith(("add_newdoc", "add_docstr")):
        return
    # add_newdoc(place, object, text), add_newdoc(place, object, (name, text)) and
    # add_docstr(object, text): the argument before the text names the object.
    *owners, last = call.args or [None]
    if isinstance(last, ast.Tuple) and len(last.elts) == 2:
        owners, last = [*owners, last.elts[0]], last.elts[1]
    named = [_constant(owner) for owner in owners[-1:]]
    text = _constant(last)
    if text and not any(name and name.startswith("_") for name in named):
        yield text.strip("\n")


def _constant(node):
    """Join the string literals of an expression: 'a' + 'b', 'a{}'.format(b)."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _constant(node.left), _constant(node.right)
        return None if left is None else left + (right or "")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _constant(node.func.value) if node.func.attr == "format" else None
    return None


# The data set -------------------------------------------------------------------------

# Label, which is also the name of the distribution, and the package's name.
_LIBRARIES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "torch": "torch",
}
_MASKED = (
    *("numpy", "np", "scipy", "sp", "sklearn", "scikit-learn", "scikit_learn"),
    *("scikit learn", "scikits", "pytorch", "torch"),
)
_MIN_WORDS = 5

_DESCR = """Docstrings of scientific Python libraries

First paragraphs of the public docstrings of the libraries installed on this machine,
read from their source files. The task is to tell the library from the text. Library
names are masked by "library"; call signatures, titles and markup are removed; texts
under {min_words} words, repeated texts and texts found in two libraries are left out.
Texts kept per library: {cap}, chosen and ordered by a digest of the text.

Texts per library: {counts}
"""


@validate_params(
    {
        "max_per_library": [Interval(Integral, 1, None, closed="left"), None],
        "return_X_y": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def load_docstrings(
    *, max_per_library: int | None = 2500, return_X_y: bool = False
) -> Any:
    """Load docstrings of numpy, scipy, scikit-learn and torch, labeled by library.

    The data set needs no download. The texts are the first paragraphs of the
    docstrings of public modules, classes, functions and methods. They are read from
    the installed source files, which are parsed and never imported. The names of the
    libraries are masked, so a classifier must learn the subjects of the libraries.

    Parameters
    ----------
    max_per_library : int or None, default=2500
        Largest number of texts per library, so that the classes are similar in size.
        None keeps all texts; torch then has about four times as many as numpy. The
        selection depends on the content of the texts only.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like, with the following attributes.

        data : list of str, length n_samples
            The texts, in a mixed order that is the same on every call.
        target : ndarray of str, shape (n_samples,)
            The library of each text.
        target_names : list of str
            The libraries, in alphabetical order.
        DESCR : str
            A description of the data set, with the versions of the libraries.

    (data, target) : tuple if `return_X_y` is True

    Raises
    ------
    ValueError
        If `max_per_library` is neither None nor a positive int.
    ModuleNotFoundError
        If one of the libraries is not installed as source files.

    Notes
    -----
    The texts depend on the installed versions, which are in `DESCR`. Results from two
    machines are comparable only if the versions are the same.

    A module is public unless it is in a private folder, in tests, or in a vendored copy
    of another project. A private file in a public folder is public, because these
    libraries define most of their public names in such files.

    Examples
    --------
    >>> from collections import Counter
    >>> from skactive.datasets import load_docstrings
    >>> docstrings = load_docstrings(max_per_library=100)
    >>> for library, n_texts in sorted(Counter(docstrings.target.tolist()).items()):
    ...     print(library, n_texts)
    numpy 100
    scikit-learn 100
    scipy 100
    torch 100
    """
    # Find all packages before any is parsed, so that an error is raised at once.
    folders = {label: _package_folder(label) for label in _LIBRARIES}

    texts: dict[str, str] = {}
    owners: dict[str, set[str]] = {}
    for label, folder in folders.items():
        for paragraph in read_docstrings(folder):
            text = mask_names(paragraph, _MASKED)
            if len(text.split()) >= _MIN_WORDS:
                key = text.casefold().rstrip(". ")
                texts.setdefault(key, text)
                owners.setdefault(key, set()).add(label)

    # Sorting by a digest shuffles without a random generator: a text that a new version
    # adds does not change the order of the others.
    rows: dict[str, list[tuple[bytes, str, str]]] = {label: [] for label in _LIBRARIES}
    for key, labels in owners.items():
        if len(labels) == 1:
            digest = hashlib.sha256(texts[key].encode()).digest()
            rows[next(iter(labels))].append((digest, texts[key], next(iter(labels))))
    kept = [row for of in rows.values() for row in sorted(of)[:max_per_library]]
    # The first digests of a large library are all small, so another digest mixes them.
    kept.sort(key=lambda row: hashlib.sha256(row[0]).digest())

    data = [text for _, text, _ in kept]
    target = np.array([label for *_, label in kept])
    if return_X_y:
        return data, target
    counts = "; ".join(
        f"{label} {_version(label)}: {(target == label).sum()}" for label in _LIBRARIES
    )
    cap = "all" if max_per_library is None else f"at most {max_per_library:,}"
    return Bunch(
        data=data,
        target=target,
        target_names=sorted(_LIBRARIES),
        DESCR=_DESCR.format(min_words=_MIN_WORDS, cap=cap, counts=counts),
    )


def _package_folder(label):
    package = _LIBRARIES[label]
    # For a top-level name, find_spec imports nothing.
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise ModuleNotFoundError(
            f"load_docstrings reads the source files of {label!r}, which is not "
            f"installed here. Install it with `pip install {label}`, or use load_table "
            "for a data set of your own.",
            name=package,
        )
    return Path(spec.origin).parent


def _version(label):
    try:
        return importlib.metadata.version(label)
    except importlib.metadata.PackageNotFoundError:  # a source tree, or renamed
        return "of unknown version"
