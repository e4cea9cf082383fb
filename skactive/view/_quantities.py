"""The quantities that a strategy may require, and how a fitted model gives them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import is_regressor
from sklearn.utils import assert_all_finite

from .._math import _scores
from .._utils._chunks import LARGE, LazyRows, chunk_size, concatenate_chunks, float_rows
from .._utils._containers import BlockRows, is_dask, take_rows
from .._utils._labels import TARGETS, find_target, marginals
from .._utils._linear import check_boundary, check_gradient_factors
from .._utils._pipelines import first_steps, makes_features, split_estimator
from .._utils._plugins import read_declared
from .._utils._repeatable import one_blas_thread
from .._utils._sklearn import is_linear_classifier
from ..linear_model import quicken
from ..registry import OF_CLASSES, get_strategy

# Up to this many multiplications, threads of BLAS only wait for each other.
_SMALL = 2**30
ROWS = 2**18  # whose margins are computed at once
HALF_LIMIT = 2**22  # bytes of a chunk that was float16, which stays in the cache


def represent(final, inputs):
    """Return features (n, d) that the final estimator makes, else its inputs."""
    if makes_features(final):
        inputs = final.transform(inputs)
    features = inputs.tocsr() if sparse.issparse(inputs) else _as_array(inputs)
    if features.dtype.kind == "f":
        assert_all_finite(features, input_name="X")
    return features


def _as_array(X):
    """Return an array; a table of pandas with several kinds of numbers is float64."""
    array = np.asarray(X)
    if array.dtype == object and hasattr(X, "columns"):
        kinds = {getattr(dtype, "kind", "O") for dtype in X.dtypes}
        return X.to_numpy(np.float64, na_value=np.nan) if kinds <= {*"fiub"} else array
    return array


def predict_proba(final, inputs, name, n_jobs=1):
    """Return class probabilities (n, k), of each label for multi-label models.

    `inputs` is a container or LazyRows; linear models predict in `n_jobs` threads.
    """
    proba = _by_rows(final, "predict_proba", inputs, n_jobs)
    if isinstance(proba, list):
        proba = marginals(proba, final.classes_)
    _refuse_nan(proba, final, "probabilities")
    if np.ndim(proba) != 2:
        raise TypeError(
            f"strategy {name!r} needs probabilities of shape (n, k); "
            f"{type(final).__name__} predicts the shape {np.shape(proba)}."
        )
    return _sharpen(final, proba, inputs)


def predict(final, inputs):
    """Return the predictions (n,) or (n, k) of a model."""
    predictions = np.asarray(_by_rows(final, "predict", inputs, 1))
    _refuse_nan(predictions, final, "values")
    return predictions


def _sharpen(final, proba, inputs):
    """Restore small probabilities of the first class, which 1 - p rounds to 0.

    scikit-learn computes p of the second class from the decision value and subtracts it
    from 1, so a confident model would seem more confident about the second class.
    """
    if proba.shape[1] != 2 or not _is_logistic(final):
        return proba
    rounded = np.flatnonzero(proba[:, 0] < np.sqrt(np.finfo(proba.dtype).eps))
    if rounded.size:
        proba[rounded, 0] = expit(-decide(final, take_from(inputs, rounded)))
    return proba


def _is_logistic(final):
    """Whether `predict_proba` is scikit-learn's logistic function of one decision."""
    is_log_loss = getattr(final, "loss", "log_loss") == "log_loss"
    return is_log_loss and _is_known(final) and is_linear_classifier(final)


def _by_rows(final, method, inputs, n_jobs):
    """Predict in chunks of rows where that is faster or saves a large copy."""
    predict = getattr(final, method)
    dense = isinstance(inputs, np.ndarray | LazyRows) and inputs.ndim == 2
    if not dense or inputs.dtype.kind not in "fiub" or not len(inputs):
        return predict(inputs)
    # scikit-learn converts rows to float64 and predicts them independently.
    converted = 8 * inputs.shape[1]
    if is_linear_classifier(final):
        return _by_products(final, method, inputs, n_jobs)
    is_blocks = isinstance(getattr(inputs, "X", None), BlockRows)
    if (_is_known(final) or is_blocks) and converted * len(inputs) >= LARGE:
        size = chunk_size(converted, LARGE)
    else:
        return predict(np.asarray(inputs))
    return concatenate_chunks(lambda rows: predict(inputs[rows]), len(inputs), size)


def _by_products(final, method, inputs, n_jobs):
    """Predict with a linear model, for which copying rows takes longer."""

    def predict_rows(rows):
        if isinstance(inputs, np.ndarray):
            near, chosen = np.asarray(inputs[rows]), slice(None)
        else:
            near, chosen = inputs.around(rows)
        try:
            values = predict(near)
            return values if isinstance(chosen, slice) else values.take(chosen, axis=0)
        except ValueError:  # unused rows in between may hold values that are not finite
            return getattr(final, method)(inputs[rows])

    n, d = inputs.shape
    # All types but float32 are converted to float64.
    size = chunk_size(d * (4 if inputs.dtype == np.float32 else 8))
    if inputs.dtype == np.float16:
        inputs, size = float_rows(inputs), chunk_size(8 * d, HALF_LIMIT)
    predict = getattr(quicken(final, inputs), method)
    small = n * d * len(final.classes_) <= _SMALL
    with one_blas_thread(small or n_jobs > 1):
        return concatenate_chunks(predict_rows, n, size, n_jobs)


def _is_known(final):
    """Whether an estimator belongs to scikit-learn or skactive."""
    return type(final).__module__.split(".")[0] in ("sklearn", "skactive")


def decide(final, inputs, n_jobs=1):
    """Return the model's decision values (n,) or (n, c)."""
    decision = np.asarray(_by_rows(final, "decision_function", inputs, n_jobs))
    _refuse_nan(decision, final, "decision values")
    return decision


def _refuse_nan(values, final, what):
    """Raise a ValueError that names the model if it predicts NaN."""
    values = np.asarray(values)
    if values.dtype.kind != "f" or not np.isnan(values.sum()):
        return
    rows = np.isnan(values.reshape(len(values), -1)).any(axis=1)
    if rows.any():
        raise ValueError(
            f"'estimator' must predict finite {what}, and {type(final).__name__} "
            f"predicts NaN for {rows.sum()} of {len(rows)} items. Check its training "
            "data, its parameters and the items it predicts for."
        )


def class_scores(final, inputs, k, name, n_jobs=1):
    """Return decision values (n, k), one column per class."""
    decision = decide(final, inputs, n_jobs)
    if decision.ndim == 1:
        return np.stack([-decision / 2, decision / 2], axis=1)
    if decision.shape[1] != k or getattr(final, "decision_function_shape", 0) == "ovo":
        raise TypeError(
            f"strategy {name!r} needs one decision value per class, {k}; "
            f"{type(final).__name__} returns {decision.shape[1]} of another kind. Use "
            "decision_function_shape='ovr'."
        )
    return decision


def measure_variance(variance, rows, n):
    """Return a function's variance (n,) of rows, a chunk at a time."""
    size = chunk_size(24 * getattr(rows, "shape", (0, 8192))[-1])
    return concatenate_chunks(lambda part: variance(take_from(rows, part)), n, size)


def measure_margins(view, rows, final):
    """Return the margins (n,) of a view; `rows` is None if its class scores are known.

    Many candidates are measured a part at a time, so that no scores (n, k) are kept.
    """
    if rows is not None and len(view.classes) == 2 and is_linear_classifier(final):
        return np.abs(decide(final, rows, view.n_jobs))
    n = len(view)
    if n <= ROWS or not isinstance(rows, np.ndarray | LazyRows):
        return _scores.margin(view.class_scores)
    parts = np.array_split(np.arange(n), -(-n // ROWS))
    return np.concatenate([view.take(part).margins for part in parts])


def map_draws(function, draw, source, n, n_numbers, n_jobs):
    """Return `function` of the draws of n items, a chunk of them at a time.

    `draw` makes `n_numbers` draws of each item of `source`.
    """
    dense = isinstance(source, np.ndarray | LazyRows) and source.ndim == 2
    width = source.shape[1] if dense and source.dtype.kind in "fiub" else 0

    def reduce(rows):
        # A view would keep the draws of its chunk alive.
        return np.array(function(draw(take_from(source, rows))))

    return concatenate_chunks(reduce, n, chunk_size(8 * (n_numbers + width)), n_jobs)


def check_joint_draws(final, name):
    """Raise a TypeError if the estimator draws a separate model for each item."""
    if not getattr(final, "draws_jointly", True):
        raise TypeError(
            f"strategy {name!r} needs draws of one and the same model for all items; "
            f"this {type(final).__name__} draws for each item by itself. Use "
            "mc_dropout='head', or a strategy that scores items one by one, such as "
            "'bald'."
        )


def surprisal(model, items, random_state):
    """Return the surprisal (n, l) from the first step that has it."""
    *steps, final = _steps(model)
    for step in steps:
        if hasattr(step, "surprisal"):
            return step.surprisal(items, random_state=random_state)
        items = step.transform(items)
    return final.surprisal(items, random_state=random_state)


def take_from(value, positions):
    """Return rows of an array, LazyRows, CSR matrix, container or tuple of these."""
    if isinstance(value, tuple):
        return tuple(take_from(part, positions) for part in value)
    if isinstance(value, np.ndarray | LazyRows):
        return value[positions]
    if isinstance(positions, slice):
        positions = np.arange(positions.start, positions.stop)
    return take_rows(value, positions)


def read_only(value):
    """Return a read-only view of an array, CSR matrix or tuple, else the value."""
    if isinstance(value, tuple):
        return tuple(map(read_only, value))
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if sparse.issparse(value) and value.format == "csr":
        parts = (value.data, value.indices, value.indptr)
        locked = type(value)(value.shape, dtype=value.dtype)
        locked.data, locked.indices, locked.indptr = map(read_only, parts)
        return locked
    return value


@dataclass(frozen=True)
class Capability:
    """A name that a strategy may put into `requires`."""

    need: str  # its name in errors
    gives: str  # the quantity of the view
    methods: tuple = ()  # of the final estimator, of which one suffices
    remedy: str = ""  # what to use instead of an estimator that lacks it
    check: Callable | None = None  # raises a TypeError for an estimator that lacks it


def _check_draws(final):
    from ..posterior import check_can_sample  # on first use: it imports the ensembles

    check_can_sample(final)


def _check_variance(final):
    if not is_regressor(final):
        raise TypeError(f"{type(final).__name__} is no regressor.")
    _check_draws(final)


CAPABILITIES = {
    "predictions": Capability("predictions", "predictions (n,)", ("predict",)),
    "variance": Capability(
        "the variance of a regressor", "variance (n,)", check=_check_variance
    ),
    "proba": Capability(
        "class probabilities",
        "proba (n, k)",
        ("predict_proba",),
        "a classifier with predict_proba (CalibratedClassifierCV adds it)",
    ),
    "class_scores": Capability(
        "class probabilities or decision values",
        "class_scores (n, k)",
        ("predict_proba", "decision_function"),
        "a classifier with predict_proba or decision_function",
    ),
    "draws": Capability(
        "posterior draws", "draws(n_draws) (n, t, k)", check=_check_draws
    ),
    "features": Capability(
        "numeric features",
        "features (n, d)",
        remedy="a pipeline whose first steps compute numeric features",
    ),
    "labeled": Capability(
        "labeled items", "y_labeled (m,) and labeled_features (m, d)"
    ),
    "gradients": Capability(
        "factors of the loss gradient",
        "gradients (n, k) and (n, d)",
        check=check_gradient_factors,
    ),
    "boundary": Capability(
        "distances to the decision boundary", "boundary (n,)", check=check_boundary
    ),
    "embedding_gradients": Capability(
        "gradients of word embeddings",
        "embedding_gradients (n,)",
        ("embedding_gradients",),
        "skactive.bert.BertClassifier on texts",
    ),
    "surprisal": Capability(
        "a masked language model",
        "surprisal (n, l)",
        ("surprisal",),
        "skactive.bert.BertFeatures or BertClassifier on texts",
    ),
}


_TARGET_MESSAGES = {
    "single-label": "{} predicts one class per item",
    "multi-label": "the labels of {} are an indicator matrix (multi-label)",
    "regression": "{} is a regressor",
    "multi-output": "{} predicts several numbers or classes per item",
}
# Errors suggest the first of these that suit the estimator.
_SUGGESTED = (
    *("margin", "entropy", "badge", "bald"),
    *("coreset", "typiclust", "one_shot"),
)


def check_declarations(strategy):
    """Raise a TypeError unless a strategy declares known names."""
    for name, allowed in (
        ("requires", CAPABILITIES),
        ("optional", CAPABILITIES),
        ("targets", TARGETS),
    ):
        # A function declares nothing.
        default = None if name == "requires" else frozenset()
        declared = read_declared(strategy, name, default) or frozenset()
        unknown = sorted(map(str, declared - set(allowed)))
        if unknown:
            raise TypeError(
                f"`{name}` holds {', '.join(map(repr, unknown))}, which is unknown. "
                f"Known are: {', '.join(map(repr, sorted(allowed)))}."
            )


def check_target(targets, *, name, final, front, X, y_labeled, model):
    """Raise a TypeError unless a strategy with these `targets` suits the model."""
    target, said = _target(model, y_labeled)
    if target not in targets and not targets >= TARGETS:
        arguments = {"final": final, "front": front, "X": X, "model": model}
        raise TypeError(
            f"strategy {name!r} is defined for {' and '.join(sorted(targets))} targets "
            f"only; {said}. {_suggest(y_labeled=y_labeled, **arguments)}"
        )


def check_capability(capability, *, name, final, front, X, y_labeled, model):
    """Raise a TypeError unless a model has a capability that a strategy requires.

    `model` is fitted or not; `final` is its fitted last step, or None, and `front` the
    steps before it.
    """
    if capability not in CAPABILITIES:
        raise TypeError(
            f"strategy {name!r} requires {capability!r}, which is unknown. Known are: "
            f"{', '.join(map(repr, CAPABILITIES))}."
        )
    arguments = {"final": final, "front": front, "X": X, "model": model}
    fault, is_early = _find_fault(capability, y_labeled=y_labeled, **arguments)
    if fault:
        remedy = " Call fit or teach first, or use cold_start='random'."
        if not is_early:
            remedy = f" {_suggest(y_labeled=y_labeled, **arguments)}"
        need = CAPABILITIES[capability].need
        raise TypeError(f"strategy {name!r} needs {need}{fault}{remedy}")


def _find_fault(capability, *, final, front, X, y_labeled, model):
    """Return what a model lacks, or "", and whether it only lacks labels so far."""
    what = CAPABILITIES[capability]
    name, fault = type(final).__name__, ""
    if capability == "labeled":
        if y_labeled is None:
            return ", and the learner has seen none yet.", True
    elif capability == "features":
        if front is None and not makes_features(final) and not _is_numeric(X):
            made = "LogisticRegression()" if final is None else f"{name}(...)"
            fault = (
                f"X is not a numeric table and {_describe(final)}. Use {what.remedy}, "
                f"such as make_pipeline(BertFeatures(), {made})."
            )
    elif capability == "surprisal":
        if not any(hasattr(step, "surprisal") for step in _steps(model)):
            fault = f"no step of the estimator has one. Use {what.remedy}."
    elif final is None:
        return ", and there is no fitted model with two classes yet.", True
    elif what.check is not None:
        try:
            what.check(final)
        except TypeError as exc:
            fault = str(exc)
    elif not any(hasattr(final, method) for method in what.methods):
        fault = f"{name} has no {' or '.join(what.methods)}. Use {what.remedy}."
    target, said = _target(model, y_labeled)
    if fault and capability in OF_CLASSES and target != "single-label":
        fault = f"{said}."  # the remedies are other classifiers of one class per item
    return fault and f"; {fault}", False


def _target(model, y_labeled):
    """Return the target of a model, and the message that names it."""
    predicted = split_estimator(model)[1]
    target = find_target(predicted, y_labeled)
    return target, _TARGET_MESSAGES[target].format(type(predicted).__name__)


def _suggest(*, y_labeled, model, **arguments):
    """Return a sentence with up to three built-in strategies that suit a model."""
    target = _target(model, y_labeled)[0]
    suited = []
    for name in _SUGGESTED:
        strategy = get_strategy(f"skactive:{name}")
        faults = [
            _find_fault(each, y_labeled=y_labeled, model=model, **arguments)[0]
            for each in strategy.requires_for(target)
        ]
        fits = target in strategy.targets or strategy.targets >= TARGETS
        if fits and not any(faults):
            suited.append(repr(name))
    names = ", ".join([*suited[:2], "'random'"])
    return f"Strategies that suit it: {names}."


def _steps(model):
    """Return the steps of a model; of a union of features, those of its first part."""
    front, final = split_estimator(model)
    return [*first_steps(front), final]


def _describe(final):
    if final is None:
        return "no step before the model computes features"
    return f"{type(final).__name__} computes no features"


def _is_numeric(X):
    """Whether `X` can serve as features: two dimensions of numbers."""
    if sparse.issparse(X) or is_dask(X):
        return True
    first = _as_array(take_rows(X, np.arange(1)))
    return first.ndim == 2 and first.dtype.kind in "fiub"
