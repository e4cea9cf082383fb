"""The command `export`: a saved model as an ONNX graph."""

import os
from pathlib import Path

from ..persistence import export_onnx, load
from ._parser import show_line
from ._predict import read_about


def run_export(model, folder, quantize):
    """Run the command `export`."""
    classes = read_about(model).get("classes")
    estimator = load(model)
    try:
        folder = export_onnx(estimator, folder, quantize=quantize, classes=classes)
    except FileExistsError as exc:
        raise ValueError(
            f"argument FOLDER: must be new, got {str(folder)!r}, which exists. Name "
            "another folder, or delete this one."
        ) from exc
    size = sum(os.path.getsize(path) for path in Path(folder).iterdir()) / 1e6
    show_line(f"{folder}: {size:,.0f} MB")
    return 0
