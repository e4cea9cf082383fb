"""Labeling by people, with a journal that survives a crash."""

from .._storage._files import LockedError
from ._agreement import Agreement

# `Desk` is public in `skactive.labeling`. Private names that other folders use are
# imported as themselves.
from ._desk import Desk as Desk
from ._format_export import FileAnswer as FileAnswer
from ._format_export import write_result as write_result
from ._format_import import keep_latest as keep_latest
from ._format_import import read_values as read_values
from ._import_export import PAIR as PAIR
from ._import_export import escape as escape
from ._import_export import export_table as export_table
from ._insights import Estimate
from ._journal import read_manifest as read_manifest
from ._manifest import PoolChangedError as PoolChangedError
from ._mirror import Mirrored as Mirrored
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
