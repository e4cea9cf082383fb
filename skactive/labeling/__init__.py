"""Front ends of a labeling session: a local page, a terminal and a notebook widget."""

from importlib import import_module
from typing import Any

# The front ends are imported when they are used, since their packages are extras. The
# command line uses the names that are not in `__all__`.
_HOME = {
    "LabelingWidget": "_widget",
    "serve": "_server",
    "PredictionServer": "_prediction_server",
    "Project": "_project",
    "StartDesk": "_start",
    "open_page": "_server",
    "find_page": "_server",
    "recall_choice": "_record",
    "save_model": "_project",
    "run_prompt": "_prompt",
    "recall_address": "_server",
    "remember_address": "_server",
    "PREDICTED": "_record",
    "make_folder": "_record",
    "plain_folder": "_record",
    "show": "_record",
    "write_output": "_record",
    "write_predictions": "_table",
}

__all__ = ["LabelingWidget", "serve"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
