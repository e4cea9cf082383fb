"""Strategies for multi-label targets: inconsistent label sets, expected scores."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import beta, betainc
from scipy.stats import rankdata

from .._math._scores import binary_entropy
from .._utils._chunks import chunk_size, concatenate_chunks
from .._utils._sklearn import MOST, POSITIVE, POSITIVE_COUNT, Interval
from ..registry import PointwiseStrategy

MULTI_LABEL = frozenset({"multi-label"})
_GRID = 2**16  # points between which the expected score is interpolated


class LabelCardinalityInconsistency(PointwiseStrategy):
    """Query the candidates with unusually many or few predicted labels.

    The score is the difference between the number of predicted labels and the mean
    number of labels of the labeled items. Many candidates have the same score; ties are
    in random order.

    Notes
    -----
    Cost: O(n k) plus the prediction.

    When to use: as a baseline of multi-label active learning, or as the second part of
    `prefilter`.

    References
    ----------
    X. Li, Y. Guo, "Active learning with multi-label SVM classification", IJCAI 2013,
    section 3.2.

    Examples
    --------
    The labeled items have one label on average. The last item is predicted to have two:

    >>> import numpy as np
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import LabelCardinalityInconsistency
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> model = OneVsRestClassifier(LogisticRegression())
    >>> learner = ActiveLearner(model, LabelCardinalityInconsistency())
    >>> X = np.array([[-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [1.0, 1.0]])
    >>> learner.fit(X, X > 0).query([[-2.0, 2.0], [2.0, -2.0], [2.0, 2.0]], 1)
    array([2])
    """

    requires = frozenset({"predictions", "labeled"})
    targets = MULTI_LABEL

    def score(self, view: Any) -> NDArray:
        """Return the absolute difference from the mean number of labels."""
        mean = np.asarray(view.y_labeled).sum(axis=1).mean()
        return np.abs(np.asarray(view.predictions).sum(axis=1) - mean)


class CategoryVectorInconsistency(PointwiseStrategy):
    """Query candidates of small margins whose predicted labels are unlike any so far.

    The score is a product of two parts. The first is the mean over the labels of
    (n - r) / (n - 1), where r is the rank of the candidate by the gap ``|2 p - 1|`` of
    the label. The second is the mean inconsistency of the predicted label set with the
    sets of the labeled items: the normalized entropy distance of the two as binary
    vectors, and 1 if they differ in every label.

    Notes
    -----
    Cost: O(k n log n + n s k) for s different label sets of the labeled items.

    When to use: with a few to some dozens of labels, of which items have several.

    References
    ----------
    O. Reyes, C. Morell, S. Ventura, "Effective active learning strategy for multi-label
    learning", Neurocomputing 273, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive import ActiveLearner
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> X = np.array([[-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [1.0, 1.0]])
    >>> learner = ActiveLearner(OneVsRestClassifier(LogisticRegression()), "cvirs")
    >>> learner.fit(X, X > 0).query([[-2.0, 2.0], [0.1, 0.1], [2.0, 2.0]], 1)
    array([1])
    """

    requires = frozenset({"class_scores", "predictions", "labeled"})
    targets = MULTI_LABEL

    def score(self, view: Any) -> NDArray:
        """Return the product of the mean rank and the mean inconsistency."""
        predicted = np.asarray(view.predictions) > 0
        sets, counts = np.unique(
            np.asarray(view.y_labeled) > 0, axis=0, return_counts=True
        )
        size = chunk_size(8 * 8 * len(sets))

        def compare(rows):
            return inconsistency(predicted[rows], sets) @ counts / counts.sum()

        unlike = concatenate_chunks(compare, len(view), size, view.n_jobs)
        return mean_ranks(view.label_margins) * unlike


def mean_ranks(margins):
    """Return (n,) in [0, 1]: the mean over labels of the share with larger margins.

    `margins` is (n, k). Equal margins have the mean of their ranks.
    """
    n = len(margins)
    ranks = rankdata(margins, axis=0)
    return (n - ranks).mean(axis=1) / (n - 1) if n > 1 else np.ones(n)


def inconsistency(first, second):
    """Return the inconsistency (n, m) of binary vectors (n, k) and (m, k).

    With a, b, c, d for the shares of labels that both, only the second, only the first
    and none have, it is (2 H(a, b, c, d) - H(a + c) - H(a + b)) / H(a, b, c, d).
    """
    first, second = first.astype(np.float64), second.astype(np.float64)
    k = first.shape[1]
    both = first @ second.T
    only_first = first.sum(axis=1)[:, None] - both
    only_second = second.sum(axis=1)[None, :] - both
    none = k - both - only_first - only_second
    cells = np.stack([both, only_second, only_first, none]) / k
    logs = np.log2(np.where(cells > 0, cells, 1.0))
    joint = -(cells * logs).sum(axis=0)
    own = binary_entropy(first.mean(axis=1)) / np.log(2)
    other = binary_entropy(second.mean(axis=1)) / np.log(2)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (2 * joint - own[:, None] - other[None, :]) / joint
    distance = np.where(joint > 0, np.clip(distance, 0.0, 1.0), 0.0)
    return np.where(only_first + only_second == k, 1.0, distance)


class ExpectedScoreChange(PointwiseStrategy):
    """Query the candidates whose labels would change predictions elsewhere the most.

    Posterior samples of the model are weighted by how well each predicts a possible
    label of a candidate. The weighted predictions of a sample of the pool have an
    expected score; the mean increase over the labels and their values is the score of
    the candidate. Each label informs about itself only. The scoring rule is that of the
    Beta family, which with small `alpha` and larger `beta` rewards the detection of
    rare labels.

    Parameters
    ----------
    n_draws : int, default=50
        Number of posterior samples, from 2 to 1,000,000.
    alpha, beta : float, default=0.1, 3.0
        Parameters of the scoring rule, above 0. With 1 and 1 it is half the Brier
        score.
    n_estimation : int, default=300
        Number of candidates, drawn at random, whose predictions are compared, at most
        1,000,000.

    Notes
    -----
    Cost: O(n k t e) for t draws and e compared candidates.

    When to use: with rare labels and a model that has posterior samples.

    References
    ----------
    W. Tan, N. D. Nguyen, L. Du, W. Buntine, "Harnessing the power of beta scoring in
    deep active learning for multi-label text classification", AAAI 2024,
    arXiv:2401.07395. There, a batch is made diverse by clustering; here use
    ``get_strategy("prefilter", first="besra")``.

    Examples
    --------
    Which labels would change the predictions of the other items most?

    >>> import numpy as np
    >>> from skactive import ActiveLearner, get_strategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> strategy = get_strategy("besra", n_draws=20)
    >>> model = OneVsRestClassifier(LogisticRegression())
    >>> learner = ActiveLearner(model, strategy, random_state=0)
    >>> X = np.array([[-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [1.0, 1.0]])
    >>> pool = [[-3.0, 3.0], [0.1, -0.1], [0.3, -0.3], [-0.2, 0.2], [-3.0, -3.0]]
    >>> learner.fit(X, X > 0).query(pool, 1)
    array([4])
    """

    _parameter_constraints = {
        "n_draws": [Interval(Integral, 2, MOST, closed="both")],
        "alpha": [POSITIVE],
        "beta": [POSITIVE],
        "n_estimation": [POSITIVE_COUNT],
    }
    requires = frozenset({"draws"})
    targets = MULTI_LABEL

    def __init__(
        self,
        n_draws: int = 50,
        *,
        alpha: float = 0.1,
        beta: float = 3.0,
        n_estimation: int = 300,
    ) -> None:
        self.n_draws = n_draws
        self.alpha = alpha
        self.beta = beta
        self.n_estimation = n_estimation

    def score(self, view: Any) -> NDArray:
        """Return the expected increase of the score."""
        n = min(self.n_estimation, len(view))
        chosen = np.sort(view.rng.choice(len(view), n, replace=False))
        draws = np.asarray(view.draws(self.n_draws), dtype=np.float64)
        expect = _interpolate(self.alpha, self.beta)
        return expected_change(draws, draws[chosen], expect, view.n_jobs)


def expected_score(q, alpha, beta_):
    """Return the expected score (...) of predictions `q` (...) that are calibrated.

    It is q S1(q) + (1 - q) S0(q), with the integrals S1 and S0 of the Beta family.
    """
    of_one = beta(alpha, beta_ + 1) * (1 - betainc(alpha, beta_ + 1, q))
    of_zero = beta(alpha + 1, beta_) * betainc(alpha + 1, beta_, q)
    return -(q * of_one + (1 - q) * of_zero)


def _interpolate(alpha, beta_):
    """Return a fast version of `expected_score`, linear between points."""
    values = expected_score(np.linspace(0, 1, _GRID + 1), alpha, beta_)
    steps = np.diff(values, append=values[-1])

    def expect(q):
        scaled = q * _GRID
        index = scaled.astype(np.intp)
        return values[index] + (scaled - index) * steps[index]

    return expect


def expected_change(draws, others, expect, n_jobs=1):
    """Return the expected change (n,) of scores by the labels of candidates.

    `draws` (n, t, k) and `others` (e, t, k) are label probabilities under the same
    models, and `expect` maps predictions to expected scores.
    """
    _, t, k = draws.shape
    present = expect(others.mean(axis=1)).mean(axis=0).sum()

    def change(rows):
        part, total = draws[rows], 0.0
        for label in range(k):
            of_others = others[:, :, label].T  # (t, e)
            for likelihood in (part[:, :, label], 1 - part[:, :, label]):
                mass = likelihood.sum(axis=1, keepdims=True)
                with np.errstate(invalid="ignore"):
                    weights = np.where(mass > 0, likelihood / mass, 1 / t)
                scores = expect(weights @ of_others).mean(axis=1)
                total = total + mass[:, 0] / t * scores
        return total - present

    size = chunk_size(8 * 3 * max(t, len(others)))
    return concatenate_chunks(change, len(draws), size, n_jobs)
