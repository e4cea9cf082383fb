"""Run the labeling loop on data whose labels are known."""

from ._experiment import read_runs, run_experiment
from ._imbalanced import make_imbalanced
from ._run import Run
from ._simulate import SimulatedLearner, simulate

__all__ = [
    "Run",
    "SimulatedLearner",
    "make_imbalanced",
    "read_runs",
    "run_experiment",
    "simulate",
]
