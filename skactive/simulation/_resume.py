"""Keep the rounds of a simulation in a folder, so that a kill loses none of them."""

import json
import os
import warnings

from .._storage._files import make_folder, write_atomic
from .._storage._fingerprint import describe, find_changes, hash_data, to_text
from .._storage._lines import LineWriter, read_lines
from .._storage._lock import Lock
from .._storage._versions import collect_versions
from ._run import Run

_FORMAT = "skactive.simulation"
_VERSION = 1
_VERSIONED = ("skactive", "numpy", "scikit-learn")


class Progress:
    """What a simulation has done so far; this one is forgotten with its process.

    Parameters
    ----------
    seed : int

    Attributes
    ----------
    seed : int
        The base seed that the simulation began with.
    run : Run
        The rounds so far.
    ended : bool
        Whether the simulation is over.
    """

    def __init__(self, seed):
        self.seed = seed
        self.run = Run()
        self.ended = False
        self._precomputation = 0.0

    def precomputed(self, seconds):
        """Count seconds of precomputation; those of several processes add up."""
        self._write({"event": "precomputation", "seconds": seconds})
        self._take_precomputation(seconds)

    def add_round(self, record):
        """Keep a round, its five keys complete."""
        number = len(self.run.rounds)
        self._write({"event": "round", "round": number, **record})
        self.run.append(record)

    def end(self, stopped_by, final_scores, seconds):
        """Keep how the simulation ended, and the seconds of the final training."""
        event = {"stopped_by": stopped_by, "final_scores": final_scores}
        self._write({"event": "end", **event, "seconds": seconds})
        self._take_end(**event, seconds=seconds)

    def _take_precomputation(self, seconds):
        self._precomputation += seconds
        self.run.ledger = {"precomputation": self._precomputation}

    def _take_end(self, stopped_by, final_scores, seconds):
        self.run.stopped_by = stopped_by
        self.run.final_scores = final_scores
        self.run.ledger = {
            "precomputation": self._precomputation,
            "final_training": seconds,
        }
        self.ended = True

    def _write(self, event):
        pass

    def close(self):
        """Let go of what holds it."""

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()


class Checkpoint(Progress):
    """What a simulation has done so far, in a folder.

    `manifest.json` says what is simulated, `rounds.jsonl` holds an event in each
    line, which is on the disk before the next round begins.

    Parameters
    ----------
    folder : str or path-like
        Made if it is not there. One process at a time.
    plan : dict
        All that the result depends on, from `make_plan`.
    seed : int
        Base seed, for a folder without one.

    Raises
    ------
    ValueError
        If the folder holds another simulation, or is damaged.
    skactive._storage._lock.LockedError
        If another process is at it.
    """

    def __init__(self, folder, plan, seed):
        super().__init__(seed)
        make_folder(folder)
        self.folder = os.fspath(folder)
        self._manifest = os.path.join(self.folder, "manifest.json")
        self._lines = os.path.join(self.folder, "rounds.jsonl")
        self._writer = None
        self._lock = Lock(os.path.join(self.folder, "lock"), f"{self.folder!r}")
        try:
            self._open(plan)
        except BaseException:
            self.close()
            raise

    def _open(self, plan):
        has_rounds = os.path.exists(self._lines)
        if os.path.exists(self._manifest):
            self._check_manifest(plan)
        elif has_rounds:
            raise ValueError(
                f"'checkpoint' {self.folder!r} holds rounds but no manifest.json, so "
                "nothing says what was simulated. Choose another folder."
            )
        else:
            self._write_manifest(plan)
        if has_rounds:
            self._read_rounds()
        self._writer = LineWriter(self._lines)

    def _write_manifest(self, plan):
        manifest = {
            "format": _FORMAT,
            "version": _VERSION,
            "seed": self.seed,
            "plan": plan,
            "versions": collect_versions(_VERSIONED),
        }
        text = json.dumps(manifest, indent=1)
        write_atomic(self._manifest, f"{text}\n".encode())

    def _check_manifest(self, plan):
        try:
            with open(self._manifest, encoding="utf-8") as stream:
                manifest = json.load(stream)
            known = manifest["format"], manifest["version"]
            self.seed, old, versions = (
                manifest[key] for key in ("seed", "plan", "versions")
            )
        except (ValueError, KeyError, TypeError) as exc:
            raise ValueError(
                f"{self._manifest!r} is no manifest of a simulation ({exc}). Restore "
                "it, or choose another folder as 'checkpoint'."
            ) from exc
        if known != (_FORMAT, _VERSION):
            raise ValueError(
                f"{self._manifest!r} has the format {known}, and this skactive reads "
                f"{(_FORMAT, _VERSION)}. Choose another folder as 'checkpoint'."
            )
        if changes := find_changes(old, plan):
            raise ValueError(
                f"'checkpoint' {self.folder!r} holds another simulation: {changes}. "
                "Pass what it began with, or choose another folder."
            )
        installed = collect_versions(_VERSIONED)
        if versions != installed:
            warnings.warn(
                f"the simulation in {self.folder!r} began with {versions} and goes on "
                f"with {installed}; its later rounds may differ from those of an "
                "uninterrupted run.",
                UserWarning,
                stacklevel=4,
            )

    def _read_rounds(self):
        events, _ = read_lines(self._lines)  # a torn last line is a round not done
        for number, event in enumerate(events, start=1):
            try:
                self._take(**event)
            except (TypeError, ValueError, KeyError) as exc:
                raise ValueError(
                    f"line {number} of {self._lines!r} does not follow from those "
                    f"before it: {exc}. Restore the file, or choose another folder as "
                    "'checkpoint'."
                ) from exc

    def _take(self, event, **content):
        if self.ended:
            raise ValueError("the simulation had ended")
        if event == "precomputation":
            self._take_precomputation(**content)
        elif event == "end":
            self._take_end(**content)
        elif event != "round":
            raise ValueError(f"there is no event {event!r}")
        else:
            number, expected = content.pop("round"), len(self.run.rounds)
            if number != expected:
                raise ValueError(f"expected round {expected}, got {number}")
            self.run.append(content)

    def _write(self, event):
        self._writer.write(event)

    def close(self):
        """Let go of the folder."""
        if self._writer is not None:
            self._writer.close()
        self._lock.release()


def make_plan(learner, *, data, **settings):
    """Gather all that the result of a simulation depends on.

    Parameters
    ----------
    learner : estimator
    data : dict of str to str
        From :func:`fingerprint`.
    **settings
        The arguments of :func:`skactive.simulate`.

    Returns
    -------
    plan : dict
        Of texts, and of dicts of texts.
    """
    return {
        "learner": describe(learner),
        "data": data,
        **{name: describe(value) for name, value in settings.items()},
    }


def fingerprint(X, y, X_test=None, y_test=None):
    """Hash the data of a simulation by what they hold.

    Parameters
    ----------
    X, y, X_test, y_test : container

    Returns
    -------
    digests : dict of str to str
    """
    parts = {"X": X, "y": y, "X_test": X_test, "y_test": y_test}
    return {name: hash_data(part) for name, part in parts.items()}


def name_value(value):
    """Name a strategy or function: the name itself, its `__name__`, or its repr."""
    if isinstance(value, str):
        return value
    return getattr(value, "__name__", None) or to_text(value)


def name_estimator(estimator):
    """Name an estimator by its repr, None by None."""
    return None if estimator is None else to_text(estimator)


def name_initial(initial):
    """Name the way in which a simulation begins."""
    if initial is None:
        return "random"
    return initial if isinstance(initial, str) else "given"
