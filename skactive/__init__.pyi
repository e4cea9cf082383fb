"""The names of the package, for type checkers."""

from . import analysis as analysis
from . import annotators as annotators
from . import bert as bert
from . import cli as cli
from . import datasets as datasets
from . import estimation as estimation
from . import features as features
from . import labeling as labeling
from . import learner as learner
from . import linear_model as linear_model
from . import persistence as persistence
from . import plotting as plotting
from . import posterior as posterior
from . import project as project
from . import registry as registry
from . import runtime as runtime
from . import semi_supervised as semi_supervised
from . import serving as serving
from . import session as session
from . import simulation as simulation
from . import stopping as stopping
from . import strategies as strategies
from . import testing as testing
from . import view as view
from .learner import ActiveLearner as ActiveLearner
from .persistence import export_onnx as export_onnx
from .persistence import load as load
from .persistence import save as save
from .project import Project as Project
from .registry import get_strategy as get_strategy
from .registry import get_strategy_names as get_strategy_names
from .semi_supervised import ClassDescriptions as ClassDescriptions
from .semi_supervised import make_final_classifier as make_final_classifier
from .semi_supervised import make_fine_tuned_classifier as make_fine_tuned_classifier
from .semi_supervised import make_text_classifier as make_text_classifier
from .session import LabelingSession as LabelingSession
from .simulation import simulate as simulate

__version__: str
