"""Linear models for the active learning loop."""

from ._few_label import FewLabelClassifier, PrototypeClassifier
from ._logistic import SequentialLogisticRegression

__all__ = ["FewLabelClassifier", "PrototypeClassifier", "SequentialLogisticRegression"]
