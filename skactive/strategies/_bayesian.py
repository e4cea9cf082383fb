"""Bayesian strategies: query where posterior samples of the model disagree."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._math import _scores
from .._math._joint import select_jointly
from .._math._selection import stochastic_n
from .._utils._sklearn import Interval, StrOptions
from ._base import PointwiseStrategy, Strategy

_MEASURES = {
    "entropy": _scores.entropy,
    "least_confidence": _scores.least_confidence,
    # From 0 to 1, the highest first, as "power" needs it.
    "margin": lambda proba: 1.0 - _scores.margin(proba),
}


class _Draws(PointwiseStrategy):
    """Base of the pointwise strategies on posterior draws: how a batch is selected."""

    _parameter_constraints = {
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "selection": [StrOptions({"top", "power", "softmax"})],
        "coldness": [Interval(Real, 0, np.inf, closed="neither")],
    }
    requires = frozenset({"draws"})

    def _choose(self, scores, view, n):
        """Select the n highest scores, or draw by the scores."""
        if self.selection == "top":
            return super()._choose(scores, view, n)
        return stochastic_n(
            scores, n, view.rng, method=self.selection, coldness=self.coldness
        )


class BALD(_Draws):
    """Query the candidates with the highest mutual information of label and parameters.

    The score is the entropy of the mean prediction minus the mean entropy of the
    predictions. It is high where posterior samples of the model are confident and
    disagree.

    Parameters
    ----------
    n_draws : int, default=50
        Number of posterior samples, at least 2.
    selection : {"top", "power", "softmax"}, default="top"
        "top" selects the highest scores. The others draw without replacement with
        probabilities in proportion to `score ** coldness` ("PowerBALD") or to
        `exp(coldness * score)`, which makes batches more diverse.
    coldness : float, default=1.0
        Not used by "top". Higher values are closer to it.

    Notes
    -----
    Cost: O(n t k) plus the draws, which are made and reduced in chunks.

    When to use: models with posterior samples, if labels are noisy and uncertainty
    sampling keeps selecting candidates that no label resolves. Large batches of the
    highest scores are redundant: use `selection="power"` or BatchBALD.

    References
    ----------
    N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel, "Bayesian active learning for
    classification and preference learning", arXiv:1112.5745, 2011.

    A. Kirsch et al., "Stochastic batch acquisition: a simple baseline for deep active
    learning", TMLR 2023, for `selection`.

    Examples
    --------
    The trees of a forest agree at the ends and disagree in the middle:

    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import BALD
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(random_state=0)
    >>> learner = ActiveLearner(forest, strategy=BALD(), random_state=0)
    >>> learner = learner.fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
    >>> learner.query([[-9.0], [0.1], [9.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        **_Draws._parameter_constraints,
        "n_draws": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self, n_draws: int = 50, *, selection: str = "top", coldness: float = 1.0
    ) -> None:
        self.n_draws = n_draws
        self.selection = selection
        self.coldness = coldness

    def score(self, view: Any) -> NDArray:
        """Return the mutual information of the label and the model, in nats."""
        return view.map_draws(_scores.mutual_information, self.n_draws)


class MCDropout(_Draws):
    """Query the candidates with the most uncertain mean over posterior samples.

    For a network whose samples are dropout masks this is Monte Carlo dropout: the mean
    over the samples is the prediction, and its uncertainty is the score.

    Parameters
    ----------
    n_draws : int, default=50
        Number of posterior samples.
    measure : {"entropy", "least_confidence", "margin"}, default="entropy"
        The uncertainty of the mean; "margin" is 1 minus the gap between the two best
        classes.
    selection : {"top", "power", "softmax"}, default="top"
        "top" selects the highest scores. The others draw without replacement with
        probabilities in proportion to `score ** coldness` or to `exp(coldness *
        score)`, which makes batches more diverse.
    coldness : float, default=1.0
        Not used by "top". Higher values are closer to it.

    Notes
    -----
    Cost: O(n t k) plus the draws, which are made and reduced in chunks.

    When to use: networks that are overconfident without dropout. For linear models the
    mean hardly differs from the prediction, so use entropy.

    References
    ----------
    Y. Gal, Z. Ghahramani, "Dropout as a Bayesian approximation: representing model
    uncertainty in deep learning", ICML 2016.

    L. Ein-Dor et al., "Active learning for BERT: an empirical study", EMNLP 2020.

    A. Kirsch et al., "Stochastic batch acquisition: a simple baseline for deep active
    learning", TMLR 2023, for `selection`.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import MCDropout
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(random_state=0)
    >>> learner = ActiveLearner(forest, strategy=MCDropout(measure="margin"))
    >>> learner = learner.fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
    >>> learner.query([[-9.0], [0.1], [9.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        **_Draws._parameter_constraints,
        "measure": [StrOptions(set(_MEASURES))],
    }

    def __init__(
        self,
        n_draws: int = 50,
        *,
        measure: str = "entropy",
        selection: str = "top",
        coldness: float = 1.0,
    ) -> None:
        self.n_draws = n_draws
        self.measure = measure
        self.selection = selection
        self.coldness = coldness

    def score(self, view: Any) -> NDArray:
        """Return the uncertainty of the mean over the draws."""
        measure = _MEASURES[self.measure]
        return view.map_draws(
            lambda draws: measure(_scores.mean_over_draws(draws)), self.n_draws
        )


class BatchBALD(Strategy):
    """Query the batch whose labels have most joint information on the parameters.

    Candidates are selected greedily: each adds most to the joint mutual information of
    the labels of the batch and the model's parameters. Of two candidates with the same
    information, only one is selected.

    Parameters
    ----------
    n_draws : int, default=50
        Number of posterior samples, at least 2. Their information is at most
        log(n_draws). A batch that reaches this limit is completed by starting anew, so
        large batches need many draws.
    n_samples : int, default=4096
        Maximum number of configurations of the batch's labels. The joint information is
        exact while there are no more, k^(b - 1) for a batch of b; beyond that they are
        a weighted sample.

    Notes
    -----
    Cost: O(n t k) and, for each pick, O(s t k) for each candidate that could still be
    the best, s = min(k^(b - 1), n_samples). These are few of n, unless all are similar.
    The draws of all candidates are held, n t k numbers: use a prefilter for huge pools.

    When to use: small batches with a model that has posterior samples. The advantage
    over BALD is larger if candidates are similar. Use no more picks than draws.

    References
    ----------
    A. Kirsch, J. van Amersfoort, Y. Gal, "BatchBALD: efficient and diverse batch
    acquisition for deep Bayesian active learning", NeurIPS 2019.

    Examples
    --------
    The pool holds many copies of one text; one label for it is enough:

    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import BatchBALD
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(max_features=1, random_state=0)
    >>> learner = ActiveLearner(forest, strategy=BatchBALD(), random_state=0)
    >>> X = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    >>> learner = learner.fit(X, [0, 0, 1, 1])
    >>> sorted(learner.query([[0.1, 0.1]] * 5 + [[-0.1, 0.1]], 2))[1]
    np.int64(5)
    """

    _parameter_constraints = {
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
    }
    requires = frozenset({"draws"})

    def __init__(self, n_draws: int = 50, *, n_samples: int = 4096) -> None:
        self.n_draws = n_draws
        self.n_samples = n_samples

    def select(self, view: Any, n: int) -> NDArray:
        """Select n candidates, each with the largest gain in joint information."""
        draws = view.draws(self.n_draws)
        return select_jointly(draws, n, view.rng, n_samples=self.n_samples)[0]
