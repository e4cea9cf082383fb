"""Bayesian strategies: ask where draws of the model's parameters disagree."""

from numbers import Integral, Real

import numpy as np

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
    """What the pointwise strategies on posterior draws share: how a batch is taken."""

    _parameter_constraints = {
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "selection": [StrOptions({"top", "power", "softmax"})],
        "coldness": [Interval(Real, 0, np.inf, closed="neither")],
    }
    requires = frozenset({"draws"})

    def _choose(self, scores, view, n):
        """Choose the n highest scores, or draw by them."""
        if self.selection == "top":
            return super()._choose(scores, view, n)
        return stochastic_n(
            scores, n, view.rng, method=self.selection, coldness=self.coldness
        )


class BALD(_Draws):
    """Ask where the label would tell most of the model's parameters.

    The score is the mutual information of the label and the parameters: the entropy
    of the mean prediction less the mean entropy of the predictions. It is high where
    draws of the model are sure and disagree.

    Parameters
    ----------
    n_draws : int, default=50
        How many models to draw, at least 2.
    selection : {"top", "power", "softmax"}, default="top"
        The batch is the highest scores, or drawn without replacement with
        probabilities in proportion to `score ** coldness` ("PowerBALD") or to
        `exp(coldness * score)`. Drawn batches are more diverse.
    coldness : float, default=1.0
        Not used by "top". The higher, the nearer to it.

    Notes
    -----
    Cost: O(n t k) beside the draws, which are made and reduced in chunks.

    When to use: models whose posterior can be drawn, where labels are noisy and plain
    uncertainty keeps asking about what no label settles. Large batches of the highest
    scores are redundant: use `selection="power"` or BatchBALD.

    References
    ----------
    N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel, "Bayesian active learning for
    classification and preference learning", arXiv:1112.5745, 2011.

    A. Kirsch et al., "Stochastic batch acquisition: a simple baseline for deep active
    learning", TMLR 2023, for `selection`.

    Examples
    --------
    The trees of a forest agree on the ends and not in the middle:

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

    def __init__(self, n_draws=50, *, selection="top", coldness=1.0):
        self.n_draws = n_draws
        self.selection = selection
        self.coldness = coldness

    def score(self, view):
        """Mutual information of the label and the model, in nats.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and what draws of the model say of them.

        Returns
        -------
        scores : ndarray of shape (n_candidates,)
        """
        return view.map_draws(_scores.mutual_information, self.n_draws)


class MCDropout(_Draws):
    """Ask where the mean prediction of draws of the model is least sure.

    With a network whose draws are dropout masks this is Monte-Carlo dropout: the mean
    over the draws stands for the prediction, and its uncertainty is measured.

    Parameters
    ----------
    n_draws : int, default=50
        How many models to draw.
    measure : {"entropy", "least_confidence", "margin"}, default="entropy"
        The uncertainty of the mean; "margin" is one less the gap between the two best
        classes.
    selection : {"top", "power", "softmax"}, default="top"
        The batch is the highest scores, or drawn without replacement with
        probabilities in proportion to `score ** coldness` or to
        `exp(coldness * score)`. Drawn batches are more diverse.
    coldness : float, default=1.0
        Not used by "top". The higher, the nearer to it.

    Notes
    -----
    Cost: O(n t k) beside the draws, which are made and reduced in chunks.

    When to use: networks that are too sure of themselves without dropout. For linear
    models the mean hardly differs from the plain prediction, so plain entropy does.

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

    def __init__(self, n_draws=50, *, measure="entropy", selection="top", coldness=1.0):
        self.n_draws = n_draws
        self.measure = measure
        self.selection = selection
        self.coldness = coldness

    def score(self, view):
        """Uncertainty of the mean over the draws.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and what draws of the model say of them.

        Returns
        -------
        scores : ndarray of shape (n_candidates,)
        """
        measure = _MEASURES[self.measure]
        return view.map_draws(
            lambda draws: measure(_scores.mean_over_draws(draws)), self.n_draws
        )


class BatchBALD(Strategy):
    """Ask for the batch whose labels together would tell most of the parameters.

    Chosen one by one, each adding most to the joint mutual information of the labels
    so far and the model's parameters. Of two candidates that would tell the same, only
    one is asked for.

    Parameters
    ----------
    n_draws : int, default=50
        How many models to draw, at least 2. They can tell no more than log(n_draws);
        a batch that reaches it is completed by starting anew, so large batches need
        many draws.
    n_samples : int, default=4096
        How many configurations of the batch's labels are held. The joint is exact
        while there are no more, k^(b - 1) for a batch of b; beyond it they are a
        weighted sample.

    Notes
    -----
    Cost: O(n t k) and, for each pick, O(s t k) for each candidate that could still be
    the best, s = min(k^(b - 1), n_samples); few of n, unless all are much alike. The
    draws of all candidates are held, n t k numbers: use a prefilter for huge pools.

    When to use: small batches with a model whose posterior can be drawn; better than
    BALD the more alike the candidates are. Use no more picks than draws.

    References
    ----------
    A. Kirsch, J. van Amersfoort, Y. Gal, "BatchBALD: efficient and diverse batch
    acquisition for deep Bayesian active learning", NeurIPS 2019.

    Examples
    --------
    The pool holds one text many times; one label for it is enough:

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

    def __init__(self, n_draws=50, *, n_samples=4096):
        self.n_draws = n_draws
        self.n_samples = n_samples

    def select(self, view, n):
        """Choose n candidates, each adding most to those before it.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and what draws of the model say of them.
        n : int
            How many to choose.

        Returns
        -------
        positions : ndarray of int, shape (n,)
        """
        draws = view.draws(self.n_draws)
        return select_jointly(draws, n, view.rng, n_samples=self.n_samples)[0]
