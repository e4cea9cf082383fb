"""Tests of a difference between two protocols."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..runs import Run
from ._intervals import student
from ._tables import format_number

__all__ = ["TestResult", "paired_t", "welch_t", "wilcoxon"]


@dataclass(frozen=True)
class TestResult:
    """What a test of a difference found.

    Attributes
    ----------
    test : str
        Its name.
    statistic : float
        t, or W of the signed-rank test (the smaller of the two sums of ranks).
    df : float or None
        Degrees of freedom of a t test.
    p_value : float
        Two-sided.
    difference : float
        The first mean less the second; for the signed-rank test the median of the
        differences.
    interval : tuple of (float, float) or None
        95% confidence interval of the difference by a t test.
    """

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


def welch_t(a, b):
    """Test whether two groups of runs differ in their means: Welch's t.

    t = (mean_a - mean_b) / sqrt(v_a + v_b) with v = s² / n, and

    df = (v_a + v_b)² / (v_a² / (n_a - 1) + v_b² / (n_b - 1)) [1]_: the variances
    need not be equal. For scores of different seeds; use `paired_t` where the runs
    share theirs.

    Parameters
    ----------
    a, b : array-like of shape (n,) and (m,)
        One score for each run, at least two.

    Returns
    -------
    result : TestResult

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
    return _test("Welch's t test", *student(a, b, paired=False))


def paired_t(a, b):
    """Test whether paired scores differ on average: Student's t.

    Parameters
    ----------
    a, b : array-like of shape (n,)
        Scores of runs that share a seed, in one order; at least two.

    Returns
    -------
    result : TestResult

    Examples
    --------
    >>> from skactive.analysis import paired_t
    >>> print(paired_t([0.82, 0.84, 0.86], [0.80, 0.81, 0.82]))
    paired t test: difference +0.03, t = 5.20, df = 2, p = 0.035
    """
    a, b = _as_pairs(a, b)
    return _test("paired t test", *student(a, b, paired=True))


def wilcoxon(a, b):
    """Test whether one strategy is better over data sets: Wilcoxon's signed ranks.

    Ranks the sizes of the differences, so scores of easy and of hard data sets need
    not be comparable in size [1]_. Differences of 0 are left out.

    Parameters
    ----------
    a, b : array-like of shape (n_datasets,)
        One score for each data set, such as the mean over runs, in one order. With
        fewer than six, p cannot fall below 0.05.

    Returns
    -------
    result : TestResult

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
    # 0.82 - 0.80 and 0.84 - 0.82 differ in their last bits and are ties all the same.
    scale = max(np.abs(a).max(), np.abs(b).max())
    differences = np.round((a - b) / scale, 12) if scale else a - b
    if differences.any():
        found = stats.wilcoxon(differences)
        statistic, p_value = found.statistic, found.pvalue
    else:
        statistic, p_value = 0.0, 1.0
    return TestResult(
        "Wilcoxon signed-rank test",
        float(statistic),
        None,
        float(p_value),
        float(np.median(a - b)),
    )


def _test(test, difference, error, df):
    if error > 0:
        statistic = difference / error
    else:  # nothing varies
        statistic = np.copysign(np.inf, difference) if difference else 0.0
    half = stats.t.isf(0.025, df) * error
    return TestResult(
        test,
        float(statistic),
        float(df),
        float(2 * stats.t.sf(abs(statistic), df)),
        float(difference),
        (float(difference - half), float(difference + half)),
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
            f"{name!r} must be scores, one number for each run; got {values!r}."
        ) from exc
    if values.ndim != 1 or values.size < 2:
        raise ValueError(
            f"{name!r} must be at least two scores in one dimension, got an array of "
            f"shape {values.shape}. Run more seeds."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"{name!r} has no number at {np.flatnonzero(~np.isfinite(values)).tolist()}"
            ". Leave those runs out."
        )
    return values


def _as_pairs(a, b):
    a, b = _as_scores(a, "a"), _as_scores(b, "b")
    if a.size != b.size:
        raise ValueError(
            f"'a' and 'b' must be paired, got {a.size} and {b.size} scores."
        )
    return a, b
