"""What a desk keeps up to date: how good the model is, and which answers are doubtful.

It is computed in the background.
"""

from collections import Counter

from .._utils._labels import key_of
from ..estimation import plan_labels
from ..stopping import describe_goal
from ._evidence import assess
from ._insights import MIN_AUDIT, MIN_LABELS, Estimate, find_doubtful

_MOST_DOUBTS = 100
_HALF_WIDTH = 0.05  # of the intervals of shares that are planned for
_WANTED_PER_CLASS = 10  # labels; so many are also wanted before gains are estimated


class Quality:
    """The estimates of a session so far, in sentences.

    `n_wanted` is the number of labels to reach; `until` is that of an AuditGoal, and
    `find_widest()` returns the estimate that it is about.
    """

    def __init__(self, core, n_wanted, until, find_widest):
        self._core, self._n_wanted = core, n_wanted
        self._until, self._find_widest = until, find_widest
        self._distance = ""  # to the goal, in words
        self._n_begun = -1  # labels when the last estimate began
        self._estimate, self._classes = Estimate(0), {}
        self._curve = []

    def is_due(self, n_labels):
        """Whether there are enough labels for another estimate."""
        is_single = self._core.target == "single-label"
        if not (is_single or self._until) or n_labels < MIN_LABELS:
            return False
        return n_labels - self._n_begun >= max(10, n_labels // 20)

    def compute(self, n_labels):
        """Estimate anew; takes seconds."""
        self._n_begun = n_labels
        if self._until is not None:
            sample, _ = self._core.queue.choose_sample(blind=True)
            try:
                widest = self._find_widest()
                self._distance = describe_goal(self._until, widest, len(sample))
            except ValueError as exc:  # such as a class that the session lacks
                self._distance = str(exc)
        if self._core.target != "single-label":
            self._estimate = Estimate(n_labels)
            return
        self._estimate, self._classes = assess(self._core, self._n_wanted)
        if self._estimate.n_audited:
            accuracy = self._estimate.accuracy, self._estimate.accuracy_interval
            self._curve.append([self._estimate.n_labels, *accuracy])

    @property
    def n_labels(self):
        """Number of labels of the last estimate, 0 before the first."""
        return self._estimate.n_labels

    def line(self, n_labels):
        """Return a line for a front end that has `n_labels`; it can be blank."""
        accuracy = self._say(n_labels) if self._estimate.n_audited else ""
        parts = accuracy, self._distance, self._estimate.say_minutes()
        return "; ".join(filter(None, parts))

    def describe(self, classes, n_labels):
        """Return what `Desk.quality` does; `classes` are those of its state."""
        estimate, has_audit = self._estimate, bool(self._estimate.n_audited)
        described = []
        for entry in classes:
            recall, precision = self._classes.get(key_of(entry["name"]), (None, None))
            missing = max(0, _WANTED_PER_CLASS - entry["count"])
            name, count = entry["name"], entry["count"]
            shares = {"recall": recall, "precision": precision}
            described.append(
                {"name": name, "count": count, **shares, "missing": missing}
            )
        return {
            "sentence": self._say(n_labels),
            "accuracy": estimate.accuracy if has_audit else None,
            "interval": estimate.accuracy_interval if has_audit else None,
            "n_labels": estimate.n_labels,
            "n_audited": estimate.n_audited,
            "curve": self._curve,
            "gain": estimate.say_gain() + self._plan(),
            "classes": described,
        }

    def _plan(self):
        """Return how many more labels of the audit make the shares exact enough."""
        if self._until is not None:
            return self._distance and f"; {self._distance}"
        queue = self._core.queue
        sample, _ = queue.choose_sample(blind=True)
        if len(sample) < MIN_AUDIT or self._core.target != "single-label":
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
        if self._core.target != "single-label":
            return "The accuracy is estimated for one class per text only."
        if self._estimate.n_audited:
            n_before = self._estimate.n_labels
            when = f" at {n_before} labels" if n_before < n_labels else ""
            return f"{self._estimate.say_accuracy()}{when}"
        return (
            f"Too early to tell: this needs {MIN_LABELS} labels, {MIN_AUDIT} of them "
            f"of texts drawn at random; there are {len(self._core.queue.audited())}."
        )


class Doubts:
    """The answers that models without them contradict, of the last model.

    `n_labels` is the number of labels that they were found among, None before the first
    list.
    """

    def __init__(self, core):
        self._core = core
        self.n_labels = self._model = None
        self._rows, self._error = [], ""

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

    def list_rows(self):
        """Return rows of `LabelingSession.suspicious` that are still doubtful.

        Nothing is predicted for what the audit can draw.
        """
        if self._error:
            raise TypeError(self._error)
        answers, queue = self._core.state.answers, self._core.queue
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
