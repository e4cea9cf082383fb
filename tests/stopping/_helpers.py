"""Learners whose answers are given, and simulations that a rule may end."""

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, simulate
from skactive.simulation import Run
from skactive.stopping import StoppingRule


class Scripted:
    """Learner whose predictions are given; its pool holds the positions."""

    def __init__(self, answers=(), classes=(0, 1), y=()):
        self.answers = np.asarray(answers)
        self.classes_ = np.asarray(classes)
        self.y_labeled_ = np.asarray(y)
        self.estimator_ = self

    def query(self, X):
        raise NotImplementedError

    def predict(self, X):
        return self.answers[np.asarray(X)]

    def predict_proba(self, X):
        return self.answers[np.asarray(X)]


def _run(n_rounds=1, **info):
    """A run that has asked for nothing yet."""
    return Run([{"queried": []} for _ in range(n_rounds)], info=info)


def _decisions(rule, answers, **params):
    """What a rule says to each of several predictions of one pool, in order."""
    rule.start()
    pool = np.arange(len(answers[0]))
    return [
        rule.check(_run(i + 1), Scripted(a, **params), pool)
        for i, a in enumerate(answers)
    ]


def _learner(strategy="margin", **params):
    return ActiveLearner(
        LogisticRegression(), strategy, batch_size=5, random_state=0, **params
    )


def _simulate(data, stopping, **params):
    X, y = data
    given = {"n_initial": 10, "n_rounds": 20, "scoring": "accuracy"}
    given |= {"X_test": X[200:], "y_test": y[200:], **params}
    return simulate(_learner(), X[:200], y[:200], stopping=stopping, **given)


class _Watched(StoppingRule):
    """Hand the rule that a simulation clones back to the test."""

    def __init__(self, rule, seen=None):
        self.rule = rule
        self.seen = seen if seen is not None else _Kept()

    def start(self):
        super().start()
        self.rule_ = clone(self.rule).start()
        self.seen.append(self.rule_)
        return self

    def decide(self, run, learner, X):
        return self.rule_.check(run, learner, X)


class _Kept(list):
    """The same list in every clone."""

    def __sklearn_clone__(self):
        return self
