"""What the answers of a session say about themselves and about the model."""

from collections import Counter
from dataclasses import dataclass
from itertools import compress

import numpy as np
from sklearn.pipeline import Pipeline

from .._utils._containers import take_rows
from .._utils._labels import key_of
from .._utils._pipelines import has_descriptions
from ..estimation import (
    estimate_quality,
    find_suspicious,
    find_suspicious_numbers,
    find_suspicious_rows,
    gain_of_labels,
    n_for_gain,
    out_of_fold,
    plan_labels,
    predict_held_out,
    temper,
)
from ..semi_supervised import SelfTraining
from ..stopping import describe_goal, find_widest

_Interval = tuple[float, float]
MIN_AUDIT, _MIN_LABELS = 10, 20
_MOST_DOUBTS = 100
_HALF_WIDTH = 0.05  # of the intervals of shares that are planned for
_WANTED_PER_CLASS = 10  # labels; so many are also wanted before gains are estimated


def find_doubtful(models, find_blind):
    """Return all rows of `LabelingSession.suspicious`; see there.

    `find_blind(ids)` returns which items are left out.
    """
    learner, data, rest = models.taught()
    seen = ~np.array(find_blind(data.labels), dtype=bool)
    if models.target != "single-label":
        return _find_doubts(learner, data, seen)
    supervised = find_supervised(learner.estimator)
    found = hold_out(learner, data, rest, supervised, n_rest=0)
    if found is None:
        return []
    ids, first = list(data.labels), len(found.codes) - len(data.labels)
    found.proba[first:][~seen] = np.nan
    proba = found.proba if supervised is None else temper(found.proba, found.codes)
    classes, doubts = found.classes.tolist(), []
    for row in find_suspicious(proba, found.codes).tolist():
        best = int(proba[row].argmax())
        label, predicted = classes[found.codes[row]], classes[best]
        doubts.append((ids[row - first], label, predicted, float(proba[row, best])))
    return doubts


def _find_doubts(learner, data, seen):
    """Return doubtful lists of names, rows or numbers, as rows of `suspicious`.

    Only items of the mask `seen` are compared.
    """
    n, names = len(data.labels), data.classes
    if seen.sum() < 2:
        return []
    predicted = predict_held_out(learner, n)[seen]
    y = learner.y_labeled_[-n:][seen]
    if y.ndim == 1:
        rows, sizes = find_suspicious_numbers(predicted, y)
        best = predicted[rows].tolist()
    else:
        rows, columns = find_suspicious_rows(predicted, y)
        p = predicted[rows, columns]
        sizes, best = np.maximum(p, 1 - p), (predicted[rows] > 0.5).astype(int).tolist()
        if names is not None:
            best = [[names[j] for j in np.flatnonzero(row)] for row in best]
    answers = list(compress(data.labels.items(), seen))
    return [
        (*answers[row], other, size)
        for row, other, size in zip(rows.tolist(), best, sizes.tolist(), strict=True)
    ]


def hold_out(learner, data, rest, supervised=None, **options):
    """Return the OutOfFold of the labels, None if it is impossible.

    Its last rows are those of the labels of `data`. Rows before are labels that the
    learner had before the session; they are never held out. `supervised` is an
    estimator to use instead, which uses no unlabeled items.
    """
    n = len(data.labels)
    if n < 2 or len(set(map(str, learner.y_labeled_))) < 2:
        return None
    held = np.zeros(len(learner.y_labeled_), dtype=bool)
    held[len(held) - n :] = True
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
        parts = describe_accuracy(self), describe_gain(self), describe_minutes(self)
        return "; ".join(filter(None, parts))


def describe_accuracy(estimate):
    """Return what an Estimate says about the accuracy."""
    if estimate.accuracy is None:
        return "accuracy: cannot tell yet"
    low, high = (round(100 * bound) for bound in estimate.accuracy_interval)
    what, basis = "the labeled texts are", ""
    if estimate.n_audited:
        what, basis = "the pool is", f", from {estimate.n_audited} drawn at random"
    shown = f"{100 * estimate.accuracy:.0f} % of {what} predicted right"
    return f"About {shown} ({low}-{high} %){basis}"


def describe_gain(estimate):
    """Return what an Estimate says about further labels."""
    gain = "cannot tell"
    if estimate.gain_from is not None:
        gain = f"from {estimate.gain_from} labels on"
    if estimate.gain is not None:
        low, high = (100 * bound for bound in estimate.gain_interval)
        gain = (
            f"{100 * estimate.gain:+.1f} points ({low:.1f} to {high:.1f}) on the rest"
        )
    return f"the next {estimate.horizon} labels: {gain}"


def describe_minutes(estimate):
    """Return what an Estimate says about the time, or ""."""
    minutes = estimate.minutes
    if minutes is None:
        return ""
    left = "less than 1 min" if minutes < 1 else f"{minutes:.0f} min"
    if minutes >= 90:
        left = f"{int(minutes) // 60} h {int(minutes) % 60} min"
    return f"{left} left at your pace"


def make_estimate(found, n_labels, accuracy, horizon, minutes):
    """Return the Estimate of an OutOfFold; `accuracy` is a MeanEstimate or None."""
    held = ~np.isnan(found.proba[:, 0])
    gain, gain_interval = gain_of_labels(found, horizon) or (None, None)
    # The labels from before the session count, but are none of `n_labels`.
    missing = n_for_gain(len(found.classes), horizon) - len(found.codes)
    gain_from = n_labels + missing if missing > 0 else None
    known, n_audited = (None, None), 0  # the accuracy and its interval
    if accuracy is not None:
        known, n_audited = (accuracy.value, accuracy.interval), accuracy.n_labels
    elif held.sum() >= _MIN_LABELS:
        codes, guesses = found.codes[held], found.proba[held].argmax(axis=1)
        accuracy = estimate_quality(codes, guesses).accuracy
        known = accuracy.value, accuracy.interval
    return Estimate(
        n_labels, *known, n_audited, horizon, gain, gain_interval, minutes, gain_from
    )


class Quality:
    """The estimates of a session so far, in sentences.

    `n_wanted` is the number of labels to reach; `until` is that of an AuditGoal.
    """

    def __init__(self, session, n_wanted, until=None):
        self._session, self._n_wanted, self._until = session, n_wanted, until
        self._distance = ""  # to the goal, in words
        self._n_begun = -1  # labels when the last estimate began
        self._estimate, self._classes = Estimate(0), {}
        self._curve = []

    def is_due(self, n_labels):
        """Whether there are enough labels for another estimate."""
        is_single = self._session.target == "single-label"
        if not (is_single or self._until) or n_labels < _MIN_LABELS:
            return False
        return n_labels - self._n_begun >= max(10, n_labels // 20)

    def compute(self, n_labels):
        """Estimate anew; takes seconds."""
        self._n_begun = n_labels
        if self._until is not None:
            sample, _ = self._session.queue.choose_sample(blind=True)
            try:
                found = find_widest(self._until, self._session)
                self._distance = describe_goal(self._until, found, len(sample))
            except ValueError as exc:  # such as a class that the session lacks
                self._distance = str(exc)
        if self._session.target != "single-label":
            self._estimate = Estimate(n_labels)
            return
        self._estimate, self._classes = self._session._assess(self._n_wanted)
        if self._estimate.n_audited:
            about = self._estimate.accuracy, self._estimate.accuracy_interval
            self._curve.append([self._estimate.n_labels, *about])

    @property
    def n_labels(self):
        """Number of labels of the last estimate, 0 before the first."""
        return self._estimate.n_labels

    def line(self, n_labels):
        """Return a line for a front end that has `n_labels`; it can be blank."""
        accuracy = self._say(n_labels) if self._estimate.n_audited else ""
        parts = accuracy, self._distance, describe_minutes(self._estimate)
        return "; ".join(filter(None, parts))

    def describe(self, classes, n_labels):
        """Return what `Desk.quality` does; `classes` are those of its state."""
        estimate, known = self._estimate, bool(self._estimate.n_audited)
        described = []
        for entry in classes:
            recall, precision = self._classes.get(key_of(entry["name"]), (None, None))
            missing = max(0, _WANTED_PER_CLASS - entry["count"])
            about = {"recall": recall, "precision": precision, "missing": missing}
            described.append({"name": entry["name"], "count": entry["count"], **about})
        return {
            "sentence": self._say(n_labels),
            "accuracy": estimate.accuracy if known else None,
            "interval": estimate.accuracy_interval if known else None,
            "n_labels": estimate.n_labels,
            "n_audited": estimate.n_audited,
            "curve": self._curve,
            "gain": describe_gain(estimate) + self._plan(),
            "classes": described,
        }

    def _plan(self):
        """Return how many more labels of the audit make the shares exact enough."""
        if self._until is not None:
            return self._distance and f"; {self._distance}"
        queue = self._session.queue
        sample, _ = queue.choose_sample(blind=True)
        if len(sample) < MIN_AUDIT or self._session.target != "single-label":
            return ""
        counts = Counter(map(key_of, sample.values()))
        shares = [count / len(sample) for count in counts.values()]
        share = min(shares, key=lambda share: abs(share - 0.5))
        n_pool = len(queue.draws.order)
        n = plan_labels(_HALF_WIDTH, share=share, n_pool=n_pool) - len(sample)
        if n < 1:
            return f"; each share is within {100 * _HALF_WIDTH:g} points"
        more = f"{n:,} more texts drawn at random"
        return f"; about {more}: each share within {100 * _HALF_WIDTH:g} points"

    def _say(self, n_labels):
        """Return a sentence about the pool."""
        if self._session.target != "single-label":
            return "The accuracy is estimated for one class per text only."
        if self._estimate.n_audited:
            n_before = self._estimate.n_labels
            when = f" at {n_before} labels" if n_before < n_labels else ""
            return f"{describe_accuracy(self._estimate)}{when}"
        return (
            f"Too early to tell: this needs {_MIN_LABELS} labels, {MIN_AUDIT} of them "
            f"of texts drawn at random; there are {len(self._session.audited)}."
        )


def minutes_left(seconds, n_left):
    """Return the minutes for `n_left` answers at the median of `seconds`, or None."""
    seconds = [value for value in seconds if value is not None]
    if not seconds or n_left is None:
        return None
    return float(np.median(seconds)) * max(n_left, 0) / 60


# Doubtful answers ---------------------------------------------------------------------


def find_supervised(estimator):
    """Return what a SelfTraining trains on the labels, or None for other estimators.

    With 77 classes of Banking77 and 500 labels, 25 of them wrong, it finds as many of
    them as the SelfTraining does, in a fifteenth of the time.
    """
    if has_descriptions(estimator):
        return find_supervised(estimator.estimator)
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        last = find_supervised(last)
        return last and Pipeline([*estimator.steps[:-1], (name, last)])
    return estimator.estimator if isinstance(estimator, SelfTraining) else None


class Doubts:
    """The answers that models without them contradict, of the last model.

    `n_labels` is the number of labels that they were found among, None before the first
    list.
    """

    def __init__(self, session):
        self._session = session
        self.n_labels = self._model = None
        self._rows, self._error = [], ""

    @property
    def is_behind(self):
        """Whether there is a model whose doubtful answers are not listed."""
        model = self._session.models.newest().learner
        return model is not None and model is not self._model

    def find(self):
        """Find the doubtful answers for the newest model; takes seconds."""
        model = self._session.models.newest().learner
        n_labels, rows, error = len(self._session.labels), [], ""
        try:
            rows = self._session.suspicious(_MOST_DOUBTS)
        except Exception as exc:  # shown to who asks for the list
            error = f"No answers can be checked: {exc}"
        self._rows, self._error, self.n_labels = rows, error, n_labels
        self._model = model

    def list_rows(self):
        """Return rows of `LabelingSession.suspicious` that are still doubtful.

        Nothing is predicted for what the audit can draw.
        """
        if self._error:
            raise TypeError(self._error)
        answers, queue = self._session.state.answers, self._session.queue
        return [
            row
            for row in self._rows
            if _is_doubtful(row, answers.get(row[0])) and not queue.is_blind(row[0])
        ]

    def count(self):
        """Return the number of these rows; 0 if answers cannot be checked."""
        return 0 if self._error else len(self.list_rows())

    def lists(self, id):
        """Whether an item is among the rows."""
        return any(id == row[0] for row in self._rows)


def _is_doubtful(row, answer):
    """Whether an answer is still the doubtful one, and was not given in a review."""
    _, label, predicted, _ = row
    if answer is None or key_of(answer.label) != key_of(label):
        return False
    seen = [one.label for one in answer.given if one.way == "review"]
    return key_of(label) not in map(key_of, [predicted, *seen])
