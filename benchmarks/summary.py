"""What the recommended loop saves, over data sets, and which part of it saves what.

    SKACTIVE_DATA=.../data python benchmarks/summary.py --out summary
    python benchmarks/summary.py --smoke    # seconds, for CI

Reads the records of labels_needed.json, other_data.json, more_data.json and
adapted_loop.json in docs/results. What they lack runs here: "words", scikit-learn's
default logistic regression on its default TF-IDF features, with random labels, and the
loops with --encoders of encoders.py on the ten sets of labels_needed.py. Texts, pools,
test sets and seeds are those of labels_needed.py. The parts of the loop are added to it
one by one.

Options:
    --data NAME...
    --pool 4000
    --test 2000
    --most 500       labels of a run
    --at 500         labels of the baseline
    --seeds 20
    --encoders NAME...    whose loops run, five seeds of frozen ones and one of others
    --n-jobs 1
    --out FOLDER     keeps finished runs
    --rebuild        runs nothing, takes the records in docs/results/summary.json
    --figures        draws only the picture
Smoke: --data docstrings --pool 160 --test 40 --seeds 2 --most 50 --at 50
    --encoders all-MiniLM-L6-v2
"""

import json
from argparse import Namespace

import _harness as harness
import numpy as np
from encoders import FIRST, PROMPTS, find_encoders
from labels_needed import (
    COUNTS,
    DATA,
    SCORED,
    at,
    bound_median,
    draw,
    find_share,
    score,
)
from labels_needed import run as run_loops
from learning_curves import load
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from skactive import ActiveLearner
from skactive.analysis import paired_t

OTHERS = ["docstrings", "election", "r8", "newsgroups", "fortunes", "comments", "r52"]
MORE = ["commons", "conventions", "airlines", "stackoverflow", "hwu", "thucnews"]
MORE += ["packages_fr", "bbc", "spam"]
GROUPS = {"ten sets": DATA, "seven sets": OTHERS, "nine sets": MORE}
GROUPS["both"] = [*OTHERS, *MORE]
GROUPS["all"] = [*DATA, *OTHERS, *MORE]
SOURCES = ("labels_needed", "other_data", "more_data", "adapted_loop")
# Each is the one before with one thing more.
STEPS = {
    "words": "TF-IDF, logistic regression, random labels",
    "baseline": "encoder",
    "head": "classifier for few labels",
    "pool": "unlabeled texts",
    "start": "first ten texts",
    "strategy": "`uherding`",
    "adapted": "encoder that learns",
    "final": "part that is fine-tuned at the end",
}
SHARED = ("head", "pool", "start", "strategy", "descriptions")
AT = (50, 200)
# Loops with another encoder: seeds, labels of a run, and changes of labels_needed.py.
LOOPS = ((5, 500, "baseline pool strategy"), (1, 200, "adapted random"))


def play(name, data, seed, args):
    """Run the loop on words; the record of a run."""
    X, y, X_test, y_test = data
    rows = draw(len(X), seed)
    X, y = X[rows], y[rows]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    learner = ActiveLearner(model, "random", cold_start="random", random_state=seed)
    unlabeled, rounds, n_queried = np.ones(len(X), dtype=bool), [], 0
    with threadpool_limits(limits=1):
        for n in [n for n in COUNTS if 0 < n <= args.most]:
            batch = learner.query(X, n - n_queried, candidates=unlabeled)
            unlabeled[batch], n_queried = False, n
            learner.teach(X[batch], y[batch])
            if n in SCORED:
                proba = learner.predict_proba(X_test)
                rounds.append([n, *score(proba, learner.classes_, y_test), 0.0])
    return {"data": name, "change": "words", "seed": seed, "rounds": rounds}


def run(name, args):
    """Records of "words" on a data set, those that are missing run now."""
    records = harness.Records(args.out and args.out / f"{name}.jsonl")
    jobs = records.missing([(seed,) for seed in range(args.seeds)], "seed")
    if jobs:
        X, y, X_test, y_test = load(name, args.pool, args.test)
        data = np.asarray(X, object), y, np.asarray(X_test, object), y_test
        records.run(lambda seed: play(name, data, seed, args), jobs, args.n_jobs)
    return [*records]


def run_encoders(args):
    """Records of the loops with other encoders, those that are missing run now.

    An encoder that takes a prompt does not learn, as it would learn without one.
    """
    kept = []
    for name, folder in find_encoders(args).items() if args.encoders else ():
        prompt = PROMPTS.get(name)
        for n_seeds, most, changes in LOOPS[: 1 if prompt else None]:
            own = {"out": args.out and args.out / name, "changes": changes.split()}
            own |= {"seeds": min(n_seeds, args.seeds), "most": min(most, args.most)}
            own |= {"encoder": folder, "prompt": prompt, "final_seeds": 0}
            own |= {"start": "embedding_kmeans", "strategy": "uherding"}
            for data in [n for n in args.data if n in DATA or args.smoke]:
                runs = run_loops(data, Namespace(**vars(args) | own))
                kept += [{"encoder": name} | r for r in runs if r["change"] in changes]
    return [{k: v for k, v in r.items() if k != "queried"} for r in kept]


def read_records(words):
    """All records by data set; a run that two files have is taken once."""
    kept = {}
    for name in SOURCES:
        path = harness.DOCS / f"{name}.json"
        for record in json.loads(path.read_text("utf-8"))["records"]:
            key = record["data"], record["change"], record["seed"]
            kept.setdefault(key, record)
    kept |= {(r["data"], "words", r["seed"]): r for r in words}
    return {
        name: [r for key, r in kept.items() if key[0] == name]
        for name in dict.fromkeys(data for data, *_ in kept)
    }


def spread_median(values):
    """A cell: the median, its bootstrap over the data sets, and how many there are."""
    ends = bound_median(values)
    span = "" if ends is None else "{:.2f} to {:.2f}; ".format(*ends)
    return f"{np.median(values):.2f} ({span}{len(values)})"


def find_shares(by_data, change, n=500):
    """Shares of the labels that a change needs, by data set, where it ran."""
    return {
        name: find_share(records, change, n)[0]
        for name, records in by_data.items()
        if any(r["change"] == change for r in records)
    }


def report_shares(by_data):
    """Shares of the labels of the plain pipeline, by groups of data sets."""
    rows = []
    same = {name: with_seeds_of(by_data[name], "adapted") for name in by_data}
    for change in (*SHARED, "random", "adapted", "frozen"):
        sets, of = (same, "strategy") if change == "frozen" else (by_data, change)
        shares, cells = find_shares(sets, of), []
        for names in GROUPS.values():
            found = [shares[name] for name in names if name in shares]
            cells.append(spread_median(found) if len(found) > 1 else "")
        rows.append([change, *cells])
    return harness.table(["change", *GROUPS], rows)


def with_seeds_of(records, change):
    """Return the records with a seed that a change has."""
    seeds = {r["seed"] for r in records if r["change"] == change}
    return [r for r in records if r["seed"] in seeds]


def find_gains(by_data, n, metric="accuracy"):
    """For each step the mean of a metric and gains over the step before, by data set.

    The two sides of a gain have the same seeds.
    """
    found, before = {}, None
    for step in STEPS:
        ours = {name: at(records, step, n, metric) for name, records in by_data.items()}
        means = {d: 100 * np.mean([*v.values()]) for d, v in ours.items() if v}
        found[step], before = (means, find_gain(by_data, step, before, n, metric)), step
    return found


def find_gain(by_data, step, before, n, metric="accuracy"):
    """The mean gain of a step over another in points, by data set."""
    gains = {}
    for name, records in by_data.items():
        ours, theirs = (at(records, each, n, metric) for each in (step, before))
        both = ours.keys() & theirs.keys()
        if both:
            gains[name] = 100 * np.mean([ours[s] - theirs[s] for s in both])
    return gains


def find_half(values):
    """Half of the t interval of a mean over the data sets; 0 for one set."""
    if len(values) < 2:
        return 0.0
    low, high = paired_t(values, np.zeros(len(values))).interval
    return (high - low) / 2


def report_steps(by_data, n, metric="accuracy"):
    """What each step gains with `n` labels, with t intervals over the data sets."""
    rows = []
    for step, (means, gains) in find_gains(by_data, n, metric).items():
        values = [*gains.values()]
        if not values:
            rows.append([step, STEPS[step], f"{np.mean([*means.values()]):.1f}"])
            rows[-1] += ["", "", len(means), ""]
            continue
        mean, half = np.mean(values), find_half(values)
        low, high = mean - half, mean + half
        worst = min(gains, key=gains.get)
        rows.append([step, STEPS[step], "", f"{np.mean(values):+.1f}"])
        rows[-1] += [f"{low:+.1f} to {high:+.1f}", len(values)]
        rows[-1] += [f"{gains[worst]:+.1f} ({worst})"]
    head = ["step", "what is added", "mean", "gain", "95 % over the sets"]
    return harness.table([*head, "sets", "worst set"], rows)


def report_encoders(by_data, others, args):
    """What the loops need and gain with each encoder, on the ten sets."""
    by_encoder = {FIRST: {n: by_data[n] for n in by_data if n in DATA}}
    for r in others:
        own = by_encoder.setdefault(r["encoder"], {})
        own.setdefault(r["data"], []).append(r)
    rows = []
    for name, sets in by_encoder.items():
        for change, before in (("strategy", "pool"), ("adapted", "strategy")):
            found = [*find_shares(sets, change, args.at).values()]
            if len(found) > 1:
                cells = [
                    f"{np.mean(gains):+.1f} ± {find_half(gains):.1f}"
                    for n in AT
                    for gains in [[*find_gain(sets, change, before, n).values()]]
                ]
                rows.append([name, change, spread_median(found), *cells])
    head = ["encoder", "change", "share", *(f"gain with {n}" for n in AT)]
    return harness.table(head, rows)


def report_calibration(by_data):
    """Mean calibration errors in percent, and paired differences over the data sets."""
    rows = []
    for n in (25, 50, 100, 200):
        cells = [n]
        for change in ("baseline", "strategy"):
            means = [
                np.mean([*at(r, change, n, "ece").values()]) for r in by_data.values()
            ]
            cells.append(f"{100 * np.mean(means):.1f}")
        for ours, theirs in (("strategy", "baseline"), ("adapted", "strategy")):
            gains = [*find_gain(by_data, ours, theirs, n, "ece").values()]
            cells += [f"{np.mean(gains):+.1f} ± {find_half(gains):.1f}", len(gains)]
        rows.append(cells)
    head = ["labels", "baseline", "strategy", "strategy less baseline", "sets"]
    return harness.table([*head, "adapted less strategy", "sets"], rows)


def draw_picture(by_data, args):
    """A waterfall for each number of labels: what each step adds to the accuracy."""
    figure, axes = harness.open_panels(1, len(AT), 10, 3.2, sharey=True, sharex=True)
    texts = [text.replace("`", "").split(", ")[0] for text in STEPS.values()]
    for ax, n in zip(axes.flat, AT, strict=True):
        (_, (means, _)), *steps = find_gains(by_data, n).items()
        reached = np.mean([*means.values()])
        ax.plot(reached, 0, "o", color="black")
        ax.annotate(
            f"{reached:.0f} %", (reached, 0), (6, -4), textcoords="offset points"
        )
        for y, (_, (_, gains)) in enumerate(steps, 1):
            values = [*gains.values()]
            gain, half = np.mean(values), find_half(values)
            ax.barh(y, gain, left=reached, height=0.6)
            reached += gain
            ax.errorbar(reached, y, xerr=half, color="black", capsize=3)
            end = max(reached, reached - gain) + half
            ax.annotate(f"{gain:+.1f}", (end, y), (6, -4), textcoords="offset points")
        ax.set_yticks(range(len(texts)), texts)
        ax.set_title(f"{n} labels", loc="left", fontsize="medium")
        ax.set_xlabel("mean accuracy over the data sets, %")
        ax.set_xlim(40, 90)
    axes.flat[0].invert_yaxis()
    harness.save_figure(figure, args, "summary.png", 150)


def main():
    args = harness.parse(__doc__, data=[*DATA, *OTHERS])
    if args.rebuild or args.figures:
        kept = json.loads((harness.DOCS / "summary.json").read_text("utf-8"))["records"]
    else:
        kept = [record for name in args.data for record in run(name, args)]
        kept += run_encoders(args)
    words, others = (
        [r for r in kept if ("encoder" in r) == is_other] for is_other in (False, True)
    )
    by_data = read_records(words)
    if args.out:
        draw_picture(by_data, args)
    if args.figures:
        return
    tables = {"shares": report_shares(by_data)}
    for n in AT:
        tables[f"steps_{n}"] = report_steps(by_data, n)
    tables["encoders"] = report_encoders(by_data, others, args)
    tables["calibration"] = report_calibration(by_data)
    harness.print_tables(tables)
    if args.out:
        harness.write_json(args.out / "summary.json", tables=tables, records=kept)


if __name__ == "__main__":
    main()
