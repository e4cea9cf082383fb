"""Seconds of training with few labels, compared with scikit-learn's LogisticRegression.

    python benchmarks/heads.py
    python benchmarks/heads.py --smoke    # seconds, for CI

Unit vectors of 384 features around one direction per class, as embeddings of sentences
have. Interleaved turns on one thread; the table has medians of the processor seconds,
and of the ratio to LogisticRegression in the same turn:

- LogisticRegression, with default settings
- FewLabelClassifier, which compares its candidates
- make_text_classifier's last step with an unlabeled pool
- a round: query by margin from the pool, and teach with a batch of 25 more labels

Options:
    --classes 2 4 6 77
    --labels 500
    --pool 10000
    --turns 9
Smoke: --classes 3 --labels 60 --pool 300 --turns 2
"""

from copy import deepcopy
from time import process_time

import numpy as np
from _harness import parse, print_rows
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner, make_text_classifier
from skactive.linear_model import FewLabelClassifier


def draw(n, k, rng):
    """Rows (n, 384) in float32 and their classes, all of which occur."""
    centers = normalize(rng.normal(size=(k, 384)))
    y = np.concatenate([np.arange(k), rng.integers(k, size=n - k)])
    X = normalize(0.6 * centers[y] + 0.05 * rng.normal(size=(n, 384)))
    return X.astype(np.float32), y


def measure(k, args):
    """Processor seconds (turns,) of each method."""
    rng = np.random.default_rng(0)
    X, y = draw(args.labels + 25 + args.pool, k, rng)
    labeled, more = slice(args.labels), slice(args.labels, args.labels + 25)
    pool = X[args.labels + 25 :]
    first = ActiveLearner(
        make_text_classifier(adapt=False)[-1], batch_size=25, random_state=0
    )
    first.fit(X[labeled], y[labeled], X_unlabeled=pool)

    def play():
        learner = deepcopy(first)
        start = process_time()
        learner.query(pool)
        learner.teach(X[more], y[more], X_unlabeled=pool)
        return process_time() - start

    models = {
        "LogisticRegression": (LogisticRegression(), {}),
        "FewLabelClassifier": (FewLabelClassifier(random_state=0), {}),
        "make_text_classifier": (
            make_text_classifier(adapt=False)[-1].set_params(random_state=0),
            {"X_unlabeled": pool},
        ),
    }
    seconds = {name: [] for name in [*models, "round"]}
    for _ in range(args.turns):
        for name, (model, params) in models.items():
            start = process_time()
            model.fit(X[labeled], y[labeled], **params)
            seconds[name].append(process_time() - start)
        seconds["round"].append(play())
    return {name: np.array(values) for name, values in seconds.items()}


def list_rows(args):
    """Yield the rows of the table."""
    for k in args.classes:
        seconds = measure(k, args)
        for name, values in seconds.items():
            ratio = np.median(values / seconds["LogisticRegression"])
            yield f"{k}|{name}|{1000 * np.median(values):.0f}|{ratio:.1f}"


def main():
    args = parse(__doc__)
    with threadpool_limits(limits=1):
        print_rows("classes|method|ms|ratio", list_rows(args))


if __name__ == "__main__":
    main()
