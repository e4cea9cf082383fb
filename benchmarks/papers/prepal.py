"""Vysogorets, Gopal: PRepAL, labeling by pretrained representations.

    SKACTIVE_DATA=.../data python benchmarks/papers/prepal.py --page
    python benchmarks/papers/prepal.py --scale smoke      # seconds, on docstrings
    python benchmarks/papers/prepal.py --scale paper --device cuda
    python benchmarks/papers/prepal.py --scale labels --page  # the paper's labels
    python benchmarks/papers/prepal.py --rebuild --page   # the tables again

Four protocols, each by skactive.simulate. AL+LR: logistic regression on fixed
representations labels and is kept. PRepAL: it labels, and an encoder is fine-tuned
once. AL+FT: the encoder is fine-tuned in every round. Transfer: the representations of
one encoder label, another is fine-tuned. The first two share their loop, so one run
serves both. Made from this: final accuracies by acquisition function and protocol
(tables 2 and 3), curves and Jaccard similarity with AL+FT (figures 3, 4, 6 to 8), the
ledger (figure 1), and labels asked for one by one instead of by 50 (figure 5).

What the cpu scale leaves out (prepal.toml has its sizes): the encoder is all-
MiniLM-L6-v2 with mean pooling, the second one its first three layers; texts are cut at
64 tokens; pools are drawn down, and QNLI's is its dev set. An encoder this small learns
from so few texts with larger rates than BERT. AL+FT runs with entropy on two data sets
(five seeds), and with DAL and CoreSet on SST-2 (8 and 4): a query with BALD takes seven
minutes there. With random labels it would end with the model of PRepAL, as both have
the same labels then. With two classes the variation ratio ranks texts as entropy does,
except for ties.

Options:
    --second-model MODEL  roberta-base for paper, otherwise half of --model
    --peer-rounds FILE    of peer_rounds.py
    --lr RATE             of fine-tuning; by default that of the scale
    --head-lr RATE        of fine-tuning; by default that of the scale
"""

import json
from functools import partial

import numpy as np
from common import harness
from prepal_cells import encode, make_light, make_tuned, open_encoder, run_cell
from prepal_figures import LOOP, draw
from prepal_tables import make_tables

from skactive.analysis import mean_jaccard
from skactive.simulation import Run

STRATEGIES = [
    *("random", "entropy", "variation_ratio", "bald", "batchbald"),
    *("dal", "coreset", "egl"),
]


def make_grid(settings):
    """List what to encode, and what to run."""
    sizes, schedule = settings.sizes, settings.schedule
    encodings, grid = [], []

    def add(protocol, data, strategy, seed, encoder="first", final=None, **changes):
        cell = {"protocol": protocol, "data": data, "strategy": strategy}
        cell |= {"seed": seed, "encoder": encoder, "final": final, "sizes": sizes}
        cell["schedule"] = {**schedule, **changes}
        if cell not in grid:
            grid.append(cell)

    one_by_one = schedule["n_rounds"] * schedule["batch_size"]
    for data in settings.data:
        encodings.append({"data": data, "encoder": "first", "sizes": sizes})
        if data in settings.transfer:
            encodings.append({"data": data, "encoder": "second", "sizes": sizes})
        more = getattr(settings, "more_seeds", {}).get(data, {})
        tuned = settings.tuned_loop.get(data, {})
        ends = [settings.seeds, *more.values(), *(end for _, end in tuned.values())]
        for seed in range(max(ends)):
            is_first = seed < settings.seeds
            is_whole = is_first or seed < more.get("functions", 0)
            for strategy in settings.strategies:
                is_own = is_whole or seed < more.get(strategy, 0)
                if is_own and strategy in settings.final.get(data, []):
                    add("PRepAL", data, strategy, seed, final="first")
                elif is_whole or seed < more.get("loops", 0):
                    add("AL+LR", data, strategy, seed)
            for strategy, (first, end) in tuned.items():
                if not first <= seed < end:
                    continue
                add("AL+FT", data, strategy, seed)
                if settings.scale == "cpu" and strategy != "entropy":
                    continue  # the curve of entropy alone
                for n in settings.points.get(data, []):
                    add("PRepAL", data, strategy, seed, final="first", n_rounds=n)
            moves = is_first or seed < more.get("transfer", 0)
            for strategy in settings.transfer.get(data, []) if moves else []:
                add("Transfer", data, strategy, seed, final="second")
                add("PRepAL", data, strategy, seed, encoder="second", final="second")
            if data not in settings.sequential:
                continue
            models = {"encoder": settings.one_by_one, "final": settings.one_by_one}
            points = settings.points[data]
            if not is_first:
                points = points[:1] if seed < more.get("early", 0) else []
            for n in points:
                add("PRepAL", data, "entropy", seed, **models, n_rounds=n)
                one = {"n_rounds": n * schedule["batch_size"], "batch_size": 1}
                add("PRepAL", data, "entropy", seed, **models, **one)
            if is_first or seed < more.get("one_by_one", 0):
                one = {"n_rounds": one_by_one, "batch_size": 1}
                add("PRepAL", data, "entropy", seed, **models, **one)
    return encodings, grid


def condense(encodings, results, settings):
    """Leave what the tables need: curves, seconds, and what several loops asked for."""
    seconds = {(e["data"], e["encoder"]): e["processor"] for e in encodings}
    records, runs = [], {}
    for result in results:
        run = Run.from_dict(result.pop("run"))
        # The features were kept when the loop began. Seconds are of the processor.
        share = min(1.0, result["processor"] / result["wall"])
        encoded = seconds[result["data"], result["encoder"]]
        light = result["protocol"] != "AL+FT"
        ledger = {phase: share * spent for phase, spent in run.ledger.items()}
        ledger["precomputation"] = encoded if light else 0.0
        record = {k: v for k, v in result.items() if k not in ("sizes", "schedule")}
        record |= {"batch_size": result["schedule"]["batch_size"]}
        record |= {"n_labeled": run.n_labeled.tolist(), "scores": run.scores.tolist()}
        record |= {"ledger": {k: round(v, 3) for k, v in ledger.items()}}
        record["final_score"] = run.final_scores["accuracy"]
        records.append({"kind": "run", **record})
        whole = result["schedule"] == settings.schedule
        if whole and result["protocol"] != "Transfer":  # its loop is PRepAL's
            loop = "AL+FT" if not light else LOOP[result["encoder"]]
            key = result["data"], loop, result["strategy"]
            runs.setdefault(key, []).append(run)
    records += [{"kind": "encoding", **e} for e in encodings]
    records += compare(runs, settings)
    return records


def compare(runs, settings):
    """Jaccard similarities of what the loops asked for."""
    pairs = []
    for data in settings.data:
        first = LOOP["first"]
        pairs.append(((data, first, "variation_ratio"), (data, first, "entropy")))
        for strategy in settings.tuned_loop.get(data, []):
            loops = {(loop, strategy) for loop in LOOP.values()} | {(first, "random")}
            tuned = data, "AL+FT", strategy
            pairs += [((data, *loop), tuned) for loop in sorted(loops)]
    records = []
    for key_a, key_b in pairs:
        by_seed = [
            {run.info["seed"]: run for run in runs.get(key, ())}
            for key in (key_a, key_b)
        ]
        seeds = sorted(by_seed[0].keys() & by_seed[1].keys())
        if not seeds:
            continue
        overlap = mean_jaccard(*([own[seed] for seed in seeds] for own in by_seed))
        record = {"data": key_a[0], "loops": [[*key_a[1:]], [*key_b[1:]]]}
        for name in ("n_labeled", "chance", "similarity"):  # less the initial labels
            record[name] = getattr(overlap, name)[..., 1:].round(4).tolist()
        records.append({"kind": "overlap", **record})
    return records


def check(records, settings, tables):
    """Fail where the shape of the results is not what the page needs."""
    runs = [r for r in records if r["kind"] == "run"]
    # 8 strategies, 2 points, 2 of AL+FT, 2 of Transfer, 2 one by one; 2 seeds
    assert len(runs) == 16 * 2, len(runs)
    assert {r["strategy"] for r in runs} == set(STRATEGIES)
    assert {r["protocol"] for r in runs} == {"AL+LR", "PRepAL", "AL+FT", "Transfer"}
    n, b = settings.schedule["n_initial"], settings.schedule["batch_size"]
    for r in runs:
        scores = np.array([*r["scores"], r["final_score"]])
        assert np.isfinite(scores).all(), r
        assert ((scores >= 0) & (scores <= 1)).all(), r
        assert r["n_labeled"] == list(range(n, r["n_labeled"][-1] + 1, r["batch_size"]))
        assert (r["ledger"]["final_training"] > 0) == bool(r["final"]), r
        assert (r["ledger"]["precomputation"] > 0) == (r["protocol"] != "AL+FT"), r
    assert {r["n_labeled"][-1] for r in runs} == {n + b, n + 2 * b}
    overlaps = {
        json.dumps(r["loops"]): np.array(r["similarity"])
        for r in records
        if r["kind"] == "overlap"
    }
    assert len(overlaps) == 5, list(overlaps)
    assert all(a.shape == (2, 2) for a in overlaps.values())
    # Whatever is trained: random labeling asks for the same, and so ends the same.
    same = json.dumps([[LOOP["first"], "random"], ["AL+FT", "random"]])
    assert (overlaps[same] == 1).all(), overlaps[same]
    last = {
        (r["protocol"], r["seed"]): r["final_score"]
        for r in runs
        if r["strategy"] == "random" and r["n_labeled"][-1] == n + 2 * b
    }
    assert all(last["AL+FT", seed] == last["PRepAL", seed] for seed in (0, 1)), last
    rows = [line for lines in tables.values() for line in lines]
    for start in ("entropy | PRepAL", "docstrings | AL+FT, entropy"):
        assert any(row.startswith(f"| {start} |") for row in rows), (start, rows)
    check_paper(settings)


def check_paper(settings):
    """Construct what the paper's own scale would run, though not here."""
    paper = settle(["--scale", "paper", "--out", str(settings.out)])
    encodings, grid = make_grid(paper)
    assert len(encodings) == 10
    # 5 data sets x 5 seeds x 8 x (PRepAL, AL+FT, 4 points, 2 of Transfer), then 9
    # for figure 5
    assert len(grid) == 5 * 5 * 8 * 8 + 2 * 5 * 9, len(grid)
    assert {c["schedule"]["n_rounds"] for c in grid if c["protocol"] == "AL+FT"} == {39}
    tuned = make_tuned("first", paper).get_params()
    expected = {"model": "bert-base-uncased", "lr": 1e-6, "head_lr": 2e-5}
    expected |= {"max_epochs": 3, "batch_size": 16, "dropout": 0.1, "weight_decay": 0.0}
    expected |= {"early_stopping": True, "pooling": "mean"}
    assert {k: tuned[k] for k in expected} == expected, tuned
    assert make_light("second", paper)[0].model == "roberta-base"


def settle(argv=None):
    """Return the settings; in the paper scale some are the same for all data sets."""
    settings = harness.settle(__doc__, __file__, argv)
    vars(settings).setdefault("second_model", None)
    for name in ("lr", "head_lr"):
        if (rate := getattr(settings, name, None)) is not None:
            settings.training[name] = rate
    for name, value in getattr(settings, "every", {}).items():
        setattr(settings, name, dict.fromkeys(settings.data, value))
    if settings.scale == "paper":
        settings.second_model = settings.second_model or "roberta-base"
    return settings


def run(settings):
    """Run what is not finished."""
    encodings, grid = make_grid(settings)
    grid = harness.missing(grid, [r | schedule_of(r, settings) for r in settings.kept])
    open_encoder("second", settings)  # before workers want it

    out, n_jobs = settings.out, settings.n_jobs
    encodings = harness.run_grid(partial(encode, settings), encodings, out, n_jobs)
    results = harness.run_grid(partial(run_cell, settings), grid, out, n_jobs)
    records = merge(settings.kept, condense(encodings, results, settings))
    if path := getattr(settings, "peer_rounds", None):
        rounds = json.loads(path.read_text(encoding="utf-8"))
        records += [{"kind": "peer", **r} for r in rounds]
    return records


def schedule_of(record, settings):
    """Tell the schedule of a kept run from its numbers of labels."""
    if record["kind"] != "run":
        return {}
    first, size = settings.schedule["n_initial"], record["batch_size"]
    n_rounds = (record["n_labeled"][-1] - first) // size
    schedule = {"n_initial": first, "n_rounds": n_rounds, "batch_size": size}
    return {"schedule": schedule}


def merge(kept, new):
    """Add records to those that are kept; an overlap has the seeds of both."""
    names = {"encoding": ("data", "encoder"), "overlap": ("data", "loops")}
    records, places = [dict(r) for r in kept], {}
    for i, r in enumerate(records):
        if r["kind"] in names:
            places[json.dumps([r[n] for n in names[r["kind"]]])] = i
    for r in new:
        key = json.dumps([r[n] for n in names.get(r["kind"], ())])
        if r["kind"] not in names or key not in places:
            records.append(r)
        elif r["kind"] == "overlap":
            own = records[places[key]]
            own["similarity"] = own["similarity"] + r["similarity"]
    return records


def main():
    settings = settle()
    settings.page_name = "prepal_labels" if settings.scale == "labels" else "prepal"
    harness.publish(settings, settings.page_name, run, draw, make_tables, check)


if __name__ == "__main__":
    main()
