"""The record of a simulation."""

import json
import math
import operator
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._storage._files import write_atomic
from .._utils._format import brief, make_frame, plain
from .._utils._sklearn import HasMethods, validate_params

_FORMAT = "skactive.Run"
_VERSION = 1
_PHASES = ("precomputation", "fit", "query", "final_training")
_FIELDS = ("rounds", "info", "ledger", "final_scores", "stopped_by")


class Run:
    """Record of one simulation.

    Two runs are equal if they queried the same items, have the same scores and ended in
    the same way; seconds and versions do not count.

    Parameters
    ----------
    rounds : sequence of dict, default=()
        One record for the initial labels and one for each round: `queried` (their
        positions, best first), `refused` (those of them that got no label), `n_labeled`
        (labels so far), `cost` (of all queried items so far, 1 each by default),
        `scores` (metric to value after training, None if unknown; empty without test
        data), `fit_seconds` and `query_seconds` (of the processor). Only `queried` is
        required.
    info : dict or None, default=None
        Description of the run as plain JSON values, such as strategy, seed and data.
    ledger : dict or None, default=None
        Processor seconds outside the rounds: "precomputation" and "final_training".
        "fit" and "query" default to the sums over the rounds.
    final_scores : dict or None, default=None
        Metric to value of the final model, if one was trained after the loop.
    stopped_by : str or None, default=None
        The rule that ended the loop; None if all rounds were run.

    Attributes
    ----------
    rounds : list of dict
        The records, each with all keys.
    info, final_scores : dict
    stopped_by : str or None
    session : LabelingSession or None
        The session whose answers these are; it is not stored.

    Examples
    --------
    >>> from skactive.simulation import Run
    >>> run = Run(
    ...     [
    ...         {"queried": [3, 1], "scores": {"accuracy": 0.5}, "fit_seconds": 1.0},
    ...         {"queried": [0], "scores": {"accuracy": 0.8}, "fit_seconds": 2.0},
    ...     ],
    ...     info={"strategy": "margin"},
    ... )
    >>> for n, score in zip(run.n_labeled, run.scores):
    ...     print(f"{n} labels: {score}")
    2 labels: 0.5
    3 labels: 0.8
    >>> print("training took", run.ledger["fit"], "s")
    training took 3.0 s
    """

    @validate_params(
        {
            "rounds": ["array-like", HasMethods("__iter__")],
            "info": [Mapping, None],
            "ledger": [Mapping, None],
            "final_scores": [Mapping, None],
            "stopped_by": [str, None],
        }
    )
    def __init__(
        self,
        rounds: Iterable[Mapping] = (),
        *,
        info: Mapping | None = None,
        ledger: Mapping | None = None,
        final_scores: Mapping | None = None,
        stopped_by: str | None = None,
    ):
        self.rounds: list[dict[str, Any]] = []
        for record in rounds:
            self.append(record)
        self.info = dict(info or {})
        self.ledger = ledger
        self.final_scores = dict(final_scores or {})
        self.stopped_by = stopped_by
        self.session: Any = None

    def append(self, record: Mapping) -> None:
        """Append a round.

        Parameters
        ----------
        record : dict
            A record as in `rounds`.
        """
        last = self.rounds[-1] if self.rounds else {"n_labeled": 0, "cost": 0.0}
        try:
            queried, refused = (
                [operator.index(position) for position in positions]
                for positions in (record["queried"], record.get("refused") or ())
            )
            n_new = len(queried) - len(refused)
            n_labeled = int(record.get("n_labeled", last["n_labeled"] + n_new))
            n_paid = n_labeled - last["n_labeled"] + len(refused)
            entry = {
                "queried": queried,
                "refused": refused,
                "n_labeled": n_labeled,
                "cost": float(record.get("cost", last["cost"] + n_paid)),
                "scores": dict(record.get("scores") or {}),
                "fit_seconds": float(record.get("fit_seconds", 0.0)),
                "query_seconds": float(record.get("query_seconds", 0.0)),
            }
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as exc:
            raise ValueError(
                "'record', or an entry of 'rounds', must be a dict with the positions "
                f"'queried', as int; got {record!r} ({type(exc).__name__}: {exc})."
            ) from exc
        self.rounds.append(entry)

    @property
    def n_labeled(self) -> NDArray:
        """Labels after each round, ndarray of int, shape (r,)."""
        return np.array([record["n_labeled"] for record in self.rounds], dtype=int)

    @property
    def cost(self) -> NDArray:
        """Cost of all queried items after each round, ndarray of float, (r,)."""
        return np.array([record["cost"] for record in self.rounds], dtype=float)

    @property
    def queried(self) -> NDArray:
        """Queried positions in their order, ndarray of int."""
        queried = [position for record in self.rounds for position in record["queried"]]
        return np.array(queried, dtype=int)

    @property
    def score_names(self) -> list[str]:
        """Names of the scores, list of str; the first is the primary one."""
        return list(
            dict.fromkeys(name for record in self.rounds for name in record["scores"])
        )

    @property
    def scores(self) -> NDArray:
        """Primary score after each round, ndarray of shape (r,); NaN where unknown."""
        return self.curve()

    @validate_params({"scoring": [str, None]})
    def curve(self, scoring: str | None = None) -> NDArray:
        """Return one metric after each round.

        Parameters
        ----------
        scoring : str or None, default=None
            One of `score_names`. Defaults to the first.

        Returns
        -------
        scores : ndarray of shape (r,)
            NaN where the score is unknown: without test data or a model.
        """
        score_names = self.score_names
        if scoring is None:
            scoring = score_names[0] if score_names else None
        elif scoring not in score_names:
            raise ValueError(
                f"'scoring' must be one that the run holds, {score_names}; got "
                f"{scoring!r}."
            )
        values = [record["scores"].get(scoring) for record in self.rounds]
        return np.array([math.nan if v is None else v for v in values], dtype=float)

    @property
    def ledger(self) -> dict[str, float]:
        """Processor seconds of each phase, dict.

        "precomputation" (representations of the pool, once), "fit" and
        "query" (over all rounds) and "final_training".
        """
        sums = {
            "precomputation": 0.0,
            "fit": sum(record["fit_seconds"] for record in self.rounds),
            "query": sum(record["query_seconds"] for record in self.rounds),
            "final_training": 0.0,
        }
        return {phase: float(self._ledger.get(phase, sums[phase])) for phase in _PHASES}

    @ledger.setter
    def ledger(self, seconds):
        unknown = set(seconds or ()) - set(_PHASES)
        if unknown:
            raise ValueError(
                f"'ledger' must hold seconds of {list(_PHASES)}, got "
                f"{sorted(unknown)[0]!r}."
            )
        self._ledger = dict(seconds or {})

    def __eq__(self, other):
        if not isinstance(other, Run):
            return NotImplemented
        return _timeless(self.to_dict()) == _timeless(other.to_dict())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        parts = [f"{len(self.rounds)} rounds"]
        if self.rounds:
            parts.append(f"{self.rounds[-1]['n_labeled']} labels")
            if self.score_names:
                parts.append(f"{self.score_names[0]}={self.scores[-1]:.4g}")
        for key in ("strategy", "seed", "data"):
            if self.info.get(key) is not None:
                parts.append(f"{key}={self.info[key]}")
        return f"<Run: {', '.join(parts)}>"

    def to_frame(self) -> Any:
        """Return the rounds as a data frame.

        Returns
        -------
        frame : pandas.DataFrame
            One row per round: `round`, `n_labeled`, each metric, `fit_seconds`,
            `query_seconds`, `cost`, `queried` and `refused` (lists).

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns: dict[str, Any] = {
            "round": np.arange(len(self.rounds)),
            "n_labeled": self.n_labeled,
            **{scoring: self.curve(scoring) for scoring in self.score_names},
        }
        for key in ("fit_seconds", "query_seconds", "cost", "queried", "refused"):
            columns[key] = [record[key] for record in self.rounds]
        return make_frame(columns)

    def to_dict(self) -> dict:
        """Return the record as plain lists, numbers and strings.

        Returns
        -------
        record : dict
            A dict for `json.dumps` and `from_dict`; NaN becomes None.
        """
        return plain(
            {
                "format": _FORMAT,
                "version": _VERSION,
                "rounds": self.rounds,
                "info": self.info,
                "ledger": self.ledger,
                "final_scores": self.final_scores,
                "stopped_by": self.stopped_by,
            }
        )

    @classmethod
    def from_dict(cls, record: dict) -> Self:
        """Return the run of a dict from `to_dict`.

        Parameters
        ----------
        record : dict
            A dict that `to_dict` returned.

        Returns
        -------
        run : Run

        Raises
        ------
        ValueError
            If the dict is not such a record, or has a later format.
        """
        if not isinstance(record, dict) or record.get("format") != _FORMAT:
            kind = type(record).__name__
            got = record.get("format") if isinstance(record, dict) else f"a {kind}"
            raise ValueError(
                f"'record' must be a dict with the format {_FORMAT!r}, as "
                f"Run.to_dict() gives it; got {brief(got)}."
            )
        if record.get("version") != _VERSION:
            raise ValueError(
                f"'record' has the version {record.get('version')!r}, and this "
                f"skactive reads version {_VERSION}. Read it with the skactive that "
                "wrote it."
            )
        missing = [key for key in _FIELDS if key not in record]
        if missing:
            raise ValueError(f"'record' is incomplete: it lacks {missing}.")
        return cls(**{key: record[key] for key in _FIELDS})

    @validate_params({"path": [str, os.PathLike]})
    def to_json(self, path: str | os.PathLike) -> None:
        """Write the record to a JSON file, completely or not at all.

        Parameters
        ----------
        path : str or path-like
            The file.
        """
        if not Path(path).absolute().parent.is_dir() or Path(path).is_dir():
            raise FileNotFoundError(
                "'path' must be a file in a folder that exists, got "
                f"{os.fspath(path)!r}. Make the folder, or pass another path."
            )
        text = json.dumps(self.to_dict(), allow_nan=False)
        write_atomic(path, f"{text}\n".encode())

    @classmethod
    @validate_params({"path": [str, os.PathLike]})
    def from_json(cls, path: str | os.PathLike) -> Self:
        """Read a file written by `to_json`.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        run : Run

        Raises
        ------
        ValueError
            If the file does not hold a run.
        """
        if not Path(path).is_file():
            raise FileNotFoundError(
                f"'path' must be a file that Run.to_json wrote, got "
                f"{os.fspath(path)!r}, which does not exist or is no file."
            )
        try:
            return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except ValueError as exc:
            raise ValueError(f"{str(path)!r} holds no run: {exc}") from exc


def _timeless(value):
    """Return a record without its seconds and versions."""
    if isinstance(value, dict):
        return {
            key: _timeless(item)
            for key, item in value.items()
            if key not in ("ledger", "versions") and not key.endswith("seconds")
        }
    return [_timeless(item) for item in value] if isinstance(value, list) else value
