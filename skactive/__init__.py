"""Active learning for text that behaves like scikit-learn.

Names and submodules are imported when they are first used, so that `import skactive`
costs little more than `import sklearn` and loads no torch.
"""

from importlib import import_module
from pkgutil import iter_modules

__version__ = "0.3.0"

_HOME = {
    "ActiveLearner": "learner",
    "LabelingSession": "session",
    "Project": "project",
    "export_onnx": "persistence",
    "get_strategy": "registry",
    "get_strategy_names": "registry",
    "load": "persistence",
    "ClassDescriptions": "semi_supervised",
    "make_final_classifier": "semi_supervised",
    "make_fine_tuned_classifier": "semi_supervised",
    "make_text_classifier": "semi_supervised",
    "save": "persistence",
    "simulate": "simulation",
}

_SUBMODULES = [x.name for x in iter_modules(__path__) if x.name[0] != "_"]

__all__ = ["__version__", *_HOME]


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*__all__, *_SUBMODULES])
