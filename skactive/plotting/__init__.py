"""Pictures of runs and models, in the form of scikit-learn's displays.

Each class has `from_*` methods that compute and draw, `plot(ax=None)` that draws again,
and the artists as attributes, to change them. matplotlib is imported when something is
drawn.
"""

from ._curves import ActiveLearningCurveDisplay
from ._layers import LayerChangeDisplay
from ._ledger import LedgerDisplay
from ._overlap import OverlapDisplay
from ._score_time import ScoreTimeDisplay

__all__ = [
    "ActiveLearningCurveDisplay",
    "LayerChangeDisplay",
    "LedgerDisplay",
    "OverlapDisplay",
    "ScoreTimeDisplay",
]
