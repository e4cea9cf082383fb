"""Features for large pools: static ones, and those that are computed once and kept."""

from ._precomputed import PrecomputedFeatures
from ._static import StaticFeatures

__all__ = ["PrecomputedFeatures", "StaticFeatures"]
