"""The record of a simulated loop."""

import json
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skactive.simulation import Run


def make(**changes):
    params = {
        "rounds": [
            {"queried": [], "n_labeled": 0, "scores": {"accuracy": None, "f1": None}},
            {
                "queried": [4, 2],
                "n_labeled": 2,
                "scores": {"accuracy": 0.5, "f1": 0.25},
                "fit_seconds": 1.0,
                "query_seconds": 0.5,
            },
            {
                "queried": [0],
                "n_labeled": 3,
                "scores": {"accuracy": 0.75, "f1": 0.5},
                "fit_seconds": 2.0,
                "query_seconds": 0.25,
            },
        ],
        "info": {"strategy": "margin", "seed": 3},
        "ledger": {"precomputation": 7.0, "final_training": 9.0},
        "final_scores": {"accuracy": 0.875},
        "stopped_by": "Budget(3)",
    }
    return Run(**{**params, **changes})


def test_columns():
    run = make()
    assert_array_equal(run.n_labeled, [0, 2, 3])
    assert_array_equal(run.queried, [4, 2, 0])
    assert run.queried.dtype == run.n_labeled.dtype == int
    assert run.score_names == ["accuracy", "f1"]
    assert_array_equal(run.scores, [np.nan, 0.5, 0.75])
    assert_array_equal(run.curve("f1"), [np.nan, 0.25, 0.5])


def test_the_ledger_sums_the_rounds():
    assert make().ledger == {
        "precomputation": 7.0,
        "fit": 3.0,
        "query": 0.75,
        "final_training": 9.0,
    }
    assert make(ledger={"fit": 4}).ledger["fit"] == 4
    with pytest.raises(ValueError, match=r"'ledger' must hold .* got 'cooking'"):
        make(ledger={"cooking": 1.0})


def test_what_is_left_out_is_filled_in():
    run = Run([{"queried": np.array([5, 1])}, {"queried": (0,)}])
    assert_array_equal(run.n_labeled, [2, 3])
    assert run.score_names == []
    assert_array_equal(run.scores, [np.nan, np.nan])
    assert run.final_scores == {}
    assert run.stopped_by is None


def test_a_run_without_rounds():
    run = Run()
    assert len(run.n_labeled) == len(run.scores) == len(run.queried) == 0
    assert run.queried.dtype == int
    assert repr(run) == "<Run: 0 rounds>"


def test_an_unknown_metric():
    with pytest.raises(ValueError, match=r"\['accuracy', 'f1'\]; got 'auc'"):
        make().curve("auc")


def test_seconds_make_no_difference():
    other = make(ledger={"precomputation": 1.0})
    other.rounds[1]["fit_seconds"] = 99.0
    other.info["encoding_seconds"] = 3.0
    other.info["versions"] = {"numpy": "1.0"}
    assert other == make()


@pytest.mark.parametrize(
    "changes",
    [
        {"info": {"strategy": "margin", "seed": 4}},
        {"final_scores": {}},
        {"stopped_by": None},
        {"rounds": make().rounds[:2]},
        {"rounds": [{**r, "queried": r["queried"][::-1]} for r in make().rounds]},
        {"rounds": [{**r, "scores": {"accuracy": 0.5}} for r in make().rounds]},
    ],
)
def test_everything_else_does(changes):
    assert make(**changes) != make()


def test_it_equals_no_other_thing():
    assert make() != make().to_dict()


def test_a_run_is_equal_after_a_round_trip(tmp_path):
    run = make(info={"seed": np.int64(3), "prior": (0.1, np.float32(0.5)), "x": None})
    run.to_json(tmp_path / "run.json")
    again = Run.from_json(tmp_path / "run.json")
    assert again == run
    assert again.ledger == run.ledger
    assert again.info == {"seed": 3, "prior": [0.1, 0.5], "x": None}
    assert json.loads(json.dumps(run.to_dict(), allow_nan=False)) == run.to_dict()


def test_values_that_json_lacks():
    record = make(final_scores={"f1": np.nan}).to_dict()
    assert record["final_scores"] == {"f1": None}
    assert record["rounds"][0]["scores"] == {"accuracy": None, "f1": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "holds no run: Expecting property name"),
        ("[1]", "holds no run: 'record' must be a dict .* got 'a list'"),
        ('{"rounds": []}', "got None"),
        ('{"format": "skactive.Run", "version": 2}', "reads version 1"),
        ('{"format": "skactive.Run", "version": 1}', "it lacks .*'rounds'"),
    ],
)
def test_files_that_hold_no_run(tmp_path, text, message):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        Run.from_json(tmp_path / "run.json")


def test_the_frame_has_a_row_for_each_round():
    frame = make().to_frame()
    assert list(frame) == [
        *("round", "n_labeled", "accuracy", "f1"),
        *("fit_seconds", "query_seconds", "cost", "queried", "refused"),
    ]
    assert_array_equal(frame["f1"], [np.nan, 0.25, 0.5])
    assert frame["queried"].tolist() == [[], [4, 2], [0]]


def test_a_frame_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        make().to_frame()


def test_the_repr_shows_the_end():
    text = "<Run: 3 rounds, 3 labels, accuracy=0.75, strategy=margin, seed=3>"
    assert repr(make()) == text


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda path: Run(5), "rounds"),
        (lambda path: Run([None]), "rounds"),
        (lambda path: Run(info=5), "info"),
        (lambda path: Run(final_scores=[1]), "final_scores"),
        (lambda path: Run(stopped_by=5), "stopped_by"),
        (lambda path: Run().append(5), "record"),
        (lambda path: Run().append({"queried": [0.5]}), "record"),
        (lambda path: Run().append({"queried": [1], "scores": 5}), "record"),
        (lambda path: Run().curve(["f1"]), "scoring"),
        (lambda path: Run().to_json(5), "path"),
        (lambda path: Run().to_json(path / "none" / "run.json"), "path"),
        (lambda path: Run().to_json(path), "path"),
        (lambda path: Run.from_json(5), "path"),
        (lambda path: Run.from_json(path / "none.json"), "path"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path, call, name):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=f"'{name}'"):
        call(tmp_path)


def test_a_record_that_is_refused_is_not_kept():
    run = Run([{"queried": [1]}])
    with pytest.raises(ValueError, match="'record'"):
        run.append({"queried": [2], "fit_seconds": "long"})
    assert run.queried.tolist() == [1]
