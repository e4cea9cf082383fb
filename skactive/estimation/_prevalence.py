"""Shares of the classes of a pool, in all of it and in groups, and how many labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._utils._containers import as_list
from .._utils._format import brief, format_table, make_frame
from ._mean import MeanEstimate, Sample, as_indicators, check_proba

_SHARES = (
    *("group", "class", "share", "low", "high"),
    *("number", "number_low", "number_high"),
)
_DETAILS = ("n_pool", "n_labels", "effective_size", "counted", "confidence_level")


@dataclass(frozen=True)
class Prevalence:
    """Shares of classes in a pool and in its groups, with intervals.

    Parameters
    ----------
    estimates : dict of (group, class) to MeanEstimate
        The share of each class in each group. The group is None without groups.

    Examples
    --------
    >>> from skactive.estimation import estimate_prevalence
    >>> labels = ["bug"] * 40 + ["praise"] * 60
    >>> print(estimate_prevalence(labels, n_pool=500))
    class   share   95 % interval   number   labels  worth  predictions say
    bug     40.0 %  31.4 to 49.2 %  157-246  100     100
    praise  60.0 %  50.8 to 68.6 %  254-343  100     100
    """

    estimates: dict[tuple[Any, Any], MeanEstimate] = field(default_factory=dict)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns, a list each, with a row for each group and class."""
        rows = []
        for (group, label), estimate in self.estimates.items():
            low, high = estimate.interval or (None, None)
            shares = (estimate.value, low, high)
            numbers = [x and estimate.n_pool and x * estimate.n_pool for x in shares]
            details = [getattr(estimate, name) for name in _DETAILS]
            rows.append([group, label, *shares, *numbers, *details])
        names = [*_SHARES, *_DETAILS]
        table = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        if not self._has_groups():
            del table["group"]
        return table

    def to_frame(self) -> Any:
        """Return the columns as a pandas.DataFrame."""
        return make_frame(self.to_dict())

    def _has_groups(self):
        return any(group is not None for group, _ in self.estimates)

    def __str__(self):
        has_groups, rows, level = self._has_groups(), [], 0.95
        for (group, label), share in self.estimates.items():
            row = [str(group)] * has_groups + [str(label)]
            cells, level = ["too few", "", ""], share.confidence_level
            if share.value is not None:
                low, high = share.interval
                cells = [_percent(share.value), f"{100 * low:.1f} to {_percent(high)}"]
                counts = [f"{x * (share.n_pool or 0):,.0f}" for x in share.interval]
                cells.append("-".join(counts) if share.n_pool else "")
            cells += [f"{share.n_labels:,}", f"{share.effective_size:,.0f}"]
            counted = share.counted
            rows.append([*row, *cells, "" if counted is None else _percent(counted)])
        header = ["group"] * has_groups + [
            "class",
            "share",
            f"{100 * level:g} % interval",
        ]
        header += ["number", "labels", "worth", "predictions say"]
        return format_table(header, rows, "text")


def _percent(share):
    return f"{100 * share:.1f} %"


def estimate_prevalence(
    labels: ArrayLike,
    proba: ArrayLike | None = None,
    pool_proba: ArrayLike | None = None,
    *,
    classes: Sequence[Any] | None = None,
    groups: ArrayLike | None = None,
    pool_groups: ArrayLike | None = None,
    n_pool: int | None = None,
    draw_proba: ArrayLike | None = None,
    finite: bool = True,
    confidence_level: float = 0.95,
) -> Prevalence:
    """Estimate the share of each class in a pool from the labels of a sample.

    Parameters
    ----------
    labels : array-like of shape (n,) or (n, k)
        The classes of the items of the sample; or, if several apply to an item, a
        column of 0 and 1 for each class. See :func:`estimate_share` for the sample.
    proba : array-like of shape (n, k) or (n, k, p), default=None
        Probabilities of the classes, or 0 and 1, by a model or by p of them, for the
        items of the sample. Predictions of a model that was trained on the sample must
        be out-of-fold.
    pool_proba : array-like of shape (n_pool, k) or (n_pool, k, p), default=None
        The same for all items of the pool, with the sample.
    classes : list of length k, default=None
        The classes in the order of the columns. Defaults to the sorted labels.
    groups, pool_groups : array-like of shape (n,) and (n_pool,), default=None
        The group of each item of the sample and of the pool. Shares are estimated for
        each group on its own.
    n_pool : int, default=None
        Number of items in the pool. Defaults to the length of `pool_proba`; without
        either, the pool has no end.
    draw_proba : array-like of shape (n,), default=None
        The probability of each draw; see :func:`estimate_mean`. Not for groups.
    finite : bool, default=True
        Whether the shares are those of the pool. False stands for the population of
        which the pool is a random sample.
    confidence_level : float, default=0.95
        Confidence level of each interval.

    Returns
    -------
    prevalence : Prevalence
        The shares. Groups with fewer than ten labels have none.

    Raises
    ------
    ValueError
        If a label is missing or none of the classes, the columns of the probabilities
        are not those of the classes, a group of the sample is not one of the pool, or
        for the reasons of :func:`estimate_mean`.

    Notes
    -----
    Each share is that of :func:`estimate_share`, with the column of its class as the
    proxy. The intervals hold one by one, not all together.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.estimation import estimate_prevalence
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.choice(["bug", "praise"], 2000, p=[0.3, 0.7])
    >>> wrong = rng.random(2000) < 0.1
    >>> proba = np.where((truth == "bug") != wrong, 0.9, 0.1)
    >>> proba = np.column_stack([proba, 1 - proba])
    >>> rows = rng.choice(2000, 120, replace=False)
    >>> found = estimate_prevalence(truth[rows], proba[rows], proba)
    >>> print(found.estimates[None, "bug"])
    28.3 % (22.9 to 33.6 %), from 120 labels that count as 268 of 2,000 texts
    """
    names, y = as_indicators("labels", labels, classes)
    if groups is None:
        parts = {None: (slice(None), slice(None), n_pool)}
    elif pool_groups is None or draw_proba is not None:
        raise ValueError(
            "'groups' needs 'pool_groups', the group of each item of the pool, and a "
            "simple random sample without 'draw_proba'."
        )
    else:
        parts = _split(groups, pool_groups, len(y))
        n_pool = sum(size for *_, size in parts.values())
    options = {"is_sum": np.ndim(labels) == 1, "most": 3}
    f = check_proba("proba", proba, len(names), len(y), **options)
    pool = check_proba("pool_proba", pool_proba, len(names), n_pool, **options)
    if (f is None) != (pool is None):
        raise ValueError("'proba' and 'pool_proba' must be given together, got one.")
    estimates = {}
    for group, (rows, pool_rows, size) in parts.items():
        for j, name in enumerate(names):
            share = MeanEstimate(None, None, 0, size, confidence_level=confidence_level)
            if len(y[rows]):
                own, every = None, None
                if f is not None:
                    own, every = f[rows, j], pool[pool_rows, j]
                sample = Sample(y[rows, j], own, every, size, draw_proba, finite)
                share = sample.estimate(confidence_level=confidence_level)
            estimates[group, name] = share
    return Prevalence(estimates)


def _split(groups, pool_groups, n):
    """Return rows of the sample, rows of the pool and size by group."""
    try:
        groups, pool_groups = np.array(as_list(groups)), np.array(as_list(pool_groups))
        names, codes, counts = np.unique(
            pool_groups, return_inverse=True, return_counts=True
        )
        unknown = set(groups.tolist()) - set(names.tolist())
    except (TypeError, ValueError) as exc:  # a list, or several kinds
        raise ValueError(
            "'groups' and 'pool_groups' must hold a name or a number for each item, "
            f"got {brief(groups)} and {brief(pool_groups)}. Convert them to str."
        ) from exc
    if len(groups) != n:
        raise ValueError(
            f"'groups' must have {n} items, as 'labels', got {len(groups)}."
        )
    if unknown:
        raise ValueError(
            f"'pool_groups' must hold the groups of all items, with the sample; "
            f"{next(iter(unknown))!r} is missing."
        )
    return {
        name: (groups == name, codes == code, int(counts[code]))
        for code, name in enumerate(names.tolist())
    }
