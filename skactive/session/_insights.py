"""What the answers of a session say about themselves and about the model."""

import numpy as np

from .._utils._containers import take_rows
from ..stopping._out_of_fold import out_of_fold
from ._agreement import measure_agreement
from ._estimate import make_estimate, minutes_left
from ._suspicious import (
    find_supervised,
    find_suspicious,
    find_suspicious_numbers,
    find_suspicious_rows,
    predict_held_out,
    temper,
)


class Insights:
    """Estimates from the answers; the lock is not held while models are trained."""

    def __init__(self, log, pool, models, queue):
        self._log = log
        self._pool = pool
        self._models = models
        self._queue = queue

    def suspicious(self, n):
        """Return doubtful answers; see `LabelingSession.suspicious`."""
        if self._models.target != "single-label":
            return self._find_doubtful(n)
        taught = self._models.taught()
        simple = find_supervised(taught[0].estimator)
        ids, found = self._hold_out(taught, simple, n_rest=0)
        if found is None:
            return []
        first = len(found.codes) - len(ids)
        proba = found.proba if simple is None else temper(found.proba, found.codes)
        rows = find_suspicious(proba, found.codes)[:n]
        best = proba[rows].argmax(axis=1)
        labels, classes = found.classes.tolist(), found.codes
        return [
            (ids[row - first], labels[classes[row]], labels[i], float(p))
            for row, i, p in zip(
                rows.tolist(), best.tolist(), proba[rows, best], strict=True
            )
        ]

    def _find_doubtful(self, n):
        """Return doubtful lists of names, rows or numbers; see `suspicious`."""
        learner, labels, _, names = self._models.taught()
        if len(labels) < 2:
            return []
        y, seed = learner.y_labeled_, learner.random_state
        place = learner.X_labeled_, y, len(labels), seed
        predicted, y = predict_held_out(learner.estimator, *place), y[-len(labels) :]
        if y.ndim == 1:
            rows, sizes = find_suspicious_numbers(predicted, y)
            best = predicted[rows].tolist()
        else:
            rows, columns = find_suspicious_rows(predicted, y)
            p = predicted[rows, columns]
            sizes, best = np.maximum(p, 1 - p), (predicted[rows] > 0.5).astype(int)
            best = best.tolist()
            if names is not None:
                best = [[names[j] for j in np.flatnonzero(row)] for row in best]
        answers = list(labels.items())
        return [
            (*answers[row], other, size)
            for row, other, size in zip(
                rows.tolist(), best, sizes.tolist(), strict=True
            )
        ][:n]

    def estimate(self, n_labels, horizon):
        """Return an Estimate; see `LabelingSession.estimate`."""
        if self._models.target != "single-label":
            raise TypeError(
                "estimate needs labels of one class for each item, got "
                f"{self._models.target} labels. Score the model on a labeled test set."
            )
        with self._log.lock:
            answers = self._log.state.answers.values()
            given = [one for answer in answers for one in answer.given]
            seconds = [one.seconds for one in given if one.seconds is not None]
            n_now, audit = len(answers), set(self._queue.audited())
        minutes = minutes_left(seconds, None if n_labels is None else n_labels - n_now)
        ids, found = self._hold_out(self._models.taught())
        audited = None
        if found is not None:
            audited = np.zeros(len(found.codes), dtype=bool)
            audited[len(audited) - len(ids) :] = [id in audit for id in ids]
        return make_estimate(found, n_now, audited, horizon, minutes)

    def agreement(self):
        """Return an Agreement; see `LabelingSession.agreement`."""
        answers = self._log.state.answers.items()
        return measure_agreement(
            {id: {one.annotator: one.label for one in a.given} for id, a in answers},
            target=self._models.target,
        )

    def _hold_out(self, taught, supervised=None, **options):
        """Return the ids of the labels and their OutOfFold, None if it is impossible.

        The last rows of the OutOfFold are those of the ids. Rows before are labels that
        the learner had before the session; they are never held out. `supervised` is an
        estimator to use instead, which uses no unlabeled items.
        """
        learner, labels, rest, _ = taught
        if len(labels) < 2 or len(set(map(str, learner.y_labeled_))) < 2:
            return list(labels), None
        held = np.zeros(len(learner.y_labeled_), dtype=bool)
        held[len(held) - len(labels) :] = True
        needs_rest = supervised is None and len(rest)
        X_rest = take_rows(self._pool.X, rest) if needs_rest else None
        return list(labels), out_of_fold(
            supervised or learner.estimator,
            *(learner.X_labeled_, learner.y_labeled_, X_rest),
            held=held,
            seed=learner.random_state,
            **options,
        )
