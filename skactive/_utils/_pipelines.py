"""Split estimators into feature steps and final step; clone and seed them."""

from contextlib import suppress
from inspect import signature
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from ._bases import available_if
from ._repeatable import round_seed, start_in_background
from ._sklearn import naming


def estimator_has(method):
    """Return a check of the fitted estimator, or else the one to fit, for a method."""

    def check(self):
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class Delegated(Protocol):
    """Type of a method that `delegated` returns."""

    def __call__(self, X: Any, **params: Any) -> NDArray[Any]:
        """See the method of `estimator`."""
        ...


def delegated(method: str) -> Delegated:
    """Return a method that passes the call to `_delegate`, if the estimator has it."""

    def call(self, X: Any, **params: Any) -> NDArray[Any]:
        """See the method of `estimator`."""
        return self._delegate(method, X, **params)

    call.__name__ = method
    return available_if(estimator_has(method))(call)  # type: ignore[return-value]


def of_estimator(attribute, doc="See the attribute of `estimator`."):
    """Return a property that is an attribute of the fitted `estimator_`."""

    def find(self) -> Any:
        try:
            return getattr(self.estimator_, attribute)
        except AttributeError as exc:
            fault = exc if hasattr(self, "estimator_") else "it is not fitted."
            raise AttributeError(
                f"{type(self).__name__!r} has no attribute {attribute!r}: {fault}"
            ) from exc

    return property(find, doc=doc)


def split_estimator(estimator):
    """Return the front steps of an estimator as a Pipeline or None, and its final step.

    A fitted search is replaced by its `best_estimator_`, a `FrozenEstimator` by its
    content. Samplers of imbalanced-learn are steps of training only and are left out.
    A mixture splits itself.
    """
    estimator = _unwrap(estimator)
    if hasattr(estimator, "__skactive_split__"):
        return estimator.__skactive_split__()
    if not isinstance(estimator, Pipeline):
        return None, estimator
    inner, final = split_estimator(estimator.steps[-1][1])
    steps = [step for step in estimator.steps[:-1] if not _is_sampler(step[1])]
    if inner is not None:
        steps.append(("last", inner))
    return Pipeline(steps, memory=estimator.memory) if steps else None, final


class ReadCounter:
    """Counts the characters of a text that an encoder reads.

    The encoder is looked for in a thread from the first text on: nobody waits for it.
    """

    def __init__(self, estimator):
        steps = first_steps(split_estimator(estimator)[0])
        self._steps = [x for x in steps if hasattr(x, "__skactive_reader__")]
        self._read = self._thread = None

    def count(self, text):
        """Return the number of characters, None for all or if it is not known yet."""
        if not self._steps or not isinstance(text, str):
            return None
        if self._thread is None:
            self._thread = start_in_background(self._open)
        return self._read and self._read(text)

    def _open(self):
        with suppress(Exception):  # whatever needs the encoder raises it
            self._read = self._steps[0].__skactive_reader__()


def first_steps(front):
    """Return the steps of a pipeline; of a union, those of its first part."""
    steps = []
    for _, step in getattr(front, "steps", ()):
        if isinstance(step, FeatureUnion):
            step = step.transformer_list[0][1]
        steps += first_steps(step) or [step]
    return steps


def computes_features(estimator):
    """Whether the steps before the model need no training, such as `BertFeatures`."""
    front, _ = split_estimator(estimator)
    steps = [] if front is None else [step for _, step in front.steps]
    steps = [step for step in steps if step is not None and step != "passthrough"]
    return bool(steps) and not any(map(needs_training, steps))


def makes_features(final):
    """Whether the `transform` of a final estimator computes features.

    An ensemble of `estimators`, or a model around one, returns their predictions.
    """
    ensemble = getattr(final, "estimator_", final)
    votes = hasattr(ensemble, "estimators") and hasattr(ensemble, "predict")
    return hasattr(final, "transform") and not votes


def needs_training(step):
    """Whether a step of a pipeline must be fitted first, also if it does not say so."""
    if isinstance(step, FeatureUnion):
        return any(needs_training(part) for _, part in step.transformer_list)
    if isinstance(step, Pipeline):
        return any(needs_training(part) for _, part in step.steps)
    return not hasattr(step, "__sklearn_tags__") or get_tags(step).requires_fit


def _unwrap(estimator):
    """Return the content of a `FrozenEstimator`, or the best estimator of a search.

    And the estimator, fitted or not, that learns from descriptions of its classes.
    """
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif has_descriptions(estimator):
            estimator = getattr(estimator, "estimator_", estimator.estimator)
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator


def find_adaptations(estimator, X, y, **params):
    """Yield the encoders that the `fit` of an estimator trains, and rows of each.

    They are `AdaptedFeatures` for these rows alone.
    """
    estimator = _unwrap(estimator)
    if hasattr(estimator, "__skactive_adaptations__"):
        yield from estimator.__skactive_adaptations__(X, y, **params)
    for _, step in getattr(estimator, "steps", ()):
        yield from find_adaptations(step, X, y, **params)


def with_adapted(estimator, n):
    """Return a clone whose encoders learn from the first `n` rows, 0 for none.

    This is for encoders with `refit="doubling"`. Without any, return None.
    """
    names = [
        f"{name}__refit"
        for name, value in estimator.get_params(deep=True).items()
        if hasattr(value, "__skactive_adaptations__")
        and getattr(value, "refit", None) == "doubling"
    ]
    return clone(estimator).set_params(**dict.fromkeys(names, n)) if names else None


def count_adapted(fitted):
    """Return the number of rows that the encoder learned from, None if it cannot."""
    fitted = _unwrap(fitted)
    parts = [*getattr(fitted, "parts_", {}).values()]
    parts += [step for _, step in getattr(fitted, "steps", ())]
    counts = [getattr(fitted, "n_adapted_", None), *map(count_adapted, parts)]
    return max((n for n in counts if n is not None), default=None)


def has_descriptions(estimator):
    """Whether an estimator is trained on descriptions of its classes as well."""
    return hasattr(estimator, "descriptions") and hasattr(estimator, "estimator")


def _is_sampler(step):
    return hasattr(step, "fit_resample")


def has_sampler(estimator):
    """Whether a step of a pipeline resamples the training data."""
    estimator = _unwrap(estimator)
    return isinstance(estimator, Pipeline) and any(
        _is_sampler(step) or has_sampler(step) for _, step in estimator.steps
    )


def resample(estimator, X, y):
    """Return the training data (r rows) of the final estimator of a fitted pipeline.

    Its samplers sample again; the rows are the same if their `random_state` is an int.
    """
    estimator = _unwrap(estimator)
    if not isinstance(estimator, Pipeline):
        return X, y
    for _, step in estimator.steps[:-1]:
        if _is_sampler(step):
            X, y = clone(step).fit_resample(X, y)
        elif step is not None and step != "passthrough":
            X = step.transform(X)
    return resample(estimator.steps[-1][1], X, y)


def find_sample_weight(estimator, params):
    """Return the sample weights of the final estimator in `fit` parameters or None."""
    name, final = "", estimator
    while isinstance(final, Pipeline) or hasattr(final, "best_estimator_"):
        if isinstance(final, Pipeline):
            step, final = final.steps[-1]
            name += f"{step}__"
        else:
            final = final.estimator
    if not get_config()["enable_metadata_routing"] or final is estimator:
        return params.get(name + "sample_weight")
    # With metadata routing, the final estimator says under which name it takes them.
    requests = getattr(final.get_metadata_routing(), "fit", None)
    name = None if requests is None else requests.requests.get("sample_weight")
    return params.get("sample_weight" if name is True else name)


def takes_unlabeled(estimator):
    """Whether the `fit` of an estimator, or of a pipeline's last step, uses a pool."""
    final = _last_step(estimator)
    return hasattr(final, "fit") and has_fit_parameter(final, "X_unlabeled")


def takes_weights(estimator):
    """Whether the `fit` of an estimator, or of a pipeline's last step, takes weights.

    A `fit` that passes on what it is given, as that of a search does, takes them.
    """
    known = signature(_last_step(estimator).fit).parameters.values()
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in known)


def unlabeled_params(estimator, X, y, X_unlabeled, **params):
    """Return the `fit` parameter that passes unlabeled items to the last step.

    The steps before it are fitted to `X` and `y`, as they will be in the pipeline, with
    the parameters that they take, and transform the items.
    """
    front, last = [], estimator
    while isinstance(last, Pipeline):
        front += last.steps[:-1]
        last = last.steps[-1][1]
    if front:
        named = [(str(i), step) for i, (_, step) in enumerate(front)]
        pipeline = clone(Pipeline(named))
        params = step_params(pipeline, **params)
        X_unlabeled = pipeline.fit(X, y, **params).transform(X_unlabeled)
    return last_params(estimator, X_unlabeled=X_unlabeled)


def fit_last(estimator, X, y, X_unlabeled=None, **params):
    """Train an estimator with parameters for a pipeline's last step; return it.

    `X_unlabeled` is passed if the step takes it. Each step before it gets the
    parameters that it takes: `sample_weight`, and `n_labeled`, the number of the first
    rows that people have labeled. Metadata routing is off meanwhile: the caller chooses
    the parameters, whether or not the step requests them.
    """
    with config_context(enable_metadata_routing=False), naming("X"):
        own = {key: value for key, value in params.items() if key != "n_labeled"}
        own = last_params(estimator, **own)
        if X_unlabeled is not None and takes_unlabeled(estimator):
            own |= unlabeled_params(estimator, X, y, X_unlabeled, **params)
        return estimator.fit(X, y, **own | step_params(estimator, **params))


def step_params(estimator, **params):
    """Return those `fit` parameters of a pipeline's steps that they take.

    And `n_labeled` for an estimator that takes it itself.
    """
    named = {}
    if "n_labeled" in params and has_fit_parameter(estimator, "n_labeled"):
        named["n_labeled"] = params["n_labeled"]
    for name, step in getattr(estimator, "steps", ()):
        own = step_params(step, **params)
        if hasattr(step, "fit"):
            taken = (key for key in params if has_fit_parameter(step, key))
            own |= {key: params[key] for key in taken}
        named |= {f"{name}__{key}": value for key, value in own.items()}
    return named


def last_params(estimator, **params):
    """Return `fit` parameters under the names that reach a pipeline's last step."""
    prefix, routed = "", get_config()["enable_metadata_routing"]
    while isinstance(estimator, Pipeline) and not routed:
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return {f"{prefix}{name}": value for name, value in params.items()}


def carries_over(estimator):
    """Whether training starts from the previous model.

    The estimator or the last step of a pipeline has `warm_start` on and a method
    `continue_from`. The `warm_start` of scikit-learn is not enough: some estimators
    then only train what is new.
    """
    last = _last_step(estimator)
    return bool(getattr(last, "warm_start", False)) and hasattr(last, "continue_from")


def continue_from(estimator, fitted):
    """Start an estimator from the previous model, if it supports that."""
    if carries_over(estimator) and fitted is not None:
        _last_step(estimator).continue_from(_last_step(fitted))


def _last_step(estimator):
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def seeded_clone(estimator, rng):
    """Return a clone in which each unset `random_state` is an int drawn from `rng`.

    Numbers are drawn in the order of the parameter names.
    """
    copy = clone(estimator)
    copy.set_params(**{name: int(rng.integers(2**31)) for name in unseeded(copy)})
    return copy


def unseeded(estimator):
    """Return the sorted names of all parameters `random_state` that are None."""
    return [
        name
        for name, value in sorted(estimator.get_params().items())
        if name.split("__")[-1] == "random_state" and value is None
    ]


def needs_classes(estimator, y):
    """Whether a classifier is to be trained on labels `y` of a single class."""
    if has_descriptions(estimator):
        return False
    frozen = isinstance(estimator, FrozenEstimator)
    single_class = np.all(y == y[0])
    return is_classifier(estimator) and single_class and not frozen


def fresh_estimator(estimator, y, seed, n_rounds):
    """Return a seeded clone for training on `y`; see `round_seed` for the seeds."""
    estimator = clone(estimator)
    names = unseeded(estimator)
    seeds = {name: round_seed(seed, n_rounds, name, len(y)) for name in names}
    estimator.set_params(**seeds)
    return estimator  # a FrozenEstimator's set_params returns nothing
