"""The runs of eindor2020.py: its scenarios, its strategies, and one loop."""

from functools import lru_cache
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from common import DEVLIN, RAW, harness, load
from scenarios import keyword_seed, reference_seed, unbiased_seed

from skactive import ActiveLearner, get_strategy, simulate
from skactive.analysis import describe_batches
from skactive.bert import BertClassifier, BertFeatures, clear_cache
from skactive.simulation import make_imbalanced

SCENARIOS = ("balanced", "imbalanced", "imbalanced-practical")

WANTED = harness.read_toml(Path(__file__).with_name("eindor2020"))["wanted"]
MEASURES = ("diversity", "representativeness")


def list_pairs(data):
    """Pairs of data set and scenario."""
    return [
        (name, scenario)
        for name in data
        for scenario in SCENARIOS
        if scenario != "imbalanced-practical" or WANTED[name][1]
    ]


def make_strategies(n_draws):
    """Make the strategies, by the names that the tables have."""
    dropout = get_strategy("mc_dropout")
    dropout.set_params(n_draws=n_draws, measure="least_confidence")
    return {
        "random": "random",
        "LC": "least_confidence",
        "Dropout": dropout,
        "PE": "perceptron_ensemble",
        "EGL": "egl",
        "Core-Set": "coreset",
        "DAL": "dal",
    }


def make_model(settings):
    """Make the encoder with a linear head."""
    params = {**DEVLIN, **settings.training}
    return BertClassifier(settings.model, device=settings.device, **params)


@lru_cache(maxsize=1)
def read(data):
    return load(data)


@lru_cache(maxsize=2)
def read_pair(data, scenario, *, n_pool, n_test, prior):
    """Read a task of two classes, 1 being the wanted one, made rare where wanted."""
    wanted, _ = WANTED[data]
    X, y, X_test, y_test = read(data)
    parts = []
    for texts, labels, n in ((X, y, n_pool), (X_test, y_test, n_test)):
        labels = (labels == wanted).astype(int)
        if scenario != "balanced":
            texts, labels = make_imbalanced(
                texts, labels, minority=1, prior=prior, random_state=0
            )
        parts += [texts[:n], labels[:n]]  # they stand in random order
    return tuple(parts)


def make_seed(data, scenario, X, y, n_initial, seed):
    """Choose what a loop begins with, half of it assumed where a class is rare."""
    if scenario == "balanced":
        return reference_seed(X, n_initial["balanced"], random_state=seed)
    n = n_initial["wanted"]
    if scenario == "imbalanced":
        return unbiased_seed(y, n, random_state=seed)
    return keyword_seed(X, WANTED[data][1], n, random_state=seed)


def make_opener(settings):
    """Make a function that readies a pair of data set and scenario, the last one kept.

    The pool is encoded by the encoder as it was pretrained: batches are measured
    there. What is computed below the trained layers is kept, before any clock starts.
    """

    @lru_cache(maxsize=1)
    def open_pair(data, scenario):
        X, y, X_test, y_test = read_pair(data, scenario, **settings.sizes)
        features = BertFeatures(
            settings.model,
            **RAW,
            max_length=settings.training["max_length"],
            cache=settings.out / "features",
            device=settings.device,
        ).transform(X)
        clear_cache()
        if settings.training["freeze"]:
            first = [np.argmin(y), np.argmax(y)]
            model = make_model(settings).set_params(max_epochs=1)
            model.fit(X[first], y[first])
            for texts in (X, X_test):
                model.predict(texts)
        return X, y, X_test, y_test, features

    return open_pair


def run_cell(settings, open_pair, *, data, scenario, strategy, seed, **sizes):
    """Let one strategy label a pool, fine-tuning after every batch."""
    X, y, X_test, y_test, features = open_pair(data, scenario)
    begun = make_seed(data, scenario, X, y, settings.n_initial, seed)
    start = perf_counter(), process_time()
    run = simulate(
        ActiveLearner(
            make_model(settings),
            make_strategies(settings.n_draws)[strategy],
            batch_size=settings.schedule["batch_size"],
            random_state=seed,
        ),
        X,
        begun.relabel(y),
        initial=begun.positions,
        n_rounds=settings.schedule["n_rounds"],
        X_test=X_test,
        y_test=y_test,
        scoring=["accuracy", "f1"],
    )
    wall, processor = perf_counter() - start[0], process_time() - start[1]
    measured = describe_batches(run, features, measures=MEASURES)
    looked_at = begun.positions[~begun.assumed]
    return {
        "n_labeled": run.n_labeled.tolist(),
        **{k: run.curve(k).round(4).tolist() for k in ("accuracy", "f1")},
        **{k: measured[k][1:].round(5).tolist() for k in MEASURES},
        "wanted": float(y[run.queried[len(begun.positions) :]].mean()),
        "wanted_first": float(y[looked_at].mean()),
        "wanted_pool": float(y.mean()),
        "fit_seconds": [round(r["fit_seconds"], 3) for r in run.rounds],
        "query_seconds": [round(r["query_seconds"], 4) for r in run.rounds[1:]],
        "wall": round(wall, 2),
        "processor": round(processor, 2),
    }
