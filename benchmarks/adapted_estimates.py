"""What labels are worth in estimates, with a frozen encoder and with one that learns.

100 random texts of a data set are labeled, and a model learns from them: the frozen
classifier of `make_text_classifier(adapt=False)`, and the mixture of the default. Its
predictions are the proxy of `skactive.estimation`, those of labeled texts by the models
that lack them. The 100 labels are the sample ("own"), or 25 other samples of 100 texts
are drawn from the same pool ("other"). Run from the repository:

    python benchmarks/adapted_estimates.py --out FOLDER

SKACTIVE_DATA is the folder of the data sets. Finished runs are kept in --out, a line
each, and are not run again. "worth" is the effective size divided by the labels. In
sets with answers of language models ("llm_emotion/test"), shares are also estimated
with these answers, and with both.

Options:
    --out FOLDER
    --sets NAME...
    --seeds 3
    --draws 25
    --labels 100
Smoke: --sets docstrings --seeds 1 --draws 2 --labels 25
"""

import json
import time
import warnings
from collections import defaultdict
from pathlib import Path

import estimates
import numpy as np
from _harness import minilm, parse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from skactive import make_text_classifier
from skactive.datasets import load_docstrings
from skactive.estimation import (
    estimate_prevalence,
    estimate_quality,
    estimate_share,
    out_of_fold,
)

WAYS = ("frozen", "adapted")


def predict_pool(way, texts, y, rows, args):
    """Return the probabilities (n, k) of the pool; labeled texts are held out."""
    model = make_text_classifier(minilm(), adapt=way == "adapted", max_length=48)
    if args.smoke and way == "adapted":
        model.set_params(adapted__adaptedfeatures__n_steps=1)
    labeled = [texts[i] for i in rows]
    rest = np.setdiff1d(np.arange(len(texts)), rows)
    others = [texts[i] for i in rest]
    found = out_of_fold(clone(model), labeled, y[rows], others, n_rest=len(rest))
    proba = np.zeros((len(texts), int(y.max()) + 1))
    proba[np.ix_(rows, found.classes)] = found.proba
    proba[np.ix_(rest, found.classes)] = found.rest_proba
    return proba


def add_own(tally, name, y, proba, rows):
    """Add the estimates from the labels that the model learned from."""
    classes, both = list(range(proba.shape[1])), (proba[rows], proba)
    predicted, shares = proba.argmax(axis=1), np.bincount(y) / len(y)
    found = estimate_prevalence(y[rows], *both, classes=classes).estimates
    for j in np.flatnonzero((shares >= estimates.LEAST) & (shares <= estimates.MOST)):
        tally.add(("own", name, len(rows), "share"), found[None, j], shares[j])
    quality = estimate_quality(y[rows], predicted[rows], *both, classes=classes)
    right = np.mean(predicted == y)
    tally.add(("own", name, len(rows), "accuracy"), quality.accuracy, right)


def add_answers(tally, name, table, y, proba, rng, n):
    """Add estimates of common shares with answers of language models as proxies."""
    names = np.unique(table["label"])
    answers = [table[one].to_numpy()[:, None] == names for one in estimates.ANSWERED]
    answers = np.stack(answers, axis=2).astype(float)
    model = proba[:, :, None]
    proxies = {
        "predictions": model,
        "one machine": answers[:, :, :1],
        "four machines": answers,
        "one machine and predictions": np.concatenate([answers[:, :, :1], model], 2),
        "four and predictions": np.concatenate([answers, model], 2),
    }
    rows = rng.choice(len(y), n, replace=False)
    classes, shares = list(range(len(names))), np.bincount(y) / len(y)
    for way, f in proxies.items():
        found = estimate_prevalence(y[rows], f[rows], f, classes=classes).estimates
        for j in np.flatnonzero((shares >= 0.1) & (shares <= estimates.MOST)):
            plain = estimate_share(y[rows] == j, n_pool=len(y))
            tally.add((way, name, n, "share"), found[None, j], shares[j], plain)


def play(name, seed, args):
    """Return the record of a data set and a seed."""
    table = None
    if args.smoke:
        texts, y = load_docstrings(max_per_library=20, return_X_y=True)
    else:
        table = estimates.read(name)
        texts, y = table["text"].tolist(), table["label"].astype(str)
    y = np.unique(y, return_inverse=True)[1]
    rng = np.random.default_rng([seed, 54])
    rows = np.sort(rng.choice(len(y), args.labels, replace=False))
    record = {"set": name, "seed": seed}
    for way in WAYS:
        began, tally = time.process_time(), estimates.Tally()
        with threadpool_limits(limits=1):
            proba = predict_pool(way, texts, y, rows, args)
        add_own(tally, name, y, proba, rows)
        draws = np.random.default_rng([seed, 55])
        for _ in range(args.draws):
            estimates.audit(tally, name, y, proba, draws, args.labels, "random")
            if name.startswith("llm_"):
                add_answers(tally, name, table, y, proba, draws, args.labels)
        accuracy = float(np.mean(proba.argmax(axis=1) == y))
        record[way] = {
            "accuracy": accuracy,
            "seconds": round(time.process_time() - began),
            "covered": {"|".join(map(str, k)): v for k, v in tally.covered.items()},
            "worth": {"|".join(map(str, k)): v for k, v in tally.worth.items()},
        }
    return record


def show(records):
    """Print the worth and the coverage of each measure, by way and data set."""
    for way in WAYS:
        worth, covered = defaultdict(list), defaultdict(list)
        by_set = defaultdict(list)
        for record in records:
            for key, values in record[way]["worth"].items():
                design, name, _, measure = key.split("|")
                if measure.startswith("plain") or measure in estimates.PARTS:
                    continue
                measure = f"{design} {measure}"
                worth[measure] += values
                by_set[measure, name] += values
                covered[measure] += map(bool, record[way]["covered"][key])
        for measure, values in worth.items():
            medians = [np.median(v) for (m, _), v in by_set.items() if m == measure]
            print(
                f"{way}, {measure}: worth {np.median(values):.2f}, by set "
                f"{min(medians):.2f} to {max(medians):.2f}, median of the sets "
                f"{np.median(medians):.2f}; holds {np.mean(covered[measure]):.1%} of "
                f"{len(values)}"
            )


def main():
    """Run the benchmark."""
    warnings.simplefilter("ignore")
    defaults = {"out": Path("benchmark-features/estimates"), "sets": estimates.SETS}
    args = parse(__doc__, **defaults)
    args.out.mkdir(exist_ok=True, parents=True)
    path = args.out / f"adapted_estimates{'_smoke' * args.smoke}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    done = {(record["set"], record["seed"]) for record in records}
    for seed in range(args.seeds):
        for name in args.sets:
            if (name, seed) in done:
                continue
            records.append(play(name, seed, args))
            with path.open("a") as file:
                file.write(json.dumps(records[-1], default=bool) + "\n")
    show(records)


if __name__ == "__main__":
    main()
