"""Labeling by people, kept in a journal that survives a crash of the process."""

from __future__ import annotations

from skactive.session.batch import Batch
from skactive.session.labeling import LabelingSession
from skactive.session.state import read_labels

__all__ = ["Batch", "LabelingSession", "read_labels"]
