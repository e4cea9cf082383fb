"""Learning curves of strategies, with bands over seeds."""

from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, Literal, Self

import numpy as np

from .._utils._sklearn import StrOptions, validate_params
from ..analysis import Groups, LearningCurve, learning_curve, sort_runs
from ._axes import add_legend, draw_band, draw_line, label_axes, open_axes
from ._names import GRAY, assign_styles, check_named, say_number

_MOST_BANDS = 4
_BANDS = {
    "bootstrap": "{:.0%} interval of the mean",
    "t": "{:.0%} interval of the mean",
    "std": "± standard deviation",
    "percentile": "middle {:.0%} of the runs",
}


class ActiveLearningCurveDisplay:
    """Learning curves: score against the number of labels, averaged over runs.

    Create a display with :meth:`from_runs`.

    Parameters
    ----------
    curves : dict of str to LearningCurve
        Curves by name, from :func:`skactive.analysis.learning_curve`.
    reference : float, dict of str to float or None, default=None
        Scores to draw as horizontal lines, such as that of a model trained on all
        labels.
    baseline : str or None, default="random"
        The name that is drawn in dashed gray, if it is among the curves.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The mean curves.
    bands_ : dict of str to matplotlib PolyCollection, LineCollection or None
        Bands, or whiskers if there are more than four curves. None for a single run.
    references_ : dict of str to matplotlib Line2D
        The horizontal lines.
    legend_ : matplotlib Legend
        The names, in the order of the last scores.

    See Also
    --------
    skactive.analysis.learning_curve : The numbers of the picture.

    Examples
    --------
    >>> from skactive.plotting import ActiveLearningCurveDisplay
    >>> from skactive.simulation import Run
    >>> runs = [
    ...     Run([{"queried": range(10), "scores": {"accuracy": first}},
    ...          {"queried": range(10), "scores": {"accuracy": second}}],
    ...         info={"strategy": "margin"})
    ...     for first, second in [(0.5, 0.75), (0.25, 1.0)]
    ... ]
    >>> display = ActiveLearningCurveDisplay.from_runs(runs, band="std")
    >>> n_labeled, means = display.lines_["margin"].get_data()
    >>> n_labeled.tolist(), means.tolist()
    ([10, 20], [0.375, 0.875])
    """

    def __init__(
        self,
        *,
        curves: Mapping[str, LearningCurve],
        reference: float | Mapping[str, float] | None = None,
        baseline: str | None = "random",
    ):
        self.curves = curves
        self.reference = reference
        self.baseline = baseline

    @classmethod
    @validate_params(
        {
            "scoring": [str, None],
            "band": [StrOptions(set(_BANDS)), None],
            "baseline": [str, None],
            "score_name": [str, None],
        }
    )
    def from_runs(
        cls,
        runs: Groups,
        *,
        scoring: str | None = None,
        against: Literal["labels", "cost"] = "labels",
        groupby: str | Sequence[str] = "strategy",
        band: Literal["bootstrap", "t", "std", "percentile"] | None = "bootstrap",
        confidence_level: float = 0.95,
        reference: float | Mapping[str, float] | None = None,
        baseline: str | None = "random",
        ax: Any = None,
        score_name: str | None = None,
    ) -> Self:
        """Average runs and draw their curves.

        Parameters
        ----------
        runs : dict of str to list of Run, or sequence of Run
            A list is grouped by the `info` of the runs.
        scoring : str or None, default=None
            A metric of all runs. Defaults to the first metric of the first run.
        against : {"labels", "cost"}, default="labels"
            What the score is drawn against, as in
            :func:`skactive.analysis.learning_curve`.
        groupby : str or sequence of str, default="strategy"
            One or several keys of `info` that a list is grouped by.
        band : {"bootstrap", "t", "std", "percentile"} or None, default="bootstrap"
            The band around the mean, as `method` of
            :func:`skactive.analysis.learning_curve`. None draws no band.
        confidence_level : float, default=0.95
            Level of the band; "std" does not use it.
        reference, baseline
            As in the class.
        ax, score_name
            As in :meth:`plot`.

        Returns
        -------
        display : ActiveLearningCurveDisplay

        Raises
        ------
        ValueError
            If there are no runs, the runs lack the metric, or a list mixes data sets
            or learners in one group.
        """
        average = partial(learning_curve, against=against, method=band or "std")
        curves = {}
        for name, group in sort_runs(runs, groupby).items():
            curves[name] = average(group, scoring, confidence_level=confidence_level)
            scoring = curves[name].scoring
        display = cls(curves=curves, reference=reference, baseline=baseline)
        return display.plot(ax, score_name=score_name, band=band is not None)

    def plot(
        self, ax: Any = None, *, score_name: str | None = None, band: bool = True
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            The axes. Defaults to those of a new figure.
        score_name : str or None, default=None
            Label of the vertical axis. Defaults to the name of the metric.
        band : bool, default=True
            Whether to draw the bands. If there are more than four curves, whiskers at
            the ends of the curves are drawn instead.

        Returns
        -------
        display : ActiveLearningCurveDisplay
        """
        curves = self._checked_curves()
        references = _as_references(self.reference)
        wide = len(curves) > _MOST_BANDS
        ax = open_axes(ax, (8.6 if wide else 7, 4.5), type(self).__name__)

        styles = assign_styles(curves, self.baseline)
        self.lines_ = {}
        for number, (name, curve) in enumerate(curves.items()):
            points = curve.n_labeled, curve.mean
            self.lines_[name] = draw_line(ax, *points, name, styles[name], number)
        # The order of the last scores makes the legend match the curves.
        order = sorted(curves, key=lambda name: -curves[name].mean[-1])
        draw = _draw_whiskers if wide else _draw_bands
        self.bands_ = dict.fromkeys(curves)
        if band:
            colors = {name: line.get_color() for name, line in self.lines_.items()}
            self.bands_ = draw(ax, curves, order, colors)
        start = min(curve.n_labeled[0] for curve in curves.values())
        self.references_ = {
            name: _draw_reference(ax, start, name, score)
            for name, score in references.items()
        }

        first = next(iter(curves.values()))
        label_axes(ax, first.against, score_name or first.scoring.replace("_", " "))
        self.legend_ = add_legend(
            ax,
            [self.lines_[name] for name in order],
            order,
            _describe(curves.values(), any(self.bands_.values()), wide),
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _checked_curves(self):
        curves = self.curves
        check_named(curves, "curves", "LearningCurve")
        score_names = list(dict.fromkeys(curve.scoring for curve in curves.values()))
        if len(score_names) > 1:
            raise ValueError(
                f"'curves' must have the same scoring, got {score_names}. Draw one "
                "display per score."
            )
        return {str(name): curve for name, curve in curves.items()}


def _draw_bands(ax, curves, order, colors):
    return {
        name: draw_band(ax, curve.n_labeled, curve.low, curve.high, colors[name])
        for name, curve in curves.items()
    }


def _draw_whiskers(ax, curves, order, colors):
    """Draw the last limits of each band side by side, to the right of the curves."""
    counts = [count for c in curves.values() for count in c.n_labeled]
    step = 0.015 * (max(counts) - min(counts) or 1)
    whiskers = dict.fromkeys(curves)
    names = [name for name in order if not np.isnan(curves[name].low[-1])]
    for position, name in enumerate(names, start=1):
        x, curve = max(counts) + position * step, curves[name]
        limits = curve.low[-1], curve.high[-1]
        whiskers[name] = ax.vlines(x, *limits, colors=colors[name], linewidth=1.8)
    return whiskers


def _as_references(reference):
    if reference is None:
        return {}
    if not isinstance(reference, Mapping):
        reference = {"all labels": reference}
    for name, score in reference.items():
        if not isinstance(score, Real) or isinstance(score, bool):
            raise TypeError(
                "'reference' must be a score, or a dict from name to score; got "
                f"{score!r} for {name!r}."
            )
    return {str(name): float(score) for name, score in reference.items()}


def _draw_reference(ax, start, name, score):
    ax.annotate(
        f"{name}, {score:.3f}",
        (start, score),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize="small",
        color=GRAY,
        bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1},
        parse_math=False,
    )
    return ax.axhline(score, color=GRAY, linewidth=1, linestyle=":")


def _describe(curves, has_bands, at_end):
    """Return what the curves show, as a figure is often read without its text."""
    curves = list(curves)
    counts = {curve.n_runs for curve in curves}
    if counts == {1}:
        return "one run each" if len(curves) > 1 else "one run"
    text = f"mean of {say_number(counts, 'runs')}"
    if not has_bands:
        return text
    bands = {_BANDS[curve.method].format(curve.confidence_level) for curve in curves}
    end = "\nat the end" if at_end else ""
    return f"{text},\n{' or '.join(sorted(bands))}{end}"
