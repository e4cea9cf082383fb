"""The claims of the paper of prepal.py."""

import numpy as np
from prepal_figures import select, timed_runs, whole_runs
from prepal_paper import PHASES, name_of, paper
from verdicts import Claim, compare

OTHERS = ("bald", "batchbald", "dal", "coreset", "egl")
LIGHT = "AL+LR", "PRepAL"  # one loop, kept or fine-tuned at the end
POINTS = {"margin": 2}
SHARE = {"unit": "of Jaccard similarity", "digits": 2, "margin": 0.05}


def make_claims(records, settings):
    """List the claims with what was measured."""
    final = [d for d in settings.data if settings.final.get(d)]
    looped = [d for d in settings.data if settings.tuned_loop.get(d)]
    claims = [claim for d in looped for claim in of_loops(records, d)]
    claims += [of_the_end(records, d) for d in final]
    learned = [d for d in settings.data if is_learned(records, d)]
    claims += of_functions(records, learned)
    for d in looped:
        claims += of_tuned_functions(records, d)
    for d in settings.data:
        if d in settings.transfer:
            claims.append(of_transfer(records, d))
        if d in settings.sequential:
            claims += of_batches(records, d, settings.one_by_one)
    return [claim for claim in claims if claim is not None]


def scores(runs, key="final_score"):
    """Scores in percent: of the model that is kept, or of the last round's."""
    return np.array([100 * np.atleast_1d(r[key])[-1] for r in runs])


def ends(a, b):
    return scores(a) - scores(b)


def runs_by_labels(records, data, encoder, batch_size):
    """Runs of PRepAL by entropy, by their labels."""
    found = {}
    wanted = {"protocol": "PRepAL", "strategy": "entropy", "encoder": encoder}
    for r in select(records, "run", data=data, **wanted):
        if (r["batch_size"] == 1) == (batch_size == 1):
            found.setdefault(r["n_labeled"][-1], []).append(r)
    return {n: sorted(runs, key=lambda r: r["seed"]) for n, runs in found.items()}


def is_learned(records, data):
    """Whether a model in the end is 2 points above the commonest class."""
    (encoding,) = select(records, "encoding", data=data, encoder="first")
    found = [r for r in select(records, data=data) if r["protocol"] != "AL+FT"]
    groups = {}
    for r in found:
        groups.setdefault((r["protocol"], r["strategy"]), []).append(r)
    means = [scores(group).mean() for group in groups.values()]
    return max(means) > 100 * encoding["trivial"] + POINTS["margin"]


def of_loops(records, data):
    """Seconds, the gap and the overlap of PRepAL and AL+FT."""
    ours = whole_runs(records, data, "PRepAL", "entropy")
    tuned = whole_runs(records, data, "AL+FT", "entropy")
    timed, name = timed_runs(records, data), name_of(data)
    if len(tuned) < 2:  # one run has no interval
        return []

    def faster(what, limit, phases):
        """Claim that AL+FT takes more seconds than PRepAL, by a power of 10."""
        own, other = (
            [sum(r["ledger"][p] for p in phases) for r in runs] for runs in timed
        )
        ratios = np.array(other) / np.mean(own)
        return Claim(
            f"{name}: {what}",
            "5 s against 79,000 s (QNLI)" if limit > 1 else "7.5K s against 98K s",
            {name: np.log10(ratios)},
            limit=limit,
            unit="(logarithms to base 10)",
            digits=2,
            seconds=mean_seconds(timed[1]),
            shown=f"{10 ** np.log10(ratios).mean():,.0f} times: ",
        )

    n_rounds = len(tuned[0]["scores"]) - 1
    claims = [
        faster("logistic regression retrains in a thousandth of the time", 3, ["fit"])
    ]
    if n_rounds > 20:  # with fewer, the trainings of AL+FT are less than ten times one
        claims.append(faster("everything together takes a tenth", 1, PHASES))
    figures = [paper("entropy", p, data) for p in ("AL+FT", "PRepAL")]
    claims.append(
        compare(
            f"{name}: PRepAL ends less than 2 points below AL+FT",
            "{} against {}".format(*figures) if figures[0] else "",
            *({name: [tuned, ours]}, ends),
            kind="less",
            limit=2,
        )
    )
    for strategy in ("entropy", "dal", "coreset"):
        for record in select(records, "overlap", data=data):
            if record["loops"] == [["PRepAL", strategy], ["AL+FT", strategy]]:
                cost = mean_seconds(whole_runs(records, data, "AL+FT", strategy))
                claims += of_overlap(name, strategy, record, cost)
    return claims


def mean_seconds(runs):
    """Processor seconds of a run."""
    return float(np.mean([r["processor"] for r in runs]))


def of_overlap(name, strategy, record, seconds):
    """What PRepAL and AL+FT have in common, above chance; seconds are of a seed."""
    excess = np.array(record["similarity"]) - record["chance"]
    end, growth = {name: excess[:, -1]}, {name: excess[:, -1] - excess[:, 0]}
    title = f"{name}: PRepAL and AL+FT by {strategy} ask for"
    options = SHARE | {"seconds": seconds}
    if name == "QNLI":  # the paper's reason: 100,000 texts to choose from
        text = f"{title} the same as often as by chance (± 0.05)"
        printed = "indistinguishable from random"
        return [Claim(text, printed, end, kind="alike", **options)]
    grows = strategy == "entropy"
    printed = "grows steadily (a picture)" if grows else "decreases (a picture)"
    return [
        Claim(f"{title} more of the same than chance", "a picture", end, **options),
        Claim(
            f"{name}: and the {'more' if grows else 'less'} so the longer ({strategy})",
            printed,
            growth,
            kind="more" if grows else "less",
            **options,
        ),
    ]


def of_the_end(records, data):
    """Fine-tuning once against the logistic regression that labeled."""
    figures = [paper("entropy", p, data) for p in ("PRepAL", "AL+LR")]
    runs = whole_runs(records, data, "PRepAL", "entropy")
    note = "" if is_learned(records, data) else ", nothing learned by either"
    return compare(
        f"{name_of(data)}: fine-tuning in the end is better than the logistic "
        f"regression that labeled{note}",
        "{} against {}".format(*figures) if figures[0] else "",
        *({name_of(data): [runs]}, lambda a: scores(a) - scores(a, "scores")),
        **POINTS,
    )


def of_functions(records, learned):
    """Functions against random labels, and entropy against the others."""

    def loops(data, strategy, protocols=LIGHT):
        return [r for p in protocols for r in whole_runs(records, data, p, strategy)]

    def over(text, printed, is_final, own, others, **options):
        groups = {}
        for d in learned:
            protocols = ("PRepAL",) if is_final else LIGHT
            runs = [loops(d, s, protocols) for s in (own, *others)]
            if all(len(each) > 1 for each in runs):
                groups[name_of(d)] = runs
        key = "final_score" if is_final else "scores"

        def difference(first, *rest):
            return scores(first, key) - np.mean([scores(r, key) for r in rest], axis=0)

        return compare(text, printed, groups, difference, **options) if groups else None

    gains = {
        s: ", ".join(
            f"{name_of(d)} {ours - paper('random', 'AL+FT', d):+.1f}"
            for d in learned
            if (ours := paper(s, "PRepAL", d))
        )
        for s in ("entropy", "dal", "coreset")
    }
    claims = [
        over(
            "PRepAL by entropy is better than with random labels",
            *(gains["entropy"], True, "entropy", ["random"]),
        )
    ]
    for strategy, name in (("dal", "DAL"), ("coreset", "CoreSet")):
        title = f"{name} loses to random labels where logistic regression asks"
        for is_final in (False, True):
            claims.append(
                over(
                    f"{title} ({'fine-tuned in the end' if is_final else 'kept'})",
                    gains[strategy] if is_final else "in practically all setups",
                    *(is_final, strategy, ["random"]),
                    kind="less",
                )
            )
    title = "entropy is better than the mean of BALD, BatchBALD, DAL, CoreSet, EGL"
    for is_final in (False, True):
        name = "PRepAL" if is_final else "AL+LR"
        printed = "in most scenarios"
        claims.append(over(f"{title} ({name})", printed, is_final, "entropy", OTHERS))
    same, cost = {}, 0.0
    for r in select(records, "overlap"):
        if r["loops"][0][1] == "variation_ratio" and r["data"] != "ag_news":
            same[name_of(r["data"])] = 1 - np.array(r["similarity"])[:, -1]
            cost += sum(mean_seconds(loops(r["data"], s)) for _, s in r["loops"])
    if same:
        text = "with two classes, entropy and variation ratio label the same (± 0.01)"
        printed = "equal figures on four data sets"
        options = SHARE | {"kind": "alike", "margin": 0.01, "digits": 3}
        options["seconds"] = cost
        claims.append(
            Claim(text, printed, same, shown="1 less similarity: ", **options)
        )
    return claims


def of_tuned_functions(records, data):
    """Functions against random labels where the encoder is fine-tuned each round.

    With random labels that loop ends with the model of PRepAL on the same labels.
    """
    claims, random = [], whole_runs(records, data, "PRepAL", "random")
    for strategy, name, kind in (
        ("dal", "DAL is better than random labels", "more"),
        ("bald", "random labels are better than BALD", "less"),
        ("batchbald", "random labels are better than BatchBALD", "less"),
    ):
        runs = whole_runs(records, data, "AL+FT", strategy)
        if min(len(runs), len(random)) > 1:
            figures = [paper(s, "AL+FT", data) for s in (strategy, "random")]
            claims.append(
                compare(
                    f"{name_of(data)}: {name} with AL+FT",
                    "{} against {}".format(*figures) if figures[0] else "",
                    *({name_of(data): [runs, random]}, ends),
                    kind=kind,
                )
            )
    return claims


def of_transfer(records, data):
    own = whole_runs(records, data, "PRepAL", "entropy", encoder="second")
    moved = whole_runs(records, data, "Transfer", "entropy")
    return compare(
        f"{name_of(data)}: an encoder fine-tuned on what another one asked for loses "
        "less than 2 points to one fine-tuned on what it asked for itself",
        "90.9 against 91.1 (SST-2, RoBERTa)",
        *({name_of(data): [own, moved]}, ends),
        kind="less",
        limit=2,
    )


def of_batches(records, data, encoder):
    """Gains of one label in a round, early and at the end."""
    one = runs_by_labels(records, data, encoder, 1)
    many = runs_by_labels(records, data, encoder, None)
    counts, name = sorted(one.keys() & many.keys()), name_of(data)
    pairs = [{name: [one[n], many[n]]} for n in counts]
    printed = "a picture (RoBERTa)"
    return [
        compare(
            f"{name}: one label in a round is better early (fine-tuned on {counts[0]} "
            "labels)",
            printed,
            *(pairs[0], ends),
            **POINTS,
        ),
        compare(
            f"{name}: and makes no difference at the end (± 2 points, {counts[-1]} "
            "labels)",
            printed,
            *(pairs[-1], ends),
            kind="alike",
            **POINTS,
        ),
    ]
