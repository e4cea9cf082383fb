"""Labeling by people, with a journal that survives a crash."""

from .._storage._files import LockedError

# Private names that other folders use are imported as themselves.
from ._desk import Desk
from ._evidence import Estimate as Estimate
from ._formats import SourceAnswer
from ._journal import read_manifest as read_manifest
from ._manifest import PoolChangedError
from ._pool import Batch as Batch
from ._questions import Screens as Screens
from ._session import LabelingSession
from ._state import read_labels

__all__ = [
    "Desk",
    "LabelingSession",
    "LockedError",
    "PoolChangedError",
    "SourceAnswer",
    "read_labels",
]
