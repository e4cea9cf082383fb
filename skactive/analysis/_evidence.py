"""What stands beside the verdict on active learning."""

from __future__ import annotations

import numpy as np

from .areas import labels_to_reach
from .batches import describe_batches
from .coverage import class_coverage

__all__ = ["compare_coverage", "compare_redundancy", "count_labels"]


def count_labels(curve, baseline_curve):
    """Count the labels until mean curves reach the baseline's last score.

    Parameters
    ----------
    curve, baseline_curve : LearningCurve

    Returns
    -------
    found : dict
        "target", "labels_to_target", "baseline_labels_to_target", "labels_saved".
    """
    target = float(baseline_curve.mean[-1])
    ours = labels_to_reach(curve, target, interpolate=True)
    theirs = float(labels_to_reach(baseline_curve, target, interpolate=True))
    return {
        "target": target,
        "labels_to_target": None if ours is None else float(ours),
        "baseline_labels_to_target": theirs,
        "labels_saved": None if ours is None else float(theirs - ours),
    }


def compare_coverage(runs, baseline_runs, y):
    """Compare which classes two groups of runs met, in the mean over runs.

    Parameters
    ----------
    runs, baseline_runs : list of Run
    y : array-like of shape (n,)

    Returns
    -------
    found : dict
    """
    ours = [class_coverage(run, y) for run in runs]
    theirs = [class_coverage(run, y) for run in baseline_runs]
    classes = ours[0].classes.tolist()
    sizes = np.unique(np.asarray(y), return_counts=True)[1]
    rarest = int(sizes.argmin())
    return {
        "n_classes": len(classes),
        "classes_met": _mean(c.n_seen[-1] for c in ours),
        "baseline_classes_met": _mean(c.n_seen[-1] for c in theirs),
        "labels_to_meet_all": _labels_to_meet_all(ours),
        "baseline_labels_to_meet_all": _labels_to_meet_all(theirs),
        "rarest_class": classes[rarest],
        "rarest_share": _mean(
            c.counts[-1, rarest] / max(c.n_labeled[-1], 1) for c in ours
        ),
        "baseline_rarest_share": _mean(
            c.counts[-1, rarest] / max(c.n_labeled[-1], 1) for c in theirs
        ),
        "pool_rarest_share": float(sizes[rarest] / sizes.sum()),
    }


def _labels_to_meet_all(coverages):
    """In the mean over runs; None if a run did not meet them all."""
    last = [list(coverage.first.values()) for coverage in coverages]
    if any(None in firsts for firsts in last):
        return None
    return _mean(max(firsts) for firsts in last)


def compare_redundancy(runs, baseline_runs, features):
    """Compare how alike the items of the batches are.

    Parameters
    ----------
    runs, baseline_runs : list of Run
    features : ndarray or sparse matrix of shape (n, d)

    Returns
    -------
    found : dict
        "runs" and "baseline".
    """
    return {
        "runs": _mean_redundancy(runs, features),
        "baseline": _mean_redundancy(baseline_runs, features),
    }


def _mean_redundancy(runs, features):
    """Of the batches after the initial labels; None if all are of one item."""
    values = np.concatenate(
        [
            describe_batches(run, features, measures=["redundancy"])["redundancy"][1:]
            for run in runs
        ]
    )
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else None


def _mean(values):
    return float(np.mean(list(values)))
