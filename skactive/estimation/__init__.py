"""Estimates that can be published: shares and quality, from labels of a sample."""

# Private names that other folders use are imported as themselves.
from ._agreement import Agreement, measure_agreement
from ._alternative import AlternativeTest, alternative_annotator_test
from ._gain import gain_of_labels as gain_of_labels
from ._gain import is_enough as is_enough
from ._gain import n_for_gain as n_for_gain
from ._held_out import out_of_fold as out_of_fold
from ._held_out import predict_held_out as predict_held_out
from ._mean import MeanEstimate, estimate_mean, estimate_share
from ._plan import plan_labels
from ._prevalence import Prevalence, estimate_prevalence
from ._quality import ClassQuality, QualityEstimate, estimate_quality
from ._suspicious import find_suspicious as find_suspicious
from ._suspicious import find_suspicious_numbers as find_suspicious_numbers
from ._suspicious import find_suspicious_rows as find_suspicious_rows
from ._suspicious import temper as temper

__all__ = [
    "Agreement",
    "AlternativeTest",
    "ClassQuality",
    "MeanEstimate",
    "Prevalence",
    "QualityEstimate",
    "alternative_annotator_test",
    "estimate_mean",
    "estimate_prevalence",
    "estimate_quality",
    "estimate_share",
    "measure_agreement",
    "plan_labels",
]
