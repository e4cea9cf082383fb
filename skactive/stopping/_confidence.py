"""Rules that stop when the model is certain, or correct about the queried items."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._math._scores import entropy
from .._utils._containers import take_rows
from .._utils._sklearn import Interval
from ._base import StoppingRule
from ._stop_set import StopSetRule, knows_classes, mask_unlabeled


class OverallUncertainty(StopSetRule):
    """Stop when the model is certain about the unlabeled items.

    The rule compares the mean entropy of the predictions for the unlabeled items,
    divided by its maximum log(k) for k classes, with a threshold.

    Parameters
    ----------
    threshold : float, default=0.05
        Value between 0 and 1 below which to stop. No value suits every model, as
        certainty is not accuracy; look at `uncertainties_` of a first run.
    stop_set : int, array-like or None, default=None
        Items to predict. An int is the number of items drawn at random from those
        unlabeled when the first model exists; an array holds positions or is a mask;
        None means the whole pool. Items labeled later do not count.
    random_state : int, RandomState instance or None, default=None
        Seed of the stop set. Defaults to the seed of the run, so that a seeded
        simulation stays reproducible.

    Attributes
    ----------
    stop_set_ : ndarray of int
        Positions of the items that are predicted while they are unlabeled.
    uncertainties_ : list of float
        The mean after each round.

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

    def __init__(
        self,
        threshold: float = 0.05,
        *,
        stop_set: int | ArrayLike | None = None,
        random_state: Any = None,
    ):
        self.threshold = threshold
        self.stop_set = stop_set
        self.random_state = random_state

    def start(self) -> Self:
        """Check the parameters and reset the rule for a new loop."""
        super().start()
        self.uncertainties_: list[float] = []
        return self

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compute the mean entropy of the predictions."""
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
    """Stop when the model predicted the labels of the queried items correctly.

    The rule compares the accuracy of the previous model on the items just labeled with
    a threshold. A strategy queries items that the model is uncertain about, so this
    accuracy stays low until little is left to learn. With random queries it is an
    ordinary test on new labels.

    Parameters
    ----------
    threshold : float, default=0.9
        Accuracy to reach.
    n_rounds : int, default=1
        Number of rounds over which the accuracy is computed. Use more with small
        batches.

    Attributes
    ----------
    accuracies_ : list of float
        Accuracy in each round.

    Notes
    -----
    The rule keeps the fitted model of the previous round. If most items are of one
    class, a batch without the other classes looks like success. Models that know a
    single class are not judged.

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

    def __init__(self, threshold: float = 0.9, *, n_rounds: int = 1):
        self.threshold = threshold
        self.n_rounds = n_rounds

    def start(self) -> Self:
        """Check the parameters and reset the rule for a new loop."""
        super().start()
        self.accuracies_: list[float] = []
        self._counts: list[tuple[int, int]] = []
        self._model = None
        return self

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compute the accuracy of the previous model on the items of the last round."""
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
