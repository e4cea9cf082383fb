"""Estimates about the pool: the audit as the sample, the model as the proxy."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._utils._containers import as_list, take_rows
from .._utils._labels import key_of
from ..estimation import estimate_mean, estimate_prevalence, estimate_quality
from ._insights import hold_out, predict_held_out
from ._lookup import predict_proba

_CHUNK = 10_000  # items that are predicted at a time


@dataclass(frozen=True)
class Evidence:
    """What is known of a pool of n items: labels of a sample, predictions of all.

    `places` (m,) are those of the sample among `positions` (n,), those of the pool.
    `predicted` (n, k) are probabilities of the `classes`, or numbers (n,); those of
    labeled items are by models without their label. None stands for no model.
    """

    positions: Any
    places: Any
    labels: list
    classes: list
    predicted: Any = None

    def proxies(self):
        """Return the predictions of the sample and of the pool, or two None."""
        if self.predicted is None:
            return None, None
        return self.predicted[self.places], self.predicted


def find_evidence(session, blind):
    """Return the Evidence of a session.

    With `blind`, answers that were given with help are left out of the sample. If there
    are any in the audit, the pool is then what was not answered with help.
    """
    state, order = session.state, session.queue.draws.order
    with session._lock:
        answers = dict(state.answers)
        passed = state.pool.first_copies(state.pool.positions([*state.skipped]))
    sample, seen = session.queue.choose_sample(blind)
    if not sample:
        raise ValueError(_explain_empty(session, len(seen)))
    if seen:
        warnings.warn(
            f"{len(seen)} answers of the audit were given with help, or it is not "
            "known whether they were. They are left out, and the estimates are about "
            "the texts that were not answered with help. blind=False uses them.",
            stacklevel=4,
        )
        helped = [id for id, answer in answers.items() if not answer.is_blind]
        helped = state.pool.first_copies(state.pool.positions(helped))
        passed = np.concatenate([passed, helped])
    positions = order[~np.isin(order, passed)]
    rows = state.pool.first_copies(state.pool.positions(sample))
    place = dict(zip(positions.tolist(), range(len(positions)), strict=True))
    places = np.array([place[row] for row in rows.tolist()], dtype=np.intp)
    labels = [answers[id].label for id in sample]
    classes, predicted = _predict(session, positions)
    known = list(map(key_of, classes))
    classes += [name for name in session.known_classes if key_of(name) not in known]
    if predicted is not None and session.target != "regression":
        more = len(classes) - predicted.shape[1]
        predicted = np.pad(predicted, ((0, 0), (0, more)))
    return Evidence(positions, places, labels, classes, predicted)


def _explain_empty(session, n_seen):
    if n_seen:
        return (
            f"the {n_seen} answers of the audit were given with help, or it is not "
            "known whether they were. Pass blind=False to use them."
        )
    if session.queue.draws.reserved.any():
        return "the audit has no answers yet. Label some more texts."
    return (
        "the session has no audit, a random sample of the pool. Open it with "
        "audit_every=10, for one in ten."
    )


def _predict(session, positions):
    """Return classes and predictions (n, k) of items, [] and None without a model."""
    learner, data, rest = session.models.taught()
    n, found = len(data.labels), None
    if session.target == "single-label":
        found = hold_out(learner, data, rest, n_rest=0)
        own = None if found is None else found.proba[-n:]
    else:
        own = predict_held_out(learner, n) if n > 1 else None
    if own is None:
        return [], None
    model, names, parts = session.models.get(refit=True), [], []
    for start in range(0, len(positions), _CHUNK):
        X = take_rows(data.pool.X, positions[start : start + _CHUNK])
        if own.ndim == 1:
            part = model.learner.predict(X)
        else:
            part, names = predict_proba(model, X)
        parts.append(part)
    predicted = np.concatenate(parts).astype(float)
    rows = data.pool.first_copies(data.pool.positions(list(data.labels)))
    places = {row: i for i, row in enumerate(positions.tolist())}
    for row, values in zip(rows.tolist(), own, strict=True):
        if row in places:
            predicted[places[row]] = values[: len(names)] if names else values
    return list(names), predicted


def find_prevalence(session, groups, confidence_level, blind):
    """Return a Prevalence or MeanEstimate; see `LabelingSession.prevalence`."""
    evidence = find_evidence(session, blind)
    n_pool, proxies = len(evidence.positions), evidence.proxies()
    options = {"n_pool": n_pool, "confidence_level": confidence_level}
    if groups is not None:
        groups = np.asarray(as_list(groups))
        if len(groups) != len(session.state.pool):
            raise ValueError(
                "'groups' must hold one group for each of the "
                f"{len(session.state.pool)} items of the pool, got {len(groups)}."
            )
        groups = groups[evidence.positions]
    if session.target == "regression":
        if groups is not None:
            raise TypeError("'groups' are for shares of classes; this is a mean.")
        return estimate_mean(
            np.array(evidence.labels, dtype=float), *proxies, **options
        )
    labels, classes = evidence.labels, evidence.classes
    if session.target == "multi-label":
        labels = _as_rows(labels, classes)
    if groups is not None:
        options |= {"groups": groups[evidence.places], "pool_groups": groups}
    return estimate_prevalence(labels, *proxies, classes=classes, **options)


def find_quality(session, confidence_level, blind):
    """Return a QualityEstimate; see `LabelingSession.quality`."""
    evidence = find_evidence(session, blind)
    proba, pool_proba = evidence.proxies()
    if proba is None:
        raise ValueError("there is no model yet. Label items of two classes first.")
    labels, classes = evidence.labels, evidence.classes
    if session.target == "multi-label":
        labels, predicted = _as_rows(labels, classes), (proba > 0.5).astype(int)
    else:
        predicted = [classes[j] for j in proba.argmax(axis=1)]
    options = {"classes": classes, "confidence_level": confidence_level}
    return estimate_quality(labels, predicted, proba, pool_proba, **options)


def _as_rows(labels, classes):
    """Return a row of 0 and 1 for each list of names."""
    known = list(map(key_of, classes))
    rows = np.zeros((len(labels), len(classes)), dtype=int)
    for row, names in zip(rows, labels, strict=True):
        row[[known.index(key_of(name)) for name in names]] = 1
    return rows
