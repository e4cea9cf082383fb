"""The claims of the paper of prepal.py, and their verdicts."""

import numpy as np
from prepal_figures import select, whole_runs
from verdicts import above, always, below, said, within

NAMES = {
    "sst2": "SST-2",
    "cola": "CoLA",
    "qnli": "QNLI",
    "qnli_dev": "QNLI",
    "ag_news": "AG News",
    "imdb": "IMDb",
}
# Table 3, BERT: AL+LR, PRepAL, AL+FT, in percent. EGL is in no table.
ORDER = ("SST-2", "QNLI", "CoLA", "AG News", "IMDb")
PAPER = {
    "random": [(), (), (86.9, 78.8, 78.6, 89.4, 89.6)],
    "entropy": [
        (84.2, 72.2, 76.7, 89.9, 88.3),
        (87.1, 79.0, 79.9, 90.3, 89.9),
        (88.1, 79.6, 80.0, 90.9, 90.7),
    ],
    "variation_ratio": [
        (84.2, 72.2, 76.7, 90.1, 88.3),
        (87.1, 79.0, 79.9, 90.6, 89.9),
        (87.8, 79.5, 79.8, 91.2, 90.7),
    ],
    "bald": [
        (83.7, 71.3, 76.7, 89.6, 87.6),
        (86.3, 78.2, 79.5, 90.2, 89.5),
        (85.6, 74.2, 79.6, 90.1, 90.6),
    ],
    "batchbald": [
        (84.0, 71.4, 77.6, 89.7, 87.7),
        (86.9, 77.9, 78.4, 90.1, 89.7),
        (86.3, 76.6, 79.6, 90.1, 90.3),
    ],
    "dal": [
        (82.7, 71.1, 75.8, 88.7, 86.9),
        (86.1, 77.0, 78.5, 88.9, 88.6),
        (87.7, 78.6, 79.1, 90.1, 90.3),
    ],
    "coreset": [
        (82.2, 68.3, 75.1, 88.8, 86.1),
        (85.1, 75.8, 76.8, 89.2, 88.5),
        (84.7, 77.4, 78.4, 90.2, 90.4),
    ],
}
PROTOCOLS = ("AL+LR", "PRepAL", "AL+FT")
TWO_CLASSES = ("sst2", "cola", "qnli", "qnli_dev", "imdb")
MARGIN = 2.0


def paper(strategy, protocol, data):
    """Look up the paper's figure, in percent; None if there is none."""
    figures = PAPER.get(strategy, [(), (), ()])[PROTOCOLS.index(protocol)]
    name = NAMES.get(data)
    return figures[ORDER.index(name)] if figures and name in ORDER else None


def name_of(data):
    return NAMES.get(data, data)


def scores(runs, key="final_score"):
    """Scores in percent by seed: of the model that is kept, or of the last round's."""
    return {r["seed"]: 100 * np.atleast_1d(r[key])[-1] for r in runs}


def differences(a, b):
    """Subtract the scores of the seeds that both have."""
    return np.array([a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())])


def runs_by_labels(records, data, batch_size):
    """Runs of PRepAL by entropy with the first encoder, by their labels."""
    found = {}
    for r in select(records, "run", data=data, protocol="PRepAL", strategy="entropy"):
        if r["encoder"] == "first" and (r["batch_size"] == 1) == (batch_size == 1):
            found.setdefault(r["n_labeled"][-1], []).append(r)
    return found


def claims(records, settings):
    """Set the paper's claims beside what was measured."""
    rows = []
    final = [data for data in settings.data if settings.final.get(data)]
    for data in settings.data:
        if settings.tuned_loop.get(data):
            rows += _claims_of_loops(records, data)
    rows += [_claim_of_the_end(records, data) for data in final]
    rows += _claims_of_functions(records, settings.data, final)
    for data in settings.data:
        if data in settings.transfer:
            rows.append(_claim_of_transfer(records, data))
        if data in settings.sequential:
            rows += _claims_of_batches(records, data)
    return rows


def _claim_of_the_end(records, data):
    """Fine-tuning once, beside the logistic regression that labelled."""
    runs = whole_runs(records, data, "PRepAL", "entropy")
    tuned, light = scores(runs), scores(runs, "scores")
    gain = differences(tuned, light)
    means = [f"{np.mean(list(values.values())):.1f}" for values in (tuned, light)]
    return (
        f"{name_of(data)}: fine-tuning in the end is better than the logistic "
        "regression that labelled",
        _against(*(paper("entropy", p, data) for p in ("PRepAL", "AL+LR"))),
        f"{_against(*means)}: {said(gain)}",
        above(gain),
    )


def _claims_of_functions(records, data, final):
    """Functions beside random labels, and entropy beside the others."""
    rows = [
        _over_data(
            "PRepAL by entropy is better than with random labels",
            _paper_gains("entropy", final),
            {d: _beside(records, d, "PRepAL", "entropy", "random") for d in final},
            above,
        )
    ]
    for strategy, name in (("dal", "DAL"), ("coreset", "CoreSet")):
        rows.append(
            _over_data(
                f"{name} loses to random labels where logistic regression asks (paper: "
                "PRepAL; here AL+LR, both sides)",
                _paper_gains(strategy, data),
                {d: _beside(records, d, "AL+LR", strategy, "random") for d in data},
                below,
            )
        )
    others = ("bald", "batchbald", "dal", "coreset", "egl")
    gains = {
        d: np.mean(
            [_beside(records, d, "AL+LR", "entropy", other) for other in others], axis=0
        )
        for d in data
    }
    title = "entropy is better than BALD, BatchBALD, DAL, CoreSet and EGL (their mean)"
    rows.append(_over_data(f"{title}, AL+LR", "in most scenarios", gains, above))
    same = {
        r["data"]: np.mean(np.array(r["similarity"])[:, -1])
        for r in select(records, "overlap")
        if r["loops"][0][1] == "variation_ratio"
    }
    rows.append(
        (
            "with two classes, entropy and variation ratio label the same (similarity "
            "of 0.99 at least)",
            "equal figures on four data sets",
            ", ".join(f"{name_of(d)} {v:.2f}" for d, v in same.items()),
            all(v >= 0.99 for d, v in same.items() if d in TWO_CLASSES),
        )
    )
    return rows


def _over_data(title, figures, gains, test):
    """Make a row for several data sets, the mean of each being one value."""
    means = {data: np.mean(values) for data, values in gains.items()}
    said_each = ", ".join(f"{name_of(d)} {gain:+.1f}" for d, gain in means.items())
    values = list(means.values())
    return title, figures, f"{said(values)}; {said_each}", test(values)


def _paper_gains(strategy, data):
    """Gains of the paper's PRepAL over its random labels, which are fine-tuned too."""
    gains = {
        d: paper(strategy, "PRepAL", d) - paper("random", "AL+FT", d)
        for d in data
        if paper(strategy, "PRepAL", d)
    }
    return ", ".join(f"{name_of(d)} {gain:+.1f}" for d, gain in gains.items())


def _beside(records, data, protocol, strategy, other):
    """Gains of one function over another by the same protocol, by seed."""
    protocols = ("AL+LR", "PRepAL") if protocol == "AL+LR" else ("PRepAL",)
    key = "scores" if protocol == "AL+LR" else "final_score"
    found = [
        scores([r for p in protocols for r in whole_runs(records, data, p, s)], key)
        for s in (strategy, other)
    ]
    return differences(*found)


def _claims_of_loops(records, data):
    """Seconds, the gap and the overlap of PRepAL and AL+FT."""
    light = {r["seed"]: r for r in whole_runs(records, data, "PRepAL", "entropy")}
    tuned = {r["seed"]: r for r in whole_runs(records, data, "AL+FT", "entropy")}
    seeds = sorted(light.keys() & tuned.keys())
    ratios = [
        tuned[s]["ledger"]["retraining"] / light[s]["ledger"]["retraining"]
        for s in seeds
    ]
    totals = [
        sum(tuned[s]["ledger"].values()) / sum(light[s]["ledger"].values())
        for s in seeds
    ]
    spent = [
        np.mean([r[s]["ledger"]["retraining"] for s in seeds]) for r in (light, tuned)
    ]
    gap = differences(scores(tuned.values()), scores(light.values()))
    figures = [paper("entropy", p, data) for p in ("AL+FT", "PRepAL")]
    name = name_of(data)
    rows = [
        (
            f"{name}: logistic regression retrains in a thousandth of the time",
            "5 s against 79,000 s (QNLI)",
            f"{spent[0]:.2f} s against {spent[1]:.0f} s: {np.mean(ratios):,.0f} times",
            always(ratios, 1000),
        ),
        (
            f"{name}: everything together takes a tenth",
            "7.5K s against 98K s (QNLI)",
            f"{np.mean(totals):.1f} times",
            always(totals, 10),
        ),
        (
            f"{name}: PRepAL ends less than {MARGIN:g} points below AL+FT",
            _against(*figures),
            f"AL+FT less PRepAL: {said(gap)}",
            below(gap, MARGIN),
        ),
    ]
    for record in select(records, "overlap", data=data):
        if record["loops"] == [["PRepAL", "entropy"], ["AL+FT", "entropy"]]:
            excess = np.array(record["similarity"]) - record["chance"]
            chance = f"{record['chance'][-1]:.2f}"
            last = np.mean(np.array(record["similarity"])[:, -1])
            rows += [
                (
                    f"{name}: PRepAL and AL+FT ask for more of the same than chance",
                    "not here, of 100,000 texts" if name == "QNLI" else "yes",
                    f"{last:.2f} at the end, chance {chance}: "
                    f"{said(excess[:, -1], 2)} above",
                    above(excess[:, -1]),
                ),
                (
                    f"{name}: and the more so the longer",
                    "a picture: grows, but not on QNLI",
                    f"above chance by {np.mean(excess[:, 0]):+.2f} after the first "
                    f"round, {np.mean(excess[:, -1]):+.2f} after the last: "
                    f"{said(excess[:, -1] - excess[:, 0], 2)}",
                    above(excess[:, -1] - excess[:, 0]),
                ),
            ]
    return rows


def _claim_of_transfer(records, data):
    own = whole_runs(records, data, "PRepAL", "entropy", encoder="second")
    moved = whole_runs(records, data, "Transfer", "entropy")
    loss = differences(scores(own), scores(moved))
    return (
        f"{name_of(data)}: what one encoder asked for serves another as well as what "
        f"that asks for itself (loss below {MARGIN:g} points)",
        "90.9 against 91.1 (SST-2, RoBERTa)",
        f"own less moved: {said(loss)}",
        below(loss, MARGIN),
    )


def _claims_of_batches(records, data):
    """Gains of one label in a round, early and at the end."""
    one = runs_by_labels(records, data, 1)
    many = runs_by_labels(records, data, None)
    counts = sorted(one.keys() & many.keys())
    gains = [differences(scores(one[n]), scores(many[n])) for n in counts]
    name = name_of(data)
    return [
        (
            f"{name}: one label in a round is better early (fine-tuned on "
            f"{counts[0]} labels)",
            "a picture (RoBERTa)",
            said(gains[0]),
            above(gains[0]),
        ),
        (
            f"{name}: and makes no difference at the end (± {MARGIN:g} points)",
            "a picture (RoBERTa)",
            f"{said(gains[-1])} at {counts[-1]} labels",
            within(gains[-1], MARGIN),
        ),
    ]


def _against(a, b):
    return "" if a is None else f"{a} against {b}"


def rules():
    return (
        "The verdicts are computed. Differences are in points of accuracy between runs "
        "of one seed, with Student's 95 % interval of their mean in brackets. A claim "
        "holds if the interval lies on its side of the limit that it names (0 where it "
        "names none), does not hold if it lies on the other side; otherwise our runs "
        "cannot tell. Where a row names several data sets, the mean of each is one "
        "value. Of ratios of seconds, all seeds have to reach the limit, or all to "
        "miss it."
    )
