"""Stopping rules as callbacks of scikit-learn's own training loops."""

from importlib.util import find_spec

from sklearn.base import clone
from sklearn.metrics import check_scoring

from ._base import is_rule, should_stop


def as_callback(rule, X=None, y=None, *, scoring=None):
    """Make a scikit-learn callback of a stopping rule.

    For estimators whose `fit` goes in steps and reports them (scikit-learn 1.9 and
    later): each step is taken as a round, and the rule is asked after it. It depends
    on the estimator whether that ends its training: of scikit-learn's own, those of
    version 1.9 report their steps and ignore the answer.

    Parameters
    ----------
    rule : StoppingRule
        A clone of it is started for each `fit`. Not one that looks at labels asked
        for, such as :class:`LabelBudget`: training asks for none.
    X : container of n items or None, default=None
        What to score on, and what the rules that watch predictions watch.
    y : array-like of shape (n,) or None, default=None
        Its labels, for the rules that need scores.
    scoring : str, callable or None, default=None
        What to score; None is the estimator's own `score`.

    Returns
    -------
    callback : sklearn.callback.FitCallback
        For `estimator.set_callbacks(callback)`.

    Raises
    ------
    ImportError
        If scikit-learn has no callbacks.
    TypeError
        If `rule` is no rule, or cannot be used without labelling.
    ValueError
        If the rule needs items or labels that are not given.

    Examples
    --------
    >>> from skactive.stopping import Plateau, TimeBudget, as_callback
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> callback = as_callback(TimeBudget(60) | Plateau(), X, y)
    >>> model = LogisticRegression(max_iter=500).set_callbacks(callback).fit(X, y)
    """
    if find_spec("sklearn.callback") is None:
        raise ImportError(
            "as_callback needs the callbacks of scikit-learn 1.9. Upgrade it with "
            "`pip install 'scikit-learn>=1.9'`."
        )
    if not is_rule(rule):
        raise TypeError(f"'rule' must be a stopping rule, got {rule!r}.")
    clone(rule, safe=False).start()  # its own complaints come before the training
    requires = getattr(rule, "requires", frozenset())
    if "labels" in requires:
        raise TypeError(
            f"{rule!r} looks at the labels that a loop asks for, and training asks for "
            "none. Use RoundBudget (steps), TimeBudget, Plateau or KappaAverage."
        )
    if "pool" in requires and X is None:
        raise ValueError(f"'X' is None, and {rule!r} watches items. Pass some as X.")
    if "scores" in requires and (X is None or y is None):
        raise ValueError(
            f"'X' and 'y' are needed by {rule!r}, which looks at scores. Pass "
            "validation data."
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

        self._fits[id(estimator)] = rule, scorer, Run([{"asked": []}])

    def teardown(self, estimator, context):
        """Forget the fit."""
        self._fits.pop(id(estimator), None)

    def on_fit_task_begin(self, estimator, context):
        """Do nothing."""

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        """Ask the rule, if this was a step of a loop."""
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
        run.append({"asked": [], "scores": scores})
        return should_stop(rule, run, fitted_estimator, self.X)
