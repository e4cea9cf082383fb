"""One training of wang.py: each of its epochs scored and timed."""

import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from common import DEVLIN, depth, harness, load
from scipy.stats import spearmanr
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, f1_score
from skorch.callbacks import Callback
from wang_values import PATIENCE, TOL

from skactive.bert import BertClassifier, BertRegressor, clear_cache

NUMBERS = ("stsb", "docstrings_numbers")


def spearman(y, predicted):
    """Return the rank correlation; 0 if all predictions are equal."""
    return 0.0 if np.ptp(predicted) == 0 else spearmanr(y, predicted).statistic


METRICS = dict.fromkeys(NUMBERS, spearman) | {"mrpc": f1_score}


class Notes(Callback):
    """Keep the trained weights of each epoch in a folder, and both clocks."""

    def __init__(self, folder, notes):
        self.folder, self.notes = folder, notes

    def __deepcopy__(self, memo):
        return Notes(self.folder, self.notes)

    def on_train_begin(self, net, **kwargs):
        self.notes["start"] = harness.clocks()

    def on_epoch_begin(self, net, **kwargs):
        self.notes["epoch"] = harness.clocks()

    def on_epoch_end(self, net, **kwargs):
        self.notes.setdefault("epochs", []).append(
            harness.clocks() - self.notes["epoch"]
        )
        trained = {k: p for k, p in net.module_.named_parameters() if p.requires_grad}
        torch.save(trained, self.folder / f"{len(self.notes['epochs'])}.pt")


def make(data, n_last, lr, seed, settings, n_layers, **params):
    """Make the estimator whose last layers, or all, learn."""
    cls = BertRegressor if data in NUMBERS else BertClassifier
    return cls(
        settings.model,
        freeze=0 if n_last is None else n_layers - n_last,
        pooling=settings.pooling,
        max_length=settings.max_length,
        batch_size=settings.batch_size,
        lr=lr,
        head_lr=settings.head_lr,
        schedule=DEVLIN["schedule"],
        warmup=DEVLIN["warmup"],
        device=settings.device,
        random_state=seed,
        **params,
    )


@lru_cache
def read(name, size, n_test):
    """Read a task; that of the smoke scale with numbers is how long the texts are."""
    if name == "docstrings_numbers":
        X, _, X_test, _ = read("docstrings_two_pairs", size, n_test)
        y, y_test = (np.array([len(a + b) for a, b in part]) for part in (X, X_test))
        return X, y, X_test, y_test
    return load(name, size, n_test)


@lru_cache
def warm_up(model):
    """Pay for what only the first training of a process has to do."""
    BertClassifier(model, max_epochs=1, freeze="all").fit(["one", "two"], [0, 1])


def run_cell(settings, *, part, data, n_last, lr, seed, size, max_epochs):
    """Train one model until it gains nothing, and score each of its epochs."""
    X, y, X_test, y_test = read(data, size, settings.n_test)
    params = {
        "max_epochs": max_epochs,
        "early_stopping": True,
        "tol": TOL,
        "n_iter_no_change": PATIENCE,
    }
    if part == "plain":
        X, y = X[: settings.n_plain], y[: settings.n_plain]
        params = {"max_epochs": 1, "cache_frozen": False}
    score, notes = METRICS.get(data, accuracy_score), {}
    warm_up(settings.model)
    clear_cache()  # so that each run pays for its own frozen bottom
    with tempfile.TemporaryDirectory() as folder:
        params["callbacks"] = [Notes(Path(folder), notes)]
        n_layers = depth(settings.model)
        model = make(data, n_last, lr, seed, settings, n_layers, **params)
        start = harness.clocks()
        model.fit(X, y)
        setup = notes["start"] - start
        if part == "plain":
            return _seconds(model, notes, setup)
        network, scores = model.net_.module_, []
        result = {"score": float(score(y_test, model.predict(X_test)))}
        for i in range(len(notes["epochs"])):
            weights = torch.load(Path(folder) / f"{i + 1}.pt")
            network.load_state_dict(weights, strict=False)
            scores.append(float(score(y_test, model.predict(X_test))))
    trivial = DummyRegressor() if data in NUMBERS else DummyClassifier()
    numbers = [p.numel() for p in network.parameters()]
    learn = [p.numel() for p in network.parameters() if p.requires_grad]
    return {
        **result,
        "epoch_scores": scores,
        "valid_scores": [epoch["valid_score"] for epoch in model.history_],
        **_seconds(model, notes, setup),
        "share": sum(learn) / sum(numbers),
        "trivial": float(score(y_test, trivial.fit(X, y).predict(X_test))),
    }


def _seconds(model, notes, setup):
    return {
        "seconds": [epoch["seconds"] for epoch in model.history_],
        "cpu_seconds": [float(cpu) for _, cpu in notes["epochs"]],
        "setup": {"cpu_seconds": float(setup[1]), "seconds": float(setup[0])},
    }
