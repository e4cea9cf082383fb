"""Run the labeling loop on data whose labels are known."""

from ._experiment import read_runs, run_experiment
from ._protocols import (
    GRIESSHABER,
    PREPAL,
    PREPAL_SEQUENTIAL,
    al_ft,
    al_lr,
    prepal,
    proxy,
    transfer,
)
from ._run import Run
from ._scenarios import (
    Seed,
    keyword_seed,
    make_imbalanced,
    reference_seed,
    unbiased_seed,
)
from ._simulate import SimulatedLearner, simulate

__all__ = [
    "GRIESSHABER",
    "PREPAL",
    "PREPAL_SEQUENTIAL",
    "Run",
    "Seed",
    "SimulatedLearner",
    "al_ft",
    "al_lr",
    "keyword_seed",
    "make_imbalanced",
    "prepal",
    "proxy",
    "read_runs",
    "reference_seed",
    "run_experiment",
    "simulate",
    "transfer",
    "unbiased_seed",
]
