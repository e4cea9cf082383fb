"""Stopping rules as callbacks of scikit-learn estimators."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.metrics import check_scoring

from ._base import is_rule, should_stop


def as_callback(
    rule: Any,
    X: Any = None,
    y: ArrayLike | None = None,
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
        from ..simulation._run import Run

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
