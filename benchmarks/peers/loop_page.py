"""The page of peer_loops.py: curves, ledgers, targets, versions, how each is called."""

import ast
from pathlib import Path

import numpy as np
from papers.pages import figure_path, mean_std, table
from scipy.stats import t as student

from skactive.plotting import ActiveLearningCurveDisplay, LedgerDisplay
from skactive.simulation import Run

from .loop_problem import PHASES, LoopProblem
from .loop_worker import LIBRARIES

OURS, TUNED = "skactive", "small-text"
TARGET = 60  # times as fast
MARGIN = 0.01  # of accuracy: what is lost at most


def group(records, setting=""):
    """Finished records of one setting, by library."""
    found = {}
    for record in records:
        if record["setting"] == setting and "error" not in record:
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
    """Draw curves and ledger; the names of the files."""
    by_library = group(records)
    runs = {name: list(map(to_run, found)) for name, found in by_library.items()}
    tuned = np.mean([record["final"] for record in by_library[OURS]])
    curves = ActiveLearningCurveDisplay.from_runs(
        runs, band="std", reference={f"{OURS}, fine-tuned in the end": tuned}
    )
    ledger = LedgerDisplay.from_runs(runs, log=True)
    ledger.ax_.set_xlabel("processor seconds")
    names = {"curves": "peers_curves.png", "ledger": "peers_ledger.png"}
    for display, name in zip((curves, ledger), names.values(), strict=True):
        path = figure_path(settings, name)
        display.figure_.savefig(path, dpi=110, bbox_inches="tight")
    return names


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


def judge_ratio(ratios):
    """Whether all seeds reach the target, or none does."""
    reached = [ratio >= TARGET for ratio in ratios]
    return "met" if all(reached) else "missed" if not any(reached) else "cannot tell"


def judge_accuracy(differences):
    """Whether at most MARGIN is lost: by the t interval of the mean over seeds."""
    d = np.asarray(differences)
    if len(d) < 2:
        return "one seed", "cannot tell"
    half = student.ppf(0.975, len(d) - 1) * d.std(ddof=1) / len(d) ** 0.5
    low, high = d.mean() - half, d.mean() + half
    said = f"{d.mean():+.3f} [{low:+.3f}, {high:+.3f}]"
    if low >= -MARGIN:
        return said, "met"
    return said, "missed" if high < -MARGIN else "cannot tell"


def aims_table(ours, theirs):
    """Compare our loops with those of small-text with the same seeds."""
    theirs = {record["seed"]: record for record in theirs}
    pairs = [(a, theirs[a["seed"]]) for a in ours if a["seed"] in theirs]
    rows = []
    clocks = {"cpu": "processor seconds", "wall": "seconds on the clock"}
    for clock, name in clocks.items():
        ratios = [total(b, clock) / total(a, clock) for a, b in pairs]
        each = ", ".join(f"{ratio:.1f}" for ratio in ratios)
        said = f"{np.median(ratios):.1f} times as fast ({each})"
        rows.append([f"{TARGET} times as fast, {name}", said, judge_ratio(ratios)])
    difference = judge_accuracy([a["final"] - b["final"] for a, b in pairs])
    return table(
        ["target", "here", "verdict"], [*rows, ["no lower accuracy", *difference]]
    )


def beside_table(records):
    """Loops of ours with other settings, and how much quicker than small-text's."""
    rows = []
    theirs = [total(r) for r in group(records).get("small-text", [])]
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


def describe_loops(by_library):
    """What the files of the loops say of themselves: calls and patches."""
    parts = []
    for library in by_library:
        path = Path(__file__).parent / f"{LIBRARIES[library][0]}.py"
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        name, _, rest = said.partition(": ")
        versions = by_library[library][0]["versions"]
        named = ", ".join(f"{key} {value}" for key, value in versions.items())
        parts.append(f"**{name}**: {rest}\n\nVersions: {named}.")
    return "\n\n".join(parts)


def describe_failures(records):
    failed = {r["library"]: r["error"] for r in records if "error" in r}
    if not failed:
        return "All of them ran."
    return "\n".join(f"- {name} did not: `{error}`" for name, error in failed.items())


def page(records, settings, pictures):
    """Write the page."""
    by_library = group(records)
    parts = ["# Peers", describe(settings, len(by_library))]
    if TUNED in by_library:
        parts += [
            f"## {OURS} and {TUNED}",
            aims_table(by_library[OURS], by_library[TUNED]),
            RULES,
            WHY,
        ]
    parts += [
        "## Accuracy",
        f"![Accuracy against labels](images/{pictures['curves']})",
        score_table(by_library),
        KEPT,
        "## Where the seconds go",
        f"![Processor seconds by phase](images/{pictures['ledger']})",
        ledger_table(by_library),
        SECONDS,
        f"## {OURS} with other settings",
        beside_table(records),
        "## How each is called",
        describe_loops(by_library),
        "## What could not run",
        describe_failures(records),
        settings.provenance + " One thread for each loop.",
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def describe(settings, n_libraries):
    """Say what is compared, in figures."""
    defaults = {k: f.default for k, f in LoopProblem.__dataclass_fields__.items()}
    facts = {"n_initial": 50, **defaults, **settings.problem}
    budget = facts["n_initial"] + facts["rounds"] * facts["batch"]
    return (
        f"The same labeling loop in {n_libraries} libraries: a pool of "
        f"{facts['n_pool']:,} texts ({settings.data[0]}), {facts['n_initial']} random "
        f"labels and {facts['rounds']} rounds of {facts['batch']}, {budget} labels in "
        f"all, texts cut at {facts['max_length']} tokens, accuracy on "
        f"{settings.n_test or 'all':,} other texts. All have the same texts, weights "
        "and, for each seed, labels to begin with. Where the encoder is fine-tuned: "
        f"{facts['epochs']} epochs, batches of {facts['batch_size']}, a learning rate "
        f"of {facts['lr']:g} for the encoder that falls linearly to 0. The heads "
        "differ: ours is a linear layer on the mean of the tokens' states and learns "
        "at 0.001, small-text's is the one of transformers on the first token's state "
        "and learns at the encoder's rate. Figures are means over "
        f"{settings.seeds} seed(s) ± standard deviation (n - 1)."
    )


RULES = f"""\
The targets are this project's own. Seconds are those of the whole loop, measured:
features, all training, all asking.
Scoring is not in them. The ratios of the single seeds are in parentheses; the
verdict is *met* where all reach the target and *missed* where none does. Accuracy is
that of the models that are kept, ours minus {TUNED}'s, with the 95 % t interval over
seeds: *met* where all of it is above -{MARGIN}, *missed* where all of it is below."""

WHY = f"""\
What makes the difference is that {TUNED} trains the encoder, and runs it over the whole
pool, in every round. With 550 labels and 11 trainings it trains on 3,300 texts where
PRepAL trains on 550, and reads the pool ten times where PRepAL reads it once; it also
pads every text to the length at which texts are cut. The ratio grows with the number of
rounds and with that length."""

KEPT = f"""\
The kept model of {OURS} is the encoder that is fine-tuned once in the end; the others
keep the model of their last round."""

SECONDS = """\
Processor seconds, but for the column on the clock. Other work ran on the machine, so
the clock says more about it than about the libraries; the last column is how many
processes wanted a core at a time. Sharing slows processor seconds, too. Importing and
the features of the test texts are not counted."""
