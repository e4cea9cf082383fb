"""The names of the package, for type checkers."""

from ._http import HttpServer as HttpServer
from ._prediction_server import PredictionServer as PredictionServer
