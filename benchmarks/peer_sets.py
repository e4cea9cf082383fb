"""The same labeling loop on five data sets: skactive, small-text, SetFit and others.

    SKACTIVE_DATA=.../data python benchmarks/peer_sets.py --environments DIR --page
    python benchmarks/peer_sets.py --scale smoke       # seconds, ours only
    python benchmarks/peer_sets.py --rebuild --page    # the tables again

All get the same pool and test texts, the same weights of the encoder, the same random
labels to begin with, and the same numbers of labels. skactive runs with its defaults,
and with a frozen encoder. small-text trains SetFit in every round. SetFit alone gets
random labels. modAL and scikit-activeml train a logistic regression on fixed features,
the means of the tokens' states: at unit length, its default is too regularized.
benchmarks/peers says how each is called. Environments for the peers are made in
--environments where they are not there yet. Each loop is a process of one thread.
peer_sets.toml has the libraries, their seeds, and the numbers of labels.

Options:
    --environments FOLDER  of the peers', by default in --out
"""

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from papers.common import load
from peers.environments import make_environment
from peers.loop_problem import LoopProblem

OURS, FROZEN = "skactive, default", "skactive, frozen"
SHARED = "small-text-setfit"  # the environment of both
ENVIRONMENTS = {"SetFit": SHARED, "small-text, SetFit": SHARED}


def make_problem(settings, data, seed, sizes):
    """Draw the texts of a set, and the labels that a seed begins with."""
    X, y, X_test, y_test = load(data, sizes["n_pool"], sizes["n_test"])
    _, codes = np.unique(np.r_[y, y_test], return_inverse=True)
    first, *_ = sizes["labels"]
    order = np.random.default_rng(seed).permutation(len(X))
    return LoopProblem(
        texts=X.tolist(),
        labels=codes[: len(y)].tolist(),
        test_texts=X_test.tolist(),
        test_labels=codes[len(y) :].tolist(),
        initial=[order[:first].tolist()],
        model=str(settings.model),
        batches=np.diff(sizes["labels"]).tolist(),
        max_length=sizes["max_length"],
        normalize=False,
    )


def run_cell(settings, *, data, library, seed, sizes):
    """Scores and processor seconds at each number of labels."""
    python, paths = sys.executable, [str(Path(__file__).parent)]
    if not library.startswith("skactive"):
        environment = ENVIRONMENTS.get(library, library)
        folder = (
            getattr(settings, "environments", None) or settings.out / "environments"
        )
        python = make_environment(environment, Path(folder))
    else:
        paths += filter(None, [os.environ.get("PYTHONPATH")])
    with tempfile.TemporaryDirectory() as folder:
        problem, answer = (Path(folder) / name for name in ("problem.json", "answer"))
        make_problem(settings, data, seed, sizes).write(problem)
        own = {"PYTHONPATH": os.pathsep.join(paths), **harness.ONE_THREAD}
        subprocess.run(
            [python, "-m", "peers.loop_worker", library, problem, "0", answer],
            cwd=folder,  # SetFit writes its weights there
            env={**os.environ, **own},
            check=True,
        )
        found = json.loads(answer.read_text(encoding="utf-8"))
    return {k: found[k] for k in ("curve", "seconds", "versions")}


def run(settings):
    """Run what is not finished, a seed of all sets and libraries after another."""
    grid = [
        {
            "data": d,
            "library": library,
            "seed": seed,
            "sizes": sizes_of(settings, library),
        }
        for seed in range(settings.seeds)
        for library, seeds in settings.libraries.items()
        for d in sets_of(settings, library)
        if seed < seeds
    ]
    return harness.run_missing(partial(run_cell, settings), grid, settings, "sizes")


def sizes_of(settings, library):
    """The sizes of all, without the numbers of labels that take a library too long."""
    most = settings.most.get(library, np.inf)
    labels = [n for n in settings.sizes["labels"] if n <= most]
    return {**settings.sizes, "labels": labels}


def sets_of(settings, library):
    """The data sets that a library is run on."""
    return settings.data[: settings.sets.get(library)]


def find(records, library, **wanted):
    """Records of a library by data set and seed."""
    own = harness.select(records, by="data", library=library, **wanted)
    return {(r["data"], r["seed"]): r for r in own}


def make_tables(records, settings):
    """Mean accuracy and seconds over the sets, and what differs from skactive."""
    counts = settings.sizes["labels"]
    head = ["library", "sets", "seeds", *(f"{n} labels" for n in counts)]
    accuracy, seconds, each = [], [], []
    for library in settings.libraries:
        own, data = find(records, library), sets_of(settings, library)
        curves = {key: scores_of(r) for key, r in own.items()}
        spent = {key: np.array(r["seconds"]) for key, r in own.items()}
        seeds = len({seed for _, seed in own})
        means = by_data(curves, data)
        none = ["-"] * (len(counts) - means.shape[1])
        scores = [f"{x:.1f}" for x in means.mean(axis=0)]
        accuracy.append([library, len(data), seeds, *scores, *none])
        mean = [f"{x:.0f}" for x in by_data(spent, data).mean(axis=0)]
        seconds.append([library, len(data), seeds, *mean, *none])
        for d, row in zip(data, means, strict=True):
            each.append([d, library, *(f"{x:.1f}" for x in row), *none])
    each.sort(key=lambda row: settings.data.index(row[0]))
    ours, ours_sets = compare(OURS, records, settings)
    frozen, frozen_sets = compare(FROZEN, records, settings)
    return {
        "accuracy": harness.table(head, accuracy),
        "seconds": harness.table(head, seconds),
        "differences": ours,
        "differences_sets": ours_sets,
        "frozen": frozen,
        "frozen_sets": frozen_sets,
        "each": harness.table(["data", "library", *head[3:]], each),
        "versions": harness.table(
            ["library", "versions"],
            [
                [name, ", ".join(map(" ".join, r["versions"].items()))]
                for name in settings.libraries
                for r in [*find(records, name).values()][:1]
            ],
        ),
    }


def compare(ours, records, settings):
    """What one of ours has more than the libraries after it, with the same seeds.

    Returns a table of all sets, and one of each set with three seeds or more.
    """
    counts, rows, own = settings.sizes["labels"], [], find(records, ours)
    by_set = {}
    libraries = [*settings.libraries]
    for library in libraries[libraries.index(ours) + 1 :]:
        theirs, data = find(records, library), sets_of(settings, library)
        both = own.keys() & theirs.keys()
        pairs = {}
        for key in both:
            curve = scores_of(theirs[key])
            pairs[key] = scores_of(own[key])[: len(curve)] - curve
            by_set.setdefault((key[0], library), []).append(pairs[key])
        tests = [harness.said(gain) for gain in by_data(pairs, data).T]
        none = ["-"] * (len(counts) - len(tests))
        seeds = len({seed for _, seed in both})
        rows.append([library, len(data), seeds, *tests, *none])
    head = ["less", "sets", "seeds", *(f"{n} labels" for n in counts)]
    each = [
        [data, library, *(harness.said(gain) for gain in np.transpose(gains))]
        for (data, library), gains in sorted(by_set.items())
        if len(gains) >= 3
    ]
    return (
        harness.table(head, rows) if rows else [],
        harness.table(["data", "less", *head[3:]], each) if each else [],
    )


def scores_of(record):
    """Accuracies in percent."""
    return 100 * np.array(record["curve"])[:, 1]


def by_data(values, data):
    """Means over the seeds, a row for each data set."""
    rows = [[value for (d, _), value in values.items() if d == name] for name in data]
    return np.array([np.mean(row, axis=0) for row in rows])


def draw(records, settings):
    """Nothing: the tables are short."""


def check(records, settings, tables):
    """Fail where the shape of the results is not what the page needs."""
    assert len(records) == len(settings.data) * sum(settings.libraries.values())
    for record in records:
        counts = sizes_of(settings, record["library"])["labels"]
        assert [n for n, _ in record["curve"]] == counts
        assert all(0 <= score <= 1 for _, score in record["curve"])
        assert record["seconds"] == sorted(record["seconds"])
    assert [len(rows) for rows in tables.values()] == [4, 4, 3, 0, 0, 0, 6, 4], tables


def main():
    settings = harness.settle(__doc__, __file__)
    harness.publish(settings, "peer_sets", run, draw, make_tables, check)


if __name__ == "__main__":
    main()
