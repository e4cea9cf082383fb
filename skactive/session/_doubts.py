"""Doubtful answers, and the agreement of answers with suggestions."""

from scipy.stats import binomtest

from .._utils._labels import key_of

_MOST = 100


class Doubts:
    """The answers that models without them contradict, of the last model.

    `n_labels` is the number of labels that they were found among, None before the first
    list.
    """

    def __init__(self, session):
        self._session = session
        self.n_labels = None
        self._rows, self._error, self._model = [], "", None
        self._confirmed = {}  # id -> label that was given again

    @property
    def is_behind(self):
        """Whether there is a model whose doubtful answers are not listed."""
        model = self._session.models.newest().learner
        return model is not None and model is not self._model

    def find(self):
        """Find the doubtful answers for the newest model; takes seconds."""
        model, n_labels = (
            self._session.models.newest().learner,
            len(self._session.labels),
        )
        error, rows = "", []
        try:
            rows = self._session.suspicious(_MOST)
        except Exception as exc:  # shown to who asks for the list
            error = f"No answers can be checked: {exc}"
        self._rows, self._error, self.n_labels = rows, error, n_labels
        self._model = model

    def list_rows(self):
        """Return rows of `LabelingSession.suspicious` that are still doubtful."""
        if self._error:
            raise TypeError(self._error)
        labels = self._session.labels
        return [row for row in self._rows if self._is_doubtful(row, labels)]

    def _is_doubtful(self, row, labels):
        id, label, predicted, _ = row
        known = key_of(labels[id]) if id in labels else None
        is_seen = known in (key_of(predicted), self._confirmed.get(id))
        return known == key_of(label) and not is_seen

    def confirm(self, id, label):
        """Do not list an answer again, since the same label was given again."""
        if any(id == row[0] for row in self._rows):
            self._confirmed[id] = key_of(label)


def compare_suggestions(labels, suggestions):
    """Return how often labels agree with suggestions, with a 95 % interval; or None."""
    both = [id for id in labels if id in suggestions]
    if not both:
        return None
    agreed = sum(key_of(labels[id]) == key_of(suggestions[id]) for id in both)
    low, high = binomtest(agreed, len(both)).proportion_ci(method="wilson")
    return {"compared": len(both), "agreed": agreed, "low": low, "high": high}
