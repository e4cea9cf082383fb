"""Estimates about the pool: the audit as the sample, the model as the proxy."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._utils._containers import as_list, take_rows
from .._utils._labels import key_of, list_classes
from ..estimation import (
    estimate_mean,
    estimate_prevalence,
    estimate_quality,
    predict_held_out,
)
from ._insights import (
    MIN_AUDIT,
    Estimate,
    hold_out,
    make_estimate,
    minutes_left,
)
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
        proxies = [self.predicted] * (self.predicted is not None) + [*self.machines]
        if not proxies:
            return None, None
        proxies = np.stack(proxies, axis=-1)
        return proxies[self.places], proxies


def find_evidence(core, blind, held_out=None):
    """Return the Evidence of a session.

    With `blind`, answers that were given with help are left out of the sample. If there
    are any in the audit, the pool is then what was not answered with help. `held_out`
    are labels and their OutOfFold, if they are known.
    """
    state, order = core.state, core.queue.draws.order
    with core.lock:
        answers = dict(state.answers)
        passed = state.pool.first_copies(state.pool.positions([*state.skipped]))
    sample, seen = core.queue.choose_sample(blind)
    if not sample:
        raise ValueError(_explain_empty(core, len(seen)))
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
    place_of = dict(zip(positions.tolist(), range(len(positions)), strict=True))
    places = np.array([place_of[row] for row in rows.tolist()], dtype=np.intp)
    labels = [*sample.values()]
    classes, predicted = _predict(core, positions, held_out)
    keys = list(map(key_of, classes))
    classes += [name for name in core.known_classes() if key_of(name) not in keys]
    if predicted is not None and core.target != "regression":
        more = len(classes) - predicted.shape[1]
        predicted = np.pad(predicted, ((0, 0), (0, more)))
    machines = _read_machines(core, positions, classes)
    return Evidence(positions, places, labels, classes, predicted, machines)


def _read_machines(core, positions, classes):
    """Return the answers of machines as indicators (n, k), or numbers (n,); a tuple.

    A machine that was not asked about all items is left out: it may have been asked
    about those that people had labeled, or had not.
    """
    pool, machines = core.state.pool, []
    ids = [pool.ids[row] for row in positions.tolist()]
    for name, asked in core.state.machines.items():
        if not all(id in asked for id in ids):
            continue
        labels = core.state.machine_labels(name)
        if core.target == "regression":
            middle = float(np.mean([*labels.values()])) if labels else 0.0
            numbers = [labels.get(id, middle) for id in ids]
            machines.append(np.array(numbers, dtype=float))
        else:
            said = [labels.get(id) for id in ids]
            machines.append(as_rows([list_classes([x]) for x in said], classes))
    return tuple(machines)


def _explain_empty(core, n_seen):
    if n_seen:
        return (
            f"the {n_seen} answers of the audit were given with help, or it is not "
            "known whether they were. Pass blind=False to use them."
        )
    if core.queue.draws.reserved.any():
        return "the audit has no answers yet. Label some more texts."
    return (
        "the session has no audit, a random sample of the pool. Open it with "
        "audit_every=10, for one in ten."
    )


def _predict(core, positions, held_out=None):
    """Return classes and predictions (n, k) of items, [] and None without a model."""
    learner, data, unlabeled = core.models.taught()
    if held_out is None and core.target == "single-label":
        held_out = data, hold_out(learner, data, unlabeled, n_rest=0)
    if held_out is not None:
        data, folds = held_out
        own = None if folds is None else folds.proba[-len(data.labels) :]
    else:
        n = len(data.labels)
        own = predict_held_out(learner, n) if n > 1 else None
    if own is None:
        return [], None
    model, names, parts = core.models.get(refit=True), [], []
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


def find_prevalence(core, groups, confidence_level, blind):
    """Return a Prevalence or MeanEstimate; see `LabelingSession.prevalence`."""
    evidence = find_evidence(core, blind)
    n_pool, proxies = len(evidence.positions), evidence.proxies()
    options = {"n_pool": n_pool, "confidence_level": confidence_level}
    if groups is not None:
        groups = np.asarray(as_list(groups))
        if len(groups) != len(core.state.pool):
            raise ValueError(
                "'groups' must hold one group for each of the "
                f"{len(core.state.pool)} items of the pool, got {len(groups)}."
            )
        groups = groups[evidence.positions]
    if core.target == "regression":
        if groups is not None:
            raise TypeError("'groups' are for shares of classes; this is a mean.")
        return estimate_mean(
            np.array(evidence.labels, dtype=float), *proxies, **options
        )
    labels, classes = evidence.labels, evidence.classes
    if core.target == "multi-label":
        labels = as_rows(labels, classes)
    if groups is not None:
        options |= {"groups": groups[evidence.places], "pool_groups": groups}
    return estimate_prevalence(labels, *proxies, classes=classes, **options)


def find_quality(core, confidence_level, blind, held_out=None):
    """Return a QualityEstimate; see `LabelingSession.quality` and `find_evidence`."""
    evidence = find_evidence(core, blind, held_out)
    pool_proba = evidence.predicted
    if pool_proba is None:
        raise ValueError("there is no model yet. Label items of two classes first.")
    proba = pool_proba[evidence.places]
    labels, classes = evidence.labels, evidence.classes
    if core.target == "multi-label":
        labels, predicted = as_rows(labels, classes), (proba > 0.5).astype(int)
    else:
        predicted = [classes[j] for j in proba.argmax(axis=1)]
    learner, *_ = core.models.taught()
    options = {"classes": classes, "confidence_level": confidence_level}
    # Most labels of the model are not in the sample.
    options["cross_fitted"] = min(len(labels) / len(learner.y_labeled_), 1.0)
    return estimate_quality(labels, predicted, proba, pool_proba, **options)


def assess(core, n_labels, horizon=100, blind=True):
    """Return an Estimate, and recall and precision by the key of a class.

    See `LabelingSession.estimate`. Each of both is a share and its interval, or None
    for fewer than ten items. `n_labels` is the number of labels wanted, or None.
    """
    learner, data, unlabeled = core.models.taught()
    with core.lock:
        seconds = [one.seconds for one in core.state.list_answers()]
        n_left = None if n_labels is None else n_labels - len(core.state.answers)
        sample, _ = core.queue.choose_sample(blind)
    minutes = minutes_left(seconds, n_left)
    folds, n = hold_out(learner, data, unlabeled), len(data.labels)
    if folds is None:
        return Estimate(n, horizon=horizon, minutes=minutes), {}
    if len(sample) < MIN_AUDIT:
        return make_estimate(folds, n, None, horizon, minutes), {}
    quality = find_quality(core, 0.95, blind, (data, folds))
    classes = {
        key_of(name): [
            None if part.n_labels < MIN_AUDIT else (part.value, *part.interval)
            for part in (one.recall, one.precision)
        ]
        for name, one in quality.classes.items()
    }
    return make_estimate(folds, n, quality.accuracy, horizon, minutes), classes


def as_rows(labels, classes):
    """Return a row of 0 and 1 for each list of names; others are left out."""
    column = {key_of(name): j for j, name in enumerate(classes)}
    rows = np.zeros((len(labels), len(classes)), dtype=int)
    for row, names in zip(rows, labels, strict=True):
        row[[column[key_of(name)] for name in names if key_of(name) in column]] = 1
    return rows
