"""The tables and pictures of peer_loops.py."""

import numpy as np
from _harness import mean_std, said, save_figure, table

from skactive.plotting import ActiveLearningCurveDisplay, LedgerDisplay
from skactive.simulation import Run

from .loop_problem import PHASES

OURS, TUNED = "skactive", "small-text"


def make_tables(records, settings):
    """Tables by library, and of our loops with other settings."""
    by_library = group(records)
    tables = {
        "scores": score_table(by_library),
        "seconds": ledger_table(by_library),
        "settings": settings_table(records),
        "versions": table(
            ["library", "versions"],
            [
                [name, ", ".join(map(" ".join, found[0]["versions"].items()))]
                for name, found in by_library.items()
            ],
        ),
    }
    if TUNED in by_library:
        tables["ratios"] = ratio_table(by_library[OURS], by_library[TUNED])
    return tables


def group(records, setting=""):
    """Records of one setting, by library."""
    found = {}
    for record in records:
        if record["setting"] == setting:
            found.setdefault(record["library"], []).append(record)
    return found


def total(record, clock="cpu"):
    return sum(record[clock].values())


def to_run(record):
    """A `Run` with the processor seconds as its ledger."""
    before, rounds = 0, []
    for n, score in record["curve"]:
        scores = {"accuracy": score}
        rounds.append({"queried": range(n - before), "scores": scores})
        before = n
    # A phase that a library does not have takes microseconds.
    ledger = {phase: x if x > 1e-4 else 0.0 for phase, x in record["cpu"].items()}
    return Run(rounds, ledger=ledger, info={"strategy": record["library"]})


def draw(records, settings):
    """Draw curves and ledger."""
    by_library = group(records)
    runs = {name: list(map(to_run, found)) for name, found in by_library.items()}
    tuned = np.mean([record["final"] for record in by_library[OURS]])
    curves = ActiveLearningCurveDisplay.from_runs(
        runs, band="std", reference={f"{OURS}, fine-tuned in the end": tuned}
    )
    ledger = LedgerDisplay.from_runs(runs, log=True)
    ledger.ax_.set_xlabel("processor seconds")
    for name, display in {"curves": curves, "ledger": ledger}.items():
        save_figure(
            display.figure_, settings, f"peers_{name}.png", 110, bbox_inches="tight"
        )


def score_table(by_library):
    """Accuracy at some numbers of labels, and of the model that is kept."""
    labels = [n for n, _ in next(iter(by_library.values()))[0]["curve"]]
    shown = labels[:: max(1, len(labels) // 5)]
    if labels[-1] not in shown:
        shown.append(labels[-1])
    rows = []
    for library, found in by_library.items():
        curves = np.array([[s for _, s in record["curve"]] for record in found])
        row = [mean_std(curves[:, labels.index(n)]) for n in shown]
        rows.append([library, *row, mean_std([record["final"] for record in found])])
    return table(["library", *map(str, shown), "kept model"], rows)


def ledger_table(by_library):
    """Mean processor seconds of each phase; their sum, also on the clock."""
    rows = []
    for library, found in by_library.items():
        row = [mean_std([r["cpu"][phase] for r in found], 1) for phase in PHASES]
        for clock in ("cpu", "wall"):
            row.append(mean_std([total(r, clock) for r in found], 0))
        load = np.mean([r["load"] for r in found])
        rows.append([library, *row, f"{load:.0f}"])
    phases = [phase.replace("_", " ") for phase in PHASES]
    return table(["library", *phases, "all", "on the clock", "load"], rows)


def ratio_table(ours, theirs):
    """Compare our loops with those of small-text with the same seeds."""
    theirs = {record["seed"]: record for record in theirs}
    pairs = [(a, theirs[a["seed"]]) for a in ours if a["seed"] in theirs]
    rows = []
    for clock, name in {"cpu": "processor seconds", "wall": "wall seconds"}.items():
        ratios = [total(b, clock) / total(a, clock) for a, b in pairs]
        each = ", ".join(f"{ratio:.1f}" for ratio in ratios)
        rows.append([f"{name}, {TUNED} / {OURS}", f"{np.median(ratios):.1f} ({each})"])
    gains = [a["final"] - b["final"] for a, b in pairs]
    rows.append([f"accuracy, {OURS} - {TUNED}", said(gains, 3)])
    return table(["what", "here"], rows)


def settings_table(records):
    """Loops of ours with other settings, and how much quicker than small-text's."""
    rows = []
    theirs = [total(r) for r in group(records).get(TUNED, [])]
    for setting in dict.fromkeys(record["setting"] for record in records):
        for found in group(records, setting).values():
            if found[0]["library"] == OURS:
                row = [mean_std([r["cpu"][p] for r in found], 1) for p in PHASES]
                final = mean_std([record["final"] for record in found])
                ours = [total(record) for record in found]
                same = theirs and "n_pool" not in setting
                ratio = f"{np.mean(theirs) / np.mean(ours):.0f}" if same else ""
                row += [mean_std(ours, 0), ratio, final]
                rows.append([setting or "as above", len(found), *row])
    phases = [phase.replace("_", " ") for phase in PHASES]
    head = ["setting", "seeds", *phases, "all", "times as fast", "accuracy"]
    return table(head, rows)
