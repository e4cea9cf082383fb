"""Names of a package that are imported when they are first used."""

from importlib import import_module


def import_when_used(package, homes, listed):
    """Return `__getattr__` and `__dir__` of a package.

    `homes` has the module of each name in the package; `listed` are its public names.
    """

    def get(name):
        if name in homes:
            return getattr(import_module(f".{homes[name]}", package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted(listed)
