"""Estimators: those of skactive, those that contain others, and others by skops."""

import copy
import inspect
from importlib import import_module

from sklearn import config_context

from . import _bert
from ._codec import OBJECT_FILE, TAG, LoadError, quote
from ._strategies import encode_choice
from ._values import encode_items

# The only classes that are created by name; skops handles other estimators.
_HOMES = {
    "ActiveLearner": "skactive.learner",
    "BertClassifier": "skactive.bert",
    "BertFeatures": "skactive.bert",
    "BertRegressor": "skactive.bert",
    "FeatureUnion": "sklearn.pipeline",
    "FrozenEstimator": "sklearn.frozen",
    "Pipeline": "sklearn.pipeline",
}
_DATA = ("X_labeled_", "y_labeled_", "_kept_params", "_trained")  # of an ActiveLearner
_FINE_TUNED = ("BertClassifier", "BertRegressor")
_REQUESTS = "_metadata_request"
_FIRST_SKOPS = (0, 15)  # earlier versions trust unsafe types
# Plain objects with attributes, which skops does not trust because they are private.
_PLAIN = frozenset(
    {
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
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
        state, more = _bert.encode_weights(value, where, writer)
        node |= more
    else:
        state = dict(value.__getstate__())
        state.pop("_sklearn_version", None)
    if name == "BertFeatures" and writer.bundle:
        node["pretrained"] = _bert.write_encoder(value, where, writer)
    requests = state.pop(_REQUESTS, None)
    special = {}
    if name == "ActiveLearner":
        if not writer.data:
            state = {k: v for k, v in state.items() if k not in _DATA}
        choices = ("strategy", "cold_start", "strategy_")
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
    node["file"], path = writer.new_file("sklearn", where, ".skops")
    try:
        skops.dump(value, path)
        unknown = _find_unknown(skops, path, writer.trusted)
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
            "estimator with joblib.dump. BERT estimators may be steps of a Pipeline or "
            "FeatureUnion only."
        )
    return node


def _find_unknown(skops, path, trusted):
    """Return the types in a file that are not trusted."""
    found = skops.get_untrusted_types(file=path)
    return sorted(set(found) - _PLAIN - trusted)


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
    found = tuple(int(n) for n in skops.__version__.split(".")[:2] if n.isdigit())
    if found < _FIRST_SKOPS:
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
        unknown = _find_unknown(skops, path, reader.trusted)
        trusted = sorted(_PLAIN | reader.trusted)
        value = None if unknown else skops.load(path, trusted=trusted)
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
    return _set_requests(value, node.get("requests"))


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
        estimator = _bert.restore(cls, params, state, node, where, reader)
    else:
        if name == "BertFeatures":
            params = _bert.find_model(params, reader, node.get("pretrained"))
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
