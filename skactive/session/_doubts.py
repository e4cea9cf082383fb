"""Answers that models without them contradict."""

from itertools import compress

import numpy as np
from sklearn.pipeline import Pipeline

from .._utils._labels import key_of
from .._utils._pipelines import has_descriptions
from ..estimation import (
    find_suspicious,
    find_suspicious_numbers,
    find_suspicious_rows,
    predict_held_out,
    temper,
)
from ..semi_supervised import SelfTraining
from ._evidence import hold_out

_MOST_DOUBTS = 100
_QUICK, _CERTAIN = 0.5, 0.9  # seconds of an answer, probability of a prediction


def find_doubtful(core):
    """Return all rows of `LabelingSession.suspicious`; see there."""
    learner, data, unlabeled = core.models.taught()
    seen = ~np.array(core.queue.find_blind(data.labels), dtype=bool)
    if core.target != "single-label":
        return _find_doubts(learner, data, seen)
    supervised = find_supervised(learner.estimator)
    folds = hold_out(learner, data, unlabeled, supervised, n_rest=0)
    if folds is None:
        return []
    ids, first = list(data.labels), len(folds.codes) - len(data.labels)
    folds.proba[first:][~seen] = np.nan
    proba = folds.proba if supervised is None else temper(folds.proba, folds.codes)
    classes, doubts = folds.classes.tolist(), []
    for row in find_suspicious(proba, folds.codes).tolist():
        best = int(proba[row].argmax())
        label, predicted = classes[folds.codes[row]], classes[best]
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

    def __init__(self, core):
        self._core = core
        self.n_labels = self._model = None
        self._quick, self._rows, self._error = {}, [], ""

    @property
    def is_behind(self):
        """Whether there is a model whose doubtful answers are not listed."""
        model = self._core.models.newest().learner
        return model is not None and model is not self._model

    def find(self):
        """Find the doubtful answers for the newest model; takes seconds."""
        model = self._core.models.newest().learner
        n_labels, rows, error = len(self._core.state.answers), [], ""
        try:
            rows = find_doubtful(self._core)[:_MOST_DOUBTS]
        except Exception as exc:  # shown to who asks for the list
            error = f"No answers can be checked: {exc}"
        self._rows, self._error, self.n_labels = rows, error, n_labels
        self._model = model

    def add_quick(self, id, label, seconds, name, probability):
        """List an answer that was too quick, if a certain prediction was shown."""
        is_quick = seconds is not None and seconds < _QUICK
        if is_quick and (probability or 0) >= _CERTAIN:
            self._quick[id] = id, label, name, probability

    def list_rows(self):
        """Return rows of `LabelingSession.suspicious` that are still doubtful.

        Answers that were too quick come first. Nothing is predicted for what the audit
        can draw.
        """
        if self._error:
            raise TypeError(self._error)
        answers, queue = self._core.state.answers, self._core.queue
        rows = {row[0]: row for row in [*self._rows, *self._quick.values()]}
        return [
            row
            for row in sorted(rows.values(), key=lambda row: row[0] not in self._quick)
            if _is_doubtful(row, answers.get(row[0])) and not queue.is_blind(row[0])
        ]

    def count(self):
        """Return the number of these rows; 0 if answers cannot be checked."""
        return 0 if self._error else len(self.list_rows())

    def lists(self, id):
        """Whether an item is among the rows."""
        return id in self._quick or any(id == row[0] for row in self._rows)


def _is_doubtful(row, answer):
    """Whether an answer is still the doubtful one, and was not given in a review."""
    _, label, predicted, _ = row
    if answer is None or key_of(answer.label) != key_of(label):
        return False
    seen = [one.label for one in answer.given if one.way == "review"]
    return key_of(label) not in map(key_of, [predicted, *seen])
