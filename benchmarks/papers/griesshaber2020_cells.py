"""The runs of griesshaber2020.py: a loop, a training on a share of texts, a pool."""

import math
from functools import lru_cache
from time import process_time

import numpy as np
from common import DEVLIN, depth, load

from skactive import ActiveLearner, simulate
from skactive.analysis import class_coverage
from skactive.bert import BertClassifier, clear_cache


def freeze_of(freeze, n_layers):
    """Scale a number of frozen layers of 12, halves to the larger number."""
    n = math.floor(abs(freeze) * n_layers / 12 + 0.5)
    return n if freeze > 0 else -n


def make(settings, freeze, seed=None, classes=None):
    """Make the encoder with the CNN head and 50 draws of its dropout."""
    return BertClassifier(
        settings.model,
        head="cnn",
        freeze=freeze,
        mc_dropout="head",
        n_draws=50,
        max_length=settings.sizes["max_length"],
        max_epochs=settings.sizes["max_epochs"],
        classes=classes,
        device=settings.device,
        random_state=seed,
        **{**DEVLIN, **settings.training},
    )


@lru_cache(maxsize=1)
def read(name, n_pool, n_test):
    return load(name, n_pool, n_test)


def score(learner, X, y):
    """Score a learner, and look how far training has moved each of its layers."""
    changes = learner.estimator_.layer_changes_
    parts = zip(changes["part"], changes["layer"], strict=True)
    names = [f"{part} {layer}" for part, layer in parts]
    scores = {"accuracy": learner.score(X, y)}
    for moment in ("mean", "variance"):
        for name, value in zip(names, changes[moment], strict=True):
            scores[f"{moment} {name}"] = value
    return scores


def read_changes(scores):
    """Bring what :func:`score` found into the form of `layer_changes_`."""
    names = [name.split(" ") for name in scores if name.startswith("mean ")]
    changes = {"layer": [n[2] for n in names], "part": [n[1] for n in names]}
    for moment in ("mean", "variance"):
        values = [scores[f"{moment} {part} {layer}"] for _, part, layer in names]
        changes[moment] = [float(f"{value:.5g}") for value in values]
    return changes


def run_cell(settings, *, part, data, seed, sizes, **cell):
    """Run a loop, train once on a share of some texts, or look at a pool."""
    data_sets = read(data, sizes["n_pool"], sizes["n_test"])
    clear_cache()  # so that each run pays for its own frozen bottom
    function = {"loop": run_loop, "share": run_share, "pool": run_pool}[part]
    cell.pop("training")
    start = process_time()
    found = function(settings, data, data_sets, seed, **cell)
    return {**found, "processor": round(process_time() - start, 2)}


def run_loop(settings, data, data_sets, seed, *, strategy, freeze, schedule):
    """Let BALD or chance label the pool, and train anew in every round."""
    X, y, X_test, y_test = data_sets
    freeze_here = freeze_of(freeze, depth(settings.model))
    model = make(settings, freeze_here, classes=np.unique(y))
    folder = settings.out / "loops" / f"{data}-{strategy}-{freeze}-{seed}"
    run = simulate(
        ActiveLearner(model, strategy, random_state=seed),
        X,
        y,
        X_test=X_test,
        y_test=y_test,
        scoring=score,
        # A short loop that was killed is run again, so that its seconds are whole.
        folder=folder if settings.scale == "paper" else None,
        **schedule,
    )
    return {
        "pool": run.info["pool_size"],
        "n_labeled": run.n_labeled.tolist(),
        "scores": run.curve("accuracy").tolist(),
        "imbalance": class_coverage(run, y).imbalance.tolist(),
        "changes": read_changes(run.rounds[-1]["scores"]),
        "ledger": {phase: round(s, 2) for phase, s in run.ledger.items()},
    }


def run_share(settings, data, data_sets, seed, *, share, n_whole):
    """Train on a share of some texts, drawn at random."""
    X, y, X_test, y_test = data_sets
    whole = len(X[:n_whole])
    n = round(share * whole)
    drawn = np.random.default_rng(seed).permutation(whole)[:n]
    model = make(settings, 0, seed, np.unique(y)).fit(X[drawn], y[drawn])
    return {"n_labeled": n, "score": float(model.score(X_test, y_test))}


def run_pool(settings, data, data_sets, seed, *, schedule):
    """Count the classes of pool and test texts, and how many of the pool are cut."""
    from transformers import AutoTokenizer

    X, y, _, y_test = data_sets
    n = schedule["pool_size"]
    tokenizer = AutoTokenizer.from_pretrained(settings.model)
    texts = X[:n].tolist()
    pairs = isinstance(texts[0], tuple)
    tokens = (
        tokenizer(*map(list, zip(*texts, strict=True))) if pairs else tokenizer(texts)
    )
    longer = [len(ids) > settings.sizes["max_length"] for ids in tokens["input_ids"]]
    return {
        "classes": np.unique(y[:n], return_counts=True)[1].tolist(),
        "test_classes": np.unique(y_test, return_counts=True)[1].tolist(),
        "cut": float(np.mean(longer)),
    }
