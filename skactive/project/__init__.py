"""A table that people label: its questions, settings, session and results.

The commands use the names that are not in `__all__`.
"""

from .._utils._lazy import import_when_used

_HOME = {
    "Project": "_project",
    "ProjectSettings": "_settings",
    "Questions": "_questions",
    "AUDIT_EVERY": "_opening",
    "Trainer": "_model",
    "encode_table": "_encode",
    "say_cost": "_settings",
    "write_predicted": "_record",
    "write_predictions": "_table",
}

__all__ = ["Project", "ProjectSettings", "Questions", "encode_table"]

__getattr__, __dir__ = import_when_used(__name__, _HOME, __all__)
