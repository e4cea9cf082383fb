"""A process that makes queries of one library and measures them.

    python -m peers.worker LIBRARY

Requests come as lines of JSON, answers go out so. An answer is the processor seconds of
the process (all threads), the seconds on the clock, by how many MB resident memory grew
at its peak above what it was before the query, and the positions chosen. A query that
takes more processor seconds than allowed ends the process.
"""

import contextlib
import gc
import json
import os
import sys
import threading
import traceback
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

from .calls import LIBRARIES
from .problem import read_problem

SHORT = 1.0  # a query of fewer seconds is made five times more, and these are taken


def main():
    # What a library prints must not come between the answers.
    out, sys.stdout = sys.stdout, sys.stderr
    library = LIBRARIES[sys.argv[1]]
    problem, read = None, None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["problem"] != read:
                problem = None  # frees its memory first
                problem = read_problem(Path(request["folder"]), *request["problem"])
                read = request["problem"]
            problem.seed = request["seed"]
            library(problem.smaller())()  # so that all code is loaded
            answer = measure(library(problem), request["limit"], out)
        except Exception:
            answer = {"error": traceback.format_exc(limit=-3)}
        reply(answer, out)


def measure(ask, limit, out):
    gc.collect()
    first = measure_once(ask, limit, out)
    if first["cpu"] > SHORT:
        return first
    # The first also waits for memory that the system has to find.
    runs = [measure_once(ask, limit, out) for _ in range(5)]
    return {
        **first,
        "cpu": median(run["cpu"] for run in runs),
        "wall": median(run["wall"] for run in runs),
    }


def measure_once(ask, limit, out):
    done = threading.Event()
    start = process_time()
    stopped = {"cpu": limit, "wall": float("nan"), "grown": float("nan")}

    def watch():
        while not done.wait(0.2):
            if process_time() - start > limit:
                reply(stopped, out)
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    forget_peak()
    before = memory("VmRSS")
    start, clock = process_time(), perf_counter()
    picks = ask()
    cpu, wall = process_time() - start, perf_counter() - clock
    grown = memory("VmHWM") - before
    done.set()
    return {"cpu": cpu, "wall": wall, "grown": grown, "picks": np.ravel(picks).tolist()}


def memory(name):
    """Resident memory in MB now (VmRSS) or at its peak (VmHWM); nan where unknown."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")
    return int(status.split(name + ":")[1].split()[0]) * 1024 / 1e6


def forget_peak():
    # Where this is not allowed the peak is that of the preparation, if it was higher.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def reply(answer, out):
    out.write(json.dumps(answer) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
