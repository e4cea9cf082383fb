"""Few labels per class, compared with SetFit on the same texts.

    SKACTIVE_DATA=.../data python benchmarks/few_shot.py --out few_shot --page
    python benchmarks/few_shot.py --scale smoke     # seconds, on docstrings, no SetFit
    python benchmarks/few_shot.py --rebuild --page  # the tables again

SetFit's published protocol: 8, 16 or 64 random labels of each class. Compared are the
adapted pipeline, the plain one, the three models of few_label_tuning.py, and SetFit,
which trains on the same labels with the same encoder in an environment of its own in
--out, which is made first. All models are run on the sets in `whole`, the adapted
pipeline and SetFit on all. Tests as in few_label_tuning.py. few_shot.toml has the
sizes, and how many draws there are of each number of labels.
"""

import json
import os
import subprocess
import tempfile
from copy import copy
from functools import partial
from pathlib import Path
from time import process_time

import _harness as harness
import numpy as np
from few_label_tuning import (
    compare,
    draw_scores,
    fit_average,
    make_loop,
    pick,
    read,
    score,
)
from papers.common import RAW
from peers.environments import make_environment
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive.bert import AdaptedFeatures, BertFeatures

NAMES = ("plain", "loop", "fine-tuned", "averaged", "adapted", "SetFit")
WORKER = Path(__file__).parent / "peers" / "few_shot_setfit.py"


def draw(y, n_each, seed):
    """Random positions, n_each of each class first."""
    order = np.random.default_rng([seed, 34]).permutation(len(y))
    rows = np.concatenate([order[y[order] == c][:n_each] for c in np.unique(y)])
    return rows, order[~np.isin(order, rows)]


def run_cell(settings, *, data, labels, model, seed, sizes):
    """Accuracies after training on labels of each class, and processor seconds."""
    X, X_test, y, y_test = read(data, sizes["n_pool"], sizes["n_test"])
    rows, others = draw(y, labels, seed)
    if model == "SetFit":
        predicted, seconds = run_setfit(settings, X[rows], y[rows], X_test, seed)
        scores = {model: float(np.mean(predicted == y_test))}
        return {"scores": scores, "processor": round(seconds, 2)}
    if model == "adapted":
        length = sizes["max_length"]
        features = AdaptedFeatures(
            settings.model, max_length=length, cache=None, random_state=seed, verbose=0
        )
        adapted = make_pipeline(features, LogisticRegression(C=10))
        start = process_time()
        adapted.fit(X[rows], y[rows])
        spent = round(process_time() - start, 2)
        return score({model: adapted}, X_test, y_test) | {"processor": spent}
    loop = make_loop(settings, X)
    features = BertFeatures(settings.model, **RAW, max_length=sizes["max_length"])
    plain = make_pipeline(features, LogisticRegression())
    plain.fit(X[rows], y[rows])
    start = process_time()
    others = others[: sizes["n_unlabeled"]]
    models = fit_average(settings, loop, X, y, rows, others, seed)
    seconds = process_time() - start
    found = score({"plain": plain} | models, X_test, y_test)
    return found | {"processor": round(seconds, 2)}


def run_setfit(settings, X, y, X_test, seed):
    """Predictions of SetFit, and its processor seconds of training."""
    python = make_environment("setfit", settings.out / "environments")
    problem = {"model": str(settings.model), "seed": seed, "texts": list(X)}
    problem |= {"labels": y.tolist(), "test": list(X_test)}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "problem.json").write_text(json.dumps(problem))
        subprocess.run([python, WORKER, folder], check=True, env=environment)
        answer = json.loads((Path(folder) / "answer.json").read_text())
    classes = np.array(answer["classes"])
    return classes[np.argmax(answer["proba"], axis=1)], answer["seconds"]


def run(settings):
    """Run what is not finished."""
    grid = [
        {"data": d, "labels": n, "model": model, "seed": seed, "sizes": settings.sizes}
        for d in settings.data
        for n, draws in zip(settings.labels, settings.draws[d], strict=True)
        for seed in range(min(draws, settings.seeds))
        for model in settings.models
        if model != "skactive" or d in settings.whole
    ]
    return harness.run_missing(partial(run_cell, settings), grid, settings, "sizes")


def names_of(records, data=None):
    """The models in the order of the page, of one data set if given."""
    own = records if data is None else [r for r in records if r["data"] == data]
    found = {name for r in own for name in r["scores"]}
    return [name for name in NAMES if name in found]


def make_tables(records, settings):
    """Accuracy by labels of each class, paired tests, and seconds of training."""
    rows, seconds = [], []
    whole = copy(settings)
    whole.data = settings.whole
    for d in whole.data:
        spent = {}
        for name in names_of(records, d):
            found = [pick(records, d, n, name) for n in settings.labels]
            rows.append(
                [d, name, *(harness.mean_std(f, 1) if len(f) else "-" for f in found)]
            )
            if name in {"averaged", "adapted", "SetFit"}:
                own = [r for r in records if r["data"] == d and name in r["scores"]]
                each = [
                    [r["processor"] for r in own if r["labels"] == n]
                    for n in settings.labels
                ]
                spent[name] = np.array([np.mean(s) if s else np.nan for s in each])
        for name, means in spent.items():
            seconds.append(
                [d, name, *("-" if np.isnan(s) else f"{s:.1f}" for s in means)]
            )
    names = names_of(records)
    cells = [(n, names[-1], name) for name in names[:-1] for n in settings.labels]
    head = ["data", "model", *(f"{n} each" for n in settings.labels)]
    tables = {
        "accuracy": harness.table(head, rows),
        "tests": compare(records, cells, whole),
        "adapted": compare(
            records, [(n, "adapted", names[-1]) for n in settings.labels], whole
        ),
        "seconds": harness.table(head, seconds),
    }
    if {*settings.data} - {*settings.whole}:
        tables["others"] = make_others(records, settings)
    return tables


def make_others(records, settings):
    """Adapted features and SetFit, run together on the sets that are not in `whole`."""
    rows, ratios = [], {}
    for d in settings.data:
        if d in settings.whole:
            continue
        for n, draws in zip(settings.labels, settings.draws[d], strict=True):
            own = [r for r in records if r["data"] == d and r["labels"] == n]
            both = [[r for r in own if name in r["scores"]] for name in NAMES[-2:]]
            if not draws or not all(both):
                continue
            ours, theirs = (
                np.mean([100 * score for r in part for score in r["scores"].values()])
                for part in both
            )
            seconds = [np.mean([r["processor"] for r in part]) for part in both]
            ratios.setdefault(n, []).append(seconds[1] / seconds[0])
            figures = [f"{x:.1f}" for x in (ours, theirs)] + [f"{ours - theirs:+.1f}"]
            figures += [f"{x:.0f}" for x in seconds] + [f"{ratios[n][-1]:.1f}"]
            rows.append([d, n, draws, *figures])
    for n, each in ratios.items():
        mean = f"{np.exp(np.mean(np.log(each))):.1f}"
        rows.append(["geometric mean", n, *["-"] * 6, mean])
    head = ["data", "labels of each class", "draws", "adapted", "SetFit", "difference"]
    head += ["adapted, seconds", "SetFit, seconds", "SetFit / adapted"]
    return harness.table(head, rows)


def draw_picture(records, settings):
    """Accuracy against the labels of each class."""
    n = len(settings.whole)
    figure, axes = harness.open_panels(1, n, 3.6 * n, 3.2)
    for ax, data in zip(axes[0], settings.whole, strict=True):
        draw_scores(ax, records, settings, data, names_of(records, data))
        ax.set_xlabel("labels of each class")
    axes[0, 0].set_ylabel("accuracy, %")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside right upper")
    harness.save_figure(figure, settings, "few_shot.png", 90)


def check(records, settings, tables):
    """Fail where the shape of the results is not what the page needs."""
    assert len(records) == 2 * 2 * len(settings.data), len(records)
    scores = [score for r in records for score in r["scores"].values()]
    assert len(scores) == 5 * len(records) / 2
    assert min(scores) >= 0
    assert max(scores) <= 1
    assert [len(lines) for lines in tables.values()] == [7, 6, 3, 4], tables


def main():
    settings = harness.settle(__doc__, __file__)
    harness.publish(settings, "few_shot", run, draw_picture, make_tables, check)


if __name__ == "__main__":
    main()
