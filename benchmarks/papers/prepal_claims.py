"""What is measured for the claims of the paper of prepal.py."""

import numpy as np
from prepal_figures import PAPER, PHASES, name_of, select, timed_runs, whole_runs
from verdicts import differ, read_claims

LIGHT = "AL+LR", "PRepAL"  # one loop, kept or fine-tuned at the end
MARGIN = 2


def paper(strategy, protocol, data):
    """Look up the paper's figure, in percent; None if there is none."""
    figures, order = PAPER["accuracy"][protocol].get(strategy), PAPER["order"]
    name = name_of(data)
    return figures[order.index(name)] if figures and name in order else None


def make_claims(records, settings):
    """Measure what the paper claims."""

    def measure(item, *, what, figures=(), **of):
        found = MEASURES[what](records, **item, **of)
        if found is None or not figures:
            return found
        protocols = [which.split() for which in figures]
        printed = [paper(s, protocol, item["data"]) for protocol, s in protocols]
        shown = " against ".join(map(str, printed)) if printed[0] else ""
        return found | {"paper": shown}

    return read_claims("prepal", measure, list_loops(records, settings))


def list_loops(records, settings):
    """List the data sets that there are claims on, with the words for them."""
    learned = [d for d in settings.data if is_learned(records, d)]
    gains = {
        s: ", ".join(
            f"{name_of(d)} {ours - paper('random', 'AL+FT', d):+.1f}"
            for d in learned
            for ours in [paper(s, "PRepAL", d)]
            if ours
        )
        for s in ("entropy", "dal", "coreset")
    }
    ends = []
    for d in settings.data:
        counts = [0]
        if d in settings.sequential:
            one, many = runs_by_batch(records, d, settings.one_by_one)
            counts = sorted(one.keys() & many.keys())
        ends.append({"first": counts[0], "last": counts[-1], "settings": settings})
        ends[-1] |= {"data": d, "name": name_of(d)}
    nothing = ", nothing learned by either"
    return {
        None: [gains | {"learned": learned}],
        "looped": [
            {"data": d, "name": name_of(d)}
            for d in settings.data
            if settings.tuned_loop.get(d)
        ],
        "final": [
            {"data": d, "name": name_of(d), "note": "" if d in learned else nothing}
            for d in settings.data
            if settings.final.get(d)
        ],
        "ends": ends,
    }


def scores(runs, key="final_score"):
    """Scores in percent: of the model that is kept, or of the last round's."""
    return np.array([100 * np.atleast_1d(r[key])[-1] for r in runs])


def ends(a, b):
    return scores(a) - scores(b)


def runs_by_batch(records, data, encoder):
    """Runs of PRepAL by entropy, by their labels: one label a round, and batches."""
    found = {}, {}
    wanted = {"protocol": "PRepAL", "strategy": "entropy", "encoder": encoder}
    for r in select(records, "run", data=data, **wanted):
        own = found[r["batch_size"] > 1]
        own.setdefault(r["n_labeled"][-1], []).append(r)
    return found


def is_learned(records, data):
    """Whether a model in the end is 2 points above the commonest class."""
    (encoding,) = select(records, "encoding", data=data, encoder="first")
    found = [r for r in select(records, data=data) if r["protocol"] != "AL+FT"]
    groups = {}
    for r in found:
        groups.setdefault((r["protocol"], r["strategy"]), []).append(r)
    means = [scores(group).mean() for group in groups.values()]
    return max(means) > 100 * encoding["trivial"] + MARGIN


def mean_seconds(runs):
    """Processor seconds of a run."""
    return float(np.mean([r["processor"] for r in runs]))


def tuned_runs(records, data):
    """Runs of AL+FT by entropy, if more than one; one run has no interval."""
    runs = whole_runs(records, data, "AL+FT", "entropy")
    return runs if len(runs) > 1 else []


def measure_faster(records, data, name, phases=PHASES, least_rounds=0):
    """Logarithm of the seconds that AL+FT takes by those of PRepAL.

    With few rounds the trainings of AL+FT are less than ten times one.
    """
    tuned = tuned_runs(records, data)
    if not tuned or len(tuned[0]["scores"]) - 1 <= least_rounds:
        return None
    timed = timed_runs(records, data)
    own, other = ([sum(r["ledger"][p] for p in phases) for r in runs] for runs in timed)
    ratios = np.log10(np.array(other) / np.mean(own))
    shown = f"{10 ** ratios.mean():,.0f} times: "
    seconds = mean_seconds(timed[1])
    return {"values": {name: ratios}, "seconds": seconds, "shown": shown}


def measure_gap(records, data, name):
    """How far PRepAL ends below AL+FT."""
    tuned = tuned_runs(records, data)
    ours = whole_runs(records, data, "PRepAL", "entropy")
    return differ({name: [tuned, ours]}, ends) if tuned else None


def similarities(records, overlap):
    """Similarity of two loops by seed, of the first seeds if only these have runs."""
    seeds = []
    for loop, strategy in overlap["loops"]:
        protocols = [loop] if loop == "AL+FT" else LIGHT
        runs = light_runs(records, overlap["data"], strategy, protocols)
        seeds.append({r["seed"] for r in runs})
    return np.array(overlap["similarity"])[: len(set.intersection(*seeds))]


def measure_overlap(
    records, data, name, strategy, only=None, without=None, growth=False
):
    """What PRepAL and AL+FT have in common, above chance.

    QNLI has another claim, for the paper's reason: 100,000 texts to choose from.
    """
    loops = [["PRepAL", strategy], ["AL+FT", strategy]]
    found = select(records, "overlap", data=data, loops=loops)
    if name == without or only not in (None, name) or not tuned_runs(records, data):
        return None
    for record in found:
        excess = similarities(records, record) - record["chance"]
        if not len(excess):
            return None
        values = excess[:, -1] - excess[:, 0] if growth else excess[:, -1]
        seconds = mean_seconds(whole_runs(records, data, "AL+FT", strategy))
        return {"values": {name: values}, "seconds": seconds}
    return None


def measure_end(records, data, name, note):
    """Fine-tuning once against the logistic regression that labeled."""
    runs = whole_runs(records, data, "PRepAL", "entropy")
    return differ({name: [runs]}, lambda a: scores(a) - scores(a, "scores"))


def light_runs(records, data, strategy, protocols=LIGHT):
    return [r for p in protocols for r in whole_runs(records, data, p, strategy)]


def measure_strategy(records, learned, own, is_final, others=("random",), **gains):
    """A strategy against the mean of others, where logistic regression asks."""
    groups, key = {}, "final_score" if is_final else "scores"
    for d in learned:
        protocols = ("PRepAL",) if is_final else LIGHT
        runs = [light_runs(records, d, s, protocols) for s in (own, *others)]
        if all(len(each) > 1 for each in runs):
            groups[name_of(d)] = runs

    def difference(first, *rest):
        return scores(first, key) - np.mean([scores(r, key) for r in rest], axis=0)

    return differ(groups, difference) if groups else None


def measure_same_labels(records, **words):
    """Similarity of entropy and variation ratio, subtracted from 1."""
    same, seconds = {}, 0.0
    for r in select(records, "overlap"):
        if r["loops"][0][1] == "variation_ratio" and r["data"] != "ag_news":
            same[name_of(r["data"])] = 1 - similarities(records, r)[:, -1]
            runs = [light_runs(records, r["data"], s) for _, s in r["loops"]]
            seconds += sum(map(mean_seconds, runs))
    return {"values": same, "seconds": seconds} if same else None


def measure_tuned_strategy(records, data, name, strategy):
    """A strategy against random labels where the encoder is fine-tuned each round.

    With random labels that loop ends with the model of PRepAL on the same labels.
    """
    runs = whole_runs(records, data, "AL+FT", strategy)
    random = whole_runs(records, data, "PRepAL", "random")
    is_known = min(len(runs), len(random)) > 1
    return differ({name: [runs, random]}, ends) if is_known else None


def measure_transfer(records, data, name, settings, **counts):
    if data not in settings.transfer:
        return None
    own = whole_runs(records, data, "PRepAL", "entropy", encoder="second")
    moved = whole_runs(records, data, "Transfer", "entropy")
    return differ({name: [own, moved]}, ends)


def measure_batches(records, data, name, settings, place, **counts):
    """Gains of one label in a round, with few labels or at the end."""
    if data not in settings.sequential:
        return None
    n = counts[place]
    runs = runs_by_batch(records, data, settings.one_by_one)
    return differ({name: [own[n] for own in runs]}, ends)


MEASURES = {
    "faster": measure_faster,
    "gap": measure_gap,
    "overlap": measure_overlap,
    "end": measure_end,
    "strategy": measure_strategy,
    "same labels": measure_same_labels,
    "tuned strategy": measure_tuned_strategy,
    "transfer": measure_transfer,
    "batches": measure_batches,
}
