"""BertClassifier: a pretrained encoder, fine-tuned to classify."""

from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight

from .._utils._labels import as_labels
from .._utils._sklearn import StrOptions, check_sample_weight, fit_context
from .._utils._texts import as_texts
from ._base import BertEstimator
from ._inference import ProbabilitiesMixin
from ._surprisal import SurprisalMixin
from ._targets import encode_labels


class BertClassifier(
    ProbabilitiesMixin, SurprisalMixin, ClassifierMixin, BertEstimator
):
    """Fine-tune a pretrained encoder to classify texts or pairs of texts.

    Parameters
    ----------
    model : str or path-like, default="bert-base-uncased"
        Any encoder that `transformers.AutoModel` loads: a name on the hub, or a local
        folder with the model and its tokenizer. Code from the hub is never run.
    head : {"linear", "mlp", "cnn"} or class, default="linear"
        What stands on the encoder. "linear" is dropout and one linear layer, "mlp" has
        hidden layers, "cnn" convolutions over the tokens. A class of your own is a
        `torch.nn.Module` as `DenseHead` describes.
    head_params : dict or None, default=None
        Arguments for the head: `hidden_sizes` for "mlp"; `heights`, `n_maps` and
        `hidden_size` for "cnn".
    pooling : {"cls", "mean", "max", "last"}, default="cls"
        How the states of a text's tokens become one row: that of the first token,
        their mean, the largest value of each dimension, or that of the last token.
        "cls" is refused for decoders such as GPT-2, whose first token sees no other.
        The head "cnn" takes the states themselves.
    layers : int or sequence of int, default=-1
        Layers whose states the head takes; several are concatenated in the order
        given. 0 is the output of the embeddings, 1 the first layer, -1 the last.
        `(-4, -3, -2, -1)` are the last four.
    freeze : int or "all", default=0
        `F > 0` freezes the embeddings and the first `F` layers, `F < 0` the last `-F`
        layers, "all" the encoder, 0 nothing. The head always trains.
    dropout : float, default=0.1
        Rate in the head. The encoder keeps the rates of its configuration.
    mc_dropout : {"head", "gaussian", "full"} or None, default="head"
        Where dropout stays on in the draws: in the head, on one pass of the encoder,
        or in the whole network, one pass per draw. "gaussian", for the linear head,
        draws each text's outputs from the normal distribution with the exact moments
        of "head": scores of single texts hardly depend on the seed, even with few
        draws. None: there are no draws.
    n_draws : int, default=50
        How many draws unless told otherwise.
    max_length : int, default=128
        Tokens after which a text is cut, the special ones included.
    max_epochs : int, default=3
        Passes over the training texts.
    batch_size : int, default=16
        Texts per step.
    lr : float, default=2e-5
        Learning rate of AdamW.
    head_lr : float or None, default=None
        That of the head; None is `lr`.
    weight_decay : float, default=0.0
        Decoupled decay; biases and normalisations have none.
    schedule : {"linear", "polynomial"} or None, default=None
        Learning rate over the steps. None is constant. "linear" and "polynomial"
        decrease it to 0.
    power : float, default=1.0
        Exponent of the polynomial schedule. 1 is linear.
    warmup : float, default=0.0
        Part of the steps in which the rate rises from 0.
    max_grad_norm : float or None, default=1.0
        Longer gradients are scaled down to this length.
    early_stopping : bool, str, callable or None, default=None
        Whether to hold out validation texts, score them after each epoch, stop when
        the score no longer improves and restore the weights of the best epoch. True
        scores by accuracy. A str is the name of a scikit-learn scorer, such as "f1",
        "f1_macro" or "neg_log_loss". A callable is a scorer
        `scorer(estimator, X, y)`, for example from
        :func:`sklearn.metrics.make_scorer`.
    validation_fraction : float, default=0.1
        That part.
    n_iter_no_change : int, default=2
        Epochs in a row without a gain after which to stop.
    tol : float, default=1e-4
        A gain in score below this is none.
    classes : array-like or None, default=None
        All classes, where some may be missing from `y`. None takes those of `y`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    warm_start : bool, default=False
        Whether `fit` goes on from the present weights. Otherwise each `fit` starts from
        the pretrained ones.
    cache_frozen : bool, default=True
        Whether what the frozen bottom gives for a text is computed once, in evaluation
        mode, and kept. False runs every layer in every step, with the dropout of the
        frozen layers on.
    layers_attr : str or None, default=None
        Path of the layers within an encoder whose structure does not tell, such as
        `"encoder.layer"`.
    device : str, default="auto"
        "auto" takes CUDA, else MPS, else the processor; or any name torch knows.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Of matrix products; weights are float32. "auto" is bfloat16 on a GPU that has
        it, float32 elsewhere: on a processor that has it "bfloat16" is about 1.3 times
        as fast.
    callbacks : sequence of skorch callbacks or None, default=None
        More callbacks for the training.
    net_params : dict or None, default=None
        More arguments for `skorch.NeuralNet`, over those set here.
    revision : str or None, default=None
        Branch, tag or commit of the model on the hub.
    random_state : int, RandomState instance or None, default=None
        Seeds the head, the order of the texts, dropout and the draws. The global
        generators are neither read nor moved.
    verbose : int, bool or "auto", default="auto"
        Whether a bar on stderr shows the batches and the loss. "auto" shows it on an
        interactive terminal and in a notebook if training takes more than 3 seconds.
        0 or False never shows it, 1 or True always does.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes in the order of the columns of `predict_proba`; for an indicator
        matrix the numbers of its columns.
    net_ : skorch.NeuralNet
        The trained net; `net_.module_` is the network.
    history_ : list of dict
        For each epoch `epoch`, `train_loss`, `seconds` and `seconds_total` (since the
        start), and with early stopping `valid_loss` and `valid_score`.
    layer_changes_ : dict of str to ndarray
        `layer`, `part`, and `mean` and `variance` of the absolute change of the
        layer's parameters in `fit`. Exactly 0 for frozen layers. `layer` is the name
        of the part in the network, where "0" is the first layer of the encoder.

    See Also
    --------
    BertRegressor : The same for a number per text.
    BertFeatures : Features without training.

    Notes
    -----
    An indicator matrix as `y`, of shape (n, k) with 0 and 1, trains k independent
    outputs; `predict` then gives such a matrix and `predict_proba` the
    probability of each.

    Draws with `mc_dropout="head"` keep the encoder as it is, so they say less of its
    uncertainty than "full" does, at a small part of the cost. Each draw is one
    model: the same masks for every text. Not so with "gaussian", whose draws t of two
    texts belong to no common model; `draws_jointly` is False then, and strategies that
    look at batches, such as "batchbald", refuse it.

    A pickle holds the trained weights. Frozen ones and the tokenizer are loaded by
    `model` again, and the checkpoint has to be the one it was trained from.

    References
    ----------
    J. Devlin, M.-W. Chang, K. Lee, K. Toutanova (2019). BERT: Pre-training of deep
    bidirectional transformers for language understanding. NAACL.

    Y. Gal, Z. Ghahramani (2016). Dropout as a Bayesian approximation. ICML.

    S. I. Wang, C. D. Manning (2013). Fast dropout training. ICML.

    D. Griesshaber, J. Maucher, N. T. Vu (2020). Fine-tuning BERT for low-resource
    natural language understanding via active learning. COLING.

    Examples
    --------
    >>> from skactive.bert import BertClassifier
    >>> from sklearn.model_selection import GridSearchCV
    >>> search = GridSearchCV(BertClassifier(), {"freeze": [0, 3, -3, 6, -6]})
    >>> search.estimator.lr
    2e-05
    """

    _parameter_constraints = {
        **BertEstimator._parameter_constraints,
        "classes": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        model="bert-base-uncased",
        *,
        head="linear",
        head_params=None,
        pooling="cls",
        layers=-1,
        freeze=0,
        dropout=0.1,
        mc_dropout="head",
        n_draws=50,
        max_length=128,
        max_epochs=3,
        batch_size=16,
        lr=2e-5,
        head_lr=None,
        weight_decay=0.0,
        schedule=None,
        power=1.0,
        warmup=0.0,
        max_grad_norm=1.0,
        early_stopping=None,
        validation_fraction=0.1,
        n_iter_no_change=2,
        tol=1e-4,
        classes=None,
        class_weight=None,
        warm_start=False,
        cache_frozen=True,
        layers_attr=None,
        device="auto",
        precision="auto",
        callbacks=None,
        net_params=None,
        revision=None,
        random_state=None,
        verbose="auto",
    ):
        super().__init__(
            model,
            head=head,
            head_params=head_params,
            pooling=pooling,
            layers=layers,
            freeze=freeze,
            dropout=dropout,
            mc_dropout=mc_dropout,
            n_draws=n_draws,
            max_length=max_length,
            max_epochs=max_epochs,
            batch_size=batch_size,
            lr=lr,
            head_lr=head_lr,
            weight_decay=weight_decay,
            schedule=schedule,
            power=power,
            warmup=warmup,
            max_grad_norm=max_grad_norm,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            tol=tol,
            warm_start=warm_start,
            cache_frozen=cache_frozen,
            layers_attr=layers_attr,
            device=device,
            precision=precision,
            callbacks=callbacks,
            net_params=net_params,
            revision=revision,
            random_state=random_state,
            verbose=verbose,
        )
        self.classes = classes
        self.class_weight = class_weight

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
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
        go_on = self.warm_start and hasattr(self, "net_")
        return self._fit(X, y, sample_weight, self.classes, go_on, self.max_epochs)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Train on for one epoch.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
        y : array-like of shape (n,) or (n, k)
        classes : array-like or None, default=None
            All classes that will ever come; looked at in the first call only.
        sample_weight : array-like of shape (n,) or None, default=None

        Returns
        -------
        self : BertClassifier

        Notes
        -----
        `class_weight="balanced"` balances the labels of each call by themselves.
        """
        classes = self.classes if classes is None else classes
        return self._fit(X, y, sample_weight, classes, hasattr(self, "net_"), 1)

    def _fit(self, X, y, sample_weight, classes, go_on, n_epochs):
        import torch
        from torch import nn

        texts = as_texts(X)
        y = as_labels(y.toarray() if sparse.issparse(y) else y, len(texts))
        multilabel = y.ndim == 2
        if go_on and multilabel != self._multilabel:
            raise ValueError(
                "'y' must be of the kind that training began with, "
                f"{'an indicator matrix' if self._multilabel else 'labels'}. Call fit "
                "with warm_start=False for another kind."
            )
        found, codes = encode_labels(y, self.classes_ if go_on else classes)
        weights = sample_weight
        if self.class_weight is not None:
            weights = check_sample_weight(sample_weight, texts)
            weights = weights * compute_sample_weight(self.class_weight, y)
        return self._train(
            texts,
            torch.from_numpy(codes),
            weights,
            labels=y,
            fitted={"classes_": found, "_multilabel": multilabel},
            n_outputs=len(found),
            criterion=nn.BCEWithLogitsLoss if multilabel else nn.CrossEntropyLoss,
            stratify=None if multilabel else codes,
            go_on=go_on,
            n_epochs=n_epochs,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.transformer_tags.preserves_dtype = []
        return tags
