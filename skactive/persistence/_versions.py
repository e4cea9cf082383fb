"""What wrote a folder, and whether that differs from what reads it."""

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


def collect_versions():
    """List what is installed, without importing it.

    Returns
    -------
    versions : dict of str to str or None
        None for what is not installed.
    """
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions


def major(version):
    """Take the first number of a version, or None.

    Parameters
    ----------
    version : str or None

    Examples
    --------
    >>> from skactive.persistence._versions import major
    >>> major("1.9.1")
    '1'
    """
    return version.split(".")[0] if isinstance(version, str) else None


def warn_of_versions(written):
    """Warn where a major version differs from the one that is installed.

    Parameters
    ----------
    written : dict of str to str or None
        What :func:`collect_versions` gave when the folder was written.
    """
    others = [
        f"{package} {written[package]} (here {here})"
        for package, here in collect_versions().items()
        if written.get(package) and here and major(written[package]) != major(here)
    ]
    if others:
        warnings.warn(
            f"the folder was saved with {', '.join(others)}: what is loaded may "
            "behave otherwise. Compare predictions, or install what it was saved "
            "with.",
            UserWarning,
            stacklevel=4,  # the caller of load
        )
