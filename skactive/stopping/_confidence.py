"""Stop when the model is sure, or right about what it is asked next."""

from numbers import Integral, Real

import numpy as np

from .._math._scores import entropy
from .._utils._containers import take_rows
from .._utils._sklearn import Interval
from ._base import StoppingRule
from ._stop_set import StopSetRule, knows_classes, mask_unlabeled


class OverallUncertainty(StopSetRule):
    """Stop when the model is sure of what is left to label.

    That is, when the mean entropy of the predictions for the unlabelled items,
    divided by its greatest possible value log(k) for k classes, is below a threshold.

    Parameters
    ----------
    threshold : float, default=0.05
        Between 0 and 1. No value suits every model: how sure one is says little of
        how right it is, so look at `uncertainties_` first.
    stop_set : int, array-like or None, default=None
        What to look at: so many items that are unlabelled when the first model is
        seen, drawn at random; these positions, or this mask; or, with None, the whole
        pool. Those labelled since do not count.
    random_state : int, RandomState instance or None, default=None
        Draws the stop set. None takes the run's own seed, so a seeded simulation
        stays repeatable.

    Attributes
    ----------
    stop_set_ : ndarray of int
        Positions looked at, while they are unlabelled.
    uncertainties_ : list of float
        The mean, after each round.

    References
    ----------
    J. Zhu, H. Wang, E. Hovy, M. Ma, "Confidence-based stopping criteria for active
    learning for data annotation", ACM Transactions on Speech and Language Processing
    6, 2010.

    Examples
    --------
    >>> from skactive.stopping import OverallUncertainty
    >>> OverallUncertainty(0.1)
    OverallUncertainty(threshold=0.1)
    """

    _parameter_constraints = {
        **StopSetRule._parameter_constraints,
        "threshold": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(self, threshold=0.05, *, stop_set=None, random_state=None):
        self.threshold = threshold
        self.stop_set = stop_set
        self.random_state = random_state

    def start(self):
        """Check the parameters and forget every earlier loop."""
        super().start()
        self.uncertainties_ = []
        return self

    def decide(self, run, learner, X):
        """Average the entropy of the predictions."""
        if not self._ready(run, learner, X):
            return False
        left = self.stop_set_[mask_unlabeled(run, self._n_pool)[self.stop_set_]]
        if not left.size:
            return False
        if not hasattr(learner, "predict_proba"):
            kind = type(getattr(learner, "estimator_", learner)).__name__
            raise TypeError(
                f"OverallUncertainty needs predict_proba, which {kind} lacks. Wrap it "
                "in CalibratedClassifierCV, or use KappaAverage."
            )
        proba = np.asarray(learner.predict_proba(take_rows(X, left)))
        if proba.ndim != 2:
            raise TypeError(
                "OverallUncertainty needs one distribution for each item, and the "
                f"learner gives an array of shape {proba.shape}. Use a budget."
            )
        mean = float(np.mean(entropy(proba)) / np.log(proba.shape[1]))
        self.uncertainties_.append(mean)
        return mean < self.threshold


class SelectedAccuracy(StoppingRule):
    """Stop when the model was right about what it asked for.

    That is, when the share of the items just labelled whose class the model before
    had predicted reaches a threshold. A strategy asks where the model is unsure, so
    it is right about little of it until there is little left to learn; with a
    strategy that asks at random it is a plain test on new labels.

    Parameters
    ----------
    threshold : float, default=0.9
        The share to reach.
    n_rounds : int, default=1
        Over how many rounds to take it. Take more with small batches.

    Attributes
    ----------
    accuracies_ : list of float
        The share in each round.

    Notes
    -----
    The rule keeps the fitted model of the round before. Where most items are of one
    class, a batch without the others looks like success. Models that know a single
    class are not judged.

    References
    ----------
    J. Zhu, H. Wang, E. Hovy, M. Ma, "Confidence-based stopping criteria for active
    learning for data annotation", ACM Transactions on Speech and Language Processing
    6, 2010.

    Examples
    --------
    >>> from skactive.stopping import SelectedAccuracy
    >>> SelectedAccuracy(n_rounds=3)
    SelectedAccuracy(n_rounds=3)
    """

    _parameter_constraints = {
        "threshold": [Interval(Real, 0, 1, closed="right")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
    }
    requires = frozenset({"labels", "model", "pool"})

    def __init__(self, threshold=0.9, *, n_rounds=1):
        self.threshold = threshold
        self.n_rounds = n_rounds

    def start(self):
        """Check the parameters and forget every earlier loop."""
        super().start()
        self.accuracies_ = []
        self._counts = []
        self._model = None
        return self

    def decide(self, run, learner, X):
        """Ask the model before about the items of the last round."""
        known = knows_classes(learner, type(self).__name__)
        before, self._model = self._model, learner.estimator_ if known else None
        asked = run.rounds[-1]["asked"] if run.rounds else []
        if before is None or not len(asked):
            return False
        labels = learner.y_labeled_[-len(asked) :]
        predicted = np.asarray(before.predict(take_rows(X, np.asarray(asked))))
        if predicted.shape != labels.shape or predicted.ndim != 1:
            raise ValueError(
                f"SelectedAccuracy compares one class for each of the {len(asked)} "
                f"items of the last round: the model predicts {predicted.shape}, and "
                f"the learner's last labels have the shape {labels.shape}. Check the "
                "rule after each teach, with the run of this learner."
            )
        right = int(np.sum(predicted == labels))
        self._counts.append((right, len(asked)))
        self.accuracies_.append(right / len(asked))
        window = np.array(self._counts[-self.n_rounds :])
        share = window[:, 0].sum() / window[:, 1].sum()
        return len(window) == self.n_rounds and share >= self.threshold
