"""The recommended pipeline for the active learning loop."""

import os
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from ._utils._sklearn import check_bool
from .bert._features import BertFeatures
from .linear_model import FewLabelClassifier, TunedOneVsRestClassifier
from .semi_supervised import SelfTraining


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
    skactive.bert.BertClassifier : Fine-tuning, for indicator matrices, too.

    Examples
    --------
    >>> from skactive import ActiveLearner, make_text_classifier
    >>> learner = ActiveLearner(make_text_classifier(max_length=64), batch_size=20)
    >>> [name for name, _ in learner.estimator.steps]
    ['bertfeatures', 'selftraining']
    """
    # The pooling of a sentence-transformers model is that of its last layer.
    pooling = "mean" if "layers" in options else "auto"
    options = {"normalize": True, "pooling": pooling, **options}
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
