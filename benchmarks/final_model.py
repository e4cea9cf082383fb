"""Is the average of the loop's model and of a fine-tuned encoder ever worse?

    SKACTIVE_DATA=.../data python benchmarks/final_model.py --out final_model
    python benchmarks/final_model.py --smoke    # about a minute, for CI

The labels are random ones (10) and then those that uherding asks for, on features of
MiniLM. The model of the loop is that of make_text_classifier, the encoder that of
make_fine_tuned_classifier. A seed draws three quarters of the pool. The probabilities
for the test texts are kept in --out, a file for each run, and are not computed again.
Prints the accuracies of both models and of averages in which the encoder's logits are
divided by a temperature.
"""

import argparse
from pathlib import Path
from time import process_time

import numpy as np
from labels_needed import encode, make_bert
from scipy.special import softmax
from strategy_default import DATA
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner, make_text_classifier

SCHEDULE = [10, 25, 50, 75, 100, 150, 200]
SCORED = [50, 100, 200]
TEMPERATURES = (1, 1.5, 2)


def play(data, name, seed, args):
    """Write the probabilities of both models at each number of labels."""
    X, y, X_test, y_test = data["unit"]
    texts, test_texts = data["texts"][0], data["texts"][2]
    rng = np.random.default_rng([seed, 27])
    rows = rng.permutation(len(X))[: int(0.75 * len(X))]
    X, y, texts = X[rows], np.asarray(y)[rows], [texts[i] for i in rows]
    learner = ActiveLearner(
        make_text_classifier()[-1], cold_start="random", random_state=seed
    )
    free, queried = np.ones(len(X), dtype=bool), []
    for n in [n for n in SCHEDULE if n <= args.most]:
        batch = learner.query(X, n - len(queried), candidates=free)
        free[batch] = False
        queried += batch.tolist()
        learner.teach(X[batch], y[batch], X_unlabeled=X[free])
        path = args.out / f"{name}_{n}_{seed}.npz"
        if n not in args.scored or path.exists():
            continue
        start = process_time()
        tuned = make_bert(name, seed)
        if args.smoke:
            tuned.set_params(max_epochs=1)
        tuned.fit([texts[i] for i in queried], y[queried])
        seconds = process_time() - start
        np.savez_compressed(
            path,
            loop=learner.predict_proba(X_test).astype(np.float32),
            tuned=tuned.predict_proba(test_texts).astype(np.float32),
            y=np.asarray(y_test),
            classes=tuned.classes_,
            seconds=seconds,
        )


def read(path):
    """Accuracies in percent of the models of a file, and the seconds of fine-tuning."""
    with np.load(path) as found:
        loop, tuned = found["loop"].astype(float), found["tuned"].astype(float)
        models = {"loop": loop, "fine-tuned": tuned}
        for t in TEMPERATURES:
            soft = softmax(np.log(np.maximum(tuned, 1e-9)) / t, axis=1)
            models[f"average, {t}"] = (loop + soft) / 2
        scores = {
            name: 100 * (found["classes"][p.argmax(axis=1)] == found["y"]).mean()
            for name, p in models.items()
        }
        return scores | {"seconds": float(found["seconds"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--pool", type=int, default=4000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("final_model"))
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    args.most, args.scored = 200, SCORED
    if args.smoke:
        args.data, args.pool, args.test, args.seeds = ["docstrings"], 120, 40, 1
        args.most, args.scored = 10, [10]
    args.out.mkdir(parents=True, exist_ok=True)
    lines = []
    for name in args.data:
        data = encode(name, args)
        for seed in range(args.seeds):
            with threadpool_limits(limits=1):
                play(data, name, seed, args)
        for n in args.scored:
            runs = [read(path) for path in sorted(args.out.glob(f"{name}_{n}_*.npz"))]
            means = {key: np.mean([run[key] for run in runs]) for key in runs[0]}
            lines.append((name, n, len(runs), means))
    names = list(lines[0][3])
    print("| data | labels | seeds | " + " | ".join(names) + " |")
    print("|---|--:|--:|" + "--:|" * len(names))
    for name, n, seeds, means in lines:
        cells = " | ".join(f"{x:.1f}" for x in means.values())
        print(f"| {name} | {n} | {seeds} | {cells} |")


if __name__ == "__main__":
    main()
