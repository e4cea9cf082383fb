"""The overlap of the queries of protocols with those of a reference."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from .._utils._sklearn import validate_params
from ..analysis import Groups, Overlap, Runs, mean_jaccard, sort_runs, split_groups
from ._axes import add_legend, draw_band, draw_line, label_axes, open_axes
from ._names import GRAY, assign_styles, check_named, say_number


class OverlapDisplay:
    """Jaccard similarity of protocols with a reference after each round [1]_.

    Create a display with :meth:`from_runs`.

    Parameters
    ----------
    overlaps : dict of str to Overlap
        Overlaps by name, from :func:`skactive.analysis.mean_jaccard`, which also
        compares single batches or includes the initial labels.
    reference_name : str or None, default=None
        Name of the reference.
    baseline : str or None, default="random"
        The name that is drawn in dashed gray, if it is among the overlaps.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
    bands_ : dict of str to matplotlib PolyCollection or None
        ± one standard deviation over the pairs of runs. None for a single pair.
    chance_ : list of matplotlib Line2D
        Expected similarity of random choices. Empty if the runs do not hold the size
        of the pool.
    legend_ : matplotlib Legend

    See Also
    --------
    skactive.analysis.mean_jaccard : The numbers of the picture.

    References
    ----------
    .. [1] A. Vysogorets, A. Gopal, "Towards efficient active learning in NLP via
       pretrained representations", 2024, figures 3 and 4.

    Examples
    --------
    >>> from skactive.plotting import OverlapDisplay
    >>> from skactive.simulation import Run
    >>> runs = {
    ...     name: [Run([{"queried": batch} for batch in batches])]
    ...     for name, batches in {
    ...         "PRepAL": ([0], [1, 2], [3, 4]),
    ...         "AL+FT": ([0], [2, 5], [1, 3]),
    ...     }.items()
    ... }
    >>> display = OverlapDisplay.from_runs(runs, "AL+FT")
    >>> for n_labeled, similarity in display.lines_["PRepAL"].get_xydata():
    ...     print(f"{n_labeled:g} labels: {similarity:.2f}")
    3 labels: 0.33
    5 labels: 0.60
    """

    def __init__(
        self,
        *,
        overlaps: Mapping[str, Overlap],
        reference_name: str | None = None,
        baseline: str | None = "random",
    ):
        self.overlaps = overlaps
        self.reference_name = reference_name
        self.baseline = baseline

    @classmethod
    @validate_params({"baseline": [str, None]})
    def from_runs(
        cls,
        runs: "Groups",
        reference: str | Runs,
        *,
        groupby: str | Sequence[str] = "strategy",
        baseline: str | None = "random",
        ax: Any = None,
    ) -> Self:
        """Compare runs with those of a reference, and draw the similarities.

        Parameters
        ----------
        runs : dict of str to list of Run, or sequence of Run
            A list is grouped by the `info` of the runs.
        reference : str, Run or list of Run
            The name of one of the groups, or other runs. Runs are paired with those of
            the reference by their seed.
        groupby : str or sequence of str, default="strategy"
            One or several keys of `info` that a list is grouped by.
        baseline
            As in the class.
        ax
            As in :meth:`plot`.

        Returns
        -------
        display : OverlapDisplay

        Raises
        ------
        ValueError
            If there are no runs, there is no group `reference`, or the runs cannot be
            paired by their seed.
        """
        name, against, groups = split_groups(
            sort_runs(runs, groupby), reference, "reference"
        )
        overlaps = {}
        for other, group in groups.items():
            try:
                overlaps[other] = mean_jaccard(group, against)
            except ValueError as exc:
                raise ValueError(f"{other!r} against the reference: {exc}") from exc
        display = cls(overlaps=overlaps, reference_name=name, baseline=baseline)
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the similarities.

        Rounds without queries are left out.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            The axes. Defaults to those of a new figure.

        Returns
        -------
        display : OverlapDisplay
        """
        overlaps = self.overlaps
        check_named(overlaps, "overlaps", "Overlap")
        for name, overlap in overlaps.items():
            if np.isnan(overlap.mean).all():
                raise ValueError(
                    f"{name!r} has no round with queried items except the "
                    "initial labels. Simulate one, or draw overlaps of "
                    "mean_jaccard(..., include_initial=True)."
                )
        wide = len(overlaps) > 3
        ax = open_axes(ax, (8.6 if wide else 7, 4.5), type(self).__name__)

        styles = assign_styles(overlaps, self.baseline)
        self.lines_, self.bands_ = {}, {}
        chances: dict[Any, Any] = {}
        for number, (name, overlap) in enumerate(overlaps.items()):
            queried = ~np.isnan(overlap.mean)
            x, mean, std = (
                values[queried]
                for values in (overlap.n_labeled, overlap.mean, overlap.std)
            )
            line = draw_line(ax, x, mean, name, styles[name], number)
            self.lines_[name] = line
            # No similarity is below 0 or above 1, whatever its deviation.
            limits = np.clip(mean - std, 0, 1), np.clip(mean + std, 0, 1)
            self.bands_[name] = draw_band(ax, x, *limits, line.get_color())
            if overlap.chance is not None:
                chance = overlap.chance[queried]
                chances.setdefault((tuple(x), tuple(chance.round(12))), (x, chance))
        self.chance_ = [
            ax.plot(*points, color=GRAY, linewidth=1.2, linestyle=":", zorder=1.5)[0]
            for points in chances.values()
        ]

        what = f" with {self.reference_name}" if self.reference_name else ""
        label_axes(ax, "labels", f"Jaccard similarity{what}")
        ax.set_ylim(bottom=0)
        order = sorted(self.lines_, key=lambda name: -self.lines_[name].get_ydata()[-1])
        self.legend_ = add_legend(
            ax,
            [*map(self.lines_.get, order), *self.chance_[:1]],
            [*order, *["chance"][: len(self.chance_)]],
            _describe(overlaps),
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _describe(overlaps):
    counts = {len(overlap.similarity) for overlap in overlaps.values()}
    if counts == {1}:
        return "one pair of runs"
    return f"mean of {say_number(counts, 'pairs of runs')},\n± standard deviation"
