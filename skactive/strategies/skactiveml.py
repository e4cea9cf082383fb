"""Strategies of scikit-activeml, used by their instance."""

from __future__ import annotations

import inspect

import numpy as np
from sklearn.linear_model import LogisticRegression

from .._sklearn import HasMethods
from ._for_skactiveml import ForSkactiveml
from .base import Strategy

__all__ = ["FromSkactiveml"]

_GIVEN = {"X", "y", "candidates", "batch_size"}
# Models that a query may ask for: our parameter, and what a default one is made of.
_MODELS = {
    "clf": ("clf", {"labeled", "proba"}),
    "estimator": ("clf", {"labeled", "proba"}),
    "ensemble": ("ensemble", {"labeled", "proba"}),
    "reg": ("reg", {"labeled"}),
    "discriminator": ("discriminator", frozenset()),
}


class FromSkactiveml(Strategy):
    """Ask as a pool strategy of scikit-activeml does.

    The strategy gets the features of the labelled items and the candidates, the labels
    as the numbers of their classes, and the models that its `query` asks for. Needs
    `pip install scikit-activeml`.

    Parameters
    ----------
    query_strategy : skactiveml.base.SingleAnnotatorPoolQueryStrategy
        An instance. It is cloned for each query; where a `random_state` in it is None,
        the clone's comes from the query's generator. Its `missing_label` is set as
        needed, and `classes`, where it has them, stay in their order.
    clf : classifier or None, default=None
        What a query takes as `clf` or `estimator`: one of scikit-activeml or
        scikit-learn, of which a clone is trained on the labelled features. None is
        the learner's fitted model itself.
    ensemble : list of classifiers, classifier or None, default=None
        What a query takes as `ensemble`, trained on the labelled features; a single
        one must consist of several, such as a random forest. None is five clones of
        the learner's final estimator, each trained on a bootstrap sample.
    discriminator : classifier or None, default=None
        What a query takes as `discriminator`. None is a logistic regression.
    reg : regressor or None, default=None
        What a query takes as `reg`, trained on the labelled features. None is a clone
        of the learner's final estimator.
    query_params : dict or None, default=None
        More arguments of `query`. Arrays have one entry for each labelled item and
        then one for each candidate.

    Notes
    -----
    A final estimator that makes the features itself, such as `BertClassifier`, cannot
    be trained on them. Its own probabilities of the labelled items and the candidates
    serve as `clf`; for other rows, as DropQuery makes, it has none, so `clf` must be
    given. Where a query trains more models, a logistic regression on the features
    takes its place.

    These of theirs do not work, or not as they are:

    - FourDs knows only `clf=MixtureModelClassifier()`, EpistemicUncertaintySampling
      two classes and only logistic regression or `clf=ParzenWindowClassifier()`;
      ProbabilisticAL wants the latter, or a `metric` of its own.
    - ExpectedModelOutputChange, ExpectedModelVarianceReduction and
      KLDivergenceMaximization want a `reg` with a distribution, such as
      `NICKernelRegressor()`; RegressionTreeBasedAL a decision tree.
    - BatchBALD repeats itself within a batch; so do Badge and TypiClust where
      candidates are equal, and FourDs where all are. That is an error here.
      ParallelUtilityEstimationWrapper takes batches of one item only.
    - CostEmbeddingAL moves the global generator of numpy, though it asks for the same.
    - Strategies for several annotators or for streams are refused, and so are sparse
      features: theirs take dense arrays only.

    Cost: that of the strategy, many of which hold n x n numbers, and a copy of the \
features.

    When to use: for comparisons, and for what is not built in; the built-in ones \
take less time and memory.

    References
    ----------
    D. Kottke et al., "scikit-activeml: a library and toolbox for active learning
    algorithms", 2021.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import FromSkactiveml
    >>> from skactiveml.pool import UncertaintySampling  # doctest: +SKIP
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = FromSkactiveml(UncertaintySampling("entropy"))  # doctest: +SKIP
    >>> learner = ActiveLearner(LogisticRegression(), strategy)  # doctest: +SKIP
    >>> learner = learner.fit([[-1.0], [1.0]], ["a", "b"])  # doctest: +SKIP
    >>> learner.query([[-3.0], [0.2], [1.0]], 1)  # doctest: +SKIP
    array([1])
    """

    _parameter_constraints = {
        "query_strategy": "no_validation",
        "clf": [HasMethods("fit"), None],
        "ensemble": [list, tuple, HasMethods("fit"), None],
        "discriminator": [HasMethods("fit"), None],
        "reg": [HasMethods("fit"), None],
        "query_params": [dict, None],
    }

    def __init__(
        self,
        query_strategy,
        *,
        clf=None,
        ensemble=None,
        discriminator=None,
        reg=None,
        query_params=None,
    ):
        self.query_strategy = query_strategy
        self.clf = clf
        self.ensemble = ensemble
        self.discriminator = discriminator
        self.reg = reg
        self.query_params = query_params

    @property
    def requires(self):
        """Features, and what the models are made of that the query asks for."""
        models = self._models(self._arguments())
        missing = [_MODELS[name][1] for name in models if models[name] is None]
        return frozenset({"features"}).union(*missing)

    @property
    def targets(self):
        """One class per item, and numbers where the query asks for no classifier."""
        return super().targets - {"multi-label"}

    @property
    def optional(self):
        """The labelled items, where there are some."""
        return frozenset({"labeled"}) - self.requires

    def select(self, view, n):
        """Let the strategy query, and find what it chose among the candidates.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates, the labelled items and the model.
        n : int
            How many to choose.

        Returns
        -------
        positions : ndarray of int, shape (n,)
        """
        names = self._arguments()
        given = ForSkactiveml(view, self.query_strategy, "reg" in names)
        picks = given.strategy.query(
            given.X,
            given.y,
            candidates=np.arange(given.m, len(given.X)),
            batch_size=int(n),
            **self._make_models(names, given),
        )
        picks = np.ravel(picks) - given.m  # one of them gives a column
        if np.unique(picks).size < picks.size:
            raise ValueError(
                f"{self.query_strategy!r} of scikit-activeml chose a candidate more "
                "than once. Ask for one item at a time, and leave equal candidates out."
            )
        return picks

    def _validate_params(self):
        super()._validate_params()
        self._arguments()

    def _arguments(self):
        """Names of what the query takes beside the data, all the way down."""
        strategy = self.query_strategy
        query = getattr(strategy, "query", None)
        if isinstance(strategy, type) or query is None:
            raise TypeError(
                "'query_strategy' must be an instance of a pool strategy of "
                f"scikit-activeml, got {strategy!r}. Pass one, such as "
                "skactiveml.pool.UncertaintySampling()."
            )
        names = _parameters(strategy)
        if not names >= _GIVEN or "annotators" in names:
            raise TypeError(
                "'query_strategy' must be a strategy for a pool and one annotator, "
                f"got {strategy!r}, whose query takes {', '.join(sorted(names))}. Use "
                "one of skactiveml.pool."
            )
        names -= _GIVEN
        for name in ("clf", "ensemble", "discriminator", "reg"):
            uses = {argument for argument, (own, _) in _MODELS.items() if own == name}
            if getattr(self, name) is not None and not names & uses:
                raise ValueError(
                    f"{name!r} is given, and the query of {strategy!r} takes none, but "
                    f"{', '.join(sorted(names & set(_MODELS))) or 'no model'}. Leave "
                    "it out."
                )
        return names

    def _models(self, names):
        """For each model that the query takes, the argument and our parameter."""
        models = set(_MODELS) & names - set(self.query_params or {})
        return {name: getattr(self, _MODELS[name][0]) for name in sorted(models)}

    def _make_models(self, names, given):
        """Make what the query takes of our parameters and of the learner's model."""
        made = {}
        # What trains more models wants to have trained the first one too.
        trains = "ignore_partial_fit" in names or "reg" in names
        for name, value in self._models(names).items():
            if isinstance(value, list | tuple):
                made[name] = [given.wrap(member) for member in value]
            elif value is not None:
                made[name] = given.wrap(value)
            elif name == "discriminator":
                made[name] = given.wrap(LogisticRegression(max_iter=1000))
            elif trains:
                made[name] = given.unfitted()
            else:
                made[name] = given.bag() if name == "ensemble" else given.fitted()
                made[f"fit_{name}"] = False
        return {**made, **(self.query_params or {})}


def _parameters(strategy):
    """Names that a query takes, those that it hands on to an inner one included."""
    parameters = inspect.signature(strategy.query).parameters
    names = set(parameters)
    hands_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    inner = getattr(strategy, "query_strategy", None)
    if hands_on and hasattr(inner, "query"):
        names |= _parameters(inner)
    return names
