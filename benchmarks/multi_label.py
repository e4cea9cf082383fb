"""Strategies on texts with several labels: GoEmotions, 28 emotions.

    SKACTIVE_DATA=.../data python benchmarks/multi_label.py --out multi_label
    python benchmarks/multi_label.py --smoke    # seconds, for CI

The model is one logistic regression per label with balanced class weights, or another
--model, on features of all-MiniLM-L6-v2, of unit length. The pool (--pool texts) and
the test texts are drawn once. A seed draws the first labeled texts, 250 by default, the
same ones for every strategy, which then asks for the others, at most 500 at a time.
With --models the models are compared on random texts instead of the strategies. With
--fine-tuned N, BertClassifier with tuned thresholds is trained on the first N texts
that random and the strategies named by --final asked for, as PRepAL does.

Prints Markdown tables: micro and macro F1, label ranking average precision and Hamming
loss, means over the seeds; the paired difference from random, with a star if a paired t
test, corrected by Holm's procedure over the strategies of a column, is below .05.
Finished runs are kept in --out, a line each, and are not run again. If small-text is
installed (2.0), its strategies "small-text cvirs" and "small-text lci" can be named in
--strategies; the first compares all pairs, so use it for up to 1,000 labels.

Options:
    --out FOLDER
    --pool 10000
    --seeds 10
    --strategies NAME...
    --budgets 250 500 1000 2000 3500 5000
    --model NAME               of MODELS
    --models
    --fine-tuned N
    --final margin entropy
    --n-jobs 2
Smoke: --seeds 2 --budgets 20 40 --n-jobs 1
"""

import time
from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    f1_score,
    hamming_loss,
    label_ranking_average_precision_score,
)
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner, get_strategy
from skactive.linear_model import TunedOneVsRestClassifier
from skactive.strategies import Strategy

STRATEGIES = {
    "random": "random",
    "entropy": "entropy",
    "margin": "margin",
    "margin, max": {"name": "margin", "aggregate": "max"},
    "lci": "lci",
    "cvirs": "cvirs",
    "bald": "bald",
    "besra": "besra",
    "badge": "badge",
    "egl": "egl",
    "coreset": "coreset",
    "typiclust": "typiclust",
    "uherding": "uherding",
}
METRICS = ("micro F1", "macro F1", "LRAP", "Hamming")
AT_ONCE = 500


def load(args):
    """Return features, texts and indicator matrices of pool and test."""
    if args.smoke:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 8))
        Y = (X[:, :4] + rng.normal(size=(300, 4)) > 0.8).astype(int)
        return (X[:200], None, Y[:200]), (X[200:], None, Y[200:])
    import pandas as pd

    from skactive.bert import BertFeatures

    parts = []
    for part, n in (("train", args.pool), ("test", 3000)):
        frame = pd.read_parquet(harness.data_path("goemotions", part)).drop_duplicates(
            "text"
        )
        frame = frame.sample(min(n, len(frame)), random_state=0)
        Y = np.zeros((len(frame), 28), dtype=int)
        for row, labels in enumerate(frame["label"]):
            Y[row, labels] = 1
        encoder = BertFeatures(
            harness.minilm(),
            max_length=64,
            cache=str(args.out / "features"),
        )
        texts = frame["text"].tolist()
        parts.append((encoder.fit_transform(texts), np.array(texts, object), Y))
    return parts


def score(Y, predicted, proba):
    """Return the scores by their names."""
    f1 = partial(f1_score, Y, predicted, zero_division=0)
    return {
        "micro F1": f1(average="micro"),
        "macro F1": f1(average="macro"),
        "LRAP": label_ranking_average_precision_score(Y, proba),
        "Hamming": hamming_loss(Y, predicted),
    }


class SmallText(Strategy):
    """A multi-label strategy of small-text, given the same probabilities."""

    requires = frozenset({"proba", "labeled"})
    targets = frozenset({"multi-label"})

    def __init__(self, kind):
        self.kind = kind

    def predict_proba(self, positions):
        return self._proba[positions]

    def select(self, view, n_queries):
        from scipy.sparse import csr_matrix
        from small_text.query_strategies import multi_label

        self._proba = view.proba
        names = {
            "cvirs": "CategoryVectorInconsistencyAndRanking",
            "lci": "LabelCardinalityInconsistency",
        }
        query = getattr(multi_label, names[self.kind])(
            **({"pbar": None} if self.kind == "cvirs" else {})
        )
        rows, labeled = np.arange(len(view)), np.arange(view.n_labeled)
        y = csr_matrix(view.y_labeled)
        return np.asarray(query.query(self, rows, rows, labeled, y, n=n_queries))


MODELS = {
    "random, balanced weights": OneVsRestClassifier(
        LogisticRegression(class_weight="balanced", max_iter=1000)
    ),
    "plain": OneVsRestClassifier(LogisticRegression(C=10, max_iter=1000)),
    "tuned thresholds": TunedOneVsRestClassifier(
        LogisticRegression(C=10, max_iter=1000), random_state=0
    ),
}


def run_model(name, seed, pool, test, budgets):
    """Return the record of one model trained on the first random texts of a seed."""
    (X, _, Y), (X_test, _, Y_test) = pool, test
    order = np.random.default_rng(seed).permutation(len(X))
    seconds, scores = 0.0, []
    with threadpool_limits(1):
        for budget in budgets:
            rows = order[:budget]
            begun = time.process_time()
            model = clone(MODELS[name]).fit(X[rows], Y[rows])
            seconds += time.process_time() - begun
            proba = model.predict_proba(X_test)
            scores.append(score(Y_test, model.predict(X_test), proba))
    return {"strategy": name, "seed": seed, "seconds": seconds, "scores": scores}


def make_strategy(name):
    if name.startswith("small-text "):
        return SmallText(name.removeprefix("small-text "))
    params = STRATEGIES[name]
    params = {"name": params} if isinstance(params, str) else dict(params)
    return get_strategy(params.pop("name"), **params)


def run(name, seed, pool, test, budgets, model):
    """Return the record of one strategy and seed."""
    (X, _, Y), (X_test, _, Y_test) = pool, test
    learner = ActiveLearner(MODELS[model], make_strategy(name), random_state=seed)
    first = np.random.default_rng(seed).choice(len(X), budgets[0], replace=False)
    queried, seconds, scores = first.tolist(), 0.0, []
    with threadpool_limits(1):
        learner.teach(X[first], Y[first])
        for budget in budgets:
            while len(queried) < budget:
                free = np.ones(len(X), dtype=bool)
                free[queried] = False
                begun = time.perf_counter()
                n = min(AT_ONCE, budget - len(queried))
                picks = learner.query(X, n, candidates=free)
                seconds += time.perf_counter() - begun
                queried += picks.tolist()
                learner.teach(X[picks], Y[picks])
            proba = learner.predict_proba(X_test)
            scores.append(score(Y_test, learner.predict(X_test), proba))
    return {
        "strategy": name,
        "seed": seed,
        "queried": queried,
        "seconds": seconds,
        "scores": scores,
    }


def fine_tune(record, n, pool, test):
    """Return the scores of an encoder trained on the first texts of a record."""
    from skactive.bert import BertClassifier

    (_, texts, Y), (_, test_texts, Y_test) = pool, test
    model = BertClassifier(
        harness.minilm(),
        max_length=64,
        freeze=2,
        max_epochs=6,
        batch_size=16,
        warmup=0.0,
        thresholds="auto",
        random_state=record["seed"],
    )
    queried = record["queried"][:n]
    with threadpool_limits(1):
        model.fit(texts[queried], Y[queried])
        proba = model.predict_proba(test_texts)
        found = score(Y_test, model.predict(test_texts), proba)
    name = f"{record['strategy']}, fine-tuned"
    return {**record, "strategy": name, "scores": [found]}


def compare(records, metric, place):
    """Compare one metric at one budget with random texts."""
    values = {}
    for record in records:
        by_seed = values.setdefault(record["strategy"], {})
        by_seed[record["seed"]] = record["scores"][place][metric]
    base = next(name for name in values if name.startswith("random"))
    return harness.compare_with(base, values)


def write_tables(records, budgets):
    """Print the tables."""
    names = list(dict.fromkeys(record["strategy"] for record in records))

    def write(name, found):
        mean, difference, _, p = found[name]
        lead = f" ({difference:+.3f}{harness.star(p)})"
        return f"{mean:.3f}{'' if name.startswith('random') else lead}"

    for metric in METRICS:
        columns = [compare(records, metric, i) for i in range(len(budgets))]
        print(f"\n{metric}\n")
        harness.print_rows(
            "|".join(["strategy", *map(str, budgets)]),
            ([name, *(write(name, found) for found in columns)] for name in names),
        )
    own = {name: harness.select(records, strategy=name) for name in names}
    print()
    harness.print_rows(
        "strategy|seeds|seconds of queries",
        (
            f"{name}|{len(runs)}|{np.mean([r['seconds'] for r in runs]):.1f}"
            for name, runs in own.items()
        ),
    )


def main():
    constants = {"strategies": [*STRATEGIES], "out": Path("multi_label")}
    args = harness.parse(__doc__, model="random, balanced weights", **constants)
    records = harness.Records(None if args.smoke else args.out / "runs.jsonl")
    pool, test = load(args)
    task = partial(run, budgets=args.budgets, model=args.model)
    names = args.strategies
    if args.models:
        task, names = partial(run_model, budgets=args.budgets), MODELS
    jobs = [(name, seed) for seed in range(args.seeds) for name in names]
    jobs = [(*job, pool, test) for job in records.missing(jobs, "strategy", "seed")]
    if args.fine_tuned:
        done = {(record["strategy"], record["seed"]) for record in records}
        task = fine_tune
        jobs = [
            (record, args.fine_tuned, pool, test)
            for record in records
            if record["strategy"] in ("random", *args.final)
            and record["seed"] < args.seeds
            and (f"{record['strategy']}, fine-tuned", record["seed"]) not in done
        ]
    records.run(task, jobs, args.n_jobs)
    tuned = [r for r in records if r["strategy"].endswith("fine-tuned")]
    write_tables([r for r in records if r not in tuned], args.budgets)
    if tuned:
        write_tables(tuned, [args.fine_tuned or "fine-tuned"])


if __name__ == "__main__":
    main()
