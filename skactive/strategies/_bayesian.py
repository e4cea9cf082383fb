"""Bayesian strategies: query where posterior samples of the model disagree."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._math import _scores
from .._math._joint import select_by_covariance, select_jointly
from .._math._scores import stochastic_n
from .._utils._sklearn import MOST, Interval, StrOptions
from ._base import TARGETS, PointwiseStrategy, Strategy


class _Draws(PointwiseStrategy):
    """Base of the pointwise strategies on posterior draws: how a batch is selected."""

    _parameter_constraints = {
        "n_draws": [Interval(Integral, 1, MOST, closed="both")],
        "selection": [StrOptions({"top", "power", "softmax"})],
        "coldness": [Interval(Real, 0, np.inf, closed="neither")],
    }
    requires = frozenset({"draws"})
    targets = TARGETS

    def _choose(self, scores, view, n_queries):
        """Select the n highest scores, or draw by the scores."""
        if self.selection == "top":
            return super()._choose(scores, view, n_queries)
        return stochastic_n(
            scores, n_queries, view.rng, method=self.selection, coldness=self.coldness
        )


class BALD(_Draws):
    """Query the candidates with the highest mutual information of label and parameters.

    The score is the entropy of the mean prediction minus the mean entropy of the
    predictions. It is high where posterior samples of the model are confident and
    disagree. For several labels per item it is the sum over the labels, and for a
    regressor the variance of the prediction under the posterior.

    Parameters
    ----------
    n_draws : int, default=50
        Number of posterior samples, from 2 to 1,000,000.
    selection : {"top", "power", "softmax"}, default="top"
        "top" selects the highest scores. The others draw without replacement with
        probabilities in proportion to `score ** coldness` ("PowerBALD") or to
        `exp(coldness * score)`, which makes batches more diverse.
    coldness : float, default=1.0
        Not used by "top". Higher values are closer to it.

    Notes
    -----
    Cost: O(n t k) plus the draws, which are made and reduced in chunks.

    For a regressor with noise of the same variance everywhere, the information
    log(1 + variance / noise) / 2 has the order of the variance. The variance is exact
    for linear models and Gaussian processes, and that of 50 draws otherwise. The sum
    over labels is an upper bound of the information of all labels together.

    When to use: models with posterior samples, if labels are noisy and uncertainty
    sampling keeps selecting candidates that no label resolves. Large batches of the
    highest scores are redundant: use `selection="power"` or BatchBALD.

    References
    ----------
    N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel, "Bayesian active learning for
    classification and preference learning", arXiv:1112.5745, 2011.

    A. Kirsch et al., "Stochastic batch acquisition: a simple baseline for deep active
    learning", TMLR 2023, for `selection`.

    D. J. C. MacKay, "Information-based objective functions for active data selection",
    Neural Computation 4, 1992, for regression.

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
        "n_draws": [Interval(Integral, 2, MOST, closed="both")],
    }

    def __init__(
        self, n_draws: int = 50, *, selection: str = "top", coldness: float = 1.0
    ) -> None:
        self.n_draws = n_draws
        self.selection = selection
        self.coldness = coldness

    def requires_for(self, target: str) -> frozenset[str]:
        """Return what the strategy requires: of a regressor, its variance."""
        return frozenset({"variance"}) if target == "regression" else self.requires

    def score(self, view: Any) -> NDArray:
        """Return the information in nats, or the variance of a regressor."""
        if view.target == "regression":
            return view.variance
        several = view.target == "multi-label"
        measure = _scores.label_information if several else _scores.mutual_information
        return view.map_draws(measure, self.n_draws)


class MCDropout(_Draws):
    """Query the candidates with the most uncertain mean over posterior samples.

    For a network whose samples are dropout masks this is Monte Carlo dropout: the mean
    over the samples is the prediction, and its uncertainty is the score.

    Parameters
    ----------
    n_draws : int, default=50
        Number of posterior samples, at most 1,000,000.
    measure : {"entropy", "least_confidence", "margin"}, default="entropy"
        The uncertainty of the mean; "margin" is 1 minus the gap between the two best
        classes. For several labels per item it is the mean over the labels. Not used by
        regressors, whose uncertainty is the variance of the draws.
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
        "measure": [StrOptions(set(_scores.UNCERTAINTIES))],
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
        """Return the uncertainty of the mean, or the variance of a regressor."""
        if view.target == "regression":
            return view.map_draws(lambda draws: draws.var(axis=1), self.n_draws)

        def measure(draws):
            mean = _scores.mean_over_draws(draws)
            return _scores.uncertainty(mean, self.measure, view.target)

        return view.map_draws(measure, self.n_draws)


class BatchBALD(Strategy):
    """Query the batch whose labels have most joint information on the parameters.

    Candidates are selected greedily: each adds most to the joint mutual information of
    the labels of the batch and the model's parameters. Of two candidates with the same
    information, only one is selected. For a regressor the information is that of
    normal labels, log det(I + K / noise) / 2 for the covariance K of the batch.

    Parameters
    ----------
    n_draws : int, default=50
        Number of posterior samples, from 2 to 1,000,000. Their information is at most
        log(n_draws). A batch that reaches this limit is completed by starting anew, so
        large batches need many draws.
    n_samples : int, default=4096
        Maximum number of configurations of the batch's labels. The joint information is
        exact while there are no more, k^(b - 1) for a batch of b; beyond that they are
        a weighted sample. At most 1,000,000. Not used by regressors.
    noise : float or "auto", default="auto"
        Variance of the noise in the labels of a regression. "auto" is the mean squared
        residual of the labels that the model was trained on.

    Notes
    -----
    Cost: O(n t k) and, for each pick, O(s t k) for each candidate that could still be
    the best, s = min(k^(b - 1), n_samples). These are few of n, unless all are similar.
    For a regressor O(n b (t + b)).
    The draws of all candidates are held, n t k numbers: use a prefilter for huge pools.

    When to use: small batches with a model that has posterior samples. The advantage
    over BALD is larger if candidates are similar. Use no more picks than draws.

    References
    ----------
    A. Kirsch, J. van Amersfoort, Y. Gal, "BatchBALD: efficient and diverse batch
    acquisition for deep Bayesian active learning", NeurIPS 2019.

    Examples
    --------
    The pool holds five copies of one item; one label for them is enough:

    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import BatchBALD
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(max_features=1, random_state=0)
    >>> learner = ActiveLearner(forest, strategy=BatchBALD(), random_state=0)
    >>> X = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    >>> learner = learner.fit(X, [0, 0, 1, 1])
    >>> pool = [[0.1, 0.1]] * 5 + [[-0.1, 0.1]]
    >>> sorted(pool[i] for i in learner.query(pool, 2))
    [[-0.1, 0.1], [0.1, 0.1]]
    """

    _parameter_constraints = {
        "n_draws": [Interval(Integral, 2, MOST, closed="both")],
        "n_samples": [Interval(Integral, 1, MOST, closed="both")],
        "noise": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }
    requires = frozenset({"draws"})
    targets = frozenset({"single-label", "regression"})

    def __init__(
        self, n_draws: int = 50, *, n_samples: int = 4096, noise: float | str = "auto"
    ) -> None:
        self.n_draws = n_draws
        self.n_samples = n_samples
        self.noise = noise

    def requires_for(self, target: str) -> frozenset[str]:
        """Return what the strategy requires, for the noise of a regressor as well."""
        more = {"labeled", "predictions"} if target == "regression" else set()
        return self.requires | more

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select n candidates, each with the largest gain in joint information."""
        draws = view.draws(self.n_draws)
        if view.target == "regression":
            noise = self.noise
            if noise == "auto":
                residuals = np.asarray(view.y_trained) - view.trained.predictions
                noise = np.mean(residuals**2, dtype=np.float64)
            return select_by_covariance(draws, n_queries, view.uniform(), noise)
        return select_jointly(draws, n_queries, view.rng, n_samples=self.n_samples)[0]
