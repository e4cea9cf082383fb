"""A virtual environment for each library, as some want old dependencies.

The packages that all share have the versions of the environment that runs this. pip
takes them from where it is set up to take them; on a machine without a GPU, point it at
a torch without CUDA, which is much smaller.
"""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

FEATURES = ("sentence-transformers", "transformers")
# What pip installs, then what it installs without its dependencies.
PACKAGES = {
    "small-text": (["small-text==1.4.1", "transformers"], []),
    # It demands skorch 0.9.0, which it imports only where it is used.
    "modAL": (["pandas", *FEATURES], ["modAL-python==0.4.2.1"]),
    "scikit-activeml": (["scikit-activeml==1.0.1", *FEATURES], []),
    "baal": (["baal==2.1.0", *FEATURES], []),
}
OTHERS = {  # of few_shot.py and peer_sets.py
    "setfit": (["setfit==1.2.0", *FEATURES], []),
    "small-text-setfit": (["small-text==1.4.1", "setfit==1.2.0", *FEATURES], []),
}
SHARED = ("torch", "scikit-learn", "numpy")


def make_environment(library, folder):
    """Make the environment of a library, unless it is there.

    Returns
    -------
    python : Path
        Its interpreter.
    """
    folder = folder.absolute() / library
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    done = folder / "complete"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        wanted, alone = {**PACKAGES, **OTHERS}[library]
        pip = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *map(pin, [*SHARED, *wanted])], check=True)
        if alone:
            subprocess.run([*pip, "--no-deps", *alone], check=True)
        done.touch()
    return python


def pin(package):
    """Add the version of the package here, without what a builder has added to it."""
    if "==" in package:
        return package
    return f"{package}=={version(package).partition('+')[0]}"


if __name__ == "__main__":
    folder, *libraries = sys.argv[1:]
    for library in libraries or PACKAGES:
        print(make_environment(library, Path(folder)))
