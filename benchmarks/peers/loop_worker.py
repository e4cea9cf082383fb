"""One loop of one library on one seed, in a process of its own.

    python -m peers.loop_worker LIBRARY PROBLEM SEED RESULT

All libraries are driven by `play`, on one thread. What counts is what happens within
the phases of the ledger; importing, scoring and the features of the test texts do not.
The result is a file of JSON. After each round what there is so far goes to a file
next to it; after a kill the loop goes on from there, with the labels and the seconds of
the finished rounds, and "resumed" says how often.
"""

import importlib
import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from .loop_problem import Ledger, LoopProblem

# The file of each library's loop, and the packages whose versions are reported.
LIBRARIES = {
    "skactive": ("loop_skactive", ["skactive", "transformers"]),
    "small-text": ("loop_small_text", ["small-text", "transformers"]),
    "modAL": ("loop_modal", ["modAL-python", "sentence-transformers"]),
    "scikit-activeml": (
        "loop_scikit_activeml",
        ["scikit-activeml", "sentence-transformers"],
    ),
    "baal": ("loop_baal", ["baal", "sentence-transformers"]),
    "skactive, default": ("loop_default", ["skactive", "transformers"]),
    "skactive, frozen": ("loop_frozen", ["skactive", "transformers"]),
    "SetFit": ("loop_setfit", ["setfit", "sentence-transformers"]),
    "small-text, SetFit": ("loop_small_text_setfit", ["small-text", "setfit"]),
}
EVERYWHERE = ["scikit-learn", "torch", "numpy"]


def play(loop, problem, seed, path=None):
    """Label by the library, with the known labels in place of a person.

    Parameters
    ----------
    loop : object
        With `prepare(texts)`, `train(positions, labels)` of those that are new,
        `ask(n)`, `predict(texts)` and `finish()`, which trains the model that is kept
        and returns whether it did.
    problem : LoopProblem
    seed : int
    path : Path or None
        Where to keep the finished rounds.

    Returns
    -------
    record : dict
    """
    ledger, labels = Ledger(), np.asarray(problem.labels)
    asked, curve, seconds, resumed = [], [], [], 0
    picks = np.asarray(problem.initial[seed])

    def score():
        predicted = np.asarray(loop.predict(problem.test_texts))
        return float(np.mean(predicted == problem.test_labels))

    def describe():
        kept = {"asked": asked, "curve": curve, "seconds": seconds}
        return {**kept, "resumed": resumed, **vars(ledger)}

    if path is not None and path.exists():
        done = json.loads(path.read_text(encoding="utf-8"))
        asked, curve, resumed = done["asked"], done["curve"], done["resumed"] + 1
        seconds = done["seconds"]
        ledger.wall, ledger.cpu, ledger.load = done["wall"], done["cpu"], done["load"]
        loop.prepare(problem.texts)
        known, picks = asked, np.asarray(done["picks"])
    else:
        with ledger.phase("precomputation"):
            loop.prepare(problem.texts)
        known = []
    while True:
        new = np.r_[known, picks].astype(int)  # after a kill, new is all that is known
        known = []
        with ledger.phase("fit"):
            loop.train(new, labels[new])
        asked += picks.tolist()
        curve.append([len(asked), score()])
        seconds.append(round(sum(ledger.cpu.values()), 2))
        print(*curve[-1], round(seconds[-1]), file=sys.stderr)
        if len(curve) > len(problem.steps):
            break
        with ledger.phase("query"):
            picks = np.asarray(loop.ask(problem.steps[len(curve) - 1]))
        if path is not None:
            write({**describe(), "picks": picks.tolist()}, path)
    with ledger.phase("final_training"):
        kept = loop.finish()
    final = score() if kept else curve[-1][1]
    return {**describe(), "final": final, "load": float(np.mean(ledger.load))}


def write(record, path):
    """Write JSON, whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record), encoding="utf-8")
    os.replace(part, path)


def find_versions(packages):
    """Name the packages, and how each is installed."""
    found = {"Python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main():
    library, problem, seed, result = sys.argv[1:]
    module, packages = LIBRARIES[library]
    problem, seed = LoopProblem.read(Path(problem)), int(seed)
    path = Path(result)
    rounds = path.with_suffix(".rounds")
    Loop = importlib.import_module(f".{module}", __package__).Loop
    record = {
        "library": library,
        "seed": seed,
        **play(Loop(problem, seed), problem, seed, rounds),
        "versions": find_versions(packages + EVERYWHERE),
    }
    write(record, path)
    rounds.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
