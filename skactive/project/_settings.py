"""The model of the commands `label` and `label-studio`, and its last training."""

import sys
import time
from dataclasses import dataclass

from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from .._encoders._pretrained import open_checkpoint
from .._tables._labels import to_indicator
from .._utils._labels import list_classes
from ..bert import BertFeatures
from ..cli._parser import say
from ..features import PrecomputedFeatures
from ..learner import ActiveLearner
from ..linear_model import FewLabelClassifier, TunedOneVsRestClassifier
from ..registry import get_strategy
from ..semi_supervised import (
    make_final_classifier,
    make_fine_tuned_classifier,
    make_text_classifier,
    packaged_model,
)

# Fine-tuning was measured with so few classes, and pays from about so many labels.
_LEAST_TO_FINE_TUNE, _MOST_CLASSES = 100, 20
# With 300 and 1,000 labels of 12 classes of GoEmotions, several classes per text, the
# frozen encoder was better: micro F1 .37 and .38 against .32 and .29.
_LEAST_OF_SEVERAL = 5000


@dataclass(frozen=True)
class ModelSettings:
    """The target, the encoder and the strategy of a session.

    `features` is a folder of features that were computed before, or None.
    """

    target: str = "single-label"
    model: str | None = None
    max_length: int = 128
    prompt: str | None = None
    dimensions: int | None = None
    strategy: str | None = None
    features: str | None = None
    fine_tune: bool = True

    def find_strategy(self):
        """Return the name of the strategy; None stands for the default of a target."""
        numeric = self.target == "regression"
        return self.strategy or ("lcmd" if numeric else "uherding")


def one_or_several(names):
    """Return the name of one column, or a list of names."""
    return names[0] if len(names) == 1 else names


def encoder_options(settings):
    """Return the parameters of `BertFeatures` that the options of a command name."""
    names = ("max_length", "prompt", "dimensions")
    return {name: getattr(settings, name) for name in names}


def make_learner(settings, folder):
    """Return an ActiveLearner, whose features are kept in `folder`."""
    name = settings.find_strategy()
    get_strategy(name)  # checked before any work
    return ActiveLearner(make_model(settings, folder), name, random_state=0)


def make_model(settings, folder):
    """Return the model of settings, whose features are kept in `folder`."""
    target = settings.target
    if settings.features is not None:
        return _make_head(settings)
    model = settings.model
    if model is None:
        model = packaged_model()  # checked, so that the first text need not wait
    else:
        open_checkpoint(model)
    options = {"cache": str(folder / "features"), **encoder_options(settings)}
    if target == "regression":
        return make_pipeline(BertFeatures(model, **options), Ridge())
    return make_text_classifier(model, target == "multi-label", **options)


def _make_head(settings):
    """Return a model over features that are there.

    It is trained on the labeled texts alone, so that no training reads the pool.
    """
    features = PrecomputedFeatures(settings.features)
    if settings.target == "regression":
        return make_pipeline(features, Ridge())
    if settings.target == "multi-label":
        logistic = LogisticRegression(C=10, max_iter=1000)
        return make_pipeline(features, TunedOneVsRestClassifier(logistic))
    return make_pipeline(features, FewLabelClassifier())


def train_final(settings, session, folder, data, begin=lambda step: None):
    """Return the model for all labels, its columns or None, and whether it is final.

    The columns are names of several classes per text. The model is None without two
    different labels, and not final if its fine-tuning was stopped. `data` are labeled
    texts, their labels, and texts without a label. `begin` is called with the name of
    each step.
    """
    X, y, rest = data
    if len(set(map(repr, y))) < 2:
        return None, None, True
    if session.models.encoded < 1:
        begin("features")
        say("computing the features of the other texts; Ctrl-C leaves them blank")
    while session.models.encoded < 1:
        if sys.stderr.isatty():
            say(f"{session.models.encoded:.0%}", end="\r")
        time.sleep(0.2)
    if session.labels:
        begin("training")
        say(f"training the model on {len(y):,} labels; Ctrl-C leaves out predictions")
        session.refit()
    newest = session.models.newest()
    if newest.learner is None:  # if nobody labeled, or features failed
        newest = session.models.train_now()
    model, classes = newest.learner.estimator_, newest.classes
    if not _pays(settings, y):
        return model, classes, True
    begin("fine-tuning")
    say(f"fine-tuning on {len(y):,} labels; Ctrl-C keeps the model of the session")
    options = {"max_length": settings.max_length, "random_state": 0}
    encoder = settings.model or packaged_model()
    try:
        if settings.target == "multi-label":
            tuned = make_fine_tuned_classifier(encoder, multi_label=True, **options)
            return tuned.fit(X, to_indicator(y, classes)[0]), classes, True
        final = make_final_classifier(newest.learner.estimator, encoder, **options)
        return final.fit(X, y, X_unlabeled=rest), None, True
    except KeyboardInterrupt:
        say("stopped; the model of the session is kept")
        return model, classes, False


def _pays(settings, y):
    """Whether the encoder is fine-tuned with labels `y`."""
    several = settings.target == "multi-label"
    least = _LEAST_OF_SEVERAL if several else _LEAST_TO_FINE_TUNE
    return (
        settings.fine_tune
        and settings.features is None
        and settings.target != "regression"
        and len(y) >= least
        and len(set(list_classes(y))) <= _MOST_CLASSES
    )
