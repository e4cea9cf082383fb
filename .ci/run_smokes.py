"""Run the smoke of every benchmark, two at a time, in copies of one process.

    python .ci/run_smokes.py [FILE ...]

Importing torch and transformers takes longer than most smokes. So they are imported
once, and each smoke runs as __main__ in a fork of that process. The output of a smoke
is shown if it fails.
"""

import importlib
import os
import runpy
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ("matplotlib.pyplot", "pandas", "torch", "transformers", "skactive.bert")


def find():
    """Benchmarks that can be run."""
    folders = ("benchmarks/*.py", "benchmarks/papers/*.py")
    files = sorted(path for pattern in folders for path in ROOT.glob(pattern))
    return [path for path in files if "__main__" in path.read_text(encoding="utf-8")]


def start(path, log):
    """Run a smoke in a fork that writes to a file; its process number."""
    scaled = "--scale smoke" in path.read_text(encoding="utf-8")
    if pid := os.fork():
        return pid
    status = 1
    try:
        for stream in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        sys.argv = [str(path), *(["--scale", "smoke"] if scaled else ["--smoke"])]
        sys.path[0] = str(path.parent)
        runpy.run_path(str(path), run_name="__main__")
        status = 0
    except SystemExit as error:
        status = int(error.code not in (None, 0))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main():
    """Run what is named, or all; exit with 1 if one fails."""
    for name in SHARED:
        importlib.import_module(name)
    waiting = [Path(name).resolve() for name in sys.argv[1:]] or find()
    os.chdir(ROOT)
    running, failed = {}, False
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < 2:
                path = waiting.pop(0)
                log = Path(folder, path.name)
                running[start(path, log)] = path, log, time.monotonic()
            pid, status = os.wait()
            path, log, begin = running.pop(pid)
            if status:
                failed = True
                sys.stdout.write(log.read_text(encoding="utf-8")[-20_000:])
            name, what = path.relative_to(ROOT), "FAILED" if status else "passed"
            sys.stdout.write(f"{name}: {what} in {time.monotonic() - begin:.0f} s\n")
            sys.stdout.flush()
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
