"""Estimators: those of skactive, those that contain others, and others by skops.

Query strategies are saved by registered name with distribution and version.
"""

import copy
import inspect
import os
import warnings
import zipfile
from contextlib import suppress
from importlib import import_module

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import Bunch

from .._storage._fingerprint import major
from .._utils._plugins import find, find_plugin
from ..registry import FunctionStrategy, get_strategy
from ._bert import encode_weights, find_model, restore, write_encoder, write_table
from ._folder import MOST_BYTES, OBJECT_FILE, TAG, LoadError, check_size, quote
from ._values import encode_items


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
    entry = find_plugin(value.function if is_function else type(value))
    if entry is None:
        _refuse(value.function if is_function else value, where)
    params = {} if is_function else value.get_params(deep=False)
    node = {TAG: "strategy", **_provenance(entry), "params": {}}
    for name, param in params.items():
        part_where = f"{where}.{name}"
        if name in getattr(value, "parts", ()):  # a strategy, perhaps by its name
            node["params"][name] = encode_choice(param, part_where, writer)
        else:
            node["params"][name] = writer.encode(param, part_where)
    return node


def _provenance(entry):
    return {"name": entry.name, "dist": entry.dist, "version": entry.version}


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


# The only classes that are created by name; skops handles other estimators.
_HOMES = {
    "ActiveLearner": "skactive.learner",
    "AdaptedFeatures": "skactive.bert",
    "BertClassifier": "skactive.bert",
    "BertFeatures": "skactive.bert",
    "BertRegressor": "skactive.bert",
    "ClassDescriptions": "skactive",
    "ContrastiveEncoder": "skactive.bert._adapted",
    "FeatureUnion": "sklearn.pipeline",
    "FewLabelClassifier": "skactive.linear_model",
    "FrozenEstimator": "sklearn.frozen",
    "MixtureClassifier": "skactive.semi_supervised",
    "Pipeline": "sklearn.pipeline",
    "PrecomputedFeatures": "skactive.features",
    "PrototypeClassifier": "skactive.linear_model",
    "SelfTraining": "skactive.semi_supervised",
    "SequentialLogisticRegression": "skactive.linear_model",
    "StaticFeatures": "skactive.features",
    "TunedOneVsRestClassifier": "skactive.linear_model",
}
_DATA = ("X_labeled_", "y_labeled_", "_kept_params", "_trained")  # of an ActiveLearner
_FINE_TUNED = ("BertClassifier", "BertRegressor", "ContrastiveEncoder")
_REQUESTS = "_metadata_request"
_FIRST_SKOPS = (0, 15)  # earlier versions trust unsafe types
# Plain objects with attributes, which skops does not trust because they are private.
_PLAIN = frozenset(
    {
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.multiclass._ConstantPredictor",
        "sklearn.utils._bunch.Bunch",
    }
)


def encode_estimator(value, where, writer):
    """Return an estimator, fitted or not, as a node, or NotImplemented."""
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return NotImplemented
    name = type(value).__name__
    home = _HOMES.get(name)
    if home and type(value).__module__.split(".")[0] == home.split(".")[0]:
        return _encode_known(value, name, where, writer)
    if type(value).__module__.split(".")[0] == "skactive":
        raise TypeError(
            f"{quote(where)} must be one of {', '.join(_HOMES)} or a scikit-learn "
            f"estimator to be saved, got {name}. Save what it holds, such as its "
            "estimator_."
        )
    return _encode_by_skops(value, where, writer)


def _encode_known(value, name, where, writer):
    params = value.get_params(deep=False)
    node = {TAG: "estimator", "class": name}
    if name in _FINE_TUNED:
        state, more = encode_weights(value, where, writer)
        node |= more
    else:
        state = dict(value.__getstate__())
        state.pop("_sklearn_version", None)
    if name in ("AdaptedFeatures", "BertFeatures") and writer.bundle:
        node["pretrained"] = write_encoder(value, where, writer)
    if name == "ClassDescriptions":  # a model holds no texts of the pool
        params["machine_texts"] = None
    if name == "StaticFeatures" and writer.bundle:
        node["pretrained"] = write_table(value, writer)
    requests = state.pop(_REQUESTS, None)
    special = {}
    if name == "ActiveLearner":
        if not writer.data:
            state = {k: v for k, v in state.items() if k not in _DATA}
        choices = ("strategy", "cold_start", "strategy_")
        choices = [key for key in choices if state.get(key) is not None]
        special = dict.fromkeys(choices, encode_choice) | {"X_labeled_": encode_items}

    def encode(values):
        return {
            key: special.get(key, _encode_plainly)(item, _join(where, key), writer)
            for key, item in values.items()
        }

    node["params"] = encode(params)
    node["state"] = encode({k: v for k, v in state.items() if k not in params})
    if requests is not None:
        node["requests"] = _list_requests(value)
    return node


def _encode_plainly(value, where, writer):
    return writer.encode(value, where)


def _join(where, key):
    return f"{where}.{key}" if where else key


def _list_requests(estimator):
    """Return the metadata requests that `set_fit_request` and others have set."""
    routing = estimator.get_metadata_routing()
    return {
        method: dict(request.requests)
        for method, request in vars(routing).items()
        if getattr(request, "requests", None)
    }


def _set_requests(estimator, requests):
    with config_context(enable_metadata_routing=True):
        for method, asked in (requests or {}).items():
            if not method.isidentifier():
                raise TypeError(f"{method!r} is not a method")
            getattr(estimator, f"set_{method}_request")(**asked)
    return estimator


def _encode_by_skops(value, where, writer):
    skops = _import_skops(where)
    node = {TAG: "skops", "class": type(value).__qualname__}
    if hasattr(value, _REQUESTS):  # skops recurses without end in these
        node["requests"] = _list_requests(value)
        value = copy.copy(value)
        delattr(value, _REQUESTS)
    # What skops does not save has a file of its own, and a number in its place.
    parts = {id(x): x for x in _walk(value, _is_part) if _is_part(x)}
    if parts:
        prefix = f"{where or 'estimator'}.part"
        node["parts"] = [
            writer.encode(x, f"{prefix}[{i}]") for i, x in enumerate(parts.values())
        ]
    node["file"], path = writer.new_file("sklearn", where, ".skops")
    try:
        marks = {key: Bunch(**{TAG: i}) for i, key in enumerate(parts)}
        skops.dump(copy.deepcopy(value, marks) if parts else value, path)
        unknown = _find_unknown(skops, path, writer.trusted)
    except OSError:  # such as a full disk
        raise
    except Exception as exc:  # the parts of an estimator may raise anything
        raise TypeError(
            f"{quote(where)} cannot be saved by skops, got {value!r} "
            f"({type(exc).__name__}: {exc}). Remove parts that scikit-learn lacks."
        ) from exc
    if unknown:
        raise TypeError(
            f"{quote(where)} must hold only types that skops trusts to be saved, got "
            f"{type(value).__name__} with {', '.join(unknown)}. If you trust these, "
            f"pass trusted={unknown} to save and to load; otherwise pickle the "
            "estimator with joblib.dump."
        )
    return node


def _find_unknown(skops, path, trusted):
    """Return the types in a file that are not trusted."""
    types = skops.get_untrusted_types(file=path)
    return sorted(set(types) - _PLAIN - trusted)


def _import_skops(where):
    try:
        import skops
        import skops.io
    except ImportError as exc:
        raise ImportError(
            f"{quote(where)} is a scikit-learn estimator, and skops, which saves and "
            "loads those without pickle, is not installed. Install it with "
            "`pip install 'skactive[save]'`."
        ) from exc
    version = tuple(int(n) for n in skops.__version__.split(".")[:2] if n.isdigit())
    if version < _FIRST_SKOPS:
        raise ImportError(
            f"{quote(where)} is a scikit-learn estimator, which skops "
            f"{skops.__version__} does not load safely. Install a newer one with "
            "`pip install 'skactive[save]'`."
        )
    return skops.io


def _decode_by_skops(node, where, reader):
    path = reader.path(node["file"])
    skops = _import_skops(where)
    try:
        with zipfile.ZipFile(path) as file:
            n_bytes = _count_unpacked(file)
        check_size(node["file"], path, n_bytes)
        unknown = _find_unknown(skops, path, reader.trusted)
        trusted = sorted(_PLAIN | reader.trusted)
        with warnings.catch_warnings():  # load has compared the versions
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            value = None if unknown else skops.load(path, trusted=trusted)
    except LoadError:
        raise
    except Exception as exc:  # a damaged file may raise anything
        raise LoadError(
            f"{node['file']!r} cannot be loaded by skops ({type(exc).__name__}: {exc})."
            " Save again, or install the versions that wrote it."
        ) from exc
    if unknown:
        raise LoadError(
            f"{node['file']!r} holds types that are not trusted: "
            f"{', '.join(unknown)}. It was not loaded. If you trust the folder and "
            f"these types, pass trusted={unknown}; some may need the version of skops "
            "that wrote the folder."
        )
    if type(value).__qualname__ != node["class"] or not hasattr(value, "get_params"):
        raise LoadError(
            f"{node['file']!r} must hold a {node['class']}, and holds a "
            f"{type(value).__qualname__}. Save again."
        )
    _complete(value)
    if parts := [reader.decode(part, where) for part in node.get("parts", ())]:
        marks = [x for x in _walk(value) if type(x) is Bunch and TAG in x]
        value = copy.deepcopy(value, {id(mark): parts[mark[TAG]] for mark in marks})
    return _set_requests(value, node.get("requests"))


def _complete(estimator):
    """Set parameters that another version of scikit-learn lacked to their defaults."""
    for part in _walk(estimator):
        known = type(part)._get_param_names() if isinstance(part, BaseEstimator) else ()
        for name in known:
            default = inspect.signature(type(part)).parameters[name].default
            if not hasattr(part, name) and default is not inspect.Parameter.empty:
                setattr(part, name, default)


def _count_unpacked(file):
    """Return the bytes of all entries of a zip file; of `.npz` entries, unpacked."""
    n_bytes = 0
    for entry in file.infolist():
        n_bytes += entry.file_size
        if entry.filename.endswith(".npz") and entry.file_size < MOST_BYTES:
            with file.open(entry) as stream, zipfile.ZipFile(stream) as inner:
                n_bytes += sum(part.file_size for part in inner.infolist())
    return n_bytes


def disarm(estimator, forget=False):
    """Keep a loaded estimator from reading and writing stores in folders.

    A `memory` becomes None, as joblib's stores hold pickles, and a `cache` in a folder
    becomes "memory". With `forget`, nothing of a text is kept in memory either.
    """
    for value in _walk(estimator):
        own = vars(value) if _is_opened(value) else {}
        if _is_store(own.get("memory")):
            own["memory"] = None
        if _is_store(own.get("cache")):
            own["cache"] = None if forget else "memory"
        if forget and "cache_frozen" in own:
            own["cache_frozen"] = False


def _walk(estimator, is_leaf=lambda value: False):
    """Yield an estimator and what it holds; what is inside of leaves is left out."""
    waiting, seen = [estimator], {}
    while waiting:
        value = waiting.pop()
        if isinstance(value, str | int | float | None) or id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        elif isinstance(value, np.ndarray):
            waiting += value.ravel().tolist() if value.dtype == object else ()
        elif _is_opened(value) and (value is estimator or not is_leaf(value)):
            waiting += vars(value).values()


def _is_opened(value):
    """Whether an object may hold estimators in its attributes."""
    is_ours = type(value).__module__.startswith(_OPENED) or hasattr(value, "get_params")
    return is_ours and hasattr(value, "__dict__")


def _is_part(value):
    """Whether an estimator inside another one is saved by itself."""
    is_own = type(value).__module__.startswith("skactive.") or hasattr(value, _REQUESTS)
    return is_own and hasattr(value, "get_params") and not isinstance(value, type)


_OPENED = ("skactive.", "sklearn.")  # whose objects may hold estimators


def _is_store(value):
    return isinstance(value, str | os.PathLike) or hasattr(value, "cache")


def _decode_known(node, where, reader):
    name = node["class"]
    if name not in _HOMES:
        raise LoadError(
            f"{OBJECT_FILE!r} names the class {name!r} at {quote(where)}, which may "
            f"not be loaded. Allowed are {', '.join(_HOMES)}. Do not trust the folder, "
            "or load it with the version that wrote it."
        )
    cls = getattr(import_module(_HOMES[name]), name)
    params, state = (
        {k: reader.decode(v, _join(where, k)) for k, v in node[part].items()}
        for part in ("params", "state")
    )
    _check_names(cls, state)
    if name in _FINE_TUNED:
        estimator = restore(cls, params, state, node, where, reader)
    else:
        if name in ("AdaptedFeatures", "BertFeatures", "StaticFeatures"):
            params = find_model(params, reader, node.get("pretrained"))
        estimator = cls(**params)
        vars(estimator).update(state)
    return _set_requests(estimator, node.get("requests"))


def _check_names(cls, state):
    """Raise a TypeError for attributes that would hide a method or property."""
    for name in state:
        own = inspect.getattr_static(cls, name, None)
        is_hidden = isinstance(own, property) or callable(getattr(cls, name, None))
        if not name.isidentifier() or name.startswith("__") or is_hidden:
            raise TypeError(f"{name!r} is not an attribute of a {cls.__name__}")


ESTIMATOR_DECODERS = {"estimator": _decode_known, "skops": _decode_by_skops}
