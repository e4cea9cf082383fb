"""Curves, bands and areas against numbers worked out by hand and scipy."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skactive.analysis import area_under_curve, labels_to_reach, learning_curve
from skactive.analysis._curves import (
    align_runs,
    bootstrap_difference,
    bootstrap_mean,
    widened_tail,
)
from skactive.simulation import Run


def make(scores, step=10, start=10, scoring="accuracy", **info):
    rounds = [{"queried": [], "n_labeled": start + step * i, "scores": {scoring: score}}
              for i, score in enumerate(scores)]  # fmt: skip
    return Run(rounds, info=info)


THREE = [make([0.5, 0.7, 0.8]), make([0.6, 0.8, 0.8]), make([0.55, 0.9, 0.8])]


# Curves


def test_means_and_standard_deviations():
    curve = learning_curve(THREE)
    assert_array_equal(curve.n_labeled, [10, 20, 30])
    assert_allclose(curve.mean, [0.55, 0.8, 0.8])
    assert_allclose(curve.std, [0.05, 0.1, 0], atol=1e-15)
    assert (curve.n_runs, curve.scoring, curve.confidence_level) == (
        3,
        "accuracy",
        0.95,
    )
    assert_array_equal(curve.scores, [run.scores for run in THREE])


def test_band_of_one_standard_deviation():
    curve = learning_curve(THREE, method="std")
    assert_allclose(curve.low, [0.5, 0.7, 0.8])
    assert_allclose(curve.high, [0.6, 0.9, 0.8])


def test_band_by_student():
    curve = learning_curve(THREE, method="t", confidence_level=0.9)
    # t(0.95, 2) = 2.919986; s / sqrt(3) = 0.0288675 and 0.0577350
    assert_allclose(curve.high - curve.mean, [0.084293, 0.168585, 0], atol=1e-6)
    assert_allclose(curve.mean - curve.low, [0.084293, 0.168585, 0], atol=1e-6)


def test_band_by_percentiles_of_the_runs():
    runs = [make([i / 100]) for i in range(101)]
    curve = learning_curve(runs, method="percentile", confidence_level=0.8)
    assert_allclose([curve.low, curve.high], [[0.1], [0.9]])


def test_bootstrap_of_three_runs_is_their_range():
    curve = learning_curve(THREE)
    assert_allclose(curve.low, [0.5, 0.7, 0.8])
    assert_allclose(curve.high, [0.6, 0.9, 0.8])


def test_bootstrap_of_equal_runs_has_no_width():
    for low, high in zip(
        *bootstrap_mean(np.full((7, 3), 0.1), 0.95, 500, 0), strict=True
    ):
        assert low == high


def test_bootstrap_is_that_of_scipy_at_the_widened_level():
    values = np.random.default_rng(1).gamma(2, size=(12, 3))
    level = 1 - 2 * widened_tail(0.9, 12)
    expected = stats.bootstrap(
        (values,), np.mean, confidence_level=level, n_resamples=40000, axis=0,
        method="percentile", random_state=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    low, high = bootstrap_mean(values, 0.9, 40000, 0)
    # Two draws of the same limits: what is left is Monte-Carlo error.
    assert_allclose(low, expected.low, atol=0.02)
    assert_allclose(high, expected.high, atol=0.02)


def test_the_widened_level_is_hesterbergs():
    # z sqrt((n - 1) / n) = t: for n = 10, t(0.975, 9) = 2.262157, z = 2.384523.
    assert_allclose(widened_tail(0.95, 10), stats.norm.cdf(-2.384523), rtol=1e-5)
    assert_allclose(widened_tail(0.95, 10**7), 0.025, rtol=1e-5)


@pytest.mark.long
def test_bootstrap_of_many_normal_runs_is_the_analytic_interval():
    values = np.random.default_rng(0).normal(5, 2, size=(400, 1))
    low, high = bootstrap_mean(values, 0.95, 20000, 0)
    half = stats.t.isf(0.025, 399) * values.std(ddof=1) / 20
    assert_allclose([low[0], high[0]], values.mean() + half * np.array([-1, 1]), 2e-3)


@pytest.mark.long
@pytest.mark.parametrize(("n", "least"), [(5, 0.90), (10, 0.92), (20, 0.93)])
def test_bootstrap_covers_the_mean_as_often_as_it_says(n, least):
    rng = np.random.default_rng(0)
    # 1,000 groups of runs as the points of one "curve", redrawn together.
    values = rng.normal(size=(n, 1000))
    low, high = bootstrap_mean(values, 0.95, 4000, 0)
    covered = ((low <= 0) & (high >= 0)).mean()
    assert least <= covered <= 0.97


@pytest.mark.long
def test_bootstrap_of_a_difference():
    rng = np.random.default_rng(0)
    a, b = rng.normal(3, 1, size=(300, 1)), rng.normal(1, 2, size=(200, 1))
    low, high = bootstrap_difference(a, b, 0.95, 20000, 0)
    error = np.sqrt(a.var(ddof=1) / 300 + b.var(ddof=1) / 200)
    gap = a.mean() - b.mean()
    assert_allclose([low[0], high[0]], gap + 1.965 * error * np.array([-1, 1]), 1e-2)
    covered = [
        low <= 0 <= high
        for low, high in zip(
            *bootstrap_difference(
                rng.normal(size=(6, 500)), rng.normal(size=(9, 500)), 0.95, 4000, 0
            ),
            strict=True,
        )
    ]
    assert 0.91 <= np.mean(covered) <= 0.985


def test_bootstrap_of_a_difference_is_widened_for_the_smaller_group():
    few, many = np.random.default_rng(0).normal(size=(8, 3)), np.zeros((50, 3))
    expected = bootstrap_mean(few, 0.95, 999, 0)
    assert_allclose(bootstrap_difference(few, many, 0.95, 999, 0), expected)


def test_bootstrap_redraws_whole_runs():
    # Two points that are equal in each run have equal limits.
    values = np.repeat(np.random.default_rng(0).normal(size=(8, 1)), 2, axis=1)
    limits = bootstrap_mean(values, 0.95, 1000, 0)
    assert_array_equal(np.array(limits)[:, 0], np.array(limits)[:, 1])


def test_bootstrap_is_reproducible_and_does_not_depend_on_chunks(monkeypatch):
    values = np.random.default_rng(0).normal(size=(8, 7))
    expected = bootstrap_mean(values, 0.95, 500, 3)
    monkeypatch.setattr("skactive.analysis._curves.chunk_size", lambda _: 2)
    assert_allclose(bootstrap_mean(values, 0.95, 500, 3), expected, rtol=1e-12)
    assert (bootstrap_mean(values, 0.95, 500, 4) != expected).any()


def test_a_single_run_has_no_band():
    curve = learning_curve(THREE[0])
    assert_array_equal(curve.mean, [0.5, 0.7, 0.8])
    for values in (curve.std, curve.low, curve.high):
        assert np.isnan(values).all()
    assert "10       0.5    -     -" in str(curve)


def test_the_global_generator_is_not_used():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    learning_curve(THREE)
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_another_metric():
    run = Run(
        [{"queried": [i], "scores": {"accuracy": 0.5, "f1": i / 4}} for i in range(3)]
    )
    assert_array_equal(learning_curve(run, "f1").mean, [0, 0.25, 0.5])
    with pytest.raises(ValueError, match=r"metric of all runs, got 'auc'. .* at 0"):
        learning_curve(run, "auc")


# Grids


def test_runs_of_different_lengths_end_with_the_shortest():
    grid, scores = align_runs([make([0.1, 0.2, 0.3]), make([0.5, 0.6])])
    assert_array_equal(grid, [10, 20])
    assert_array_equal(scores, [[0.1, 0.2], [0.5, 0.6]])


def test_runs_of_different_steps_are_interpolated_within_the_common_range():
    runs = [make([0.0, 0.4], step=20), make([0.1, 0.2, 0.9], start=15, step=10)]
    grid, scores = align_runs(runs)
    assert_array_equal(grid, [15, 25, 30])
    assert_allclose(scores, [[0.1, 0.3, 0.4], [0.1, 0.2, 0.55]])
    grid, scores = align_runs(runs, grid=[20])
    assert_allclose(scores, [[0.2], [0.15]])


def test_points_without_a_score_are_skipped():
    grid, scores = align_runs([make([None, 0.2, 0.3]), make([0.1, None, 0.5])])
    assert_array_equal(grid, [20, 30])
    assert_allclose(scores, [[0.2, 0.3], [0.3, 0.5]])


def test_of_equal_counts_the_last_model_counts():
    run = make([0.1, 0.2, 0.3], step=0)
    assert_array_equal(learning_curve(run).mean, [0.3])


@pytest.mark.parametrize(
    ("runs", "options", "message"),
    [
        ([], {}, "'runs' is empty"),
        ("run", {}, "'runs' must be a Run or a list of them, got a str"),
        ([{"rounds": []}], {}, "hold Run objects, got a dict at 0"),
        ([Run([{"queried": [0]}])], {}, "'runs' hold no scores. Pass X_test"),
        ([make([None])], {}, "has no scores"),
        (
            [make([0.1]), make([0.1], start=20)],
            {},
            "in common, got one run that begins at 20",
        ),
        ([make([0.1, 0.2], step=-5)], {}, "must not decrease .* got \\[10, 5\\]"),
        (THREE, {"grid": [5, 20]}, r"'grid' must lie in \[10, 30\]"),
        (THREE, {"grid": [20, 20]}, "'grid' must be increasing"),
        (THREE, {"grid": [[20]]}, r"shape \(1, 1\)"),
        (THREE, {"confidence_level": 95}, "'confidence_level' must be between 0 and 1"),
        (THREE, {"method": "normal"}, "'method' parameter of learning_curve must be"),
        (THREE, {"n_resamples": 0}, "'n_resamples' must be an int from 1"),
    ],
)
def test_what_makes_no_curve_is_refused(runs, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        learning_curve(runs, **options)


def test_the_width_of_a_band_by_hand():
    def width(method):
        curve = learning_curve(THREE, method=method)
        return np.mean(curve.high - curve.low)

    # Three runs, so the band is their range: 0.1, 0.2 and 0.
    assert_allclose(width("bootstrap"), 0.1)
    # Student's: 2 t(0.975, 2) s / sqrt(3), t = 4.302653, s = 0.05, 0.1 and 0.
    assert_allclose(width("t"), 2 * 4.302653 * 0.05 / 3**0.5, 1e-6)
    assert_allclose(width("std"), 0.1)


# Areas and labels


def test_area_by_hand():
    run = Run(
        [{"queried": [], "n_labeled": n, "scores": {"accuracy": s}}
         for n, s in [(10, 0.2), (20, 0.4), (50, 1.0)]]
    )  # fmt: skip
    # (10 x 0.3 + 30 x 0.7) / 40
    assert_allclose(area_under_curve(run), 0.6)
    # from 15 (0.3) to 35 (0.7): (5 x 0.35 + 15 x 0.55) / 20
    assert_allclose(area_under_curve(run, start=15, stop=35), 0.5)
    assert_allclose(area_under_curve(learning_curve([run, run])), 0.6)
    assert area_under_curve(make([0.75] * 4)) == 0.75


@pytest.mark.parametrize("limits", [(5, 20), (10, 31), (20, 20), (20, 15)])
def test_area_over_a_range_without_points(limits):
    with pytest.raises(ValueError, match="two label counts within the curve"):
        area_under_curve(THREE[0], start=limits[0], stop=limits[1])


def test_area_takes_one_curve():
    with pytest.raises(TypeError, match="Make one curve of several runs"):
        area_under_curve(THREE)


def test_labels_to_reach():
    run = make([None, 0.5, 0.7, 0.6, 0.9])
    assert labels_to_reach(run, 0.5) == 20
    assert labels_to_reach(run, 0.65) == 30
    assert labels_to_reach(run, 0.65, interpolate=True) == pytest.approx(27.5)
    assert labels_to_reach(run, 0.8, interpolate=True) == pytest.approx(140 / 3)
    assert labels_to_reach(run, 0.1, interpolate=True) == 20
    assert labels_to_reach(run, 0.95) is None
    assert isinstance(labels_to_reach(run, 0.5), int)
    assert labels_to_reach(learning_curve(THREE), 0.8) == 20


# Tables


def test_the_frame_holds_the_curve():
    pytest.importorskip("pandas")
    frame = learning_curve(THREE).to_frame()
    assert list(frame) == ["n_labeled", "mean", "std", "low", "high"]
    assert_allclose(frame["mean"], [0.55, 0.8, 0.8])


def test_without_pandas_the_frame_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        learning_curve(THREE).to_frame()


# Costs


def spend(costs, scores):
    rounds = [
        {"queried": [i], "cost": cost, "scores": {"f1": score}}
        for i, (cost, score) in enumerate(zip(costs, scores, strict=True))
    ]
    return Run(rounds)


def test_a_curve_against_the_cost():
    run = spend([2, 4, 10], [0.5, 0.6, 0.9])
    curve = learning_curve(run, against="cost", grid=[2, 4, 7, 10])
    assert_allclose(curve.mean, [0.5, 0.6, 0.75, 0.9])
    assert curve.against == "cost"
    assert list(curve.to_frame())[:2] == ["cost", "mean"]
    assert str(curve).splitlines()[1].startswith("cost")


def test_costs_of_several_runs_are_spaced_evenly():
    runs = [spend([1, 4, 11], [0, 0.3, 1]), spend([3, 6, 12], [0.2, 0.5, 1])]
    curve = learning_curve(runs, against="cost")
    assert_allclose(curve.n_labeled, [3, 7, 11])
    expected = [np.interp([3, 7, 11], run.cost, run.scores) for run in runs]
    assert_allclose(curve.scores, expected)


def test_runs_without_costs_in_common_are_refused():
    runs = [spend([1, 2], [0, 1]), spend([3, 4], [0, 1])]
    with pytest.raises(ValueError, match="must have cost in common"):
        learning_curve(runs, against="cost")
