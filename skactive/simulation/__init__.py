"""Run the labelling loop on data whose labels are known."""

from ..runs import Run
from .budgeted import SimulatedLearner
from .loop import simulate

__all__ = ["Run", "SimulatedLearner", "simulate"]
