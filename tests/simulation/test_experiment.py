"""Learners, strategies, seeds and data sets against each other."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skactive import ActiveLearner, get_strategy, simulate
from skactive.simulation import read_runs, run_experiment

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(-1, 1, (40, 2)), rng.normal(1, 1, (40, 2))])
y = np.repeat(["no", "yes"], 40)
DATA = {"one": (X[::2], y[::2], X[1::2], y[1::2]), "two": (X[1::2], y[1::2])}
OPTIONS = {
    "n_initial": 8,
    "n_rounds": 2,
    "strategies": ["random", "margin"],
    "seeds": 2,
}


def make(estimator=None, **params):
    estimator = LogisticRegression() if estimator is None else estimator
    return ActiveLearner(estimator, batch_size=3, **params)


def experiment(learners=None, data=None, **options):
    learners = make() if learners is None else learners
    data = DATA if data is None else data
    return run_experiment(learners, data, **{**OPTIONS, **options})


def names(runs):
    keys = ("data", "learner", "strategy", "seed")
    return [tuple(run.info[key] for key in keys) for run in runs]


@pytest.mark.long
def test_runs_are_simulations_in_order():
    learners = {"lr": make(), "nb": make(GaussianNB())}
    runs = experiment(learners, scoring=["f1_macro", "accuracy"], noise=0.1)
    assert names(runs) == [
        (data, learner, strategy, seed)
        for data in ("one", "two")
        for learner in ("lr", "nb")
        for strategy in ("random", "margin")
        for seed in (0, 1)
    ]
    learner = make(GaussianNB(), strategy="margin", random_state=1)
    alone = simulate(
        learner, X[::2], y[::2], n_initial=8, n_rounds=2, X_test=X[1::2],
        y_test=y[1::2], scoring=["f1_macro", "accuracy"], noise=0.1,
    )  # fmt: skip
    run = runs[7]
    assert run.rounds[1]["queried"] == alone.rounds[1]["queried"]
    assert_array_equal(run.curve("f1_macro"), alone.curve("f1_macro"))
    assert run.info == {**alone.info, "data": "one", "learner": "nb"}
    assert runs[8].score_names == []


def test_strategies_of_a_seed_begin_alike():
    starts = {}
    for run in experiment():
        key = run.info["data"], run.info["seed"]
        starts.setdefault(key, set()).add(tuple(run.rounds[0]["queried"]))
    assert [len(start) for start in starts.values()] == [1] * 4
    assert len(set.union(*starts.values())) > 1


@pytest.mark.parametrize(
    ("strategies", "expected"),
    [
        (None, ["entropy"]),
        ("margin", ["margin"]),
        (get_strategy("margin"), ["Margin()"]),
        ([get_strategy("margin"), "random"], ["Margin()", "random"]),
        ({"mine": get_strategy("margin"), "r": "random"}, ["mine", "r"]),
    ],
)
def test_how_strategies_are_called(strategies, expected):
    runs = experiment(
        make(strategy="entropy"), DATA["one"], strategies=strategies, seeds=1
    )
    assert [run.info["strategy"] for run in runs] == expected
    assert [run.info["data"] for run in runs] == ["data"] * len(expected)


def by_first_column(view):
    return view.X[:, 0]


def test_a_function_is_a_strategy():
    (run,) = experiment(data=DATA["one"], strategies=by_first_column, seeds=[7])
    assert run.info["strategy"] == "by_first_column"
    assert run.info["seed"] == 7


def check_workers(backend, folder):
    with parallel_config(backend=backend, n_jobs=2):
        runs = experiment(folder=folder)
    assert runs == experiment()
    assert sorted(names(read_runs(folder))) == sorted(names(runs))
    assert len(runs) == 8


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_make_no_difference(backend, tmp_path):
    check_workers(backend, tmp_path)


@pytest.mark.slow
def test_forked_workers_make_no_difference(tmp_path):
    # In a new process: a fork after other tests, whose threads it lacks, may wait
    # for one of them forever.
    code = "import sys, test_experiment as t; t.check_workers(*sys.argv[1:])"
    subprocess.run(
        [sys.executable, "-c", code, "multiprocessing", str(tmp_path)],
        cwd=Path(__file__).parent,
        check=True,
    )
    assert len(read_runs(tmp_path)) == 8


# The folder.


class Counting(LogisticRegression):
    fits = 0
    allowed = np.inf

    def fit(self, X, y):
        type(self).fits += 1
        if type(self).fits > type(self).allowed:
            raise KeyboardInterrupt
        return super().fit(X, y)


@pytest.fixture
def counting(monkeypatch):
    monkeypatch.setattr(Counting, "fits", 0)
    return make(Counting())


@pytest.mark.long
def test_finished_runs_are_not_run_again(counting, tmp_path):
    runs = experiment(counting, folder=tmp_path)
    assert Counting.fits == 8 * 3
    again = experiment(counting, folder=tmp_path)
    assert Counting.fits == 8 * 3
    assert again == runs
    assert [run.ledger for run in again] == [run.ledger for run in runs]
    more = experiment(counting, folder=tmp_path, seeds=[1, 5], strategies=["margin"])
    assert Counting.fits == 8 * 3 + 2 * 3
    assert [run.info["seed"] for run in more] == [1, 5, 1, 5]
    assert len(read_runs(tmp_path)) == 10


@pytest.mark.long
def test_an_interrupted_experiment_goes_on(counting, monkeypatch, tmp_path):
    monkeypatch.setattr(Counting, "allowed", 3 * 3 + 1)
    with pytest.raises(KeyboardInterrupt):
        experiment(counting, folder=tmp_path)
    assert len(read_runs(tmp_path)) == 3
    monkeypatch.setattr(Counting, "allowed", np.inf)
    Counting.fits = 0
    runs = experiment(counting, folder=tmp_path)
    assert Counting.fits == 5 * 3
    assert runs == experiment(counting)


def test_a_torn_line_is_a_run_not_done(tmp_path):
    runs = experiment(folder=tmp_path)
    path = tmp_path / "runs.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    assert len(read_runs(tmp_path)) == 7
    assert experiment(folder=tmp_path) == runs
    assert len(read_runs(tmp_path)) == 8


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_rounds": 3}, "n_rounds was 2, is 3"),
        ({"batch_size": 2}, "batch_size was None, is 2"),
        ({"noise": 0.1}, "noise was None, is 0.1"),
        ({"learners": make(LogisticRegression(C=9))}, "learner: estimator__C was 1.0"),
        ({"data": {"two": (X[1::2] + 1, y[1::2])}}, "data: X was"),
        ({"strategies": {"margin": get_strategy("random")}}, "learner: strategy was"),
    ],
)
def test_other_settings_under_the_same_names_are_refused(changes, message, tmp_path):
    experiment(data={"two": DATA["two"]}, folder=tmp_path, seeds=1)
    before = (tmp_path / "runs.jsonl").read_bytes()
    with pytest.raises(ValueError, match=r"holds a run of data 'two', .*seed 0 with oth"
                       ) as error:  # fmt: skip
        experiment(**{"data": {"two": DATA["two"]}, "folder": tmp_path, **changes})
    assert message in str(error.value)
    assert (tmp_path / "runs.jsonl").read_bytes() == before


@pytest.mark.long
@pytest.mark.parametrize("line", ["{", "3", '{"names": {}}'])
def test_damage_is_named(line, tmp_path):
    experiment(folder=tmp_path, seeds=1)
    path = tmp_path / "runs.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, *lines[2:]]) + "\n")
    for read in (lambda: read_runs(tmp_path), lambda: experiment(folder=tmp_path)):
        with pytest.raises(ValueError, match=r"line 2 of .*runs\.jsonl"):
            read()


def test_a_line_is_written_as_soon_as_a_run_is_done(tmp_path):
    seen = []

    class Looking(LogisticRegression):
        def fit(self, X, y):
            path = tmp_path / "runs.jsonl"
            seen.append(len(path.read_text().splitlines()) if path.exists() else 0)
            return super().fit(X, y)

    experiment(make(Looking()), folder=tmp_path)
    assert seen == [n for n in range(8) for _ in range(3)]


def test_lines_are_plain_json(tmp_path):
    experiment(folder=tmp_path, seeds=1)
    line = json.loads((tmp_path / "runs.jsonl").read_text().splitlines()[0])
    assert set(line) == {"names", "plan", "run"}
    assert line["names"] == {
        "data": "one", "learner": "learner", "strategy": "random", "seed": 0,
    }  # fmt: skip


def test_no_folder_without_runs(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_runs(tmp_path)


# Features that are kept.


class Slow(TransformerMixin, BaseEstimator):
    """Like BertFeatures: it needs no fit and keeps what it computes."""

    seen = ()

    def __init__(self, cache="memory"):
        self.cache = cache

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        type(self).seen += ((len(X), threading.get_ident()),)
        return 2 * X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def slow(cache="memory"):
    Slow.seen = ()
    return make(make_pipeline(Slow(cache), LogisticRegression()))


@pytest.mark.long
def test_each_data_set_is_encoded_first():
    learners = {"a": slow(), "b": slow()}
    runs = experiment(learners)
    # Pool and test set of one, pool of two, once although two learners want them.
    assert [n for n, _ in Slow.seen[:3]] == [40, 40, 40]
    assert Slow.seen[3][0] == 40
    assert Slow.seen[5][0] == 8
    assert all(run.ledger["precomputation"] > 0 for run in runs)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "cache", "expected"),
    [("loky", "memory", 0), ("loky", "folder", 3), ("threading", "memory", 3)],
)
def test_nothing_is_encoded_that_workers_cannot_see(backend, cache, expected):
    learner = slow(cache)
    with parallel_config(backend=backend, n_jobs=2):
        experiment(learner)
    here = [n for n, thread in Slow.seen if thread == threading.get_ident()]
    assert len(here) == expected


def test_what_is_done_is_not_encoded(tmp_path):
    experiment(slow(), folder=tmp_path)
    learner = slow()
    experiment(learner, folder=tmp_path)
    assert Slow.seen == ()


# Bad input.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {}}, "'data' must hold at least one"),
        ({"data": {3: (X, y)}}, r"by names that are str; got \[3\]"),
        ({"data": {"x": X}}, "got a ndarray as 'x'"),
        ({"data": (X, y, X)}, "got a tuple of 3 as 'data'"),
        ({"data": (X, y[:3])}, "'X' and 'y' differ in length"),
        ({"learners": {}}, "'learners' must hold at least one"),
        ({"strategies": []}, "'strategies' must hold at least one, .* got none"),
        ({"strategies": ["margin", "margin"]}, "none twice; got margin, margin"),
        ({"strategies": {}}, "'strategies' must hold at least one"),
        ({"strategies": ["margim"]}, "margim"),
        ({"seeds": 0}, "'seeds' must be .*got 0"),
        ({"seeds": [1, 1]}, r"got \[1, 1\]"),
        ({"seeds": [-1]}, r"got \[-1\]"),
        ({"seeds": [0.5]}, r"got \[0\.5\]"),
        ({"seeds": True}, "got True"),
    ],
)
def test_bad_input_is_found_before_any_work(changes, message, counting, tmp_path):
    with pytest.raises(ValueError, match=message):
        experiment(**{"learners": counting, "folder": tmp_path / "new", **changes})
    assert Counting.fits == 0
    assert not (tmp_path / "new").exists()


def test_a_run_that_fails_is_named():
    with pytest.raises(ValueError, match="at most the size of the pool") as error:
        experiment(n_initial=41)
    note = "the run of data 'one', learner 'learner', strategy 'random', seed 0."
    assert note in error.value.__notes__[0]


def test_progress_goes_to_stderr(capsys):
    experiment(seeds=1, verbose=1)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "4/4" in printed.err
    for quiet in (0, "auto"):  # the test has no terminal
        experiment(seeds=1, verbose=quiet)
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("learners", "strategies", "fault"),
    [
        (
            {"lr": make(), "nb": make(GaussianNB())},
            ["random", "margin", "badge"],
            r"'strategies' must suit every learner.* 'badge' with the learner 'nb'",
        ),
        (make(LinearSVC()), ["margin", "bald"], "'bald' with the learner 'learner'"),
    ],
)
def test_all_requirements_are_checked_before_the_first_run(
    learners, strategies, fault, tmp_path
):
    folder = tmp_path / "runs"
    with pytest.raises(TypeError, match=fault):
        experiment(learners, strategies=strategies, folder=folder)
    assert not folder.exists()


def test_what_a_model_can_do_once_fitted_counts():
    # Before fit, nothing says that a linear SVC has distances to its boundary.
    runs = experiment(make(LinearSVC()), strategies=["dfal"], seeds=1)
    assert {run.info["strategy"] for run in runs} == {"dfal"}


@pytest.mark.parametrize("learners", ["", None, {"lr": LogisticRegression()}])
def test_what_is_no_learner_is_refused_by_name(learners):
    with pytest.raises(ValueError, match="'learners' must be an ActiveLearner"):
        run_experiment(learners, DATA)
