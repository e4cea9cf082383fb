"""Where `CostRule` stops, and the costs there compared with the best stop.

    SKACTIVE_DATA=.../data python benchmarks/stopping_costs.py    # AG News and SST-2
    python benchmarks/stopping_costs.py --smoke                   # seconds, for CI

Pools of 6,000 texts and 2,000 other ones to score, MiniLM features, logistic
regression, margin sampling in rounds of 50, three seeds. A label costs 1. The cost of a
stop is that of the labels and of the errors among the unlabeled texts. The best stop is
found by labeling the whole pool.

Options:
    --data ag_news sst2
    --texts 8000
    --pool 6000          texts of the pool; the others are scored
    --seeds 3
Smoke: --data smoke --texts 600 --pool 400 --seeds 1
"""

import numpy as np
from _harness import data_path, minilm, parse, print_rows
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

    from skactive.bert import BertFeatures

    data = pd.read_parquet(data_path(name, "train")).drop_duplicates("text")
    data = data.sample(n, random_state=0)
    texts, y = data["text"].tolist(), data["label"].to_numpy()
    return BertFeatures(minilm(), pooling="mean", normalize=False).fit_transform(
        texts
    ), y


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


def list_rows(args):
    """Yield the rows of each data set."""
    for name in args.data:
        X, y = load(name, args.texts)
        runs = [label_all(X, y, args.pool, seed) for seed in range(args.seeds)]
        for cost in ERROR_COSTS:
            cells = []
            for found, stops in runs:
                costs = found[:, 0] + cost * found[:, 1]
                labels, _, accuracy = found[stops[cost]]
                best = costs.argmin()
                ends = costs[stops[cost]], costs[best], found[best, 0]
                cells.append((accuracy, labels, *ends))
            accuracy, *rest = np.mean(cells, axis=0)
            yield [name, cost, f"{accuracy:.3f}", *(f"{value:.0f}" for value in rest)]


def main():
    head = "data|cost of an error|accuracy|labels|cost|best cost|its labels"
    print_rows(head, list_rows(parse(__doc__)))


if __name__ == "__main__":
    main()
