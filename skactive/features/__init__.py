"""Features that are computed once and kept: in folders, files and other systems."""

from ._precomputed import PrecomputedFeatures

__all__ = ["PrecomputedFeatures"]
