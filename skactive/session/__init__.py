"""Labeling by people, kept in a journal that survives a crash of the process."""

from ._pool import Batch
from ._session import LabelingSession
from ._state import read_labels

__all__ = ["Batch", "LabelingSession", "read_labels"]
