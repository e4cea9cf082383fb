"""Scores against seconds, and the ledger."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skactive.analysis import (
    equal_time,
    group_runs,
    ledger_table,
    score_against_time,
)
from skactive.simulation import Run


def make(fit, query, scores, precomputation=0.0, final=0.0, **info):
    rounds = [
        {
            "queried": [i],
            "scores": {"accuracy": s},
            "fit_seconds": f,
            "query_seconds": q,
        }
        for i, (f, q, s) in enumerate(zip(fit, query, scores, strict=True))
    ]
    ledger = {"precomputation": precomputation, "final_training": final}
    return Run(rounds, info=info, ledger=ledger)


RUN = make([2, 3, 5], [0, 1, 1], [0.5, 0.8, 0.7], precomputation=10, final=40)


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        (["fit"], [2, 5, 10]),
        (["query"], [0, 1, 2]),
        (["fit", "query"], [2, 6, 12]),
        (["precomputation", "fit", "query"], [12, 16, 22]),
        ([], [0, 0, 0]),
    ],
)
def test_seconds_that_count(phases, expected):
    seconds, scores = score_against_time(RUN, phases=phases)
    assert_array_equal(seconds, expected)
    assert_array_equal(scores, [0.5, 0.8, 0.7])


def test_rounds_without_a_score_cost_time_and_show_no_point():
    seconds, scores = score_against_time(make([2, 3], [0, 0], [None, 0.8]))
    assert_array_equal(seconds, [5])
    assert_array_equal(scores, [0.8])


@pytest.mark.parametrize("phases", ["fit", ["cooking"], ["final_training"]])
def test_phases_that_are_none(phases):
    with pytest.raises(ValueError, match="'phases' must be a sequence of names among"):
        score_against_time(RUN, phases=phases)


def test_equal_time_by_hand():
    fast = [
        make([1, 1, 1], [0] * 3, [0.4, 0.6, 0.5]),
        make([2, 2], [0] * 2, [0.6, 0.9]),
    ]
    table = equal_time({"fast": fast, "slow": RUN}, [0.5, 1, 2, 4, 100])
    assert table.names == ["fast", "slow"]
    assert_allclose(
        table.scores,
        # within 2 s: max(0.4, 0.6) and 0.6; within 4 s: 0.6 and 0.9
        [[np.nan, np.nan, 0.6, 0.75, 0.75], [np.nan, np.nan, 0.5, 0.5, 0.8]],
    )


def make_chosen(seconds, scores, merits):
    return Run(
        [
            {"queried": [i], "scores": {"test": s, "valid": v}, "fit_seconds": t}
            for i, (t, s, v) in enumerate(zip(seconds, scores, merits, strict=True))
        ]
    )


def test_equal_time_of_the_model_that_validation_chooses():
    # After 4 s the second model is worse on the validation texts, the third as good as
    # the first, the fourth better than all and the worst of all on the test texts.
    run = make_chosen([2, 2, 2, 2], [0.5, 0.9, 0.8, 0.3], [0.6, 0.5, 0.6, 0.7])
    table = equal_time({"a": run}, [1, 2, 4, 6, 8], "test", chosen_by="valid")
    assert_allclose(table.scores, [[np.nan, 0.5, 0.5, 0.5, 0.3]])
    assert table.scoring == "test"
    best = equal_time({"a": run}, [1, 2, 4, 6, 8], "test")
    assert_allclose(best.scores, [[np.nan, 0.5, 0.9, 0.9, 0.9]])


def test_equal_time_with_a_search_of_all_models():
    rng = np.random.default_rng(3)
    runs = []
    for n in (1, 4, 9):
        merits = rng.integers(0, 4, n) / 4  # with ties
        runs.append(make_chosen(rng.random(n), rng.random(n), merits.tolist()))
    budgets = np.linspace(0.9, 6, 20)
    expected = []
    for budget in budgets:
        found = []
        for run in runs:
            spent, best = 0.0, None
            for record in run.rounds:
                spent += record["fit_seconds"]
                scores = record["scores"]
                if spent <= budget and (best is None or scores["valid"] > best[0]):
                    best = scores["valid"], scores["test"]
            found.append(np.nan if best is None else best[1])
        expected.append(sum(found) / len(found))
    table = equal_time({"a": runs}, budgets, "test", chosen_by="valid")
    assert not np.isnan(expected).all()
    assert_allclose(table.scores[0], expected)


def test_models_that_nothing_chooses():
    run = make_chosen([1, 1], [0.5, 0.9], [0.6, None])
    table = equal_time({"a": run}, [1, 2], "test", chosen_by="valid")
    assert_allclose(table.scores, [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"got 'F1'\. The run at 0 has"):
        equal_time({"a": run}, [1], "test", chosen_by="F1")


def test_equal_time_up_to_the_slowest():
    table = equal_time([make([5], [0], [0.4], strategy="margin")])
    assert_allclose(table.seconds, [1, 2, 3, 4, 5])
    assert_allclose(table.scores, [[np.nan] * 4 + [0.4]])
    assert str(table).splitlines()[1].split() == ["margin", "-", "-", "-", "-", "0.4"]


def test_budgets_below_zero():
    with pytest.raises(ValueError, match="'seconds' must be time budgets"):
        equal_time({"a": RUN}, [-1])


def test_ledger_by_hand():
    runs = [
        make([2, 3], [0, 1], [0.5, 0.6], 10, 40, strategy="margin"),
        make([4, 5], [0, 2], [0.5, 0.6], 20, 50, strategy="margin"),
        make([1], [0], [0.5], strategy="random"),
    ]
    table = ledger_table(runs)
    assert table.names == ["margin", "random"]
    assert table.phases == [
        "precomputation", "fit", "query", "final_training"
    ]  # fmt: skip
    assert_allclose(table.mean, [[15, 7, 1.5, 45], [0, 1, 0, 0]])
    assert_allclose(table.std[0] ** 2, [50, 8, 0.5, 50])
    assert np.isnan(table.std[1]).all()
    assert_allclose(table.total, [68.5, 1])
    assert table.n_runs == [2, 1]
    cells = str(table).splitlines()[1].split()
    assert cells == ["margin", "15", "7", "1.5", "45", "68.5", "2"]


def test_groups():
    runs = [Run(info={"strategy": s, "seed": i}) for i, s in enumerate("abab")]
    assert {k: [r.info["seed"] for r in g] for k, g in group_runs(runs).items()} == {
        "a": [0, 2], "b": [1, 3]
    }  # fmt: skip
    assert list(group_runs(runs, "seed")) == ["0", "1", "2", "3"]
    assert group_runs({"x": runs[0]}) == {"x": [runs[0]]}
    with pytest.raises(
        ValueError,
        match=r"'groupby' must name keys that all runs .* at 0 of 'runs' has no 'data'",
    ):
        group_runs(runs, "data")
    with pytest.raises(ValueError, match="'runs' is empty"):
        group_runs({})
    with pytest.raises(TypeError, match=r"\"runs\['x'\]\" must hold Run objects"):
        group_runs({"x": [1]})


def test_groups_by_several_keys():
    runs = [
        Run(info={"strategy": s, "learner": learner})
        for s in ("a", "b")
        for learner in ("lr", "nb")
    ]
    groups = group_runs(runs, groupby=("learner", "strategy"))
    assert list(groups) == ["lr, a", "nb, a", "lr, b", "nb, b"]
    with pytest.raises(
        ValueError, match="'groupby' must be a key of `info`, or a sequence"
    ):
        group_runs(runs, groupby=[])


def test_phases_of_a_ledger_by_name():
    table = ledger_table({"a": RUN}, phases=["query"])
    assert (table.phases, table.mean.shape) == (["query"], (1, 1))
    with pytest.raises(ValueError, match="'phases' must be a sequence of names among"):
        ledger_table({"a": RUN}, phases=["asking"])


def test_frames():
    pytest.importorskip("pandas")
    assert list(equal_time({"a": RUN}, [20]).to_frame()) == ["seconds", "a"]
    frame = ledger_table({"a": RUN}).to_frame()
    assert frame["total"].tolist() == [62]
