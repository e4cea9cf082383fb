"""Analysis of runs: learning curves, overlap, batches, tests and time."""

from ._areas import area_under_curve, labels_to_reach
from ._batches import describe_batches, diversity, redundancy, representativeness
from ._comparison import (
    TestResult,
    holm,
    paired_t,
    welch_t,
    wilcoxon,
)

# Private names that other folders use are imported as themselves.
from ._curves import Groups as Groups
from ._curves import LearningCurve, align_runs, group_runs, learning_curve
from ._curves import Runs as Runs
from ._curves import name_metric as name_metric
from ._curves import pair_runs as pair_runs
from ._curves import sort_runs as sort_runs
from ._curves import split_groups as split_groups
from ._diagnosis import Diagnosis, diagnose
from ._discovery import ClassCoverage, class_coverage
from ._labels_needed import LabelsNeeded, labels_needed
from ._overlap import Overlap, jaccard, mean_jaccard
from ._report import BASELINE as BASELINE
from ._report import OF_A_RUN as OF_A_RUN
from ._report import format_report, summarize_runs
from ._timing import (
    EqualTime,
    LedgerTable,
    equal_time,
    ledger_table,
    score_against_time,
)

__all__ = [
    "ClassCoverage",
    "Diagnosis",
    "EqualTime",
    "LabelsNeeded",
    "LearningCurve",
    "LedgerTable",
    "Overlap",
    "TestResult",
    "align_runs",
    "area_under_curve",
    "class_coverage",
    "describe_batches",
    "diagnose",
    "diversity",
    "equal_time",
    "format_report",
    "group_runs",
    "holm",
    "jaccard",
    "labels_needed",
    "labels_to_reach",
    "learning_curve",
    "ledger_table",
    "mean_jaccard",
    "paired_t",
    "redundancy",
    "representativeness",
    "score_against_time",
    "summarize_runs",
    "welch_t",
    "wilcoxon",
]
