"""Query strategies and the base classes to write one.

Each family is imported when one of its names is first used.
"""

from importlib import import_module

from .._math._scores import top_n
from .._utils._sklearn import Interval, StrOptions

# Private names that other folders use are imported as themselves.
from ._base import OF_CLASSES as OF_CLASSES
from ._base import TARGETS as TARGETS
from ._base import FunctionStrategy as FunctionStrategy
from ._base import PointwiseStrategy, Strategy
from ._base import check_gives_scores as check_gives_scores
from ._base import find_requirements as find_requirements

_HOME = {
    "ALPS": "_clustering",
    "AnchorAL": "_wrappers",
    "BADGE": "_gradient",
    "BAIT": "_regression",
    "BALD": "_uncertainty",
    "BatchBALD": "_uncertainty",
    "CAL": "_contrastive",
    "CategoryVectorInconsistency": "_multi_label",
    "ClassBalanced": "_wrappers",
    "Committee": "_committee",
    "CoreSet": "_coverage",
    "DAL": "_contrastive",
    "DFAL": "_gradient",
    "Density": "_uncertainty",
    "DropQuery": "_clustering",
    "EGL": "_gradient",
    "EGLEmbedding": "_gradient",
    "EmbeddingKMeans": "_clustering",
    "Entropy": "_uncertainty",
    "ExpectedScoreChange": "_multi_label",
    "FromSkactiveml": "_skactiveml",
    "GORAL": "_gradient",
    "GreedySampling": "_regression",
    "LabelCardinalityInconsistency": "_multi_label",
    "LargestClusterMaxDistance": "_regression",
    "LeastConfidence": "_uncertainty",
    "MCDropout": "_uncertainty",
    "Margin": "_uncertainty",
    "OneShot": "_clustering",
    "Partitioned": "_wrappers",
    "PerceptronEnsemble": "_committee",
    "PreClustering": "_clustering",
    "Prefilter": "_wrappers",
    "ProbCover": "_coverage",
    "Random": "_uncertainty",
    "Representative": "_clustering",
    "SEALS": "_wrappers",
    "Subsample": "_wrappers",
    "Switch": "_wrappers",
    "TypiClust": "_clustering",
    "UHerding": "_coverage",
    "VariationRatio": "_uncertainty",
    "WholeCluster": "_clustering",
}

__all__ = [
    "Interval",
    "PointwiseStrategy",
    "StrOptions",
    "Strategy",
    "top_n",
    *_HOME,
]


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
