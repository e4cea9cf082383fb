"""The base class of stopping rules, rules made of rules, and rules as callbacks."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.metrics import check_scoring

from .._utils._bases import BaseComposition, BaseEstimator
from ._run import Run


class StoppingRule(BaseEstimator, ABC):
    """Base class of rules that decide when to stop labeling.

    A rule is a scikit-learn object: `__init__` only stores parameters, so `clone` and
    `set_params` work on it. State that is kept between rounds has a name with a
    trailing underscore and is reset by `start`. `a | b` stops as soon as one of two
    rules does, `a & b` when both do after the same round. The parameters of a combined
    rule are those of its parts, such as `label_budget__n_labels`.

    A subclass defines `decide(run, learner, X)`, and extends `start()` if it keeps
    state.

    Attributes
    ----------
    requires : frozenset of str
        What the rule uses: "model" (predictions of the learner), "pool" (items of
        `X`), "labels" (queried items and their labels), "scores" (of the run).

    Examples
    --------
    >>> from skactive import ActiveLearner, simulate
    >>> from skactive.stopping import StoppingRule
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> class GoodEnough(StoppingRule):
    ...     "Stop at a score of 0.9."
    ...
    ...     requires = frozenset({"scores"})
    ...
    ...     def decide(self, run, learner, X):
    ...         return run.scores[-1] >= 0.9
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(LogisticRegression(max_iter=500), random_state=0)
    >>> run = simulate(
    ...     learner, X[::2], y[::2], n_initial=10, n_rounds=6, stopping=GoodEnough(),
    ...     X_test=X[1::2], y_test=y[1::2],
    ... )
    >>> print(f"stopped with {len(run.queried)} of {len(y[::2])} labels")
    stopped with 20 of 75 labels

    Whatever comes first, 30 labels or 10 minutes:

    >>> from skactive.stopping import LabelBudget, TimeBudget
    >>> rule = LabelBudget(30) | TimeBudget(600)
    >>> run = simulate(learner, X, y, n_rounds=10, n_initial=10, stopping=rule)
    >>> print(f"{len(run.queried)} labels, by {run.stopped_by}")
    30 labels, by LabelBudget(n_labels=30)
    """

    _parameter_constraints: dict = {}
    requires: frozenset[str] = frozenset()

    def start(self) -> Self:
        """Check the parameters and reset the rule for a new loop.

        Returns
        -------
        self : StoppingRule
        """
        self._validate_params()
        self.n_checks_ = 0
        return self

    def check(self, run: Any, learner: Any, X: Any) -> bool:
        """Return whether to stop now. Call it once after each round.

        A rule that was not started starts itself.

        Parameters
        ----------
        run : Run
            The rounds so far, including the last one. `run.info["seed"]`, if present,
            seeds the random choices of a rule.
        learner : ActiveLearner
            The learner, trained on the labels of all these rounds. The labels of the
            last round are the last of its `y_labeled_`.
        X : container of n items
            The pool that the positions in `run` refer to; the same in each round.

        Returns
        -------
        stop : bool
        """
        if not isinstance(run, Run):
            raise TypeError(
                f"'run' must be a Run with the rounds so far, got a "
                f"{type(run).__name__}."
            )
        if not hasattr(self, "n_checks_"):
            self.start()
        self.n_checks_ += 1
        return as_answer(self.decide(run, learner, X), self)

    @abstractmethod
    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Return whether to stop now; called by `check`.

        Parameters
        ----------
        run, learner, X
            The same as in `check`.

        Returns
        -------
        stop : bool
        """

    def reason(self) -> str:
        """Return in one line which rule stopped the loop.

        Returns
        -------
        reason : str
            The rule. For a combined rule, the parts that decided to stop.
        """
        return " ".join(repr(self).split())

    def __or__(self, other):
        return AnyOf._of(self, other)

    def __and__(self, other):
        return AllOf._of(self, other)


def should_stop(rule, run, learner, X):
    """Return the answer of any object with a method `check`."""
    return as_answer(rule.check(run, learner, X), rule, "check")


def as_answer(answer, rule, method="decide"):
    """Return the answer of a rule as `bool`, or raise a TypeError."""
    if isinstance(answer, np.ndarray) and answer.ndim == 0:
        answer = answer[()]
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise TypeError(
        f"{type(rule).__name__}.{method} must return True or False, got {answer!r}. "
        "Return True if the loop must stop, otherwise False."
    )


class _Combined(BaseComposition, StoppingRule):
    """Base class of rules that combine other rules.

    `rules` are tuples of (str, rule); the parameters of a rule are `name__parameter`.
    After `start`, `rules_` are the clones that are checked, and `agreed_` are the names
    of those that decided to stop at the last check.
    """

    _parameter_constraints = {"rules": [list]}
    _sign = ""
    _enough: Any

    def __init__(self, rules: list[tuple[str, Any]]):
        self.rules = rules

    @property
    def requires(self) -> frozenset[str]:  # type: ignore[override]
        """Everything that one of the rules uses."""
        parts: list[frozenset[str]] = [
            getattr(rule, "requires", frozenset()) for _, rule in self.rules
        ]
        return frozenset().union(*parts)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters, and those of the rules."""
        return self._get_params("rules", deep=deep)

    def set_params(self, **params) -> Self:
        """Set parameters, rules by their names, or parameters of rules."""
        self._set_params("rules", **params)
        return self

    def start(self) -> Self:
        """Check the parameters and start a clone of each rule."""
        super().start()
        self._check_rules()
        self.rules_ = [(name, clone(rule, safe=False)) for name, rule in self.rules]
        self.agreed_: list[str] = []
        for _, rule in self.rules_:
            rule.start()
        return self

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Check every rule, as each may keep state between rounds."""
        self.agreed_ = [
            name for name, rule in self.rules_ if should_stop(rule, run, learner, X)
        ]
        return self._enough(len(self.agreed_))

    def reason(self) -> str:
        """Return in one line which rules stopped the loop."""
        if not getattr(self, "agreed_", None):
            return super().reason()
        agreed = [rule for name, rule in self.rules_ if name in self.agreed_]
        reasons = [getattr(rule, "reason", rule.__repr__)() for rule in agreed]
        return self._sign.join(reasons)

    def _check_rules(self):
        rules = self.rules
        good = [
            isinstance(item, tuple)
            and len(item) == 2
            and isinstance(item[0], str)
            and is_rule(item[1])
            for item in rules
        ]
        if not rules or not all(good):
            got = rules[good.index(False)] if rules else rules
            raise TypeError(
                "'rules' must be a non-empty list of (name, rule) tuples, such as "
                f"[('budget', LabelBudget(500))], got {got!r}. Write a | b or a & b."
            )
        self._validate_names([name for name, _ in rules])

    @classmethod
    def _of(cls, first, second):
        """Join two rules; a rule of this class contributes its parts."""
        parts = []
        for rule in (first, second):
            if not is_rule(rule):
                return NotImplemented
            is_kind = type(rule) is cls
            parts += rule.rules if is_kind else [(_snake_case(type(rule)), rule)]
        named = {}
        for wanted, rule in parts:
            name, number = wanted, 1
            while name in named:
                number += 1
                name = f"{wanted}_{number}"
            named[name] = rule
        return cls(list(named.items()))


class AnyOf(_Combined):
    """Stop as soon as one of several rules does: `a | b`."""

    _sign = " | "

    @staticmethod
    def _enough(n):
        return n > 0


class AllOf(_Combined):
    """Stop when several rules do after the same round: `a & b`."""

    _sign = " & "

    def _enough(self, n):
        return n == len(self.rules_)


def is_rule(rule):
    """Whether an object has the methods of a rule."""
    return not isinstance(rule, type) and all(
        callable(getattr(rule, method, None)) for method in ("start", "check")
    )


def _snake_case(kind):
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", kind.__name__)
    return "_".join(words).lower()


def as_callback(
    rule: Any,
    X: Any = None,
    y: "ArrayLike | None" = None,
    *,
    scoring: str | Callable | None = None,
) -> Any:
    """Return a scikit-learn callback that checks a stopping rule.

    The callback is for estimators whose `fit` reports its steps (scikit-learn 1.9 and
    later). Each step counts as a round, and the rule is checked after it. The
    estimator decides whether that ends its training: those of scikit-learn 1.9 report
    their steps and ignore the answer.

    Parameters
    ----------
    rule : StoppingRule
        The rule; a clone of it is started for each `fit`. Rules that use queried
        labels, such as :class:`LabelBudget`, are refused, as training has no queries.
    X : container of n items or None, default=None
        Validation data for scores and for rules that use predictions.
    y : array-like of shape (n,) or None, default=None
        Labels of `X`, for rules that need scores.
    scoring : str, callable or None, default=None
        The metric. Defaults to the estimator's own `score`.

    Returns
    -------
    callback : sklearn.callback.FitCallback
        For `estimator.set_callbacks(callback)`.

    Raises
    ------
    ImportError
        If scikit-learn has no callbacks.
    TypeError
        If `rule` is not a rule, or uses queried labels.
    ValueError
        If the rule needs `X` or `y` and they are missing.

    Examples
    --------
    >>> from skactive.stopping import Plateau, TimeBudget, as_callback
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> callback = as_callback(TimeBudget(60) | Plateau(), X, y)
    >>> model = LogisticRegression(max_iter=500).set_callbacks(callback).fit(X, y)
    >>> print(f"accuracy {model.score(X, y):.2f}")
    accuracy 0.97
    """
    if find_spec("sklearn.callback") is None:
        raise ImportError(
            "as_callback needs the callbacks of scikit-learn 1.9. Upgrade it with "
            "`pip install 'scikit-learn>=1.9'`."
        )
    if not is_rule(rule):
        raise TypeError(f"'rule' must be a stopping rule, got {rule!r}.")
    clone(rule, safe=False).start()  # reports invalid parameters before the training
    requires: frozenset[str] = getattr(rule, "requires", frozenset())
    if "labels" in requires:
        raise TypeError(
            f"{rule!r} uses the labels that a loop queries, and training queries "
            "none. Use RoundBudget (steps), TimeBudget, Plateau or KappaAverage."
        )
    if "pool" in requires and X is None:
        raise ValueError(f"'X' is None, and {rule!r} needs items to predict. Pass X.")
    if "scores" in requires and (X is None or y is None):
        raise ValueError(
            f"'X' and 'y' are needed by {rule!r}, which uses scores. Pass validation "
            "data."
        )
    return _RuleCallback(rule, X, y, scoring)


class _RuleCallback:
    """Follows scikit-learn's `FitCallback` protocol."""

    def __init__(self, rule, X, y, scoring):
        self.rule = rule
        self.X = X
        self.y = y
        self.scoring = scoring
        # One callback may be set on estimators that train at the same time.
        self._fits = {}

    def __getstate__(self):
        return {**self.__dict__, "_fits": {}}

    def setup(self, estimator, context):
        """Start a clone of the rule."""
        rule = clone(self.rule, safe=False)
        rule.start()
        scorer = None if self.y is None else check_scoring(estimator, self.scoring)
        self._fits[id(estimator)] = rule, scorer, Run([{"queried": []}])

    def teardown(self, estimator, context):
        """Forget the fit."""
        self._fits.pop(id(estimator), None)

    def on_fit_task_begin(self, estimator, context):
        """Do nothing."""

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        """Check the rule if this was a step of a loop."""
        is_step = (
            context.parent is not None
            and context.parent.sequential_subtasks
            and context.max_subtasks == 0
        )
        if not is_step or id(estimator) not in self._fits:
            return False
        rule, scorer, run = self._fits[id(estimator)]
        needs_model = {"model", "scores"} & getattr(rule, "requires", frozenset())
        if needs_model and fitted_estimator is None:
            return False
        scores = {}
        if scorer is not None and fitted_estimator is not None:
            scores = {"score": float(scorer(fitted_estimator, self.X, self.y))}
        run.append({"queried": [], "scores": scores})
        return should_stop(rule, run, fitted_estimator, self.X)
