"""Several tests at once, corrected for their number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .._sklearn import validate_params
from ._tables import format_table, make_frame
from .comparison import wilcoxon

__all__ = ["Comparison", "bonferroni", "compare_over_datasets", "holm"]


def holm(p_values):
    """Adjust p-values for several tests by Holm's step-down procedure.

    The i-th smallest of m is multiplied by m - i + 1, and none falls below a smaller
    one's. Rejecting those of at most alpha keeps the chance of any false rejection
    at alpha or less [1]_; it finds all that Bonferroni's correction finds.

    Parameters
    ----------
    p_values : array-like of shape (m,)

    Returns
    -------
    adjusted : ndarray of shape (m,)
        In the order given, at most 1.

    References
    ----------
    .. [1] S. Holm, "A simple sequentially rejective multiple test procedure",
       Scandinavian Journal of Statistics 6, 1979.

    Examples
    --------
    >>> from skactive.analysis import holm
    >>> holm([0.01, 0.04, 0.03, 0.005])
    array([0.03, 0.06, 0.06, 0.02])
    """
    p_values = _as_p_values(p_values)
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(p_values.size, 0, -1)
    adjusted = np.empty(p_values.size)
    adjusted[order] = np.maximum.accumulate(factors * p_values[order])
    return np.minimum(adjusted, 1)


def bonferroni(p_values):
    """Adjust p-values for several tests by Bonferroni's correction.

    Parameters
    ----------
    p_values : array-like of shape (m,)

    Returns
    -------
    adjusted : ndarray of shape (m,)
        Each times m, at most 1.

    Examples
    --------
    >>> from skactive.analysis import bonferroni
    >>> bonferroni([0.01, 0.04, 0.5])
    array([0.03, 0.12, 1.  ])
    """
    p_values = _as_p_values(p_values)
    return np.minimum(p_values.size * p_values, 1)


_CORRECTIONS = {"holm": holm, "bonferroni": bonferroni}


@dataclass(frozen=True)
class Comparison:
    """Strategies against a baseline over data sets.

    Attributes
    ----------
    baseline, correction : str
    results : dict of str to TestResult
        Uncorrected.
    adjusted : dict of str to float
        p-values corrected for the number of strategies.
    """

    baseline: str
    correction: str
    results: dict
    adjusted: dict

    def to_frame(self):
        """Tabulate as a pandas.DataFrame, a row for each strategy."""
        return make_frame(
            {
                "strategy": list(self.results),
                "median_difference": [r.difference for r in self.results.values()],
                "p_value": [r.p_value for r in self.results.values()],
                f"p_{self.correction}": list(self.adjusted.values()),
            }
        )

    def __str__(self):
        rows = [
            [
                name,
                f"{result.difference:+.4g}",
                f"{result.p_value:.4f}",
                f"{self.adjusted[name]:.4f}",
            ]
            for name, result in self.results.items()
        ]
        header = [f"against {self.baseline}", "median difference", "p"]
        return format_table([*header, f"p ({self.correction})"], rows)


@validate_params({"scores": [Mapping], "baseline": [str], "correction": [str]})
def compare_over_datasets(scores, baseline="random", *, correction="holm"):
    """Compare strategies with a baseline over data sets.

    A signed-rank test for each strategy, corrected for their number.

    Parameters
    ----------
    scores : dict of str to array-like of shape (n_datasets,)
        For each strategy one score of each data set, in one order.
    baseline : str, default="random"
        Which of them the others are compared with.
    correction : {"holm", "bonferroni"}, default="holm"

    Returns
    -------
    comparison : Comparison

    Examples
    --------
    >>> from skactive.analysis import compare_over_datasets
    >>> print(compare_over_datasets({
    ...     "random": [0.74, 0.79, 0.89, 0.59, 0.65, 0.82],
    ...     "margin": [0.75, 0.81, 0.92, 0.63, 0.70, 0.88],
    ...     "coreset": [0.72, 0.80, 0.86, 0.63, 0.60, 0.76],
    ... }))
    against random  median difference       p  p (holm)
    margin                     +0.035  0.0312    0.0625
    coreset                    -0.025  0.3125    0.3125
    """
    if baseline not in scores:
        raise ValueError(f"'baseline' must be one of {list(scores)}, got {baseline!r}.")
    if correction not in _CORRECTIONS:
        raise ValueError(
            f"'correction' must be one of {list(_CORRECTIONS)}, got {correction!r}."
        )
    results = {
        name: wilcoxon(values, scores[baseline])
        for name, values in scores.items()
        if name != baseline
    }
    if not results:
        raise ValueError(f"'scores' must hold a strategy beside {baseline!r}.")
    adjusted = _CORRECTIONS[correction]([r.p_value for r in results.values()])
    return Comparison(
        baseline,
        correction,
        results,
        dict(zip(results, adjusted.tolist(), strict=True)),
    )


def _as_p_values(p_values):
    try:
        p_values = np.asarray(p_values, dtype=float)
    except (TypeError, ValueError) as exc:
        raise TypeError(f"'p_values' must be numbers, got {p_values!r}.") from exc
    if p_values.ndim != 1 or not ((p_values >= 0) & (p_values <= 1)).all():
        raise ValueError(
            f"'p_values' must be numbers from 0 to 1 in one dimension, got {p_values}."
        )
    return p_values
