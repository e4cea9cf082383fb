"""The page of wang.py: tables and the picture."""

import numpy as np
from pages import BUSY, claims_table, figure_path, mean_std, table
from wang_claims import (
    LARGE,
    PAPER,
    POINT,
    TENTH,
    at_equal_time,
    epoch_ratios,
    gaps,
    groups,
    make_claims,
    make_run,
    name_of,
    pick,
    spent,
    twins,
)

from skactive.plotting import ScoreTimeDisplay

_RULES = (
    "The verdicts are computed from 95 % intervals over tasks and seeds (in brackets). "
    "*Cost*: holds where the interval ends below {point:g} point above the paper's "
    "figure, does not hold where it begins above that. *Save*: holds where it begins "
    "above {tenth:g} points below the figure, does not hold where it ends below that. "
    "*About 60 %*: within 10. *Better*, *spoils*: by the sign. Anything else cannot "
    "tell. Costs are points of 100; whether the paper means points or parts of the "
    "score it does not say."
)


def page(records, settings):
    """Write the page."""
    parts = [
        "# Wang: training the last layers against training all",
        "The paper trains the last 1 to 4 of BERT's 12 layers on GLUE tasks and asks "
        "what that costs in score and saves in time. Tasks here, with texts for "
        f"training (a tenth of them for validation): {_sizes(records, settings)}.",
        _scaled_down(settings) if settings.scale != "paper" else "",
        "## Claims",
        claims_table(make_claims(records, settings)),
        _RULES.format(point=POINT, tenth=TENTH)
        + (_on_size() if settings.scale != "paper" else "")
        + _on_nothing_learned(records, settings),
        "## Rates",
        "Score of each setting at both rates, with the first "
        f"{settings.rate_seeds} seed(s); in bold the better one on the validation "
        "part of the task, which the rest of the page takes.",
        _rates(records, settings),
        "## Score and time until training stops",
        "Dev score of the epoch that was best on the validation part, means ± standard "
        f"deviation over {settings.seeds} seeds. Seconds "
        + ("of the processor " if settings.clock == "cpu_seconds" else "")
        + "until training stopped, the layers below computed once included. *Trivial* "
        "is the most frequent class, or the mean.",
        *(_task(records, settings, data) for data in settings.data),
        "In the mean over the tasks that are large in the paper, and over the others:",
        _means(records, settings),
        "## Seconds of an epoch",
        _epochs(records, settings),
        "## At equal time",
        "Best dev score so far after a quarter, half and all of the seconds that all "
        "layers take until they stop (mean over seeds; - where a setting has finished "
        "no epoch yet).",
        *(_equal_time(records, settings, data) for data in settings.data),
        "![Score against seconds of training](images/wang_time.png)",
        "Means over seeds, as many epochs as the shortest run of a setting has.",
        "## How it was measured",
        settings.provenance,
        BUSY if settings.scale == "cpu" else "",
    ]
    return "\n\n".join(part for part in parts if part)


def metric_of(data):
    return {"mrpc": "F1", "stsb": "Spearman"}.get(data, "accuracy")


def _sizes(records, settings):
    sizes = {r["data"]: r["size"] for r in records}
    return ", ".join(
        f"{data} ({'all' if sizes[data] is None else format(sizes[data], ',')}, "
        f"{metric_of(data)})"
        for data in settings.data
    )


def _scaled_down(settings):
    found = ", ".join(f"{n} as {k} of 12" for k, n in twins(settings).items())
    return (
        f"Scaled down: all-MiniLM-L6-v2 with {settings.depth} layers instead of "
        f"BERT-base with 12 (by share: last {found}); mean pooling; at most "
        f"{settings.max_length} tokens and {settings.max_epochs} epochs instead of 30; "
        f"batches of {settings.batch_size}; {settings.n_test} dev texts; "
        f"the lower rate {min(settings.rates):g} instead of 2e-5, with "
        f"{settings.head_lr:g} for the head at both; both rates with the first "
        f"{settings.rate_seeds} seed(s) only."
    )


def _on_size():
    return (
        " *Large* names the tasks that are large in the paper, with 67,000 texts and "
        "more. Here they have no more than the small ones had there, so what comes out "
        "for them says nothing against the paper's large tasks."
    )


def _on_nothing_learned(records, settings):
    """Name the tasks on which a cost has no meaning."""
    idle = []
    for data in settings.data:
        runs = pick(records, settings, data, None)
        if np.mean([r["score"] for r in runs]) <= runs[0]["trivial"] + POINT / 100:
            idle.append(data)
    if not idle:
        return ""
    return (
        f" On {', '.join(idle)} even training all layers is within {POINT:g} point of "
        "the trivial answer, so its costs of about 0 only say that nothing was learned "
        "there."
    )


def _rates(records, settings):
    rows = []
    for n_last in (None, *settings.last):
        for lr in settings.rates:
            cells = []
            for data in settings.data:
                runs = pick(records, settings, data, n_last, lr)
                runs = [r["score"] for r in runs if r["seed"] < settings.rate_seeds]
                chosen = settings.chosen[data, n_last] == lr
                cells.append(f"{'**' * chosen}{np.mean(runs):.3f}{'**' * chosen}")
            rows.append([name_of(n_last), f"{lr:g}", *cells])
    return table(["layers", "rate", *settings.data], rows)


def _task(records, settings, data):
    rows = []
    for n_last in (None, *settings.last):
        runs = pick(records, settings, data, n_last)
        cost, saving = gaps(records, settings, data, n_last)
        rows.append(
            [
                name_of(n_last),
                f"{runs[0]['share']:.0%}",
                mean_std([r["score"] for r in runs]),
                "" if n_last is None else mean_std(cost, 1),
                mean_std([len(r["seconds"]) for r in runs], 1),
                mean_std([spent(r, settings.clock) for r in runs], 1),
                "" if n_last is None else mean_std(saving, 0),
            ]
        )
    rows.append(["trivial", "", f"{runs[0]['trivial']:.3f}", *[""] * 4])
    head = [data, "of parameters", metric_of(data), "cost, points", "epochs"]
    return table([*head, "seconds", "saved, %"], rows)


def _means(records, settings):
    rows, back = [], {n: k for k, n in twins(settings).items()}
    for group, names in groups(settings).items():
        for n_last in settings.last:
            both = [gaps(records, settings, data, n_last) for data in names]
            cost, saving = (np.concatenate(part) for part in zip(*both, strict=True))
            k, paper = back.get(n_last), PAPER[group]
            cells = [
                group,
                name_of(n_last),
                f"{cost.mean():.1f}",
                f"{saving.mean():.0f}",
            ]
            cells += [f"last {k} of 12" if k else ""]
            cells += [paper[what].get(k, "") for what in ("cost", "saving")]
            rows.append(cells)
    head = ["tasks", "layers", "cost, points", "saved, %", "the paper's setting"]
    return table([*head, "paper: cost", "paper: saved, %"], rows)


def _epochs(records, settings):
    rows = []
    for n_last in settings.last:
        ratios = [epoch_ratios(records, settings, p, n_last) for p in ("plain", "kept")]
        rows.append([name_of(n_last), *(mean_std(ratio, 2) for ratio in ratios)])
    said = (
        f"An epoch of {settings.n_plain} texts of {settings.data[0]}, by one that "
        "trains all layers. *Every layer run* is the paper's way (about 0.6 there); "
        "with the *bottom kept*, the default here, the layers below are computed once, "
        "before the first epoch."
    )
    head = ["layers", "every layer run", "bottom kept"]
    return said + "\n\n" + table(head, rows)


def _equal_time(records, settings, data):
    found = at_equal_time(records, settings, data)
    rows = [
        [name, *("-" if np.isnan(x) else f"{x:.3f}" for x in scores)]
        for name, scores in zip(found.names, found.scores, strict=True)
    ]
    head = [f"{data}, {metric_of(data)}", *(f"{s:.0f} s" for s in found.seconds)]
    return table(head, rows)


def draw(records, settings):
    """Draw score against time, a panel a task (the paper's figures 3 to 6)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    n = len(settings.data)
    shape = (-(-n // 2), 2)
    figure, axes = plt.subplots(
        *shape, figsize=(10, 3.4 * shape[0]), layout="constrained", squeeze=False
    )
    for ax, data in zip(axes.flat, settings.data, strict=False):
        runs = {
            name_of(k): [
                make_run(r, settings.clock) for r in pick(records, settings, data, k)
            ]
            for k in (None, *settings.last)
        }
        ScoreTimeDisplay.from_runs(
            runs, phases=("precomputation", "retraining"), baseline=None, ax=ax
        )
        size = "large in the paper" if data in LARGE else "small"
        ax.set(title=f"{data} ({size})", xlabel="seconds", ylabel=metric_of(data))
    for ax in axes.flat[n:]:
        ax.remove()
    figure.savefig(figure_path(settings, "wang_time.png"), dpi=70)
    plt.close(figure)
