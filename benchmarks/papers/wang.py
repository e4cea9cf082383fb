"""Wang: training only the last layers of BERT against training all of them.

    SKACTIVE_DATA=.../data python benchmarks/papers/wang.py --page
    python benchmarks/papers/wang.py --scale smoke      # seconds, on docstrings
    python benchmarks/papers/wang.py --scale paper --device cuda
    python benchmarks/papers/wang.py --rebuild --page   # the tables again

GLUE tasks with their metrics: F1 for MRPC, Spearman's rho for STS-B, accuracy for the
others. A tenth of the training part is for validation; training ends when its score
(accuracy, or R² of the regression) has gained less than a threshold for two epochs in a
row. Every epoch's model is scored on the dev set, outside the clock. Two learning
rates; each setting is judged at the one that is better on the validation part.

The paper trains the last 1 to 4 of 12 layers, one twelfth to a third of them. Of the 6
layers of MiniLM, at the cpu scale, the last 1 and 2 are the same shares as the last 2
and 4 there; the last 3 are half of all, which the paper does not try. The lower rate is
1e-4 in place of 2e-5, with which a small encoder and few texts would stop at chance;
the higher is 1e-3 as in the paper, and the rate of the new head everywhere. Tasks have
hundreds of texts, also those that are large in the paper. SNLI, of which a small
encoder learns something from so few, stands in for MNLI.

Frozen layers are computed once. What an epoch takes that runs them each time, as in
the paper, is measured apart, on the tasks of which something was learned.

`--scale paper` takes batches of 1, as the paper says it did, and the training files at
hand: those of QNLI and MNLI are samples, and QQP is missing.
"""

from argparse import Namespace
from itertools import product

import numpy as np
from common import depth, harness
from wang_cells import make, run_cell
from wang_tables import draw, make_tables
from wang_values import LARGE, TASKS, counted

from skactive.bert import BertRegressor

FIRST_SEEDS = 3  # that show whether a task is learned


def make_grid(settings, part, data, seeds, rates):
    """List runs; `rates` names those of each task and setting."""
    return [
        {
            "part": part,
            "data": name,
            "n_last": n_last,
            "lr": lr,
            "seed": seed,
            "size": settings.sizes.get(name, settings.size),
            "max_epochs": settings.max_epochs,
        }
        for name in data
        for seed in seeds
        for n_last in (None, *settings.last)
        for lr in rates[name, n_last]
    ]


def list_settings(settings):
    return list(product(settings.data, (None, *settings.last)))


def choose_rates(records, settings):
    """Take the rate with the better validation score, for each task and setting."""
    found = {}
    for r in records:
        if r["part"] == "main" and r["seed"] < settings.rate_seeds:
            scores = found.setdefault((r["data"], r["n_last"]), {})
            scores.setdefault(r["lr"], []).append(max(r["valid_scores"]))
    return {
        setting: max(scores, key=lambda lr: np.mean(scores[lr]))
        for setting, scores in found.items()
    }


def run(settings):
    """Run both rates with the first seed, and the better one with the others.

    After the first seeds, only tasks go on of which something was learned: with more
    seeds at the better rate, with some seeds at the other one, and with an epoch of
    each setting that runs every layer.
    """

    def function(**cell):
        return run_cell(settings, **cell)

    records = list(settings.kept)

    def go(part, data, seeds, rates):
        grid = harness.missing(make_grid(settings, part, data, seeds, rates), records)
        records.extend(harness.run_grid(function, grid, settings.out, settings.n_jobs))

    both = dict.fromkeys(list_settings(settings), settings.rates)
    seeds, first = range(settings.seeds), min(settings.seeds, FIRST_SEEDS)
    go("main", settings.data, range(settings.rate_seeds), both)
    settings.chosen = choose_rates(records, settings)
    rates = {k: [lr] for k, lr in settings.chosen.items()}
    go("main", settings.data, range(first), rates)
    counts = counted(records, settings)
    go("main", counts, seeds, rates)
    go("main", counts, range(min(settings.seeds, settings.other_rate_seeds)), both)
    go("plain", counts, seeds, rates)
    return records


def check(records, settings, tables):
    """Fail where the shape of the results is not what the page needs."""
    main = [r for r in records if r["part"] == "main"]
    n = len(settings.data) * (1 + len(settings.last))
    assert len(main) == n * (settings.other_rate_seeds + settings.seeds), len(main)
    assert len(records) - len(main) == n * settings.seeds, len(records)
    for r in main:
        n_epochs = len(r["seconds"])
        assert 1 <= n_epochs <= settings.max_epochs
        assert len(r["epoch_scores"]) == len(r["cpu_seconds"]) == n_epochs
        # The weights of one epoch are those that training ended with.
        assert any(np.isclose(r["score"], r["epoch_scores"]))
        assert all(-1 <= score <= 1 for score in r["epoch_scores"])
        assert (r["share"] == 1) == (r["n_last"] is None)
    assert {TASKS[r["data"]] in LARGE for r in main} == {True, False}
    assert len(tables) == 5 + 3 * len(settings.data), list(tables)
    assert len(tables["rates"]) == 2 + 3 * len(settings.rates) + 1
    assert len(tables["means"]) == 2 + 2 * len(settings.last)
    # Nothing counts that is no better than the trivial answer; a gain of 2 points does.
    strict = Namespace(**vars(settings) | {"all_count": False})
    for gain, counts in ((0, []), (0.02, settings.data)):
        shifted = [{**r, "score": r.get("trivial", 0) + gain} for r in records]
        assert counted(shifted, strict) == counts
    # What the paper's own scale would train, though it is not run here.
    paper = harness.settle_paper(__doc__, __file__, settings)
    both = dict.fromkeys(list_settings(paper), paper.rates)
    grid = make_grid(paper, "main", paper.data, range(paper.seeds), both)
    assert len(grid) == 7 * 2 * 5 * 2
    tuned = make("stsb", 4, 1e-3, 1, paper, 12)
    expected = {"model": "bert-base-uncased", "freeze": 8, "lr": 1e-3, "batch_size": 1}
    assert isinstance(tuned, BertRegressor)
    assert {k: tuned.get_params()[k] for k in expected} == expected


def choose_and_make_tables(records, settings):
    """Make the tables of the better rates."""
    settings.chosen = choose_rates(records, settings)
    return make_tables(records, settings)


def choose_and_draw(records, settings):
    """Draw the runs with the better rates."""
    settings.chosen = choose_rates(records, settings)
    draw(records, settings)


def main():
    settings = harness.settle(__doc__, __file__)
    settings.depth = depth(settings.model)
    harness.publish(
        settings, "wang", run, choose_and_draw, choose_and_make_tables, check
    )


if __name__ == "__main__":
    main()
