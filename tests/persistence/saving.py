"""Learners to save, and changes to what was saved that its manifest agrees with."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, load, save
from skactive.persistence import _folder as folder_module

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "warm", "cold")
TEXTS = ["a good film", "a bad film", "good", "bad", "so good", "so bad"]
LABELS = ["+", "-", "+", "-", "+", "-"]


def _learner(**params):
    return ActiveLearner(LogisticRegression(), batch_size=4, random_state=3, **params)


def _round_trip(estimator, tmp_path, **params):
    return load(save(estimator, tmp_path / "saved", **params))


def _rewrite(folder, name, change):
    """Change a JSON file of a saved folder, and the manifest to fit."""
    folder = Path(folder)
    content = json.loads((folder / name).read_text())
    content = change(content) or content
    (folder / name).write_text(json.dumps(content))
    _reseal(folder, name)


def _reseal(folder, name):
    manifest = json.loads((Path(folder) / "manifest.json").read_text())
    if name in manifest["files"]:
        digest = folder_module._digest(Path(folder) / name)
        manifest["files"][name]["sha256"] = digest
        (Path(folder) / "manifest.json").write_text(json.dumps(manifest))


def _as_frame(texts):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"text": texts, "n": [len(t) for t in texts]})


def _as_csr(texts):
    return TfidfVectorizer().fit_transform(texts)


def _by_first(view):
    return -view.proba[:, 0]


class Mine(BaseEstimator):
    """An estimator of a user's own."""

    def fit(self, X, y=None):
        return self
