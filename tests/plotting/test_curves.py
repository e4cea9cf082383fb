"""Learning curves: what is drawn is what was averaged."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from skactive.analysis import learning_curve
from skactive.plotting import ActiveLearningCurveDisplay
from skactive.plotting._names import _STRATEGIES
from skactive.simulation import Run


def _draw(runs, ax=None, **options):
    return ActiveLearningCurveDisplay.from_runs(
        runs, ax=ax, **{"band": "std", **options}
    )


def _limits(band):
    """Lower and upper limit of a band at each x."""
    points = band.get_paths()[0].vertices
    return np.array(
        [
            (y.min(), y.max())
            for x in np.unique(points[:, 0])
            for y in [points[points[:, 0] == x, 1]]
        ]
    ).T


def test_lines_are_the_means(three_strategies, ax):
    display = _draw(three_strategies, ax)
    assert list(display.lines_) == ["margin", "random", "badge"]
    assert_allclose(
        display.lines_["margin"].get_xydata(), [[10, 0.5], [20, 0.75], [30, 0.75]]
    )
    assert_allclose(display.lines_["random"].get_ydata(), [0.5, 0.5, 0.5])
    assert len(ax.lines) == 3


def test_bands_are_one_deviation_to_each_side(three_strategies, ax):
    display = _draw(three_strategies, ax)
    expected = [[0.25, 0.5, 0.5], [0.75, 1.0, 1.0]]  # 0.25 over n - 1 each
    assert_allclose(_limits(display.bands_["margin"]), expected)
    assert len(ax.collections) == 3
    assert display.legend_.get_title().get_text().endswith("± standard deviation")


@pytest.mark.parametrize("band", ["bootstrap", "t", "percentile"])
def test_bands_are_those_of_the_analysis(three_strategies, ax, band):
    display = _draw(three_strategies, ax, band=band, confidence_level=0.8)
    curve = learning_curve(three_strategies[:3], method=band, confidence_level=0.8)
    assert_allclose(_limits(display.bands_["margin"]), [curve.low, curve.high])
    assert "80%" in display.legend_.get_title().get_text()


def test_without_bands(three_strategies, ax):
    display = _draw(three_strategies, ax, band=None)
    assert len(ax.collections) == 0
    assert display.legend_.get_title().get_text() == "mean of 3 runs"
    assert set(display.bands_.values()) == {None}


def test_many_bands_are_whiskers_next_to_the_last_points(make_run, ax):
    runs = {
        f"s{i}": [make_run([0.1, 0.2 + i / 10 + shift]) for shift in (-0.05, 0, 0.05)]
        for i in range(5)
    }
    display = _draw(runs, ax)
    whiskers = [band.get_segments()[0] for band in display.bands_.values()]
    assert_allclose(whiskers[4][:, 1], [0.55, 0.65])  # 0.6 ± 0.05
    places = [whisker[0, 0] for whisker in whiskers]
    assert sorted(places, reverse=True) == places  # the best stands first
    assert min(places) > display.lines_["s0"].get_xdata()[-1]
    assert display.legend_.get_title().get_text().endswith("deviation\nat the end")


def test_one_run_has_no_band(make_run, ax):
    display = _draw({"margin": make_run([0.5, 0.75])}, ax)
    assert len(ax.collections) == 0
    assert display.bands_ == {"margin": None}
    assert display.legend_.get_title().get_text() == "one run"


def test_one_run_and_several_runs(make_run, three_strategies, ax):
    runs = {"one": [make_run([0.5, 0.75, 1.0])], "margin": three_strategies[:3]}
    display = _draw(runs, ax)
    assert display.bands_["one"] is None
    assert display.bands_["margin"] is not None
    assert display.legend_.get_title().get_text().startswith("mean of 1 to 3 runs")


def test_labels_of_the_axes(three_strategies, ax):
    display = _draw(three_strategies, ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("labels", "accuracy")
    display.plot(ax, score_name="correct")
    assert ax.get_ylabel() == "correct"


def test_a_metric_by_name(three_strategies, ax):
    display = _draw(three_strategies, ax, scoring="f1_macro")
    assert ax.get_ylabel() == "f1 macro"
    assert_allclose(display.lines_["margin"].get_ydata(), [0.25, 0.375, 0.375])


def test_the_primary_metric_is_one_for_all(ax):
    def make(*names):
        return Run([{"queried": [0], "scores": {name: len(name) for name in names}}])

    display = _draw({"a": make("f1", "accuracy"), "b": make("accuracy", "f1")}, ax)
    assert ax.get_ylabel() == "f1"
    assert display.lines_["b"].get_ydata() == [2]


def test_rounds_without_a_score_are_left_out(make_run, ax):
    display = _draw({"a": make_run([None, 0.5, 0.75])}, ax)
    assert_allclose(display.lines_["a"].get_xdata(), [20, 30])


def test_the_legend_has_the_order_in_which_curves_end(three_strategies, ax):
    display = _draw(three_strategies, ax)
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["badge", "margin", "random"]
    handles = display.legend_.legend_handles
    assert handles[0].get_color() == display.lines_["badge"].get_color()


def test_curves_differ_without_colors(make_run, ax):
    names = ["random", *_STRATEGIES[:30]]
    display = _draw({name: make_run([0.5, 0.75]) for name in names}, ax)
    looks = {
        (line.get_linestyle(), line.get_marker()) for line in display.lines_.values()
    }
    # All the ways of a line to be dashed have one name.
    assert len(looks) >= 27
    assert len({line.get_marker() for line in list(display.lines_.values())[:10]}) == 10
    looks = {
        (line.get_color(), line.get_marker(), str(line._unscaled_dash_pattern))
        for line in display.lines_.values()
    }
    assert len(looks) == len(names)


def test_the_baseline_is_dashed_gray_in_every_position(make_run, ax):
    runs = {name: make_run([0.5, 0.75]) for name in ("margin", "random", "badge")}
    line = _draw(runs, ax).lines_["random"]
    assert (line.get_linestyle(), line.get_marker()) == ("--", "o")
    assert line.get_color() == "#555555"
    assert _draw(runs, ax, baseline="badge").lines_["badge"].get_color() == "#555555"
    assert _draw(runs, ax, baseline=None).lines_["random"].get_color() != "#555555"


def test_other_curves_keep_their_look_without_the_baseline(make_run, ax):
    runs = {name: make_run([0.5, 0.75]) for name in ("margin", "random", "badge")}
    colors = {n: line.get_color() for n, line in _draw(runs, ax).lines_.items()}
    del runs["random"]
    again = {n: line.get_color() for n, line in _draw(runs, ax).lines_.items()}
    assert again == {name: colors[name] for name in again}


def test_markers_are_thinned_out_in_long_curves(make_run, ax):
    display = _draw({"a": make_run(np.linspace(0, 1, 1000).tolist())}, ax)
    start, step = display.lines_["a"].get_markevery()
    assert 10 <= len(range(start, 1000, step)) <= 14


def test_a_reference(three_strategies, ax):
    display = _draw(three_strategies, ax, reference=0.9)
    assert_allclose(display.references_["all labels"].get_ydata(), [0.9, 0.9])
    assert [text.get_text() for text in ax.texts] == ["all labels, 0.900"]


def test_several_references(three_strategies, ax):
    reference = {"fine-tuned": 0.9, "majority": 0.25}
    display = _draw(three_strategies, ax, reference=reference)
    assert list(display.references_) == ["fine-tuned", "majority"]
    assert len(ax.texts) == 2


@pytest.mark.parametrize("reference", ["0.9", {"a": None}, True])
def test_a_reference_that_is_no_score(three_strategies, reference):
    with pytest.raises(TypeError, match="'reference' must be a score, or a dict"):
        _draw(three_strategies, reference=reference)
    assert plt.get_fignums() == []


def test_by_another_key(three_strategies, ax):
    for run in three_strategies:
        run.info["protocol"] = "AL+LR"
    one = [run for run in three_strategies if run.info["strategy"] == "margin"]
    assert list(_draw(one, ax, groupby="protocol").lines_) == ["AL+LR"]


def test_a_list_that_mixes_data_sets_is_refused(make_run):
    runs = [make_run([0.5], strategy="margin", data=data) for data in ("sst2", "cola")]
    with pytest.raises(ValueError, match="'margin' differ in 'data': \"cola\", \"sst2"):
        _draw(runs)
    assert plt.get_fignums() == []


def test_a_dict_may_mix_them(make_run, ax):
    runs = [make_run([0.5], strategy="margin", data=data) for data in ("sst2", "cola")]
    assert list(_draw({"both": runs}, ax).lines_) == ["both"]


@pytest.mark.parametrize("runs", [[], {}, {"margin": []}], ids=str)
def test_no_runs(runs):
    with pytest.raises(ValueError, match="is empty: pass at least one Run"):
        _draw(runs)
    assert plt.get_fignums() == []


def test_no_scores():
    with pytest.raises(ValueError, match=r"hold no scores\. Pass X_test and y_test"):
        _draw({"margin": Run([{"queried": [0]}])})
    assert plt.get_fignums() == []


def test_an_unknown_metric(three_strategies):
    with pytest.raises(ValueError, match=r"metric of all runs, got 'auc'.*f1_macro"):
        _draw(three_strategies, scoring="auc")
    assert plt.get_fignums() == []


def test_an_unknown_band(three_strategies):
    with pytest.raises(ValueError, match=r"'band' .* must be a str among .* Got 'sem'"):
        _draw(three_strategies, band="sem")


def test_curves_of_two_metrics_have_no_axis_in_common(three_strategies):
    curves = {
        scoring: learning_curve(three_strategies[:3], scoring)
        for scoring in ("accuracy", "f1_macro")
    }
    with pytest.raises(ValueError, match="'curves' must have the same scoring"):
        ActiveLearningCurveDisplay(curves=curves).plot()
    assert plt.get_fignums() == []


@pytest.mark.parametrize("curves", [{}, None, []], ids=str)
def test_no_curves(curves):
    with pytest.raises(ValueError, match="'curves' must be a dict"):
        ActiveLearningCurveDisplay(curves=curves).plot()


def test_a_curve_can_be_drawn_against_the_cost(ax):
    rounds = [{"queried": [i], "cost": 5 * i, "scores": {"f1": i / 4}} for i in (1, 2)]
    display = _draw({"margin": [Run(rounds)]}, ax, against="cost")
    assert_allclose(display.lines_["margin"].get_xydata(), [[5, 0.25], [10, 0.5]])
    assert ax.get_xlabel() == "cost"
