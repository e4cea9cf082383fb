"""Grießhaber, Maucher, Vu: fine-tuning BERT on few labels, chosen by BALD.

    SKACTIVE_DATA=.../data python benchmarks/papers/griesshaber2020.py --page
    python benchmarks/papers/griesshaber2020.py --scale smoke      # on docstrings
    python benchmarks/papers/griesshaber2020.py --scale paper --device cuda
    python benchmarks/papers/griesshaber2020.py --rebuild --page   # the tables again

An encoder under a CNN head is trained anew in every round. BALD, with 50 draws of the
head's dropout, chooses the labels, or chance does. With BALD the first or last layers
are frozen, 3 and 6 of 12, or none. Made from this: accuracy at the last round and
width of the band over seeds by what is frozen (tables 1 and 2), all labels against a
tenth (figure 2), curves of both strategies (figure 3), how far training moves each
layer (figure 4), curves by what is frozen (figure 5), and how unequal the classes
become among the labels (table 3).

The cpu scale has the paper's four data sets. The encoder is all-MiniLM-L6-v2, and 3
and 6 of 12 layers become 2 and 3 of its 6. There are 3 rounds of 80 labels instead of 9
of 100. An encoder this small learns from so few texts with larger rates than BERT.

The paper scale has the paper's encoder, rounds and labels. The paper's pools have
20,000 texts, but the train files here are samples: QNLI has 2,000 texts, MNLI 9,888,
SNLI 19,999, and these are the pools; only SST-2 has 20,000. Figure 2 is of those files
too. The paper does not name its rate, batch size and maximal length; those of this
scale are ours, after Devlin et al.
"""

from functools import partial
from itertools import product

import numpy as np
from common import depth, harness
from griesshaber2020_cells import freeze_of, make, run_cell
from griesshaber2020_figures import draw
from griesshaber2020_tables import make_tables

FREEZES = [0, 3, -3, 6, -6]  # of 12 layers


def seeds_of(data, settings):
    """Count the seeds of the loops with nothing frozen."""
    more = getattr(settings, "more_seeds", {})
    return max(settings.seeds, more.get(data, 0))


def make_grid(settings):
    """List what to run: BALD with each freezing, chance with none; shares; pools."""
    common = {"sizes": settings.sizes, "training": settings.training}
    grid = []
    for data in settings.data:
        for seed in range(seeds_of(data, settings)):
            cell = {"data": data, "seed": seed, **common}
            # Of the other seeds, only loops with nothing frozen.
            freezes = FREEZES if seed < settings.seeds else [0]
            for strategy, freeze in [*(("bald", f) for f in freezes), ("random", 0)]:
                what = {"part": "loop", "strategy": strategy, "freeze": freeze}
                grid.append({**cell, **what, "schedule": settings.schedule})
        for seed, share in product(range(settings.share_seeds), settings.shares):
            what = {"part": "share", "share": share, "n_whole": settings.n_whole}
            grid.append({"data": data, "seed": seed, **common, **what})
        what = {"part": "pool", "data": data, "seed": 0}
        grid.append({**what, **common, "schedule": settings.schedule})
    return grid


def check(records, settings, tables):
    """Fail where the shape of the results is not what the page needs."""
    loops = [r for r in records if r["part"] == "loop"]
    shares = [r for r in records if r["part"] == "share"]
    pools = [r for r in records if r["part"] == "pool"]
    runs = len(settings.data) * settings.seeds
    unfrozen = sum(seeds_of(data, settings) for data in settings.data)
    assert len(loops) == (len(FREEZES) - 1) * runs + 2 * unfrozen, len(loops)
    n_shares = len(settings.data) * settings.share_seeds * len(settings.shares)
    assert len(shares) == n_shares, len(shares)
    assert [r["data"] for r in pools] == settings.data, pools
    assert {(r["strategy"], r["freeze"]) for r in loops} == {
        *(("bald", freeze) for freeze in FREEZES),
        ("random", 0),
    }
    for r in loops:
        assert r["n_labeled"] == [6, 14], r["n_labeled"]
        scores = np.array(r["scores"])
        assert np.isfinite(scores).all()
        assert ((scores >= 0) & (scores <= 1)).all()
        assert 0 <= r["imbalance"][-1] <= 14, r["imbalance"]
        moved, part = np.array(r["changes"]["mean"]), np.array(r["changes"]["part"])
        # Frozen layers stay exactly where they were, all others move.
        layers = np.flatnonzero((part == "encoder")[1:]) + 1
        n = freeze_of(r["freeze"], len(layers))
        frozen = layers[:n] if n > 0 else layers[n:] if n < 0 else []
        assert set(np.flatnonzero(moved == 0)) == {*([0] if n > 0 else []), *frozen}
    # The same labels to begin with, and the same first model.
    first = {(r["data"], r["seed"], r["scores"][0]) for r in loops if r["freeze"] == 0}
    assert len(first) == unfrozen, first
    assert [r["n_labeled"] for r in shares[:2]] == [6, 30]
    for r in pools:
        assert (sum(r["classes"]), sum(r["test_classes"])) == (40, 20), r
        assert 0 <= r["cut"] <= 1, r
    frozen = [line.split(" | ")[:2] for line in tables["accuracies"]]
    assert ["| 0", "0"] in frozen, frozen
    assert ["| -6", "-3"] in frozen, frozen
    check_paper(settings)


def check_paper(settings):
    """Construct what the paper's own scale would run, though not here."""
    paper = harness.settle_paper(__doc__, __file__, settings)
    grid = make_grid(paper)
    assert len(grid) == 4 * (3 * (6 + 2) + 1), len(grid)
    counts = grid[0]["schedule"]
    assert counts["n_initial"] + counts["n_rounds"] * counts["batch_size"] == 910
    assert (counts["initial"], counts["pool_size"]) == ("first", 20_000)
    tuned = make(paper, freeze_of(-3, 12), 0).get_params()
    expected = {"model": "bert-base-uncased", "head": "cnn", "freeze": -3, "lr": 2e-5}
    expected |= {"mc_dropout": "head", "n_draws": 50, "dropout": 0.1, "max_epochs": 3}
    assert {k: tuned[k] for k in expected} == expected, tuned


def run(settings):
    """Run what is not finished."""
    function = partial(run_cell, settings)
    alike = ("sizes", "training", "schedule", "n_whole")
    return harness.run_missing(function, make_grid(settings), settings, *alike)


def main():
    settings = harness.settle(__doc__, __file__)
    settings.freezes = FREEZES
    settings.depth = depth(settings.model)
    harness.publish(settings, "griesshaber2020", run, draw, make_tables, check)


if __name__ == "__main__":
    main()
