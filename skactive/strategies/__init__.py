"""Query strategies and the base classes to write one."""

from .base import FunctionStrategy, PointwiseStrategy, Strategy
from .uncertainty import Entropy, LeastConfidence, Margin, Random, VariationRatio

__all__ = [
    "Entropy",
    "FunctionStrategy",
    "LeastConfidence",
    "Margin",
    "PointwiseStrategy",
    "Random",
    "Strategy",
    "VariationRatio",
]
