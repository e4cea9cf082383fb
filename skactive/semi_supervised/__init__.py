"""Classifiers that learn from unlabeled data as well."""

from ._self_training import SelfTraining

__all__ = ["SelfTraining"]
