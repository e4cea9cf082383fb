"""Labels needed: a row for each strategy, intervals, runs and lower bounds."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from skactive.analysis import labels_needed
from skactive.plotting import LabelsNeededDisplay


@pytest.fixture
def runs(make_run):
    """Means that reach random's 0.7 with 30 labels at 20, at 25, and never."""
    rises = {
        "margin": [0.5, 0.7, 0.9],
        "badge": [0.5, 0.6, 0.8],
        "entropy": [0.4, 0.5, 0.6],
        "random": [0.5, 0.6, 0.7],
    }
    return [
        make_run(np.array(rise) + 0.01 * (seed - 1), strategy=name, seed=seed)
        for name, rise in rises.items()
        for seed in range(3)
    ]


def test_a_row_for_each_strategy(runs, ax):
    display = LabelsNeededDisplay.from_runs(runs, "random", 30, ax=ax)
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        "margin",
        "badge",
        "entropy",
    ]
    assert ax.yaxis_inverted()
    points = [line.get_xydata()[0] for line in display.points_.values()]
    assert_allclose(points, [[20, 0], [25, 1], [30, 2]])
    texts = [text.get_text() for text in display.texts_]
    assert texts == ["20 (67%)", "25 (83%)", ">30 (>100%)"]
    assert_allclose(display.baseline_.get_xdata(), 30)
    assert ax.get_xlabel() == "labels needed for accuracy 0.700"
    assert ax.get_xlim()[0] == 0


def test_intervals_and_runs_are_those_of_the_table(runs, ax):
    others = [run for run in runs if run.info["strategy"] != "random"]
    baseline = [run for run in runs if run.info["strategy"] == "random"]
    for run in baseline:
        run.info["seed"] += 10
    table = labels_needed(others, baseline, 30)
    display = LabelsNeededDisplay(table=table).plot(ax)
    for i, name in enumerate(table.names):
        line = display.intervals_[name]
        assert_allclose(line.get_xdata(), [table.low[i], table.high[i]])
        offsets = display.runs_[name].get_offsets()
        assert_allclose(offsets[:, 0], table.run_labels[i])
        assert (np.abs(offsets[:, 1] - i) < 0.5).all()
    assert table.low[0] < table.high[0]


def test_lower_bounds_have_no_face_and_an_arrow(runs, ax):
    display = LabelsNeededDisplay.from_runs(runs, "random", 30, ax=ax)
    assert display.points_["entropy"].get_markerfacecolor() == "white"
    assert display.points_["margin"].get_markerfacecolor() != "white"
    faces = {name: dots.get_facecolors() for name, dots in display.runs_.items()}
    assert faces["margin"][:, 3].all()
    assert not faces["entropy"][:, 3].any()
    arrows = [text for text in ax.texts if text.arrow_patch is not None]
    assert [arrow.xy[1] for arrow in arrows] == [2]
    assert "not reached" in [t.get_text() for t in display.legend_.get_texts()]


def test_the_legend_names_baseline_and_interval(runs, ax):
    few = [run for run in runs if run.info["strategy"] in ("margin", "random")]
    display = LabelsNeededDisplay.from_runs(
        few, "random", 30, confidence_level=0.9, ax=ax
    )
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["mean curve, 90% interval", "single run", "random, 30 labels"]


def test_one_run_has_no_interval(runs, ax):
    display = LabelsNeededDisplay.from_runs(runs[::3], "random", 20, ax=ax)
    assert set(display.intervals_.values()) == {None}
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts[0] == "mean curve"


def test_an_upper_bound(runs, ax):
    display = LabelsNeededDisplay.from_runs(runs, "random", 10, ax=ax)
    assert display.texts_[0].get_text() == "≤10 (≤100%)"


def test_texts_lie_within_the_figure(runs):
    display = LabelsNeededDisplay.from_runs(runs, "random", 30)
    display.figure_.draw_without_rendering()
    right = max(text.get_window_extent().x1 for text in display.texts_)
    assert right <= display.figure_.bbox.x1


def test_rows_have_the_colors_of_the_strategies(runs, ax):
    alone = LabelsNeededDisplay.from_runs(runs[3:], "random", 30, ax=ax)
    together = LabelsNeededDisplay.from_runs(runs, "random", 30, ax=ax)
    colors = [each.points_["badge"].get_color() for each in (alone, together)]
    assert colors[0] == colors[1] != together.points_["margin"].get_color()


def test_an_unknown_baseline_opens_no_figure(runs):
    with pytest.raises(ValueError, match="'baseline' must be one of"):
        LabelsNeededDisplay.from_runs(runs, "bald", 30)
    assert plt.get_fignums() == []
