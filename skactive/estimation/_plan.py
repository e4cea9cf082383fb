"""How many labels an interval needs."""

import numpy as np

from .._utils._checks import check_count, check_share
from ._mean import MIN_LABELS, f1_of, interval_of_share


def plan_labels(
    half_width: float,
    *,
    share: float = 0.5,
    r2: float = 0.0,
    n_pool: int | None = None,
    f1: float | None = None,
    confidence_level: float = 0.95,
) -> int:
    """Return how many random labels give an interval of some half width.

    Parameters
    ----------
    half_width : float
        Wanted half width of the interval, such as 0.03 for 3 points.
    share : float, default=0.5
        A guess of the share: the most labels are needed for one half. With `f1`, the
        share of its class.
    r2 : float, default=0.0
        Share of the variance that the proxy explains, `MeanEstimate.r2`. 0 stands for
        no proxy. It does not help `f1`.
    n_pool : int, default=None
        Number of items in the pool. None stands for no end.
    f1 : float, default=None
        A guess of the F1 score of a class, to plan for its interval instead, by
        predictions that do not depend on the sample.
    confidence_level : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    n : int
        Number of labels, at least 10 and at most `n_pool`.

    Raises
    ------
    ValueError
        If a share, a score or the half width is not between 0 and 1.

    Examples
    --------
    >>> from skactive.estimation import plan_labels
    >>> plan_labels(0.03), plan_labels(0.03, r2=0.5), plan_labels(0.03, n_pool=2000)
    (1099, 550, 710)
    >>> plan_labels(0.05, share=0.2, f1=0.8)
    796
    """
    checked = {"half_width": half_width, "share": share, "f1": f1}
    for name, value in {**checked, "confidence_level": confidence_level}.items():
        if name != "f1" or f1 is not None:
            check_share(name, value)
    check_share("r2", r2, limits=(0,))
    if n_pool is not None:
        check_count("n_pool", n_pool)
    part = share if f1 is None else f1 / (2 - f1)

    def half(size):
        low, high = interval_of_share(part, size, confidence_level)
        return (high - low if f1 is None else f1_of(high) - f1_of(low)) / 2

    sizes = np.unique(np.geomspace(1, 1e7, 3000).astype(int))
    size = next((s for s in sizes if half(s) <= half_width), sizes[-1])
    # F1 is estimated from the items that are in the class or predicted to be.
    size *= (1 - r2) if f1 is None else 1 / min(1.0, share * (2 - f1))
    if n_pool is not None:
        size = 1 / (1 / size + 1 / n_pool)
    return int(min(max(np.ceil(size), MIN_LABELS), n_pool or np.inf))
