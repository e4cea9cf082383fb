"""Linear models for the active learning loop."""

from ._few_label import FewLabelClassifier, PrototypeClassifier
from ._logistic import SequentialLogisticRegression
from ._several_labels import TunedOneVsRestClassifier

__all__ = [
    "FewLabelClassifier",
    "PrototypeClassifier",
    "SequentialLogisticRegression",
    "TunedOneVsRestClassifier",
]
