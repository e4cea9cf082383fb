"""Front ends of a labeling session: a local page, a terminal and a notebook widget."""

from .._utils._lazy import import_when_used

# The front ends are imported when they are used, since their packages are extras.
_HOME = {
    "LabelingWidget": "_widget",
    "run_prompt": "_prompt",
    "serve": "_server",
}

__all__ = ["LabelingWidget", "run_prompt", "serve"]

__getattr__, __dir__ = import_when_used(__name__, _HOME, __all__)
