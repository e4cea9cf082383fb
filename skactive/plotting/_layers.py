"""The change of each layer in training."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from .._utils._sklearn import HasMethods, validate_params
from ._axes import add_legend, label_axes, open_axes
from ._names import GRAY, HATCHES, INK, as_mapping

_KEYS = ("layer", "part", "mean", "variance")
# Light enough for the thin lines over them.
_COLORS = ("#56B4E9", "#E69F00", "#DDDDDD", "#CC79A7")


class LayerChangeDisplay:
    """Mean absolute change of the parameters of each layer in training [1]_.

    Layers of the encoder are counted from 1, as in the parameter `layers` of
    :class:`skactive.bert.BertFeatures`: `freeze=3` freezes the layers 1 to 3.

    Create a display with :meth:`from_estimator` or :meth:`from_changes`.

    Parameters
    ----------
    changes : dict of str to dict
        By name, the value of :attr:`skactive.bert.BertClassifier.layer_changes_`:
        "layer", "part", "mean" and "variance", of equal lengths. All models must have
        the same architecture.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : dict of str to matplotlib BarContainer
        The means. The thin lines are ± one standard deviation of the changes within
        the layer, cut at 0.
    zeros_ : list of matplotlib Text
        A "0" for each layer that did not change, such as a frozen one.
    border_ : matplotlib Line2D or None
        The line between encoder and head.
    legend_ : matplotlib Legend or None
        None for one model.

    References
    ----------
    .. [1] D. Griesshaber, J. Maucher, N. T. Vu, "Fine-tuning BERT for low-resource
       natural language understanding via active learning", COLING 2020, equation 2
       and figure 4.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skactive.plotting import LayerChangeDisplay
    >>> changes = {
    ...     "layer": ["embeddings", "0", "1", "linear"],
    ...     "part": ["encoder", "encoder", "encoder", "head"],
    ...     "mean": [0.0, 1e-4, 2e-4, 5e-4],
    ...     "variance": [0.0, 1e-8, 1e-8, 4e-8],
    ... }
    >>> display = LayerChangeDisplay.from_changes(changes)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     display.figure_.savefig(Path(folder) / "layers.png")
    >>> [label.get_text() for label in display.ax_.get_xticklabels()]
    ['embeddings', '1', '2', 'linear']
    """

    def __init__(self, *, changes: Any):
        self.changes = changes

    @classmethod
    @validate_params({"log": ["boolean"]})
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, log: bool = False
    ) -> Self:
        """Draw the changes of the layers of fitted estimators.

        Parameters
        ----------
        estimator : estimator, or dict of str to estimator
            A fitted :class:`skactive.bert.BertClassifier` or `BertRegressor`, or a
            pipeline, ActiveLearner or grid search that holds one.
        ax, log
            As in :meth:`plot`.

        Returns
        -------
        display : LayerChangeDisplay

        Raises
        ------
        NotFittedError
            If there are no changes to draw.
        """
        estimators = as_mapping(estimator, "estimator", lambda value: False)
        changes = {name: _find_changes(each) for name, each in estimators.items()}
        return cls(changes=changes).plot(ax, log=log)

    @classmethod
    @validate_params(
        {
            "changes": [Mapping, HasMethods(["__getitem__", "keys"])],
            "log": ["boolean"],
        }
    )
    def from_changes(cls, changes: Any, *, ax: Any = None, log: bool = False) -> Self:
        """Draw stored changes.

        Parameters
        ----------
        changes : dict of arrays, data frame, or dict of str to one of these
            Values of `layer_changes_`.
        ax, log
            As in :meth:`plot`.

        Returns
        -------
        display : LayerChangeDisplay

        Raises
        ------
        ValueError
            If a key is missing, or the layers of several models differ.
        """
        changes = as_mapping(changes, "changes", lambda value: "layer" in value)
        return cls(changes=changes).plot(ax, log=log)

    def plot(self, ax: Any = None, *, log: bool = False) -> Self:
        """Draw the changes.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            The axes. Defaults to those of a new figure.
        log : bool, default=False
            Whether to use a logarithmic axis, for example for a head with a larger
            learning rate.

        Returns
        -------
        display : LayerChangeDisplay
        """
        changes = {name: _check(each, name) for name, each in self.changes.items()}
        layers, parts = _check_layers(changes)
        moved = np.concatenate([each["mean"] for each in changes.values()])
        if log and not moved.any():
            raise ValueError("'log' must be False if no layer has changed, got True.")
        n = len(layers)
        inches = max(5.4, 2.4 + 0.4 * n) + 1.6 * (len(changes) > 1)
        ax = open_axes(ax, (inches, 4.2), type(self).__name__)

        positions = np.arange(n)
        if log:
            ax.set_yscale("log")
        self.bars_, self.zeros_ = {}, []
        width = 0.8 / len(changes)
        for j, (name, each) in enumerate(changes.items()):
            x = positions + (j - (len(changes) - 1) / 2) * width
            self.bars_[name] = _draw_bars(ax, x, each, 0.92 * width, j, name)
            self.zeros_ += [
                _draw_zero(ax, x[i]) for i in np.flatnonzero(each["mean"] == 0)
            ]
        if log:
            ax.set_ylim(bottom=10 ** np.floor(np.log10(moved[moved > 0].min()) - 0.2))
        else:
            ax.set_ylim(bottom=0)
            ax.ticklabel_format(axis="y", scilimits=(-3, 4), useMathText=True)

        self.border_ = _draw_border(ax, parts)
        label_axes(ax, "layer", "mean absolute change\n± standard deviation")
        ax.grid(visible=False, axis="x")
        _name_layers(ax, layers, parts)
        ax.set_xlim(-0.7, n - 0.3)
        self.legend_ = None
        if len(changes) > 1:
            bars = list(self.bars_.values())
            # Thin lines reach anywhere: within the axes it would cover some.
            self.legend_ = add_legend(
                ax, bars, list(self.bars_), most_inside=0, handlelength=2
            )
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _find_changes(estimator):
    """Return `layer_changes_` of the model inside an estimator."""
    model = estimator
    while not hasattr(model, "layer_changes_"):
        if isinstance(model, Pipeline):
            model = model[-1]
            continue
        for inner in ("best_estimator_", "estimator_"):
            if hasattr(model, inner):
                model = getattr(model, inner)
                break
        else:
            raise NotFittedError(
                "'estimator' must be a fitted BertClassifier or BertRegressor, or hold "
                f"one; got {estimator!r}, which has no 'layer_changes_'. Fit it first."
            )
    return model.layer_changes_


def _check(changes, name):
    if not hasattr(changes, "keys"):
        raise TypeError(
            f"'changes' of {name!r} must be a dict of arrays or a data frame, as "
            f"'layer_changes_' is; got {changes!r}."
        )
    missing = [key for key in _KEYS if key not in changes]
    if missing:
        raise ValueError(
            f"'changes' of {name!r} must hold {list(_KEYS)}, as 'layer_changes_' does; "
            f"{missing[0]!r} is missing."
        )
    arrays = {key: np.asarray(changes[key]) for key in _KEYS}
    lengths = {key: len(values) for key, values in arrays.items()}
    if len(set(lengths.values())) > 1 or not lengths["layer"]:
        raise ValueError(
            f"'changes' of {name!r} must hold one value for each layer, and at least "
            f"one layer; got lengths {lengths}."
        )
    return arrays


def _check_layers(changes):
    if not changes:
        raise ValueError("'changes' is empty: pass those of at least one model.")
    (first, one), *others = changes.items()
    for name, other in others:
        same = [np.array_equal(one[key], other[key]) for key in ("layer", "part")]
        if not all(same):
            raise ValueError(
                "'changes' must be of one architecture: "
                f"{first!r} has the layers {one['layer'].tolist()} and {name!r} has "
                f"{other['layer'].tolist()}."
            )
    return one["layer"].tolist(), one["part"].tolist()


def _draw_bars(ax, x, changes, width, j, name):
    mean, std = changes["mean"], np.sqrt(changes["variance"])
    return ax.bar(
        x,
        mean,
        width,
        yerr=[np.minimum(std, mean), std],
        label=name,
        facecolor=_COLORS[j % len(_COLORS)],
        hatch=HATCHES[j % len(HATCHES)],
        edgecolor=INK,
        linewidth=0.6,
        error_kw={"ecolor": INK, "elinewidth": 1, "capsize": 2},
    )


def _draw_zero(ax, x):
    return ax.annotate(
        "0",
        (x, 0),
        xycoords=ax.get_xaxis_transform(),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        fontsize="small",
        color=GRAY,
    )


def _draw_border(ax, parts):
    if "head" not in parts or parts.index("head") == 0:
        return None
    x = parts.index("head") - 0.5
    for text, align, shift in (("encoder", "right", -4), ("head", "left", 4)):
        ax.annotate(
            text,
            (x, 1),
            xycoords=ax.get_xaxis_transform(),
            xytext=(shift, 3),
            textcoords="offset points",
            ha=align,
            fontsize="small",
        )
    return ax.axvline(x, color="#D55E00", linestyle="--", linewidth=1.5)


def _name_layers(ax, layers, parts):
    """Write the names of the layers, long names vertically."""
    names = [
        str(int(layer) + 1) if part == "encoder" and str(layer).isdecimal() else layer
        for layer, part in zip(layers, parts, strict=True)
    ]
    ax.set_xticks(range(len(layers)), names, parse_math=False)
    for label in ax.get_xticklabels():
        if len(label.get_text()) > 3:
            label.set_rotation(90)
