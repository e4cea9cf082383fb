"""One loop of one library on one seed, in a process of its own.

    python -m peers.loop_worker LIBRARY PROBLEM SEED RESULT

All libraries are driven by `play`, on one thread. What counts is what happens within
the phases of the ledger; importing, scoring and the features of the test texts do not.
The result is a file of JSON.
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

# The file of each library's loop, and the packages whose versions are told.
LIBRARIES = {
    "skactive": ("loop_skactive", ["skactive", "transformers"]),
    "small-text": ("loop_small_text", ["small-text", "transformers"]),
    "modAL": ("loop_modal", ["modAL-python", "sentence-transformers"]),
    "scikit-activeml": (
        "loop_scikit_activeml",
        ["scikit-activeml", "sentence-transformers"],
    ),
    "baal": ("loop_baal", ["baal", "sentence-transformers"]),
}
EVERYWHERE = ["scikit-learn", "torch", "numpy"]


def play(loop, problem, seed):
    """Label by the library, with the known labels in place of a person.

    Parameters
    ----------
    loop : object
        With `prepare(texts)`, `train(positions, labels)` of those that are new,
        `ask(n)`, `predict(texts)` and `finish()`, which trains the model that is kept
        and returns whether it did.
    problem : LoopProblem
    seed : int

    Returns
    -------
    record : dict
    """
    ledger, labels = Ledger(), np.asarray(problem.labels)
    asked, curve = [], []

    def score():
        predicted = np.asarray(loop.predict(problem.test_texts))
        return float(np.mean(predicted == problem.test_labels))

    with ledger.phase("precomputation"):
        loop.prepare(problem.texts)
    picks = np.asarray(problem.initial[seed])
    for rest in reversed(range(problem.rounds + 1)):
        with ledger.phase("retraining"):
            loop.train(picks, labels[picks])
        asked += picks.tolist()
        curve.append([len(asked), score()])
        print(*curve[-1], round(sum(ledger.cpu.values())), file=sys.stderr)
        if rest:
            with ledger.phase("acquisition"):
                picks = np.asarray(loop.ask(problem.batch))
    with ledger.phase("final_training"):
        kept = loop.finish()
    return {
        "asked": asked,
        "curve": curve,
        "final": score() if kept else curve[-1][1],
        "wall": ledger.wall,
        "cpu": ledger.cpu,
        "load": float(np.mean(ledger.load)),
    }


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
    Loop = importlib.import_module(f".{module}", __package__).Loop
    record = {
        "library": library,
        "seed": seed,
        **play(Loop(problem, seed), problem, seed),
        "versions": find_versions(packages + EVERYWHERE),
    }
    part = Path(f"{result}.part")
    part.write_text(json.dumps(record), encoding="utf-8")
    os.replace(part, result)


if __name__ == "__main__":
    main()
