"""The names of the package, for type checkers."""

from ._encode import encode_table as encode_table
from ._model import Trainer as Trainer
from ._opening import AUDIT_EVERY as AUDIT_EVERY
from ._project import Project as Project
from ._questions import Questions as Questions
from ._record import write_predicted as write_predicted
from ._settings import ProjectSettings as ProjectSettings
from ._settings import say_cost as say_cost
from ._table import write_predictions as write_predictions
