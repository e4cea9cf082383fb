"""Rules that stop at a budget, a goal or when no score rises; names of all rules."""

import math
import re
import time
from collections.abc import Callable
from difflib import get_close_matches
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Self

from .._utils._plugins import make
from .._utils._sklearn import Interval
from ..estimation import plan_labels
from ._base import StoppingRule
from ._cost import CostRule
from ._predictions import (
    ClassificationChange,
    KappaAverage,
    OverallUncertainty,
    SelectedAccuracy,
)


class LabelBudget(StoppingRule):
    """Stop when there are at least `n_labels` labels, including the initial ones.

    Batches are never cut, so the last one may exceed the budget.

    Parameters
    ----------
    n_labels : int
        Number of labels.

    Examples
    --------
    >>> from skactive import ActiveLearner, simulate
    >>> from skactive.stopping import LabelBudget
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(LogisticRegression(max_iter=500), batch_size=10)
    >>> rule = LabelBudget(35)
    >>> run = simulate(learner, X, y, n_initial=10, n_rounds=9, stopping=rule)
    >>> print(len(run.queried), "labels")
    40 labels
    """

    _parameter_constraints = {"n_labels": [Interval(Integral, 1, None, closed="left")]}
    requires = frozenset({"labels"})

    def __init__(self, n_labels: int):
        self.n_labels = n_labels

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compare the number of labels."""
        return bool(run.rounds) and run.rounds[-1]["n_labeled"] >= self.n_labels


class RoundBudget(StoppingRule):
    """Stop after `n_rounds` rounds. The initial labels are not a round.

    Parameters
    ----------
    n_rounds : int
        Number of rounds.

    Examples
    --------
    >>> from skactive import ActiveLearner, simulate
    >>> from skactive.stopping import RoundBudget
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(LogisticRegression(max_iter=500), batch_size=10)
    >>> run = simulate(learner, X, y, n_initial=10, n_rounds=9, stopping=RoundBudget(2))
    >>> run.n_labeled.tolist()
    [10, 20, 30]
    """

    _parameter_constraints = {"n_rounds": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, n_rounds: int):
        self.n_rounds = n_rounds

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compare the number of rounds."""
        return len(run.rounds) - 1 >= self.n_rounds


class TimeBudget(StoppingRule):
    """Stop when a number of seconds has passed since `start`.

    Rounds are never cut, so the last one may exceed the budget. The time starts again
    if the loop is resumed in another process.

    Parameters
    ----------
    seconds : float
        Number of seconds.
    clock : callable or None, default=None
        Function that returns the current time in seconds. Defaults to
        :func:`time.monotonic`, which does not depend on the system time.

    Attributes
    ----------
    started_ : float
        The time at `start`.

    Examples
    --------
    A clock that is set by hand shows what an hour does:

    >>> from skactive.simulation import Run
    >>> from skactive.stopping import TimeBudget
    >>> now = [0.0]
    >>> rule = TimeBudget(3600, clock=lambda: now[0]).start()
    >>> for minutes in [30, 59, 61]:
    ...     now[0] = minutes * 60
    ...     stop = rule.check(Run([{"queried": [0]}]), None, None)
    ...     print(minutes, "minutes:", "stop" if stop else "go on")
    30 minutes: go on
    59 minutes: go on
    61 minutes: stop
    """

    _parameter_constraints = {
        "seconds": [Interval(Real, 0, None, closed="neither")],
        "clock": [callable, None],
    }

    def __init__(self, seconds: float, *, clock: Callable[[], float] | None = None):
        self.seconds = seconds
        self.clock = clock

    def start(self) -> Self:
        """Reset the rule and read the clock."""
        super().start()
        self.started_ = self._now()
        return self

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compare the seconds since `start`."""
        return self._now() - self.started_ >= self.seconds

    def _now(self):
        return time.monotonic() if self.clock is None else self.clock()


class Plateau(StoppingRule):
    """Stop when a score has not improved for several rounds.

    The rule needs labeled test data. Without test data, use :class:`KappaAverage`.
    Higher scores are better, as everywhere in scikit-learn.

    Parameters
    ----------
    scoring : str or None, default=None
        One of the run's `score_names`. Defaults to the primary metric.
    patience : int, default=3
        Number of consecutive rounds without an improvement after which to stop.
    min_delta : float, default=0.0
        Minimum improvement over the best score that counts.

    Notes
    -----
    Rounds without a score do not count.

    References
    ----------
    L. Prechelt, "Early stopping - but when?", Neural Networks: Tricks of the Trade,
    1998.

    Examples
    --------
    The best score is the second one. After which scores does the rule stop?

    >>> from skactive.simulation import Run
    >>> from skactive.stopping import Plateau
    >>> scores = [0.6, 0.8, 0.79, 0.8, 0.9]
    >>> rounds = [{"queried": [i], "scores": {"f1": s}} for i, s in enumerate(scores)]
    >>> rule = Plateau(patience=2)
    >>> [n for n in range(1, 6) if rule.check(Run(rounds[:n]), None, None)]
    [4]
    """

    _parameter_constraints = {
        "scoring": [str, None],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "min_delta": [Interval(Real, 0, None, closed="left")],
    }
    requires = frozenset({"scores"})

    def __init__(
        self,
        scoring: str | None = None,
        *,
        patience: int = 3,
        min_delta: float = 0.0,
    ):
        self.scoring = scoring
        self.patience = patience
        self.min_delta = min_delta

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Count the rounds since the last improvement."""
        if run.rounds and not run.score_names:
            raise ValueError(
                "Plateau needs scores, and the run holds none. Give the loop test data "
                "(X_test and y_test), or stop by KappaAverage, which needs no labels."
            )
        best, n_without = -math.inf, 0
        for score in run.curve(self.scoring):
            if math.isnan(score):
                continue
            if score > best + self.min_delta:
                best, n_without = score, 0
            else:
                n_without += 1
        return n_without >= self.patience


class AuditGoal(StoppingRule):
    """Stop when an estimate from the audit of a session is exact enough.

    Parameters
    ----------
    until : str
        What to estimate, and how many points its interval of 95 % may have to both
        sides: "shares:3" (the share of every class), "accuracy:5", "f1:5" (the macro F1
        score) or "f1:NAME:5" (of a class).

    Attributes
    ----------
    half_widths_ : list of float
        The largest half width after each check, infinite if there is no interval yet.

    See Also
    --------
    skactive.LabelingSession.prevalence : The intervals of shares.
    skactive.LabelingSession.quality : The intervals of scores.

    Notes
    -----
    The rule needs the run of a :class:`skactive.LabelingSession` with an audit. Each
    check trains five or six models and predicts the pool. Only answers before which
    nothing of a machine was shown count.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive import ActiveLearner, LabelingSession
    >>> from skactive.stopping import AuditGoal
    >>> model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    >>> learner = ActiveLearner(model, batch_size=20, random_state=0)
    >>> texts = [f"{'good' if i % 3 else 'bad'} film {i}" for i in range(300)]
    >>> rule = AuditGoal("shares:12")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LabelingSession(learner, texts, folder, audit_every=2) as session:
    ...         while not rule.check(session.run, session.learner, texts):
    ...             ids = session.ask().ids
    ...             session.tell(ids, ["no" if i % 3 == 0 else "yes" for i in ids])
    ...         half_width = session.prevalence().estimates[None, "no"].half_width
    >>> half_width <= 0.12
    True
    """

    _parameter_constraints = {"until": [str]}
    requires = frozenset({"labels", "model", "pool"})

    def __init__(self, until: str):
        self.until = until

    def start(self) -> Self:
        """Check the goal and reset the rule for a new loop."""
        super().start()
        _read_goal(self.until)
        self.half_widths_: list[float] = []
        return self

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compare the half width of the widest interval."""
        if run.session is None:
            raise TypeError(
                "AuditGoal needs the run of a LabelingSession, session.run, got one "
                "of a simulation, which has no audit."
            )
        widest = self.find_widest(run.session)
        self.half_widths_.append(math.inf if widest is None else widest.half_width)
        return self.half_widths_[-1] <= _read_goal(self.until)[2]

    def find_widest(self, session: Any, prevalence: Any = None) -> Any:
        """Return the estimate with the widest interval.

        Parameters
        ----------
        session : skactive.LabelingSession
            A session with an audit.
        prevalence : skactive.estimation.Prevalence, default=None
            Its shares, if they are known. None computes those that are needed.

        Returns
        -------
        estimate : skactive.estimation.MeanEstimate or None
            None if there is no estimate yet.

        Raises
        ------
        ValueError
            If the session has no audit, labels numbers, or lacks the class.
        """
        what, label, _ = _read_goal(self.until)
        if session.target == "regression":
            raise ValueError(
                "AuditGoal is for shares and scores of classes, got a session of "
                "numbers."
            )
        if not session.has_audit:
            raise ValueError(
                "AuditGoal needs a session with an audit, a random sample of the pool. "
                "Open it with audit_every=10, for one in ten."
            )
        self.check_class(session.classes)
        is_single = len(set(map(str, session.labels.values()))) < 2
        if not session.audited or (what != "shares" and is_single):
            return None
        if what == "shares":
            shares = session.prevalence() if prevalence is None else prevalence
            return max(shares.estimates.values(), key=lambda share: share.half_width)
        quality = session.quality()
        if label is None:
            return quality.accuracy if what == "accuracy" else quality.macro_f1
        scores = {
            str(name): class_quality.f1
            for name, class_quality in quality.classes.items()
        }
        return scores.get(label)

    def check_class(self, classes: Any) -> None:
        """Raise a ValueError for a goal about another class than the allowed ones.

        Parameters
        ----------
        classes : list or None
            The allowed classes; None allows any.
        """
        label, names = _read_goal(self.until)[1], set(map(str, classes or ()))
        if label is not None and names and label not in names:
            raise ValueError(
                "'until' must name a class of the session, one of "
                f"{sorted(names)}, got {label!r}."
            )

    def describe(
        self, estimate: Any, n_audited: int, audit_every: int = 1, n_answers: int = 0
    ) -> str:
        """Return a sentence on how far the goal is.

        Parameters
        ----------
        estimate : skactive.estimation.MeanEstimate or None
            What `find_widest` returned; with a pool, but no value, it is unknown.
        n_audited : int
            Number of audited items.
        audit_every : int, default=1
            Every how many items one is drawn at random.
        n_answers : int, default=0
            Number of answers since the estimate.

        Returns
        -------
        sentence : str
            About how many more answers the goal needs. While shares or the accuracy are
            unknown, at most how many.
        """
        what, label, wanted = _read_goal(self.until)
        name = {"shares": "each share", "f1": "macro F1"}.get(what, what)
        name = name if label is None else f"F1 of {label}"
        goal = f"{name} within {100 * wanted:g} points"
        if estimate is None or (estimate.value is None and what == "f1"):
            return f"goal: {goal}; too few texts drawn at random to tell"
        if estimate.half_width <= wanted:
            return f"goal reached: {goal}"
        if estimate.value is None:
            needed, most = _plan(wanted, n_pool=estimate.n_pool), "at most "
        else:
            # The variance of n labels from a finite pool falls as 1/n - least.
            most, least = "", 1 / estimate.n_pool
            inverse = (1 / n_audited - least) * (wanted / estimate.half_width) ** 2
            needed = math.ceil(1 / (inverse + least))
        more = min((needed - n_audited) * audit_every, estimate.n_pool - n_audited)
        more = max(1, more - n_answers)
        every = f", one in {audit_every} drawn at random" * (audit_every > 1)
        return f"{most}about {more:,} more answers{every}: {goal}"


_plan = lru_cache(plan_labels)  # it takes milliseconds, for each text that is shown


def _read_goal(until):
    """Return what to estimate, the name of a class or None, and the half width."""
    pattern = r"(shares|accuracy|f1)(?::(.+))?:(\d+(?:\.\d+)?)"
    match = re.fullmatch(pattern, until, re.S)
    what, label, points = match.groups() if match else ("", None, "0")
    if not 0 < float(points) < 50 or (label is not None and what != "f1"):
        raise ValueError(
            "'until' must be 'shares:3', 'accuracy:5', 'f1:5' or 'f1:NAME:5', with "
            f"the points to both sides, below 50; got {until!r}."
        )
    return what, label, float(points) / 100


RULES: dict[str, type[StoppingRule]] = {
    "audit_goal": AuditGoal,
    "classification_change": ClassificationChange,
    "cost_rule": CostRule,
    "kappa_average": KappaAverage,
    "label_budget": LabelBudget,
    "overall_uncertainty": OverallUncertainty,
    "plateau": Plateau,
    "round_budget": RoundBudget,
    "selected_accuracy": SelectedAccuracy,
    "time_budget": TimeBudget,
}


def get_stopping_rule(name: str) -> StoppingRule:
    """Return a new stopping rule by its name.

    Parameters
    ----------
    name : str
        The name of a rule without required parameters, such as "kappa_average".

    Returns
    -------
    rule : StoppingRule

    Raises
    ------
    TypeError
        If `name` is not a str, or the rule has a required parameter.
    ValueError
        If the name is unknown.

    Examples
    --------
    >>> from skactive.stopping import get_stopping_rule
    >>> get_stopping_rule("plateau").patience
    3
    """
    if not isinstance(name, str):
        raise TypeError(
            f"'name' must be a str, got {name!r}. A stopping rule itself needs no "
            "name: pass it as stopping=."
        )
    if name not in RULES:
        close = get_close_matches(name.lower(), RULES, n=3)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise ValueError(
            f"unknown stopping rule {name!r}.{hint} The names are: {', '.join(RULES)}."
        )
    return make("stopping rule", name, RULES[name], {})
