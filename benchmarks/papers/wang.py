"""Wang: training only the last layers of BERT against training all of them.

    SKACTIVE_DATA=.../data python benchmarks/papers/wang.py --page
    python benchmarks/papers/wang.py --scale smoke      # seconds, on docstrings
    python benchmarks/papers/wang.py --scale paper --device cuda
    python benchmarks/papers/wang.py --rebuild --page   # the page from its numbers

GLUE tasks with their metrics: F1 for MRPC, Spearman's rho for STS-B, accuracy for the
others. A tenth of the training part is for validation; training ends when its score
(accuracy, or R² of the regression) has gained less than a threshold for two epochs in a
row. Every epoch's model is scored on the dev set, outside the clock. Two learning
rates; each setting is judged at its better one.

The paper trains the last 1 to 4 of 12 layers, one twelfth to a third of them. Of the 6
layers of MiniLM, at the cpu scale, the last 1 and 2 are the same shares as the last 2
and 4 there; the last 3 are half of all, which the paper does not try. The lower rate is
1e-4 in place of 2e-5, with which a small encoder and few texts would stop at chance;
the higher is 1e-3 as in the paper, and the rate of the new head everywhere. Tasks have
hundreds of texts, also those that are large in the paper, and SNLI, of which a small
encoder learns something from so few, stands in for the other tasks of inference.

`--scale paper` takes batches of 1, as the paper says it did, and the training files at
hand: those of QNLI and MNLI are samples, and QQP is missing.
"""

import tempfile
from functools import lru_cache
from itertools import product
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import torch
from common import depth, load, make_parser, run_grid, settle
from pages import publish
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, f1_score
from skorch.callbacks import Callback
from wang_claims import LARGE
from wang_page import draw, page

from skactive.bert import BertClassifier, BertRegressor, clear_cache, spearman_score

SCALES = {
    "smoke": {
        "data": ["docstrings_two_pairs", "docstrings_numbers"],
        "sizes": {},
        "size": 40,
        "n_test": 20,
        "n_plain": 20,
        "seeds": 2,
        "rate_seeds": 1,
        "last": [1],
        "rates": [1e-4, 1e-3],
        "head_lr": 1e-3,
        "max_epochs": 2,
        "batch_size": 16,
        "pooling": "mean",
        "max_length": 8,
        "clock": "cpu_seconds",
    },
    "cpu": {
        "data": ["sst2", "snli", "stsb", "cola"],
        "sizes": {"sst2": 700, "cola": 700},
        "size": 500,
        "n_test": 400,
        "n_plain": 300,
        "seeds": 3,
        "rate_seeds": 1,
        "last": [1, 2, 3],
        "rates": [1e-4, 1e-3],
        "head_lr": 1e-3,
        "max_epochs": 5,
        "batch_size": 16,
        "pooling": "mean",
        "max_length": 64,
        "clock": "cpu_seconds",
    },
    "paper": {
        "data": ["mnli", "qnli", "sst2", "cola", "stsb", "mrpc", "rte"],
        "sizes": {},
        "size": None,
        "n_test": None,
        "n_plain": 300,
        "seeds": 2,
        "rate_seeds": 2,
        "last": [1, 2, 3, 4],
        "rates": [2e-5, 1e-3],
        "head_lr": None,
        "max_epochs": 30,
        "batch_size": 1,
        "pooling": "cls",
        "max_length": 128,
        "clock": "seconds",
    },
}
NUMBERS = ("stsb", "docstrings_numbers")
METRICS = dict.fromkeys(NUMBERS, spearman_score) | {"mrpc": f1_score}


class Notes(Callback):
    """Keep the trained weights of each epoch in a folder, and both clocks."""

    def __init__(self, folder, notes):
        self.folder, self.notes = folder, notes

    def __deepcopy__(self, memo):
        return Notes(self.folder, self.notes)

    def on_train_begin(self, net, **kwargs):
        self.notes["start"] = clocks()

    def on_epoch_begin(self, net, **kwargs):
        self.notes["epoch"] = clocks()

    def on_epoch_end(self, net, **kwargs):
        self.notes.setdefault("epochs", []).append(clocks() - self.notes["epoch"])
        trained = {k: p for k, p in net.module_.named_parameters() if p.requires_grad}
        torch.save(trained, self.folder / f"{len(self.notes['epochs'])}.pt")


def clocks():
    return np.array([process_time(), perf_counter()])


def make(data, n_last, lr, seed, settings, n_layers, **params):
    """Make the estimator whose last layers, or all, learn."""
    cls = BertRegressor if data in NUMBERS else BertClassifier
    return cls(
        settings.model,
        freeze=0 if n_last is None else n_layers - n_last,
        pooling=settings.pooling,
        max_length=settings.max_length,
        batch_size=settings.batch_size,
        lr=lr,
        head_lr=settings.head_lr,
        device=settings.device,
        random_state=seed,
        **params,
    )


@lru_cache
def read(name, size, n_test):
    """Read a task; that of the smoke scale with numbers is how long the texts are."""
    if name == "docstrings_numbers":
        X, _, X_test, _ = read("docstrings_two_pairs", size, n_test)
        y, y_test = (np.array([len(a + b) for a, b in part]) for part in (X, X_test))
        return X, y, X_test, y_test
    return load(name, size, n_test)


@lru_cache
def warm_up(model):
    """Pay for what only the first training of a process has to do."""
    BertClassifier(model, max_epochs=1, freeze="all").fit(["one", "two"], [0, 1])


def run_cell(settings, *, part, data, n_last, lr, seed, size, max_epochs):
    """Train one model until it gains nothing, and score each of its epochs."""
    X, y, X_test, y_test = read(data, size, settings.n_test)
    params = {"max_epochs": max_epochs, "tol": 1e-3, "early_stopping": True}
    if part != "main":
        X, y = X[: settings.n_plain], y[: settings.n_plain]
        params = {"max_epochs": 1, "cache_frozen": part == "kept"}
    score, notes = METRICS.get(data, accuracy_score), {}
    warm_up(settings.model)
    clear_cache()  # so that each run pays for its own frozen bottom
    with tempfile.TemporaryDirectory() as folder:
        params["callbacks"] = [Notes(Path(folder), notes)]
        n_layers = depth(settings.model)
        model = make(data, n_last, lr, seed, settings, n_layers, **params)
        start = clocks()
        model.fit(X, y)
        setup = notes["start"] - start
        network, scores = model.net_.module_, []
        result = {"score": float(score(y_test, model.predict(X_test)))}
        for i in range(len(notes["epochs"]) if part == "main" else 0):
            weights = torch.load(Path(folder) / f"{i + 1}.pt")
            network.load_state_dict(weights, strict=False)
            scores.append(float(score(y_test, model.predict(X_test))))
    trivial = DummyRegressor() if data in NUMBERS else DummyClassifier()
    numbers = [p.numel() for p in network.parameters()]
    learn = [p.numel() for p in network.parameters() if p.requires_grad]
    return {
        **result,
        "epoch_scores": scores,
        "valid_scores": [epoch.get("valid_score") for epoch in model.history_],
        "seconds": [epoch["seconds"] for epoch in model.history_],
        "cpu_seconds": [float(spent[0]) for spent in notes["epochs"]],
        "setup": {"cpu_seconds": float(setup[0]), "seconds": float(setup[1])},
        "share": sum(learn) / sum(numbers),
        "trivial": float(score(y_test, trivial.fit(X, y).predict(X_test))),
    }


def make_grid(settings, part, seeds, rates):
    """List runs; `rates` names those of each task and setting."""
    data = settings.data if part == "main" else settings.data[:1]
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
    """Run both rates with the first seeds, and the better one with the others."""

    def function(**cell):
        return run_cell(settings, **cell)

    def go(part, seeds, rates):
        grid = make_grid(settings, part, seeds, rates)
        return run_grid(function, grid, settings.out, settings.n_jobs)

    both = dict.fromkeys(list_settings(settings), settings.rates)
    first, rest = np.split(np.arange(settings.seeds), [settings.rate_seeds])
    records = go("main", first.tolist(), both)
    rates = {k: [lr] for k, lr in choose_rates(records, settings).items()}
    records += go("main", rest.tolist(), rates)
    for part in ("kept", "plain"):
        records += go(part, range(settings.seeds), rates)
    return records


def check(records, settings, text):
    """Fail where the shape of the results is not what the page needs."""
    main = [r for r in records if r["part"] == "main"]
    n = len(settings.data) * (1 + len(settings.last))
    assert len(main) == n * (settings.rate_seeds + settings.seeds), len(main)
    assert len(records) - len(main) == 2 * settings.seeds * (1 + len(settings.last))
    for r in main:
        n_epochs = len(r["seconds"])
        assert 1 <= n_epochs <= settings.max_epochs
        assert len(r["epoch_scores"]) == len(r["cpu_seconds"]) == n_epochs
        # The weights of one epoch are those that training ended with.
        assert any(np.isclose(r["score"], r["epoch_scores"]))
        assert all(-1 <= score <= 1 for score in r["epoch_scores"])
        assert (r["share"] == 1) == (r["n_last"] is None)
    assert {r["data"] in LARGE for r in main} == {True, False}
    for line in ("| all |", "| last 1 |", "| claim | paper |", "images/wang_time.png"):
        assert line in text, line
    # What the paper's own scale would train, though it is not run here.
    paper = make_parser(__doc__).parse_args(["--scale", "paper"])
    paper.out = settings.out
    paper = settle(paper, SCALES)
    both = dict.fromkeys(list_settings(paper), paper.rates)
    assert len(make_grid(paper, "main", range(paper.seeds), both)) == 7 * 2 * 5 * 2
    tuned = make("stsb", 4, 1e-3, 1, paper, 12)
    expected = {"model": "bert-base-uncased", "freeze": 8, "lr": 1e-3, "batch_size": 1}
    assert isinstance(tuned, BertRegressor)
    assert {k: tuned.get_params()[k] for k in expected} == expected


def choose_and_draw(records, settings):
    settings.chosen = choose_rates(records, settings)
    draw(records, settings)


def main():
    settings = settle(make_parser(__doc__).parse_args(), SCALES)
    settings.depth = depth(settings.model)
    publish(settings, "wang", run, choose_and_draw, page, check)


if __name__ == "__main__":
    main()
