"""Simulate learners, strategies, seeds and data sets against each other."""

from .folder import read_runs
from .grid import run_experiment

__all__ = ["read_runs", "run_experiment"]
