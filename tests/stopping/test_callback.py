"""Rules as callbacks of scikit-learn: they end a training step by step."""

import math
import pickle
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression

from skactive.stopping import (
    ClassificationChange,
    KappaAverage,
    LabelBudget,
    Plateau,
    RoundBudget,
    SelectedAccuracy,
    TimeBudget,
    as_callback,
)

from ._helpers import _Watched


@pytest.fixture
def steps():
    """A classifier that trains in steps and stops when a callback says so."""
    callback = pytest.importorskip("sklearn.callback")

    class Steps(callback.CallbackSupportMixin, ClassifierMixin, BaseEstimator):
        def __init__(self, max_iter=20, right=5):
            self.max_iter = max_iter
            self.right = right

        @callback.with_callbacks
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            context = self._init_callback_context(max_subtasks=self.max_iter)
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
            self.n_iter_, self.stopped_ = 0, []
            while self.n_iter_ < self.max_iter and not self._step(context, X=X, y=y):
                pass
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
            return self

        def _step(self, context, **known):
            self.n_iter_ += 1
            step = context.subcontext(task_name="step")
            step.call_on_fit_task_begin(estimator=self, **known)
            known["reconstruction_attributes"] = {"n_iter_": self.n_iter_}
            return step.call_on_fit_task_end(estimator=self, **known)

        def predict(self, X):
            # Right about one item more with each step, until all that it can be.
            right = np.arange(len(X)) < min(self.n_iter_, self.right)
            return np.where(right, self.classes_[1], self.classes_[0])

    return Steps


X10, Y10 = np.zeros((10, 1)), np.array([1] * 9 + [0])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (RoundBudget(4), 4),
        (Plateau(patience=3), 8),
        (ClassificationChange(stop_set=None), 6),
        (KappaAverage(3, threshold=1.0), 8),
        (RoundBudget(7) | Plateau(patience=3), 7),
        (RoundBudget(7) & Plateau(patience=3), 8),
        (TimeBudget(1e-9), 1),
        (TimeBudget(1e9), 20),
    ],
    ids=repr,
)
def test_a_rule_ends_training(steps, rule, expected):
    before = repr(vars(rule))
    model = steps().set_callbacks(as_callback(rule, X10, Y10))
    assert model.fit(X10, Y10).n_iter_ == expected
    assert model.fit(X10, Y10).n_iter_ == expected  # starts anew
    assert clone(model).fit(X10, Y10).n_iter_ == expected
    assert repr(vars(rule)) == before


def test_the_innermost_steps_are_the_rounds(steps):
    class Epochs(steps):
        def _step(self, context, **known):
            self.n_iter_ += 1
            step = context.subcontext(task_name="epoch", max_subtasks=2)
            for _ in range(2):
                batch = step.subcontext(task_name="batch")
                self.stopped_.append(batch.call_on_fit_task_end(estimator=self))
            return step.call_on_fit_task_end(estimator=self)

    model = Epochs(max_iter=3).set_callbacks(as_callback(RoundBudget(4)))
    model.fit(X10, Y10)
    assert model.stopped_ == [False, False, False, True, True, True]


def test_a_rule_ends_training_of_several_at_once(steps):
    from sklearn.model_selection import GridSearchCV

    model = steps().set_callbacks(as_callback(Plateau(patience=2), X10, Y10))
    search = GridSearchCV(model, {"right": [1, 3, 6]}, cv=2, n_jobs=2)
    from joblib import parallel_backend

    with parallel_backend("threading"):
        search.fit(np.zeros((20, 1)), np.arange(20) % 2)
    assert search.best_estimator_.n_iter_ == search.best_params_["right"] + 2


def test_a_metric_can_be_chosen(steps):
    scores = []

    def scoring(model, X, y):
        scores.append(model.n_iter_)
        return 0.0

    callback = as_callback(Plateau(patience=4), X10, Y10, scoring=scoring)
    assert steps().set_callbacks(callback).fit(X10, Y10).n_iter_ == 5
    assert scores == [1, 2, 3, 4, 5]


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
def test_estimators_of_scikit_learn_report_their_steps(data):
    pytest.importorskip("sklearn.callback")
    X, y = data
    rule = _Watched(RoundBudget(2) | Plateau(patience=2))
    callback = as_callback(rule, X[200:], y[200:])
    model = LogisticRegression(max_iter=30).set_callbacks(callback).fit(X, y)
    # Whether the answer ends the training is up to scikit-learn; 1.9 asks in vain.
    assert rule.seen[-1].n_checks_ >= min(2, model.n_iter_[0])


def test_a_callback_can_be_pickled(steps):
    callback = as_callback(Plateau(), X10, Y10)
    twin = pickle.loads(pickle.dumps(callback))
    assert steps().set_callbacks(twin).fit(X10, Y10).n_iter_ == 8


@pytest.mark.parametrize(
    ("rule", "given", "error", "message"),
    [
        (LabelBudget(5), (X10, Y10), TypeError, "training queries"),
        (SelectedAccuracy(), (X10, Y10), TypeError, "training queries"),
        (Plateau() | LabelBudget(5), (X10, Y10), TypeError, "training queries"),
        (KappaAverage(), (), ValueError, "'X' is None, and KappaAverage"),
        (Plateau(), (X10,), ValueError, "'X' and 'y' are needed by Plateau"),
        (Plateau(), (), ValueError, "'X' and 'y' are needed by Plateau"),
        (5, (), TypeError, "'rule' must be a stopping rule, got 5"),
        (Plateau, (), TypeError, "'rule' must be a stopping rule"),
        (RoundBudget(0), (), ValueError, "The 'n_rounds' parameter of RoundBudget"),
    ],
)
def test_a_rule_that_cannot_watch_training_is_refused(rule, given, error, message):
    pytest.importorskip("sklearn.callback")
    with pytest.raises(error, match=message):
        as_callback(rule, *given)


def test_an_older_scikit_learn_is_named(monkeypatch):
    monkeypatch.setattr("skactive.stopping._base.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=re.escape("pip install 'scikit-learn>=1.9'")):
        as_callback(TimeBudget(5))


def test_nan_scores_of_a_callback_do_not_stop(steps):
    callback = as_callback(
        Plateau(patience=1), X10, Y10, scoring=lambda *args: math.nan
    )
    assert steps().set_callbacks(callback).fit(X10, Y10).n_iter_ == 20
