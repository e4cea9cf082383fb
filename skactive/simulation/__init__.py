"""Run the labeling loop on data whose labels are known."""

# Private names that other folders use are imported as themselves.
from ..stopping import Run
from ._experiment import run_experiment
from ._folder import OtherSettingsError as OtherSettingsError
from ._folder import read_runs
from ._oracle import make_imbalanced
from ._simulate import SimulatedLearner, simulate

__all__ = [
    "Run",
    "SimulatedLearner",
    "make_imbalanced",
    "read_runs",
    "run_experiment",
    "simulate",
]
