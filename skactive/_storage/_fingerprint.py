"""Hashes of data and descriptions of estimators, which a later process can compare."""

import hashlib
import math
import os
import platform
import re
import types
import warnings
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import PurePath

import joblib
import numpy as np
from scipy import sparse

from .._utils._containers import as_list

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MAX_REPR = 200
_OWN_MODULE = re.compile(r"^skactive\.(?:\w+\.)+(?=\w+$)")


# Hashes of items --------------------------------------------------------------------


def hash_ids(ids):
    """Return a uint64 hash of each of n ids, (n,)."""
    # In parts, as a whole list of digests would take 40 bytes for each.
    ids, parts = iter(ids), []
    while part := list(islice(ids, 2**16)):
        digests = b"".join(_digest_bytes(_encode_id(id)) for id in part)
        parts.append(np.frombuffer(digests, "<u8").astype(np.uint64, copy=False))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def _encode_id(id):
    """Return what `_encode` returns, faster for the usual types."""
    if type(id) is str:
        return b"s" + id.encode("utf-8", "surrogatepass")
    return b"v%d" % id if type(id) is int else _encode(id)


def hash_items(X):
    """Return a uint64 hash of each of the n items of a container, (n,).

    Equal texts have equal hashes in every container. The hash of an object without
    comparable content is 0.
    """
    if hasattr(X, "hashes"):  # a TextPool
        return X.hashes
    encode = _encode_id  # the same bytes as `_encode`, faster for texts
    if sparse.issparse(X):
        encode = bytes
        X = X.tocsr().sorted_indices()
        bounds = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        rows = (
            _encode_array(X.indices[a:b].astype(np.int64)) + _encode_array(X.data[a:b])
            for a, b in bounds
        )
    elif hasattr(X, "iter_rows"):  # polars
        rows = X.iter_rows()
    elif hasattr(X, "itertuples"):  # pandas
        rows = X.itertuples(index=False, name=None)
    elif isinstance(X, np.ndarray) and X.ndim > 1 and X.dtype.kind in "fiubc":
        rows = X
    else:
        rows = as_list(X)
    return np.fromiter((hash_item(row, encode) for row in rows), dtype=np.uint64)


def hash_utf8(columns):
    """Return the hashes of texts, or of pairs, given as columns of bytes in UTF-8.

    These are those of `hash_items`, in less time.
    """
    if len(columns) == 1:
        contents = (b"s" + text for text in columns[0])
    else:
        contents = (
            _join(b"s" + part for part in row) for row in zip(*columns, strict=True)
        )
    digests = b"".join(map(_digest_bytes, contents))
    return np.frombuffer(digests, "<u8").astype(np.uint64, copy=False)


def hash_item(item, encode=None):
    """Return the hash of one item as `int`; see :func:`hash_items`."""
    try:
        return _digest((encode or _encode)(item))
    except _UnknownContentError:
        return 0


def digest_text(text):
    """Hash a text, or a pair of texts, to 16 bytes.

    The length of the first of a pair is hashed, so a pair differs from its texts
    joined.
    """
    if isinstance(text, str):
        content = b"t" + text.encode("utf-8", "surrogatepass")
    else:
        first, second = (part.encode("utf-8", "surrogatepass") for part in text)
        content = b"p%d:" % len(first) + first + second
    return _digest_bytes(content, 16)


def _digest(content):
    return int.from_bytes(_digest_bytes(content), "little")


def _digest_bytes(content, size=8):
    return hashlib.blake2b(content, digest_size=size).digest()


def _join(parts):
    return b"l" + b"".join(len(p).to_bytes(8, "little") + p for p in parts)


def _encode(value):
    """Return bytes that differ between different items."""
    if not isinstance(value, np.ndarray | np.generic) and (
        hasattr(value, "__array__") or hasattr(value, "__array_interface__")
    ):
        value = np.asarray(value)  # a tensor or a picture
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiubc":
        return _encode_array(value)
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if isinstance(value, list | tuple | np.ndarray):
        return _join([_encode(part) for part in value])
    if value is None or isinstance(value, bool | int | float | bytes):
        return b"v" + repr(value).encode()
    shown = repr(value)
    if _ADDRESS.search(shown):
        raise _UnknownContentError
    return b"r" + shown.encode("utf-8", "surrogatepass")


class _UnknownContentError(Exception):
    """The repr of an object contains only its address."""


def _encode_array(row):
    row = np.ascontiguousarray(row, dtype=row.dtype.newbyteorder("<"))
    return f"a{row.dtype.str}{row.shape}".encode() + row.tobytes()


# Descriptions of a simulation: texts, and dicts of texts ------------------------------


def hash_data(data):
    """Return the hash of a whole container as `str`."""
    if hasattr(data, "hashes"):  # a TextPool, whatever the name of its file
        data = np.asarray(data.hashes)
    return joblib.hash(data, hash_name="sha1")


def describe(value):
    """Return a value as text; an estimator as a dict with a text for each parameter."""
    if is_estimator(value):
        params = {"type": type(value), **value.get_params(deep=True)}
        return {name: _describe_one(params[name]) for name in sorted(params)}
    return _describe_one(value)


def _describe_one(value):
    if is_estimator(value):
        value = type(value)  # its parameters have entries of their own
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, np.ndarray) or sparse.issparse(value):
        return f"{type(value).__name__} {value.shape} {hash_data(value)}"
    return to_text(value)


def to_text(value):
    """Return the repr of a value in one line, without addresses in memory."""
    return " ".join(_ADDRESS.sub("", repr(value)).split())


def find_changes(old, new):
    """Return the differences between two descriptions as text, empty if equal.

    The module of a class of skactive does not count: it can move between versions.
    """
    changes = []
    for name in sorted({*old, *new}):
        before, after = (_name_plainly(part.get(name)) for part in (old, new))
        if isinstance(before, dict) and isinstance(after, dict):
            inner = find_changes(before, after)
            changes += [f"{name}: {inner}"] if inner else []
        elif before != after:
            was, now = (str(value)[:_MAX_REPR] for value in (before, after))
            changes.append(f"{name} was {was}, is {now}")
    return "; ".join(changes)


def _name_plainly(value):
    """Return a description without the modules of skactive's own classes."""
    if isinstance(value, dict):
        return {name: _name_plainly(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_name_plainly(part) for part in value]
    return _OWN_MODULE.sub("skactive.", value) if isinstance(value, str) else value


# Descriptions of a session: JSON values -----------------------------------------------


def describe_json(value):
    """Return a parameter as a JSON value; an estimator by its class alone."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, PurePath):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [describe_json(part) for part in value]
    if isinstance(value, dict):
        return {str(key): describe_json(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(hash_items(np.atleast_1d(value)).tobytes())
        return {"array": [*value.shape], "sha256": digest.hexdigest()}
    if is_estimator(value):
        return {"class": class_name(value)}  # its parameters have names of their own
    return {"repr": _ADDRESS.sub("", repr(value))[:_MAX_REPR]}


def is_estimator(value):
    """Whether a value is an instance with parameters."""
    return hasattr(value, "get_params") and not isinstance(value, type)


def class_name(value):
    """Return the full name of the class of a value."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


_PACKAGES = (
    "skactive",
    "scikit-learn",
    "numpy",
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "skops",
)


def collect_versions(packages=None):
    """Return the installed versions by name, None for missing ones; import nothing."""
    versions = {"python": platform.python_version()}
    for package in packages or _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions


def major(version):
    """Return the first number of a version as `str`, or None."""
    return version.split(".")[0] if isinstance(version, str) else None


def _read_version(version):
    """Return major and minor number of a version, an empty list for none."""
    return [int(number) for number in re.findall(r"\d+", str(version))[:2]]


def warn_of_versions(written, stacklevel=4, of_estimators=False):
    """Warn if major versions in `written` differ from the installed ones.

    With `of_estimators`, also if the minor version of scikit-learn differs, or that of
    skactive or skops is newer.
    """
    others, newer = [], []
    for package, here in collect_versions().items():
        then, now = _read_version(written.get(package)), _read_version(here)
        is_close = package == "scikit-learn" or (
            package in ("skactive", "skops") and then > now
        )
        n = 2 if of_estimators and is_close else 1
        if then and now and then[:n] != now[:n]:
            others.append(f"{package} {written[package]} (here {here})")
            newer += [package] if then > now else []
    if others:
        remedy = f" Upgrade {', '.join(newer)}: older versions may fail on it."
        warnings.warn(
            f"the folder was saved with {', '.join(others)}: what is loaded may "
            "behave differently. Compare predictions, or install the versions that "
            f"it was saved with.{remedy if newer else ''}",
            UserWarning,
            stacklevel=stacklevel,
        )
