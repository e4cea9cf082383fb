"""The names of the package, for type checkers."""

from ._prompt import run_prompt as run_prompt
from ._server import serve as serve
from ._widget import LabelingWidget as LabelingWidget
