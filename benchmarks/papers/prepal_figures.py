"""The pictures of prepal.py, and its records as runs."""

from pathlib import Path

import numpy as np
from common import harness

from skactive.analysis import Overlap
from skactive.plotting import (
    ActiveLearningCurveDisplay,
    LedgerDisplay,
    OverlapDisplay,
)

PAPER = harness.read_toml(Path(__file__).with_name("prepal"))["paper"]
NAMES = {
    "sst2": "SST-2",
    "cola": "CoLA",
    "qnli": "QNLI",
    "qnli_dev": "QNLI",
    "ag_news": "AG News",
    "imdb": "IMDb",
}
PHASES = ("precomputation", "fit", "query", "final_training")
# What a loop is called by the encoder whose representations it labels with.
MOVED = "Transfer, second encoder"
LOOP = {"first": "PRepAL", "second": "PRepAL, second encoder"}


def name_of(data):
    return NAMES.get(data, data)


def select(records, kind="run", **wanted):
    """Records of a kind with these values."""
    return [
        r
        for r in records
        if r["kind"] == kind and all(r.get(k) == v for k, v in wanted.items())
    ]


def whole_runs(records, data, protocol, strategy, encoder="first"):
    """Runs over all rounds, in batches, by seed."""
    wanted = {"data": data, "protocol": protocol, "strategy": strategy}
    runs = select(records, **wanted, encoder=encoder)
    last = max((r["n_labeled"][-1] for r in select(records, data=data)), default=0)
    size = max(r["batch_size"] for r in select(records))
    runs = [r for r in runs if r["n_labeled"][-1] == last and r["batch_size"] == size]
    return sorted(runs, key=lambda r: r["seed"])


def as_run(record, ledger=None, final_score=None):
    """Make the Run that a record is left of; it no longer knows what was asked."""
    score = record["final_score"] if final_score is None else final_score
    return harness.as_run(
        record["n_labeled"],
        record["scores"],
        {"seed": record["seed"], "data": record["data"]},
        ledger=ledger or record["ledger"],
        final_scores={"accuracy": score},
    )


def timed_runs(records, data):
    """Runs of PRepAL and AL+FT by entropy whose seconds compare.

    Of PRepAL, the seeds that AL+FT has too: others may be of another processor. None
    that had a GPU.
    """
    prepal, tuned = (
        [r for r in whole_runs(records, data, p, "entropy") if "device" not in r]
        for p in ("PRepAL", "AL+FT")
    )
    seeds = {r["seed"] for r in tuned}
    return [r for r in prepal if r["seed"] in seeds], tuned


def ledger_runs(records, data):
    """Runs by entropy of the three protocols; AL+LR is PRepAL without its end."""
    prepal, tuned = timed_runs(records, data)
    return {
        "AL+LR": [
            as_run(
                r,
                ledger={**r["ledger"], "final_training": 0.0},
                final_score=r["scores"][-1],
            )
            for r in prepal
        ],
        "PRepAL": [as_run(r) for r in prepal],
        "AL+FT": [as_run(r) for r in tuned],
    }


def tuned_points(records, data, strategy, encoder="first", batch_size=None):
    """Runs of one seed made of the models that PRepAL fine-tuned at several counts.

    Seeds that were fine-tuned at fewer counts than others are left out.
    """
    points = {}
    wanted = {"data": data, "protocol": "PRepAL", "strategy": strategy}
    for r in select(records, **wanted, encoder=encoder):
        if (r["batch_size"] == 1) == (batch_size == 1):
            points.setdefault(r["seed"], []).append(
                (r["n_labeled"][-1], r["final_score"])
            )
    runs = []
    most = max(map(len, points.values()), default=0)
    for seed, scores in sorted(points.items()):
        if len(scores) < most:
            continue
        counts, values = zip(*sorted(scores), strict=True)
        runs.append(harness.as_run(counts, values, {"seed": seed}))
    return runs


def draw(records, settings):
    """Draw the ledger, the loops of each data set, and the batches of one."""
    looped = [data for data in settings.data if settings.tuned_loop.get(data)]

    figure, axes = _open(1, len(looped), 3)
    for ax, data in zip(axes[0], looped, strict=True):
        LedgerDisplay.from_runs(ledger_runs(records, data), log=True, ax=ax)
        ax.set_xlabel(f"seconds, {data}")
    _save(figure, settings, "ledger")

    for data in looped:
        strategies = settings.tuned_loop[data]
        figure, axes = _open(2, len(strategies), 7)
        for (above, below), strategy in zip(axes.T, strategies, strict=True):
            _draw_loops(records, data, strategy, above, below)
        _save(figure, settings, f"loops_{data}")

    drawn = [data for data in settings.data if data in settings.sequential]
    if not drawn:
        return
    figure, axes = _open(1, len(drawn), 3.6)
    for ax, data in zip(axes[0], drawn, strict=True):
        size = settings.schedule["batch_size"]
        one = select(records, data=data, batch_size=1)
        last = max(r["n_labeled"][-1] for r in one)
        one = [as_run(r) for r in one if r["n_labeled"][-1] == last]
        which = settings.one_by_one
        many = whole_runs(records, data, "PRepAL", "entropy", encoder=which)
        many = list(map(as_run, many))
        curves = {
            "AL+LR, one a round": one,
            f"AL+LR, {size} a round": many,
            "PRepAL, one a round": tuned_points(records, data, "entropy", which, 1),
            f"PRepAL, {size} a round": tuned_points(records, data, "entropy", which),
        }
        options = {"band": "std", "ax": ax, "score_name": f"accuracy, {data}"}
        display = ActiveLearningCurveDisplay.from_runs(curves, **options)
        display.lines_["AL+LR, one a round"].set_marker("")
    _save(figure, settings, "batch")


def _draw_loops(records, data, strategy, above, below):
    """Accuracies of the protocols by one strategy, and what they have in common."""
    curves = {
        "AL+LR": whole_runs(records, data, "PRepAL", strategy),
        "AL+FT": whole_runs(records, data, "AL+FT", strategy),
        "PRepAL": tuned_points(records, data, strategy),
        MOVED: whole_runs(records, data, "Transfer", strategy),
    }
    for name in ("AL+LR", "AL+FT"):
        curves[name] = list(map(as_run, curves[name]))
    curves[MOVED] = [_end(r) for r in curves[MOVED]]
    baseline = None
    if strategy != "random":
        baseline = "random, fine-tuned"
        tuned = whole_runs(records, data, "AL+FT", "random")
        points = tuned_points(records, data, "random")
        curves[baseline] = list(map(as_run, tuned)) or points
    curves = {name: runs for name, runs in curves.items() if runs}
    ActiveLearningCurveDisplay.from_runs(
        curves,
        band="std",
        ax=above,
        score_name=f"accuracy, {data}, {strategy}",
        baseline=baseline,
    )
    overlaps = _overlaps(records, data, strategy)
    if overlaps:
        OverlapDisplay(overlaps=overlaps, reference_name="AL+FT").plot(below)
        below.set_ylim(top=1.6 * below.get_ylim()[1])  # room for the legend


def _end(record):
    """Make a Run of the model that was fine-tuned in the end alone."""
    counts, info = record["n_labeled"][-1:], {"seed": record["seed"]}
    return harness.as_run(counts, [record["final_score"]], info)


def _overlaps(records, data, tuned):
    """Similarities with AL+FT by a strategy, as the display takes them."""
    overlaps = {}
    for r in select(records, "overlap", data=data):
        (loop, strategy), reference = r["loops"]
        if reference != ["AL+FT", tuned] or strategy not in (tuned, "random"):
            continue
        similarity = np.array(r["similarity"])
        name = loop if strategy == tuned else f"{loop}, random"
        overlaps[name] = Overlap(
            n_labeled=np.array(r["n_labeled"]),
            mean=similarity.mean(axis=0),
            std=similarity.std(axis=0, ddof=min(1, len(similarity) - 1)),
            chance=np.array(r["chance"]),
            similarity=similarity,
        )
    return overlaps


def _open(rows, columns, height):
    return harness.open_panels(rows, columns, max(5.2 * columns, 7), height)


def _save(figure, settings, name):
    name = f"{settings.page_name}_{name}.png"
    harness.save_figure(figure, settings, name, 75)
