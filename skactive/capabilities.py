"""Capabilities a strategy can require, and the errors when one is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ._containers import take_rows
from ._labels import find_target
from ._pipelines import split_estimator
from .registry import get_strategy
from .strategies.base import OF_CLASSES, TARGETS

__all__ = [
    "CAPABILITIES",
    "check_capability",
    "check_declarations",
    "check_target",
]


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
    from .posterior import check_can_sample  # on first use: it imports the ensembles

    check_can_sample(final)


def _check_gradients(final):
    from .linear import check_gradient_factors

    check_gradient_factors(final)


def _check_boundary(final):
    from .linear import check_boundary

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
