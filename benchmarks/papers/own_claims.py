"""Claims of our own: our defaults on the tasks of five papers.

    SKACTIVE_DATA=.../data python benchmarks/papers/own_claims.py --page
    python benchmarks/papers/own_claims.py --scale smoke      # seconds, on docstrings
    python benchmarks/papers/own_claims.py --rebuild --page   # the tables again

One claim for each paper, by the rule of the other claims (verdicts.py). Texts, labels,
first labels, seeds and lengths of texts are those of the script of the paper; what it
compares with is in the records of its page. Written down before the first run: the
claims, their direction ("more"), the margin of 2 points, the data and three seeds, all
in own_claims.toml, and what is run:

- prepal: ActiveLearner(make_text_classifier(model)) with its default strategy.
- eindor2020: the same with adapt=False.
- griesshaber2020, wang, hart: AdaptedFeatures and LogisticRegression(C=10), which is
  what benchmarks/adapted_features.py measures, trained on the labels of the random loop
  of griesshaber2020, on the training texts of wang (validation part included), and on
  the 1,000 tweets of hart.

Seconds are of the processor. Ours have everything from an empty cache: encoding,
training, queries, predictions on test texts. Those of wang are of training alone, on
both sides, and those of eindor2020 leave out, for the paper's protocol only, the bottom
layers, which are encoded before its clock starts. As the records come from several
machines, the first seed of the paper's protocol is run again here.

Options:
    --papers NAME...  by default all; only for a run in parts
"""

from argparse import Namespace
from functools import cache, partial
from pathlib import Path
from time import process_time

import eindor2020_cells as eindor
import griesshaber2020_cells as griesshaber
import hart
import numpy as np
import prepal_cells as prepal
import wang_cells as wang
from common import harness
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from verdicts import claims_table, read_claims

from skactive import ActiveLearner, make_text_classifier, simulate
from skactive.bert import AdaptedFeatures, clear_cache

OWN = harness.read_toml(__file__)
NAMES = {
    "prepal": "PRepAL",
    "eindor2020": "Ein-Dor et al.",
    "griesshaber2020": "Grießhaber et al.",
    "wang": "Wang",
    "hart": "Hart",
}


@cache
def _settings_of(paper, scale, model, device, out):
    values = harness.read_toml(Path(__file__).with_name(paper))["scales"][scale]
    common = {"scale": scale, "model": model, "device": device, "out": Path(out)}
    return Namespace(**values, **common, second_model=None)


def settings_of(paper, settings):
    """Return the settings of the script of a paper at our scale."""
    out = str(settings.out)
    args = (paper, settings.scale, settings.model, settings.device, out)
    return _settings_of(*args)


@cache
def open_pairs(*args):
    """Return the function of eindor2020 that readies its pairs, which keeps the last."""
    return eindor.make_opener(_settings_of("eindor2020", *args))


def read_task(paper, own, data, scenario):
    """Return the texts and labels of a paper, pool and test, and the longest text."""
    if paper == "prepal":
        size = own.sizes["max_length"]
        parts = prepal.read(data, own.sizes["n_pool"], own.sizes["n_test"])
    elif paper == "eindor2020":
        size = own.training["max_length"]
        parts = eindor.read_pair(data, scenario, **own.sizes)
    elif paper == "griesshaber2020":
        size = own.sizes["max_length"]
        parts = griesshaber.read(data, own.sizes["n_pool"], own.sizes["n_test"])
    elif paper == "wang":
        size = own.max_length
        parts = wang.read(
            data, getattr(own, "sizes", {}).get(data, own.size), own.n_test
        )
    else:
        size = own.max_length
        X, y, *test = hart.read(data, own.n_test)
        parts = X[: own.n_pool], y[: own.n_pool], *test
    return *parts, size


def run_loop(paper, own, task, data, scenario, seed):
    """Let the default loop label a pool, and score the model that it ends with."""
    X, y, X_test, y_test, size = task
    is_frozen = paper == "eindor2020"
    model = make_text_classifier(own.model, adapt=not is_frozen, max_length=size)
    learner = ActiveLearner(model, random_state=seed)
    options = {**own.schedule, "scoring": "f1" if is_frozen else "accuracy"}
    if is_frozen:
        begun = eindor.make_seed(data, scenario, X, y, own.n_initial, seed)
        y, options["initial"] = begun.relabel(y), begun.positions
    run = simulate(learner, X, y, X_test=X_test, y_test=y_test, **options)
    scores = run.curve(options["scoring"]).round(4).tolist()
    return {"score": scores[-1], "scores": scores, "n_labeled": run.n_labeled.tolist()}


def train(paper, own, task, seed):
    """Train adapted features on labels of a paper, and score them."""
    X, y, X_test, y_test, size = task
    if paper == "griesshaber2020":  # what its random loop labels
        learner = ActiveLearner(DummyClassifier(), "random", random_state=seed)
        rows = simulate(learner, X, y, **own.schedule).queried
        X, y = X[rows], y[rows]
    features = AdaptedFeatures(
        own.model, cache=None, max_length=size, random_state=seed, verbose=0
    )
    model = make_pipeline(features, LogisticRegression(C=10, max_iter=1000))
    start = process_time()
    model.fit(X, y)
    spent = process_time() - start
    predicted = model.predict(X_test)
    found = {"score": float(np.mean(predicted == y_test)), "n_labeled": [len(y)]}
    if paper == "hart":
        found["f1"] = float(f1_score(y_test, predicted))
    return found | ({"seconds": spent} if paper == "wang" else {})


def run_again(paper, own, settings, data, scenario, seed):
    """Run the protocol of a paper here."""
    cell = {"data": data, "seed": seed}
    if paper == "prepal":
        cell |= {"protocol": "AL+FT", "strategy": "entropy", "encoder": "first"}
        cell |= {"final": None, "sizes": own.sizes, "schedule": own.schedule}
        return read_theirs(paper, prepal.run_cell(own, **cell))
    if paper == "eindor2020":
        args = (settings.scale, settings.model, settings.device, str(settings.out))
        cell |= {"scenario": scenario, "strategy": "LC"}
        return read_theirs(paper, eindor.run_cell(own, open_pairs(*args), **cell))
    if paper == "griesshaber2020":
        freeze = OWN["freeze"].get(data, 0)
        cell |= {"part": "loop", "strategy": "bald", "freeze": freeze}
        cell |= {"sizes": own.sizes, "schedule": own.schedule, "training": own.training}
        return read_theirs(paper, griesshaber.run_cell(own, **cell))
    if paper == "wang":
        cell |= {"part": "main", "n_last": own.last[-1], "size": None}
        cell |= {"lr": OWN["rate"].get(data, 1e-4), "max_epochs": own.max_epochs}
        cell["size"] = own.sizes.get(data, own.size)
        return read_theirs(paper, wang.run_cell(settings=own, **cell))
    cell = {"data": data, "part": "split", "model": "unfrozen", "index": seed}
    cell |= {"n_pool": own.n_pool, "epochs": own.epochs}
    return read_theirs(paper, hart.run_cell(own, **cell))


def read_theirs(paper, r):
    """Return score and seconds of a result, or record, of the script of a paper."""
    if paper == "prepal":
        score = r["run"]["rounds"][-1]["scores"]["accuracy"] if "run" in r else None
        return {"score": score or r["final_score"], "seconds": r["processor"]}
    if paper == "eindor2020":
        return {"score": r["f1"][-1], "seconds": r["processor"]}
    if paper == "griesshaber2020":
        return {"score": r["scores"][-1], "seconds": r["processor"]}
    if paper == "wang":
        seconds = sum(r["cpu_seconds"]) + r["setup"]["cpu_seconds"]
        return {"score": r["score"], "seconds": seconds}
    return {"score": r["accuracy"], "f1": r["f1"], "seconds": r["seconds"]}


def run_cell(settings, *, side, paper, data, scenario, seed):
    """Run our side of a claim, or the protocol of the paper."""
    own = settings_of(paper, settings)
    if side == "theirs":
        return run_again(paper, own, settings, data, scenario, seed)
    task = read_task(paper, own, data, scenario)
    wang.warm_up(settings.model)
    clear_cache()
    start = process_time()
    if paper in ("prepal", "eindor2020"):
        found = run_loop(paper, own, task, data, scenario, seed)
    else:
        found = train(paper, own, task, seed)
    return {"seconds": process_time() - start} | found


def make_grid(settings):
    """List our runs, then those of the protocols of the papers."""
    sides = {"ours": (settings.tasks, settings.seeds)}
    sides["theirs"] = settings.again_tasks, settings.again
    return [
        {"side": side, "paper": paper, "data": d, "scenario": scenario, "seed": seed}
        for side, (tasks, seeds) in sides.items()
        for paper in settings.papers or tasks
        for d, scenario in pairs_of(paper, tasks[paper])
        for seed in range(seeds)
    ]


def pairs_of(paper, data):
    """List pairs of data set and scenario; only one paper has scenarios."""
    return (
        eindor.list_pairs(data) if paper == "eindor2020" else [(d, None) for d in data]
    )


def find_theirs(paper, data, scenario, records, settings):
    """Return the runs of the protocol of a paper: of its page, or here in the smoke."""
    if settings.scale == "smoke":
        task = {"paper": paper, "data": data, "scenario": scenario}
        return harness.select(records, side="theirs", **task)
    wanted = {
        "prepal": {"kind": "run", "protocol": "AL+FT", "strategy": "entropy"},
        "eindor2020": {"scenario": scenario, "strategy": "LC"},
        "griesshaber2020": {"part": "loop", "strategy": "bald"},
        "wang": {"part": "main", "n_last": 3, "lr": OWN["rate"].get(data)},
        "hart": {"part": "split", "model": "unfrozen"},
    }[paper]
    if paper == "griesshaber2020":
        wanted["freeze"] = OWN["freeze"][data]
    place = "index" if paper == "hart" else "seed"
    found = harness.select(read_page(paper), place, data=data, **wanted)
    return [{"seed": r[place], **read_theirs(paper, r)} for r in found]


@cache
def read_page(name):
    return harness.read_page(name)["records"]


def both_sides(paper, records, settings):
    """Return our runs and theirs of the same seeds, by data set and scenario."""
    found = {}
    for data, scenario in pairs_of(paper, settings.tasks[paper]):
        task = {"side": "ours", "paper": paper, "data": data, "scenario": scenario}
        ours = {r["seed"]: r for r in harness.select(records, **task)}
        theirs = find_theirs(paper, data, scenario, records, settings)
        theirs = {r["seed"]: r for r in theirs}
        name = f"{data}, {scenario}" if scenario else data
        found[name] = harness.pair(ours, theirs)
    return found


def make_claims(records, settings):
    """Measure our claims."""

    def measure(_, *, paper):
        values, seconds = {}, 0.0
        for name, sides in both_sides(paper, records, settings).items():
            scores, spent = ([[r[k] for r in s] for s in sides] for k in KEYS)
            values[name] = list(100 * np.subtract(*scores))
            seconds += np.sum(np.mean(spent, axis=1))
        return {"values": values, "seconds": seconds}

    return read_claims("own_claims", measure)


KEYS = ("score", "seconds")


def make_tables(records, settings):
    """Make the tables of the claims, and of the scores and seconds of both sides."""
    rows = []
    for paper, name in NAMES.items():
        groups = both_sides(paper, records, settings)
        for key in ("score", "f1") if paper == "hart" else ("score",):
            sides = [
                np.mean([[r[key] for r in pair[i]] for pair in groups.values()])
                for i in (0, 1)
            ]
            row = [name + (", F1" if key == "f1" else ""), len(groups)]
            rows.append([*row, *(f"{100 * s:.1f}" for s in sides)])
            rows[-1] += seconds_of(paper, records)
    head = ["paper", "tasks", "score: ours", "theirs", "tasks run again"]
    head += ["seconds: ours", "theirs", "ratio"]
    return {
        "claims": claims_table(make_claims(records, settings)),
        "sides": harness.table(head, rows),
    }


def seconds_of(paper, records):
    """Compare seconds where the paper's protocol ran here, too."""
    pairs = []
    for theirs in harness.select(records, side="theirs", paper=paper):
        task = {key: theirs[key] for key in ("paper", "data", "scenario", "seed")}
        pairs += [(r, theirs) for r in harness.select(records, side="ours", **task)]
    if not pairs:
        return ["", "", "", ""]
    ours, theirs = np.array([[r["seconds"] for r in pair] for pair in pairs]).T
    ratio = np.exp(np.mean(np.log(theirs / ours)))
    return [len(pairs), f"{ours.mean():.1f}", f"{theirs.mean():.1f}", f"{ratio:.1f}"]


def check(records, settings, tables):
    """Fail where the shape of the results is not what the page needs."""
    n_tasks = 1 + 3 + 2 + 2 + 1
    assert len(records) == 2 * 2 * n_tasks, len(records)
    assert all(0 <= r["score"] <= 1 for r in records), records
    assert all(r["seconds"] > 0 for r in records), records
    assert {len(tables["claims"]), len(tables["sides"]) - 1} == {2 + len(NAMES)}
    # Each protocol that the claims on the page need is in the records of a paper.
    page = Namespace(scale="cpu", **OWN["scales"]["cpu"])
    for paper in NAMES:
        for data, scenario in pairs_of(paper, page.tasks[paper]):
            found = find_theirs(paper, data, scenario, [], page)
            seeds = [r["seed"] for r in found]
            assert seeds[:3] == [0, 1, 2], (paper, data, scenario, seeds)


def run(settings):
    """Run what is not finished."""
    return harness.run_missing(
        partial(run_cell, settings), make_grid(settings), settings
    )


def main():
    settings = harness.settle(__doc__, __file__)
    vars(settings).setdefault("papers", None)
    harness.publish(settings, "claims", run, lambda *_: None, make_tables, check)


if __name__ == "__main__":
    main()
