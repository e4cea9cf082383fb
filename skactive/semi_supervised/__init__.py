"""Models that learn from more than labels: unlabeled texts, descriptions of classes."""

from ._descriptions import ClassDescriptions
from ._mixture import MixtureClassifier
from ._recipes import (
    make_final_classifier,
    make_fine_tuned_classifier,
    make_text_classifier,
)

# A private name that another folder uses is imported as itself.
from ._recipes import packaged_model as packaged_model
from ._self_training import SelfTraining

__all__ = [
    "ClassDescriptions",
    "MixtureClassifier",
    "SelfTraining",
    "make_final_classifier",
    "make_fine_tuned_classifier",
    "make_text_classifier",
]
