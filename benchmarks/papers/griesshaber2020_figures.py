"""The pictures of griesshaber2020.py, and its records as runs."""

from pathlib import Path

import numpy as np
from common import harness
from griesshaber2020_cells import freeze_of

from skactive.plotting import ActiveLearningCurveDisplay, LayerChangeDisplay

PAPER = harness.read_toml(Path(__file__).with_name("griesshaber2020"))["paper"]
NAMES = {"sst2": "SST-2", "snli": "SNLI", "qnli": "QNLI", "mnli": "MNLI"}


def name_of(data):
    return NAMES.get(data, data)


def loops(records, data, strategy="bald", freeze=0):
    """Runs of a loop, by seed."""
    wanted = {"data": data, "strategy": strategy, "freeze": freeze}
    return harness.select(records, part="loop", **wanted)


def shares(records, data, share):
    """Trainings on a share of the texts, by seed."""
    return harness.select(records, part="share", data=data, share=share)


def by_freeze(records, settings, data, freeze):
    """Runs with BALD, of the seeds that all numbers of frozen layers have."""
    found = loops(records, data, freeze=freeze)
    return [r for r in found if r["seed"] < settings.seeds]


def as_runs(found, first=0):
    """Make Runs of the curves, from a round on."""
    return [
        harness.as_run(r["n_labeled"][first:], r["scores"][first:], {"seed": r["seed"]})
        for r in found
    ]


def share_runs(records, settings, data):
    """Runs of two rounds or so: a share of the texts, then all of them."""
    runs = []
    for seed in range(settings.share_seeds):
        wanted = {"part": "share", "data": data, "seed": seed}
        found = harness.select(records, "n_labeled", **wanted)
        curve = zip(*((r["n_labeled"], r["score"]) for r in found), strict=True)
        runs.append(harness.as_run(*curve, {"seed": seed}))
    return runs


def frozen_name(freeze, depth):
    n = freeze_of(freeze, depth)
    if not n:
        return "none frozen"
    return f"{'first' if n > 0 else 'last'} {abs(n)} of {depth} frozen"


def mean_changes(found):
    """Mean over runs of how far each layer moved, and of the variance within it."""
    changes = dict(found[0]["changes"])
    for moment in ("mean", "variance"):
        changes[moment] = np.mean([r["changes"][moment] for r in found], axis=0)
    return changes


def raise_legend(ax):
    """Make room above the curves for the legend, so that it hides none of them."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.45 * (high - low))
    ax.get_legend().set_loc("upper left")


def draw(records, settings):
    """Draw figures 2 to 5 of the paper."""
    n = len(settings.data)

    def save(figure, name):
        harness.save_figure(figure, settings, f"griesshaber2020_{name}.png", 75)

    figure, axes = harness.open_panels(1, 1, 8.0, 3.8)
    curves = {
        name_of(data): share_runs(records, settings, data) for data in settings.data
    }
    ActiveLearningCurveDisplay.from_runs(
        curves, band="std", ax=axes[0, 0], score_name="accuracy"
    )
    legend = axes[0, 0].get_legend()
    legend.set_loc("center left")
    legend.set_bbox_to_anchor((1, 0.5))
    save(figure, "shares")

    size = 5.6 * min(n, 2), 3.8 * ((n + 1) // 2)
    figure, axes = harness.open_panels((n + 1) // 2, min(n, 2), *size)
    for ax in axes.flat[n:]:
        ax.set_visible(False)
    for ax, data in zip(axes.flat, settings.data, strict=False):
        whole = shares(records, data, max(settings.shares))
        ActiveLearningCurveDisplay.from_runs(
            {s: as_runs(loops(records, data, s)) for s in ("bald", "random")},
            reference={
                f"{whole[0]['n_labeled']:,} random labels": float(
                    np.mean([r["score"] for r in whole])
                )
            },
            ax=ax,
            score_name=f"accuracy, {name_of(data)}",
        )
        raise_legend(ax)
    save(figure, "curves")

    figure, axes = harness.open_panels(n, 1, 8.6, 3.6 * n)
    few = min(f for f in settings.freezes if f > 0)
    for ax, data in zip(axes[:, 0], settings.data, strict=True):
        changes = {
            "random": mean_changes(loops(records, data, "random")),
            "bald": mean_changes(loops(records, data)),
        }
        name = f"bald, {frozen_name(few, settings.depth)}"
        changes[name] = mean_changes(loops(records, data, freeze=few))
        LayerChangeDisplay.from_changes(changes, ax=ax)
        ax.set_xlabel(f"layer, {name_of(data)}")
    save(figure, "layers")

    figure, axes = harness.open_panels(n, 2, 11.2, 3.6 * n)
    for row, data in zip(axes, settings.data, strict=True):
        for ax, sign in zip(row, (1, -1), strict=True):
            freezes = [f for f in settings.freezes if sign * f >= 0]
            ActiveLearningCurveDisplay.from_runs(
                {
                    frozen_name(f, settings.depth): as_runs(
                        by_freeze(records, settings, data, f)
                    )
                    for f in freezes
                },
                baseline=frozen_name(0, settings.depth),
                ax=ax,
                score_name=f"accuracy, {name_of(data)}",
            )
            raise_legend(ax)
    save(figure, "freezing")
