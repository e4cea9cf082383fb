"""Linear models for the active learning loop."""

# Private names that other folders use are imported as themselves.
from . import _normal as _normal
from ._few_label import (
    FewLabelClassifier,
    PrototypeClassifier,
    TunedOneVsRestClassifier,
)
from ._few_label import agreement as agreement
from ._few_label import held_out_loss as held_out_loss
from ._gradients import boundary_distance as boundary_distance
from ._gradients import check_boundary as check_boundary
from ._gradients import check_gradient_factors as check_gradient_factors
from ._gradients import distance_from_scores as distance_from_scores
from ._gradients import gradient_factors as gradient_factors
from ._gradients import is_linear_logistic as is_linear_logistic
from ._logistic import LinearLogistic as LinearLogistic
from ._logistic import SequentialLogisticRegression
from ._logistic import quicken as quicken

__all__ = [
    "FewLabelClassifier",
    "PrototypeClassifier",
    "SequentialLogisticRegression",
    "TunedOneVsRestClassifier",
]
