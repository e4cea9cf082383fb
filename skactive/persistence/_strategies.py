"""Query strategies, saved by registered name with distribution and version."""

import warnings
from contextlib import suppress

from .._storage._versions import major
from ..registry import available, find, get_strategy
from ..strategies._base import FunctionStrategy
from ._codec import OBJECT_FILE, TAG, LoadError, quote


def encode_choice(value, where, writer):
    """Return a `strategy` argument, a name or an instance, as a node.

    Raise a TypeError for a plain function and for an unregistered class.
    """
    if isinstance(value, str):
        return {TAG: "strategy_name", "value": str(value), **_provenance(find(value))}
    node = encode_strategy(value, where, writer)
    return _refuse(value, where) if node is NotImplemented else node


def encode_strategy(value, where, writer):
    """Return an instance of a strategy as a node, or NotImplemented."""
    if isinstance(value, type) or not hasattr(value, "select"):
        return NotImplemented
    is_function = type(value) is FunctionStrategy
    entry = _find_entry(value.function if is_function else type(value))
    if entry is None:
        _refuse(value.function if is_function else value, where)
    params = {} if is_function else value.get_params(deep=False)
    node = {TAG: "strategy", **_provenance(entry), "params": {}}
    for name, param in params.items():
        place = f"{where}.{name}"
        if name in getattr(value, "_parts", ()):  # a strategy, perhaps by its name
            node["params"][name] = encode_choice(param, place, writer)
        else:
            node["params"][name] = writer.encode(param, place)
    return node


def _provenance(entry):
    return {"name": entry.name, "dist": entry.dist, "version": entry.version}


def _find_entry(offered):
    """Return the entry of a strategy's class or function, or None."""
    home = f"{offered.__module__}:{getattr(offered, '__qualname__', '')}"
    package = offered.__module__.split(".")[0]
    candidates = available()
    for entry in candidates:
        if entry.value == home:
            with suppress(ImportError):
                if entry.load() is offered:
                    return entry
    for entry in candidates:  # an entry point may name a class where it is imported to
        if entry.value.split(":")[0].split(".")[0] == package:
            with suppress(ImportError):
                if entry.load() is offered:
                    return entry
    return None


def _refuse(value, where):
    if callable(value) and not hasattr(value, "select"):
        raise TypeError(
            f"{quote(where)} must be a registered strategy to be saved, got the "
            f"function {getattr(value, '__qualname__', value)!r}, whose code cannot be "
            "saved. Register it as a plugin or with skactive.registry.register, and "
            "pass its name."
        )
    raise TypeError(
        f"{quote(where)} must be a registered strategy to be saved, got {value!r}, "
        f"whose class {type(value).__qualname__} is not registered. Register it as a "
        "plugin, or with skactive.registry.register."
    )


def _find_saved(node, where):
    """Return the entry of a saved strategy; warn if its major version differs."""
    name, dist = str(node["name"]), str(node["dist"])
    written = f"{dist} {node['version']}".strip()
    try:
        entry = find(f"{dist}:{name}")
    except ValueError as exc:
        remedy = (
            "Register it before loading."
            if dist == "this session"
            else f"Install {written}."
        )
        raise LoadError(
            f"{OBJECT_FILE!r} holds the strategy {name!r} of {written} at "
            f"{quote(where)}, which is not installed here ({exc}) {remedy}"
        ) from exc
    if major(entry.version) != major(node["version"]):
        warnings.warn(
            f"the strategy {name!r} was saved with {written}, but is of {entry.dist} "
            f"{entry.version} here: it may query other items.",
            UserWarning,
            stacklevel=2,
        )
    return entry


def _decode_name(node, where, reader):
    entry, value = _find_saved(node, where), str(node["value"])
    # Another distribution may have taken the short name since.
    with suppress(ValueError):
        if find(value) == entry:
            return value
    return entry.full_name


def _decode_strategy(node, where, reader):
    full_name = _find_saved(node, where).full_name
    params = {k: reader.decode(v, f"{where}.{k}") for k, v in node["params"].items()}
    return get_strategy(full_name, **params)


STRATEGY_DECODERS = {"strategy_name": _decode_name, "strategy": _decode_strategy}
