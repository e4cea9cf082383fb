"""Take a pipeline apart: what makes features, and what decides on them."""

import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ._random import round_seed


def split_estimator(estimator):
    """Split an estimator into what makes features and what decides on them.

    Parameters
    ----------
    estimator : estimator
        Fitted or not. A fitted search stands for its `best_estimator_`, a
        `FrozenEstimator` for what it holds.

    Returns
    -------
    front : Pipeline or None
        All steps of a pipeline but the last and the samplers of imbalanced-learn, which
        are steps of training only. None if there is no such step.
    final : estimator
    """
    estimator = _unwrap(estimator)
    if not isinstance(estimator, Pipeline):
        return None, estimator
    inner, final = split_estimator(estimator.steps[-1][1])
    steps = [step for step in estimator.steps[:-1] if not _is_sampler(step[1])]
    if inner is not None:
        steps.append(("last", inner))
    return Pipeline(steps, memory=estimator.memory) if steps else None, final


def _unwrap(estimator):
    """Return what a `FrozenEstimator` holds, and the best estimator of a search."""
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator


def _is_sampler(step):
    return hasattr(step, "fit_resample")


def has_sampler(estimator):
    """Whether a step of a pipeline resamples the training data.

    Parameters
    ----------
    estimator : estimator
        Fitted or not.

    Returns
    -------
    has_sampler : bool
    """
    estimator = _unwrap(estimator)
    return isinstance(estimator, Pipeline) and any(
        _is_sampler(step) or has_sampler(step) for _, step in estimator.steps
    )


def resample(estimator, X, y):
    """Return what the final estimator of a fitted pipeline was trained on.

    Parameters
    ----------
    estimator : Pipeline
        Its samplers sample again, which gives the same rows where their `random_state`
        is an int.
    X : container of m items
    y : array-like of shape (m,)

    Returns
    -------
    inputs : container of r rows
    y : array-like of shape (r,)
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
    """Find the sample weights of the final estimator among parameters of `fit`.

    Parameters
    ----------
    estimator : estimator
        A pipeline, a search over one, or anything else.
    params : dict of str to object
        What its `fit` is called with.

    Returns
    -------
    sample_weight : array-like of shape (m,) or None
    """
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


def carries_over(estimator):
    """Whether an estimator is trained from where the last model stopped.

    Parameters
    ----------
    estimator : estimator
        Not fitted.

    Returns
    -------
    carries_over : bool
        The estimator, or the last step of a pipeline, has `warm_start` on and a method
        `continue_from`. What scikit-learn calls a warm start is not enough: for some
        it means not to train again what is there.
    """
    last = _last_step(estimator)
    return bool(getattr(last, "warm_start", False)) and hasattr(last, "continue_from")


def continue_from(estimator, fitted):
    """Let an estimator begin where the last model stopped, if it wants to.

    Parameters
    ----------
    estimator : estimator
        About to be fitted.
    fitted : estimator or None
        The last model.
    """
    if carries_over(estimator) and fitted is not None:
        _last_step(estimator).continue_from(_last_step(fitted))


def _last_step(estimator):
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def seeded_clone(estimator, rng):
    """Clone an estimator and seed each `random_state` that is None.

    Parameters
    ----------
    estimator : estimator
        Left as it is.
    rng : numpy.random.Generator
        One number is drawn for each `random_state` to fill, in the order of names.

    Returns
    -------
    copy : estimator
        Unfitted; a `random_state` that was given is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._utils._pipelines import seeded_clone
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression(C=3)
    >>> seeded_clone(model, np.random.default_rng(0)).random_state is None
    False
    >>> model.random_state is None
    True
    """
    copy = clone(estimator)
    copy.set_params(**{name: int(rng.integers(2**31)) for name in unseeded(copy)})
    return copy


def unseeded(estimator):
    """Names of the parameters `random_state`, nested ones too, that are None.

    Parameters
    ----------
    estimator : estimator

    Returns
    -------
    names : list of str
        Sorted.
    """
    return [
        name
        for name, value in sorted(estimator.get_params().items())
        if name.split("__")[-1] == "random_state" and value is None
    ]


def fresh_estimator(estimator, y, seed, n_rounds):
    """Clone an estimator for training and seed what in it is not seeded.

    Parameters
    ----------
    estimator : estimator
    y : ndarray of shape (m,) or (m, n_outputs)
        The labels to train on. If they are all of one class, a classifier, which would
        mostly refuse them, is replaced by a `DummyClassifier`.
    seed, n_rounds : int
        The base seed and the round, as in `round_seed`.

    Returns
    -------
    estimator : estimator
    """
    frozen = isinstance(estimator, FrozenEstimator)
    single_class = y.ndim == 1 and np.all(y == y[0])
    if is_classifier(estimator) and single_class and not frozen:
        return DummyClassifier(strategy="most_frequent")
    estimator = clone(estimator)
    names = unseeded(estimator)
    seeds = {name: round_seed(seed, n_rounds, name, len(y)) for name in names}
    estimator.set_params(**seeds)
    return estimator  # a FrozenEstimator's set_params returns nothing
