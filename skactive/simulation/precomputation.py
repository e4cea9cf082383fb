"""Encode items before the loop, where a pipeline keeps what it has encoded."""

from __future__ import annotations

from time import perf_counter

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

__all__ = ["find_cached_steps", "precompute_features"]


def find_cached_steps(estimator):
    """Find the front steps whose output can be had before there are labels.

    Parameters
    ----------
    estimator : estimator
        Fitted or not.

    Returns
    -------
    steps : list of transformer
        The first steps of a pipeline, none of which needs a fit, up to the last one
        that keeps what it computes: its `cache` is not None.
    """
    steps = []
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps[:-1]:
            if step is None or step == "passthrough":
                continue
            if get_tags(step).requires_fit:
                break
            steps.append(step)
    while steps and getattr(steps[-1], "cache", None) is None:
        steps.pop()
    return steps


def precompute_features(estimator, containers):
    """Have a pipeline's cache hold the features of some items.

    Parameters
    ----------
    estimator : estimator
    containers : iterable of containers

    Returns
    -------
    seconds : float
        What it took; 0 where nothing can be had before the first labels.
    """
    steps = find_cached_steps(estimator)
    if not steps:
        return 0.0
    start = perf_counter()
    for X in containers:
        for step in steps:
            X = step.transform(X)
    return perf_counter() - start
