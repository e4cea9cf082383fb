"""How accurate a model is and what more labels would add, from held-out predictions.

The rule at the end stops when labels cost more than they save.
"""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax
from scipy.stats import norm
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from .._utils._containers import NothingToAskError, count_items, take_rows
from .._utils._labels import as_labels
from .._utils._pipelines import (
    computes_features,
    fit_last,
    has_descriptions,
    has_sampler,
    seeded_clone,
    split_estimator,
    takes_unlabeled,
)
from .._utils._repeatable import one_blas_thread, round_rng
from .._utils._sklearn import Interval
from .._utils._texts import drop_known_texts
from ..linear_model import assign_folds, calibrate
from ._base import StoppingRule
from ._predictions import knows_classes, mask_unlabeled

_Z = float(norm.ppf(0.975))
# Standard deviation of the realized gain: a share of the predictions that change, and
# one of the expected gain, which grows with the distance of the extrapolation. Both
# were chosen on simulated sessions; docs/results/sessions.md has the coverage.
_CHURN, _SLOPE, _DISTANCE = 0.13, 0.4, 0.3
# Standard deviation of a gain for one item; new texts differ from those of the pool,
# even where no prediction changes.
_FLOOR = 0.25
# A gain is extrapolated from at least this many labels, absolutely and per label of
# the horizon, and from at least this many unlabeled items.
_MIN_LABELS, _MIN_RATIO, _MIN_REST = 40, 1.5, 20
# With fewer labels per class, probabilities change more with each label than they tell.
_MIN_PER_CLASS = 10
_N_SPLITS = 5
_N_REST = 1000  # unlabeled items that are predicted
# Labels that estimate the error rate on queried items. The rate of fewer labels is
# noisy, and older labels are of items that the model learned since.
_N_RECENT = 200


@dataclass(frozen=True)
class OutOfFold:
    """Predictions of models that each lack a part of the labels.

    `proba` (n, k) are of models that lack the item, NaN if it is never held out.
    `rest_proba` (m, k) of unlabeled items are of the model with all n labels, and
    `rest_codes` (f, m) are their classes by each of the other models, which have the
    fractions `shares` (f,) of the labels.
    """

    classes: Any
    codes: Any
    proba: Any
    rest_proba: Any
    rest_codes: Any
    shares: Any


def out_of_fold(estimator, X, y, X_rest=None, *, held=None, n_rest=_N_REST, seed=0):
    """Train a clone of an estimator without each fold of its labels in turn.

    `X_rest` are unlabeled items, used in training if the estimator does so, without
    copies of texts of `X`. At most `n_rest` of them are predicted. `held` (n,) masks
    the items that may be held out. Features that need no training are computed once. A
    class with a single example is held out, too; the model that lacks it gives it the
    probability 0.
    """
    _check_classifier(estimator)
    y = as_labels(y, count_items(X))
    if y.ndim != 1:
        raise TypeError(
            f"'y' must hold one class for each item, got an array of shape {y.shape}. "
            "Estimates are for labels of one class."
        )
    has_rest = X_rest is not None
    fresh = _find_fresh(X, X_rest) if has_rest and takes_unlabeled(estimator) else ()
    describes = has_descriptions(estimator)
    is_split = computes_features(estimator) and not has_sampler(estimator)
    if is_split and not describes:
        front, estimator = split_estimator(estimator)
        front = clone(front).fit(X, y)
        X = front.transform(X)
        X_rest = front.transform(X_rest) if has_rest else None
    # A model can predict a class that is only described.
    classes = np.unique([*y, *estimator.descriptions] if describes else y)
    codes = np.searchsorted(classes, y)
    folds = _assign(codes, held, seed)
    rest = None
    if has_rest and n_rest:
        m = count_items(X_rest)
        rows = round_rng(seed, 0, "rest").choice(m, min(n_rest, m), replace=False)
        rest = take_rows(X_rest, np.sort(rows))
    unlabeled = take_rows(X_rest, fresh) if len(fresh) else None

    def predict(train, *parts):
        """Return probabilities (., k) of some parts by a model of some rows."""
        known = codes[train]
        if (known == known[0]).all() and not describes:
            return [np.eye(len(classes))[[known[0]] * count_items(p)] for p in parts]
        X_train, y_train = take_rows(X, train), y[train]
        model = seeded_clone(estimator, np.random.default_rng(seed))
        fit_last(model, X_train, y_train, unlabeled)
        columns = np.searchsorted(classes, model.classes_)
        found = []
        for part in parts:
            proba = np.zeros((count_items(part), len(classes)))
            proba[:, columns] = model.predict_proba(part)
            found.append(proba)
        return found

    parts = [] if rest is None else [rest]
    proba = np.full((len(y), len(classes)), np.nan)
    rest_codes, shares = [], []
    with one_blas_thread():
        for fold in range(folds.max() + 1):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            proba[test], *found = predict(train, take_rows(X, test), *parts)
            rest_codes += [one.argmax(axis=1) for one in found]
            shares.append(len(train) / len(y))
        found = predict(np.arange(len(y)), *parts) if parts else [proba[:0]]
    return OutOfFold(
        classes, codes, proba, found[0], np.array(rest_codes), np.array(shares)
    )


def _find_fresh(X, X_rest):
    """Return the positions of unlabeled items, without texts that are in `X`.

    A copy of a held-out text would be learned from.
    """
    try:
        return drop_known_texts(X_rest, np.arange(count_items(X_rest)), X)
    except NothingToAskError:
        return ()


def _check_classifier(estimator):
    last = estimator
    while isinstance(last, Pipeline):
        last = last.steps[-1][1]
    if not is_classifier(estimator) or not hasattr(last, "predict_proba"):
        raise TypeError(
            "'estimator' must be a classifier with predict_proba for estimates of its "
            f"accuracy, got {type(last).__name__}. Wrap it in CalibratedClassifierCV."
        )


def _assign(codes, held, seed):
    """Return the fold (n,) of each row, -1 if it is never held out."""
    held = np.ones(len(codes), dtype=bool) if held is None else np.asarray(held)
    _, own = np.unique(codes[held], return_inverse=True)
    n_splits = min(_N_SPLITS, len(own))
    among = assign_folds(own, n_splits, seed)
    single = np.flatnonzero(among < 0)
    # The folds of the others are dealt out in turn, too.
    among[single] = (np.arange(len(single)) + np.sum(among >= 0)) % n_splits
    folds = np.full(len(codes), -1, dtype=np.intp)
    folds[held] = among
    return folds


def calibrate_proba(proba, held_proba, codes):
    """Return probabilities (m, k) at the temperature that suits held-out labels.

    `held_proba` (n, k) are those of the held-out items, whose classes are `codes` (n,).
    """
    floor = np.log(np.maximum(held_proba, 1e-9))
    _, temperature = calibrate(floor, codes, np.ones(len(codes)))
    logits = np.log(np.maximum(proba, 1e-9)) / temperature
    return np.exp(log_softmax(logits, axis=1))


def beats_majority(proba, codes):
    """Whether held-out predictions are clearly better than the most frequent class.

    By McNemar's test: of the items that only one of both has right, the predictions
    have more right by two standard deviations.
    """
    right = proba.argmax(axis=1) == codes
    frequent = np.bincount(codes).argmax() == codes
    won, lost = np.sum(right & ~frequent), np.sum(frequent & ~right)
    return bool(won - lost > 2 * np.sqrt(won + lost))


def estimate_gain(proba, codes, shares, n, horizon):
    """Return the gain in accuracy by `horizon` further labels, and its interval.

    It is that on the rest of the pool, which is easier than new texts after queries of
    uncertain items. `proba` (m, k) are calibrated probabilities of unlabeled items by a
    model with n labels, and `codes` (f, m) the classes by models with fractions
    `shares` (f,) of them. The probabilities say how much accuracy the smaller models
    lose. Accuracy is a - b / n near n: the loss is b (1 / (share n) - 1 / n), the gain
    b (1 / n - 1 / (n + horizon)). The share of predictions that change, squared, has
    the same form. What comes is that expectation, and the luck of these changes.
    """
    rows = np.arange(len(proba))
    current = proba.argmax(axis=1)
    lost = proba[rows, current] - proba[rows, codes]
    steps = (1 / np.asarray(shares) - 1).sum()
    ahead = 1 - n / (n + horizon)
    gain = float(lost.mean(axis=1).sum() / steps * ahead)
    # One more item changes than was seen: few items do not show that none will.
    changed = ((codes != current).sum(axis=1) + 1) / (len(proba) + 1)
    churn = np.sqrt(np.square(changed).sum() / steps * ahead)
    relative = _SLOPE + _DISTANCE * horizon / n
    parts = _CHURN * churn, relative * gain, _FLOOR / np.sqrt(len(proba))
    half = _Z * float(np.linalg.norm(parts))
    return gain, (gain - half, gain + half)


def is_enough(n, n_classes, n_rest, horizon):
    """Whether n labels and a number of unlabeled items allow to estimate a gain."""
    return n >= n_for_gain(n_classes, horizon) and n_rest >= _MIN_REST


def n_for_gain(n_classes, horizon):
    """Return the number of labels from which a gain is estimated."""
    least = max(_MIN_LABELS, _MIN_RATIO * horizon, _MIN_PER_CLASS * n_classes)
    return int(np.ceil(least))


def gain_of_labels(found, horizon):
    """Return gain and interval of `horizon` labels from an OutOfFold, or None.

    None stands for too few labels or unlabeled items, or a model that is not yet better
    than the most frequent class.
    """
    n = len(found.codes)
    held = ~np.isnan(found.proba[:, 0])
    proba, codes = found.proba[held], found.codes[held]
    if not is_enough(n, len(found.classes), len(found.rest_proba), horizon):
        return None
    if not beats_majority(proba, codes):
        return None
    rest = calibrate_proba(found.rest_proba, proba, codes)
    return estimate_gain(rest, found.rest_codes, found.shares, n, horizon)


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
        found = out_of_fold(
            learner.estimator,
            learner.X_labeled_,
            learner.y_labeled_,
            take_rows(X, unlabeled),
            seed=seed if isinstance(seed, Integral) else 0,
        )
        estimate = gain_of_labels(found, horizon)
        if estimate is None:
            return False
        self.gains_.append(estimate)
        wrong = found.proba.argmax(axis=1) != found.codes
        n_predicted = len(unlabeled) - horizon + self.n_future
        prevented = wrong[-max(horizon, _N_RECENT) :].mean()  # of the queried item
        prevented += estimate[0] * n_predicted / horizon
        self.prevented_.append(float(prevented))
        return self.prevented_[-1] * self.error_cost < self.label_cost
