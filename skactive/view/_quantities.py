"""What a fitted model says of items: the quantities that a strategy may ask for."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit

from .._utils._chunks import LARGE, LazyRows, chunk_size, map_chunks
from .._utils._containers import take_rows
from .._utils._labels import find_target
from .._utils._pipelines import split_estimator
from .._utils._sklearn import is_linear_classifier
from .._utils._threads import one_blas_thread
from ..registry import get_strategy
from ..strategies._base import OF_CLASSES, TARGETS

# Products of numbers, up to which threads of BLAS would only wait for each other.
_SMALL = 2**30


def represent(final, inputs):
    """Represent items by the final estimator's `transform`, else by what it takes.

    Parameters
    ----------
    final : estimator or None
    inputs : array-like or sparse matrix
        What the final estimator takes.

    Returns
    -------
    features : ndarray or CSR matrix of shape (n, d)
    """
    if hasattr(final, "transform"):
        inputs = final.transform(inputs)
    return inputs.tocsr() if sparse.issparse(inputs) else np.asarray(inputs)


def predict_proba(final, inputs, name, n_jobs=1):
    """Class probabilities, or words about a model that has none of this form.

    Parameters
    ----------
    final : estimator
    inputs : container of n items, or LazyRows
    name : str
        What to call the strategy.
    n_jobs : int, default=1
        Threads, for linear models.

    Returns
    -------
    proba : ndarray of shape (n, k)
    """
    proba = _by_rows(final, final.predict_proba, inputs, n_jobs)
    _refuse_nan(proba, final, "probabilities")
    if isinstance(proba, list) or np.ndim(proba) != 2:
        raise TypeError(
            f"strategy {name!r} needs one distribution over the classes for each "
            f"item; {type(final).__name__} predicts several outputs."
        )
    return _sharpen(final, proba, inputs)


def _sharpen(final, proba, inputs):
    """Restore small probabilities of the first class, which 1 - p rounds to 0.

    scikit-learn computes p of the second class from the decision value and subtracts it
    from 1, so a sure model would seem surer of the second class than of the first.
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


def _by_rows(final, predict, inputs, n_jobs):
    """Predict for some rows at a time where that is quicker, or saves a large copy."""
    dense = isinstance(inputs, np.ndarray | LazyRows) and inputs.ndim == 2
    if not dense or inputs.dtype.kind not in "fiub" or not len(inputs):
        return predict(inputs)
    # As scikit-learn converts them; it judges rows one by one, as its checks see to.
    converted = 8 * inputs.shape[1]
    if is_linear_classifier(final):
        return _by_products(final, predict, inputs, n_jobs)
    if _is_known(final) and converted * len(inputs) >= LARGE:
        size, n_jobs = chunk_size(converted, LARGE), 1
    else:
        return predict(np.asarray(inputs))
    parts = map_chunks(lambda rows: predict(inputs[rows]), len(inputs), size, n_jobs)
    if isinstance(parts[0], list):  # several outputs
        return [np.concatenate(part) for part in zip(*parts, strict=True)]
    return np.concatenate(parts)


def _by_products(final, predict, inputs, n_jobs):
    """Predict by a linear model, for which to copy rows is more work than to judge."""

    def judge(rows):
        if isinstance(inputs, np.ndarray):
            return predict(inputs[rows])
        near, places = inputs.around(rows)
        try:
            found = predict(near)
            return found if isinstance(places, slice) else found.take(places, axis=0)
        except ValueError:  # by what is not finite in rows between, which may be so
            return predict(inputs[rows])

    n, d = inputs.shape
    # What is neither float32 nor float64 is made float64.
    size = chunk_size(d * (4 if inputs.dtype == np.float32 else 8))
    small = n * d * len(final.classes_) <= _SMALL
    with one_blas_thread(small or n_jobs > 1):
        parts = map_chunks(judge, n, size, n_jobs)
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _is_known(final):
    """Whether an estimator is one of scikit-learn's or of ours."""
    return type(final).__module__.split(".")[0] in ("sklearn", "skactive")


def decide(final, inputs, n_jobs=1):
    """Decision values, as the model gives them.

    Parameters
    ----------
    final : estimator
        With `decision_function`.
    inputs : container of n items, or LazyRows
    n_jobs : int, default=1
        Threads, for linear models.

    Returns
    -------
    decision : ndarray of shape (n,) or (n, c)
    """
    decision = np.asarray(_by_rows(final, final.decision_function, inputs, n_jobs))
    _refuse_nan(decision, final, "decision values")
    return decision


def _refuse_nan(values, final, what):
    """Raise if a model predicts NaN; a strategy is then not to blame."""
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
    """Decision values with one column per class.

    Parameters
    ----------
    final : estimator
        With `decision_function`.
    inputs : container of n items, or LazyRows
    k : int
        Number of classes.
    name : str
        What to call the strategy.
    n_jobs : int, default=1
        Threads, for linear models.

    Returns
    -------
    scores : ndarray of shape (n, k)
    """
    decision = decide(final, inputs, n_jobs)
    if decision.ndim == 1:
        return np.stack([-decision / 2, decision / 2], axis=1)
    if decision.shape[1] != k:
        raise TypeError(
            f"strategy {name!r} needs one decision value per class, {k}; "
            f"{type(final).__name__} gives {decision.shape[1]}. Use "
            "decision_function_shape='ovr'."
        )
    return decision


def gradients(final, inputs, proba):
    """Return the factors of the loss gradient."""
    from ..linear_model._gradients import gradient_factors

    return gradient_factors(final, inputs, proba)


def boundary(final, inputs):
    """Return the distances to the decision boundary."""
    from ..linear_model._gradients import boundary_distance

    if hasattr(final, "boundary_distance"):
        inputs = np.asarray(inputs) if isinstance(inputs, LazyRows) else inputs
    return boundary_distance(final, inputs)


def sampler(final, n_draws, random_state, **train):
    """Draw models, by :func:`skactive.posterior.sampler`."""
    from ..posterior import sampler

    return sampler(final, n_draws, random_state, **train)


def check_joint_draws(final, name):
    """Raise unless a draw is one and the same model for every item; do no work.

    Parameters
    ----------
    final : estimator
        That can draw. One whose attribute `draws_jointly` is False draws for each item
        by itself: right for scores of single items, and wrong for what items share.
    name : str
        What to call the strategy.
    """
    if not getattr(final, "draws_jointly", True):
        raise TypeError(
            f"strategy {name!r} needs draws of one and the same model for all items; "
            f"this {type(final).__name__} draws for each item by itself. Use "
            "mc_dropout='head', or a strategy that scores items one by one, such as "
            "'bald'."
        )


def surprisal(model, items, random_state):
    """Ask the first step of a model that can say it how surprising the words are.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted or not: what a language model expects is known without labels.
    items : container of n items
    random_state : int

    Returns
    -------
    surprisal : ndarray of shape (n, l)
    """
    front, final = split_estimator(model)
    for _, step in [] if front is None else front.steps:
        if hasattr(step, "surprisal"):
            return step.surprisal(items, random_state=random_state)
        items = step.transform(items)
    return final.surprisal(items, random_state=random_state)


def take_from(value, positions):
    """Take some rows of a quantity.

    Parameters
    ----------
    value : ndarray, LazyRows, CSR matrix, container or tuple of these
    positions : ndarray of int or slice

    Returns
    -------
    rows : same kind
    """
    if isinstance(value, tuple):
        return tuple(take_from(part, positions) for part in value)
    if isinstance(value, np.ndarray | LazyRows):
        return value[positions]
    if isinstance(positions, slice):
        positions = np.arange(positions.start, positions.stop)
    return take_rows(value, positions)


def read_only(value):
    """Share the memory of an array or CSR matrix, but not the right to write.

    Parameters
    ----------
    value : ndarray, CSR matrix, tuple of these, or anything else
        Anything else comes back as it is.

    Returns
    -------
    value : same kind
    """
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
    """One name that a strategy may put into `requires`.

    Attributes
    ----------
    need : str
        What it is, as the errors say it.
    gives : str
        What the view then has.
    methods : tuple of str
        Methods of the final estimator of which one suffices; empty where another
        rule decides.
    remedy : str
        What to use instead of an estimator that lacks it.
    check : callable or None
        Raises a TypeError that says what is wrong with a final estimator, where
        having a method is not the rule.
    """

    need: str
    gives: str
    methods: tuple = ()
    remedy: str = ""
    check: Callable | None = None


def _check_draws(final):
    from ..posterior import check_can_sample  # on first use: it imports the ensembles

    check_can_sample(final)


def _check_gradients(final):
    from ..linear_model._gradients import check_gradient_factors

    check_gradient_factors(final)


def _check_boundary(final):
    from ..linear_model._gradients import check_boundary

    check_boundary(final)


#: Every name that may stand in a strategy's `requires`.
CAPABILITIES = {
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
        "posterior draws",
        "draws(n_draws) (n, t, k)",
        check=_check_draws,
    ),
    "features": Capability(
        "numeric features",
        "features (n, d)",
        remedy="a pipeline whose first steps make numeric features",
    ),
    "labeled": Capability(
        "labelled items", "y_labeled (m,) and labeled_features (m, d)"
    ),
    "gradients": Capability(
        "factors of the loss gradient",
        "gradients (n, k) and (n, d)",
        check=_check_gradients,
    ),
    "boundary": Capability(
        "distances to the decision boundary",
        "boundary (n,)",
        check=_check_boundary,
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


_SAY_TARGET = {
    "single-label": "{} predicts one class per item",
    "multi-label": "the labels of {} are an indicator matrix (multi-label)",
    "regression": "{} is a regressor",
}
# Errors name the first of these that suit the estimator.
_TO_SUGGEST = ("margin", "entropy", "badge", "coreset", "typiclust", "one_shot")


def check_declarations(strategy):
    """Raise a TypeError unless a strategy declares names that there are."""
    for name, known in (
        ("requires", CAPABILITIES),
        ("optional", CAPABILITIES),
        ("targets", TARGETS),
    ):
        declared = getattr(strategy, name, frozenset())
        if declared is None and name == "requires":
            continue  # a function declares nothing
        if not isinstance(declared, frozenset | set):
            raise TypeError(
                f"`{name}` must be a frozenset of names, got {declared!r}. Write "
                "frozenset() for none."
            )
        unknown = sorted(map(str, declared - set(known)))
        if unknown:
            raise TypeError(
                f"`{name}` holds {', '.join(map(repr, unknown))}, which is unknown. "
                f"Known are: {', '.join(map(repr, sorted(known)))}."
            )


def check_target(targets, *, name, final, front, X, y_labeled, model):
    """Raise a TypeError unless a strategy is defined for what the model predicts.

    `targets` are those of the strategy; the others as in :func:`check_capability`.
    """
    target, said = _target(model, y_labeled)
    if target not in targets:
        known = {"final": final, "front": front, "X": X, "model": model}
        raise TypeError(
            f"strategy {name!r} is defined for {' and '.join(sorted(targets))} targets "
            f"only; {said}. {_suggest(y_labeled=y_labeled, **known)}"
        )


def check_capability(capability, *, name, final, front, X, y_labeled, model):
    """Raise unless a model can give what a strategy requires.

    Parameters
    ----------
    capability : str
        The name of the capability.
    name : str
        What to call the strategy.
    final : estimator or None
        The fitted final estimator; None before there is a model.
    front : Pipeline or None
        The steps before it.
    X : container of n items
        The pool.
    y_labeled : ndarray or None
        The labels so far.
    model : estimator or None
        Both together, fitted or not.

    Raises
    ------
    TypeError
        Says what is needed, what came and what to use.
    """
    if capability not in CAPABILITIES:
        raise TypeError(
            f"strategy {name!r} requires {capability!r}, which is unknown. Known are: "
            f"{', '.join(map(repr, CAPABILITIES))}."
        )
    known = {"final": final, "front": front, "X": X, "model": model}
    fault, is_early = _find_fault(capability, y_labeled=y_labeled, **known)
    if fault:
        remedy = " Call fit or teach first, or use cold_start='random'."
        if not is_early:
            remedy = f" {_suggest(y_labeled=y_labeled, **known)}"
        need = CAPABILITIES[capability].need
        raise TypeError(f"strategy {name!r} needs {need}{fault}{remedy}")


def _find_fault(capability, *, final, front, X, y_labeled, model):
    """Return what a model lacks, "" for nothing, and whether labels would mend it."""
    what = CAPABILITIES[capability]
    name, fault = type(final).__name__, ""
    if capability == "labeled":
        if y_labeled is None:
            return ", and the learner has seen none yet.", True
    elif capability == "features":
        if front is None and not hasattr(final, "transform") and not _is_numeric(X):
            fault = f"X is no numeric table and {_describe(final)}. Use {what.remedy}."
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
    """Return what a model predicts, and the words that say so."""
    predicted = split_estimator(model)[1]
    target = find_target(predicted, y_labeled)
    return target, _SAY_TARGET[target].format(type(predicted).__name__)


def _suggest(*, y_labeled, model, **known):
    """Name up to three built-in strategies that suit a model, 'random' among them."""
    target = _target(model, y_labeled)[0]
    suited = []
    for name in _TO_SUGGEST:
        strategy = get_strategy(f"skactive:{name}")
        faults = [
            _find_fault(each, y_labeled=y_labeled, model=model, **known)[0]
            for each in strategy.requires
        ]
        if target in strategy.targets and not any(faults):
            suited.append(repr(name))
    names = ", ".join([*suited[:2], "'random'"])
    return f"Strategies that suit it: {names}."


def _steps(model):
    front, final = split_estimator(model)
    return [*([] if front is None else front.named_steps.values()), final]


def _describe(final):
    if final is None:
        return "no step before the model makes features of it"
    return f"{type(final).__name__} has no transform"


def _is_numeric(X):
    """Whether `X` itself can serve as features: two dimensions of numbers."""
    if sparse.issparse(X):
        return True
    first = np.asarray(take_rows(X, np.arange(1)))
    return first.ndim == 2 and first.dtype.kind in "fiub"
