"""Score against the seconds of training."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from .._utils._sklearn import validate_params
from ..analysis import Groups, name_metric, score_against_time, sort_runs
from ._axes import add_legend, draw_line, label_axes, open_axes
from ._names import GRAY, as_mapping, assign_styles, check_named

# Times that span more than this are drawn on a logarithmic axis.
_SPAN = 100


class ScoreTimeDisplay:
    """Score of models or loops against time [1]_.

    Create a display with :meth:`from_history` or :meth:`from_runs`.

    Parameters
    ----------
    curves : dict of str to tuple of (seconds, scores)
        Two arrays of shape (p,) each, by name.
    finals : dict of str to tuple of (float, float) or None, default=None
        Seconds and score of a model trained after the curve, by the curve's name.
    score_name : str, default="score"
        Label of the vertical axis.
    time_name : str, default="seconds"
        Label of the horizontal axis.
    baseline : str or None, default="random"
        The name that is drawn in dashed gray, if it is among the curves.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
    finals_ : dict of str to matplotlib Line2D
        The line from the end of the curve to the final model.
    legend_ : matplotlib Legend
        The names, in the order of the last scores.

    See Also
    --------
    skactive.analysis.equal_time : The scores at equal time, as a table.

    References
    ----------
    .. [1] Z. Wang, "Transfer learning and fine-tuning of BERT", figures 3 to 6.

    Examples
    --------
    >>> from skactive.plotting import ScoreTimeDisplay
    >>> history = [
    ...     {"epoch": 1, "seconds_total": 10.0, "valid_score": 0.5},
    ...     {"epoch": 2, "seconds_total": 20.0, "valid_score": 0.75},
    ... ]
    >>> display = ScoreTimeDisplay.from_history({"all layers": history})
    >>> for seconds, score in display.lines_["all layers"].get_xydata():
    ...     print(f"{score:g} after {seconds:g} s")
    0.5 after 10 s
    0.75 after 20 s
    """

    def __init__(
        self,
        *,
        curves: Mapping[str, Any],
        finals: Mapping[str, tuple[float, float]] | None = None,
        score_name: str = "score",
        time_name: str = "seconds",
        baseline: str | None = "random",
    ):
        self.curves = curves
        self.finals = finals
        self.score_name = score_name
        self.time_name = time_name
        self.baseline = baseline

    @classmethod
    @validate_params({"score": [str]})
    def from_history(
        cls,
        histories: Any,
        *,
        score: str = "valid_score",
        ax: Any = None,
    ) -> Self:
        """Draw the scores of fine-tuned models after each epoch.

        Parameters
        ----------
        histories : estimator, list of dict, or dict of str to one of these
            A fitted :class:`skactive.bert.BertClassifier` or `BertRegressor`, or its
            `history_`.
        score : str, default="valid_score"
            The key of the histories to draw. "valid_score" requires training with early
            stopping; "train_loss" is always available.
        ax
            As in :meth:`plot`.

        Returns
        -------
        display : ScoreTimeDisplay

        Raises
        ------
        ValueError
            If a history has no epochs or lacks the score.
        """
        histories = as_mapping(histories, "histories", lambda value: False)
        curves = {
            name: read_history(history, name, score)
            for name, history in histories.items()
        }
        names = {
            "valid_score": "score on the validation part",
            "train_loss": "training loss",
            "valid_loss": "validation loss",
        }
        display = cls(
            curves=curves,
            score_name=names.get(score, score.replace("_", " ")),
            time_name="seconds of training",
        )
        return display.plot(ax)

    @classmethod
    @validate_params(
        {
            "scoring": [str, None],
            "phases": [str, list, tuple],
            "baseline": [str, None],
        }
    )
    def from_runs(
        cls,
        runs: "Groups",
        *,
        scoring: str | None = None,
        groupby: str | Sequence[str] = "strategy",
        phases: Sequence[str] = ("fit",),
        baseline: str | None = "random",
        ax: Any = None,
    ) -> Self:
        """Draw the scores of loops against their processor seconds.

        Each point is a round: the mean seconds and the mean score over the runs. The
        number of points is that of the shortest run. A final model that was trained
        after the loop is drawn as an open marker.

        Parameters
        ----------
        runs : dict of str to list of Run, or sequence of Run
            A list is grouped by the `info` of the runs.
        scoring : str or None, default=None
            A metric of all runs. Defaults to the first metric of the first run.
        groupby : str or sequence of str, default="strategy"
            One or several keys of `info` that a list is grouped by.
        phases : sequence of str, default=("fit",)
            The phases whose seconds are counted: "precomputation", "fit",
            "query".
        baseline
            As in the class.
        ax
            As in :meth:`plot`.

        Returns
        -------
        display : ScoreTimeDisplay

        Raises
        ------
        ValueError
            If there are no runs, or they lack the metric.
        """
        curves, finals = {}, {}
        for name, group in sort_runs(runs, groupby).items():
            scoring = name_metric(group, scoring)
            points = [score_against_time(run, scoring, phases=phases) for run in group]
            length = min(len(seconds) for seconds, _ in points)
            if not length:
                raise ValueError(
                    f"the runs of {name!r} have no round with a score. Pass X_test and "
                    "y_test when you simulate."
                )
            curves[name] = tuple(
                np.mean([values[:length] for values in part], axis=0)
                for part in zip(*points, strict=True)
            )
            training = [run.ledger["final_training"] for run in group]
            scores = [run.final_scores.get(scoring) for run in group]
            if any(training) and None not in scores:
                last = np.mean([seconds[-1] for seconds, _ in points])
                finals[name] = (last + np.mean(training), np.mean(scores))
        phases = list(phases)
        if not phases:
            raise ValueError(
                "'phases' must hold at least one of 'precomputation', 'fit' and "
                "'query', got none."
            )
        what = [*phases, *(["final training"] if finals else [])]
        display = cls(
            curves=curves,
            finals=finals,
            score_name=str(scoring).replace("_", " "),
            time_name=f"processor seconds of {_enumerate(what)}",
            baseline=baseline,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves.

        The axis of the seconds is logarithmic if the last point takes at least 100
        times as long as the first one.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            The axes. Defaults to those of a new figure.

        Returns
        -------
        display : ScoreTimeDisplay
        """
        curves, finals = self._checked_curves()
        xscale = _choose_scale(curves, finals)
        ax = open_axes(ax, (8.6 if len(curves) > 4 else 7, 4.5), type(self).__name__)

        ax.set_xscale(xscale)
        styles = assign_styles(curves, self.baseline)
        self.lines_, self.finals_ = {}, {}
        for number, (name, (seconds, scores)) in enumerate(curves.items()):
            line = draw_line(ax, seconds, scores, name, styles[name], number)
            self.lines_[name] = line
            if name in finals:
                self.finals_[name] = _draw_final(ax, line, finals[name])
        if xscale == "linear":
            ax.set_xlim(left=0)  # distances from the origin are times
        label_axes(ax, self.time_name, self.score_name)
        labels = sorted(curves, key=lambda name: -curves[name][1][-1])
        handles = [self.lines_[name] for name in labels]
        if self.finals_:
            handles.append(_sample_of_finals(next(iter(self.finals_.values()))))
            labels.append("final model")
        self.legend_ = add_legend(ax, handles, labels)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _checked_curves(self):
        check_named(self.curves, "curves", "(seconds, scores)")
        curves = {}
        for name, curve in self.curves.items():
            seconds, scores = (np.asarray(part, dtype=float) for part in curve)
            if seconds.ndim != 1 or seconds.shape != scores.shape or not seconds.size:
                raise ValueError(
                    f"the curve of {name!r} must be as many scores as seconds, at "
                    f"least one; got shapes {scores.shape} and {seconds.shape}."
                )
            curves[str(name)] = seconds, scores
        finals = {str(name): final for name, final in (self.finals or {}).items()}
        if unknown := set(finals) - set(curves):
            raise ValueError(
                f"'finals' must have the names of the curves, {list(curves)}; got "
                f"{sorted(unknown)[0]!r}."
            )
        return curves, finals


def _choose_scale(curves, finals):
    times = [seconds for seconds, _ in curves.values()]
    times = np.concatenate([*times, [seconds for seconds, _ in finals.values()]])
    return "log" if 0 < times.min() <= times.max() / _SPAN else "linear"


def _draw_final(ax, line, final):
    x, y = line.get_data()
    return ax.plot(
        [x[-1], final[0]],
        [y[-1], final[1]],
        color=line.get_color(),
        linestyle=(0, (1, 2)),
        linewidth=1.2,
        marker=line.get_marker(),
        markersize=8,
        markerfacecolor="white",
        markevery=[1],
    )[0]


def _sample_of_finals(line):
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        color=GRAY,
        linestyle=line.get_linestyle(),
        marker="o",
        markersize=8,
        markerfacecolor="white",
    )


def _enumerate(words):
    return ", ".join(words[:-1]) + " and " + words[-1] if words[1:] else words[0]


def read_history(history, name, score):
    """Return the seconds and one score of each epoch, two (n_epochs,) arrays.

    `history` is a fitted estimator or its `history_`, `name` what to call it in error
    messages.
    """
    if hasattr(history, "fit"):
        if not hasattr(history, "history_"):
            raise NotFittedError(
                f"{name!r}, a {type(history).__name__}, has no 'history_'. Fit it "
                "first, and pass a BertClassifier or BertRegressor."
            )
        history = history.history_
    if not isinstance(history, list | tuple) or not all(
        isinstance(epoch, Mapping) and "seconds_total" in epoch for epoch in history
    ):
        raise TypeError(
            f"the history of {name!r} must be a fitted estimator or its 'history_', a "
            f"list of one dict for each epoch; got a {type(history).__name__}."
        )
    if not history:
        raise ValueError(f"the history of {name!r} has no epochs. Fit it first.")
    missing = [i for i, epoch in enumerate(history) if epoch.get(score) is None]
    if missing:
        remedy = ""
        if score in ("valid_score", "valid_loss"):
            remedy = (
                " It is measured on texts that early_stopping=True holds out. Train "
                "with it, or pass score='train_loss'."
            )
        raise ValueError(
            f"'score' must be one that every epoch holds; the history of {name!r} has "
            f"no {score!r}, only {sorted(history[missing[0]])}.{remedy}"
        )
    return tuple(
        np.array([epoch[key] for epoch in history], dtype=float)
        for key in ("seconds_total", score)
    )
