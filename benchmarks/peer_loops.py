"""The same labeling loop in skactive, small-text, modAL, scikit-activeml and baal.

    SKACTIVE_DATA=.../data python benchmarks/peer_loops.py --environments DIR --page
    python benchmarks/peer_loops.py --scale smoke           # seconds, on docstrings
    python benchmarks/peer_loops.py --scale paper --device cuda --environments DIR
    python benchmarks/peer_loops.py --rebuild --page        # the tables again

All get the same pool and test texts, weights of the encoder, initial labels for each
seed, budget and number of tokens. skactive runs PRepAL: a logistic regression on fixed
features labels, the encoder is fine-tuned once. small-text fine-tunes the encoder in
every round. The others have no encoders: they train a light model on features that
sentence-transformers made. benchmarks/peers says how each is called.

A virtual environment for each peer is made in --environments where it is not there yet;
--python names one interpreter for all peers instead. Without both, those run whose
packages can be imported here. Each loop is a process of its own on one thread. --out
keeps the finished loops, one file for each. If a loop fails, no page is written: run
the command again, or name the other libraries with --peers. Seconds count what happens
in the phases of the ledger, on the clock and of the processor: the latter tell more on
a busy machine.

At the cpu scale: AG News, all-MiniLM-L6-v2, 64 tokens, a pool of 2,000, 50 labels and
10 rounds of 50; the paper scale has a pool of 10,000, 128 tokens and BERT.

Options:
    --peers NAME...        by default all of them
    --environments FOLDER  of the peers'
    --python FILE          one interpreter for all peers
"""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from _harness import ONE_THREAD, publish, settle
from joblib import Parallel, delayed
from papers.common import load
from peers.environments import PACKAGES, make_environment
from peers.loop_problem import LoopProblem
from peers.loop_skactive import run_prepal
from peers.loop_tables import OURS, draw, make_tables

# What has to be importable for a peer to run.
IMPORTS = {
    "small-text": ("small_text", "transformers"),
    "modAL": ("modAL", "sentence_transformers"),
    "scikit-activeml": ("skactiveml", "sentence_transformers"),
    "baal": ("baal", "sentence_transformers"),
}


@dataclass(frozen=True)
class Cell:
    """One loop: whose, with which seed, and what differs from the problem of all."""

    library: str
    seed: int
    changes: dict = field(default_factory=dict)

    @property
    def setting(self):
        return ",".join(f"{name}={value}" for name, value in self.changes.items())

    @property
    def name(self):
        return "-".join(filter(None, [self.library, self.setting, str(self.seed)]))


def make_problem(settings, n_pool, n_initial=50, **params):
    """Draw the texts, and for each seed the labels to begin with."""
    (name,) = settings.data
    X, y, X_test, y_test = load(name, n_pool, settings.n_test)
    _, codes = np.unique(np.r_[y, y_test], return_inverse=True)
    initial = [
        np.random.default_rng(seed).permutation(len(X))[:n_initial].tolist()
        for seed in range(settings.seeds)
    ]
    return LoopProblem(
        texts=X.tolist(),
        labels=codes[: len(y)].tolist(),
        test_texts=X_test.tolist(),
        test_labels=codes[len(y) :].tolist(),
        initial=initial,
        model=settings.model,
        device="cpu" if settings.device == "auto" else settings.device,
        **params,
    )


def find_pythons(settings):
    """Interpreters by library."""
    pythons = {OURS: sys.executable}
    for peer in getattr(settings, "peers", PACKAGES):
        if python := getattr(settings, "python", None):
            # Not resolved: the link is what makes the environment.
            pythons[peer] = Path(python).absolute()
        elif folder := getattr(settings, "environments", None):
            pythons[peer] = make_environment(peer, folder)
        elif all(map(importlib.util.find_spec, IMPORTS[peer])):
            pythons[peer] = sys.executable
        else:
            print(f"{peer} is not installed here and left out", file=sys.stderr)
    return pythons


def run(cell, python, settings):
    """Run a loop, or read what it left; an "error" where it failed."""
    folder = settings.out.absolute()
    path = folder / f"{cell.name}.json"
    if not path.exists():
        problem = folder / f"problem{cell.setting}.json"
        worker = [python, "-m", "peers.loop_worker", cell.library, problem]
        with open(folder / f"{cell.name}.log", "w+", encoding="utf-8") as log:
            done = subprocess.run(
                [*worker, str(cell.seed), path],
                cwd=Path(__file__).parent,
                env={**os.environ, **ONE_THREAD},
                stderr=log,
            )
            log.seek(0)
            said = log.read().strip().split("\n")[-1]
        print(f"{cell.name}: {said}", file=sys.stderr, flush=True)
        if done.returncode:
            return {"library": cell.library, "seed": cell.seed, "error": said}
    return json.loads(path.read_text(encoding="utf-8"))


def run_all(settings):
    """Run all loops, those of a seed one after another, so that they meet the same."""
    problems = {"": {}} | {Cell("", 0, c).setting: c for c, _ in settings.beside}
    for setting, changes in problems.items():
        problem = make_problem(settings, **settings.problem | changes)
        problem.write(settings.out / f"problem{setting}.json")
    pythons = find_pythons(settings)
    cells = []
    fewer = getattr(settings, "fewer", {})
    for seed in range(settings.seeds):
        asked = [name for name in pythons if seed < fewer.get(name, settings.seeds)]
        cells += [Cell(library, seed) for library in asked]
        beside = [changes for changes, seeds in settings.beside if seed < seeds]
        cells += [Cell(OURS, seed, changes) for changes in beside]
    kept = list(settings.kept)
    done = {(r["library"], r["setting"], r["seed"]) for r in kept}
    cells = [c for c in cells if (c.library, c.setting, c.seed) not in done]
    work = Parallel(n_jobs=settings.n_jobs, prefer="threads")
    found = work(delayed(run)(c, pythons[c.library], settings) for c in cells)
    for cell, record in zip(cells, found, strict=True):
        finished(record).pop("queried", None)
        kept.append({"setting": cell.setting, **record})
    return kept


def finished(record):
    """Return what a loop left; stop where it failed."""
    if "error" in record:
        raise SystemExit(f"{record['library']} has failed: {record['error']}")
    return record


def check(records, settings, tables):
    """Stop unless all loops are whole, are in the tables, and ours is PRepAL."""
    for record in records:
        begin = f"| {record['library']} |"
        for title in ("scores", "seconds", "versions"):
            assert any(row.startswith(begin) for row in tables[title]), title
        scores = [record["final"], *(score for _, score in record["curve"])]
        assert len(scores) == settings.problem["rounds"] + 2
        assert all(0 <= score <= 1 for score in scores)
        for seconds in (record["wall"], record["cpu"]):
            assert min(seconds.values()) >= 0
            assert 0 < sum(seconds.values()) < 600
    ours = next(record for record in records if record["library"] == OURS)
    same = run_prepal(LoopProblem.read(settings.out / "problem.json"), ours["seed"])
    assert same.scores.tolist() == [score for _, score in ours["curve"]]
    assert same.final_scores["accuracy"] == ours["final"]


def main():
    settings = settle(__doc__, __file__)
    publish(settings, "peers", run_all, draw, make_tables, check)


if __name__ == "__main__":
    main()
