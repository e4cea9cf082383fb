"""A simulation that was interrupted goes on as if it had not been."""

import functools
import json
import shutil
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skactive import ActiveLearner, simulate
from skactive._storage._files import LockedError
from skactive._storage._fingerprint import collect_versions
from skactive.simulation import read_runs, run_experiment

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(-1, 1, (40, 2)), rng.normal(1, 1, (40, 2))])
y = np.repeat(["no", "yes"], 40)

collect_once = functools.cache(collect_versions)
slow = pytest.mark.slow


@pytest.fixture(autouse=True)
def versions(monkeypatch):
    """Read the versions of the installed packages once: each reading takes 10 ms."""
    monkeypatch.setattr("skactive.simulation._folder.collect_versions", collect_once)


OPTIONS = {"n_initial": 6, "n_rounds": 5, "X_test": X, "y_test": y, "noise": 0.1}


class Changes(BaseEstimator):
    """Stop once so many predictions have changed, by the model of every round."""

    def __init__(self, limit=38):
        self.limit = limit

    def start(self):
        self.before_, self.n_, self.n_checks_ = None, 0, 0

    def check(self, run, learner, X):
        self.n_checks_ += 1
        assert len(run.rounds) == self.n_checks_ + (len(run.rounds[0]["queried"]) == 0)
        now = learner.predict(X)
        if self.before_ is not None:
            self.n_ += int((now != self.before_).sum())
        self.before_ = now
        return self.n_ >= self.limit


def make(strategy="margin", **params):
    params = {"batch_size": 5, "random_state": 0, **params}
    # saga shuffles by the seed of the round.
    return ActiveLearner(
        LogisticRegression(solver="saga", max_iter=20), strategy, **params
    )


def play(folder=None, learner=None, data=(X, y), **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 20 iterations are too few
        learner = make() if learner is None else learner
        return simulate(learner, *data, folder=folder, **{**OPTIONS, **options})


class Interrupting(ActiveLearner):
    """A learner that is interrupted in one of its calls."""

    left = np.inf

    def _count(self):
        type(self).left -= 1
        if type(self).left < 0:
            raise KeyboardInterrupt

    def query(self, X, n_queries=None, *, candidates=None):
        self._count()
        return super().query(X, n_queries, candidates=candidates)

    def _train(self, *args, **options):
        self._count()
        return super()._train(*args, **options)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="plain", marks=slow),
        pytest.param({"stopping": Changes()}, id="rule"),
        pytest.param({"final_estimator": GaussianNB()}, id="final"),
        pytest.param({"n_initial": 0}, id="cold", marks=slow),
        pytest.param(
            {"noise": lambda positions, labels, rng: rng.permutation(labels)},
            id="noise",
            marks=slow,
        ),
        pytest.param(
            {"scoring": ["neg_log_loss", "accuracy"], "initial": "stratified"},
            id="scores",
            marks=slow,
        ),
    ],
)
def test_interrupted_anywhere_the_run_is_the_same(options, tmp_path):
    learner = Interrupting(
        LogisticRegression(solver="saga", max_iter=20), batch_size=5, random_state=0
    )
    Interrupting.left = np.inf
    whole = play(learner=learner, **options)
    assert whole.stopped_by == ("Changes()" if "stopping" in options else None)
    for calls in range(40):
        folder = tmp_path / str(calls)
        Interrupting.left = calls
        try:
            play(folder, learner, **options)
        except KeyboardInterrupt:
            Interrupting.left = np.inf
            assert play(folder, learner, **options) == whole
        else:
            break
    assert calls > 5
    # Again and again: train on what is there, ask and train; with a rule, each model.
    for n in range(60):
        Interrupting.left = 3 + (n if "stopping" in options else 0)
        try:
            run = play(tmp_path / "often", learner, **options)
        except KeyboardInterrupt:
            continue
        assert n > 0
        assert run == whole
        break
    else:
        pytest.fail("it never came to its end")


def test_what_has_ended_is_only_read(tmp_path, monkeypatch):
    run = play(tmp_path, final_estimator=GaussianNB())
    before = (tmp_path / "runs.jsonl").read_bytes()
    monkeypatch.setattr(ActiveLearner, "_train", None)
    again = play(tmp_path, final_estimator=GaussianNB())
    assert again == run
    assert again.ledger == run.ledger
    assert (tmp_path / "runs.jsonl").read_bytes() == before


def test_a_checkpoint_changes_nothing_else(tmp_path):
    assert play(tmp_path) == play()


def test_a_learner_without_a_seed_goes_on_with_the_first_one(tmp_path):
    learner = make("random", random_state=None)
    first = play(tmp_path, learner)
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    assert play(tmp_path, learner) == first
    assert play(learner=make("random", random_state=first.info["seed"])) == first


def test_a_torn_last_line_is_a_round_not_done(tmp_path):
    run = play(tmp_path)
    path = tmp_path / "runs.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + lines[5][:20])
    assert play(tmp_path) == run
    assert len(path.read_bytes().splitlines()) == len(lines) + 1  # precomputed again


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learner": make("entropy")}, "learner: strategy was 'margin', is 'entropy'"),
        ({"learner": make(batch_size=4)}, "batch_size was 5, is 4"),
        ({"learner": make(random_state=1)}, "random_state was 0, is 1"),
        ({"data": (X + 1, y)}, "data: X was"),
        ({"data": (X, y[::-1])}, "data: y was"),
        ({"X_test": X + 1}, "data: X_test was"),
        ({"n_rounds": 6}, "n_rounds was 5, is 6"),
        ({"initial": "first"}, "initial was None, is 'first'"),
        ({"noise": 0.2}, "noise was 0.1, is 0.2"),
        ({"scoring": "f1_macro"}, "scoring was None, is 'f1_macro'"),
        ({"stopping": Changes()}, "stopping was None, is {"),
        ({"final_estimator": GaussianNB()}, "final_estimator was None, is"),
    ],
)
def test_another_simulation_is_refused(changes, message, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "it")
    before = (tmp_path / "it" / "runs.jsonl").read_bytes()
    with pytest.raises(ValueError, match="a simulation with other settings") as error:
        play(tmp_path / "it", **changes)
    assert message in str(error.value)
    assert str(error.value).count(" was ") == 1
    assert (tmp_path / "it" / "runs.jsonl").read_bytes() == before


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulation")
    play(folder)
    return folder


def test_parameters_inside_are_compared(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "it")
    learner = make()
    learner.set_params(estimator__C=2.0)
    with pytest.raises(ValueError, match=r"learner: estimator__C was 1\.0, is 2\.0\."):
        play(tmp_path / "it", learner)


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (0, "", "line 1 of .* is damaged"),
        (0, "[]", "line 1 of .* holds no run"),
        (0, "{}", "line 1 of .* holds no run"),
        (0, '{"names": {}, "plan": 3}', "line 1 of .* holds no run"),
        (0, None, "line 1 of .* says what was simulated is missing"),
        (3, "{", "line 4 of .* is damaged"),
        (3, "3", "line 4 of .* holds no run"),
        (4, None, "line 5 of .* expected round 2, got 3"),
        (-2, '{"event": "party"}', "there is no event 'party'"),
        (2, '{"event": "round", "round": 0}', "line 3 of .* 'queried'"),
        (3, "the last line", "line 5 of .* the simulation had ended"),
    ],
)  # fmt: skip
def test_damage_is_named(line, text, message, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "it")
    path = tmp_path / "it" / "runs.jsonl"
    lines = path.read_text().splitlines()
    if text is None:
        del lines[line]
    else:
        lines[line] = lines[-1] if text == "the last line" else text
    path.write_text("\n".join(lines) + "\n")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        play(tmp_path / "it")
    assert path.read_bytes() == before


def edit_first_line(folder, edit):
    path = folder / "runs.jsonl"
    first, *rest = path.read_text().splitlines()
    first = json.loads(first)
    edit(first)
    path.write_text("\n".join([json.dumps(first), *rest]) + "\n")


def test_another_format(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "it")
    edit_first_line(tmp_path / "it", lambda line: line["plan"].update(format="2"))
    with pytest.raises(ValueError, match="format was 2, is 1"):
        play(tmp_path / "it")


def test_other_versions_are_warned_of(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "it")
    edit_first_line(tmp_path / "it", lambda line: line["versions"].update(numpy="0.1"))
    with pytest.warns(UserWarning, match=r"began with .*'numpy': '0\.1'") as seen:
        simulate(make(), X, y, folder=tmp_path / "it", **OPTIONS)
    assert seen[0].filename == __file__


def test_finished_runs_are_read_like_those_of_an_experiment(finished, tmp_path):
    run = play(finished)
    assert read_runs(finished) == [run]
    shutil.copytree(finished, tmp_path / "it")
    path = tmp_path / "it" / "runs.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert read_runs(tmp_path / "it") == []


def test_an_experiment_and_a_simulation_share_a_folder(tmp_path):
    def experiment():
        return run_experiment(make(), (X, y), seeds=2, n_rounds=1, folder=tmp_path)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 20 iterations are too few
        runs = experiment()
        run = play(tmp_path)
        assert experiment() == runs
        assert play(tmp_path) == run == play()
    assert read_runs(tmp_path) == [*runs, run]


def test_two_at_a_time_are_refused(tmp_path):
    class Again(Changes):
        def check(self, run, learner, X):
            with pytest.raises(LockedError):
                play(tmp_path, stopping=Again())
            return True

    run = play(tmp_path, stopping=Again())
    assert run.stopped_by == "Again()"


def test_nothing_is_written_for_what_cannot_run(tmp_path):
    folder = tmp_path / "it"
    for options in (
        {"n_initial": 99},
        {"noise": 3},
        {"n_rounds": -1},
        {"y_test": None},
    ):
        with pytest.raises(ValueError, match="'"):
            play(folder, **options)
    assert not folder.exists()


def test_seconds_of_all_processes_are_in_the_ledger(tmp_path):
    play(tmp_path)
    path = tmp_path / "runs.jsonl"
    lines = path.read_text().splitlines()
    event = '{"event": "precomputation", "seconds": 2.5}'
    path.write_text("\n".join([*lines[:2], event, *lines[2:5]]) + "\n")
    run = play(tmp_path)
    assert run.ledger["precomputation"] == 2.5
    done = [json.loads(line) for line in lines[2:5]]
    assert [r["fit_seconds"] for r in run.rounds[:3]] == [
        r["fit_seconds"] for r in done
    ]
