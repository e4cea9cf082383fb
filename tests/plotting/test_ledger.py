"""The ledger: bars of seconds, stacked or side by side."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from skactive.plotting import LedgerDisplay
from skactive.simulation import Run

PHASES = ["precomputation", "fit", "query", "final_training"]


def _run(*seconds, **info):
    return Run(ledger=dict(zip(PHASES, seconds, strict=True)), info=info)


@pytest.fixture
def runs():
    return {
        "AL+LR": [_run(30, 2, 1, 0), _run(50, 4, 1, 0)],
        "PRepAL": [_run(30, 2, 1, 400), _run(50, 4, 1, 600)],
        "AL+FT": [_run(0, 20_000, 100, 0), _run(0, 40_000, 300, 0)],
    }


def _widths(display):
    return {
        phase: [bar.get_width() for bar in bars]
        for phase, bars in display.bars_.items()
    }


MEANS = {
    "precomputation": [40, 40, 0],
    "fit": [3, 3, 30_000],
    "query": [1, 1, 200],
    "final_training": [0, 500, 0],
}


@pytest.mark.parametrize("log", [False, True])
def test_bars_are_mean_seconds(runs, ax, log):
    display = LedgerDisplay.from_runs(runs, ax=ax, log=log)
    assert _widths(display) == MEANS
    assert ax.get_xlabel() == "processor seconds"
    assert [t.get_text() for t in ax.get_yticklabels()] == ["AL+LR", "PRepAL", "AL+FT"]
    assert ax.yaxis_inverted()


def test_stacked_bars_follow_each_other(runs, ax):
    display = LedgerDisplay.from_runs(runs, ax=ax)
    lefts = [[bar.get_x() for bar in bars] for bars in display.bars_.values()]
    ends = np.cumsum(list(MEANS.values()), axis=0)
    assert_allclose(lefts, [[0, 0, 0], *ends[:-1]])
    texts = [text.get_text() for text in display.texts_]
    assert texts == ["44 s", "544 s", "30,200 s"]
    assert ax.get_xscale() == "linear"


def test_on_a_logarithmic_axis_bars_stand_side_by_side(runs, ax):
    display = LedgerDisplay.from_runs(runs, ax=ax, log=True)
    assert ax.get_xscale() == "log"
    bars = [bar for bars in display.bars_.values() for bar in bars]
    assert {bar.get_x() for bar in bars} == {0}
    spans = sorted((bar.get_y(), bar.get_y() + bar.get_height()) for bar in bars)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    # Each bar lies nearest to its own name.
    for bars in display.bars_.values():
        middles = [bar.get_y() + bar.get_height() / 2 for bar in bars]
        assert_allclose(np.round(middles), [0, 1, 2])
    # Phases without seconds have no text.
    texts = {text.get_text() for text in display.texts_}
    assert texts == {"40 s", "3 s", "1 s", "500 s", "30,000 s", "200 s"}
    assert ax.get_xlim()[0] < 1


def test_phases_that_took_no_time_are_left_out(ax):
    display = LedgerDisplay.from_runs({"a": _run(0, 2, 1, 0)}, ax=ax)
    assert list(display.bars_) == ["fit", "query"]
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["fit", "query"]


def test_phases_differ_without_colors(runs, ax):
    display = LedgerDisplay.from_runs(runs, ax=ax)
    assert len({bars[0].get_hatch() for bars in display.bars_.values()}) == 4


def test_a_phase_has_one_look_whatever_else_is_there(runs, ax):
    both = [
        LedgerDisplay.from_runs(each, ax=ax).bars_["fit"][0]
        for each in (runs, {"a": _run(0, 2, 1, 0)})
    ]
    assert both[0].get_hatch() == both[1].get_hatch()
    assert both[0].get_facecolor() == both[1].get_facecolor()


def test_a_list_by_protocol(ax):
    runs = [_run(1, 1, 1, 0, protocol=name) for name in ("AL+LR", "AL+LR", "PRepAL")]
    LedgerDisplay.from_runs(runs, groupby="protocol", ax=ax)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["AL+LR", "PRepAL"]


@pytest.mark.long
def test_texts_lie_within_the_axes(runs):
    for log in (False, True):
        display = LedgerDisplay.from_runs(runs, log=log)
        display.figure_.draw_without_rendering()
        frame = display.ax_.get_window_extent()
        right = max(text.get_window_extent().x1 for text in display.texts_)
        assert right <= frame.x1


@pytest.mark.parametrize("log", [False, True])
def test_no_seconds(log):
    with pytest.raises(ValueError, match="'table' must hold a time above 0"):
        LedgerDisplay.from_runs({"a": Run()}, log=log)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("runs", [[], {}], ids=str)
def test_no_runs(runs):
    with pytest.raises(ValueError, match="is empty: pass at least one Run"):
        LedgerDisplay.from_runs(runs)
