"""Estimates about the pool: the audit as the sample, the model as the proxy."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._utils._containers import as_list, take_rows
from .._utils._labels import key_of, list_classes
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
    `machines` are arrays like `predicted`, one for each machine that was asked about
    the whole pool.
    """

    positions: Any
    places: Any
    labels: list
    classes: list
    predicted: Any = None
    machines: tuple = ()

    def proxies(self):
        """Return predictions and answers of machines, of sample and pool, or None."""
        found = [self.predicted] * (self.predicted is not None) + [*self.machines]
        if not found:
            return None, None
        found = np.stack(found, axis=-1)
        return found[self.places], found


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
        helped = [id for id, answer in answers.items() if not answer.blind]
        helped = state.pool.first_copies(state.pool.positions(helped))
        passed = np.concatenate([passed, helped])
    positions = order[~np.isin(order, passed)]
    rows = state.pool.first_copies(state.pool.positions(sample))
    place = dict(zip(positions.tolist(), range(len(positions)), strict=True))
    places = np.array([place[row] for row in rows.tolist()], dtype=np.intp)
    labels = [*sample.values()]
    classes, predicted = _predict(session, positions)
    known = list(map(key_of, classes))
    classes += [name for name in session.known_classes if key_of(name) not in known]
    if predicted is not None and session.target != "regression":
        more = len(classes) - predicted.shape[1]
        predicted = np.pad(predicted, ((0, 0), (0, more)))
    machines = _read_machines(session, positions, classes)
    return Evidence(positions, places, labels, classes, predicted, machines)


def _read_machines(session, positions, classes):
    """Return the answers of machines as indicators (n, k), or numbers (n,); a tuple.

    A machine that was not asked about all items is left out: it may have been asked
    about those that people had labeled, or had not.
    """
    pool, found = session.state.pool, []
    ids = [pool.ids[row] for row in positions.tolist()]
    for name, asked in session.state.machines.items():
        if not all(id in asked for id in ids):
            continue
        labels = session.state.machine_labels(name)
        if session.target == "regression":
            middle = float(np.mean([*labels.values()])) if labels else 0.0
            found.append(np.array([labels.get(id, middle) for id in ids], dtype=float))
        else:
            said = [labels.get(id) for id in ids]
            found.append(as_rows([list_classes([x]) for x in said], classes))
    return tuple(found)


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
        labels = as_rows(labels, classes)
    if groups is not None:
        options |= {"groups": groups[evidence.places], "pool_groups": groups}
    return estimate_prevalence(labels, *proxies, classes=classes, **options)


def find_quality(session, confidence_level, blind):
    """Return a QualityEstimate; see `LabelingSession.quality`."""
    evidence = find_evidence(session, blind)
    pool_proba = evidence.predicted
    if pool_proba is None:
        raise ValueError("there is no model yet. Label items of two classes first.")
    proba = pool_proba[evidence.places]
    labels, classes = evidence.labels, evidence.classes
    if session.target == "multi-label":
        labels, predicted = as_rows(labels, classes), (proba > 0.5).astype(int)
    else:
        predicted = [classes[j] for j in proba.argmax(axis=1)]
    options = {"classes": classes, "confidence_level": confidence_level}
    return estimate_quality(labels, predicted, proba, pool_proba, **options)


def as_rows(labels, classes):
    """Return a row of 0 and 1 for each list of names; others are left out."""
    column = {key_of(name): j for j, name in enumerate(classes)}
    rows = np.zeros((len(labels), len(classes)), dtype=int)
    for row, names in zip(rows, labels, strict=True):
        row[[column[key_of(name)] for name in names if key_of(name) in column]] = 1
    return rows
