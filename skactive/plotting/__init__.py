"""Pictures of runs and models, in the form of scikit-learn's displays.

Each class has `from_*` methods that compute and draw, `plot(ax=None)` that draws again,
and the artists as attributes, to change them. matplotlib is imported when something is
drawn.
"""

from .curves import ActiveLearningCurveDisplay
from .layers import LayerChangeDisplay
from .ledger import LedgerDisplay
from .overlap import OverlapDisplay
from .score_time import ScoreTimeDisplay

__all__ = [
    "ActiveLearningCurveDisplay",
    "LayerChangeDisplay",
    "LedgerDisplay",
    "OverlapDisplay",
    "ScoreTimeDisplay",
]
