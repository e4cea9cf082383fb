"""Exports with integers of 8 bits: ways to choose them, and what each costs.

    SKACTIVE_DATA=.../data python benchmarks/integers.py
    python benchmarks/integers.py --smoke    # seconds, for CI

The classifier of make_text_classifier (adapt=False) is trained on labels of each data
set, and exported in float32. Its graph is then quantized in several ways, and all
predict the same texts with one thread, in turns. Compared with float32: accuracy and
its standard error, predicted labels that change, probabilities, log loss, calibration
error in ten bins; further processor milliseconds per text and megabytes of the graph.

Options:
    --model FOLDER          by default MiniLM
    --data sst2 trec ag_news banking77
    --labels 200
    --texts 2000
    --turns 1
    --ways {export,7 bits,8 bits,one scale 7 bits,one scale 8 bits}...
Smoke: --data smoke --ways export "8 bits"
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import onnx
from _harness import minilm, parse
from export_onnx import OPTIONS, load, make_smoke
from onnxruntime.quantization import quantize_dynamic
from threadpoolctl import threadpool_limits

import skactive
from skactive import runtime

WAYS = {  # scales per channel, 7 bits; embeddings are float32
    "7 bits": (True, True),
    "8 bits": (True, False),
    "one scale 7 bits": (False, True),
    "one scale 8 bits": (False, False),
}


def quantize(model, exact, way, folder):
    """Write an export whose products are quantized in some way."""
    if way == "export":
        return skactive.export_onnx(model, folder, quantize="int8")
    shutil.copytree(exact, folder)
    graph, (per_channel, reduce_range) = onnx.load(folder / "model.onnx"), WAYS[way]
    graph.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")
    quantize_dynamic(
        graph,
        folder / "model.onnx",
        op_types_to_quantize=["MatMul", "Gemm"],
        nodes_to_quantize=[x.name for x in graph.graph.node if "/encoder/" in x.name],
        per_channel=per_channel,
        reduce_range=reduce_range,
    )
    return folder


def compare(proba, exact, truth):
    """Return what is said of probabilities (n, k), compared with those of float32."""
    confidence, is_right = proba.max(1), proba.argmax(1) == truth
    bins = np.minimum((10 * confidence).astype(int), 9)
    gaps = np.bincount(bins, is_right - confidence)
    gains = is_right - (exact.argmax(1) == truth).astype(float)
    rows = np.flatnonzero(truth >= 0)  # texts of classes that have labels
    return {
        "accuracy": is_right.mean(),
        "gain": gains.mean(),
        "error": gains.std() / len(gains) ** 0.5,
        "changed": (proba.argmax(1) != exact.argmax(1)).mean(),
        "largest": abs(proba - exact).max(),
        "mean": abs(proba - exact).max(1).mean(),
        "log_loss": -np.log(np.maximum(proba[rows, truth[rows]], 1e-9)).mean(),
        "calibration_error": abs(gaps).sum() / len(proba),
        "confidence": confidence.mean(),
    }


def measure(name, args, folder):
    """Print a line of JSON for each way to quantize the model of a data set."""
    is_smoke = name == "smoke"
    X, y, texts, labels = (
        make_smoke() if is_smoke else load(name, args.labels, args.texts)
    )
    encoder = args.model or minilm()
    model = skactive.make_text_classifier(encoder, adapt=False, **OPTIONS).fit(X, y)
    folders = {"float32": Path(skactive.export_onnx(model, folder / "float32"))}
    for way in args.ways:
        folders[way] = quantize(model, folders["float32"], way, folder / way)
    models = {way: runtime.OnnxModel(path, 1) for way, path in folders.items()}
    seconds = {way: [] for way in models}
    for _ in range(args.turns):
        outputs = {}
        for way, exported in models.items():
            start = process_time()
            outputs[way] = exported.predict_proba(texts)
            seconds[way].append(process_time() - start)
    classes = model.classes_.tolist()
    truth = np.array([classes.index(x) if x in classes else -1 for x in labels])
    for way, proba in outputs.items():
        row = compare(proba, outputs["float32"], truth)
        row["ms"] = 1e3 * min(seconds[way]) / len(texts)
        row["mb"] = os.path.getsize(Path(folders[way], "model.onnx")) / 1e6
        row = {key: round(float(value), 4) for key, value in row.items()}
        row = {"data": name, "labels": len(y), "way": way, **row}
        print(json.dumps(row), flush=True)


def main():
    """Measure each data set."""
    args = parse(__doc__)
    for name in args.data:
        with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
            measure(name, args, Path(folder))


if __name__ == "__main__":
    main()
