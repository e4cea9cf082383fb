"""The runs of an experiment that are done, each a line of a file."""

from __future__ import annotations

import os

from .._files import make_folder
from .._lines import LineWriter, read_lines
from .._lock import Lock
from .._sklearn import validate_params
from ..runs import Run
from ..simulation.plan import find_changes, fingerprint, make_plan

__all__ = ["NAMES", "OtherSettingsError", "Results", "read_runs", "spell"]

NAMES = ("data", "learner", "strategy", "seed")  # of a run
_FILE = "runs.jsonl"


class OtherSettingsError(ValueError):
    """A folder holds a run of the same names with other settings."""


@validate_params({"folder": [str, os.PathLike]})
def read_runs(folder):
    """Read the runs that `run_experiment` keeps in a folder.

    Parameters
    ----------
    folder : str or path-like

    Returns
    -------
    runs : list of Run
        In the order in which they were finished.

    Raises
    ------
    FileNotFoundError
        If the folder holds no runs.
    ValueError
        If the file is damaged, naming the line.
    """
    try:
        lines = _read_lines(folder)
    except FileNotFoundError as exc:
        raise FileNotFoundError(
            f"'folder' must hold the runs of an experiment, got {os.fspath(folder)!r}, "
            f"which has no {_FILE}. Run `skactive simulate` or run_experiment(..., "
            "folder=) first."
        ) from exc
    return [Run.from_dict(line["run"]) for line in lines]


class Results:
    """Runs done so far, each kept as a line of a file if there is a folder."""

    def __init__(self, folder, tasks, data, settings):
        self.runs = {}
        self._writer = self._lock = None
        if folder is None:
            return
        digests = {name: fingerprint(*parts) for name, parts in data.items()}
        self._plans = {
            key: make_plan(learner, data=digests[key[0]], **settings)
            for key, learner in tasks.items()
        }
        make_folder(folder)
        self._lock = Lock(os.path.join(folder, "lock"), repr(os.fspath(folder)))
        try:
            path = os.path.join(folder, _FILE)
            if os.path.exists(path):
                self._take_over(folder)
            self._writer = LineWriter(path)
        except BaseException:
            self._lock.release()
            raise

    def _take_over(self, folder):
        for line in _read_lines(folder):
            key = tuple(line["names"][name] for name in NAMES)
            if key not in self._plans:
                continue  # of another experiment in the same folder
            if changes := find_changes(line["plan"], self._plans[key]):
                raise OtherSettingsError(
                    f"'folder' {os.fspath(folder)!r} holds a run of {spell(key)} with "
                    f"other settings: {changes}. Go back to those, or choose another "
                    "folder for the new ones."
                )
            self.runs[key] = Run.from_dict(line["run"])

    def add(self, key, run):
        """Keep a finished run, on the disk first."""
        if self._writer is not None:
            names = dict(zip(NAMES, key, strict=True))
            line = {"names": names, "plan": self._plans[key], "run": run.to_dict()}
            self._writer.write(line)
        self.runs[key] = run

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self._writer is not None:
            self._writer.close()
            self._lock.release()


def _read_lines(folder):
    path = os.path.join(folder, _FILE)
    lines, _ = read_lines(path)  # a torn last line is a run not done
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, dict) or not {"names", "plan", "run"} <= set(line):
            raise ValueError(
                f"line {number} of {path!r} holds no run of an experiment. Restore the "
                "file, or choose another folder."
            )
    return lines


def spell(key):
    """Name a run in words."""
    return ", ".join(f"{n} {value!r}" for n, value in zip(NAMES, key, strict=True))
