"""A rule that stops when labels cost more than the errors that they prevent."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from .._utils._containers import count_items, take_rows
from .._utils._sklearn import Interval
from ..estimation import gain_of_labels, is_enough, out_of_fold
from ._base import StoppingRule
from ._predictions import knows_classes, mask_unlabeled

# Labels that estimate the error rate on queried items. The rate of fewer labels is
# noisy, and older labels are of items that the model learned since.
_N_RECENT = 200


class CostRule(StoppingRule):
    """Stop when the next labels cost more than the errors that they prevent.

    The cost of a loop is that of its labels, of the errors among the items of the pool
    that remain unlabeled, and of the errors among `n_future` items that are not in the
    pool. The next `horizon` labels prevent two kinds of errors. The labeled items have
    their true classes: what the model would get wrong is its error rate on the items
    that the strategy queries. All other items gain accuracy. The rule estimates both
    from the labels that the learner has, and stops when the labels cost more.

    Parameters
    ----------
    label_cost : float
        Cost of one label, in any unit: the minutes that it takes, or money.
    error_cost : float
        Cost of one wrong prediction, in the same unit.
    horizon : int, default=100
        Number of further labels whose value is estimated.
    n_future : int, default=0
        Number of items outside the pool that the final model will predict. With 0, only
        the pool counts: every item ends with a label or with a prediction.

    Attributes
    ----------
    gains_ : list of (float, (float, float))
        The expected gain on the rest of the pool and its interval of 95 %, for each
        check with an estimate.
    prevented_ : list of float
        The number of errors that one label prevents, for each of these checks. The rule
        stops when it is below `label_cost / error_cost`.

    See Also
    --------
    skactive.LabelingSession.estimate : The same estimate in a session.

    Notes
    -----
    The rule does not stop with fewer than 40 labels, fewer than 1.5 labels for each of
    the horizon, fewer than 10 labels per class, or fewer than 20 unlabeled items, nor
    while the model does not beat the most frequent class. Each later check trains six
    models on the labels. Features that need no training are computed once, and at most
    1,000 unlabeled items are predicted.

    The error rate on queried items is that of models that lack the item, on the last
    200 labels, or the last `horizon` if these are more. The labels must be in the order
    in which they were given. A label counts as the true class.

    Each check decides alone, so a low estimate by chance can stop a loop early. In
    simulated loops, the costs at the stop were 1 to 4 % above the lowest costs.

    References
    ----------
    C. Dimitrakakis, C. Savu-Krohn (2008), on optimal stopping and active learning.
    Foundations of Information and Knowledge Systems.

    D. D. Lewis, E. Yang, O. Frieder (2021). Certifying one-phase technology-assisted
    reviews. CIKM.

    Examples
    --------
    A label takes 10 seconds, and a wrong prediction costs half a minute:

    >>> from skactive import ActiveLearner, simulate
    >>> from skactive.stopping import CostRule
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> learner = ActiveLearner(LogisticRegression(), "margin", random_state=0)
    >>> learner = learner.set_params(batch_size=25)
    >>> run = simulate(
    ...     learner, X / 16, y, n_rounds=30, n_initial=25, stopping=CostRule(10, 30)
    ... )
    >>> print(f"stopped with {len(run.queried)} of {len(y)} labels")
    stopped with 250 of 1797 labels
    """

    _parameter_constraints = {
        "label_cost": [Interval(Real, 0, None, closed="left")],
        "error_cost": [Interval(Real, 0, None, closed="left")],
        "horizon": [Interval(Integral, 1, None, closed="left")],
        "n_future": [Interval(Integral, 0, None, closed="left")],
    }
    requires = frozenset({"labels", "model", "pool"})

    def __init__(
        self,
        label_cost: float,
        error_cost: float,
        horizon: int = 100,
        *,
        n_future: int = 0,
    ):
        self.label_cost = label_cost
        self.error_cost = error_cost
        self.horizon = horizon
        self.n_future = n_future

    def start(self) -> Self:
        """Check the parameters and reset the rule for a new loop."""
        super().start()
        self.gains_: list[tuple[float, tuple[float, float]]] = []
        self.prevented_: list[float] = []
        return self

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compare the costs of the next labels and of the errors they prevent."""
        if not knows_classes(learner, type(self).__name__):
            return False
        unlabeled = np.flatnonzero(mask_unlabeled(run, count_items(X)))
        horizon = min(self.horizon, len(unlabeled))
        n, n_classes = len(learner.y_labeled_), len(learner.classes_)
        if not is_enough(n, n_classes, len(unlabeled), horizon):
            return False
        seed = run.info.get("seed")
        held_out = out_of_fold(
            learner.estimator,
            learner.X_labeled_,
            learner.y_labeled_,
            take_rows(X, unlabeled),
            seed=seed if isinstance(seed, Integral) else 0,
        )
        estimate = gain_of_labels(held_out, horizon)
        if estimate is None:
            return False
        self.gains_.append(estimate)
        wrong = held_out.proba.argmax(axis=1) != held_out.codes
        n_predicted = len(unlabeled) - horizon + self.n_future
        prevented = wrong[-max(horizon, _N_RECENT) :].mean()  # of the queried item
        prevented += estimate[0] * n_predicted / horizon
        self.prevented_.append(float(prevented))
        return self.prevented_[-1] * self.error_cost < self.label_cost
