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
    gain_of_labels,
    n_for_gain,
    out_of_fold,
    predict_held_out,
)
from ._lookup import predict_proba
from ._queue import NO_AUDIT

_CHUNK = 10_000  # items that are predicted at a time
MIN_AUDIT, MIN_LABELS = 10, 20  # for an estimate
_Interval = tuple[float, float]


@dataclass(frozen=True)
class Evidence:
    """What is known of a pool of n items: labels of a sample, predictions of all.

    `places` (m,) are those of the sample among `positions` (n,), those of the pool.
    `predicted` (n, k) are probabilities of the `classes`, or numbers (n,); those of
    labeled items are by models without their label. None stands for no model.
    `machines` are arrays like `predicted`, one for each machine that was asked about
    about the whole pool. Without the pool, the positions are those of the sample, and
    predictions of no other items help: nobody knows which they are.
    """

    positions: Any
    places: Any
    labels: list
    classes: list
    predicted: Any = None
    machines: tuple = ()
    has_pool: bool = True

    def proxies(self):
        """Return predictions and answers of machines, of sample and pool, or None."""
        if not self.has_pool:
            return None, None
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
    has_pool = core.queue.find_asked is None  # a question that depends on another one
    positions = positions if has_pool else rows
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
    return Evidence(positions, places, labels, classes, predicted, machines, has_pool)


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
    return NO_AUDIT


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
    model, names, parts = core.models.get_for_estimates(), [], []
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


def find_prevalence(core, groups, confidence_level, blind, evidence=None):
    """Return a Prevalence or MeanEstimate; see `LabelingSession.prevalence`."""
    evidence = evidence or find_evidence(core, blind)
    n_pool = len(evidence.positions) if evidence.has_pool else None
    proxies = evidence.proxies()
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


def find_quality(core, confidence_level, blind, evidence=None):
    """Return a QualityEstimate; see `LabelingSession.quality`."""
    evidence = evidence or find_evidence(core, blind)
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
    pool_proba = pool_proba if evidence.has_pool else None
    return estimate_quality(labels, predicted, proba, pool_proba, **options)


def assess(core, n_labels, horizon=100, blind=True):
    """Return an Estimate, recall and precision by the key of a class, and a Prevalence.

    See `LabelingSession.estimate`. Recall and precision are a share and its interval,
    or None for fewer than ten items. Without an estimate, the Prevalence is None.
    `n_labels` is the number of labels wanted, or None.
    """
    learner, data, unlabeled = core.models.taught()
    with core.lock:
        seconds = [one.seconds for one in core.state.list_answers()]
        n_left = None if n_labels is None else n_labels - len(core.state.answers)
        sample, _ = core.queue.choose_sample(blind)
    minutes = minutes_left(seconds, n_left)
    folds, n = hold_out(learner, data, unlabeled), len(data.labels)
    if folds is None:
        return Estimate(n, horizon=horizon, minutes=minutes), {}, None
    if len(sample) < MIN_AUDIT:
        return make_estimate(folds, n, None, horizon, minutes), {}, None
    evidence = find_evidence(core, blind, (data, folds))
    quality = find_quality(core, 0.95, blind, evidence)
    shares = find_prevalence(core, None, 0.95, blind, evidence)
    classes = {
        key_of(name): [
            None if part.n_labels < MIN_AUDIT else (part.value, *part.interval)
            for part in (one.recall, one.precision)
        ]
        for name, one in quality.classes.items()
    }
    return make_estimate(folds, n, quality.accuracy, horizon, minutes), classes, shares


def as_rows(labels, classes):
    """Return a row of 0 and 1 for each list of names; others are left out."""
    column = {key_of(name): j for j, name in enumerate(classes)}
    rows = np.zeros((len(labels), len(classes)), dtype=int)
    for row, names in zip(rows, labels, strict=True):
        row[[column[key_of(name)] for name in names if key_of(name) in column]] = 1
    return rows


# Accuracy and gain --------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """What the labels tell about a model; see `LabelingSession.estimate`."""

    n_labels: int
    accuracy: float | None = None
    accuracy_interval: _Interval | None = None
    n_audited: int = 0
    horizon: int = 100
    gain: float | None = None
    gain_interval: _Interval | None = None
    minutes: float | None = None
    gain_from: int | None = None

    def __str__(self):
        parts = self.say_accuracy(), self.say_gain(), self.say_minutes()
        return "; ".join(filter(None, parts))

    def say_accuracy(self):
        """Return a sentence about the accuracy."""
        if self.accuracy is None:
            return "accuracy: cannot tell yet"
        low, high = (round(100 * bound) for bound in self.accuracy_interval)
        what, basis = "the labeled texts are", ""
        if self.n_audited:
            what, basis = "the pool is", f", from {self.n_audited} drawn at random"
        shown = f"{100 * self.accuracy:.0f} % of {what} predicted right"
        return f"About {shown} ({low}-{high} %){basis}"

    def say_gain(self):
        """Return what further labels add, in words."""
        if self.gain is not None:
            low, high = (100 * bound for bound in self.gain_interval)
            points = f"{100 * self.gain:+.1f} points ({low:.1f} to {high:.1f})"
            return f"the next {self.horizon} labels: {points} on the rest"
        when = f"known from {self.gain_from} labels on"
        when = "not known yet" if self.gain_from is None else when
        return f"what {self.horizon} more labels bring is {when}"

    def say_minutes(self):
        """Return the time that is left, in words, or ""."""
        if self.minutes is None:
            return ""
        left = "less than 1 min" if self.minutes < 1 else f"{self.minutes:.0f} min"
        if self.minutes >= 90:
            left = f"{int(self.minutes) // 60} h {int(self.minutes) % 60} min"
        return f"{left} left at your pace"


def hold_out(learner, data, rest, supervised=None, held=None, **options):
    """Return the OutOfFold of the labels, None if it is impossible.

    Its last rows are those of the labels of `data`. Rows before are labels that the
    learner had before the session; they are not held out unless `held` says so.
    `supervised` is an estimator to use instead, which uses no unlabeled items.
    """
    n = len(data.labels)
    if n < 2 or len(set(map(str, learner.y_labeled_))) < 2:
        return None
    if held is None:
        held = np.arange(len(learner.y_labeled_)) >= len(learner.y_labeled_) - n
    needs_rest = supervised is None and len(rest)
    return out_of_fold(
        supervised or learner.estimator,
        learner.X_labeled_,
        learner.y_labeled_,
        take_rows(data.pool.X, rest) if needs_rest else None,
        held=held,
        seed=learner.random_state,
        **options,
    )


def make_estimate(folds, n_labels, accuracy, horizon, minutes):
    """Return the Estimate of an OutOfFold; `accuracy` is a MeanEstimate or None."""
    held = ~np.isnan(folds.proba[:, 0])
    gain, gain_interval = gain_of_labels(folds, horizon) or (None, None)
    # The labels from before the session count, but are none of `n_labels`.
    missing = n_for_gain(len(folds.classes), horizon) - len(folds.codes)
    gain_from = n_labels + missing if missing > 0 else None
    n_audited = 0 if accuracy is None else accuracy.n_labels
    if accuracy is None and held.sum() >= MIN_LABELS:
        codes, guesses = folds.codes[held], folds.proba[held].argmax(axis=1)
        accuracy = estimate_quality(codes, guesses).accuracy
    value = interval = None
    if accuracy is not None:
        value, interval = accuracy.value, accuracy.interval
    more = horizon, gain, gain_interval, minutes, gain_from
    return Estimate(n_labels, value, interval, n_audited, *more)


def minutes_left(seconds, n_left):
    """Return the minutes for `n_left` answers at the median of `seconds`, or None."""
    seconds = [value for value in seconds if value is not None]
    if not seconds or n_left is None:
        return None
    return float(np.median(seconds)) * max(n_left, 0) / 60
