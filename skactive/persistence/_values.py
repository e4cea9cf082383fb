"""Plain values: what JSON has, and the Python and numpy types that it lacks."""

import math
import os
from pathlib import Path, PurePath

import numpy as np

from ._codec import TAG

_SEQUENCES = {tuple: "tuple", set: "set", frozenset: "frozenset"}


def encode_value(value, where, writer):
    """Encode a plain value; types survive, those of numpy's scalars too.

    Parameters
    ----------
    value : object
    where : str
    writer : Writer

    Returns
    -------
    node : what JSON takes, or NotImplemented
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        if math.isfinite(value):
            return value
        return {TAG: "float", "value": str(value)}
    if kind is list:
        return [writer.encode(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if kind in _SEQUENCES:
        items = list(value) if kind is tuple else sorted(value, key=repr)
        return {TAG: _SEQUENCES[kind], "items": encode_value(items, where, writer)}
    if kind is dict:
        return _encode_dict(value, where, writer)
    if isinstance(value, PurePath):
        return {TAG: "path", "value": os.fspath(value)}
    if isinstance(value, np.generic):
        return _encode_scalar(value, where, writer)
    if kind is np.random.RandomState:
        state = value.get_state(legacy=False)
        return {TAG: "random_state", "state": writer.encode(state, where)}
    return NotImplemented


def _encode_dict(value, where, writer):
    if TAG not in value and all(type(key) is str for key in value):
        return {k: writer.encode(v, f"{where}.{k}") for k, v in value.items()}
    items = [
        [writer.encode(k, f"{where} key"), writer.encode(v, f"{where}[{k!r}]")]
        for k, v in value.items()
    ]
    return {TAG: "dict", "items": items}


def _encode_scalar(value, where, writer):
    # A longdouble has no float that holds it, and complex and time no JSON.
    too_wide = value.dtype.kind == "f" and value.dtype.itemsize > 8
    if too_wide or value.dtype.kind not in "biufU":
        return NotImplemented
    node = encode_value(value.item(), where, writer)
    return {TAG: "scalar", "dtype": value.dtype.str, "value": node}


def _decode_scalar(node, where, reader):
    dtype = np.dtype(node["dtype"])
    if dtype.kind not in "biufU":
        raise TypeError(f"no scalar has the dtype {dtype}")
    return dtype.type(reader.decode(node["value"], where))


def _decode_dict(node, where, reader):
    decode = reader.decode
    return {decode(k, where): decode(v, f"{where}[{k!r}]") for k, v in node["items"]}


def _decode_random_state(node, where, reader):
    state = np.random.RandomState()
    state.set_state(reader.decode(node["state"], where))
    return state


def _sequence(kind):
    return lambda node, where, reader: kind(reader.decode(node["items"], where))


VALUE_DECODERS = {
    "float": lambda node, where, reader: float(node["value"]),
    "path": lambda node, where, reader: Path(node["value"]),
    "scalar": _decode_scalar,
    "dict": _decode_dict,
    "random_state": _decode_random_state,
    **{name: _sequence(kind) for kind, name in _SEQUENCES.items()},
}
