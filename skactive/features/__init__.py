"""Features of texts: of a pretrained encoder, static ones, and those that are kept."""

from ._bert import BatchEncoder, BertFeatures

# A private name that another folder uses is imported as itself.
from ._encoding import EncodingRun as EncodingRun
from ._precomputed import PrecomputedFeatures
from ._static import StaticFeatures

__all__ = ["BatchEncoder", "BertFeatures", "PrecomputedFeatures", "StaticFeatures"]
