"""Names that are imported when they are first used; packages that may be missing."""

from importlib import import_module
from importlib.util import find_spec

# What pretrained encoders need; the extra `bert` installs it, and skorch to train them.
_OF_ENCODERS = ("torch", "transformers", "safetensors")


def import_when_used(package, homes, listed):
    """Return `__getattr__` and `__dir__` of a package.

    `homes` has the module of each name in the package; `listed` are its public names.
    """

    def get(name):
        if name in homes:
            return getattr(import_module(f".{homes[name]}", package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted(listed)


def need_bert(what, *more, extras="bert"):
    """Raise an ImportError that names the extra `bert` if a package is missing.

    `more` are packages besides those of encoders, `extras` those that `what` needs.
    """
    missing = [name for name in (*_OF_ENCODERS, *more) if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"{what} needs {', '.join(missing)}, which the extra 'bert' installs: "
            f'pip install "skactive[{extras}]"'
        )


def import_or(message, name):
    """Return a module of a package that may be missing, or raise an ImportError."""
    try:
        return import_module(name)
    except ImportError as exc:
        raise ImportError(message) from exc
