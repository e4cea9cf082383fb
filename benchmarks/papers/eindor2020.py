"""Ein-Dor et al.: seven ways to choose texts for BERT, in three scenarios.

    SKACTIVE_DATA=.../data python benchmarks/papers/eindor2020.py --page
    python benchmarks/papers/eindor2020.py --scale smoke      # seconds, on docstrings
    python benchmarks/papers/eindor2020.py --scale paper --device cuda
    python benchmarks/papers/eindor2020.py --rebuild --page   # the tables again

An encoder is fine-tuned after every batch of labels, from its pretrained weights. Two
classes, one of them wanted. Balanced: random first labels. Imbalanced: the wanted
class is a tenth of pool and test texts; first labels are a fair sample of it, and as
many random texts that are taken for the other class without a look. Practical: the
same, but the sample comes from a search for keywords. Least confidence (LC), dropout
at prediction, an ensemble of perceptrons (PE), expected gradient length (EGL),
Core-Set and discriminative active learning (DAL) against random choice: scores, run
time, and how diverse and representative the batches are.

Available is a summary of the paper, which has its claims but not its figures, and data
sets of which two (AG News, CoLA) are the paper's. Sizes of the paper scale are those
of its published program: 100 first labels (and 100 assumed ones), five rounds of 50,
five epochs at 5e-5 in batches of 50, 100 tokens, and ten passes of dropout through the
whole network. The program keeps the best epoch by a development set; here the last one
is kept. Five seeds are ours: how many the paper took, neither says.

At the cpu scale the last of MiniLM's six layers and the head are trained, which lets
what lies below be computed once. Dropout is that of the head. eindor2020.toml has the
sizes.
"""

from functools import partial
from itertools import product

import numpy as np
from common import harness
from eindor2020_cells import (
    MEASURES,
    SCENARIOS,
    list_pairs,
    make_model,
    make_opener,
    make_strategies,
    read_pair,
    run_cell,
)
from eindor2020_scores import share
from eindor2020_tables import draw, make_tables

ALIKE = ("sizes", "n_initial", "schedule", "training", "n_draws")  # in all cells


def make_grid(settings):
    """List the loops: pairs of data set and scenario, seeds, strategies."""
    sizes = {name: getattr(settings, name) for name in ALIKE}
    return [
        {"data": data, "scenario": scenario, "strategy": strategy, "seed": seed} | sizes
        for (data, scenario), seed, strategy in product(
            list_pairs(settings.data),
            range(settings.seeds),
            make_strategies(settings.n_draws),
        )
    ]


def check(records, settings, tables):
    """Fail where the shape of the results is not what the page needs."""
    names = list(make_strategies(1))
    assert len(records) == 3 * 2 * 7, len(records)
    assert {r["scenario"] for r in records} == set(SCENARIOS)
    assert {r["strategy"] for r in records} == set(names)
    b, n_rounds = settings.schedule["batch_size"], settings.schedule["n_rounds"]
    for r in records:
        assert r["n_labeled"] == [8 + i * b for i in range(n_rounds + 1)], r
        for key in ("accuracy", "f1"):
            assert len(r[key]) == n_rounds + 1, r
            assert all(0 <= score <= 1 for score in r[key]), r
        for key in (*MEASURES, "query_seconds"):
            assert len(r[key]) == n_rounds, r
            assert np.isfinite(r[key]).all(), r
            assert min(r[key]) >= 0, r
        assert 0 <= r["wanted"] <= 1, r
        assert 0 < r["wanted_test"] < 1, r
        assert share(r) > 0, r
        rare = r["scenario"] != "balanced"
        assert not rare or abs(r["wanted_pool"] - settings.sizes["prior"]) < 0.1, r
        assert r["scenario"] != "imbalanced" or r["wanted_first"] == 1, r
    # Within a seed all strategies begin with the same labels and the same model.
    for scenario, seed in product(SCENARIOS, (0, 1)):
        begun = {
            (r["accuracy"][0], r["f1"][0])
            for r in records
            if (r["scenario"], r["seed"]) == (scenario, seed)
        }
        assert len(begun) == 1, (scenario, seed, begun)
    assert list(tables) == [
        "summary",
        "claims",
        "leads",
        *SCENARIOS,
        "batches",
        "times",
    ]
    assert all(len(tables[scenario]) == 2 + 7 + 2 for scenario in SCENARIOS)
    check_paper(settings)


def check_paper(settings):
    """Construct what the paper's own scale would run, though not here."""
    paper = harness.settle_paper(__doc__, __file__, settings)
    assert len(make_grid(paper)) == 20 * 5 * 7  # CoLA has no keywords
    tuned = make_model(paper).get_params()
    expected = {"model": "bert-base-uncased", "freeze": 0, "lr": 5e-5, "max_epochs": 5}
    expected |= {"batch_size": 50, "max_length": 100, "mc_dropout": "full"}
    assert {k: tuned[k] for k in expected} == expected, tuned


def run(settings):
    """Run what is not finished; add how frequent the wanted class is in tests.

    Raises
    ------
    ValueError
        If what is finished was run on other texts than the data sets now give.
    """
    function = partial(run_cell, settings, make_opener(settings))
    records = harness.run_missing(function, make_grid(settings), settings, *ALIKE)
    for r in records[len(settings.kept) :]:
        _, y, _, y_test = read_pair(r["data"], r["scenario"], **settings.sizes)
        if not np.isclose(y.mean(), r["wanted_pool"]):
            raise ValueError(f"another pool than that of {r['data']}, {r['scenario']}")
        r["wanted_test"] = float(y_test.mean())
    return records


def main():
    settings = harness.settle(__doc__, __file__)
    harness.publish(settings, "eindor2020", run, draw, make_tables, check)


if __name__ == "__main__":
    main()
