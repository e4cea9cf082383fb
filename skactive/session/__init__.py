"""Labeling by people, with a journal that survives a crash."""

from .._storage._files import LockedError
from ._agreement import Agreement
from ._desk import Desk as Desk  # public in skactive.labeling
from ._insights import Estimate
from ._pool import Batch
from ._session import LabelingSession
from ._state import read_labels

__all__ = [
    "Agreement",
    "Batch",
    "Estimate",
    "LabelingSession",
    "LockedError",
    "read_labels",
]
