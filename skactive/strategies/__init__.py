"""Query strategies and the base classes to write one.

Each family is imported when one of its names is first used.
"""

from importlib import import_module

from .base import FunctionStrategy, PointwiseStrategy, Strategy

_HOME = {
    "ALPS": "clusters",
    "BADGE": "badge",
    "BALD": "bayesian",
    "BatchBALD": "bayesian",
    "CAL": "discriminative",
    "ClassBalanced": "composite",
    "Committee": "committee",
    "CoreSet": "coverage",
    "DAL": "discriminative",
    "DFAL": "gradient",
    "Density": "density",
    "EGL": "gradient",
    "EGLEmbedding": "gradient",
    "EmbeddingKMeans": "clusters",
    "Entropy": "uncertainty",
    "FromSkactiveml": "skactiveml",
    "GORAL": "influence",
    "LeastConfidence": "uncertainty",
    "MCDropout": "bayesian",
    "Margin": "uncertainty",
    "OneShot": "typiclust",
    "PerceptronEnsemble": "committee",
    "PreClustering": "representative",
    "Prefilter": "composite",
    "ProbCover": "coverage",
    "Random": "uncertainty",
    "Representative": "representative",
    "SEALS": "composite",
    "Subsample": "composite",
    "TypiClust": "typiclust",
    "VariationRatio": "uncertainty",
    "WholeCluster": "clusters",
}

__all__ = ["FunctionStrategy", "PointwiseStrategy", "Strategy", *_HOME]


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
