"""Seconds of single rounds of small-text's loop, where a whole loop takes too long.

    SKACTIVE_DATA=.../data python benchmarks/peer_rounds.py --environments DIR --out DIR
    python benchmarks/peer_rounds.py --scale smoke    # seconds, ours in place of it

The pool and the settings are those of `papers/prepal.py --scale labels`: 10,000 texts,
50 labels and 39 rounds of 50. A round trains on its labels and asks for 50 more. Each
is a process of peer_loops.py that trains, asks and trains once more; the seconds of its
two trainings are shared out by their labels. Rounds between are interpolated linearly.
Writes rounds.json to --out, which prepal.py reads with --peer-rounds.

Options:
    --environments FOLDER  of small-text's
"""

import json
import sys
from argparse import Namespace

import numpy as np
from _harness import settle
from peer_loops import OURS, Cell, find_pythons, finished, make_problem
from peer_loops import run as run_cell


def measure(settings, data, library, python):
    """Processor seconds of some rounds of a data set: training and query."""
    first, batch = (settings.problem[name] for name in ("n_initial", "batch"))
    rounds = []
    for i in settings.rounds:
        n = first + i * batch
        cell = Cell(library, 0, {"data": data, "n_initial": n})
        problem = {**settings.problem, "n_initial": n, "rounds": 1}
        own = Namespace(**{**vars(settings), "data": [data]})
        make_problem(own, **problem).write(settings.out / f"problem{cell.setting}.json")
        cpu = finished(run_cell(cell, python, settings))["cpu"]
        fit = cpu["fit"] * n / (2 * n + batch)
        rounds.append([i + 1, n, round(fit, 2), round(cpu["query"], 2)])
    return rounds


def interpolate(rounds):
    """Sum of training and query over all rounds up to the last one that is measured."""
    number, _, fit, query = np.transpose(rounds)
    every = np.arange(1, number[-1] + 1)
    return [float(np.interp(every, number, each).sum()) for each in (fit, query)]


def main():
    settings = settle(__doc__, __file__)
    settings.peers = [] if settings.scale == "smoke" else ["small-text"]
    pythons = find_pythons(settings)
    library = OURS if settings.scale == "smoke" else "small-text"
    records = []
    for data in settings.data:
        rounds = measure(settings, data, library, pythons[library])
        fit, query = interpolate(rounds)
        records.append({"data": data, "library": library, "rounds": rounds})
        records[-1] |= {"fit": round(fit, 1), "query": round(query, 1)}
        print(json.dumps(records[-1]))
    (settings.out / "rounds.json").write_text(json.dumps(records), encoding="utf-8")
    if settings.scale == "smoke":
        assert all(
            s >= 0 for r in records for _, _, *spent in r["rounds"] for s in spent
        )
        assert interpolate([[1, 0, 1.0, 4.0], [3, 0, 3.0, 4.0]]) == [6.0, 12.0]
        print("smoke: passed", file=sys.stderr)


if __name__ == "__main__":
    main()
