"""Versions of the installed packages that a folder was written with."""

import platform
import warnings
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = (
    "skactive",
    "scikit-learn",
    "numpy",
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "skops",
)


def collect_versions(packages=None):
    """Return the installed versions by name, None for missing ones; import nothing."""
    versions = {"python": platform.python_version()}
    for package in packages or _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions


def major(version):
    """Return the first number of a version as `str`, or None."""
    return version.split(".")[0] if isinstance(version, str) else None


def warn_of_versions(written, stacklevel=4):
    """Warn if major versions in `written` differ from the installed ones."""
    others = [
        f"{package} {written[package]} (here {here})"
        for package, here in collect_versions().items()
        if written.get(package) and here and major(written[package]) != major(here)
    ]
    if others:
        warnings.warn(
            f"the folder was saved with {', '.join(others)}: what is loaded may "
            "behave differently. Compare predictions, or install the versions that "
            "it was saved with.",
            UserWarning,
            stacklevel=stacklevel,
        )
