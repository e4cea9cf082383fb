"""Read the first paragraphs of public docstrings out of source files."""

import ast
import gc
import os
import re
import warnings
from functools import cache
from pathlib import Path

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
