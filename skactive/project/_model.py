"""The model of a project: when fine-tuning pays, its last training, what is saved."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from .._storage._files import write_atomic
from .._tables._labels import to_indicator
from .._utils._labels import list_classes
from .._utils._pipelines import fit_last, seeded_clone, with_adapted
from ..bert import BertFeatures
from ..features import PrecomputedFeatures, StaticFeatures
from ..learner import ActiveLearner
from ..linear_model import FewLabelClassifier, TunedOneVsRestClassifier
from ..persistence import disarm, save
from ..registry import get_strategy
from ..semi_supervised import (
    make_final_classifier,
    make_fine_tuned_classifier,
    make_text_classifier,
    packaged_model,
)
from ..session import read_manifest

LOG = logging.getLogger("skactive.project")
NEEDED = {
    "single-label": "labels of two classes",
    "multi-label": "two texts with different classes",
    "regression": "two different numbers",
}
# Fine-tuning was measured with so few classes, and pays from about so many labels.
_LEAST_TO_FINE_TUNE, _MOST_CLASSES = 100, 20
# On eight data sets, one seed each, a fine-tuned part next to one that has learned from
# contrasts lost 1.5 points with 50 labels and gained 1.3 with 200, neither significant.
_LEAST_WITH_ADAPTED = 200
_MORE_TO_ADAPT = 1.5  # an encoder learns again from so many times the labels
# With 300 and 1,000 labels of 12 classes of GoEmotions, several classes per text, the
# frozen encoder was better: micro F1 .37 and .38 against .32 and .29.
_LEAST_OF_SEVERAL = 5000


class Trainer:
    """The model of a folder: its learner, its last training, and what is saved.

    `target` is that of the labels. After `train`, `model` is None without two different
    labels, `classes` names the columns of a model of several classes per text, and
    `is_final` is False if fine-tuning was stopped.
    """

    model: Any = None
    classes: list | None = None
    is_final = True
    cache: Path | None = None  # of features, if it is in another folder

    def __init__(self, settings, target, folder):
        self.settings, self.target, self.folder = settings, target, folder

    def make_learner(self):
        """Return an ActiveLearner, whose features are kept in the folder."""
        name = self.find_strategy()
        get_strategy(name)  # checked before any work
        return ActiveLearner(self._make_model(), name, random_state=0)

    def find_strategy(self):
        """Return the name of the strategy; None stands for the default of a target."""
        numeric = self.target == "regression"
        return self.settings.strategy or ("lcmd" if numeric else "uherding")

    def _make_model(self):
        target, settings = self.target, self.settings
        if settings.adapt and target == "regression":
            raise ValueError("'adapt' must be None or False for numbers, got True.")
        encoders = self._list_encoders()
        if len(encoders) > 1 and target == "regression":
            raise ValueError(
                f"'model' must be one encoder for numbers, got {encoders!r:.100}."
            )
        if settings.features is not None:
            return self._make_head()
        models = encoders or [packaged_model()]
        # What a user names is checked; for the packaged encoder alone, the first text
        # need not wait for torch.
        for model in models if settings.dimensions else encoders:
            BertFeatures(model, dimensions=settings.dimensions).get_feature_names_out()
        names = ("max_length", "prompt", "dimensions")
        options = {name: getattr(settings, name) for name in names}
        options["cache"] = str(self.cache or self.folder / "features")
        if target == "regression":
            return make_pipeline(BertFeatures(models[0], **options), Ridge())
        options["adapt"] = self.adapts()
        model = models if len(models) > 1 else models[0]
        return make_text_classifier(model, target == "multi-label", **options)

    def _list_encoders(self):
        """Return the named encoders; without any, the default one is used."""
        named = self.settings.model or []
        return [named] if isinstance(named, str) else list(named)

    def adapts(self):
        """Whether the encoder learns from the labels; a session stays as it began."""
        if self.settings.features is not None:
            return False
        if self.settings.adapt is not None:
            return self.settings.adapt
        before = read_manifest(str(self.folder / "session"))
        if before is not None:
            return "AdaptedFeatures" in json.dumps(before["learner"])
        return self.target == "single-label"

    def _make_head(self):
        """Return a model over features that are there.

        It is trained on the labeled texts alone, so that no training reads the pool.
        """
        features = PrecomputedFeatures(str(Path(self.settings.features).expanduser()))
        if self.target == "regression":
            return make_pipeline(features, Ridge())
        if self.target == "multi-label":
            logistic = LogisticRegression(C=10, max_iter=1000)
            return make_pipeline(features, TunedOneVsRestClassifier(logistic))
        return make_pipeline(features, FewLabelClassifier())

    def train(self, session, data, begin=lambda step: None):
        """Train on all labels, and return the model.

        `data` are labeled texts, their labels, and texts without a label. `begin` is
        called with the name of each step.
        """
        X, y, X_unlabeled = data
        self.model, self.classes, self.is_final = None, None, True
        if len(set(map(repr, y))) < 2:
            LOG.info(f"no model yet: it needs {NEEDED[self.target]}")
            return None
        if session.encoded < 1:
            begin("features")
            LOG.info(
                "computing the features of the other texts; Ctrl-C leaves them blank"
            )
            while session._core.models.encode_more():
                LOG.debug(f"{session.encoded:.0%}")
        if session.labels:
            begin("training")
            LOG.info(
                f"training the model on {len(y):,} labels; Ctrl-C leaves out "
                "predictions"
            )
            session.refit()
        newest = session.newest_model
        if newest.learner is None:  # if nobody labeled, or features failed
            newest = session._core.models.train_now()
        self.model, self.classes = newest.learner.estimator_, newest.classes
        learned = newest.adapted or 0
        if learned and len(y) >= _MORE_TO_ADAPT * learned:
            learned = None  # the encoder learns again, from all labels
        is_tuned = self._pays(y, learned)
        if self.settings.fine_tuning and (is_tuned or learned is None):
            begin("fine-tuning")
            LOG.info(
                f"fine-tuning on {len(y):,} labels; Ctrl-C keeps the model of the "
                "session"
            )
            try:
                if self.target == "multi-label" and is_tuned:
                    self._fine_tune(X, y)
                else:
                    self._train_on_all(newest.learner, learned, is_tuned, X_unlabeled)
            except KeyboardInterrupt:
                LOG.info("stopped; the model of the session is kept")
                self.is_final = False
        return self.model

    def forecast(self, session, given, pace):
        """Return about how many minutes `train` takes, None if nothing tells it.

        `pace` are the seconds for each label in which the encoder learned before.
        """
        y = [*session.labels.values(), *given.values()]
        learned = session.newest_model.adapted or 0
        is_again = learned and len(y) >= _MORE_TO_ADAPT * learned
        is_tuned = self._pays(y, None if is_again else learned)
        if session.encoded < 1:
            return None
        if not self.settings.fine_tuning or not (is_again or is_tuned):
            return 1.0
        return pace and pace * len(y) / 60 + 1

    def _pays(self, y, learned):
        """Whether labels `y` fine-tune the encoder, next to what a session has learned.

        A session has `learned` from so many of them, None for all.
        """
        least = _LEAST_TO_FINE_TUNE if learned == 0 else _LEAST_WITH_ADAPTED
        if self.target == "multi-label":
            least = _LEAST_OF_SEVERAL
        return (
            self.settings.features is None
            and self.target != "regression"
            and len(y) >= least
            and len(set(list_classes(y))) <= _MOST_CLASSES
        )

    def _train_on_all(self, learner, learned, is_tuned, X_unlabeled):
        """Train the parts of the session's model again, and maybe one more."""
        estimator = with_adapted(learner.estimator, learned) or learner.estimator
        if is_tuned:
            encoder, options = self._describe_encoder()
            estimator = make_final_classifier(estimator, encoder, **options)
        final = seeded_clone(estimator, np.random.default_rng(0))
        # These labels have the order in which they came, as for the session.
        labeled = learner.X_labeled_, learner.y_labeled_
        self.model = fit_last(final, *labeled, X_unlabeled)

    def _fine_tune(self, X, y):
        encoder, options = self._describe_encoder()
        tuned = make_fine_tuned_classifier(encoder, multi_label=True, **options)
        self.model = tuned.fit(X, to_indicator(y, self.classes)[0])

    def _describe_encoder(self):
        options = {"max_length": self.settings.max_length, "random_state": 0}
        return (self._list_encoders() or [packaged_model()])[0], options

    def save(self, model, about, facts=None):
        """Save a model with its encoder, and return its folder.

        `about` says what it predicts, a dict, and `facts` are those of its model card.
        The encoder of features is added; if it is unknown, nothing is saved, and the
        folder is None.
        """
        if self.settings.features is not None:
            model = add_encoder(model, Path(self.settings.features).expanduser())
            if model is None:
                LOG.info(
                    "no model is saved: `skactive encode` did not write the features"
                )
                return None
        disarm(model)  # texts that are predicted later have no place among the features
        try:
            options = {"overwrite": True, "bundle": True, "facts": facts}
            saved = save(model, self.folder / "model", **options)
            content = json.dumps(about).encode("utf-8", "surrogatepass")
            write_atomic(self.folder / "model.json", content)
        except OSError as exc:
            reason = exc.strerror or exc
            raise OSError(
                f"the model in {str(self.folder)!r} was not saved: {reason}"
            ) from exc
        LOG.info(f"the model is in {saved}")
        return saved


def find_description(features):
    """Return the file next to a folder of features that says who wrote them."""
    return features.with_name(f"{features.name}.encoder.json")


def make_encoder(description):
    """Return the transformer of the options of `skactive encode`."""
    options = {name: value for name, value in description.items() if value is not None}
    if options.pop("static"):
        return StaticFeatures(**options)
    return BertFeatures(**options)


def add_encoder(model, features):
    """Return a trained model with the encoder of its features, None if it is unknown.

    `features` is the folder that `skactive encode` wrote.
    """
    path = find_description(features)
    if not path.is_file():
        return None
    try:
        encoder = make_encoder(json.loads(path.read_bytes()))
    except (ValueError, LookupError, TypeError) as exc:
        raise ValueError(
            f"{str(path)!r} must be what `skactive encode` wrote, got a damaged file "
            f"({exc}). Restore it, or run the same `skactive encode` again."
        ) from exc
    return make_pipeline(encoder, model.steps[-1][1])
