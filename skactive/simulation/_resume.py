"""The record of a running simulation, and the folder that lets it resume."""

import json
import os
import warnings

from .._storage._files import LineWriter, Lock, make_folder, read_lines, write_atomic
from .._storage._fingerprint import collect_versions, describe, find_changes, hash_data
from ._run import Run

_FORMAT = "skactive.simulation"
_VERSION = 1
_VERSIONED = ("skactive", "numpy", "scikit-learn")


class RunRecorder:
    """Build the `Run` of a simulation from events, and keep them in a folder if any.

    The events are "precomputation" (seconds), "round" (number and record) and "end"
    (stopped_by, final_scores, seconds).
    """

    def __init__(self, folder=None):
        self.run = Run()
        self.ended = False
        self._precomputation = 0.0
        self._folder = None if folder is None else ResumeFolder(folder)

    def choose_seed(self, seed):
        """Return the seed of the simulation in the folder, `seed` for a new one."""
        kept = None if self._folder is None else self._folder.read_seed()
        return seed if kept is None else kept

    def open(self, seed, learner, data, **settings):
        """Continue the simulation in the folder; used as a context manager."""
        if self._folder is not None:
            plan = make_plan(learner, data=fingerprint(*data), **settings)
            self._folder.open(plan, seed, self._apply)
        return self

    def record(self, event, **content):
        """Add an event. It is on the disk before it is part of the run."""
        if self._folder is not None:
            self._folder.write({"event": event, **content})
        self._apply(event, **content)

    def _apply(self, event, **content):
        if self.ended:
            raise ValueError("the simulation had ended")
        if event == "round":
            self._add_round(**content)
        elif event == "precomputation":
            self._add_precomputation(**content)
        elif event == "end":
            self._end(**content)
        else:
            raise ValueError(f"there is no event {event!r}")

    def _add_round(self, round, **record):
        if round != len(self.run.rounds):
            raise ValueError(f"expected round {len(self.run.rounds)}, got {round}")
        self.run.append(record)

    def _add_precomputation(self, seconds):
        # The seconds of several processes add up.
        self._precomputation += seconds
        self.run.ledger = {"precomputation": self._precomputation}

    def _end(self, stopped_by, final_scores, seconds):
        self.run.stopped_by = stopped_by
        self.run.final_scores = final_scores
        self.run.ledger = {
            "precomputation": self._precomputation,
            "final_training": seconds,
        }
        self.ended = True

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self._folder is not None:
            self._folder.close()


class ResumeFolder:
    """Folder of a simulation: `manifest.json` describes it, `rounds.jsonl` is its log.

    Each line of the log is an event, which is on the disk before the next round begins.
    """

    def __init__(self, path):
        self._path = os.fspath(path)
        self._manifest = os.path.join(self._path, "manifest.json")
        self._log = os.path.join(self._path, "rounds.jsonl")
        self._lock = self._writer = None

    def read_seed(self):
        """Return the seed in the manifest, None where there is no manifest."""
        return self._read_manifest()["seed"] if self._has_manifest() else None

    def open(self, plan, seed, apply):
        """Lock the folder, compare its plan and call `apply` with each event."""
        make_folder(self._path)
        self._lock = Lock(os.path.join(self._path, "lock"), repr(self._path))
        try:
            has_log = os.path.exists(self._log)
            if self._has_manifest():
                self._check_manifest(plan, seed)
            elif has_log:
                raise ValueError(
                    f"'folder' {self._path!r} holds rounds but no manifest.json, "
                    "which says what was simulated. Choose another folder."
                )
            else:
                self._write_manifest(plan, seed)
            if has_log:
                self._replay(apply)
            self._writer = LineWriter(self._log)
        except BaseException:
            self.close()
            raise

    def write(self, event):
        """Append an event to the log."""
        self._writer.write(event)

    def close(self):
        """Close the log and release the lock."""
        if self._writer is not None:
            self._writer.close()
        if self._lock is not None:
            self._lock.release()

    def _has_manifest(self):
        return os.path.exists(self._manifest)

    def _write_manifest(self, plan, seed):
        manifest = {
            "format": _FORMAT,
            "version": _VERSION,
            "seed": seed,
            "plan": plan,
            "versions": collect_versions(_VERSIONED),
        }
        text = json.dumps(manifest, indent=1)
        write_atomic(self._manifest, f"{text}\n".encode())

    def _read_manifest(self):
        try:
            with open(self._manifest, encoding="utf-8") as stream:
                manifest = json.load(stream)
            known = manifest["format"], manifest["version"]
            content = {key: manifest[key] for key in ("seed", "plan", "versions")}
        except (ValueError, KeyError, TypeError) as exc:
            raise ValueError(
                f"{self._manifest!r} is no manifest of a simulation ({exc}). Restore "
                "it, or choose another folder as 'folder'."
            ) from exc
        if known != (_FORMAT, _VERSION):
            raise ValueError(
                f"{self._manifest!r} has the format {known}, and this skactive reads "
                f"{(_FORMAT, _VERSION)}. Choose another folder as 'folder'."
            )
        return content

    def _check_manifest(self, plan, seed):
        manifest = self._read_manifest()
        old = {"seed": str(manifest["seed"]), **manifest["plan"]}
        if changes := find_changes(old, {"seed": str(seed), **plan}):
            raise ValueError(
                f"'folder' {self._path!r} holds another simulation: {changes}. "
                "Pass the same arguments, or choose another folder."
            )
        installed = collect_versions(_VERSIONED)
        if manifest["versions"] != installed:
            warnings.warn(
                f"the simulation in {self._path!r} began with {manifest['versions']} "
                f"and continues with {installed}; its later rounds may differ from "
                "those of an uninterrupted run.",
                UserWarning,
                stacklevel=5,
            )

    def _replay(self, apply):
        events, _ = read_lines(self._log)  # a torn last line is a round not done
        for number, event in enumerate(events, start=1):
            try:
                apply(**event)
            except (TypeError, ValueError, KeyError) as exc:
                raise ValueError(
                    f"line {number} of {self._log!r} does not follow from the lines "
                    f"before it: {exc}. Restore the file, or choose another folder as "
                    "'folder'."
                ) from exc


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
