"""Macro F1 on two data sets of Laurer et al. (2024), beside their published figures.

    SKACTIVE_DATA=.../data python benchmarks/anchors.py --out anchors --page
    python benchmarks/anchors.py --scale smoke      # seconds, on docstrings
    python benchmarks/anchors.py --rebuild --page   # the tables again

Sentences of party manifestos (military: positive, negative, other) and of State of the
Union speeches (22 topics), at most 4,000 texts in a pool and all test texts. Labels are
random or asked for, with descriptions of the classes (descriptions.json, written once
and not tuned) or without; the model is that of make_text_classifier, and that of
make_final_classifier on what was asked for ("fine-tuned"). Finished runs are kept in
--out, a line each, and are not run again.
"""

from functools import lru_cache
from itertools import product
from time import process_time
from types import SimpleNamespace

import _harness as harness
import numpy as np
from labels_needed import describe, draw, encode, make_final, make_pipeline, score
from threadpoolctl import threadpool_limits

from skactive import (
    ActiveLearner,
    ClassDescriptions,
    make_text_classifier,
)

WAYS = ("random", "random, described", "asked", "asked, described")
STEPS = (10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 625, 750, 875, 1000)
PUBLISHED = harness.read_toml(__file__)["published"]


def play(name, data, way, seed, args):
    """Run one loop; scores at each number of labels, and the items in order."""
    described = way.endswith("described")
    X, y, X_test, y_test = data["texts" if described else "unit"]
    rows = draw(len(X), seed)
    X, y = X[rows], y[rows]
    model = make_text_classifier(adapt=False)[-1]
    if described:
        about = describe(name, data["classes"])
        model = ClassDescriptions(make_pipeline(name, args), about)
    is_random = way.startswith("random")
    chosen = {"strategy": "random", "cold_start": "random"} if is_random else {}
    learner = ActiveLearner(model, **chosen, random_state=seed)
    unlabeled, queried, rounds = np.ones(len(X), dtype=bool), [], []
    start = process_time()
    for n in [n for n in STEPS if n <= args.most]:
        batch = learner.query(X, n - len(queried), candidates=unlabeled)
        unlabeled[batch] = False
        queried += batch.tolist()
        if is_random and n not in args.scored:
            learner.teach(X[batch], y[batch], refit=False)
            continue
        learner.teach(X[batch], y[batch], X_unlabeled=X[unlabeled])
        if n in args.scored:
            proba = learner.predict_proba(X_test)
            accuracy, f1, *_ = score(proba, learner.classes_, y_test)
            rounds.append([n, accuracy, f1, round(process_time() - start, 1)])
    return {"rounds": rounds, "queried": queried}


def finish(name, data, queried, seed, args):
    """Train the final model on the first labels of a loop that asked."""
    X, y, X_test, y_test = data["texts"]
    rows = draw(len(X), seed)
    X, y, rounds = X[rows], y[rows], []
    for n in args.scored:
        model = make_final(name, seed, args)
        others = np.setdiff1d(np.arange(len(X)), queried[:n])
        start = process_time()
        model.fit(X[queried[:n]], y[queried[:n]], X_unlabeled=X[others])
        seconds = round(process_time() - start, 1)
        accuracy, f1, *_ = score(model.predict_proba(X_test), model.classes_, y_test)
        rounds.append([n, accuracy, f1, seconds])
    return {"rounds": rounds}


def run(settings):
    """Run what is not finished: the loops, then the final models of what they asked."""
    own = {name: getattr(settings, name) for name in ("scored", "smoke", "out")}
    args = SimpleNamespace(**settings.sizes, **own, encoder=None, prompt="")
    read = lru_cache(maxsize=1)(lambda data: encode(data, args))

    def function(*, data, way, seed):
        with threadpool_limits(limits=1):
            if way in WAYS:
                return play(data, read(data), way, seed, args)
            return finish(data, read(data), queried[data, seed], seed, args)

    def go(ways, seeds):
        names = ("data", "way", "seed")
        grid = [dict(zip(names, c, strict=True)) for c in product(*ways, range(seeds))]
        return harness.run_grid(function, grid, settings.out)

    records = go((settings.data, WAYS), settings.seeds)
    queried = {
        (r["data"], r["seed"]): r["queried"] for r in records if r["way"] == "asked"
    }
    records += go((settings.data, ["fine-tuned"]), settings.final_seeds)
    return [{k: v for k, v in r.items() if k != "queried"} for r in records]


def at(records, way, n, place=2):
    """Percent with n labels by seed; 2 is macro F1, 1 accuracy."""
    found = harness.at(records, n, place, way=way)
    return {seed: 100 * score for seed, score in found.items()}


def make_tables(records, settings):
    """Macro F1, accuracy, the published figures, and paired tests."""
    by_data = {d: [r for r in records if r["data"] == d] for d in settings.data}
    head = ["data", "labels by", *(f"{n} labels" for n in settings.scored)]
    tables = {}
    for title, place in (("macro_f1", 2), ("accuracy", 1)):
        rows = []
        for name, own in by_data.items():
            for way in (*WAYS, "fine-tuned"):
                cells = [list(at(own, way, n, place).values()) for n in settings.scored]
                if all(cells):
                    title_of = "asked, fine-tuned" if way == "fine-tuned" else way
                    shown = [harness.mean_std(cell, 1) for cell in cells]
                    rows.append([name, f"{title_of} (n = {len(cells[0])})", *shown])
        tables[title] = harness.table(head, rows)
    tables["published"] = harness.table(
        ["mean over eight data sets", *(f"{n} labels" for n in PUBLISHED["labels"])],
        [[name, *figures] for name, figures in PUBLISHED["macro_f1"].items()],
    )
    pairs = [
        ("random, described", "random"),
        ("asked", "random"),
        ("asked, described", "asked"),
        ("asked, described", "random"),
        ("fine-tuned", "asked"),
    ]
    cells = {}
    for name, own in by_data.items():
        for (a, b), n in product(pairs, settings.scored):
            values = harness.pair(at(own, a, n), at(own, b, n))
            if len(values[0]) > 1:
                cells[name, f"{a} less {b}", n] = values
    found = harness.compare(cells)
    rows = [
        [*cell, harness.said(np.subtract(*values)), f"{found[cell][1]:.3f}"]
        for cell, values in cells.items()
    ]
    names = ["data", "difference", "labels", "points of macro F1", "p (Holm)"]
    return tables | {"tests": harness.table(names, rows)}


def check(records, settings, tables):
    """Fail where the shape of the results is not what the page needs."""
    n_runs = len(WAYS) * settings.seeds + settings.final_seeds
    assert len(records) == n_runs, len(records)
    assert all(0 <= each[2] <= 1 for r in records for each in r["rounds"])
    assert len(tables["macro_f1"]) == 2 + len(WAYS) + 1, tables


def main():
    settings = harness.settle(__doc__, __file__)
    if settings.add:
        raise SystemExit("--add: the final models need what --out holds; leave it out.")
    harness.publish(settings, "anchors", run, lambda *_: None, make_tables, check)


if __name__ == "__main__":
    main()
