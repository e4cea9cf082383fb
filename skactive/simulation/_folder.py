"""Folders of runs: the finished ones, and the events of one in progress."""

import os
import warnings

from .._storage._files import LineWriter, Lock, make_folder, read_lines
from .._storage._fingerprint import collect_versions, describe, find_changes, hash_data
from .._utils._sklearn import validate_params
from .._utils._system import Closing
from ..stopping import Run

NAMES = ("data", "learner", "strategy", "seed")  # of a run of an experiment
_ALONE = ()  # the names of a run of `simulate`
_FILE = "runs.jsonl"
VERSIONED = ("skactive", "numpy", "scikit-learn")


class OtherSettingsError(ValueError):
    """The folder holds a run of the same names with other settings."""


class RunFolder(Closing):
    """A locked folder whose `runs.jsonl` keeps the runs of `plans` by their names.

    A line has the names and the plan of a run, and the run itself if it is finished. An
    event of `simulate` is a line without names. `lines` are those of these plans, with
    their numbers. Without a folder, there are none, and nothing is written.
    """

    def __init__(self, folder, plans):
        self._plans = plans
        self._writer = self._lock = None
        self.lines = []
        if folder is None:
            return
        make_folder(folder)
        self._lock = Lock(os.path.join(folder, "lock"), repr(os.fspath(folder)))
        try:
            self.lines = [
                (number, line)
                for number, line in enumerate(read_folder(folder), start=1)
                if self._is_planned(line, folder)
            ]
            self._writer = LineWriter(os.path.join(folder, _FILE))
        except BaseException:
            self._lock.release()
            raise

    def _is_planned(self, line, folder):
        if "event" in line:
            return True
        key = tuple(line["names"].values())
        if key not in self._plans:
            return False
        if changes := find_changes(line["plan"], self._plans[key]):
            kind = f"run of {format_key(key)}" if key else "simulation"
            raise OtherSettingsError(
                f"'folder' {os.fspath(folder)!r} holds a {kind} with other settings: "
                f"{changes}. Use those, or choose another folder for the new ones."
            )
        return True

    def read_runs(self):
        """Return the finished runs by their names."""
        return {
            tuple(line["names"].values()): Run.from_dict(line["run"])
            for _, line in self.lines
            if "run" in line
        }

    def add(self, key, run=None, **more):
        """Write the names and the plan of a run, and the run once it is finished."""
        if self._writer is not None:
            names = dict(zip(NAMES, key, strict=False))
            record = {} if run is None else {"run": run.to_dict()}
            self.write({"names": names, "plan": self._plans[key], **record, **more})

    def write(self, line):
        """Append a line. It is on the disk when this returns."""
        if self._writer is not None:
            self._writer.write(line)

    def close(self):
        """Close the file and release the lock."""
        if self._writer is not None:
            self._writer.close()
            self._lock.release()


def read_folder(folder):
    """Return the lines of a folder, [] without a file; a torn last line is dropped."""
    path = os.path.join(folder, _FILE)
    try:
        lines, _ = read_lines(path)
    except FileNotFoundError:
        return []
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, dict) or not (
            "event" in line
            or all(isinstance(line.get(key), dict) for key in ("names", "plan"))
        ):
            raise ValueError(
                f"line {number} of {path!r} holds no run. Restore the file, or choose "
                "another folder."
            )
    return lines


def format_key(key):
    """Return the names of a run as text."""
    names = zip(NAMES, key, strict=False)
    return ", ".join(f"{name} {value!r}" for name, value in names)


@validate_params({"folder": [str, os.PathLike]})
def read_runs(folder: str | os.PathLike) -> list[Run]:
    """Read the finished runs that `run_experiment` or `simulate` keeps in a folder.

    Parameters
    ----------
    folder : str or path-like
        The `folder` of `run_experiment` or `simulate`.

    Returns
    -------
    runs : list of Run
        Ordered by the time they finished.

    Raises
    ------
    FileNotFoundError
        If the folder holds no runs.
    ValueError
        If the file is damaged, naming the line.

    Examples
    --------
    >>> import tempfile
    >>> from skactive import ActiveLearner
    >>> from skactive.simulation import read_runs, run_experiment
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(LogisticRegression(max_iter=500), batch_size=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run_experiment(
    ...         learner, {"iris": (X[::2], y[::2], X[1::2], y[1::2])}, seeds=2,
    ...         strategies=["random"], n_initial=5, n_rounds=1, folder=folder,
    ...     )
    ...     for run in read_runs(folder):
    ...         print(run.info["strategy"], run.info["seed"], run.n_labeled.tolist())
    random 0 [5, 10]
    random 1 [5, 10]
    """
    if not os.path.exists(os.path.join(folder, _FILE)):
        raise FileNotFoundError(
            f"'folder' must hold the runs of an experiment, got {os.fspath(folder)!r}, "
            f"which has no {_FILE}. Run `skactive simulate` or run_experiment(..., "
            "folder=) first."
        )
    return [Run.from_dict(line["run"]) for line in read_folder(folder) if "run" in line]


class RunRecorder:
    """Build the `Run` of a simulation from events, and keep them in a folder if any.

    The events are "precomputation" (seconds) and "round" (number and record).
    """

    def __init__(self, folder=None):
        self.run = Run()
        self.ended = False
        self._begun = False
        self._precomputation = 0.0
        self._path = folder
        self._folder = RunFolder(None, {})

    def choose_seed(self, seed):
        """Return the seed of the simulation in the folder, `seed` for a new one."""
        for line in [] if self._path is None else read_folder(self._path):
            if line.get("names") == {}:
                return int(line["plan"].get("seed", seed))
        return seed

    def open(self, seed, learner, data, **settings):
        """Continue the simulation in the folder; return the folder, to be closed."""
        if self._path is not None:
            plan = make_plan(learner, data=fingerprint(*data), **settings)
            plan = {"seed": str(seed), "format": "1", **plan}
            self._folder = RunFolder(self._path, {_ALONE: plan})
            try:
                self._replay()
            except BaseException:
                self._folder.close()
                raise
        return self._folder

    def record(self, event, **content):
        """Add an event. It is on the disk before it is part of the run."""
        self._folder.write({"event": event, **content})
        self._apply(event, **content)

    def end(self, stopped_by, final_scores, seconds):
        """Complete the run with the seconds of the final training, and write it."""
        self.run.stopped_by = stopped_by
        self.run.final_scores = final_scores
        self.run.ledger = {
            "precomputation": self._precomputation,
            "final_training": seconds,
        }
        self.ended = True
        self._folder.add(_ALONE, self.run)

    def _replay(self):
        for number, line in self._folder.lines:
            try:
                self._follow(line)
            except (TypeError, ValueError, KeyError) as exc:
                path = os.path.join(self._path, _FILE)
                raise ValueError(
                    f"line {number} of {path!r} does not follow from the lines before "
                    f"it: {exc}. Restore the file, or choose another folder."
                ) from exc
        if not self._folder.lines:
            self._folder.add(_ALONE, versions=collect_versions(VERSIONED))

    def _follow(self, line):
        """Apply a line that an earlier process wrote."""
        if self.ended:
            raise ValueError("the simulation had ended")
        if "run" in line:
            self.run = Run.from_dict(line["run"])
            self.ended = True
        elif "event" not in line:
            self._begun = True
            _warn_of_versions(line.get("versions"), self._path)
        elif self._begun:
            self._apply(**line)
        else:
            raise ValueError("the line that says what was simulated is missing")

    def _apply(self, event, **content):
        if event == "round":
            number = len(self.run.rounds)
            if content["round"] != number:
                raise ValueError(f"expected round {number}, got {content['round']}")
            self.run.append(content)
        elif event == "precomputation":
            # The seconds of several processes add up.
            self._precomputation += content["seconds"]
            self.run.ledger = {"precomputation": self._precomputation}
        else:
            raise ValueError(f"there is no event {event!r}")


def _warn_of_versions(written, folder):
    installed = collect_versions(VERSIONED)
    if written != installed:
        warnings.warn(
            f"the simulation in {os.fspath(folder)!r} began with {written} and "
            f"continues with {installed}; its later rounds may differ from those of an "
            "uninterrupted run.",
            UserWarning,
            stacklevel=7,
        )


def make_plan(learner, *, data, **settings):
    """Return all that the result of a simulation depends on: texts and dicts of texts.

    `data` comes from `fingerprint`, `settings` are arguments of `simulate`.
    """
    return {
        "learner": describe(learner),
        "data": data,
        **{name: describe(value) for name, value in settings.items()},
    }


def fingerprint(X, y, X_test=None, y_test=None):
    """Return the hashes of the data of a simulation, by name."""
    parts = {"X": X, "y": y, "X_test": X_test, "y_test": y_test}
    return {name: hash_data(part) for name, part in parts.items()}
