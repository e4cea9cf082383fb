"""Tables and picture of the runs of strategy_accuracy.py.

    python benchmarks/strategy_tables.py --runs runs --page
    python benchmarks/strategy_tables.py --records docs/results/strategies.json --page
    python benchmarks/strategy_tables.py --smoke    # seconds, for CI

Only seeds that every strategy has on a data set count. A strategy all of whose runs
equal those of another one, such as a wrapper that changes nothing here, is left out of
the tables and of the corrections. Each strategy is compared with random labels of the
same seeds by paired t tests of the accuracy, with p-values of all cells of a model
(strategy, data set and number of labels) corrected together by Holm's procedure. The
area under the curve is the mean accuracy over the numbers of labels up to 500, by the
trapezoidal rule; its mean over the data sets is compared with that of random labels,
and with that of uherding, the default, by paired t tests over the seeds that all data
sets have, corrected over the strategies. Ranks are over the data sets, by that area;
mean ranks that are farther apart than the critical difference of Nemenyi's test differ.
Labels needed are those for the mean accuracy of random labels at 500.

Prints the tables, and with --page writes them to docs/results/strategies.json with the
scores of all runs, and the picture next to it. Without --page, they go to --out.

Options:
    --runs FOLDER     of strategy_accuracy.py
    --records FILE    a strategies.json to show again
    --out FOLDER      of the results
    --figures         only the pictures
    --page            write to docs/results
Smoke:
"""

import json
import tempfile
from pathlib import Path

import _harness as harness
import numpy as np
from labels_needed import DATA
from scipy.stats import friedmanchisquare, rankdata, studentized_range
from strategy_accuracy import MODELS, read_args, run

from skactive.analysis import labels_needed, paired_t

SHOWN = (25, 50, 100, 200, 500)
LATE = (1000, 2000)
AT = 500


def read(folder):
    """Return the records of a folder, list of dict."""
    records = []
    for model in MODELS:
        for name in DATA:
            runs = harness.Records(folder / f"{name}-{model}.jsonl")
            records += gather(runs, data=name, model=model)
    return records


def gather(runs, **names):
    """Return a record for each strategy that could run, with the runs of all seeds.

    A run is a list: seed, accuracies, macro F1s, seconds of the queries, all seconds.
    """
    records = {}
    for one in runs:
        if one["rounds"]:
            counts, *scores = zip(*one["rounds"], strict=True)
            new = {**names, "strategy": one["strategy"], "counts": counts, "runs": []}
            record = records.setdefault((one["strategy"], counts), new)
            record["runs"].append([one["seed"], *scores, *one["seconds"]])
    return list(records.values())


class Scores:
    """Scores of one model: `at(data, strategy, n)` is an array over the seeds."""

    def __init__(self, records):
        self.curves, self.seconds = {}, {}
        for record in records:
            curves = self.curves.setdefault(record["data"], {})
            curves = curves.setdefault(record["strategy"], {})
            seconds = self.seconds.setdefault(record["strategy"], [])
            for seed, accuracy, f1, asking, _ in record["runs"]:
                scores = zip(accuracy, f1, strict=True)
                curves[seed] = dict(zip(record["counts"], scores, strict=True))
                seconds.append(asking)
        self.data = [name for name in DATA if name in self.curves] or [*self.curves]
        common = [
            set.intersection(*(set(runs) for runs in self.curves[name].values()))
            for name in self.data
        ]
        self.seeds = dict(zip(self.data, map(sorted, common), strict=True))
        names = [set(self.curves[name]) for name in self.data]
        self.strategies, self.copies = self.find_copies(set.intersection(*names))
        self.counts = {name: self.find_counts(name) for name in self.data}
        self.areas = {
            (name, strategy): self.find_area(name, strategy)
            for name in self.data
            for strategy in self.strategies
        }

    def find_copies(self, names):
        """Return the strategies, and a dict from those with the runs of another one."""
        first, copies = {}, {}
        for name in sorted(names):
            runs = [
                [self.curves[data][name][seed] for seed in self.seeds[data]]
                for data in self.data
            ]
            original = first.setdefault(repr(runs), name)
            if original != name:
                copies[name] = original
        return list(first.values()), copies

    def at(self, data, strategy, n, metric=0):
        runs = self.curves[data][strategy]
        found = [runs[seed].get(n) for seed in self.seeds[data]]
        if any(scores is None for scores in found):
            return None
        return np.array([scores[metric] for scores in found]) / 100  # in percent

    def find_counts(self, data):
        """Return the numbers of labels that all runs of a data set are scored with."""
        curves = [
            set(runs[seed])
            for runs in self.curves[data].values()
            for seed in self.seeds[data]
        ]
        return sorted(set.intersection(*curves))

    def find_area(self, data, strategy):
        """Return the mean accuracy up to AT labels, an array over the seeds."""
        counts = [n for n in self.counts[data] if n <= AT]
        values = np.array([self.at(data, strategy, n) for n in counts])
        return np.trapezoid(values, counts, axis=0) / (counts[-1] - counts[0])


def compare(scores):
    """Compare strategies with random; dict of (strategy, data, n) to (test, p)."""
    pairs = {}
    for data in scores.data:
        for n in (*SHOWN, *LATE):
            if n not in scores.counts[data]:
                continue
            random = scores.at(data, "random", n)
            for strategy in scores.strategies:
                ours = scores.at(data, strategy, n)
                if strategy != "random" and not np.array_equal(ours, random):
                    pairs[strategy, data, n] = ours, random
    return harness.compare(pairs)


def compare_areas(scores, baseline):
    """Compare the mean areas over the data sets; dict of strategy to (test, p)."""
    common = set.intersection(*map(set, scores.seeds.values()))
    if len(common) < 2 or baseline not in scores.strategies:
        return {}

    def means(strategy):
        kept = [np.isin(scores.seeds[data], sorted(common)) for data in scores.data]
        areas = [scores.areas[data, strategy] for data in scores.data]
        return np.mean([x[k] for x, k in zip(areas, kept, strict=True)], axis=0)

    own = means(baseline)
    names = [s for s in scores.strategies if s not in ("random", baseline)]
    others = {s: means(s) for s in names}
    return harness.compare({s: (x, own) for s, x in others.items() if (x != own).any()})


def find_needed(scores, data):
    """Return the labels needed relative to random, dict of strategy to str."""
    runs = []
    for strategy, curves in scores.curves[data].items():
        for seed in scores.seeds[data]:
            counts, values = zip(*sorted(curves[seed].items()), strict=True)
            info = {"strategy": strategy, "seed": seed}
            accuracies = [accuracy for accuracy, _ in values]
            runs.append(harness.as_run(counts, accuracies, info))
    at = min(AT, scores.counts[data][-1])
    found = labels_needed(runs, "random", at, n_resamples=9)
    ratios = np.where(found.reached, found.ratio, np.inf)
    return dict(zip(found.names, ratios, strict=True))


def format_test(found):
    test, p = found
    half = test.interval[1] - test.difference
    return f"{test.difference:+.2f} ± {half:.2f}{harness.star(p)}"


def tabulate_strategies(scores, found):
    """One row for each strategy, best area first."""
    areas = {
        s: np.mean([np.mean(scores.areas[d, s]) for d in scores.data])
        for s in scores.strategies
    }
    needed = {data: find_needed(scores, data) for data in scores.data}
    tests, rows = compare_areas(scores, "random"), []
    against = compare_areas(scores, "uherding")
    for strategy in sorted(areas, key=areas.get, reverse=True):
        own = {cell: x for cell, x in found.items() if cell[0] == strategy}
        signs = [np.sign(test.difference) * (p < 0.05) for test, p in own.values()]
        cells = []
        for n in SHOWN:
            gains = [
                np.mean(scores.at(d, strategy, n) - scores.at(d, "random", n))
                for d in scores.data
                if n in scores.counts[d]
            ]
            cells.append(f"{np.mean(gains):+.1f}" if gains else "")
        f1 = [
            np.mean(scores.at(d, strategy, n, 1) - scores.at(d, "random", n, 1))
            for d in scores.data
            for n in [min(AT, scores.counts[d][-1])]
        ]
        found_area = [
            format_test(t[strategy]) if strategy in t else "" for t in (tests, against)
        ]
        ratio = np.median([needed[data].get(strategy, np.inf) for data in scores.data])
        rows.append(
            [
                strategy,
                *cells,
                f"{np.mean(f1):+.1f}",
                *found_area,
                f"{ratio:.2f}" if np.isfinite(ratio) else "not reached",
                f"{signs.count(1)} / {signs.count(0)} / {signs.count(-1)}",
                f"{100 * signs.count(1) / max(len(signs), 1):.0f} %",
                f"{np.mean(scores.seconds[strategy]):.1f}",
            ]
        )
    head = ["strategy", *map(str, SHOWN), "macro F1", "area"]
    head += ["area - default", "labels needed"]
    return harness.table([*head, "win / tie / loss", "pays", "s"], rows)


def tabulate_data(scores, found):
    """The difference of the areas on each data set, with the seeds.

    The interval of the mean is a t interval over the data sets.
    """
    areas = scores.areas
    means = {
        s: [np.mean(areas[d, s] - areas[d, "random"]) for d in scores.data]
        for s in scores.strategies
    }
    rows = []
    for strategy in sorted(means, key=lambda s: -np.mean(means[s])):
        cells = []
        for data, mean in zip(scores.data, means[strategy], strict=True):
            cell = [x for (s, d, _), x in found.items() if (s, d) == (strategy, data)]
            worst = {np.sign(test.difference) for test, p in cell if p < 0.05}
            cells.append(f"{mean:+.1f}{'*' if 1 in worst else ''}")
            cells[-1] += "†" if -1 in worst else ""
        values, spread = np.array(means[strategy]), ""
        if values.any() and len(values) > 1:
            low, high = paired_t(values, 0 * values).interval
            spread = f"{np.mean(values):+.1f} ± {(high - low) / 2:.1f}"
        rows.append([strategy, *cells, spread, f"{np.median(values):+.1f}"])
    rows.append(["seeds", *(len(scores.seeds[data]) for data in scores.data), "", ""])
    return harness.table(["strategy", *scores.data, "mean", "median"], rows)


def rank(scores):
    """Return the mean ranks, the critical difference, and Friedman's p or None."""
    areas = np.array(
        [[np.mean(scores.areas[d, s]) for s in scores.strategies] for d in scores.data]
    )
    ranks = np.mean([rankdata(-row) for row in areas], axis=0)
    n, k = areas.shape
    critical = studentized_range.ppf(0.95, k, np.inf) * np.sqrt(k * (k + 1) / (12 * n))
    return ranks, critical, friedmanchisquare(*areas.T).pvalue if n > 2 else None


def draw_picture(scores, args, model):
    """Mean ranks, with half the critical difference on each side."""
    ranks, critical, _ = rank(scores)
    order = np.argsort(ranks)
    places = np.arange(len(order))
    figure, ((ax,),) = harness.open_panels(1, 1, 7, 1.2 + 0.2 * len(order))
    ax.errorbar(ranks[order], places, xerr=critical / 2, fmt="o", color="black")
    place = ranks[scores.strategies.index("random")]
    for side in (-critical / 2, critical / 2):
        ax.axvline(place + side, color="tab:blue", linestyle="--")
    ax.set_yticks(places, [scores.strategies[i] for i in order])
    ax.invert_yaxis()
    ax.set_xlabel("mean rank over the data sets, by the area under the curve")
    ax.grid(axis="x", alpha=0.3)
    harness.save_figure(figure, args, f"strategies_{model}.png", 150)


def make_tables(records):
    """All tables by their names, and the scores by model."""
    tables, by_model = {}, {}
    for model in MODELS:
        own = [record for record in records if record["model"] == model]
        if not own:
            continue
        scores = by_model[model] = Scores(own)
        found = compare(scores)
        tables[model] = tabulate_strategies(scores, found)
        tables[f"{model}_data"] = tabulate_data(scores, found)
        ranks, critical, p = rank(scores)
        place = ranks[scores.strategies.index("random")]
        far = [
            name
            for name, value in zip(scores.strategies, ranks, strict=True)
            if abs(value - place) > critical
        ]
        cells = [sum(p < 0.05 for _, p in found.values()), len(found)]
        cells += ["" if p is None else f"{p:.1g}", f"{critical:.1f}", f"{place:.1f}"]
        head = ["significant tests", "of", "Friedman p", "critical difference"]
        head += ["rank of random", "farther from random", "left out, as equal"]
        copies = [f"{copy} = {name}" for copy, name in scores.copies.items()]
        cells += [", ".join(names) or "none" for names in (far, copies)]
        tables[f"{model}_tests"] = harness.table(head, [cells])
    return tables, by_model


def main():
    args = harness.parse(__doc__)
    if args.smoke:
        options = read_args(["--smoke"])
        options.seeds, options.most = 2, 50
        options.strategies = ["random", "margin", "uherding"]
        runs = run(options)["docstrings"]
        records = gather(runs, data="docstrings", model="recommended")
        args.out = Path(tempfile.mkdtemp())
    elif args.records:
        records = json.loads(args.records.read_text())["records"]
    else:
        records = read(args.runs)
    tables, by_model = make_tables(records)
    if not args.figures:
        harness.print_tables(tables)
    folder = harness.DOCS if args.page else args.out
    if folder:
        for model, scores in by_model.items():
            draw_picture(scores, args, model)
        if not args.figures:
            harness.write_json(
                folder / "strategies.json", tables=tables, records=records
            )


if __name__ == "__main__":
    main()
