"""Features for large pools: static ones, and those that are computed once and kept."""

# Private names that other folders use are imported as themselves.
from ._folder import FOLDER_PARAMS as FOLDER_PARAMS

# Private names that other folders use are imported as themselves.
from ._folder import write_features as write_features
from ._precomputed import PrecomputedFeatures
from ._static import StaticFeatures

__all__ = ["PrecomputedFeatures", "StaticFeatures"]
