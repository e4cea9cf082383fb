"""The report of an experiment: tables, numbers and pictures in files."""

import io
import json
import os
from functools import partial
from pathlib import Path

from .._storage._outputs import write_listed
from .._utils._format import plain
from .._utils._sklearn import validate_params
from ..analysis import (
    format_report,
    group_runs,
    pair_runs,
    summarize_data_sets,
    summarize_runs,
)
from ..simulation import read_runs
from ._axes import import_figure
from ._curves import ActiveLearningCurveDisplay
from ._overlap import OverlapDisplay
from ._rows import LedgerDisplay

_CAPTIONS = {
    "curves": "Learning curves",
    "ledger": "Processor seconds of a run",
    "overlap": "Overlap of the labeled items with {}",
}


@validate_params({"folder": [str, os.PathLike], "scoring": [str, None]})
def write_report(
    folder: str | os.PathLike[str], *, scoring: str | None = None
) -> tuple[str, list[Path]]:
    """Write report.md, report.json and pictures of the runs in a folder.

    The report has a table and pictures for each data set and learner. For a learner
    that has several data sets, it begins with a table over all of them. If an error is
    raised, nothing is written.

    Parameters
    ----------
    folder : str or path-like
        The `folder` of :func:`skactive.simulation.run_experiment`.
    scoring : str or None, default=None
        Defaults to the first metric of the first run of each table.

    Returns
    -------
    text : str
        The tables, in Markdown. The file report.md shows the pictures as well.
    written : list of Path
        The files.

    Raises
    ------
    FileNotFoundError
        If the folder holds no runs.
    ValueError
        If the runs hold no scores or lack the metric.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skactive import ActiveLearner
    >>> from skactive.plotting import write_report
    >>> from skactive.simulation import run_experiment
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(LogisticRegression(max_iter=500), batch_size=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     runs = run_experiment(
    ...         learner, {"iris": (X[::2], y[::2], X[1::2], y[1::2])}, seeds=2,
    ...         strategies=["random", "margin"], n_initial=5, n_rounds=3, folder=folder,
    ...     )
    ...     text, written = write_report(folder)
    >>> [path.name for path in written]
    ['report.md', 'report.json', 'curves.png', 'ledger.png', 'overlap.png']
    """
    folder = Path(folder)
    runs = read_runs(folder)
    if not runs:
        raise ValueError(
            f"'folder' must hold finished runs of an experiment, got {str(folder)!r}. "
            "Run `skactive simulate` or run_experiment(..., "
            "folder=) first."
        )
    sections = _split(runs)
    summaries = {
        heading: summarize_data_sets(group, scoring=scoring)
        for heading, group in _split(runs, "Over all data sets").items()
        if _share_strategies(group)
    }
    drawn: dict[str, bytes] = {}
    shown: dict[str, list[str]] = {}
    for heading, group in sections.items():
        suffix = "" if len(sections) == 1 else f"-{_as_filename(heading)}"
        summaries[heading] = summarize_runs(group, scoring=scoring)
        baseline = summaries[heading]["baseline"]
        shown[heading] = []
        for kind, picture in _draw(group, summaries[heading]).items():
            name = f"{kind}{suffix}.png"
            drawn[name] = picture
            shown[heading].append(f"![{_CAPTIONS[kind].format(baseline)}]({name})")
    text, page = format_report(summaries), format_report(summaries, shown)
    record = json.dumps(plain(summaries), indent=1, allow_nan=False)
    contents = {"report.md": page.encode(), "report.json": record.encode(), **drawn}
    for name, content in contents.items():
        write_listed(folder / name, partial(Path.write_bytes, data=content))
    return text, [folder / name for name in contents]


def _split(runs, over=None):
    """Return the runs by data set, or of all under `over`, and by learner if needed."""
    learners = {run.info.get("learner") for run in runs}
    sections = {}
    for run in runs:
        names = [over or run.info.get("data", "data")]
        if len(learners) > 1:
            names.append(run.info.get("learner", "learner"))
        sections.setdefault(", ".join(map(str, names)), []).append(run)
    return sections


def _share_strategies(runs):
    """Whether several data sets have several strategies with scores in common."""
    pairs = {}
    for run in runs:
        pair = run.info.get("strategy"), *run.score_names[:1]
        pairs.setdefault(run.info.get("data"), set()).add(pair)
    return min(len(pairs), len(set.intersection(*pairs.values()))) > 1


def _draw(runs, summary):
    """Return the pictures of curves, seconds and overlap as PNG, by name."""
    Figure = import_figure()
    groups = group_runs(runs)
    scoring, encoding = summary["scoring"], summary["precomputation_seconds"]
    baseline, strategies = summary["baseline"], summary["strategies"].values()
    seconds = [one["seconds"] for one in strategies]

    def draw_seconds(ax):
        LedgerDisplay.from_runs(groups, phases=list(seconds[0]), ax=ax)
        if encoding > 0:
            ax.set_xlabel(
                f"processor seconds of a run; encoding, once for all: {encoding:.1f} s"
            )

    pictures = {
        "curves": lambda ax: ActiveLearningCurveDisplay.from_runs(
            groups, scoring=scoring, ax=ax
        )
    }
    if any(any(phases.values()) for phases in seconds):
        pictures["ledger"] = draw_seconds
    paired = {
        name: group
        for name, group in groups.items()
        if baseline in groups and pair_runs(group, groups[baseline]) is not None
    }
    if len(paired) > 1:
        pictures["overlap"] = lambda ax: OverlapDisplay.from_runs(
            paired, baseline, ax=ax
        )
    drawn = {}
    for kind, draw in pictures.items():
        # Without pyplot, no figure stays in its global state.
        figure = Figure(figsize=(8, 5), layout="constrained")
        draw(figure.subplots())
        stream = io.BytesIO()
        figure.savefig(stream, dpi=150, format="png")
        drawn[kind] = stream.getvalue()
    return drawn


def _as_filename(name):
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
