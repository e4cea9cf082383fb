"""Warnings that name the line of the user."""

import sys
import warnings


def warn_caller(message):
    """Warn with a UserWarning that names the line that called this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("skactive."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)
