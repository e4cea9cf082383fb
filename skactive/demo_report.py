"""Say what a demo has shown in numbers and words, and what may be concluded."""

from __future__ import annotations

import itertools
import json
import textwrap
from pathlib import Path

import numpy as np
from scipy import stats

from .demo_plot import draw

__all__ = ["format_report", "save", "summarize"]


def summarize(record):
    """Average a demo's runs over the seeds and compare them with random.

    Parameters
    ----------
    record : dict
        From :func:`skactive.demo.run_demo`.

    Returns
    -------
    summary : dict
        "labels", the label counts, and "strategies": for each name the mean and
        standard deviation of the accuracy at each count, "labels_to_match_random"
        (the fewest labels whose mean accuracy is at least random's last one, or
        None), the mean "retraining_seconds" and "acquisition_seconds" of a run, and
        "difference": the accuracy at the last count less random's, in pairs of runs
        with one seed, with the 95% interval of its mean by Student's t. Standard
        deviations and intervals are None with a single seed.
    """
    names = record["parameters"]["strategies"]
    rounds = {
        name: [run["rounds"] for run in record["runs"] if run["strategy"] == name]
        for name in names
    }
    labels = [r["n_labeled"] for r in rounds["random"][0]]
    accuracy = {  # each (n_seeds, n_rounds + 1)
        name: np.array([[r["scores"]["accuracy"] for r in run] for run in rounds[name]])
        for name in names
    }
    target = accuracy["random"].mean(axis=0)[-1]
    strategies = {}
    for name in names:
        mean = accuracy[name].mean(axis=0)
        difference = accuracy[name][:, -1] - accuracy["random"][:, -1]
        reached = np.flatnonzero(mean >= target)
        strategies[name] = {
            "accuracy_mean": mean.tolist(),
            "accuracy_std": _std(accuracy[name]),
            "labels_to_match_random": labels[reached[0]] if reached.size else None,
            "retraining_seconds": _total(rounds[name], "fit_seconds"),
            "acquisition_seconds": _total(rounds[name], "query_seconds"),
            "difference": {
                "mean": float(difference.mean()),
                "std": _std(difference),
                "interval": _interval(difference),
                "n_seeds_above": int((difference > 0).sum()),
                "n_seeds_below": int((difference < 0).sum()),
            },
        }
    return {"labels": labels, "strategies": strategies}


def _std(values):
    return values.std(axis=0, ddof=1).tolist() if len(values) > 1 else None


def _interval(values):
    n = len(values)
    if n == 1:
        return None
    margin = stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)
    return [float(values.mean() - margin), float(values.mean() + margin)]


def _total(runs, key):
    return float(np.mean([sum(r[key] for r in rounds) for rounds in runs]))


def format_report(record, summary):
    """Write a demo's result as text.

    Parameters
    ----------
    record : dict
        From :func:`skactive.demo.run_demo`.
    summary : dict
        From :func:`summarize`.

    Returns
    -------
    report : str
        Several lines of at most 80 characters for up to three strategies.
    """
    parts = [_setting(record), _table(record, summary), _comparison(record, summary)]
    return "\n\n".join([*parts, _limits(record, summary)])


def _setting(record):
    p, data = record["parameters"], record["data"]
    classes = [f"{name} {count:,}" for name, count in data["classes"].items()]
    shown = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
    rows = {
        "Texts": f"{data['name']}: {data['n_texts']:,} in {len(classes)} classes, "
        f"{shown}",
        "Loop": f"{_count(p['n_initial'], 'first label')}, then "
        f"{_count(p['n_rounds'], 'round')} of {p['batch_size']:,}, from a pool of "
        f"{_count(p['pool_size'], 'text')}",
        "Measured": f"accuracy on {_count(p['test_size'], 'other text')}, "
        f"{_count(p['n_seeds'], 'seed')}",
        # A hub name, or the end of a folder's path.
        "Model": "logistic regression on features of "
        + "/".join(Path(p["model"]).parts[-2:]),
    }
    return "\n".join(_wrap(f"{title:<10}{text}", 10) for title, text in rows.items())


def _count(n, noun):
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _table(record, summary):
    strategies = summary["strategies"]
    rows = [["labels", *strategies]]
    for i, n_labeled in enumerate(summary["labels"]):
        cells = [_mean_and_spread(result, i) for result in strategies.values()]
        rows.append([f"{n_labeled:,}", *cells])
    n_rounds = len(rows)
    target = strategies["random"]["accuracy_mean"][-1]
    to_match = [result["labels_to_match_random"] for result in strategies.values()]
    rows.append(
        [
            f"labels to reach random's {target:.3f}",
            *("not reached" if n is None else f"{n:,}" for n in to_match),
        ]
    )
    for key in ("retraining", "acquisition"):
        cells = [f"{result[f'{key}_seconds']:.3f}" for result in strategies.values()]
        rows.append([f"seconds of {key}, per run", *cells])

    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    rule = "-" * len(lines[0])
    lines[n_rounds:n_rounds] = [rule]
    lines[1:1] = [rule]
    spread = (
        ", mean ± standard deviation over the seeds"
        if record["parameters"]["n_seeds"] > 1
        else ""
    )
    encoding = record["seconds"]["encoding"]
    return "\n".join(
        [
            f"Accuracy{spread}",
            "",
            *lines,
            "",
            f"Encoding took {encoding:.1f} s, once for all runs; everything "
            f"{record['seconds']['total']:.0f} s.",
        ]
    )


def _mean_and_spread(result, i):
    mean, std = result["accuracy_mean"][i], result["accuracy_std"]
    return f"{mean:.3f}" if std is None else f"{mean:.3f} ± {std[i]:.3f}"


def _comparison(record, summary):
    random = summary["strategies"]["random"]
    if len(summary["strategies"]) == 1:
        return "Nothing was compared: name strategies beside random."
    n_seeds = record["parameters"]["n_seeds"]
    paragraphs = [
        f"Against random at {summary['labels'][-1]:,} labels, in pairs of runs (within "
        "a seed, the pool, the test texts and the first labels are the same):"
    ]
    for name, result in summary["strategies"].items():
        if name != "random":
            verdict = _verdict(name, result, random, n_seeds)
            paragraphs.append(f"  {name}: {_difference(result, n_seeds)}. {verdict}")
    return "\n".join(
        _wrap(paragraph, 4 * paragraph.startswith(" ")) for paragraph in paragraphs
    )


def _difference(result, n_seeds):
    difference = result["difference"]
    mean = f"{difference['mean']:+.3f}"
    if n_seeds == 1:
        return f"{mean} in one seed"
    low, high = difference["interval"]
    return (
        f"{mean} ± {difference['std']:.3f}, 95% interval of the mean {low:+.3f} to "
        f"{high:+.3f}, higher in {difference['n_seeds_above']} of {n_seeds} seeds"
    )


def _verdict(name, result, random, n_seeds):
    """Say in one sentence whether the numbers show a difference."""
    if n_seeds < 3:
        return "Too few seeds: this run does not show a difference."
    gap = result["accuracy_mean"][-1] - random["accuracy_mean"][-1]
    overlap = abs(gap) <= result["accuracy_std"][-1] + random["accuracy_std"][-1]
    low, high = result["difference"]["interval"]
    if low <= 0 <= high:
        reason = "The bands overlap" if overlap else "The interval holds 0"
        return f"{reason}: this run does not show a difference."
    outcome = f"{name} ends {'above' if gap > 0 else 'below'} random on these texts"
    if overlap:
        return (
            "The bands overlap: the figure alone does not show a difference, and a "
            f"single run may come out either way. The pairs show one: on average, "
            f"{outcome}."
        )
    return f"The bands do not overlap: {outcome}."


def _limits(record, summary):
    p = record["parameters"]
    points = [
        "This is one data set, one model and these numbers of labels. On other data "
        "the order of the strategies may be another."
    ]
    if p["n_seeds"] == 1:
        points.append("One seed has no spread: repeat with several to compare.")
    else:
        points += [
            f"Spreads and intervals come from redrawing the same texts {p['n_seeds']} "
            "times. They say nothing of other texts, and few seeds measure them "
            "roughly.",
            "A band is one standard deviation of the runs to each side of their mean. "
            "Where bands overlap, the figure shows no winner.",
        ]
    points.append(
        "The labels needed to reach random's last accuracy are read off the means, in "
        f"steps of {p['batch_size']:,} and without an interval: a rough size."
    )
    if len(summary["strategies"]) > 2:
        points.append(
            "The best of several strategies looks a little better than it is, since it "
            "is picked after the fact."
        )
    return "\n".join(
        ["What may be concluded, and what not", *(_wrap(f"  - {p}", 4) for p in points)]
    )


def _wrap(line, indent):
    return textwrap.fill(line, width=80, subsequent_indent=" " * indent)


def save(record, summary, folder):
    """Write a demo's result into ``demo.json`` and ``demo.png``.

    The result of an earlier demo is kept under another name, such as
    ``demo-1.json``.

    Parameters
    ----------
    record : dict
        From :func:`skactive.demo.run_demo`.
    summary : dict
        From :func:`summarize`.
    folder : str or Path
        It is made if it does not exist.

    Returns
    -------
    written : list of Path
        The two files.
    renamed : list of Path
        The files of an earlier demo, under their new names.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = numbers, picture = folder / "demo.json", folder / "demo.png"
    renamed = _set_aside(written)
    text = json.dumps({**record, "summary": summary}, indent=1, ensure_ascii=False)
    numbers.write_text(text + "\n", encoding="utf-8")
    draw(record, summary, picture)
    return list(written), renamed


def _set_aside(paths):
    """Rename the files that exist, all by the first number that is free."""
    for n in itertools.count(1):
        free = [path.with_stem(f"{path.stem}-{n}") for path in paths]
        if not any(map(Path.exists, free)):
            break
    pairs = zip(paths, free, strict=True)
    return [old.rename(new) for old, new in pairs if old.exists()]
