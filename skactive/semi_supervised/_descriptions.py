"""A classifier that learns from descriptions of the classes as well."""

from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import brentq
from sklearn.base import clone

from .._math._calibration import assign_folds
from .._utils._bases import fit_context
from .._utils._containers import (
    as_texts,
    concatenate,
    count_items,
    read_items,
    take_rows,
)
from .._utils._format import brief
from .._utils._labels import as_labels
from .._utils._pipelines import (
    computes_features,
    fit_last,
    seeded_clone,
    split_estimator,
)
from .._utils._repeatable import base_seed, round_rng
from .._utils._sklearn import (
    HasMethods,
    Interval,
    StrOptions,
    check_sample_weight,
)
from ..linear_model import agreement, held_out_loss
from ._self_training import Calibrated, soften

_WEIGHT = 3.0  # of the descriptions of a class, in labels
_WEIGHTS = (0.0, 1.0, _WEIGHT, 10.0)  # that are compared
_PRIOR = 0.5  # of the way from chance to 1, the accuracy of descriptions alone
_PRIOR_LABELS = 10  # that this accuracy counts for
_ENOUGH = 50  # held-out labels, from which on the estimator calibrates itself
_CALIBRATED = 500  # unlabeled items that a temperature is found with
_ROUNDING = 1e-6  # of the agreement per label
_MACHINE_WEIGHTS = 0.0, 1.0, 3.0, 10.0, 30.0  # of a machine's texts, compared
_MOST_MACHINE = 2000  # of them that are used


class ClassDescriptions(Calibrated):
    """Classifier of texts that also learns from descriptions of its classes.

    The name and the descriptions of each class are texts with a known label. They are
    added to the training data with a weight that cross-validation chooses on the
    labels of people. So a model predicts from the first label on, or without any, and
    misleading descriptions are ignored. Texts that a machine labeled, such as a
    language model, are used in the same way, with a weight of their own.

    Parameters
    ----------
    estimator : classifier
        A classifier of texts, such as :func:`make_text_classifier` returns. Its `fit`,
        or that of a pipeline's last step, takes `sample_weight`.
    descriptions : sequence of labels, or dict of label to str or list of str
        The classes, and what describes each: a sentence, or several examples. Names are
        read as descriptions too: "lost_luggage" as "lost luggage". Labels that are no
        names need a description.
    weight : "auto" or float, default="auto"
        Total weight of the texts of a class, in labels. "auto" is 3, unless another
        one predicts held-out labels better; 0 ignores the descriptions. "auto" needs a
        pipeline whose first steps compute features without training, such as
        `BertFeatures`; otherwise it is 3.
    machine_texts : dict of label to sequence of str or None, default=None
        Texts that a machine gave each label. Texts that are in `X` are left out, and at
        most 2,000 are drawn. The texts of a class weigh 0, 1, 3, 10 or 30 labels
        together: the weight that predicts held-out labels best; 0 where nothing can be
        compared. They need a pipeline as "auto" does. :func:`skactive.save` leaves them
        out.
    adapt : bool, default=False
        Whether :class:`skactive.bert.AdaptedFeatures` also learns from descriptions and
        machine texts. By default it learns from the labels of people only.
    n_splits : int, default=5
        Number of folds of the choice.
    random_state : int, RandomState instance or None, default=None
        Determines the folds and each `random_state` of `estimator` that is None.

    Attributes
    ----------
    estimator_ : classifier
        The fitted clone of `estimator`.
    weight_ : float
        The weight that was used.
    machine_weight_ : float
        The weight of the texts of a class that a machine labeled.
    temperature_ : float
        The logarithms of the probabilities of `estimator_` are divided by it. With
        fewer than 50 held-out labels, it makes the mean confidence on `X_unlabeled`, or
        without it on the descriptions, at most the accuracy that is expected; else it
        is 1.
    reason_ : str
        Why the descriptions are used or ignored, a sentence.
    classes_ : ndarray of shape (k,)
        The classes: those of the labels and, unless `weight_` is 0, all described ones.

    See Also
    --------
    make_text_classifier : A classifier of texts for few labels.

    Notes
    -----
    The choice has two steps. Descriptions are ignored if a model of the descriptions
    alone gives the labels of people a lower score than the other classes, on average.
    Else the weights 0, 1, 3 and 10 are compared by the log loss of held-out labels, at
    the best temperature; 3 is kept unless another weight is better by more than 1 nat
    in total. With the weight 0, a class that no other label has gets its share of the
    probability that Good and Turing give to what has not been seen. Without labels of
    two classes nothing is compared and the descriptions are used.

    The expected accuracy is that of the held-out labels, together with 10 labels of the
    accuracy 1 / k + (1 - 1 / k) / 2 for k classes, about the mean of descriptions alone
    on the data sets of ``benchmarks/labels_needed.py``.

    A class without labels can be predicted, since its descriptions are training data.

    The weight of a machine's texts is chosen after that of the descriptions, and is 0
    unless another one is better by more than 1 nat. Every text of a class has the same
    share of it, so that a class that the machine overlooks weighs as much as the
    others. A machine that contradicts people gets the weight 0.

    References
    ----------
    I. J. Good (1953). The population frequencies of species and the estimation of
    population parameters. Biometrika 40.

    W. Yin, J. Hay, D. Roth (2019). Benchmarking zero-shot text classification:
    datasets, evaluation and entailment approach. EMNLP.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive import ClassDescriptions
    >>> words = make_pipeline(HashingVectorizer(), LogisticRegression())
    >>> model = ClassDescriptions(
    ...     words, {"sport": "games, teams and matches", "money": "banks and markets"}
    ... )
    >>> model.fit([], []).predict(["the teams play", "markets fall"]).tolist()
    ['sport', 'money']
    """

    __metadata_request__fit = {"X_unlabeled": True}
    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "descriptions": ["array-like", dict],
        "weight": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "machine_texts": [dict, None],
        "adapt": ["boolean"],
        "n_splits": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        descriptions: Any,
        *,
        weight: float | Literal["auto"] = "auto",
        machine_texts: dict[Any, Any] | None = None,
        adapt: bool = False,
        n_splits: int = 5,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.descriptions = descriptions
        self.weight = weight
        self.machine_texts = machine_texts
        self.adapt = adapt
        self.n_splits = n_splits
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: "ArrayLike",
        sample_weight: "ArrayLike | None" = None,
        X_unlabeled: Any = None,
    ) -> Self:
        """Train on labels and descriptions.

        Parameters
        ----------
        X : container of n texts
            May be empty.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the labels. Defaults to 1.
        X_unlabeled : container of texts or None, default=None
            Passed to `estimator` if its `fit` takes it.

        Returns
        -------
        self : ClassDescriptions
            The fitted estimator.

        Raises
        ------
        ValueError
            If a class has no description, fewer than two classes are described, or a
            label of `machine_texts` is not described.
        """
        is_empty = hasattr(X, "__len__") and len(X) == 0
        X, n = (X, 0) if is_empty else read_items(X)
        described, texts = _read_descriptions(self.descriptions)
        y = as_labels(y, n) if n else np.array([], dtype=np.array(described).dtype)
        is_text = y.dtype.kind == "U"  # of a length that other names may exceed
        names = np.array(described, dtype=None if is_text else y.dtype)
        seed = base_seed(self.random_state)
        weight = np.ones(n)
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, np.empty((n, 0)))
        described = texts, names, _share(names)
        machine = self._read_machine(X if n else [], names, seed)
        held = self._choose((X, y, weight), described, machine, seed)
        sources = (self.weight_, described), (self.machine_weight_, machine)
        for source_weight, source in sources:
            if source_weight:
                X = concatenate(X, source[0]) if len(y) else source[0]
                y = np.concatenate([y, source[1]])
                weight = np.concatenate([weight, source_weight * source[2]])
        params: dict[str, Any] = {"n_labeled": len(y) if self.adapt else n}
        if len(y) > n or sample_weight is not None:
            params["sample_weight"] = weight
        model = seeded_clone(self.estimator, np.random.default_rng(seed))
        self.estimator_ = fit_last(model, X, y, X_unlabeled, **params)
        self.classes_ = self.estimator_.classes_
        self.temperature_ = 1.0
        if len(y) > n:
            items = texts if X_unlabeled is None else X_unlabeled
            self.temperature_ = self._find_temperature(items, held, seed)
        return self

    def _find_temperature(self, items, held, seed):
        """Return the temperature by what is known about the accuracy on items.

        `held` is how many held-out labels were predicted, and how many of them right.
        Folds of nearly equal descriptions are predicted too well to calibrate with, and
        folds of a machine's labels only show how well the machine is predicted.
        """
        n_held, n_right = held
        k, n = len(self.classes_), count_items(items)
        if n_held >= _ENOUGH and not self.machine_weight_:
            return 1.0
        prior = 1 / k + _PRIOR * (1 - 1 / k)
        expected = (_PRIOR_LABELS * prior + n_right) / (_PRIOR_LABELS + n_held)
        rows = np.random.default_rng(seed).permutation(n)[:_CALIBRATED]
        proba = self.estimator_.predict_proba(take_rows(items, rows))

        def excess(temperature):
            return soften(proba, temperature).max(axis=1).mean() - expected

        highest = 1000.0
        if excess(1.0) > 0 > excess(highest):
            return float(brentq(excess, 1.0, highest))
        return 1.0

    def _read_machine(self, X, names, seed):
        """Return texts that a machine labeled, labels and shares; None if none is left.

        Texts of `X` are left out: the label of a person counts.
        """
        pairs, labeled_texts = [], set(as_texts(X)) if len(X) else ()
        for label, texts in (self.machine_texts or {}).items():
            if label not in names:
                raise ValueError(
                    "'machine_texts' must have labels that 'descriptions' has, got "
                    f"{label!r}. Describe it, or leave its texts out."
                )
            texts = as_texts(texts, name="machine_texts") if len(texts) else ()
            pairs += [(label, text) for text in texts if text not in labeled_texts]
        if not pairs:
            return None
        rows = round_rng(seed, 0, "machine").permutation(len(pairs))[:_MOST_MACHINE]
        labels, texts = zip(*(pairs[row] for row in np.sort(rows)), strict=True)
        labels = np.array(labels, dtype=names.dtype)
        return list(texts), labels, _share(labels)

    def _choose(self, labels, described, machine, seed):
        """Set `weight_`, `machine_weight_` and `reason_` by held-out labels.

        The arguments are tuples of items, labels and weights. Return how many labels
        were held out, and how many were predicted right.
        """
        is_auto, (X, y, weight) = self.weight == "auto", labels
        self.weight_ = _WEIGHT if is_auto else float(self.weight)
        self.machine_weight_, held = 0.0, (0, 0)
        reason = ""
        if len(np.unique(y)) < 2:
            reason = "used: there are no labels of two classes to compare"
        elif not computes_features(self.estimator):
            reason = "used: no step computes features for a comparison"
        self.reason_ = reason if is_auto else "the weight was given"
        if reason or not (is_auto or machine):
            return held
        front = split_estimator(clone(self.estimator))[0]
        rows = [front.fit_transform(described[0]), front.transform(X)]
        rows += [front.transform(machine[0])] if machine else []
        if sparse.issparse(rows[0]):
            rows = _as_dense(*rows)
        described, labeled = (rows[0], *described[1:]), (rows[1], y, weight)
        codes = np.unique(y, return_inverse=True)[1]
        folds = assign_folds(codes, self.n_splits, seed, least=1)
        if is_auto:
            held = self._choose_weight(labeled, described, folds)
        if machine:
            machine = rows[2], *machine[1:]
            before = *described[:2], self.weight_ * described[2]
            self.machine_weight_, _, *held = _choose_weight(
                _MACHINE_WEIGHTS, 0.0, labeled, before, machine, folds
            )
        return held

    def _choose_weight(self, labeled, described, folds):
        """Set `weight_` and `reason_`; return how many were held out, and right."""
        if agreement(described, labeled) <= _ROUNDING * labeled[2].sum():
            self.weight_ = 0.0
            self.reason_ = "ignored: a model of them alone disagrees with the labels"
            return 0, 0
        nothing = tuple(part[:0] for part in described)
        self.weight_, gain, *held = _choose_weight(
            _WEIGHTS, _WEIGHT, labeled, nothing, described, folds
        )
        self.reason_ = "ignored: without them, held-out labels are predicted better"
        if self.weight_ and gain > 0:
            self.reason_ = "used: with them, held-out labels are predicted better"
        elif self.weight_:
            self.reason_ = "used: without them, predictions are not clearly better"
        return held


def _choose_weight(weights, first, labeled, before, source, folds):
    """Return the weight of a source that predicts held-out labels best.

    `labeled`, `before` and `source` are tuples of rows, labels and weights; `before` is
    used with every weight. `first` is kept unless another one is better by 1 nat. Also
    return how many nats the loss is below the loss with the weight 0, the number of
    held-out labels, and how many of them are predicted right.
    """
    losses = {}
    for each in weights:
        weighed = *source[:2], each * source[2]
        described = tuple(map(np.concatenate, zip(before, weighed, strict=True)))
        losses[each] = held_out_loss(labeled, described, folds)
    best = min(weights, key=lambda each: losses[each][0] - (each == first))
    return best, losses[0][0] - losses[best][0], *losses[best][1:]


def _share(labels):
    """Return weights (n,) of texts, whose sum is 1 for each label."""
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return 1 / counts[codes]


def _as_dense(*parts):
    """Return dense rows with the inner products of sparse ones."""
    rows = sparse.vstack(parts)
    values, vectors = np.linalg.eigh((rows @ rows.T).toarray())
    dense = vectors * np.sqrt(np.maximum(values, 0))
    return np.split(dense, np.cumsum([part.shape[0] for part in parts])[:-1])


def _read_descriptions(descriptions):
    """Return the labels of the descriptions and their texts, two lists."""
    named = (
        descriptions if isinstance(descriptions, dict) else dict.fromkeys(descriptions)
    )
    if len(named) < 2:
        raise ValueError(
            "'descriptions' must describe at least two classes, got "
            f"{brief(descriptions)}."
        )
    labels, texts = [], []
    for label, phrases in named.items():
        phrases = [phrases] if isinstance(phrases, str) else list(phrases or ())
        if odd := [x for x in phrases if not isinstance(x, str)]:
            raise TypeError(
                f"'descriptions' must hold texts, got {odd[0]!r} for {label!r}."
            )
        phrases = [text.strip() for text in phrases if text.strip()]
        if isinstance(label, str) and (name := label.replace("_", " ").strip()):
            phrases = [name, *phrases, *(f"{name}: {text}" for text in phrases[:1])]
            phrases += [f"{name}?"] * (len(phrases) == 1)
        if not phrases:
            raise ValueError(
                f"'descriptions' must have a text for each class, got none for "
                f"{label!r}. Pass a dict of class to description."
            )
        labels += [label] * len(phrases)
        texts += phrases
    return labels, texts
