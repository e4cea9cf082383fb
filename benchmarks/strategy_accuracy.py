"""Accuracy and macro F1 of every strategy vs. random labels, on ten data sets.

    SKACTIVE_DATA=.../data python benchmarks/strategy_accuracy.py --out runs
    python benchmarks/strategy_accuracy.py --smoke    # seconds, for CI

Pools, features and rounds are those of labels_needed.py: at most 4,000 texts, of which
a seed draws three quarters, and at most 2,000 test texts. The first 10 labels of a seed
are random, and the same for every strategy; a strategy chooses all others. The model is
that of make_text_classifier ("recommended"), which learns from the pool as well, or
with --model plain scikit-learn's default logistic regression on mean-pooled features.
--model second is the first model on the features of another --encoder and its --prompt.
Every registered built-in strategy runs with its default parameters, but those that need
a language model in the loop (`alps`, `egl_embedding`). A strategy that needs what the
model lacks, such as posterior draws, has a record without rounds.

Finished runs are kept in --out, a file for each data set and model and a line for each
run, and are not run again. Seeds come first, so that a run that is stopped leaves the
same seeds for every strategy. strategy_tables.py makes the page from these files.

Options:
    --data NAME...
    --strategies NAME...     by default all that can be run
    --model {recommended,plain,second}
    --encoder FOLDER
    --prompt TEXT            that the encoder wants before each text
    --pool 4000
    --test 2000
    --most 500
    --seeds 30
    --n-jobs 1
    --out FOLDER             keeps the runs
Smoke: --data docstrings --pool 160 --test 40 --seeds 1 --most 25
"""

import sys
from time import process_time

import numpy as np
from _harness import Records, minilm, parse
from joblib import Parallel, delayed
from labels_needed import COUNTS, DATA, draw, max_length
from learning_curves import load
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner, get_strategy, make_text_classifier
from skactive.bert import BertFeatures
from skactive.registry import available

MODELS = ("recommended", "plain", "second")
LONG = ("banking77", "cap_sotu")
SCORED = (*COUNTS[1:], 750, 1000, 1500, 2000)


def runnable(name):
    """Whether a linear model on fixed features can serve the strategy."""
    strategy = get_strategy(name)
    needs_text = {"surprisal", "embedding_gradients"} & strategy.requires
    return "single-label" in strategy.targets and not needs_text


def play(name, data, strategy, seed, args):
    """Run one loop; the record of a run: number of labels, accuracy, macro F1."""
    X, y, X_test, y_test = data
    rows = draw(len(X), seed)
    X, y = X[rows], y[rows]
    most = min(args.most * (4 if name in LONG else 1), len(X) // 2)
    counts = [n for n in SCORED if n <= most]
    is_plain = args.model == "plain"
    model = LogisticRegression() if is_plain else make_text_classifier(adapt=False)[-1]
    learner = ActiveLearner(model, strategy, cold_start="random", random_state=seed)
    unlabeled = np.ones(len(X), dtype=bool)
    first = np.random.default_rng([seed, 33]).permutation(len(X))[: counts[0]]
    rounds, asking, start = [], 0.0, process_time()
    with threadpool_limits(limits=1):
        for before, n in zip([0, *counts], counts, strict=False):
            begin, batch = process_time(), first
            if before:
                try:
                    batch = learner.query(X, n - before, candidates=unlabeled)
                except TypeError as error:  # the model lacks what the strategy needs
                    reason = str(error).partition(";")[0]
                    print(f"{name}: {reason}", file=sys.stderr)
                    return {"strategy": strategy, "seed": seed, "rounds": []}
                asking += process_time() - begin
            unlabeled[batch] = False
            pool = {} if is_plain else {"X_unlabeled": X[unlabeled]}
            if is_plain and before == 0 and len(set(y[batch])) < 2:
                learner.teach(X[batch], y[batch], refit=False)
                continue
            learner.teach(X[batch], y[batch], **pool)
            predicted = learner.predict(X_test)
            f1 = f1_score(y_test, predicted, average="macro")
            accuracy = np.mean(predicted == y_test)
            rounds.append([n, round(1e4 * accuracy), round(1e4 * f1)])
    seconds = [round(asking, 2), round(process_time() - start, 2)]
    return {"strategy": strategy, "seed": seed, "rounds": rounds, "seconds": seconds}


def encode(name, args):
    """Features and labels of the pool and of the test set."""
    X, y, X_test, y_test = load(name, args.pool, args.test)
    features = BertFeatures(
        args.encoder,
        pooling="mean" if str(args.encoder) == minilm() else "auto",
        normalize=False,
        max_length=max_length(name),
        prompt=args.prompt,
        cache="memory" if args.smoke else str(args.out / "features"),
    )
    change = (lambda x: x) if args.model == "plain" else normalize
    return change(features.transform(X)), y, change(features.transform(X_test)), y_test


def run(args):
    """Run what is missing in --out; the records of all runs, dict of data to list."""
    done = {
        name: Records(args.out and args.out / f"{name}-{args.model}.jsonl")
        for name in args.data
    }
    had = {(d, r["strategy"], r["seed"]) for d in done for r in done[d]}
    jobs = [
        (name, strategy, seed)
        for seed in range(args.seeds)
        for name in args.data
        for strategy in args.strategies
    ]
    jobs = [job for job in jobs if job not in had]
    data = {name: encode(name, args) for name in dict.fromkeys(job[0] for job in jobs)}
    print(f"{len(jobs)} runs", file=sys.stderr)
    worker = Parallel(n_jobs=args.n_jobs, return_as="generator")
    tasks = (delayed(play)(n, data[n], s, seed, args) for n, s, seed in jobs)
    for (name, *_), record in zip(jobs, worker(tasks), strict=True):
        done[name].add(record)
    return done


def read_args(argv=None):
    """Parse the command line; by default all strategies that can be run."""
    names = sorted(e.name for e in available() if e.builtin and runnable(e.name))
    names = ["random", *(name for name in names if name != "random")]
    return parse(__doc__, argv, data=DATA, strategies=names, encoder=minilm())


def main():
    for name, records in run(read_args()).items():
        played = [record for record in records if record["rounds"]]
        best = max(played, key=lambda r: r["rounds"][-1][1])
        print(f"{name}: {len(records)} runs, the best one by {best['strategy']}")


if __name__ == "__main__":
    main()
