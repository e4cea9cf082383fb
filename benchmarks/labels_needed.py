"""Labels needed for the accuracy of the plain pipeline, one change after another.

    SKACTIVE_DATA=.../data python benchmarks/labels_needed.py --out labels_needed
    python benchmarks/labels_needed.py --smoke    # about a minute, for CI

The baseline is scikit-learn's default logistic regression on mean-pooled features of
all-MiniLM-L6-v2, with random labels. Each change is added to those before it:

- head: FewLabelClassifier on features of unit length
- pool: the classifier of make_text_classifier, which learns from the pool as well
- start: the first 10 labels are chosen by the default cold start
- strategy: the other labels are chosen by --strategy
- descriptions: ClassDescriptions with the texts of descriptions.json, which were
  written once and not tuned; it predicts from 0 labels on
- shuffled: the same texts, assigned to other classes at random
- adapted: make_text_classifier(adapt=True), whose encoder learns from the first 25, 50,
  100, ... labels, with --strategy; "random" is the same with random labels
- final: make_final_classifier on the first labels of "adapted", which must have run
  (--final-seeds of the seeds), and its part "fine-tuned"

Pool (at most 4,000 texts) and test set (at most 2,000) are drawn once. A seed draws
three quarters of the pool, so that the changes of a seed have the same texts, and the
random labels, the same ones for baseline, head and pool. Finished runs are kept in
--out, a line each, and are not run again.

Prints Markdown tables and writes them with the scores of all runs to --out, as
labels_needed.json (or what --name says) and a picture in images. With --records, tables
and picture are made from such a file, and with --figures the picture alone.

Options:
    --data NAME...
    --changes NAME...        those that run and are compared, by default all
    --start embedding_kmeans
    --strategy uherding
    --most 500               labels of a run
    --pool 4000
    --test 2000
    --seeds 20
    --final-seeds 20
    --at 500
    --n-jobs 1
    --out FOLDER             keeps finished runs
    --name labels_needed     of what is written
    --encoder FOLDER         by default all-MiniLM-L6-v2
    --prompt VALUE           of the encoder
    --records FILE           numbers to show
    --figures                only the picture
Smoke: --data docstrings --pool 160 --test 40 --seeds 2 --final-seeds 1 --most 25
    --at 25
"""

import json
import sys
from pathlib import Path
from time import process_time

import _harness as harness
import numpy as np
from learning_curves import load
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from skactive import (
    ActiveLearner,
    ClassDescriptions,
    make_final_classifier,
    make_text_classifier,
)
from skactive.analysis import labels_needed, paired_t
from skactive.bert import BertFeatures
from skactive.linear_model import FewLabelClassifier
from skactive.plotting import LabelsNeededDisplay

DATA = ["trec", "tweet_emotion", "disaster_tweets", "sst2", "ag_news", "banking77"]
DATA += ["imdb", "tweet_offensive", "cap_sotu", "manifesto_military"]
# Sets of 150 words a text or more; those of other_data.py were cut before this rule.
LONG = ("imdb", "commons", "bbc", "spam", "thucnews")
RANDOM = ("baseline", "head", "pool")
CHANGES = (*RANDOM, "start", "strategy", "descriptions", "shuffled")
ADAPTED = ("adapted", "random")
FINAL = ("final", "fine-tuned")
SCORED = (0, 10, 25, 50, 100, 200, 500)
COUNTS = (0, 10, 25, 50, 75, 100, 150, 200, 300, 400, 500)
TUNED = (50, 100, 200)
PART = 0.75  # of the pool, drawn by each seed
METRICS = ("accuracy", "f1", "brier", "ece")
TITLES = ("accuracy", "macro F1", "Brier score", "calibration error")
# Which change is compared with which.
PAIRS = {
    "head": "baseline",
    "pool": "head",
    "start": "pool",
    "strategy": "pool",
    "descriptions": "strategy",
    "shuffled": "strategy",
    "adapted": "strategy",
    "random": "pool",
    "final": "adapted",
    "fine-tuned": "final",
}


def max_length(name):
    return 256 if name in LONG else 64


def find_encoder(args):
    """Return the encoder, and the options of its features."""
    own = {"prompt": args.prompt} if args.prompt else {}
    return str(args.encoder or harness.minilm()), own


def score(proba, classes, y):
    """Return the metrics of probabilities, see METRICS."""
    names = np.unique(np.concatenate([classes, y]))
    full = np.zeros((len(y), len(names)))
    full[:, np.searchsorted(names, classes)] = proba
    predicted = names[full.argmax(axis=1)]
    right, confidence = predicted == y, full.max(axis=1)
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = np.bincount(bins, right - confidence, 15)
    scores = (
        right.mean(),
        f1_score(y, predicted, average="macro"),
        np.square(full - (y[:, None] == names)).sum(axis=1).mean(),
        np.abs(gaps).sum() / len(y),
    )
    return [round(float(value), 4) for value in scores]


def describe(name, classes, seed=None):
    """Return descriptions by class, assigned to other classes by a seed."""
    texts = [[str(label)] for label in classes]
    if name != "docstrings":
        path = Path(__file__).with_name("descriptions.json")
        titles = {
            title.replace("_", " "): about
            for title, about in json.loads(path.read_text("utf-8"))[name].items()
        }
        texts = [[title, about or f"{title}?"] for title, about in titles.items()]
        classes = np.arange(len(texts))
    order = np.arange(len(texts))
    rng = np.random.default_rng([seed or 0, 28])
    while seed is not None and (order == np.arange(len(texts))).all():
        order = rng.permutation(len(texts))
    return {c: texts[i] for c, i in zip(classes.tolist(), order, strict=True)}


def make_learner(change, name, classes, seed, args):
    """Return the learner of a change, for features, or for texts with descriptions."""
    strategy, cold_start = "random", "random"
    if change not in (*RANDOM, "random"):
        cold_start = args.start
    if change not in (*RANDOM, "random", "start"):
        strategy = args.strategy
    if change == "baseline":
        model = LogisticRegression()
    elif change == "head":
        model = FewLabelClassifier()
    elif change in ADAPTED:
        model = make_pipeline(name, args, adapt=True)
        if args.smoke:
            model.set_params(adapted__adaptedfeatures__n_steps=1)
    elif change in ("descriptions", "shuffled"):
        about = describe(name, classes, seed if change == "shuffled" else None)
        model = ClassDescriptions(make_pipeline(name, args), about)
    else:
        model = make_text_classifier(adapt=False)[-1]
    return ActiveLearner(model, strategy, cold_start=cold_start, random_state=seed)


def make_pipeline(name, args, adapt=False):
    """Return the recommended classifier, with a cache of the features."""
    in_memory = args.smoke or adapt  # each run adapts to labels of its own
    options = {"cache": "memory" if in_memory else str(args.out / "features")}
    model, own = find_encoder(args)
    options |= own | {"max_length": max_length(name)}
    return make_text_classifier(model, adapt=adapt, **options)


def play(name, data, change, seed, args):
    """Run the loop of a change; the record of a run."""
    described = change in ("descriptions", "shuffled")
    reads = described or change in ADAPTED
    kind = "raw" if change == "baseline" else "texts" if reads else "unit"
    X, y, X_test, y_test = data[kind]
    rows = draw(len(X), seed)
    X, y = X[rows], y[rows]
    learner = make_learner(change, name, data["classes"], seed, args)
    unlabeled = np.ones(len(X), dtype=bool)
    rounds, queried, seconds = [], [], 0.0
    with threadpool_limits(limits=1):
        for n in [n for n in COUNTS if n <= args.most]:
            start, pool = process_time(), {}
            if n:
                batch = learner.query(X, n - len(queried), candidates=unlabeled)
                unlabeled[batch] = False
                queried += batch.tolist()
            if change not in ("baseline", "head"):
                pool = {"X_unlabeled": X[unlabeled]}
            if n:
                learner.teach(X[batch], y[batch], **pool)
            elif described:
                learner.fit([], [], **pool)
            else:
                continue
            seconds += process_time() - start
            if n in SCORED:
                proba = learner.predict_proba(X_test)
                scores = score(proba, learner.classes_, y_test)
                rounds.append([n, *scores, round(seconds, 2)])
    record = {"data": name, "change": change, "seed": seed, "rounds": rounds}
    return record | {"queried": queried}


def make_final(name, seed, args):
    """Return the recommended final model, trained for an epoch in the smoke."""
    model = make_final_classifier(
        make_pipeline(name, args, adapt=True),
        find_encoder(args)[0],
        max_length=max_length(name),
        random_state=seed,
    )
    return model.set_params(tuned__max_epochs=1) if args.smoke else model


def finish(name, data, queried, seed, args):
    """Train the final model on the first labels of a run; a record for each change."""
    X, y, X_test, y_test = data["texts"]
    rows = draw(len(X), seed)
    X, y = X[rows], y[rows]
    rounds = {change: [] for change in FINAL}
    for n in [n for n in TUNED if n <= args.most] or [args.most]:
        model = make_final(name, seed, args)
        others = np.setdiff1d(np.arange(len(X)), queried[:n])
        with threadpool_limits(limits=1):
            start = process_time()
            model.fit(X[queried[:n]], y[queried[:n]], X_unlabeled=X[others])
            seconds = round(process_time() - start, 2)
            members = model, model.parts_["tuned"]
            for change, member in zip(FINAL, members, strict=True):
                scores = score(member.predict_proba(X_test), member.classes_, y_test)
                rounds[change].append([n, *scores, seconds])
    return [
        {"data": name, "change": change, "seed": seed, "rounds": rounds[change]}
        for change in FINAL
    ]


def draw(n, seed):
    """Return the rows of the pool that a seed uses."""
    return np.random.default_rng([seed, 27]).permutation(n)[: int(PART * n)]


def encode(name, args):
    """Texts, features and features of unit length, each with labels and test set."""
    X, y, X_test, y_test = load(name, args.pool, args.test)
    X, X_test = np.asarray(X, dtype=object), np.asarray(X_test, dtype=object)
    model, own = find_encoder(args)
    features = BertFeatures(
        model,
        pooling="mean",
        normalize=False,
        max_length=max_length(name),
        cache="memory" if args.smoke else str(args.out / "features"),
        **own,
    )
    raw, raw_test = features.transform(X), features.transform(X_test)
    return {
        "classes": np.unique(y),
        "texts": (X, y, X_test, y_test),
        "raw": (raw, y, raw_test, y_test),
        "unit": (normalize(raw), y, normalize(raw_test), y_test),
    }


def run(name, args):
    """Records of all runs of a data set, those that are missing run now."""
    records = harness.Records(args.out and args.out / f"{name}.jsonl")
    changes = args.changes or [*CHANGES, *ADAPTED, "final"]
    jobs = [(c, s) for s in range(args.seeds) for c in changes if c != "final"]
    jobs = records.missing(jobs, "change", "seed")
    last = [("final", s) for s in range(args.final_seeds) if "final" in changes]
    last = records.missing(last, "change", "seed")
    if not jobs and not last:
        return records
    data = encode(name, args)
    print(f"{name}: {len(jobs)} + {len(last)} runs", file=sys.stderr)
    records.run(lambda *job: play(name, data, *job, args), jobs, args.n_jobs)
    queried = {r["seed"]: r["queried"] for r in records if r["change"] == "adapted"}
    records.run(lambda _, s: finish(name, data, queried[s], s, args), last, args.n_jobs)
    return records


def at(records, change, n, metric="accuracy"):
    """Scores of a change with n labels, by seed."""
    place = 1 + METRICS.index(metric)
    return harness.at(records, n, place, change=change)


def counts_of(records, change):
    """Numbers of labels that a change is scored with."""
    return sorted({e[0] for r in records if r["change"] == change for e in r["rounds"]})


def compare(by_data, change, before, metric="accuracy", least=25, least_seeds=2):
    """Paired tests by data set and number of labels, with p-values after Holm's.

    The correction is over all cells that are returned.
    """
    pairs = {}
    for name, records in by_data.items():
        for n in counts_of(records, change):
            both = harness.pair(*(at(records, c, n, metric) for c in (change, before)))
            if n >= least and len(both[0]) >= least_seeds:
                pairs[name, n] = both
    return harness.compare(pairs)


def format_test(test, p):
    """A cell: a difference in points with half its interval, and stars for its p."""
    half = test.interval[1] - test.difference
    stars = harness.star(test.p_value) + harness.star(p)
    return f"{100 * test.difference:+.1f} ± {100 * half:.1f}{stars}"


def report_few(by_data, change, before):
    """The table of the mean differences in accuracy, with tests from three seeds on."""
    counts = sorted({n for each in by_data.values() for n in counts_of(each, change)})
    found, rows = compare(by_data, change, before, least_seeds=3), []
    for name, records in by_data.items():
        cells, n_seeds = [], 0
        for n in counts:
            both = harness.pair(*(at(records, each, n) for each in (change, before)))
            n_seeds = max(n_seeds, len(both[0]))
            if (name, n) in found:
                cells.append(format_test(*found[name, n]))
            else:
                mean = np.mean(np.subtract(*both)) if both[0] else None
                cells.append("" if mean is None else f"{100 * mean:+.1f}")
        rows += [[name, n_seeds, *cells]] if n_seeds else []
    return harness.table(["data", "seeds", *map(str, counts)], rows) if rows else []


def report_pair(by_data, change, before, metric="accuracy", least=25):
    """The table of the differences of two changes in points, and a summary.

    The interval of the mean is a t interval over the means of the data sets.
    """
    found = compare(by_data, change, before, metric, least)
    if not found:
        return []
    data, counts = dict.fromkeys(d for d, _ in found), sorted({n for _, n in found})
    rows = []
    for name in by_data:
        cells = []
        for n in counts:
            if (name, n) not in found:
                cells.append("")
                continue
            cells.append(format_test(*found[name, n]))
        rows.append([name, *cells])
    values = {cell: 100 * test.difference for cell, (test, _) in found.items()}
    lowest, highest = (end(values, key=values.get) for end in (min, max))
    means = [np.mean([v for (d, _), v in values.items() if d == name]) for name in data]
    mean = f"Mean {np.mean(list(values.values())):+.1f}"
    if len(means) > 1:
        low, high = paired_t(means, np.zeros(len(means))).interval
        mean += f" ± {(high - low) / 2:.1f} over the data sets"
    worse = [
        f"{name} {n}"
        for (name, n), (test, p) in found.items()
        if p < 0.05 and (test.difference < 0) == (metric in ("accuracy", "f1"))
    ]
    return [
        *harness.table(["data", *map(str, counts)], rows),
        "",
        f"{mean}; from {values[lowest]:+.1f} "
        f"({lowest[0]} {lowest[1]}) to {values[highest]:+.1f} "
        f"({highest[0]} {highest[1]}). "
        f"Significantly worse after the correction: {', '.join(worse) or 'nowhere'}.",
    ]


def report_means(by_data, metric):
    """The table of the means over the data sets that all have, in percent."""
    every = [record for records in by_data.values() for record in records]
    counts = [n for n in counts_of(every, "strategy") if n >= 25]
    rows = []
    for change in ("baseline", "pool", "start", "strategy", *ADAPTED):
        cells = []
        for n in counts:
            found = [
                [*at(records, change, n, metric).values()]
                for records in by_data.values()
            ]
            mean = np.mean([np.mean(each) for each in found]) if all(found) else None
            cells.append("" if mean is None else f"{100 * mean:.1f}")
        rows += [[change, *cells]] if any(cells) else []
    return harness.table(["change", *map(str, counts)], rows) if rows else []


def report(records):
    """The table of a data set, which is named in its corner: means of the metrics."""
    found = [
        c
        for c in (*CHANGES, *ADAPTED, *FINAL)
        if any(r["change"] == c for r in records)
    ]
    counts = sorted({n for change in found for n in counts_of(records, change)})
    rows = []
    for change in found:
        cells = []
        for n in counts:
            cell = [list(at(records, change, n, m).values()) for m in METRICS]
            cells.append(" / ".join(f"{100 * np.mean(v):.1f}" for v in cell if v))
        own = [r for r in records if r["change"] == change]
        seconds = np.mean([r["rounds"][-1][-1] for r in own])
        rows.append([change, len(own), *cells, f"{seconds:.1f}"])
    return harness.table([records[0]["data"], "seeds", *map(str, counts), "s"], rows)


def as_runs(records):
    """The records as runs, for skactive.analysis."""
    order, runs = [*CHANGES, *ADAPTED], []
    order.remove("shuffled")
    own = [record for record in records if record["change"] in order]
    for record in sorted(own, key=lambda r: order.index(r["change"])):
        counts, accuracy, *_ = zip(*(r for r in record["rounds"] if r[0]), strict=True)
        info = {"data": record["data"], "strategy": record["change"]}
        info["seed"] = record["seed"]
        runs.append(harness.as_run(counts, accuracy, info))
    return runs


def find_share(records, change, n=500):
    """The share of the baseline's `n` labels that a change needs, and if it gets there.

    Both have the seeds of the change, as a noisy curve reaches a mark early by chance.
    """
    seeds = {r["seed"] for r in records if r["change"] == change}
    own = [r for r in records if r["change"] in ("baseline", change)]
    table = labels_needed(
        as_runs([r for r in own if r["seed"] in seeds]), "baseline", n
    )
    i = table.names.index(change)
    return table.ratio[i], table.reached[i]


def bound_median(values):
    """The 95 % interval of a median by a bootstrap; None with less than six data sets.

    With four values, it would hold in 87 % of the cases.
    """
    if len(values) < 6:
        return None
    drawn = np.random.default_rng(0).choice(values, (99_999, len(values)))
    return np.quantile(np.median(drawn, axis=1), [0.025, 0.975])


def summarize(by_data, changes, n):
    """The shares of all data sets; the median counts a curve that ends below as is."""
    rows = {name: [name] for name in [*by_data, "median", "95 % over the sets"]}
    for change in changes:
        ratios = []
        for name, records in by_data.items():
            rows[name].append("")
            if any(r["change"] == change for r in records):
                ratio, reached = find_share(records, change, n)
                ratios.append(ratio)
                rows[name][-1] = f"{'' if reached else '> '}{ratio:.2f}"
        rows["median"].append(f"{np.median(ratios):.2f}")
        ends = bound_median(ratios)
        span = "" if ends is None else "{:.2f} to {:.2f}".format(*ends)
        rows["95 % over the sets"].append(span)
    return harness.table(["data", *changes], list(rows.values()))


def find_areas(records, change, most):
    """Means of the accuracy over a curve from 10 to `most` labels, by seed."""
    areas = {}
    for r in harness.select(records, change=change):
        own = [e[:2] for e in r["rounds"] if 10 <= e[0] <= most]
        counts, scores = zip(*own, strict=True)
        areas[r["seed"]] = np.trapezoid(scores, counts) / (counts[-1] - counts[0])
    return areas


def report_areas(by_data, change, before, least=2):
    """The table of the differences of two changes over the whole curve, in points.

    A curve ends where the shorter one does. Sets with `least` seeds or more count.
    """
    pairs = {}
    for name, records in by_data.items():
        ends = [max(counts_of(records, c), default=0) for c in (change, before)]
        if all(ends):
            areas = [find_areas(records, c, min(ends)) for c in (change, before)]
            pairs[name] = harness.pair(*areas)
    pairs = {name: both for name, both in pairs.items() if len(both[0]) >= least}
    rows = []
    for name, (test, p) in harness.compare(pairs).items():
        difference, low, high = (
            f"{100 * value:+.1f}" for value in (test.difference, *test.interval)
        )
        stars = harness.star(test.p_value) + harness.star(p)
        rows.append([name, difference + stars, f"{low} to {high}", f"{p:.3f}"])
    head = ["data", "difference", "95 %", "p after the correction"]
    return harness.table(head, rows) if rows else []


def draw_picture(tables, args):
    """One picture with a panel for each data set."""
    figure, axes = harness.open_panels(len(tables), 1, 7, 2 * len(tables))
    handles = {}
    for ax, (name, each) in zip(axes.flat, tables.items(), strict=True):
        legend = LabelsNeededDisplay(table=each).plot(ax=ax).legend_
        labels = [text.get_text() for text in legend.get_texts()]
        handles |= zip(labels, legend.legend_handles, strict=True)
        legend.remove()
        ax.set_title(name, fontsize="medium", loc="left")
    figure.legend(handles.values(), handles, loc="outside upper left", ncols=2)
    harness.save_figure(figure, args, f"{args.name}.png", 150)


def make_tables(by_data, needed, args):
    """All tables by their names."""
    changes = dict.fromkeys(n for each in needed.values() for n in each.names)
    tables = {"shares": summarize(by_data, changes, args.at)}
    wanted = args.changes or PAIRS
    for change, before in PAIRS.items():
        if change not in wanted:
            continue
        if change in (*FINAL, *ADAPTED):
            tables[change] = report_few(by_data, change, before)
            continue
        least = 10 if change == "shuffled" else 25
        tables[change] = report_pair(by_data, change, before, least=least)
    tables["strategy_adapted"] = report_few(by_data, "adapted", "random")
    tables["adapted_areas"] = report_areas(by_data, "adapted", "strategy", least=3)
    if "strategy" in wanted:
        tables["areas"] = report_areas(by_data, "strategy", "pool")
        tables["strategy_start"] = report_pair(by_data, "strategy", "start")
        for metric in METRICS[1:]:
            name = f"strategy_{metric}"
            tables[name] = report_pair(by_data, "strategy", "pool", metric)
        tables["baseline_ece"] = report_pair(by_data, "strategy", "baseline", "ece")
    tables["mean_ece"] = report_means(by_data, "ece")
    tables = {title: lines for title, lines in tables.items() if lines}
    for name, records in by_data.items():
        block = ["", "```", *str(needed[name]).split("\n"), "```"]
        tables[name] = report(records) + block
    return tables


def main():
    args = harness.parse(__doc__, data=DATA)
    if args.out is None and not args.smoke:
        sys.exit("argument --out: name a folder")
    if args.records:
        found = json.loads(args.records.read_text())
        kept, args.changes = found["records"], args.changes or found.get("changes")
        args.data = list(dict.fromkeys(r["data"] for r in kept))
        args.name = args.records.stem
    else:
        runs = (record for name in args.data for record in run(name, args))
        kept = [{k: v for k, v in r.items() if k != "queried"} for r in runs]
    by_data = {name: [r for r in kept if r["data"] == name] for name in args.data}
    for name, records in by_data.items():
        if not any(r["change"] == "baseline" for r in records):
            sys.exit(f"argument --changes: run baseline on {name} as well")
    needed = {
        name: labels_needed(as_runs(records), "baseline", args.at)
        for name, records in by_data.items()
    }
    if args.out:
        draw_picture(needed, args)
    if args.figures:
        return
    tables = make_tables(by_data, needed, args)
    harness.print_tables(tables)
    if args.out:
        own = {"changes": args.changes} if args.changes else {}
        path = args.out / f"{args.name}.json"
        harness.write_json(path, **own, tables=tables, records=kept)


if __name__ == "__main__":
    main()
