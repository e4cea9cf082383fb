"""Learners and classifiers to save, and changes to saved folders."""

import json
from pathlib import Path

import numpy as np
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


def _reseal(folder, name=None):
    """Update the manifest for one file, or list all files again."""
    path = Path(folder) / "manifest.json"
    manifest = json.loads(path.read_text())
    found = folder_module.list_files(Path(folder))
    found = {name: x for name, x in found.items() if folder_module.is_read(name)}
    found.pop("manifest.json")
    if name is not None:
        found = {name: found[name]} if name in manifest["files"] else {}
    else:
        manifest["files"] = {}
    for each, file in found.items():
        manifest["files"][each] = {"sha256": folder_module.hash_file(file)}
    path.write_text(json.dumps(manifest))


def _as_csr(texts):
    return TfidfVectorizer().fit_transform(texts)


def _by_first(view):
    return -view.proba[:, 0]


class Mine(BaseEstimator):
    """An estimator of a user's own."""

    def fit(self, X, y=None):
        return self


# Fine-tuned classifiers

FILMS = [
    "the film is a joy",
    "a dull and slow film",
    "stocks fell again on friday",
    "the team won the match",
    "a joy of a film",
    "a slow and dull match",
]
VERDICTS = ["good", "bad", "bad", "good", "good", "bad"]

SMALL = {"max_epochs": 2, "batch_size": 3, "lr": 0.01, "random_state": 0}


def _classifier(model, **params):
    """Return a classifier that trains in a moment."""
    from skactive.bert import BertClassifier

    return BertClassifier(model, **{**SMALL, **params})


def _change_object(folder, change):
    """Change the object file in place, and list all files again."""
    path = folder / "object.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    _reseal(folder)
