"""What runs show: curves, overlap, batches, tests, time, and whether it pays."""

from ._groups import group_runs
from .areas import area_under_curve, deficiency, labels_to_reach
from .batches import describe_batches, diversity, redundancy, representativeness
from .comparison import TestResult, paired_t, welch_t, wilcoxon
from .corrections import Comparison, bonferroni, compare_over_datasets, holm
from .coverage import ClassCoverage, class_coverage
from .curves import LearningCurve, align_runs, band_width, learning_curve
from .diagnosis import Diagnosis, diagnose
from .overlap import Overlap, chance_jaccard, jaccard, mean_jaccard
from .timing import (
    EqualTime,
    LedgerTable,
    equal_time,
    ledger_table,
    score_against_time,
)

__all__ = [
    "ClassCoverage",
    "Comparison",
    "Diagnosis",
    "EqualTime",
    "LearningCurve",
    "LedgerTable",
    "Overlap",
    "TestResult",
    "align_runs",
    "area_under_curve",
    "band_width",
    "bonferroni",
    "chance_jaccard",
    "class_coverage",
    "compare_over_datasets",
    "deficiency",
    "describe_batches",
    "diagnose",
    "diversity",
    "equal_time",
    "group_runs",
    "holm",
    "jaccard",
    "labels_to_reach",
    "learning_curve",
    "ledger_table",
    "mean_jaccard",
    "paired_t",
    "redundancy",
    "representativeness",
    "score_against_time",
    "welch_t",
    "wilcoxon",
]
