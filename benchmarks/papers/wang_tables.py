"""The tables and the picture of wang.py."""

import numpy as np
from common import harness
from verdicts import claim_tables
from wang_claims import make_claims
from wang_values import (
    LARGE,
    PAPER,
    PHASES,
    TASKS,
    at_equal_time,
    budgets,
    costs,
    counted,
    epoch_share,
    groups,
    make_runs,
    metric_of,
    name_of,
    pick,
    savings,
    spent,
    title_of,
    twins,
)

from skactive.plotting import ScoreTimeDisplay


def make_tables(records, settings):
    """Claims; tables over all tasks, and of each by epochs and at equal time."""
    tables = {
        **claim_tables(make_claims, records, settings),
        "rates": rates_table(records, settings),
        "means": means_table(records, settings),
        "shares": shares_table(records, settings),
    }
    for data in settings.data:
        tables[f"stop_{data}"] = task_table(records, settings, data)
        tables[f"epochs_{data}"] = epochs_table(records, settings, data)
    for data in counted(records, settings):
        tables[f"time_{data}"] = equal_time_table(records, settings, data)
    return tables


def _settings_of(settings):
    return (None, *settings.last)


def _trivial(records, settings, data):
    return f"{pick(records, settings, data, None)[0]['trivial']:.3f}"


def _heading(data):
    return f"{title_of(data)}, {metric_of(data)}"


def rates_table(records, settings):
    """Scores at both rates; the one that validation chooses in bold."""
    rows = []
    for n_last in _settings_of(settings):
        for lr in settings.rates:
            cells = []
            for data in settings.data:
                runs = pick(records, settings, data, n_last, lr)
                runs = [r["score"] for r in runs if r["seed"] < settings.rate_seeds]
                bold = "**" * (settings.chosen[data, n_last] == lr)
                cells.append(f"{bold}{np.mean(runs):.3f}{bold}")
            rows.append([name_of(n_last), f"{lr:g}", *cells])
    trivial = [_trivial(records, settings, data) for data in settings.data]
    rows.append(["trivial", "", *trivial])
    return harness.table(["layers", "rate", *map(title_of, settings.data)], rows)


def task_table(records, settings, data):
    """Score and time of each setting until training stops."""
    rows, counts = [], data in counted(records, settings)
    for n_last in _settings_of(settings):
        runs = pick(records, settings, data, n_last)
        saved = ["", "", ""]
        if n_last is not None:
            kept = savings(records, settings, data, n_last, kept=True)
            saved = [
                harness.mean_std(costs(records, settings, data, n_last), 1),
                "",
                "",
            ]
            saved[2] = harness.mean_std(kept, 0)
            if counts:
                saved[1] = harness.mean_std(savings(records, settings, data, n_last), 0)
        rows.append(
            [
                name_of(n_last),
                f"{runs[0]['share']:.0%}",
                harness.mean_std([r["score"] for r in runs]),
                saved[0],
                harness.mean_std([len(r["seconds"]) for r in runs], 1),
                saved[1],
                harness.mean_std([spent(r, settings.clock) for r in runs], 1),
                saved[2],
            ]
        )
    rows.append(["trivial", "", _trivial(records, settings, data), *[""] * 5])
    head = [title_of(data), "of parameters", metric_of(data), "cost, points", "epochs"]
    head += ["saved, %", "seconds, bottom kept", "saved, %, bottom kept"]
    return harness.table(head, rows)


def means_table(records, settings):
    """Cost and saving in the mean over the data sets that count."""
    rows, back = [], {n: k for k, n in twins(settings).items()}
    for group, names in groups(records, settings).items():
        for n_last in settings.last if names else []:
            means = [
                np.mean([function(records, settings, d, n_last, **way) for d in names])
                for function, way in (
                    (costs, {}),
                    (savings, {}),
                    (savings, {"kept": True}),
                )
            ]
            k, paper = back.get(n_last), PAPER[group]
            rows.append(
                [
                    f"{group}: {', '.join(map(title_of, names))}",
                    name_of(n_last),
                    f"{means[0]:.1f}",
                    *(f"{mean:.0f}" for mean in means[1:]),
                    f"last {k} of 12" if k else "",
                    *(paper[what].get(str(k), "") for what in ("cost", "saving")),
                ]
            )
    if not rows:
        return ["Nothing was learned on any task."]
    head = ["tasks", "layers", "cost, points", "saved, %", "saved, %, bottom kept"]
    head += ["the paper's setting", "paper: cost, %", "paper: saved, %"]
    return harness.table(head, rows)


def epochs_table(records, settings, data):
    """Score and seconds after each epoch (the paper's tables 2 to 9)."""
    runs = {n: pick(records, settings, data, n) for n in _settings_of(settings)}
    longest = max(len(r["seconds"]) for group in runs.values() for r in group)
    rows = []
    for n_last, group in runs.items():
        cells = []
        for i in range(longest):
            left = [r for r in group if len(r["seconds"]) > i]
            if not left:
                cells.append("")
                continue
            score = np.mean([r["epoch_scores"][i] for r in left])
            seconds = [
                r["setup"][settings.clock] + sum(r[settings.clock][: i + 1])
                for r in left
            ]
            fewer = f" ({len(left)})" if len(left) < len(group) else ""
            cells.append(f"{score:.3f} / {np.mean(seconds):.1f}{fewer}")
        rows.append([name_of(n_last), *cells])
    rows.append(["trivial", *[_trivial(records, settings, data)] * longest])
    return harness.table(
        [_heading(data), *(f"epoch {i + 1}" for i in range(longest))], rows
    )


def shares_table(records, settings):
    """Seconds of an epoch vs. those with all layers trained."""
    rows = []
    for data in counted(records, settings):
        for n_last in settings.last:
            shares = (
                epoch_share(records, settings, data, n_last, kept=way)
                for way in (False, True)
            )
            rows.append([title_of(data), name_of(n_last), *map(_two_digits, shares)])
    if not rows:
        return ["Nothing was learned on any task."]
    return harness.table(["task", "layers", "every layer run", "bottom kept"], rows)


def _two_digits(values):
    return harness.mean_std(values, 2)


def equal_time_table(records, settings, data):
    """Scores of each setting within each budget, every layer run or the bottom kept."""
    runs = {"all": make_runs(records, settings, data, None)}
    for n_last in settings.last:
        for way in (False, True):
            name = name_of(n_last) + ", bottom kept" * way
            runs[name] = make_runs(records, settings, data, n_last, way)
    found = at_equal_time(runs, budgets(records, settings, data))
    rows = [
        [name, *("-" if np.isnan(x) else f"{x:.3f}" for x in scores)]
        for name, scores in zip(found.names, found.scores, strict=True)
    ]
    rows.append(["trivial", *[_trivial(records, settings, data)] * len(found.seconds)])
    return harness.table(
        [_heading(data), *(f"{t:.1f} epochs" for t in found.seconds)], rows
    )


def draw(records, settings):
    """Draw score against time, a panel a task (the paper's figures 3 to 6)."""
    n, counts = len(settings.data), counted(records, settings)
    n_rows = -(-n // 2)
    figure, axes = harness.open_panels(n_rows, 2, 10, 3.4 * n_rows)
    for ax, data in zip(axes.flat, settings.data, strict=False):
        runs = {
            name_of(k): make_runs(records, settings, data, k, kept=True)
            for k in _settings_of(settings)
        }
        trivial = pick(records, settings, data, None)[0]["trivial"]
        ax.axhline(trivial, color="gray", linestyle=":", linewidth=1)
        ScoreTimeDisplay.from_runs(runs, phases=PHASES, baseline=None, ax=ax)
        ax.set(
            title=_title(data, counts),
            xlabel="time, in epochs of all layers",
            ylabel=metric_of(data),
        )
    for ax in axes.flat[n:]:
        ax.remove()
    harness.save_figure(figure, settings, "wang_time.png", 70)


def _title(data, counts):
    task, name = TASKS[data], title_of(data)
    about = [f"{'large' if task in LARGE else 'small'} in the paper"]
    if name != task:
        about.insert(0, f"for {task}")
    if data not in counts:
        about.append("nothing learned")
    return f"{name} ({', '.join(about)})"
