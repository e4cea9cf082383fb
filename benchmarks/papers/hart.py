"""Hart: what fine-tuning BERT brings on tweets about disasters.

    SKACTIVE_DATA=.../data python benchmarks/papers/hart.py --page
    python benchmarks/papers/hart.py --scale smoke      # seconds, on docstrings
    python benchmarks/papers/hart.py --scale paper --device cuda
    python benchmarks/papers/hart.py --rebuild --page   # the tables again

Two parts. On all tweets, in ten repetitions of ten folds: logistic regression on
TF-IDF, counts and hashed counts (table 1), and on features of the frozen encoder, from
its last layer and from its last four. On one split: the encoder frozen under a dense
layer, trained whole, and in its last two layers only, each from several initializations
(table 2); AdamW, 5e-5, polynomial decay.

At the cpu scale the encoder is all-MiniLM-L6-v2 with mean pooling. The models of table
2 get 1,000 labeled tweets, and so do sparse models for comparison; the head
learns at 1e-3, because at 5e-5 it hardly moves in so few steps, and the frozen model
gets 20 epochs, which cost it next to nothing. The paper does not say how many epochs it
trained, how it pooled and how much it held out: 3, [CLS] and a fifth are ours.
"""

from functools import lru_cache, partial
from time import process_time

import numpy as np
from common import DEVLIN, depth, harness, load
from hart_tables import draw, make_tables
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from skactive.bert import BertClassifier, BertFeatures, clear_cache

SPARSE = {
    "TF-IDF": TfidfVectorizer,
    "counts": CountVectorizer,
    "hashing": HashingVectorizer,
}
LAYERS = {"last layer": -1, "last four layers": (-4, -3, -2, -1)}
TUNED = ("frozen", "unfrozen", "last two layers")


def make_linear(model, settings):
    """Make logistic regression on sparse or on frozen features."""
    if model in SPARSE:
        front = SPARSE[model]()
    else:
        front = BertFeatures(
            settings.model,
            layers=LAYERS[model],
            pooling=settings.pooling,
            normalize=False,
            max_length=settings.max_length,
            cache="memory",
            device=settings.device,
        )
    return make_pipeline(front, LogisticRegression(max_iter=1000))


def make_tuned(model, n_layers, seed, settings):
    """Make the encoder with one dense layer, of which more or less learns."""
    freeze = {"frozen": "all", "unfrozen": 0, "last two layers": n_layers - 2}
    frozen = model == "frozen"
    return BertClassifier(
        settings.model,
        freeze=freeze[model],
        pooling=settings.pooling,
        max_length=settings.max_length,
        max_epochs=settings.frozen_epochs if frozen else settings.epochs,
        lr=5e-5,
        batch_size=DEVLIN["batch_size"],
        head_lr=settings.head_lr,
        weight_decay=0.01,
        schedule="polynomial",
        warmup=DEVLIN["warmup"],
        power=2,  # the paper names none
        device=settings.device,
        random_state=seed,
    )


@lru_cache(maxsize=1)
def read(name, n_test):
    return load(name, n_test=n_test)


def run_cell(settings, *, data, part, model, index, n_pool, epochs):
    """Train one model on a fold, or from one initialization, and score it.

    On the split each run is timed, and encodes its texts itself, as a single run of a
    user does. The folds share what was encoded, so no clock runs there.
    """
    X, y, X_test, y_test = read(data, settings.n_test)
    if part == "folds":
        X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
        repeat, fold = divmod(index, settings.n_folds)
        folds = StratifiedKFold(settings.n_folds, shuffle=True, random_state=repeat)
        train, test = list(folds.split(X, y))[fold]
        X, y, X_test, y_test = X[train], y[train], X[test], y[test]
    X, y = X[:n_pool], y[:n_pool]
    if model in TUNED:
        learner = make_tuned(model, depth(settings.model), index, settings)
    else:
        learner = make_linear(model, settings)
    if part == "split":
        clear_cache()
    start = process_time()
    predicted = learner.fit(X, y).predict(X_test)
    timed = {"seconds": process_time() - start} if part == "split" else {}
    return {
        "accuracy": accuracy_score(y_test, predicted),
        "f1": f1_score(y_test, predicted),
        "f1_other": f1_score(1 - y_test, 1 - predicted),
        **timed,
        "n_train": len(y),
        "n_test": len(y_test),
        "share": float(np.mean(y_test)),
    }


def make_grid(settings):
    """List what to run: (folds of all texts, one split) times models."""
    linear = (*SPARSE, *LAYERS)
    size, epochs = settings.n_pool, settings.epochs
    n_folds = settings.n_folds * settings.n_repeats
    runs = [("folds", m, None, i) for m in linear for i in range(n_folds)]
    runs += [("split", m, size, 0) for m in linear]
    runs += [("split", m, size, i) for m in TUNED for i in range(settings.seeds)]
    names = ("part", "model", "n_pool", "index")
    return [
        {"data": data, "epochs": epochs, **dict(zip(names, run, strict=True))}
        for data in settings.data
        for run in runs
    ]


def check(records, settings, tables):
    """Fail where the shape of the results is not what the page needs."""
    n_linear = len(SPARSE) + len(LAYERS)
    n_folds = settings.n_folds * settings.n_repeats
    n_runs = n_linear * (n_folds + 1) + len(TUNED) * settings.seeds
    assert len(records) == n_runs * len(settings.data), len(records)
    scores = np.array([[r[k] for k in ("accuracy", "f1", "f1_other")] for r in records])
    assert ((scores >= 0) & (scores <= 1)).all()
    assert {r["model"] for r in records} == {*SPARSE, *LAYERS, *TUNED}
    assert all(("seconds" in r) == (r["part"] == "split") for r in records)
    assert all(r.get("seconds", 1) > 0 for r in records)
    assert [len(lines) for lines in tables.values()] == [3, 10, 7, 10, 4], tables
    # What the paper's own scale would train, though it is not run here.
    paper = harness.settle_paper(__doc__, __file__, settings)
    assert len(make_grid(paper)) == 5 * 101 + 3 * 10
    tuned = make_tuned("last two layers", 12, 9, paper).get_params()
    expected = {"model": "bert-base-uncased", "freeze": 10, "lr": 5e-5, "head_lr": None}
    expected |= {"schedule": "polynomial", "max_epochs": 3, "random_state": 9}
    assert {k: tuned[k] for k in expected} == expected, tuned


def run(settings):
    """Run what is not finished.

    What is loaded once in a process is loaded before the clock of the first run.
    """
    make_linear("last layer", settings)[0].transform(["a text"])
    function = partial(run_cell, settings)
    return harness.run_missing(function, make_grid(settings), settings)


def main():
    settings = harness.settle(__doc__, __file__)
    harness.publish(settings, "hart", run, draw, make_tables, check)


if __name__ == "__main__":
    main()
