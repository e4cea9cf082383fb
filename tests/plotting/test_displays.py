"""What all displays have in common: where they draw, and what they leave alone."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from skactive import plotting

CHANGES = {
    "layer": ["0", "1", "dense.0"],
    "part": ["encoder", "encoder", "head"],
    "mean": [0.0, 1e-4, 2e-4],
    "variance": [0.0, 1e-8, 1e-8],
}
DISPLAYS = ["curves", "labels_needed", "layers", "ledger", "overlap", "score_time"]
DISPLAYS += ["history"]


@pytest.fixture(params=DISPLAYS)
def draw(request, make_run):
    """A function that draws on given axes, for each way to make a display."""

    def _draw(ax=None, names=("margin", "random"), n_seeds=2):
        runs = {
            name: [make_run([0.5, 0.75, 0.625 + 0.1 * i]) for _ in range(n_seeds)]
            for i, name in enumerate(names)
        }
        history = [{"seconds_total": 1.0, "valid_score": 0.5}]
        if request.param == "curves":
            display = plotting.ActiveLearningCurveDisplay
            return display.from_runs(runs, band="t", ax=ax)
        if request.param == "labels_needed":
            baseline = [make_run([0.5, 0.6, 0.7]) for _ in range(n_seeds)]
            display = plotting.LabelsNeededDisplay
            return display.from_runs(runs, baseline, 20, ax=ax)
        if request.param == "layers":
            changes = dict.fromkeys(names, CHANGES)
            return plotting.LayerChangeDisplay.from_changes(changes, ax=ax)
        if request.param == "ledger":
            return plotting.LedgerDisplay.from_runs(runs, ax=ax)
        if request.param == "overlap":
            reference = [make_run([0.5] * 3) for _ in range(n_seeds)]
            return plotting.OverlapDisplay.from_runs(runs, reference, ax=ax)
        if request.param == "score_time":
            return plotting.ScoreTimeDisplay.from_runs(runs, ax=ax)
        histories = dict.fromkeys(names, history)
        return plotting.ScoreTimeDisplay.from_history(histories, ax=ax)

    return _draw


def test_a_figure_is_opened_where_none_is_given(draw):
    display = draw()
    assert [plt.figure(number) for number in plt.get_fignums()] == [display.figure_]
    assert display.ax_ is display.figure_.axes[0]


def test_given_axes_are_drawn_on(draw):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    display = draw(right)
    assert display.ax_ is right
    assert display.figure_ is figure
    assert not left.has_data()
    assert right.has_data()
    assert plt.get_fignums() == []


def test_given_axes_of_pyplot(draw):
    figure, (left, right) = plt.subplots(1, 2)
    plt.sca(left)
    draw(right)
    assert plt.gca() is left
    assert plt.get_fignums() == [figure.number]


def test_given_axes_of_a_part_of_a_figure(draw):
    part = Figure().subfigures(1, 2)[0]
    assert draw(part.subplots()).figure_ is part


@pytest.mark.long
def test_plot_draws_again(draw, ax):
    display = draw()
    counts = [len(display.ax_.lines), len(display.ax_.patches), len(display.ax_.texts)]
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert [len(ax.lines), len(ax.patches), len(ax.texts)] == counts


@pytest.mark.parametrize("ax", [0, "ax", np.empty(2, dtype=object)], ids=type)
def test_what_is_no_axes(draw, ax):
    with pytest.raises(TypeError, match="'ax' must be a matplotlib Axes or None"):
        draw(ax)


def test_a_figure_is_no_axes(draw):
    with pytest.raises(TypeError, match="got a Figure"):
        draw(Figure())


def test_both_axes_are_named(draw, ax):
    draw(ax)
    assert ax.get_xlabel()
    assert ax.get_ylabel() or len(ax.get_yticklabels()) == 2  # the names of rows


@pytest.mark.long
@pytest.mark.slow
def test_names_are_no_formulas_and_none_is_hidden(draw, tmp_path):
    names = (r"$\frac{$", "_private", "a_b^c")
    display = draw(names=names)
    display.figure_.savefig(tmp_path / "a.png")
    shown = [*display.ax_.get_yticklabels()]
    if display.legend_ is not None:
        shown += display.legend_.get_texts()
    assert set(names) <= {text.get_text().strip() for text in shown}


@pytest.mark.long
def test_long_names_are_broken_into_lines(draw):
    name = "Subsample(strategy='margin', n_samples=1000, random_state=None)"
    display = draw(names=(name, "random"))
    display.figure_.draw_without_rendering()
    assert display.ax_.get_window_extent().width > 0.45 * display.figure_.bbox.width


slow = pytest.mark.slow


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("n", [*(pytest.param(n, marks=slow) for n in (1, 4, 5)), 12])
def test_the_legend_of_an_own_figure_lies_within_it(draw, n):
    display = draw(names=[f"strategy {i}" for i in range(n)])
    display.figure_.draw_without_rendering()
    if display.legend_ is not None:
        box, page = display.legend_.get_window_extent(), display.figure_.bbox
        assert page.x0 <= box.x0 <= box.x1 <= page.x1
        assert page.y0 <= box.y0 <= box.y1 <= page.y1


def test_a_long_legend_hides_no_curve(make_run):
    runs = {f"strategy {i}": make_run([0.5, 0.75]) for i in range(7)}
    display = plotting.ActiveLearningCurveDisplay.from_runs(runs)
    display.figure_.draw_without_rendering()
    frame = display.ax_.get_window_extent()
    assert display.legend_.get_window_extent().x0 >= frame.x1


def test_it_says_how_to_get_matplotlib(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"Display draws with matplotlib.*install"):
        draw()


def test_given_axes_need_no_pyplot(draw, ax, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert draw(ax).ax_ is ax
    assert ax.has_data()


def test_drawing_needs_no_pandas(draw, ax, monkeypatch):
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    assert draw(ax).ax_ is ax
    assert ax.has_data()


def test_gray_tones_of_neighbors_in_a_stack_differ():
    from matplotlib.colors import to_rgb

    from skactive.plotting._names import PHASE_COLORS

    gray = [np.dot(to_rgb(color), [0.299, 0.587, 0.114]) for color in PHASE_COLORS]
    assert np.abs(np.diff(gray)).min() > 0.1
