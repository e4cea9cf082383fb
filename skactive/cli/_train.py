"""The model of the commands `label` and `label-studio`, and its last training."""

import sys
import time

from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from .._text_classifier import (
    make_fine_tuned_classifier,
    make_text_classifier,
    packaged_model,
)
from .._utils._labels import list_classes
from ..bert import BertFeatures, open_checkpoint
from ..datasets._label_cells import to_indicator
from ..registry import get_strategy
from ._options import say

# Fine-tuning was measured with so few classes, and pays from about so many labels.
_LEAST_TO_FINE_TUNE, _MOST_CLASSES = 100, 20
# With 300 and 1,000 labels of 12 classes of GoEmotions, several classes per text, the
# frozen encoder was better: micro F1 .37 and .38 against .32 and .29.
_LEAST_OF_SEVERAL = 5000


def make_model(args, folder, target="single-label"):
    """Return the model of the options, whose features are kept in `folder`."""
    get_strategy(args.strategy)
    model = args.model
    if model is None:
        model = packaged_model()  # checked, so that the first text need not wait
    else:
        open_checkpoint(model)
    options = {"cache": str(folder / "features"), "max_length": args.max_length}
    if target == "regression":
        features = BertFeatures(model, **options)
        return make_pipeline(features, Ridge())
    return make_text_classifier(model, target == "multi-label", **options)


def train_final(args, session, folder, data):
    """Return the model for all labels, and the names of its columns or None.

    The model is None without two different labels. `data` are labeled texts, their
    labels, and texts without a label.
    """
    X, y, rest = data
    if len(set(map(repr, y))) < 2:
        return None, None
    if session.models.encoded < 1:
        say("computing the features of the other texts; Ctrl-C leaves them blank")
    while session.models.encoded < 1:
        if sys.stderr.isatty():
            say(f"{session.models.encoded:.0%}", end="\r")
        time.sleep(0.2)
    if session.labels:
        say(f"training the model on {len(y):,} labels; Ctrl-C leaves out predictions")
        session.refit()
    model, classes = session.learner.estimator_, session.models.newest().classes
    several = session.target == "multi-label"
    least = _LEAST_OF_SEVERAL if several else _LEAST_TO_FINE_TUNE
    few = len(y) < least or session.target == "regression"
    n_classes = len(set(list_classes(y)))
    if args.no_fine_tuning or few or n_classes > _MOST_CLASSES:
        return model, classes
    try:
        if several:
            return _fine_tune_several(args, folder, X, y, classes), classes
        return _fine_tune(args, folder, X, y, rest), None
    except KeyboardInterrupt:
        say("stopped; the model of the session is kept")
        return model, classes


def _make_final(args, folder, n_labels, **options):
    """Return the classifier to fine-tune."""
    say(f"fine-tuning on {n_labels:,} labels; Ctrl-C keeps the model of the session")
    return make_fine_tuned_classifier(
        make_model(args, folder).steps[0][1].model,
        max_length=args.max_length,
        random_state=0,
        **options,
    )


def _fine_tune_several(args, folder, X, y, classes):
    """Return the fine-tuned encoder for several classes per text."""
    encoder = _make_final(args, folder, len(y), multi_label=True)
    return encoder.fit(X, to_indicator(y, classes)[0])


def _fine_tune(args, folder, X, y, rest):
    """Return the fine-tuned encoder; it also learns from the model of the session."""
    tuned = _make_final(args, folder, len(y), teacher=make_model(args, folder))
    return tuned.fit(X, y, X_unlabeled=rest)
