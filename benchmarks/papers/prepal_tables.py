"""The tables of prepal.py."""

from itertools import product

import numpy as np
from common import harness
from prepal_claims import make_claims, paper, runs_by_batch, scores
from prepal_figures import PAPER, PHASES, ledger_runs, name_of, select, whole_runs
from verdicts import claim_tables

from skactive.analysis import ledger_table

PROTOCOLS = ("AL+LR", "PRepAL", "AL+FT")
COLUMNS = 8  # of the overlaps, at most


def make_tables(records, settings):
    """Claims, tables 2 and 3, and what the figures show."""
    tables = {
        **claim_tables(make_claims, records, settings),
        "accuracy": accuracy_table(records, settings),
        "ledger": ledger(records, settings),
        "overlap": overlap_table(records),
    }
    if settings.transfer:
        tables["transfer"] = transfer_table(records)
    if settings.sequential:
        tables["batch"] = batch_table(records, settings)
    if peers := select(records, "peer"):
        tables["peer"] = peer_table(records, peers)
    return tables


def accuracy_table(records, settings):
    """Write accuracies in percent, the paper's in brackets."""
    encodings = {r["data"]: r for r in select(records, "encoding")}
    floors = [f"{100 * encodings[data]['trivial']:.1f}" for data in settings.data]
    rows = [["the commonest class", "", *floors]]
    strategies = list(dict.fromkeys(r["strategy"] for r in select(records, "run")))
    for strategy, protocol in product(strategies, PROTOCOLS):
        cells = [_accuracy(records, data, protocol, strategy) for data in settings.data]
        if any(cells):
            title = strategy.replace("_", " ")
            rows.append([title, protocol, *cells])
    return harness.table(["function", "protocol", *map(name_of, settings.data)], rows)


def _accuracy(records, data, protocol, strategy):
    if protocol == "AL+LR":
        runs = whole_runs(records, data, "AL+LR", strategy)
        runs += whole_runs(records, data, "PRepAL", strategy)
    else:
        runs = whole_runs(records, data, protocol, strategy)
    if not runs:
        return ""
    key = "scores" if protocol == "AL+LR" else "final_score"
    ours = harness.mean_std(scores(runs, key), 1)
    asks_alike = strategy == "random" and protocol == "PRepAL"
    theirs = paper(strategy, "AL+FT" if asks_alike else protocol, data)
    return ours if theirs is None else f"{ours} ({theirs})"


def ledger(records, settings):
    """Write the seconds of each phase, and the accuracy."""
    rows = []
    for data in filter(settings.tuned_loop.get, settings.data):
        for protocol, runs in ledger_runs(records, data).items():
            (means,) = ledger_table({protocol: runs}).mean
            own = "AL+FT" if protocol == "AL+FT" else "PRepAL"
            key = "scores" if protocol == "AL+LR" else "final_score"
            accuracy = scores(whole_runs(records, data, own, "entropy"), key)
            seconds = [f"{s:,.2f}" if s < 10 else f"{s:,.0f}" for s in means]
            total = f"{means.sum():,.0f}"
            title = [name_of(data), f"{protocol}, entropy"]
            rows.append([*title, *seconds, total, harness.mean_std(accuracy, 1)])
    for protocol, figures in PAPER["ledger"].items():
        rows.append(["QNLI, BERT (paper)", protocol, *figures])
    phases = [phase.replace("_", " ") for phase in PHASES]
    return harness.table(["data", "protocol", *phases, "total", "accuracy"], rows)


def overlap_table(records):
    """Write similarities with AL+FT after each round."""
    found = [r for r in select(records, "overlap") if r["loops"][1][0] == "AL+FT"]
    rows, n = [], len(found[0]["n_labeled"])
    shown = np.unique(np.linspace(0, n - 1, min(n, COLUMNS)).round().astype(int))
    for r in found:
        (loop, strategy), (_, tuned) = r["loops"]
        means = np.mean(r["similarity"], axis=0)
        values = [f"{v:.2f}" for v in means[shown]]
        rows.append([name_of(r["data"]), f"{loop}, {strategy}", tuned, *values])
        if r is found[-1] or found[found.index(r) + 1]["data"] != r["data"]:
            values = [f"{r['chance'][i]:.2f}" for i in shown]
            rows.append([name_of(r["data"]), "chance", tuned, *values])
    labels = [f"{found[0]['n_labeled'][i]:.0f}" for i in shown]
    return harness.table(["data", "loop", "AL+FT by", *labels], rows)


def transfer_table(records):
    rows = []
    moved = select(records, protocol="Transfer")
    for data, strategy in dict.fromkeys((r["data"], r["strategy"]) for r in moved):
        own = whole_runs(records, data, "PRepAL", strategy, encoder="second")
        rows += [
            [
                name_of(data),
                strategy.replace("_", " "),
                protocol,
                labels,
                harness.mean_std(scores(runs, "scores"), 1),
                harness.mean_std(scores(runs), 1),
            ]
            for protocol, labels, runs in (
                ("PRepAL", "second", own),
                ("Transfer", "first", whole_runs(records, data, "Transfer", strategy)),
            )
        ]
    head = ["data", "function", "protocol", "encoder that labels"]
    head.append("logistic regression on it")
    return harness.table([*head, "second encoder, fine-tuned"], rows)


def batch_table(records, settings):
    rows = []
    for r in select(records, "run", batch_size=1):
        data = r["data"]
        if rows and rows[-1][0] == name_of(data):
            continue
        one, many = runs_by_batch(records, data, settings.one_by_one)
        for n, runs in sorted(one.items()):
            cells = [
                harness.mean_std(scores(group, key), 1)
                for key in ("scores", "final_score")
                for group in (runs, many[n])
            ]
            rows.append([name_of(data), n, *cells])
    size = max(r["batch_size"] for r in select(records, "run"))
    head = [f"{m}, {n} a round" for m in ("AL+LR", "PRepAL") for n in (1, size)]
    return harness.table(["data", "labels", *head], rows)


def peer_table(records, peers):
    """Write the seconds of PRepAL, and those of a peer's loop from single rounds."""
    rows = []
    for r in peers:
        (own,) = ledger_table({"": ledger_runs(records, r["data"])["PRepAL"]}).mean
        measured = ", ".join(
            f"{i}: {fit + query:,.0f}" for i, _, fit, query in r["rounds"]
        )
        total, ours = r["fit"] + r["query"], own.sum()
        seconds = [f"{x:,.0f}" for x in (r["fit"], r["query"], total)]
        first = [name_of(r["data"]), f"{ours:,.0f}", measured]
        rows.append([*first, *seconds, f"{total / ours:.1f}"])
    head = ["data", "PRepAL, s", f"{peers[0]['library']}, s of rounds"]
    return harness.table(
        [*head, "training, interpolated", "queries", "total", "ratio"], rows
    )
