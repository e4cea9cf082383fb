"""Linear models for the active learning loop."""

from ._logistic import SequentialLogisticRegression

__all__ = ["SequentialLogisticRegression"]
