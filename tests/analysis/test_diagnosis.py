"""The verdict on made runs whose truth is known."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skactive.analysis import class_coverage, diagnose
from skactive.simulation import Run

LABELS = np.array([50, 100, 200, 300])
RISE = np.array([0.5, 0.6, 0.7, 0.75])


def make(scores, strategy="random", **info):
    rounds = [{"queried": [], "n_labeled": n, "scores": {"accuracy": float(s)}}
              for n, s in zip(LABELS, scores, strict=True)]  # fmt: skip
    return Run(rounds, info={"strategy": strategy, **info})


def draw(n, gain=0.0, noise=0.01, seed=0, paired=True, strategy="margin", shared=0.0):
    """Runs whose scores share a part of their noise with those of their seed."""
    runs = []
    for s in range(n):
        own = np.random.default_rng([seed, s]).normal(size=4)
        common = np.random.default_rng([99, s]).normal()
        scores = RISE + gain + noise * own + shared * common
        runs.append(make(scores, strategy, **({"seed": s} if paired else {})))
    return runs


def draw_random(n, **options):
    return draw(n, seed=1, strategy="random", **options)


def test_a_clear_gain_pays():
    found = diagnose(draw(8, gain=0.05), draw_random(8))
    assert found.verdict == "pays"
    assert found.gap_interval[0] > 0
    assert found.paired


def test_a_clear_loss_does_not_pay():
    found = diagnose(draw(8, gain=-0.05), draw_random(8))
    assert found.verdict == "does not pay"
    assert found.reason == "The score over the curve lies below random's"


def test_no_gain_measured_well_does_not_pay():
    found = diagnose(draw(20, noise=0.002), draw_random(20, noise=0.002))
    assert found.verdict == "does not pay"
    assert found.reason == "A gain over the curve of 0.005 or more is ruled out"
    assert found.gap_interval[0] < 0 < found.gap_interval[1]


def test_a_gain_too_small_to_matter_does_not_pay():
    runs = draw(20, gain=0.003, noise=0.0005), draw_random(20, noise=0.0005)
    found = diagnose(*runs)
    assert found.verdict == "does not pay"
    assert found.reason == "There is a gain over the curve, but of less than 0.005"
    assert diagnose(*runs, worthwhile=0.001).verdict == "pays"


def test_noise_leaves_it_undecided_and_names_the_runs_needed():
    found = diagnose(draw(6, gain=0.01, noise=0.1), draw_random(6, noise=0.1))
    assert found.verdict == "undecided: more seeds needed"
    low, high = found.gap_interval
    distance = max(found.gap, 0.005 - found.gap)
    # The normal quantiles of 97.5 % and of a power of 80 %.
    half = (high - low) / 2 * (1.959964 + 0.841621) / 1.959964
    assert found.seeds_needed == np.ceil(6 * (half / distance) ** 2) > 6
    shown = f"About {found.seeds_needed} runs would decide a gap like this in 80 % of"
    assert shown in str(found)


@pytest.mark.long
def test_the_runs_needed_decide_in_80_percent():
    # Six differences whose mean and standard deviation are the true ones.
    spread = np.array([-1.5, -0.9, -0.3, 0.3, 0.9, 1.5])
    spread /= spread.std(ddof=1)

    def compare(gaps):
        ours = [make(RISE + gap, "margin", seed=s) for s, gap in enumerate(gaps)]
        theirs = [make(RISE, seed=s) for s in range(len(gaps))]
        return diagnose(ours, theirs, n_resamples=200)

    first = compare(0.015 + 0.03 * spread)
    n, rng = first.seeds_needed, np.random.default_rng(0)
    verdicts = [compare(rng.normal(0.015, 0.03, n)).verdict for _ in range(40)]
    assert 0.75 < np.mean([verdict == "pays" for verdict in verdicts]) < 0.99


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 9), (4, 9), (9, 4)])
def test_few_runs_never_decide(n, m):
    found = diagnose(draw(n, gain=0.3), draw_random(m))
    assert found.verdict == "undecided: more seeds needed"
    assert "too few: it takes 5 at least" in found.reason
    assert (found.gap_interval is None) == (n == 1)
    assert found.seeds_needed is None
    assert str(found).startswith("Undecided: more seeds needed\n")


@pytest.mark.long
@pytest.mark.parametrize("n", [80, pytest.param(200, marks=pytest.mark.slow)])
def test_without_a_difference_it_rarely_pays(n):
    verdicts = [
        diagnose(
            draw(6, seed=10 + 2 * i, noise=0.05),
            draw(6, seed=11 + 2 * i, noise=0.05, strategy="random"),
            n_resamples=1000,
        ).verdict
        for i in range(n)
    ]
    assert verdicts.count("pays") <= 0.05 * n
    assert verdicts.count("undecided: more seeds needed") > n / 2


def test_of_few_runs_the_interval_is_at_least_students():
    gaps = np.array([0.01, 0.03, 0.02, 0.05, 0.04])
    ours = [make(RISE + gap, seed=s) for s, gap in enumerate(gaps)]
    found = diagnose(ours, [make(RISE, seed=s) for s in range(5)])
    half = 2.776445 * gaps.std(ddof=1) / np.sqrt(5)  # Student's t, 4 degrees
    assert_allclose(found.gap_interval, [0.03 - half, 0.03 + half], rtol=1e-5)


def test_the_gap_is_the_mean_over_the_curve():
    ours = [make([0.5, 0.7, 0.9, 0.8], seed=s) for s in range(5)]
    theirs = [make([0.5, 0.6, 0.7, 0.75], seed=s) for s in range(5)]
    found = diagnose(ours, theirs)
    # 0.1 after 50 labels, 0.2 after 150, 0.05 after 250:
    # (50 x 0.05 + 100 x 0.15 + 100 x 0.125) / 250
    assert_allclose(found.gap, 0.12)
    assert_allclose(found.gap_interval, (0.12, 0.12))
    assert_allclose([found.gap_end, *found.gap_end_interval], 0.05)
    # 0.75 is reached at 100 + 100 x 0.05 / 0.2 = 125, and by random at 300.
    assert_allclose(found.labels_to_target, 125)
    assert_allclose(found.labels_saved, 175)
    assert found.labels == (50, 300)
    assert "after 125 labels, random after 300 (175 saved)" in str(found)


def test_pairs_remove_what_the_seeds_share():
    options = {"noise": 0.004, "shared": 0.1}
    runs = draw(8, gain=0.03, **options), draw_random(8, **options)
    paired = diagnose(*runs)
    assert paired.paired
    assert paired.verdict == "pays"
    loose = diagnose(runs[0], draw_random(8, paired=False, **options))
    assert not loose.paired
    assert loose.verdict == "undecided: more seeds needed"
    assert_allclose(loose.gap, paired.gap)


def test_pairs_do_not_depend_on_the_order_of_the_runs():
    runs, baseline = draw(8, shared=0.1), draw_random(8, shared=0.1)
    widths = [
        np.ptp(diagnose(runs, others).gap_interval)
        for others in (baseline, baseline[::-1])
    ]
    assert_allclose(*widths)


def test_the_verdict_at_the_end_can_differ():
    early = [make([0.7, 0.8, 0.8, 0.7], "margin", seed=s) for s in range(6)]
    found = diagnose(early, draw_random(6))
    assert found.verdict == "pays"
    assert found.reason.endswith("above 0; yet there is a loss at the end")
    met = [make([0.7, 0.8, 0.8, 0.74 + s / 250], "margin", seed=s) for s in range(6)]
    found = diagnose(met, draw_random(6))
    assert found.gap_end_interval[0] < 0 < found.gap_end_interval[1]
    assert found.reason == "The gain over the curve is above 0"
    late = [make([0.2, 0.3, 0.5, 0.9], "margin", seed=s) for s in range(6)]
    found = diagnose(late, draw_random(6))
    assert found.verdict == "does not pay"
    assert found.reason.endswith("lies below random's; yet there is a gain at the end")


def test_the_end_may_decide():
    late = [make([0.2, 0.3, 0.5, 0.9], "margin", seed=s) for s in range(6)]
    found = diagnose(late, draw_random(6), criterion="end")
    assert found.verdict == "pays"
    assert found.reason == (
        "The gain at the end is above 0; yet there is a loss over the curve"
    )
    noisy = draw(6, gain=0.01, noise=0.1), draw_random(6, noise=0.1)
    found = diagnose(*noisy, criterion="end")
    low, high = found.gap_end_interval
    distance = max(found.gap_end, 0.005 - found.gap_end)
    half = (high - low) / 2 * (1.959964 + 0.841621) / 1.959964
    assert found.seeds_needed == np.ceil(6 * (half / distance) ** 2)


def test_labels_that_are_never_reached_or_more():
    found = diagnose(draw(6, gain=-0.1), draw_random(6))
    assert found.labels_to_target is found.labels_saved is None
    assert "not reached; random after 300 labels" in str(found)
    slow = [make([0.5, 0.5, 0.6, 0.75], seed=s) for s in range(6)]
    fast = [make([0.5, 0.75, 0.75, 0.75], seed=s) for s in range(6)]
    assert "after 300 labels, random after 100 (200 more)" in str(diagnose(slow, fast))


def test_runs_of_other_lengths_are_compared_where_both_are():
    more = {"queried": [], "n_labeled": 900, "scores": {"accuracy": 0.1}}
    longer = [Run([*r.rounds, more], info=r.info) for r in draw(6, gain=0.05)]
    assert diagnose(longer, draw_random(6)).labels == (50, 300)


def test_a_single_point_is_compared():
    ours, theirs = ([Run(run.rounds[:1], info=run.info) for run in runs]
                    for runs in (draw(6, gain=0.05), draw_random(6)))  # fmt: skip
    found = diagnose(ours, theirs)
    assert found.gap == found.gap_end
    assert found.labels == (50, 50)


# Evidence

POOL = np.array([[0, 1], [0, 2], [1, 0], [2, 0], [3, 0.1], [4, 4], [0.1, 3], [5, 0]])
Y = ["a", "a", "b", "b", "b", "c", "a", "b"]


def make_picks(batches, score, **info):
    return Run(
        [{"queried": b, "scores": {"accuracy": score}} for b in batches], info=info
    )


def test_everything_goes_into_json():
    runs = [make_picks([[0], [2, 3], [7, 4]], 0.5, seed=s) for s in range(5)]
    found = diagnose(runs, runs)
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record == found.to_dict()
    assert record["verdict"] == found.verdict
    assert record["labels"] == [1, 5]
    one = diagnose(runs[:1], runs[:1]).to_dict()
    assert one["gap_interval"] is None


def test_the_diagnosis_is_reproducible():
    runs = draw(6), draw_random(6)
    assert diagnose(*runs) == diagnose(*runs)
    assert diagnose(*runs) != diagnose(*runs, random_state=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"worthwhile": -1}, "The 'worthwhile' parameter of diagnose must be"),
        ({"worthwhile": "much"}, "The 'worthwhile' parameter of diagnose must be"),
        (
            {"criterion": "area"},
            "The 'criterion' parameter of diagnose must be a str among",
        ),
        ({"confidence_level": 1.0}, "'confidence_level' must be between 0 and 1"),
        ({"n_resamples": 0}, "'n_resamples' must be an int from 1"),
        ({"scoring": "f1"}, "metric of all runs, got 'f1'"),
    ],
)
def test_bad_options(options, message):
    runs = [make_picks([[0], [2, 3]], 0.5)]
    with pytest.raises(ValueError, match=message):
        diagnose(runs, runs, **options)


def test_no_baseline():
    with pytest.raises(ValueError, match="'baseline_runs' is empty"):
        diagnose(draw(5), [])


def find_some(queried, **info):
    rounds = [{"queried": a, "scores": {"f1": 0.5 + i}} for i, a in enumerate(queried)]
    return Run(rounds, info=info)


def test_several_labels_count_for_each_of_their_classes():
    y = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1], [1, 0, 0]])
    run = find_some([[2, 0], [3]])
    coverage = class_coverage(run, y)
    assert coverage.classes.tolist() == [0, 1, 2]
    assert coverage.counts.tolist() == [[1, 0, 0], [1, 1, 1]]
    assert coverage.first == {0: 2, 1: 3, 2: 3}


def test_numbers_of_a_regression_are_no_classes():
    numbers = [0.5, 1.5, 2.25, 3.0, 0.5]
    run = find_some([[2, 0], [3]])
    with pytest.raises(TypeError, match=r"must hold classes.*such as 0.5"):
        class_coverage(run, numbers)
