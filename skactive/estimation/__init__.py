"""Estimates that can be published: shares and quality, from labels of a sample."""

from ._alternative import AlternativeTest, alternative_annotator_test
from ._mean import MeanEstimate, estimate_mean, estimate_share
from ._plan import plan_labels
from ._prevalence import Prevalence, estimate_prevalence
from ._quality import ClassQuality, QualityEstimate, estimate_quality

__all__ = [
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
    "plan_labels",
]
