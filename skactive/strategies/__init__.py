"""Query strategies and the base classes to write one.

Each family is imported when one of its names is first used.
"""

from .._math._scores import top_n
from .._utils._lazy import import_when_used
from .._utils._sklearn import Interval, StrOptions
from ..registry import FunctionStrategy, PointwiseStrategy, Strategy

_FAMILIES = {  # the strategies of each file
    "_clustering": (
        "ALPS DropQuery EmbeddingKMeans OneShot PreClustering "
        "Representative TypiClust WholeCluster"
    ),
    "_committee": "Committee PerceptronEnsemble",
    "_contrastive": "CAL DAL",
    "_coverage": "CoreSet ProbCover UHerding",
    "_gradient": "BADGE DFAL EGL EGLEmbedding GORAL",
    "_multi_label": (
        "CategoryVectorInconsistency ExpectedScoreChange LabelCardinalityInconsistency"
    ),
    "_regression": "BAIT GreedySampling LargestClusterMaxDistance",
    "_skactiveml": "FromSkactiveml",
    "_uncertainty": (
        "BALD BatchBALD Density DisagreeWithMachine Entropy LeastConfidence MCDropout "
        "Margin Random VariationRatio"
    ),
    "_wrappers": (
        "AnchorAL ClassBalanced Partitioned Prefilter SEALS Subsample Switch "
        "WrapperStrategy"
    ),
}
_HOME = {name: home for home, names in _FAMILIES.items() for name in names.split()}

__all__ = [
    "FunctionStrategy",
    "Interval",
    "PointwiseStrategy",
    "StrOptions",
    "Strategy",
    "top_n",
    *_HOME,
]

__getattr__, __dir__ = import_when_used(__name__, _HOME, __all__)
