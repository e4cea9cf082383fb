"""Folders whose files a manifest lists, checked before any is read."""

import hashlib
import json
import os
import re
from pathlib import Path

MANIFEST = "manifest.json"
FORMAT = "skactive"
FORMAT_VERSION = 1
CARD, _HUB_FILES = "README.md", ".cache/huggingface/"
# A library might load these from a folder; `save` never writes them.
_PICKLES_AND_CODE = (
    *(".bin", ".ckpt", ".cloudpickle", ".dill", ".joblib", ".pickle", ".pkl"),
    *(".pt", ".pth", ".py", ".pyc", ".so"),
)


class LoadError(ValueError):
    """A saved folder cannot be loaded."""


def hash_file(path):
    """Return the SHA-256 of a file, str."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_json(path):
    """Return the content of a JSON file, or raise a LoadError that names it."""
    try:
        text = path.read_bytes().decode("utf-8", "surrogatepass")
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise LoadError(
            f"{path.name!r} in {os.fspath(path.parent)!r} must be JSON that "
            f"skactive.save wrote, and is not ({type(exc).__name__}: {exc}). Save "
            "again, or copy the folder anew."
        ) from exc


def _refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def list_files(folder):
    """Return the paths of everything but folders, by relative names with slashes."""
    paths = {}
    for directory, subfolders, names in os.walk(folder):
        # A link to a folder counts as a file: it is not followed, and refused later.
        links = [s for s in subfolders if os.path.islink(os.path.join(directory, s))]
        for name in [*names, *links]:
            path = Path(directory, name)
            paths[path.relative_to(folder).as_posix()] = path
    return paths


def is_read(name):
    """Whether `load` uses a file: not the model card, nor what the hub adds."""
    return name not in (CARD, ".gitattributes") and not name.startswith(_HUB_FILES)


def read_manifest(folder, writer="skactive.save"):
    """Return the manifest of a folder that `writer` wrote, a dict."""
    path = folder / MANIFEST
    if not path.is_file() or path.is_symlink():
        raise LoadError(
            f"'folder' must be what {writer} wrote, got {os.fspath(folder)!r}, "
            f"which has no {MANIFEST!r}. Pass the folder itself, copied whole."
        )
    manifest = read_json(path)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise LoadError(
            f"{MANIFEST!r} in {os.fspath(folder)!r} must be one of {writer}, and "
            "is of something else. Pass another folder."
        )
    return manifest


def check_folder(root, writer="skactive.save"):
    """Check every file of a folder against its manifest.

    Return the relative names of the files without the manifest, and the versions.
    Raise a LoadError that names a file that is missing, changed or not listed.
    """
    manifest = read_manifest(root, writer)
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise LoadError(
            f"{MANIFEST!r} in {os.fspath(root)!r} is of format version {version!r}; "
            f"this version of skactive reads {FORMAT_VERSION}. Install the version "
            "that wrote it, or save again."
        )
    listed = manifest.get("files")
    versions = manifest.get("versions")
    if not isinstance(listed, dict) or not isinstance(versions, dict):
        raise LoadError(
            f"{MANIFEST!r} in {os.fspath(root)!r} must list 'files' and 'versions', "
            "and does not. Save again, or copy the folder anew."
        )
    files = {name: x for name, x in list_files(root).items() if is_read(name)}
    files.pop(MANIFEST)
    if missing := sorted(set(listed) - set(files)):
        raise LoadError(
            f"{missing[0]!r} is missing in {os.fspath(root)!r}, though {MANIFEST!r} "
            f"lists it ({len(missing)} missing in all). Copy the folder anew, whole."
        )
    if extra := sorted(set(files) - set(listed)):
        raise LoadError(
            f"{extra[0]!r} in {os.fspath(root)!r} is not listed in {MANIFEST!r} "
            f"({len(extra)} such files in all). Remove it if you know it; otherwise do "
            "not trust the folder."
        )
    for name, path in sorted(files.items()):
        if name.lower().endswith(_PICKLES_AND_CODE):
            raise LoadError(
                f"{name!r} is a pickle or code, which skactive.save does not write. "
                "It was not loaded; do not trust the folder."
            )
        expected = listed[name]
        if path.is_symlink() or not path.is_file():
            raise LoadError(
                f"{name!r} in {os.fspath(root)!r} must be a plain file, and is not. "
                "Copy the folder anew, with the content of links."
            )
        if not isinstance(expected, dict) or hash_file(path) != expected.get("sha256"):
            raise LoadError(
                f"{name!r} in {os.fspath(root)!r} has changed since it was saved: its "
                f"SHA-256 is not the one in {MANIFEST!r}. Copy the folder anew, or "
                "save again."
            )
    return frozenset(listed), versions


def refuse_other_weights(path):
    """Raise a LoadError for an ONNX graph with weights in other files.

    The names of these files are values of a key "location", which the number of its
    letters precedes.
    """
    graph = path.read_bytes()
    if any(graph[x.start() - 1] in (0, 8) for x in re.finditer(b"location", graph)):
        raise LoadError(
            f"{path.name!r} in {os.fspath(path.parent)!r} must hold all weights, and "
            "names other files. Do not trust the folder."
        )
