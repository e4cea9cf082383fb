"""Score against time: of epochs and of rounds."""

import matplotlib.pyplot as plt
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from skactive.analysis import score_against_time
from skactive.bert import BertClassifier
from skactive.plotting import ScoreTimeDisplay
from skactive.simulation import Run


def _history(seconds, *scores):
    return [
        {
            "epoch": i + 1,
            "train_loss": 1 / (i + 1),
            "seconds": seconds,
            "seconds_total": seconds * (i + 1),
            **({} if score is None else {"valid_score": score}),
        }
        for i, score in enumerate(scores)
    ]


def _run(seconds, *scores, final=None, training=0.0, **info):
    rounds = [
        {
            "queried": [i],
            "scores": {"accuracy": score},
            "fit_seconds": seconds,
            "query_seconds": 10.0 * (i > 0),
        }
        for i, score in enumerate(scores)
    ]
    return Run(
        rounds,
        info=info,
        ledger={"precomputation": 100.0, "final_training": training},
        final_scores=None if final is None else {"accuracy": final},
    )


def test_scores_of_epochs(ax):
    histories = {"all": _history(4, 0.5, 0.75), "last 3": _history(2, 0.25, 0.5, 0.75)}
    display = ScoreTimeDisplay.from_history(histories, ax=ax)
    assert_allclose(display.lines_["all"].get_xydata(), [[4, 0.5], [8, 0.75]])
    assert_allclose(display.lines_["last 3"].get_xdata(), [2, 4, 6])
    assert ax.get_xlabel() == "seconds of training"
    assert ax.get_ylabel() == "score on the validation part"
    assert ax.get_xlim()[0] == 0
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["all", "last 3"]


def test_one_history(ax):
    display = ScoreTimeDisplay.from_history(_history(4, 0.5), ax=ax)
    assert_allclose(display.lines_["model"].get_xydata(), [[4, 0.5]])


def test_another_score(ax):
    display = ScoreTimeDisplay.from_history(
        _history(4, None, None), score="train_loss", ax=ax
    )
    assert_allclose(display.lines_["model"].get_ydata(), [1, 0.5])
    assert ax.get_ylabel() == "training loss"


def test_of_a_fitted_classifier(tiny_bert, ax):
    model = BertClassifier(tiny_bert, max_epochs=2, early_stopping=True, random_state=0)
    model.fit(["a dull film", "a joy", "slow", "no"] * 5, [0, 1, 0, 1] * 5)
    display = ScoreTimeDisplay.from_history({"tiny": model}, ax=ax)
    expected = [[e["seconds_total"], e["valid_score"]] for e in model.history_]
    assert_allclose(display.lines_["tiny"].get_xydata(), expected)


def test_scores_of_rounds_are_means_of_seconds_and_scores(ax):
    runs = {"margin": [_run(2, 0.5, 0.75), _run(4, 0.25, 0.5)]}
    display = ScoreTimeDisplay.from_runs(runs, ax=ax)
    assert_allclose(display.lines_["margin"].get_xydata(), [[3, 0.375], [6, 0.625]])
    assert ax.get_xlabel() == "processor seconds of fit"
    assert ax.get_ylabel() == "accuracy"


@pytest.mark.parametrize(
    ("phases", "name", "expected"),
    [
        (["query"], "processor seconds of query", [0, 10]),
        (
            ["precomputation", "fit", "query"],
            "processor seconds of precomputation, fit and query",
            [102, 114],
        ),
    ],
)
def test_what_counts_as_time(ax, phases, name, expected):
    run = _run(2, 0.5, 0.75)
    display = ScoreTimeDisplay.from_runs({"a": run}, phases=phases, ax=ax)
    assert_allclose(display.lines_["a"].get_xdata(), expected)
    assert_allclose(score_against_time(run, phases=phases)[0], expected)
    assert ax.get_xlabel() == name


def test_the_shortest_run_says_how_many_rounds(ax):
    runs = {"a": [_run(1, 0.5, 0.75, 1.0), _run(1, 0.5, 0.75)]}
    display = ScoreTimeDisplay.from_runs(runs, ax=ax)
    assert_allclose(display.lines_["a"].get_xdata(), [1, 2])


def test_a_final_model_comes_after_the_rounds(ax):
    runs = {
        "AL+LR": [_run(1, 0.5, 0.75, final=0.75)],
        "PRepAL": [
            _run(1, 0.5, 0.75, final=0.75, training=50),
            _run(3, 0.5, 0.75, final=1.0, training=70),
        ],
    }
    display = ScoreTimeDisplay.from_runs(runs, ax=ax)
    assert list(display.finals_) == ["PRepAL"]
    line = display.finals_["PRepAL"]
    # (2 + 6) / 2 seconds of fit, then (50 + 70) / 2 of training
    assert_allclose(line.get_xydata(), [[4, 0.75], [64, 0.875]])
    assert line.get_markevery() == [1]
    assert line.get_marker() == display.lines_["PRepAL"].get_marker()
    assert ax.get_xlabel() == "processor seconds of fit and final training"
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["AL+LR", "PRepAL", "final model"]


@pytest.mark.parametrize(("slow", "expected"), [(49, "linear"), (50, "log")])
def test_the_axis_of_time(ax, slow, expected):
    runs = {"fast": _run(1, 0.5, 0.75), "slow": _run(slow, 0.5, 0.75)}
    ScoreTimeDisplay.from_runs(runs, ax=ax)
    assert ax.get_xscale() == expected


def test_the_final_model_counts_for_the_axis(ax):
    runs = {"a": _run(1, 0.5), "b": _run(1, 0.5, final=0.75, training=99)}
    ScoreTimeDisplay.from_runs(runs, ax=ax)
    assert ax.get_xscale() == "log"


def test_no_logarithm_of_0_seconds(ax):
    runs = {"fast": _run(0, 0.5, 0.75), "slow": _run(100, 0.5, 0.75)}
    ScoreTimeDisplay.from_runs(runs, ax=ax)
    assert ax.get_xscale() == "linear"


def test_curves_differ_without_colors(ax):
    histories = {str(i): _history(1, 0.5, 0.75) for i in range(8)}
    lines = ScoreTimeDisplay.from_history(histories, ax=ax).lines_.values()
    assert len({line.get_marker() for line in lines}) == 8


def test_no_validation_score():
    with pytest.raises(
        ValueError,
        match=r"'mine' has no 'valid_score', only \['epoch'.*early_stopping=True",
    ):
        ScoreTimeDisplay.from_history({"mine": _history(4, None)})
    assert plt.get_fignums() == []


def test_an_unknown_score():
    with pytest.raises(ValueError, match=r"has no 'auc', only .*'valid_score'\]\.$"):
        ScoreTimeDisplay.from_history(_history(4, 0.5), score="auc")


@pytest.mark.parametrize(
    ("histories", "error", "message"),
    [
        ({}, ValueError, "'histories' is empty"),
        ([], ValueError, "has no epochs"),
        ("history", TypeError, "must be a fitted estimator or its 'history_'"),
        ([{"epoch": 1}], TypeError, "a list of one dict for each epoch"),
        (BertClassifier(), NotFittedError, "'model', a BertClassifier, has no"),
        (LogisticRegression(), NotFittedError, "LogisticRegression, has no 'history_'"),
    ],
    ids=["no names", "no epochs", "text", "no seconds", "not fitted", "other"],
)
def test_bad_histories(histories, error, message):
    with pytest.raises(error, match=message):
        ScoreTimeDisplay.from_history(histories)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "'runs' is empty"),
        ({"a": Run([{"queried": [0]}])}, "'runs' hold no scores"),
        (
            {"a": Run([{"queried": [0], "scores": {"auc": None}}])},
            "no round with a score",
        ),
        ({"a": _run(1, 0.5), "b": Run()}, "metric of all runs, got 'accuracy'"),
    ],
    ids=["none", "no scores", "all unknown", "one without"],
)
def test_bad_runs(runs, message):
    with pytest.raises(ValueError, match=message):
        ScoreTimeDisplay.from_runs(runs)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"curves": {}}, "'curves' must be a dict"),
        ({"curves": {"a": ([1, 2], [1])}}, "as many scores as seconds"),
        ({"curves": {"a": ([], [])}}, "at least one"),
        ({"curves": {"a": ([1], [1])}, "finals": {"b": (1, 1)}}, "'finals' must have"),
    ],
)
def test_bad_curves(params, message):
    with pytest.raises(ValueError, match=message):
        ScoreTimeDisplay(**params).plot()
    assert plt.get_fignums() == []
