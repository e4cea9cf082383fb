"""Linear models for the active learning loop."""

# Private names that other folders use are imported as themselves.
from . import _normal as _normal
from ._few_label import (
    FewLabelClassifier,
    PrototypeClassifier,
    TunedOneVsRestClassifier,
)
from ._few_label import agreement as agreement
from ._few_label import held_out_loss as held_out_loss
from ._logistic import SequentialLogisticRegression
from ._logistic import quicken as quicken

__all__ = [
    "FewLabelClassifier",
    "PrototypeClassifier",
    "SequentialLogisticRegression",
    "TunedOneVsRestClassifier",
]
