"""Labels needed on made curves whose crossings are known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skactive.analysis import labels_needed, labels_to_reach, learning_curve
from skactive.simulation import Run

COUNTS = (50, 100, 200, 300)


def make(scores, strategy="margin", counts=COUNTS, scoring="accuracy", **info):
    rounds = [
        {"queried": [], "n_labeled": n, "scores": {scoring: s}}
        for n, s in zip(counts, scores, strict=True)
    ]
    return Run(rounds, info={"strategy": strategy, **info})


def line(slope, strategy="margin", start=0.5, counts=COUNTS, **info):
    """A curve that rises by `slope` per 100 labels from `start` at 0 labels."""
    return make(start + slope * np.array(counts) / 100, strategy, counts, **info)


def draw(n, seed=0, noise=0.02, strategy="margin", slope=0.1, paired=True):
    rng = np.random.default_rng(seed)
    return [
        make(
            0.5 + slope * np.array(COUNTS) / 100 + noise * rng.normal(size=4),
            strategy,
            **({"seed": s} if paired else {}),
        )
        for s in range(n)
    ]


def cross_by_steps(run, target):
    """Walk along the curve in small steps; None if it stays below."""
    counts = np.array([r["n_labeled"] for r in run.rounds], dtype=float)
    scores = np.array([r["scores"]["accuracy"] for r in run.rounds])
    steps = np.linspace(counts[0], counts[-1], 250_001)
    above = np.interp(steps, counts, scores) >= target
    return steps[above.argmax()] if above.any() else None


@pytest.mark.parametrize(
    ("slope", "at", "expected"),
    [(0.2, 200, 100), (0.2, 150, 75), (0.1, 200, 200), (0.25, 300, 120)],
)
def test_lines_cross_where_they_must(slope, at, expected):
    runs = [line(slope), line(0.1, "random")]
    table = labels_needed(runs, "random", at)
    assert table.names == ["margin"]
    assert_allclose(table.n_labeled, [expected])
    assert_allclose(table.ratio, [expected / at])
    assert_allclose(table.target, 0.5 + 0.1 * at / 100)
    assert_allclose(table.run_labels, [[expected]])
    assert table.reached.tolist() == [True]
    assert (table.baseline, table.scoring, table.at) == ("random", "accuracy", at)


def test_runs_and_mean_curves_match_a_walk_in_small_steps():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(20):
        ours = [make(rng.uniform(0.4, 0.9, 4), seed=s) for s in range(3)]
        theirs = [make(rng.uniform(0.5, 0.8, 4), "random", seed=s) for s in range(3)]
        at = rng.uniform(50, 300)
        table = labels_needed(ours + theirs, "random", at, n_resamples=10)
        target = np.mean([np.interp(at, COUNTS, run.scores) for run in theirs])
        assert_allclose(table.target, target)
        mean = make(np.mean([run.scores for run in ours], axis=0))
        found = [*table.run_labels[0], *table.n_labeled]
        reached = [*table.run_reached[0], *table.reached]
        for run, count, known in zip([*ours, mean], found, reached, strict=True):
            expected = cross_by_steps(run, target)
            assert known == (expected is not None)
            assert_allclose(count, expected if known else 300, atol=0.01)
            missed += not known
    assert 0 < missed < 80


def test_it_agrees_with_labels_to_reach():
    ours, theirs = draw(6, 1, slope=0.2), draw(6, 2, strategy="random")
    table = labels_needed(ours + theirs, "random", 200)
    curve = learning_curve(ours)
    expected = labels_to_reach(curve, table.target, interpolate=True)
    assert_allclose(table.n_labeled, [expected])


def test_the_first_crossing_counts_even_if_the_curve_falls_again():
    ours = make([0.5, 0.8, 0.5, 0.9])
    table = labels_needed({"a": ours, "b": line(0.1)}, "b", 200)  # target 0.7
    assert_allclose(table.n_labeled, [50 + 50 * 0.2 / 0.3])
    falling = make([0.9, 0.8, 0.5, 0.2], "b")
    table = labels_needed({"a": ours, "b": falling}, "b", 100)  # target 0.8
    assert_allclose(table.n_labeled, [100])


def test_a_run_that_never_gets_there_is_censored():
    ours = [line(0.05, seed=0), line(0.2, seed=1), line(0.01, seed=2)]
    theirs = [line(0.1, "random", seed=s) for s in range(3)]
    table = labels_needed(ours + theirs, "random", 200)
    assert_array_equal(table.run_reached[0], [False, True, False])
    assert_allclose(table.run_labels[0], [300, 100, 300])
    assert (table.n_not_reached, table.n_runs) == ([2], [3])
    # The mean rises by 0.26 / 3 per 100 labels.
    assert_allclose(table.n_labeled, [600 / 2.6])
    assert table.high_reached.tolist() == [False]
    assert_allclose(table.high, [300])
    assert ">300" in str(table)


def test_curves_that_never_get_there_leave_no_nan_and_no_inf():
    ours = [line(0.05, seed=s) for s in range(4)]
    theirs = [line(0.1, "random", seed=s) for s in range(4)]
    table = labels_needed(ours + theirs, "random", 200)
    assert_allclose([table.n_labeled, table.low, table.high], 300)
    flags = [table.reached, table.low_reached, table.high_reached]
    assert not np.any(flags)
    assert str(table).splitlines()[-1].split() == [
        *("margin", ">300", ">300", ">300", ">1.5", "4", "4")
    ]


def test_runs_of_other_lengths_are_censored_at_their_own_last_count():
    short = line(0.1, counts=(50, 100), seed=0)
    ours = [short, line(0.1, seed=1)]
    table = labels_needed([*ours, line(0.1, "random")], "random", 200)
    assert_allclose(table.run_labels[0], [100, 200])
    assert_array_equal(table.run_reached[0], [False, True])
    # The mean curve ends where the shortest run ends.
    assert (table.n_labeled.tolist(), table.last.tolist()) == ([100], [100])
    assert table.reached.tolist() == [False]


def test_reaching_it_at_the_last_count_is_reaching_it():
    table = labels_needed([line(0.1), line(0.1, "random")], "random", 300)
    assert_allclose(table.n_labeled, [300])
    assert table.reached.tolist() == [True]
    assert ">" not in str(table)


def test_a_curve_above_from_the_start_has_an_upper_bound():
    table = labels_needed([line(0.1, start=0.9), line(0.1, "random")], "random", 200)
    assert_allclose([table.n_labeled, table.first], 50)
    assert str(table).splitlines()[-1].split()[1] == "<=50"
    assert table.reached.tolist() == [True]


def test_a_single_count_is_reached_or_not():
    baseline = line(0.1, counts=(100,))
    runs = {
        "better": line(0.2, counts=(100,)),
        "worse": line(0.05, counts=(100,)),
        "same": baseline,
        "random": baseline,
    }
    table = labels_needed(runs, "random", 100)
    assert_allclose(table.n_labeled, 100)
    assert table.reached.tolist() == [True, False, True]


def test_rounding_errors_of_the_mean_do_not_matter():
    ours = [make([0.5, s, 0.85, 0.9]) for s in (0.7, 0.8, 0.9)]
    theirs = make([0.5, 0.6, 0.7, 0.8], "random")
    table = labels_needed([*ours, theirs], "random", 300)
    assert_allclose(table.n_labeled, [100], rtol=1e-9)


def test_rounds_without_a_score_are_left_out():
    ours = make([0.55, None, 0.75, 0.9])
    table = labels_needed([ours, line(0.1, "random")], "random", 100)  # target 0.6
    assert_allclose(table.n_labeled, [50 + 150 * 0.05 / 0.2])


def test_one_seed_has_no_interval():
    table = labels_needed([line(0.2), line(0.1, "random")], "random", 200)
    assert np.isnan([table.low, table.high]).all()
    assert str(table).splitlines()[-1].split()[2:4] == ["-", "-"]
    many = labels_needed([*draw(4), line(0.1, "random")], "random", 200)
    assert np.isnan([many.low, many.high]).all()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("paired", [True, False])
def test_intervals_match_a_bootstrap_by_hand(paired):
    n = 6
    ours = draw(n, 1, slope=0.15, paired=paired)
    theirs = draw(n, 2, strategy="random", paired=paired)
    table = labels_needed(ours + theirs, "random", 150, n_resamples=20_000)
    assert table.paired == [paired]
    rng = np.random.default_rng(7)
    counts = []
    for _ in range(2000):
        mine = rng.integers(n, size=n)
        other = mine if paired else rng.integers(n, size=n)
        mean = make(np.mean([ours[i].scores for i in mine], axis=0))
        target = np.mean([np.interp(150, COUNTS, theirs[i].scores) for i in other])
        counts.append(labels_to_reach(mean, target, interpolate=True))
    # Hesterberg's levels for 6 runs: the normal tail of t(5) sqrt(6 / 5).
    tail = 0.0024317
    expected = np.quantile(counts, [tail, 1 - tail])
    spread = np.ptp(expected)
    assert_allclose([table.low[0], table.high[0]], expected, atol=0.15 * spread)
    assert table.low < table.n_labeled < table.high


def test_pairs_with_the_same_noise_give_a_narrow_interval():
    shared = 0.05 * np.random.default_rng(3).normal(size=8)
    ours = [line(0.2, start=0.5 + s, seed=i) for i, s in enumerate(shared)]
    theirs = [line(0.1, "random", 0.5 + s, seed=i) for i, s in enumerate(shared)]
    paired = labels_needed(ours + theirs, "random", 200)
    assert_allclose([paired.low, paired.n_labeled, paired.high], 100)
    others = [line(0.1, "random", 0.5 + s, seed=i + 8) for i, s in enumerate(shared)]
    unpaired = labels_needed(ours + others, "random", 200)
    assert (paired.paired, unpaired.paired) == ([True], [False])
    assert_allclose(unpaired.n_labeled, 100)
    assert unpaired.high - unpaired.low > 20


@pytest.mark.long
@pytest.mark.parametrize("n", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_the_interval_holds_the_truth(n):
    hits = 0
    for i in range(n):
        runs = draw(8, 2 * i, 0.01, slope=0.2)
        runs += draw(8, 2 * i + 1, 0.01, "random")
        table = labels_needed(runs, "random", 200, n_resamples=500)
        hits += (table.low <= 100) & (table.high >= 100)
    assert 0.88 * n <= hits <= n


@pytest.mark.parametrize("paired", [True, False])
def test_the_order_of_the_runs_does_not_matter(paired):
    runs = draw(7, 1, slope=0.2, paired=paired)
    runs += draw(7, 2, strategy="random", paired=paired)
    runs += draw(7, 3, strategy="badge", slope=0.12, paired=paired)
    table = labels_needed(runs, "random", 200)
    order = np.random.default_rng(0).permutation(len(runs))
    other = labels_needed([runs[i] for i in order], "random", 200)
    places = [other.names.index(name) for name in table.names]
    for name in ("n_labeled", "low", "high", "reached", "high_reached", "low_reached"):
        assert_array_equal(getattr(table, name), getattr(other, name)[places])
    assert table.target == other.target


def test_a_group_does_not_depend_on_the_others():
    ours, theirs = draw(5, slope=0.2), draw(5, 1, strategy="random")
    alone = labels_needed({"margin": ours}, theirs, 200)
    both = labels_needed({"badge": draw(5, 9), "margin": ours}, theirs, 200)
    assert alone.baseline == "random"
    assert_array_equal(alone.low, both.low[1:])
    assert_array_equal(alone.high, both.high[1:])


def test_baseline_runs_without_a_name():
    run = Run([{"queried": [0, 1], "scores": {"accuracy": 0.5}}])
    assert labels_needed({"a": run}, run, 2).baseline == "the baseline"


def test_another_metric():
    def both(slope, strategy):
        return Run(
            [
                {"queried": range(10), "scores": {"accuracy": 0.5, "f1": slope * i}}
                for i in range(5)
            ],
            info={"strategy": strategy},
        )

    runs = [both(0.2, "margin"), both(0.1, "random")]
    table = labels_needed(runs, "random", 50, scoring="f1")
    assert (table.scoring, table.n_labeled.tolist()) == ("f1", [30])


def test_a_frame_has_a_row_for_each_strategy():
    pytest.importorskip("pandas")
    runs = draw(3, slope=0.2) + draw(3, 4, strategy="random") + draw(3, 5, strategy="b")
    table = labels_needed(runs, "random", 200)
    frame = table.to_frame()
    assert frame["strategy"].tolist() == ["margin", "b"]
    assert_allclose(frame["ratio"], table.n_labeled / 200)
    assert_allclose(frame["ratio_high"], table.high / 200)
    assert frame["n_runs"].tolist() == [3, 3]


def test_the_baseline_must_be_a_group():
    runs = draw(2) + draw(2, strategy="random")
    with pytest.raises(ValueError, match=r"'baseline' must be one of \['margin'"):
        labels_needed(runs, "entropy", 100)
    with pytest.raises(ValueError, match="a group other than the baseline 'random'"):
        labels_needed(runs[2:], "random", 100)
    with pytest.raises(TypeError, match="'baseline' must be a Run or a list"):
        labels_needed(runs, 3, 100)


@pytest.mark.parametrize("at", [49, 301, 0, -1, float("nan"), float("inf")])
def test_at_must_lie_within_the_curve_of_the_baseline(at):
    with pytest.raises(ValueError, match=r"'at' must lie in \[50, 300\]"):
        labels_needed(draw(2) + draw(2, strategy="random"), "random", at)


def test_runs_must_share_a_metric():
    runs = [line(0.1), line(0.1, "random", scoring="f1")]
    with pytest.raises(ValueError, match="'scoring' must be a metric of all runs"):
        labels_needed(runs, "random", 100)
    with pytest.raises(ValueError, match="hold no scores"):
        labels_needed({"a": Run([{"queried": [0]}])}, Run([{"queried": [0]}]), 1)


def test_runs_must_share_the_data():
    runs = {"a": line(0.1, data="sst2"), "b": line(0.1, data="trec")}
    with pytest.raises(ValueError, match='differ in \'data\': "sst2", "trec"'):
        labels_needed(runs, "b", 100)
    with pytest.raises(ValueError, match="differ in 'data'"):
        labels_needed([*runs.values(), line(0.1, "random")], "random", 100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence_level": 95}, "'confidence_level' must be between 0 and 1"),
        ({"n_resamples": 0}, "'n_resamples' must be an int from 1"),
        ({"groupby": ()}, "'groupby' must be a key"),
    ],
)
def test_invalid_options(options, message):
    with pytest.raises(ValueError, match=message):
        labels_needed(draw(2) + draw(2, strategy="random"), "random", 100, **options)
