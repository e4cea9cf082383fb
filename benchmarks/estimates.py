"""Coverage of the intervals of `skactive.estimation`, in simulated sessions.

Texts of six data sets and of three with the answers of language models are encoded
once. A session labels texts by a strategy and trains a logistic regression; then random
audits of it are drawn. In other sessions, a strategy and an audit draw in turns. Run
from the repository:

    python benchmarks/estimates.py --cache FOLDER --output docs/results/estimates.json

SKACTIVE_DATA is the folder of the data sets.

Options:
    --cache FOLDER
    --output FILE
    --sessions 10
    --draws 25
    --sets NAME...
Smoke: --sets "made up" --sessions 1 --draws 2
"""

import json
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
from _harness import data_path, minilm, parse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_fscore_support
from sklearn.model_selection import KFold

from skactive import ActiveLearner
from skactive.estimation import (
    estimate_prevalence,
    estimate_quality,
    estimate_share,
)

SETS = (
    *("ag_news/test", "trec/train", "sst2/train", "disaster_tweets/train"),
    *("tweet_emotion/train", "cap_sotu/train"),
)
ANSWERED = ("chatgpt", "davinci_003", "flan_ul2", "flan_t5_xl")
MACHINES = ("llm_emotion", "llm_ibc", "llm_semeval_stance")
SIZES = (40, 100, 300)
LEAST, MOST = 0.02, 0.6  # shares of the classes that are reported
N_QUERIED = 100
PARTS = ("precision", "recall", "F1")


def read(name):
    """Return the table of a data set, at most 2,000 different texts."""
    table = pd.read_parquet(data_path(*name.split("/")))
    table = table.drop_duplicates("text")
    return table.sample(min(2000, len(table)), random_state=0)


def encode(name, cache):
    """Return features (n, d) and classes (n,) of a data set, encoded once."""
    path = cache / f"{name.replace('/', '_')}.npz"
    if not path.exists():
        from skactive.bert import BertFeatures

        encoder = BertFeatures(minilm(), max_length=48, normalize=True, cache=None)
        table = read(name)
        X = encoder.fit_transform(table["text"].tolist())
        y = table["label"].to_numpy().astype(str)
        np.savez(path, X=np.asarray(X, dtype=np.float32), y=y)
    stored = np.load(path)
    return stored["X"], np.unique(stored["y"], return_inverse=True)[1]


# Sessions -----------------------------------------------------------------------------


def begin(X, y, strategy, batch_size, seed, rng):
    """Return ten or more random rows, of two classes, and a learner fitted to them."""
    rows = rng.choice(len(y), 10, replace=False).tolist()
    while len(np.unique(y[rows])) < 2:
        rows.append(int(rng.integers(len(y))))
    options = {"batch_size": batch_size, "random_state": seed}
    learner = ActiveLearner(LogisticRegression(C=10), strategy, **options)
    return rows, learner.fit(X[rows], y[rows])


def label(X, y, strategy, seed):
    """Return the rows that a strategy queries, after ten at random."""
    rows, learner = begin(X, y, strategy, 30, seed, np.random.default_rng(seed))
    while len(rows) < N_QUERIED:
        left = np.setdiff1d(np.arange(len(y)), rows)
        asked = learner.query(X, candidates=left)
        learner.teach(X[asked], y[asked])
        rows += asked.tolist()
    return np.array(rows)


def predict(X, y, train, test, k):
    """Return probabilities (., k) of some rows by a model of others."""
    proba = np.zeros((len(test), k))
    known = np.unique(y[train])
    if len(known) == 1:
        proba[:, known] = 1
        return proba
    model = LogisticRegression(C=10).fit(X[train], y[train])
    proba[:, model.classes_] = model.predict_proba(X[test])
    return proba


def predict_all(X, y, rows, k, seed=0):
    """Return probabilities (n, k) of a model of some rows; these are out-of-fold."""
    proba = predict(X, y, rows, np.arange(len(y)), k)
    for train, test in KFold(5, shuffle=True, random_state=seed).split(rows):
        proba[rows[test]] = predict(X, y, rows[train], rows[test], k)
    return proba


class Tally:
    """How often intervals hold, how wide they are, and what labels are worth."""

    def __init__(self):
        self.covered, self.worth = defaultdict(list), defaultdict(list)
        self.widths, self.errors = defaultdict(list), defaultdict(list)

    def add(self, key, found, truth, plain=None):
        """Add a MeanEstimate, if it has a value."""
        if found is None or found.value is None:
            return
        low, high = found.interval
        self.errors[key].append(found.value - truth)
        self.covered[key].append(low - 1e-9 <= truth <= high + 1e-9)
        self.worth[key].append(found.effective_size / max(found.n_labels, 1))
        if plain is not None and plain.value is not None:
            self.widths[key].append(found.half_width / plain.half_width)

    def rows(self):
        """Return a dict of key to figures."""
        return {
            "|".join(map(str, key)): {
                "n": len(hits),
                "coverage": float(np.mean(hits)),
                "worth": float(np.median(self.worth[key])),
                "least": float(np.min(self.worth[key])),
                "error": float(np.mean(self.errors[key])),
                "width": float(np.median(self.widths[key] or [np.nan])),
            }
            for key, hits in self.covered.items()
        }


def audit(tally, name, y, proba, rng, n, design):
    """Draw an audit of n items and add its estimates to a tally."""
    k, n_pool = proba.shape[1], len(y)
    classes, predicted = list(range(k)), proba.argmax(axis=1)
    options = {"n_pool": n_pool}
    rows = rng.choice(n_pool, n, replace=False)
    if design == "active":
        doubt = 1 - proba.max(axis=1) + 1e-3
        size = 0.5 + 0.5 * doubt / doubt.mean()
        rows = np.argsort(rng.exponential(size=n_pool) / size)[:n]
        left = size.sum() - np.r_[0, np.cumsum(size[rows])[:-1]]
        options["draw_proba"] = size[rows] / left
    shares = np.bincount(y, minlength=k) / n_pool
    both = proba[rows], proba
    found = estimate_prevalence(y[rows], *both, classes=classes, **options).estimates
    for j in np.flatnonzero((shares >= LEAST) & (shares <= MOST)):
        plain = estimate_share(y[rows] == j, n_pool=n_pool)
        one = found[None, j]
        part = "rare" if shares[j] < 0.1 else "common"
        tally.add((design, name, n, f"share {part}"), one, shares[j], plain)
        if design == "random":
            tally.add((design, name, n, "plain share"), plain, shares[j])
    options |= {"classes": classes, "cross_fitted": False}
    quality = estimate_quality(y[rows], predicted[rows], *both, **options)
    key = (design, name, n)
    gap = proba.max(axis=1).mean() - np.mean(predicted == y)
    tally.add((*key, "overconfidence"), quality.overconfidence, gap)
    add_quality(tally, key, quality, y, predicted, classes)


def add_quality(tally, key, quality, y, predicted, classes):
    """Add estimates of the quality of predictions to a tally."""
    measured = precision_recall_fscore_support(
        y, predicted, labels=classes, zero_division=0
    )[:3]
    tally.add((*key, "accuracy"), quality.accuracy, np.mean(predicted == y))
    tally.add((*key, "macro F1"), quality.macro_f1, measured[2].mean())
    shares = np.bincount(y, minlength=len(classes)) / len(y)
    for j in np.flatnonzero((shares >= LEAST) & (shares <= MOST)):
        one = quality.classes[j]
        parts = zip(PARTS, (one.precision, one.recall, one.f1), measured, strict=True)
        for part, estimate, truth in parts:
            tally.add((*key, part), estimate, truth[j])


def label_with_audit(X, y, strategy, seed):
    """Return the labeled rows and the audited ones of a session.

    The audit draws every third or fifth text, in a random order of the pool; labeled
    texts that come next in this order are audited without a draw.
    """
    rng = np.random.default_rng(seed)
    order, every = rng.permutation(len(y)).tolist(), int(rng.choice([3, 5]))
    n_labels, size = int(rng.choice([160, 240])), 20 // every
    rows, learner = begin(X, y, strategy, 20 - size, seed, rng)
    place = 0
    while len(rows) < n_labels:
        drawn = []
        while len(drawn) < size:
            drawn += [order[place]] if order[place] not in rows else []
            place += 1
        left = np.setdiff1d(np.arange(len(y)), rows + drawn)
        asked = [*drawn, *learner.query(X, candidates=left).tolist()]
        learner.teach(X[asked], y[asked])
        rows += asked
    while order[place] in rows:
        place += 1
    return np.array(rows), np.array(order[:place])


def audit_in_session(tally, name, X, y, strategy, seed):
    """Audit a session while a strategy chooses, and add its estimates to a tally."""
    k, n_pool = int(y.max()) + 1, len(y)
    rows, drawn = label_with_audit(X, y, strategy, seed)
    proba = predict_all(X, y, rows, k, seed=seed)
    predicted, classes = proba.argmax(axis=1), list(range(k))
    shares = np.bincount(y, minlength=k) / n_pool
    both = proba[drawn], proba
    found = estimate_prevalence(y[drawn], *both, classes=classes).estimates
    for j in np.flatnonzero((shares >= LEAST) & (shares <= MOST)):
        plain = estimate_share(y[drawn] == j, n_pool=n_pool)
        key = ("session", name, 0, "share")
        tally.add(key, found[None, j], shares[j], plain)
    for way, options in (("session", both), ("session, labels alone", ())):
        quality = estimate_quality(
            y[drawn], predicted[drawn], *options, classes=classes
        )
        add_quality(tally, (way, name, 0), quality, y, predicted, classes)
        if options:
            rest = np.delete(predicted == y, rows)
            key = ("session", name, 0, "accuracy of the rest")
            tally.add(key, quality.accuracy, rest.mean())


def follow(tally, name, y, proba, rng, n):
    """Audit by a person who follows 30 % of the doubtful predictions, if shown."""
    predicted, confidence = proba.argmax(axis=1), proba.max(axis=1)
    doubtful = confidence < np.median(confidence)
    rows = rng.choice(len(y), n, replace=False)
    for shown in (False, True):
        given = y[rows].copy()
        if shown:
            led = doubtful[rows] & (rng.random(n) < 0.3)
            given[led] = predicted[rows][led]
        right = given == predicted[rows]
        found = estimate_share(right, confidence[rows], confidence)
        truth = np.mean(predicted == y)
        way = "shown" if shown else "blind"
        tally.add((way, name, n, "accuracy"), found, truth)


def audit_machines(tally, name, rng, n, n_draws):
    """Draw audits of the answers of language models."""
    table = read(f"{name}/test")
    names = sorted(table["label"].unique())
    y = table["label"].to_numpy()
    answers = np.stack(
        [table[one].to_numpy()[:, None] == names for one in ANSWERED], axis=2
    ).astype(float)
    bias = []
    for j, one in enumerate(names):
        share = np.mean(y == one)
        if LEAST <= share <= MOST:
            bias.append(abs(answers[:, j, 0].mean() - share))
    for _ in range(n_draws):
        rows = rng.choice(len(y), n, replace=False)
        for way, f in (("chatgpt", answers[:, :, :1]), ("four models", answers)):
            found = estimate_prevalence(y[rows], f[rows], f, classes=names).estimates
            for one in names:
                share = np.mean(y == one)
                if LEAST <= share <= MOST:
                    plain = estimate_share(y[rows] == one, n_pool=len(y))
                    key = ("machine", name, n, way)
                    tally.add(key, found[None, one], share, plain)
    return {"largest": max(bias), "mean": float(np.mean(bias))}


DEFAULTS = {"cache": Path("benchmark-features"), "sets": SETS}


def read_sets(args):
    """Yield the name, the features and the classes of each data set."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    args.cache.mkdir(exist_ok=True)
    for name in args.sets:
        if args.smoke:
            rng = np.random.default_rng(0)
            y = rng.integers(3, size=500)
            yield name, rng.normal(size=(500, 8)) + 2 * np.eye(8)[y], y
        else:
            yield name, *encode(name, args.cache)


def predict_queried(X, y, strategy, seed):
    """Return the probabilities (n, k) of a model of texts that a strategy queried."""
    return predict_all(X, y, label(X, y, strategy, seed), int(y.max()) + 1)


def main():
    """Run the benchmark."""
    args = parse(__doc__, **DEFAULTS)
    began, tally, counted = time.process_time(), Tally(), {}
    for place, (name, X, y) in enumerate(read_sets(args)):
        for strategy in ("margin", "uherding"):
            for seed in range(args.sessions):
                rng = np.random.default_rng([place, seed, strategy == "margin"])
                proba = predict_queried(X, y, strategy, seed)
                for n in SIZES:
                    for _ in range(args.draws):
                        for design in ("random", "active"):
                            audit(tally, name, y, proba, rng, n, design)
                    for _ in range(4 * args.draws):
                        follow(tally, name, y, proba, rng, n)
            for seed in range(args.draws):
                audit_in_session(tally, name, X, y, strategy, seed)
        spent = time.process_time() - began
        print(name, f"{spent:.0f} s of processor time", flush=True)
    for name in () if args.smoke else MACHINES:
        rng = np.random.default_rng(0)
        for n in SIZES[:2]:
            draws = 20 * args.draws
            counted[name] = audit_machines(tally, name, rng, n, draws)
    found = {"figures": tally.rows(), "counted": counted}
    if args.output:
        args.output.write_text(json.dumps(found, indent=1) + "\n")
    for key, row in found["figures"].items():
        shown = ", ".join(f"{name} {value:.3g}" for name, value in row.items())
        print(f"{key}: {shown}")


if __name__ == "__main__":
    main()
