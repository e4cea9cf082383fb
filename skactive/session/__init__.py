"""Labelling by people, kept in a journal that survives what happens to a process."""

from __future__ import annotations

from skactive.session.batch import Batch
from skactive.session.labeling import LabelingSession

__all__ = ["Batch", "LabelingSession"]
