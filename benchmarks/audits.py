"""Audits of a session: an active design, where a goal stops, and calibration errors.

Predictions are those of models of texts that `margin` queried, as in `estimates.py`,
which encodes the texts. Run from the repository:

    python benchmarks/audits.py --cache FOLDER --output audits.json

SKACTIVE_DATA is the folder of the data sets.

Options:
    --cache FOLDER
    --output FILE
    --sessions 3
    --draws 200
    --sets NAME...
Smoke: --sets "made up" --sessions 1 --draws 4
"""

import json
from collections import defaultdict

import numpy as np
from _harness import parse
from estimates import DEFAULTS, LEAST, MOST, predict_queried, read_sets

from skactive.estimation import estimate_prevalence, estimate_quality

SETS = (
    *("ag_news/test", "tweet_emotion/train", "disaster_tweets/train", "sst2/train"),
    "trec/train",
)
GOALS = ("shares:5", "shares:8", "accuracy:5", "accuracy:8")


# Active draws among the reserved texts ------------------------------------------------


def draw(doubt, n, rng):
    """Return n places of an active audit and the probability of each draw.

    Half of the probability is by doubt (m,) and half is the same for all that are left.
    """
    m, left = len(doubt), np.ones(len(doubt), dtype=bool)
    places, probabilities = np.empty(n, dtype=int), np.empty(n)
    for t in range(n):
        weights = np.where(left, doubt, 0.0)
        q = weights / weights.sum() / 2 + left / (m - t) / 2
        place = min(int(np.searchsorted(np.cumsum(q), rng.random() * q.sum())), m - 1)
        places[t], probabilities[t] = place, q[place]
        left[place] = False
    return places, probabilities


def estimate_residuals(residuals, q, m):
    """Return the means (2, k) of the m reserved residuals from those of draws (n, k).

    The first is the mean of the terms of Des Raj, and the second their levelled mean.
    """
    n = len(q)
    terms = (np.cumsum(residuals, axis=0) - residuals + residuals / q[:, None]) / m
    left = m - np.arange(n)
    weights = 1 / (left * (left - 1.0))
    return np.stack([terms.mean(axis=0), weights @ terms / weights.sum()])


def compare_designs(found, name, y, proba, rng, n_draws):
    """Add the variance of a random audit relative to that of an active one.

    Both estimate the mean residual with the same coefficient, that of least squares on
    the pool, and draw from the same reserved texts.
    """
    shares = np.eye(proba.shape[1])[y].mean(axis=0)
    used = np.flatnonzero((shares >= LEAST) & (shares <= MOST))
    values = np.column_stack([y[:, None] == used, proba.argmax(axis=1) == y])
    proxies = np.column_stack([proba[:, used], proba.max(axis=1)])
    centered = proxies - proxies.mean(axis=0)
    coef = (centered * values).sum(axis=0) / np.square(centered).sum(axis=0)
    residuals = values - values.mean(axis=0) - coef * centered
    doubt = 1 - proba.max(axis=1) + 1e-6
    for every in (10, 5):
        m = len(y) // every
        for n in (40, 100, 200):
            if n > 0.8 * m:
                continue
            errors = np.empty((n_draws, 3, len(coef)))
            for i in range(n_draws):
                reserved = rng.permutation(len(y))[:m]
                errors[i, 0] = residuals[reserved[:n]].mean(axis=0)
                places, q = draw(doubt[reserved], n, rng)
                drawn = residuals[reserved[places]]
                errors[i, 1:] = estimate_residuals(drawn, q, m)
            random, *active = np.square(errors).mean(axis=0)
            for way, one in zip(("mean", "levelled"), active, strict=True):
                gains = random / one
                for part, gain in (("shares", gains[:-1]), ("accuracy", gains[-1:])):
                    found["active", part, way, every, n, name] += gain.tolist()


# Where a goal stops -------------------------------------------------------------------


def stop_at_goals(found, name, y, proba, rng, n_draws):
    """Add whether the intervals hold at the first check that reaches a goal."""
    k = proba.shape[1]
    classes, predicted = list(range(k)), proba.argmax(axis=1)
    shares, accuracy = np.bincount(y, minlength=k) / len(y), np.mean(predicted == y)
    used = np.flatnonzero((shares >= LEAST) & (shares <= MOST))
    for _ in range(n_draws):
        order, n, waiting = rng.permutation(len(y)), 20, [*GOALS]
        while waiting and n <= len(y) // 2:
            rows = order[:n]
            both = proba[rows], proba
            table = estimate_prevalence(y[rows], *both, classes=classes).estimates
            options = {"classes": classes, "cross_fitted": False}
            one = estimate_quality(y[rows], predicted[rows], *both, **options)
            one = one.accuracy
            widths = {"accuracy": one.half_width}
            widths["shares"] = max(x.half_width for x in table.values())
            for goal in [*waiting]:
                what, points = goal.split(":")
                if widths[what] > float(points) / 100:
                    continue
                waiting.remove(goal)
                pairs = [(one, accuracy)]
                if what == "shares":
                    pairs = [(table[None, j], shares[j]) for j in used]
                for estimate, truth in pairs:
                    low, high = estimate.interval
                    hit = low - 1e-9 <= truth <= high + 1e-9
                    found["stop", goal, "holds", name].append(hit)
                found["stop", goal, "labels", name].append(n)
            n += max(10, n // 20)


# Calibration error --------------------------------------------------------------------


def find_error(right, confidence, rows):
    """Return the expected calibration error of some rows, with ten bins."""
    bins = np.minimum((10 * confidence[rows]).astype(int), 9)
    gaps = np.bincount(bins, right[rows] - confidence[rows], 10)
    return np.abs(gaps).sum() / len(rows)


def add_calibration(found, name, y, proba, rng, n_draws):
    """Add calibration errors of samples, whose bootstrap intervals are compared."""
    confidence = proba.max(axis=1)
    right = (proba.argmax(axis=1) == y).astype(float)
    calibrated = (rng.random(len(y)) < confidence).astype(float)
    for way, values in (("model", right), ("calibrated", calibrated)):
        truth = find_error(values, confidence, np.arange(len(y)))
        for n in (40, 100, 300):
            for _ in range(n_draws):
                rows = rng.choice(len(y), n, replace=False)
                value = find_error(values, confidence, rows)
                again = [
                    find_error(values, confidence, rows[rng.integers(n, size=n)])
                    for _ in range(200)
                ]
                low, high = np.quantile(again, (0.025, 0.975))
                found["calibration", way, n, "error", name].append(value - truth)
                hit = low <= truth <= high
                found["calibration", way, n, "percentiles", name].append(hit)
                hit = low <= 2 * value - truth <= high
                found["calibration", way, n, "basic", name].append(hit)


def main():
    """Run the benchmark."""
    args = parse(__doc__, **{**DEFAULTS, "sets": SETS})
    found = defaultdict(list)
    for place, (name, X, y) in enumerate(read_sets(args)):
        for seed in range(args.sessions):
            rng = np.random.default_rng([place, seed])
            proba = predict_queried(X, y, "margin", seed)
            compare_designs(found, name, y, proba, rng, args.draws)
            stop_at_goals(found, name, y, proba, rng, args.draws // 4)
            add_calibration(found, name, y, proba, rng, args.draws // 4)
        print(name, flush=True)
    means = {
        "|".join(map(str, key)): float(
            (np.median if key[0] == "active" else np.mean)(values)
        )
        for key, values in found.items()
    }
    if args.output:
        args.output.write_text(json.dumps(means, indent=1) + "\n")
    for key, value in means.items():
        print(f"{key}: {value:.3g}")


if __name__ == "__main__":
    main()
