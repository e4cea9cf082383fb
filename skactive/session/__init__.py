"""Labeling by people, with a journal that survives a crash."""

from .._storage._files import LockedError

# `Desk` is public in `skactive.labeling`. Private names that other folders use are
# imported as themselves.
from ._answers import name_now as name_now
from ._desk import Desk as Desk
from ._formats import PAIR as PAIR
from ._formats import Mirrored as Mirrored
from ._formats import keep_latest as keep_latest
from ._formats import list_names as list_names
from ._formats import read_annotation as read_annotation
from ._formats import read_values as read_values
from ._formats import write_result as write_result
from ._import_export import export_table as export_table
from ._insights import Estimate as Estimate
from ._insights import describe_accuracy as describe_accuracy
from ._journal import read_manifest as read_manifest
from ._labels import as_class as as_class
from ._manifest import PoolChangedError as PoolChangedError
from ._pool import Batch as Batch
from ._session import LabelingSession
from ._session import mirror as mirror
from ._state import read_labels

__all__ = ["LabelingSession", "LockedError", "read_labels"]
