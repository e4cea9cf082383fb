"""Uncertainty of predictions and of the model, and the random baseline."""

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._math import _scores
from .._math._joint import select_by_covariance, select_jointly
from .._math._neighbors import squared_norms
from .._math._scores import UNCERTAINTIES, Measure, stochastic_n, uncertainty
from .._utils._chunks import (
    chunk_size,
    chunks,
    concatenate_chunks,
    float_rows,
    map_chunks,
)
from .._utils._containers import as_list
from .._utils._labels import CLASSES, TARGETS
from .._utils._sklearn import (
    MOST,
    POSITIVE,
    POSITIVE_COUNT,
    POSITIVE_INT,
    Interval,
    StrOptions,
)
from ..registry import PointwiseStrategy, Strategy

Selection = Literal["top", "power", "softmax"]


class Random(PointwiseStrategy):
    """Query candidates at random, each with the same probability.

    The baseline for every other strategy.

    Notes
    -----
    Cost: O(n).

    When to use: as the baseline, before there is a model, and if labels must represent
    the pool, as for a test set.

    References
    ----------
    B. Settles, "Active learning literature survey", 2009, section 1.

    Examples
    --------
    The same seed draws the same items:

    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import Random
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), Random(), random_state=0)
    >>> learner = learner.fit([[-1.0], [1.0]], ["no", "yes"])
    >>> pool = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    >>> learner.query(pool, 2).tolist() == learner.query(pool, 2).tolist()
    True
    """

    def score(self, view: Any) -> NDArray:
        """Draw a uniform number for each position in the pool."""
        return view.uniform()


class _OfLabels(PointwiseStrategy):
    """Base of the measures that have a mean and a maximum over several labels."""

    _parameter_constraints = {"aggregate": [StrOptions({"mean", "max"})]}
    targets = CLASSES

    def __init__(self, *, aggregate: Literal["mean", "max"] = "mean") -> None:
        self.aggregate = aggregate


class Entropy(_OfLabels):
    """Query the candidates with the highest entropy of the prediction, -Σ p log p.

    For multi-label targets, the mean or maximum of the entropies of the labels.

    Parameters
    ----------
    aggregate : {"mean", "max"}, default="mean"
        How the entropies of the labels become one number, for multi-label targets.

    Notes
    -----
    Cost: O(n k) plus the prediction.

    When to use: if the probabilities of all classes matter. With many classes it also
    selects candidates whose two best classes are clearly separated from each other.

    References
    ----------
    B. Settles, "Active learning literature survey", 2009, section 3.1.

    A. Esuli, F. Sebastiani, "Active learning strategies for multi-label text
    classification", ECIR 2009, for several labels.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), strategy="entropy")
    >>> learner.fit([[-1.0], [1.0]], [0, 1]).query([[-2.0], [0.1], [3.0]], 1)
    array([1])
    """

    requires = frozenset({"proba"})

    def score(self, view: Any) -> NDArray:
        """Return the entropy in nats."""
        return uncertainty(view.proba, "entropy", view.target, self.aggregate)


class LeastConfidence(_OfLabels):
    """Query the candidates with the lowest highest class probability, 1 - max p.

    Also known as "variation_ratio". For multi-label targets, the mean or maximum of
    min(p, 1 - p) over the labels.

    Parameters
    ----------
    aggregate : {"mean", "max"}, default="mean"
        How the values of the labels become one number, for multi-label targets.

    Notes
    -----
    Cost: O(n k) plus the prediction.

    When to use: if only the predicted class matters.

    References
    ----------
    D. D. Lewis, W. A. Gale, "A sequential algorithm for training text classifiers",
    SIGIR 1994.

    L. C. Freeman, "Elementary applied statistics", 1965, for the variation ratio.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import LeastConfidence
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), LeastConfidence())
    >>> learner.fit([[-1.0], [1.0]], [0, 1]).query([[-2.0], [0.1], [3.0]], 1)
    array([1])
    """

    requires = frozenset({"proba"})

    def score(self, view: Any) -> NDArray:
        """Return 1 minus the highest probability."""
        return uncertainty(view.proba, "least_confidence", view.target, self.aggregate)


VariationRatio = LeastConfidence  # the other name of the measure


class Margin(_OfLabels):
    """Query the candidates with the smallest gap between the two best classes.

    It uses probabilities, or decision values for classifiers without them. For two
    classes the gap is the distance to the hyperplane. Also known as "breaking ties".

    For multi-label targets, the gap of a label is ``|2 p - 1|``, or its absolute
    decision value. Candidates have the mean of the gaps, or their minimum.

    Parameters
    ----------
    aggregate : {"mean", "max"}, default="mean"
        "mean" uses the mean gap of the labels, and "max" the smallest, the gap of the
        most uncertain label, for multi-label targets.

    Notes
    -----
    Cost: O(n k) plus the prediction.

    When to use: if a query must be fast. It is rarely worse than random.

    References
    ----------
    T. Scheffer, C. Decomain, S. Wrobel, "Active hidden Markov models for information
    extraction", IDA 2001.

    S. Tong, D. Koller, "Support vector machine active learning with applications to
    text classification", JMLR 2, 2001.

    K. Brinker, "On active learning in multi-label classification", 2006, for the
    smallest gap of several labels.

    Examples
    --------
    180 labels of handwritten digits, random ones and those of small margin:

    >>> from skactive import ActiveLearner, simulate
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_digits(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X / 16, y, random_state=0)
    >>> test = {"X_test": X_test, "y_test": y_test}
    >>> for strategy in ["random", "margin"]:
    ...     learner = ActiveLearner(
    ...         LogisticRegression(), strategy, batch_size=20, random_state=0
    ...     )
    ...     run = simulate(learner, X, y, n_initial=20, n_rounds=8, **test)
    ...     print(strategy, "above 93 %:", bool(run.scores[-1] > 0.93))
    random above 93 %: False
    margin above 93 %: True
    """

    requires = frozenset({"class_scores"})

    def score(self, view: Any) -> NDArray:
        """Return the negative gap between the two best classes."""
        if view.target == "multi-label":
            gaps = view.label_margins
            return -(gaps.min(axis=1) if self.aggregate == "max" else gaps.mean(axis=1))
        return -view.margins


class DisagreeWithMachine(PointwiseStrategy):
    """Query the candidates on which the model doubts the answer of a machine.

    The score is 1 minus the probability that the model gives the answer of the machine.
    Candidates without an answer have the lowest scores.

    Parameters
    ----------
    annotator : annotator
        The machine, such as a :class:`skactive.annotators.ColumnAnnotator`. It is asked
        about all candidates in each query: let it keep its answers.

    See Also
    --------
    skactive.LabelingSession.annotate : Uses answers of a machine in training.

    Notes
    -----
    Cost: O(n) plus the prediction, and the answers of the machine.

    When to use: to find errors of the machine. For the accuracy of the model, use
    `margin`: this strategy loses where a machine takes one class for another.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.annotators import ColumnAnnotator
    >>> from skactive.strategies import DisagreeWithMachine
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> pool = ["a good film", "a bad film", "good and bad"]
    >>> machine = ColumnAnnotator(pool, ["no", "no", "no"])
    >>> model = make_pipeline(CountVectorizer(), MultinomialNB())
    >>> learner = ActiveLearner(model, DisagreeWithMachine(machine))
    >>> learner = learner.fit(["good film", "bad film"], ["yes", "no"])
    >>> learner.query(pool, 1)
    array([0])
    """

    requires = frozenset({"proba"})

    def __init__(self, annotator: Any) -> None:
        self.annotator = annotator

    def score(self, view: Any) -> NDArray:
        """Return 1 minus the probability of the machine's answer, or -1."""
        answers = self.annotator.annotate(as_list(view.X))
        column = {label: j for j, label in enumerate(view.classes.tolist())}
        scores = np.full(len(answers), -1.0)
        for i, (label, _) in enumerate(answers):
            if label is not None:
                j = None if isinstance(label, list) else column.get(label)
                scores[i] = 1 - (0 if j is None else view.proba[i, j])
        return scores


class Density(PointwiseStrategy):
    """Query the candidates with the highest uncertainty times density.

    The score of a candidate is its uncertainty times a power of its information
    density, the mean cosine similarity of its features to those of all candidates,
    including itself. So uncertain outliers have low scores.

    Parameters
    ----------
    measure : {"entropy", "least_confidence", "margin"}, default="entropy"
        The uncertainty; "margin" is 1 minus the gap between the two best classes. For
        multi-label targets, the mean over the labels.
    beta : float, default=1.0
        The power, at least 0. With 0 only the uncertainty counts.
    similarity : {"cosine", "shifted"}, default="cosine"
        How similarities become nonnegative, as a power requires. "cosine" replaces a
        negative mean similarity by 0, which has no effect on nonnegative features such
        as counts. "shifted" uses (1 + cosine) / 2, which suits centered features.
    n_neighbors : int or None, default=None
        Number of most similar other candidates to average over. Defaults to the whole
        pool.

    Notes
    -----
    Cost: O(n d + n k) plus the prediction, as the mean cosine to all rows is the
    product with the mean of the unit rows. With `n_neighbors` O(n² d), only in the
    first query of a learner while the features stay the same.

    When to use: small batches from pools with outliers. Batches are not diverse, so
    large ones come from one dense region.

    References
    ----------
    B. Settles, M. Craven, "An analysis of active learning strategies for sequence
    labeling tasks", EMNLP 2008, section 3.4.

    J. Zhu et al., "Active learning with sampling by uncertainty and density for word
    sense disambiguation and text classification", COLING 2008, for `n_neighbors`.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import Density
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), strategy=Density())
    >>> learner = learner.fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> learner.query([[-3.0, -3.0], [1.0, 0.8], [4.0, 0.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        "measure": [StrOptions(set(UNCERTAINTIES))],
        "beta": [Interval(Real, 0, np.inf, closed="left")],
        "similarity": [StrOptions({"cosine", "shifted"})],
        "n_neighbors": [POSITIVE_INT, None],
    }
    requires = frozenset({"proba", "features"})
    targets = CLASSES

    def __init__(
        self,
        measure: Measure = "entropy",
        *,
        beta: float = 1.0,
        similarity: Literal["cosine", "shifted"] = "cosine",
        n_neighbors: int | None = None,
    ) -> None:
        self.measure = measure
        self.beta = beta
        self.similarity = similarity
        self.n_neighbors = n_neighbors

    def score(self, view: Any) -> NDArray:
        """Return uncertainty times density to the power of beta."""
        uncertain = uncertainty(view.proba, self.measure, view.target)
        similarity = self._similarity(view)
        if self.similarity == "shifted":
            similarity = (1 + similarity) / 2
        return uncertain * np.maximum(similarity, 0) ** self.beta

    def _similarity(self, view):
        if self.n_neighbors is None:
            return _mean_similarity(float_rows(view.features), view.n_jobs)
        cosines, _ = view.similar(self.n_neighbors)
        if cosines is None:
            features = float_rows(view.features)
            return _neighbor_similarity(features, self.n_neighbors, view.n_jobs)
        return cosines.mean(axis=1) if cosines.size else np.zeros(len(view))


def _row_bytes(X):
    """Return the memory of a row and its squares."""
    filled = 3 * X.nnz // X.shape[0] if sparse.issparse(X) else X.shape[1]
    return 2 * X.dtype.itemsize * filled


def _unit(X):
    """Scale rows to length 1; rows of zeros stay."""
    lengths = np.sqrt(squared_norms(X))
    factors = 1 / np.where(lengths > 0, lengths, 1)
    if sparse.issparse(X):
        return sparse.diags_array(factors).tocsr() @ X
    return X * factors[:, None]


def _mean_similarity(X, n_jobs):
    """Return the mean cosine of each row to all rows, itself included."""
    n = X.shape[0]
    size = chunk_size(_row_bytes(X))

    def add(rows):
        part = X[rows]
        lengths = np.sqrt(squared_norms(part))
        factors = 1 / np.where(lengths > 0, lengths, 1)
        return factors, part.T @ factors

    factors, sums = zip(*map_chunks(add, n, size, n_jobs), strict=True)
    mean = np.sum(sums, axis=0, dtype=np.float64) / n

    def compare(rows):
        return X[rows] @ mean.astype(X.dtype)

    products = concatenate_chunks(compare, n, size, n_jobs)
    return products * np.concatenate(factors)


def _neighbor_similarity(X, n_neighbors, n_jobs):
    """Return the mean cosine of each row to the most similar other rows."""
    n = X.shape[0]
    keep = min(n_neighbors, n - 1)
    if keep == 0:
        return np.zeros(n)

    def compare(rows):
        left = _unit(X[rows])
        best = np.empty((rows.stop - rows.start, 0), dtype=X.dtype)
        for columns in chunks(n, 2048):
            block = left @ _unit(X[columns]).T
            block = block.toarray() if sparse.issparse(block) else block
            own = np.arange(
                max(rows.start, columns.start), min(rows.stop, columns.stop)
            )
            block[own - rows.start, own - columns.start] = -np.inf
            best = np.concatenate([best, block], axis=1)
            if best.shape[1] > keep:
                best.partition(best.shape[1] - keep, axis=1)
                best = best[:, -keep:]
        return best.mean(axis=1)

    return concatenate_chunks(compare, n, 1024, n_jobs)


class _Draws(PointwiseStrategy):
    """Base of the pointwise strategies on posterior draws: how a batch is selected."""

    _parameter_constraints = {
        "n_draws": [POSITIVE_COUNT],
        "selection": [StrOptions({"top", "power", "softmax"})],
        "coldness": [POSITIVE],
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
        self, n_draws: int = 50, *, selection: Selection = "top", coldness: float = 1.0
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
        measure: Measure = "entropy",
        selection: Selection = "top",
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
        "n_samples": [POSITIVE_COUNT],
        "noise": [POSITIVE, StrOptions({"auto"})],
    }
    requires = frozenset({"draws"})
    targets = frozenset({"single-label", "regression"})

    def __init__(
        self,
        n_draws: int = 50,
        *,
        n_samples: int = 4096,
        noise: float | Literal["auto"] = "auto",
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
