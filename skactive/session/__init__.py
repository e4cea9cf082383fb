"""Labeling by people, with a journal that survives a crash."""

from ._pool import Batch
from ._session import LabelingSession
from ._state import read_labels

__all__ = ["Batch", "LabelingSession", "read_labels"]
