"""Time and memory of the query strategies vs. those of other libraries.

    python benchmarks/strategies.py --peers-python ENV/bin/python --json FILE
    python benchmarks/strategies.py --rows badge,coreset     # in parts; without peers
    python benchmarks/strategies.py --smoke                  # seconds, for CI

The peers live in a virtual environment of their own, as some want old dependencies or
many that are not used here:

    python -m venv ENV
    ENV/bin/python -m pip install torch==2.13.0 small-text==1.4.1 \\
        scikit-activeml==1.0.1 structlog "torchmetrics<2" toma "blackhc.project<3"
    ENV/bin/python -m pip install --no-deps modAL-python==0.4.2.1 baal==2.1.0 \\
        batchbald_redux==2.0.5

All get the same rows: 384 features of unit length, float32, in clusters and with the
spectrum of sentence embeddings; 4 classes, a logistic regression trained on 500 rows,
100 to ask for. Ours is `ActiveLearner.query`, as a user calls it; benchmarks/peers says
how the others are called. Each library runs in its own process on one thread; the
processes take turns, and the ratio is the median of those within a turn, of processor
seconds. Memory is the growth of the resident set during the query, at its peak; a
process is new for every row of the table and has answered a small query before. A peer
that takes more than --timeout processor seconds is stopped, and the ratio is a bound.
All of it takes about ten minutes of processor time, 3 GB of memory for one peer.

Where the answers can be compared, they are: the largest distance from a candidate to
the nearest labeled or asked row (coreset), the mean square of the distance to the
nearest asked row (embedding_kmeans), the exact joint mutual information of the labels
asked for and the model, in nats (batchbald: all get the draws that ours makes itself),
the mean entropy of those asked for (entropy); means over the turns, each with a seed of
its own. In batchbald the seconds of ours include the drawing.

Options:
    --peers-python FILE   that of the peers' environment
    --rows NAMES          of strategies, with commas; by default all
    --pool N              only rows with such a pool
    --repeats 3
    --timeout 120.0
    --json FILE           results are added to those in it
Smoke: --repeats 1
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import numpy as np
from _harness import Worker, parse, print_rows, read_toml
from peers.calls import make_learner
from peers.problem import N_DRAWS, QUALITY, read_problem, write_rows

from skactive.strategies import Strategy

OURS = "skactive"
SAME = 0.998  # of the information: what chance in the samples of a library makes of it


@dataclass(frozen=True)
class Row:
    """A line of the table: what is asked, whom, and what is aimed at."""

    strategy: str
    pool: int
    peers: dict = field(default_factory=dict)  # how many times as fast, at least
    memory: float = float("inf")  # MB, at most
    batch: int = 100
    params: dict = field(default_factory=dict)

    @property
    def name(self):
        changed = [f"{name}={value}" for name, value in self.params.items()]
        return " ".join([self.strategy, *changed])


ROWS = [Row(**row) for row in read_toml(__file__)["rows"]]


class Record(Strategy):
    """Keep the draws of the model that every strategy sees in this round."""

    requires = frozenset({"draws"})

    def select(self, view, n_queries):
        Record.draws = view.draws(N_DRAWS)
        return np.arange(n_queries)


def write_draws(problem):
    make_learner(problem, Record()).query(problem.X_pool, 1)
    np.save(problem.draws_file, Record.draws)


def take_turns(workers, request, repeats):
    """All answers, by library. Who was stopped or has failed is not asked again."""
    answers = {library: [] for library in workers}
    for seed in range(repeats):
        for library, worker in workers.items():
            if all("picks" in answer for answer in answers[library]):
                answers[library].append(worker.ask({**request, "seed": seed}))
    return answers


def compare(row, answers, problem):
    """Lines of the table: ours and each peer."""
    ours = answers.pop(OURS)
    line = {"strategy": row.name, "pool": row.pool, "memory": row.memory}
    if "cpu" not in ours[-1]:
        return [{**line, "verdict": ours[-1].get("error", "stopped")}]
    line |= summarize(row, ours, problem)
    if not answers:
        return [{**line, "verdict": judge(line)}]
    lines = []
    for peer, theirs in answers.items():
        new = {**line, "peer": peer, "least": row.peers[peer]}
        if "error" in theirs[-1]:
            lines.append({**new, "verdict": theirs[-1]["error"]})
            continue
        new |= {f"peer_{key}": x for key, x in summarize(row, theirs, problem).items()}
        pairs = zip(theirs, ours, strict=False)
        new["ratio"] = median(a["cpu"] / b["cpu"] for a, b in pairs)
        lines.append({**new, "verdict": judge(new)})
    return lines


def summarize(row, runs, problem):
    result = {
        "cpu": median(run["cpu"] for run in runs),
        "wall": median(run["wall"] for run in runs),
        "grown": max(run["grown"] for run in runs),
        "stopped": "picks" not in runs[-1],
    }
    if row.strategy in QUALITY and not result["stopped"]:
        name, achieve = QUALITY[row.strategy]
        values = [
            achieve(replace(problem, seed=seed), np.array(run["picks"]))
            for seed, run in enumerate(runs)
        ]
        result |= {"of": name, "quality": float(np.mean(values))}
    return result


def judge(line):
    """Whether the target of a line is met; "-" where there is none."""
    if line["memory"] == float("inf") and not line.get("least"):
        return "-"
    met = line.get("ratio", 0) >= line.get("least", 0)
    met &= not line["grown"] >= line["memory"]  # nan where it cannot be measured
    if line.get("of") == "information" and "peer_quality" in line:
        met &= line["quality"] >= SAME * line["peer_quality"]
    if line.get("peer_stopped") and not met:
        return "not known"
    return "met" if met else "missed"


HEAD = "strategy|pool|s|MB|peer|s|MB|ratio|target|answers: ours, peer's|"


def format_line(line):
    over = "> " if line.get("peer_stopped") else ""

    def show(name, form, before=""):
        return before + format(line[name], form) if name in line else ""

    targets = [f"{line['least']}x"] if line.get("least") else []
    if line["memory"] < float("inf"):
        targets.append(f"< {line['memory']:,} MB")
    qualities = [f"{line[x]:.4f}" for x in ("quality", "peer_quality") if x in line]
    cells = [
        line["strategy"],
        f"{line['pool']:,}",
        show("cpu", ".3g"),
        show("grown", ",.0f"),
        line.get("peer", ""),
        show("peer_cpu", ".3g", over),
        "" if over else show("peer_grown", ",.0f"),
        show("ratio", ".1f", over),
        ", ".join(targets),
        f"{line.get('of', '')} {', '.join(qualities)}".strip(),
        line["verdict"].strip().split("\n")[-1],
    ]
    return cells


def choose_rows(names, pool):
    known = list(dict.fromkeys(row.strategy for row in ROWS))
    names = names.split(",") if names else known
    rows = [row for row in ROWS if row.strategy in names and pool in (None, row.pool)]
    if not rows or not set(names) <= set(known):
        raise SystemExit(
            f"there are no such rows; the strategies are {', '.join(known)}"
        )
    return rows


def main():
    args = parse(__doc__)
    d, m, rows = 384, 500, choose_rows(args.rows, args.pool)
    pythons = {OURS: sys.executable}
    if args.smoke:
        d, m = 16, 40
        rows = [replace(row, pool=400, batch=4, memory=float("inf")) for row in rows]
    elif args.peers_python:
        # Not resolved: the link is what makes the environment.
        python = args.peers_python.absolute()
        pythons |= {peer: python for row in rows for peer in row.peers}
    else:
        print("no --peers-python: the peers are left out")

    lines, names = [], [row.name for row in ROWS]
    if args.json and args.json.exists():
        lines = json.loads(args.json.read_text())
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        write_rows(folder, max(row.pool for row in rows), m, d, k=4)
        workers = {}
        for row in rows:
            asked = d, row.pool, row.strategy, row.batch, row.params
            problem = read_problem(folder, *asked)
            if row.strategy == "batchbald":
                for seed in range(args.repeats):
                    write_draws(replace(problem, seed=seed))
            for library in pythons:
                if library not in workers and library in (OURS, *row.peers):
                    command = pythons[library], "-m", "peers.worker", library
                    workers[library] = Worker(*command, stderr=subprocess.DEVNULL)
            request = {"folder": str(folder), "problem": asked, "limit": args.timeout}
            new = compare(row, take_turns(workers, request, args.repeats), problem)
            if not args.smoke or row == rows[-1]:  # one process for all, to be quick
                while workers:
                    workers.popitem()[1].close()
            lines = [x for x in lines if not same(x, new[0])] + new
            lines.sort(key=lambda line: (names.index(line["strategy"]), line["pool"]))
            print(*map(format_line, new), sep="\n", file=sys.stderr, flush=True)
            if args.json:
                args.json.write_text(json.dumps(lines, indent=1) + "\n")

    print_rows(HEAD, map(format_line, lines))
    if any("cpu" not in line for line in lines):
        raise SystemExit("a query of ours has failed")


def same(line, other):
    return all(line[key] == other[key] for key in ("strategy", "pool"))


if __name__ == "__main__":
    main()
