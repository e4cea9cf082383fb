"""Analysis of runs: learning curves, tests, overlap, batches and time."""

from ._comparison import holm, paired_t, welch_t, wilcoxon

# Private names that other folders use are imported as themselves.
from ._curves import Groups as Groups
from ._curves import LearningCurve, area_under_curve, group_runs, learning_curve
from ._curves import Runs as Runs
from ._curves import name_metric as name_metric
from ._curves import pair_runs as pair_runs
from ._curves import sort_runs as sort_runs
from ._curves import split_groups as split_groups
from ._diagnosis import diagnose
from ._labels_needed import LabelsNeeded, labels_needed, labels_to_reach
from ._queried import Overlap, class_coverage, describe_batches, mean_jaccard
from ._report import format_report as format_report
from ._summaries import runs_to_frame, summarize_data_sets, summarize_runs
from ._timing import LedgerTable, equal_time, ledger_table
from ._timing import score_against_time as score_against_time

__all__ = [
    "LabelsNeeded",
    "LearningCurve",
    "LedgerTable",
    "Overlap",
    "area_under_curve",
    "class_coverage",
    "describe_batches",
    "diagnose",
    "equal_time",
    "group_runs",
    "holm",
    "labels_needed",
    "labels_to_reach",
    "learning_curve",
    "ledger_table",
    "mean_jaccard",
    "paired_t",
    "runs_to_frame",
    "summarize_data_sets",
    "summarize_runs",
    "welch_t",
    "wilcoxon",
]
