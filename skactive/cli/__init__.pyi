"""The names of the package, for type checkers."""

from ._main import main as main
