"""The estimates of a session while people label, in words."""

from dataclasses import replace

from .._utils._labels import key_of
from ..estimation import MeanEstimate, measure_agreement
from ..stopping import AuditGoal
from ._evidence import (
    MIN_AUDIT,
    MIN_LABELS,
    Estimate,
    assess,
    find_prevalence,
    minutes_left,
)

_PLANNED = "shares:5"  # what is planned for without a goal
_WANTED_PER_CLASS = 10  # labels; so many are also wanted before gains are estimated
_PACE = 5  # answers of a person that tell the pace


class Quality:
    """The estimates of a session so far, in sentences.

    `n_wanted` is the number of labels to reach, and `until` a goal as in `Desk`.
    `doubts` are found before an estimate begins. `find_widest(goal, shares)` returns
    the estimate that a goal is about. `shares` are those of the classes in the pool,
    with their intervals, by the key of a class.
    """

    def __init__(self, core, doubts, n_wanted, until, find_widest):
        self._core, self._doubts, self._n_wanted = core, doubts, n_wanted
        self._find_widest = find_widest
        self._has_goal, self._widest = until is not None, None
        self._goal = AuditGoal(_PLANNED if until is None else until).start()
        self._goal.check_class(core.state.classes)
        is_new = core.state.random_only is None and core.queue.audit_every
        if is_new and self._has_goal and until.startswith("shares"):
            core.queue.draw_at_random(True)
        self._n_begun = -1  # labels when the last estimate began
        self._fault = ""  # why the goal cannot be reached, or the last estimate failed
        self._estimate, self._classes, self.shares = Estimate(0), {}, {}
        self._curve = []

    def is_due(self, n_labels):
        """Whether there are enough labels for another estimate, and time for it."""
        if self._core.target == "regression" and not self._has_goal:
            return False
        is_idle = self._core.models.encoded == 1 and not self._doubts.is_behind
        is_new = n_labels - self._n_begun >= max(10, n_labels // 20)
        return is_idle and is_new and n_labels >= MIN_LABELS

    def compute(self, n_labels):
        """Estimate anew; takes seconds."""
        self._n_begun, self._fault = n_labels, ""
        try:
            self._compute(n_labels)
        except Exception as exc:  # such as a goal for a class that the session lacks
            self._fault = str(exc)

    def _compute(self, n_labels):
        core, estimate, shares = self._core, Estimate(n_labels), None
        n_sample = len(core.queue.choose_sample(blind=True)[0])
        if core.target == "single-label":
            estimate, self._classes, shares = assess(core, self._n_wanted)
        elif core.target == "multi-label" and n_sample >= MIN_AUDIT:
            shares = find_prevalence(core, None, 0.95, blind=True)
        if shares is not None:
            self.shares = {
                key_of(name): [share.value, *share.interval]
                for (_, name), share in shares.estimates.items()
                if share.interval
            }
        if estimate.n_audited:
            accuracy = estimate.accuracy, estimate.accuracy_interval
            self._curve.append([estimate.n_labels, *accuracy])
        try:
            if self._has_goal or shares is not None:
                widest = self._find_widest(self._goal, shares)
                if widest is not None and widest.value is not None:
                    self._widest = widest, n_sample, n_labels
        finally:  # last, as its number of labels says that the rest is there
            self._estimate = estimate

    @property
    def n_labels(self):
        """Number of labels of the last estimate, 0 before the first."""
        return self._estimate.n_labels

    def line(self, n_labels, annotator):
        """Return a line for the front end of an annotator; it can be blank."""
        accuracy = ""
        if self._estimate.n_audited:
            accuracy = self.say(n_labels)
        elif self._core.target == "single-label" and self._core.queue.audit_every:
            accuracy = self.explain(n_labels)
        goal = self._say_goal(n_labels) if self._has_goal else ""
        minutes = self._at_pace(n_labels, annotator).say_minutes()
        return "; ".join(filter(None, [accuracy, goal, minutes]))

    def _at_pace(self, n_labels, annotator):
        """Return the last estimate, with the minutes at the annotator's own pace."""
        answers = self._core.state.list_answers()
        own = [one.seconds for one in answers if one.annotator == annotator]
        if self._estimate.minutes is None or len(own) - own.count(None) < _PACE:
            return self._estimate
        minutes = minutes_left(own, self._n_wanted - n_labels)
        return replace(self._estimate, minutes=minutes)

    def describe(self, state, forecast):
        """Return what `Desk.quality` does; `state` and `forecast` are of the desk."""
        estimate, has_audit = self._estimate, bool(self._estimate.n_audited)
        n_labels, described = state["n_labeled"], []
        for entry in state["classes"]:
            recall, precision = self._classes.get(key_of(entry["name"]), (None, None))
            missing = max(0, _WANTED_PER_CLASS - entry["count"])
            shares = {"recall": recall, "precision": precision, "missing": missing}
            shares |= {name: entry[name] for name in ("name", "count", "share")}
            described.append(shares)
        return {
            "sentence": self.say(n_labels),
            "accuracy": estimate.accuracy if has_audit else None,
            "interval": estimate.accuracy_interval if has_audit else None,
            "n_labels": estimate.n_labels,
            "n_audited": estimate.n_audited,
            "curve": self._curve,
            "gain": estimate.say_gain(),
            "goal": self._say_goal(n_labels),
            "why": "" if self.shares else self.explain(n_labels),
            "minutes": forecast(self._core.models.pace),
            "repeats": self._say_repeats(),
            "classes": described,
        }

    def _say_repeats(self):
        """Return how far people agree with themselves, in words, or ""."""
        with self._core.lock:
            both = {
                (id, again.annotator): {"first": one.label, "again": again.label}
                for id, answer in self._core.state.answers.items()
                for again in answer.repeats
                for one in answer.firsts
                if one.annotator == again.annotator
            }
        agreement = measure_agreement(both, target=self._core.target)
        return f"Texts that came again: {agreement}." if both else ""

    def _say_goal(self, n_labels):
        """Return how many more answers the goal needs, in words, or ""."""
        queue = self._core.queue
        if self._fault or not queue.audit_every:
            return self._fault if self._has_goal else ""
        if self._core.target == "regression" and not self._has_goal:
            return ""  # shares are of classes
        if not len(queue.draws.order):
            return "nothing is left to label"
        if self._widest is not None:
            widest, n_sample, n_before = self._widest
            n_since = n_labels - n_before
            return self._goal.describe(widest, n_sample, queue.audit_every, n_since)
        n_sample = len(queue.choose_sample(blind=True)[0])
        unknown = MeanEstimate(None, None, n_sample, len(queue.draws.order))
        return self._goal.describe(unknown, n_sample, queue.audit_every)

    def explain(self, n_labels):
        """Return why there is no estimate yet, without a capital and a full stop."""
        core = self._core
        if not core.queue.audit_every:
            return "no text of this session is drawn at random"
        if not len(core.queue.draws.order):
            return "no text is left to draw at random"
        sample, _ = core.queue.choose_sample(blind=True)
        if (n := len(sample)) < MIN_AUDIT:
            with core.lock:
                taught = core.queue.draws.list_taught(core.state.audited)
                audited = core.state.audited.keys() - {*taught}
                answers = [core.state.answers.get(id) for id in audited]
            n_blind = sum(bool(one and one.blind) for one in answers)
            # The sample ends at the first text of the order that has no answer.
            waits = ", with those that wait in another window" * (n_blind > n)
            missing = max(1, MIN_AUDIT - max(n, n_blind))
            texts = "text" if missing == 1 else "texts"
            return f"estimate after {missing} more random {texts}{waits}"
        if n_labels < MIN_LABELS:
            return f"estimate after {MIN_LABELS - n_labels} more labels"
        if core.models.encoded < 1:
            share = f"{100 * core.models.encoded:.0f} %"
            return f"estimate after all texts are read, {share} so far"
        if len(set(map(key_of, core.state.labels().values()))) < 2:
            return "estimate after labels of a second class"
        return self._fault or "the estimate is being computed"

    def say(self, n_labels):
        """Return a sentence about the pool."""
        if self._core.target != "single-label":
            return "The accuracy is estimated for one class per text only."
        if self._estimate.n_audited:
            n_before = self._estimate.n_labels
            when = f" at {n_before} labels" if n_before < n_labels else ""
            return f"{self._estimate.say_accuracy()}{when}"
        return f"Too early to tell: {self.explain(n_labels)}."
