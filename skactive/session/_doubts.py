"""Answers that models without them contradict."""

from functools import partial
from itertools import compress

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._utils._labels import key_of, list_classes
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
from ._lists import find_changed

_MOST_DOUBTS = 100
_QUICK, _CERTAIN = 0.5, 0.9  # seconds of an answer, probability of a prediction


def find_doubtful(core):
    """Return all rows of `LabelingSession.suspicious`, and what is said of all answers.

    These are predictions by models without the answer, dict of id to the label and its
    probability, which is None unless there is one class per item; and by name of a
    class that was added or described, its probability for each id. Items that the audit
    can draw have none.
    """
    with core.lock:
        changed, answers = find_changed(core.state), dict(core.state.answers)
    learner, data, unlabeled = core.models.taught()
    seen = ~np.array(core.queue.find_blind(data.labels), dtype=bool)
    if core.target != "single-label":
        return _find_doubts(learner, data, seen, changed)
    supervised = find_supervised(learner.estimator)
    hold = partial(hold_out, learner, data, unlabeled, supervised, n_rest=0)
    if (folds := hold()) is None:
        return [], {}, {}
    ids, first = list(data.labels), len(folds.codes) - len(data.labels)
    folds.proba[first:][~seen] = np.nan
    proba = folds.proba if supervised is None else temper(folds.proba, folds.codes)
    classes, ranks = folds.classes.tolist(), {}
    doubtful = find_suspicious(proba, folds.codes).tolist()
    for name, (added, _) in changed.items():
        is_old = np.zeros(len(proba), dtype=bool)
        is_old[first:] = [id in answers and answers[id].seq < added for id in ids]
        if name not in learner.y_labeled_[~is_old].tolist():
            continue
        column = classes.index(name)
        if is_old.any():  # these answers cannot have it: a model of the newer ones
            new = hold(held=np.where(is_old, 0, -1)).proba
            is_old[first:] &= seen
            is_best = is_old & (new.argmax(axis=1) == column)
            proba[is_best], proba[is_old, column] = new[is_best], new[is_old, column]
        shares = proba[first:, column].tolist()
        ranks[key_of(name)] = dict(zip(ids, shares, strict=True))
    rows = zip(ids, proba[first:], seen, strict=True)
    best = {id: (classes[row.argmax()], float(row.max())) for id, row, x in rows if x}
    doubts = [
        (ids[row - first], classes[folds.codes[row]], *best[ids[row - first]])
        for row in doubtful
    ]
    return doubts, best, ranks


def _find_doubts(learner, data, seen, changed):
    """Return the same for lists of names, rows or numbers.

    Only items of the mask `seen` are compared.
    """
    n, names, ranks = len(data.labels), data.classes, {}
    if seen.sum() < 2:
        return [], {}, {}
    predicted = predict_held_out(learner, n)[seen]
    y = learner.y_labeled_[-n:][seen]
    if y.ndim == 1:
        rows, sizes = find_suspicious_numbers(predicted, y)
        best = predicted.tolist()
    else:
        rows, columns = find_suspicious_rows(predicted, y)
        p = predicted[rows, columns]
        sizes, best = np.maximum(p, 1 - p), (predicted > 0.5).astype(int).tolist()
        if names is not None:
            best = [[names[j] for j in np.flatnonzero(row)] for row in best]
            columns = dict(zip(names, predicted.T.tolist(), strict=False))
            ranks = {x: columns[x] for x in changed if x in columns}
    answers = list(compress(data.labels.items(), seen))
    ids = [id for id, _ in answers]
    ranks = {key_of(x): dict(zip(ids, p, strict=True)) for x, p in ranks.items()}
    doubts = [
        (*answers[row], best[row], size)
        for row, size in zip(rows.tolist(), sizes.tolist(), strict=True)
    ]
    return doubts, {id: (x, None) for id, x in zip(ids, best, strict=True)}, ranks


def find_supervised(estimator):
    """Return what a SelfTraining trains on the labels, or None for other estimators.

    With 77 classes of Banking77 and 500 labels, 25 of them wrong, it finds as many of
    them as the SelfTraining does, in a fifteenth of the time. Descriptions stay.
    """
    if has_descriptions(estimator):
        last = find_supervised(estimator.estimator)
        return last and clone(estimator).set_params(estimator=last)
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
        self.n_labels = self.model = self._renamed = None
        self._quick, self._rows, self._error = {}, [], ""
        self._predicted, self._ranks = {}, {}

    @property
    def is_behind(self):
        """Whether there is a model whose doubtful answers are not listed.

        The lists have the names of the classes when they were made.
        """
        model, names = self._core.models.newest().learner, self._core.state.renamed
        is_listed = model is self.model and names == self._renamed
        return model is not None and not is_listed

    def find(self):
        """Find the doubtful answers for the newest model; takes seconds."""
        model, names = self._core.models.newest().learner, self._core.state.renamed
        lists, error, n_labels = ([], {}, {}), "", len(self._core.state.answers)
        try:
            lists = find_doubtful(self._core)
        except Exception as exc:  # shown to who asks for the list
            error = f"No answers can be checked: {exc}"
        rows, self._predicted, self._ranks = lists
        self._rows, self._error, self.n_labels = rows[:_MOST_DOUBTS], error, n_labels
        self.model, self._renamed = model, names

    def predict(self, id):
        """Return what models without the answer predict, as `show` does, or None."""
        return (one := self._predicted.get(id)) and self.show(*one)

    def show(self, label, size):
        """Return label, probability and best classes, as `predict_labels` does."""
        top = [[label, size]] if self._core.target == "single-label" else []
        return label, None if self._core.target == "regression" else size, top

    def rank(self, ids, name):
        """Return answered ids by what a change of a class may change, and two numbers.

        First come those that a model gives or takes the class, the most likely first;
        then items of the audit that have the labels of these, as nothing is predicted
        for them; and then the others. The numbers are those of the first two. None if
        no model can tell.
        """
        if (shares := self._ranks.get(key_of(name))) is None:
            return None
        answers, said = self._core.state.answers, self._predicted
        labels = {id: answers[id].label for id in ids}
        blind = dict(zip(ids, self._core.queue.find_blind(ids), strict=True))
        has = {id: name in list_classes([labels[id]]) for id in ids}
        told = [id for id in ids if id in said and not blind[id]]
        told.sort(key=lambda id: -abs(shares[id] - has[id]))
        likely = [id for id in told if (name in list_classes([said[id][0]])) != has[id]]
        old = {key_of(labels[id]) for id in likely}
        hidden = [id for id in ids if blind[id] and key_of(labels[id]) in old]
        order = dict.fromkeys([*likely, *hidden, *told, *ids])
        return list(order), len(likely), len(hidden)

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
