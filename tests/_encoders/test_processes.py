"""Several processes on one cache folder, and processes that are killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skactive.bert import clear_cache

from ..bert._helpers import TEXTS, get, get_quietly, rows_of

pytestmark = [
    pytest.mark.usefixtures("fresh_cache"),
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX only"),
]

# In the other process: the same encoder and texts, and files of four texts each.
PREAMBLE = f"""
import os, signal, sys, time, warnings
sys.path.insert(0, {str(Path(__file__).parents[1] / "bert")!r})
import numpy as np
from _helpers import RECIPE, TEXTS, CountingEncoder, get, row_of, rows_of
from skactive._encoders import _store as store
store._SHARD_TEXTS = 4
warnings.simplefilter("error")
folder = sys.argv[1]
"""


def start(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(script, *arguments):
    process = start(script, *arguments)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


@pytest.mark.slow
def test_another_process_finds_everything(tmp_path):
    script = "features, encoded = get(TEXTS, folder); print(len(encoded))"
    assert run(script, tmp_path) == (0, "10\n", "")
    assert run(script, tmp_path) == (0, "0\n", "")
    features, encoded = get_quietly(TEXTS, tmp_path)
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(TEXTS))


@pytest.mark.slow
@pytest.mark.parametrize("n_encoded", [2, 6, 10])
def test_killed_while_encoding(tmp_path, n_encoded):
    script = (
        "class Killed(CountingEncoder):\n"
        "    def __call__(self, texts, out):\n"
        "        for positions in super().__call__(texts, out):\n"
        "            if len(self.encoded) >= int(sys.argv[2]):\n"
        "                os.kill(os.getpid(), signal.SIGKILL)\n"
        "            yield positions\n"
        "get(TEXTS, folder, Killed())"
    )
    assert run(script, tmp_path, n_encoded) == (-signal.SIGKILL, "", "")
    features, encoded = get_quietly(TEXTS, tmp_path)
    n_written = (n_encoded - 2) // 4 * 4  # whole shards, before the last batch
    assert len(encoded) == len(TEXTS) - n_written
    np.testing.assert_array_equal(features, rows_of(TEXTS))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "n_good",  # with 4 an array is there without its manifest
    [0, 3, 4, 6],
)
def test_killed_while_writing(tmp_path, n_good):
    # The recipe is written first, then the array and the manifest of three shards.
    script = (
        "from skactive._storage import _files\n"
        "replace, calls = os.replace, []\n"
        "def replace_or_die(source, target):\n"
        "    if len(calls) == int(sys.argv[2]):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    calls.append(target)\n"
        "    replace(source, target)\n"
        "_files._replace = replace_or_die\n"
        "get(TEXTS, folder)"
    )
    assert run(script, tmp_path, n_good) == (-signal.SIGKILL, "", "")
    assert len(list(tmp_path.glob("*/.*.tmp"))) == 1
    features, encoded = get_quietly(TEXTS, tmp_path)
    n_shards = max(0, n_good - 1) // 2
    assert len(encoded) == len(TEXTS) - 4 * n_shards
    np.testing.assert_array_equal(features, rows_of(TEXTS))


@pytest.mark.slow
def test_file_as_large_as_the_system_allows(tmp_path):
    script = (
        "import resource\n"
        "warnings.simplefilter('always')\n"
        "get(['known'], folder)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "texts = [f'text {i}' for i in range(8)]\n"
        "store._SHARD_TEXTS = 1024\n"
        "features, encoded = get(texts, folder, width=500)\n"
        "assert (features == rows_of(texts, 500)).all()\n"
        "print(len(encoded), len(get(texts[::-1], folder, width=500)[1]))\n"
    )
    status, out, err = run(script, tmp_path)
    assert (status, out) == (0, "8 0\n"), err
    assert err.count("UserWarning") == 1
    assert "cannot be written (OSError" in err
    assert len(list(tmp_path.glob("*/*"))) == 3  # the recipe and the first shard


@pytest.mark.slow
def test_more_files_than_a_process_may_open(tmp_path):
    script = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))\n"
        "store._SHARD_TEXTS = 2\n"
        "texts = [f'text {i}' for i in range(300)]\n"
        "features, encoded = get(texts, folder)\n"
        "assert (features == rows_of(texts)).all()\n"
        "print(len(encoded), len(get(texts[::-1], folder)[1]))\n"
    )
    assert run(script, tmp_path) == (0, "300 0\n", "")
    assert len(list(tmp_path.glob("*/shard-*.npy"))) == 150
    assert run(script, tmp_path) == (0, "0 0\n", "")


@pytest.mark.slow
def test_two_writers_at_once(tmp_path):
    # Each writes a shard for every two texts, and starts when both are ready.
    script = (
        "store._SHARD_TEXTS = 2\n"
        "own, shift = sys.argv[2], int(sys.argv[3])\n"
        "texts = [f'text {i}' for i in range(shift, shift + 200)]\n"
        "open(os.path.join(folder, own), 'w').close()\n"
        "while not all(os.path.exists(os.path.join(folder, w)) for w in 'ab'):\n"
        "    time.sleep(0.001)\n"
        "for start in range(0, 200, 20):\n"
        "    part = texts[start : start + 20]\n"
        "    assert (get(part, folder)[0] == rows_of(part)).all()\n"
        "features, encoded = get(texts, folder)\n"
        "assert (features == rows_of(texts)).all()\n"
        "print(len(encoded))\n"
    )
    writers = [start(script, tmp_path, "a", 0), start(script, tmp_path, "b", 100)]
    for writer in writers:
        assert writer.communicate(timeout=300) == ("0\n", "")
        assert writer.returncode == 0
    texts = [f"text {i}" for i in range(300)]
    features, encoded = get_quietly(texts, tmp_path)
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(texts))
    assert not list(tmp_path.glob("*/.tmp*"))


@pytest.mark.slow
def test_two_processes_that_find_the_same_damage(tmp_path):
    get(TEXTS, tmp_path)
    for path in tmp_path.glob("*/shard-*.npy"):
        os.truncate(path, 100)
    script = (
        "warnings.simplefilter('ignore')\n"
        "open(os.path.join(folder, sys.argv[2]), 'w').close()\n"
        "while not all(os.path.exists(os.path.join(folder, w)) for w in 'ab'):\n"
        "    time.sleep(0.001)\n"
        "assert (get(TEXTS, folder)[0] == rows_of(TEXTS)).all()\n"
    )
    processes = [start(script, tmp_path, name) for name in "ab"]
    for process in processes:
        assert process.communicate(timeout=300) == ("", "")
        assert process.returncode == 0
    clear_cache()
    features, encoded = get_quietly(TEXTS, tmp_path)
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(TEXTS))
