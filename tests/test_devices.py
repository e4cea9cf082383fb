"""The tests run on the processor, or on CUDA without those for processors only."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from . import conftest

ROOT = Path(__file__).parents[1]


class Item(SimpleNamespace):
    """A test with markers, as pytest collects it."""

    def __init__(self, *marks):
        super().__init__(nodeid="test_it", marks=[mark.mark for mark in marks])

    def iter_markers(self, name):
        return [mark for mark in self.marks if mark.name == name]

    def add_marker(self, marker):
        self.marks.append(marker.mark)


MARKED = pytest.mark.cpu_only("packs texts")


def test_a_test_for_processors_is_skipped_on_a_gpu_with_its_reason(monkeypatch):
    monkeypatch.setattr(conftest, "ON_GPU", True)
    marked, plain = Item(MARKED), Item(pytest.mark.long)
    conftest.skip_on_gpu([marked, plain])
    (skip,) = marked.iter_markers("skip")
    assert skip.args == ("for processors only: packs texts",)
    assert not plain.iter_markers("skip")


def test_it_runs_on_a_processor(monkeypatch):
    monkeypatch.setattr(conftest, "ON_GPU", False)
    item = Item(MARKED)
    conftest.skip_on_gpu([item])
    assert not item.iter_markers("skip")


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize(
    "mark",
    [
        pytest.mark.cpu_only,
        pytest.mark.cpu_only(" "),
        pytest.mark.cpu_only(1),
        pytest.mark.cpu_only("packs", "texts"),
        pytest.mark.cpu_only(reason="packs texts"),
    ],
)
def test_the_marker_needs_a_reason(monkeypatch, mark, on_gpu):
    monkeypatch.setattr(conftest, "ON_GPU", on_gpu)
    with pytest.raises(pytest.UsageError, match=r"one reason.*test_it"):
        conftest.skip_on_gpu([Item(mark)])


@pytest.mark.long
@pytest.mark.parametrize(
    ("device", "error"),
    [
        ("cuda", "torch finds no CUDA device"),
        ("tpu", "must be 'cpu', 'cuda' or 'like_cuda'"),
    ],
)
def test_a_device_that_is_not_there_is_refused(device, error):
    pytest.importorskip("torch")
    environment = {"SKACTIVE_TEST_DEVICE": device, "CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "--collect-only", __file__],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert error in run.stderr


LIKE_CUDA = """
from skactive.bert import BertClassifier
from tests import like_gpu
from tests.conftest import TEXTS

model = {model!r}
settings = {{"max_epochs": 1, "random_state": 0, "cache_frozen": False}}

def show():
    for device in ("auto", "cpu"):
        fitted = BertClassifier(model, device=device, **settings).fit(TEXTS, [0, 1] * 4)
        network = fitted.net_.module_
        print(device, network.bfloat16, network.takes_packed)

show()
like_gpu.force()
show()
"""


@pytest.mark.long
def test_the_processor_as_a_gpu_pads_and_rounds(tiny_bert):
    pytest.importorskip("torch")
    run = subprocess.run(
        [sys.executable, "-c", LIKE_CUDA.format(model=tiny_bert)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines() == [
        "auto False True",
        "cpu False True",
        "auto True False",
        "cpu False True",
    ]
