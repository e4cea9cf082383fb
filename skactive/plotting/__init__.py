"""Display classes for runs and models, as in scikit-learn, and the report.

The `from_*` methods of a class compute and draw, `plot(ax=None)` draws again, and the
artists are attributes that can be changed. matplotlib is imported when something is
drawn.
"""

# A private name that other folders use is imported as itself.
from ._axes import import_figure as import_figure
from ._curves import ActiveLearningCurveDisplay
from ._layers import LayerChangeDisplay
from ._overlap import OverlapDisplay
from ._report import write_report
from ._rows import LabelsNeededDisplay, LedgerDisplay
from ._score_time import ScoreTimeDisplay

__all__ = [
    "ActiveLearningCurveDisplay",
    "LabelsNeededDisplay",
    "LayerChangeDisplay",
    "LedgerDisplay",
    "OverlapDisplay",
    "ScoreTimeDisplay",
    "write_report",
]
