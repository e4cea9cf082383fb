"""A classifier that trains in a moment, and changes to the folder it was saved in."""

import json

from skactive.bert import BertClassifier
from skactive.persistence import _folder as folder_module

TEXTS = [
    "the film is a joy",
    "a dull and slow film",
    "stocks fell again on friday",
    "the team won the match",
    "a joy of a film",
    "a slow and dull match",
]
LABELS = ["good", "bad", "bad", "good", "good", "bad"]

SMALL = {"max_epochs": 2, "batch_size": 3, "lr": 0.01, "random_state": 0}


def _classifier(model, **params):
    return BertClassifier(model, **{**SMALL, **params})


def _reseal(folder):
    """Make the manifest fit what lies in the folder."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    found = folder_module._list_files(folder)
    found.pop("manifest.json")
    manifest["files"] = {
        name: {"sha256": folder_module._digest(each)} for name, each in found.items()
    }
    path.write_text(json.dumps(manifest))


def _change(folder, change):
    path = folder / "object.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    _reseal(folder)
