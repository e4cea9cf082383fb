"""Tests of a difference between two protocols."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from .._utils._format import brief, format_number
from ..simulation import Run
from ._curves import t_test


@dataclass(frozen=True)
class TestResult:
    """Result of a test of a difference; see `paired_t`, `welch_t`, `wilcoxon`."""

    __test__ = False  # pytest takes classes of this name for tests

    test: str
    statistic: float
    df: float | None
    p_value: float
    difference: float
    interval: tuple | None = None

    def __str__(self):
        symbol = "W" if self.df is None else "t"
        parts = [f"{symbol} = {self.statistic:.2f}"]
        if self.df is not None:
            parts.append(f"df = {format_number(self.df, 3)}")
        p = f"p = {self.p_value:.3f}" if self.p_value >= 0.001 else "p < 0.001"
        parts.append(p)
        return f"{self.test}: difference {self.difference:+.4g}, {', '.join(parts)}"


def welch_t(a: ArrayLike, b: ArrayLike) -> TestResult:
    """Compare the means of two groups of runs by Welch's t test.

    t = (mean_a - mean_b) / sqrt(v_a + v_b) with v = s² / n, and

    df = (v_a + v_b)² / (v_a² / (n_a - 1) + v_b² / (n_b - 1)) [1]_. The variances
    need not be equal. Use this test if the runs have different seeds, and `paired_t`
    if they have the same ones.

    Parameters
    ----------
    a, b : array-like of shape (n,) and (m,)
        One score per run. At least two.

    Returns
    -------
    result : TestResult
        As of `paired_t`.

    References
    ----------
    .. [1] B. L. Welch, "The generalization of 'Student's' problem when several
       different population variances are involved", Biometrika 34, 1947.

    Examples
    --------
    >>> from skactive.analysis import welch_t
    >>> print(welch_t([0.82, 0.84, 0.86], [0.80, 0.81, 0.82]))
    Welch's t test: difference +0.03, t = 2.32, df = 2.94, p = 0.104
    """
    a, b = _as_scores(a, "a"), _as_scores(b, "b")
    return _compare_means("Welch's t test", a, b, paired=False)


def paired_t(a: ArrayLike, b: ArrayLike) -> TestResult:
    """Compare the means of paired scores by Student's t test.

    Parameters
    ----------
    a, b : array-like of shape (n,)
        Scores of runs with the same seeds, in the same order. At least two.

    Returns
    -------
    result : TestResult
        `print` shows it in one line. The attributes are:

        - `test`: name of the test.
        - `difference`: first mean minus second mean.
        - `interval`: its 95% confidence interval, tuple of (float, float).
        - `statistic`, `df`: t and its degrees of freedom.
        - `p_value`: two-sided p-value.

    Examples
    --------
    >>> from skactive.analysis import paired_t
    >>> print(paired_t([0.82, 0.84, 0.86], [0.80, 0.81, 0.82]))
    paired t test: difference +0.03, t = 5.20, df = 2, p = 0.035
    """
    a, b = _as_pairs(a, b)
    return _compare_means("paired t test", a, b, paired=True)


def wilcoxon(a: ArrayLike, b: ArrayLike) -> TestResult:
    """Compare two strategies over data sets by Wilcoxon's signed-rank test.

    The test uses the ranks of the differences, so the scores of different data sets
    need not be on one scale [1]_. Differences of 0 are ignored.

    Parameters
    ----------
    a, b : array-like of shape (n_datasets,)
        One score per data set, such as the mean over runs, in the same order. With
        fewer than six data sets, p cannot be below 0.05.

    Returns
    -------
    result : TestResult
        As of `paired_t`; `statistic` is W, the smaller sum of ranks, `difference` is
        the median of the differences, and `df` and `interval` are None.

    References
    ----------
    .. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data
       sets", Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from skactive.analysis import wilcoxon
    >>> a = [0.75, 0.81, 0.92, 0.63, 0.70, 0.88]
    >>> b = [0.74, 0.79, 0.89, 0.59, 0.65, 0.82]
    >>> print(wilcoxon(a, b))
    Wilcoxon signed-rank test: difference +0.035, W = 0.00, p = 0.031
    """
    a, b = _as_pairs(a, b)
    # 0.82 - 0.80 and 0.84 - 0.82 differ in their last bits but are ties.
    scale = max(np.abs(a).max(), np.abs(b).max())
    differences = np.round((a - b) / scale, 12) if scale else a - b
    if differences.any():
        result = stats.wilcoxon(differences)
        statistic, p_value = result.statistic, result.pvalue
    else:
        statistic, p_value = 0.0, 1.0
    return TestResult(
        "Wilcoxon signed-rank test",
        float(statistic),
        None,
        float(p_value),
        float(np.median(a - b)),
    )


def _compare_means(name, a, b, paired):
    result = t_test(a, b, paired)
    same = np.isnan(result.statistic)  # nothing varies, and the means are equal
    return TestResult(
        name,
        0.0 if same else float(result.statistic),
        float(result.df),
        1.0 if same else float(result.pvalue),
        float(a.mean() - b.mean()),
        tuple(map(float, result.confidence_interval())),
    )


def _as_scores(values, name):
    if any(isinstance(value, Run) for value in np.ravel(np.array(values, object))):
        raise TypeError(
            f"{name!r} must be scores, got runs. Pass one score for each run, such as "
            "[run.scores[-1] for run in runs]."
        )
    try:
        values = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as exc:
        raise TypeError(
            f"{name!r} must be scores, one number for each run; got {brief(values)}."
        ) from exc
    if values.ndim != 1 or values.size < 2:
        raise ValueError(
            f"{name!r} must be at least two scores in one dimension, got an array of "
            f"shape {values.shape}. Run more seeds."
        )
    bad = np.flatnonzero(~np.isfinite(values)).tolist()
    if bad:
        raise ValueError(
            f"{name!r} must hold finite numbers, got NaN or infinity at {bad}"
            ". Leave those runs out."
        )
    return values


def _as_pairs(a, b) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = _as_scores(a, "a"), _as_scores(b, "b")
    if a.size != b.size:
        raise ValueError(
            f"'a' and 'b' must be paired, got {a.size} and {b.size} scores."
        )
    return a, b


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values for several tests by Holm's step-down procedure.

    The i-th smallest of m p-values is multiplied by m - i + 1, and the results are made
    monotonic. Rejecting the hypotheses with an adjusted p-value of at most alpha keeps
    the probability of any false rejection at or below alpha [1]_. The procedure
    rejects every hypothesis that Bonferroni's correction rejects.

    Parameters
    ----------
    p_values : array-like of shape (m,)
        The p-values of m tests.

    Returns
    -------
    adjusted : ndarray of shape (m,)
        The adjusted p-values in the given order, at most 1.

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
    try:
        p_values = np.asarray(p_values, dtype=float)
    except (TypeError, ValueError) as exc:
        raise TypeError(f"'p_values' must be numbers, got {p_values!r}.") from exc
    if p_values.ndim != 1 or not ((p_values >= 0) & (p_values <= 1)).all():
        raise ValueError(
            f"'p_values' must be numbers from 0 to 1 in one dimension, got {p_values}."
        )
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(p_values.size, 0, -1)
    adjusted = np.empty(p_values.size)
    adjusted[order] = np.maximum.accumulate(factors * p_values[order])
    return np.minimum(adjusted, 1)
