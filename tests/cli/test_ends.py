"""A process of `skactive label` that has written everything ends, whatever waits."""

import signal
import subprocess
import sys
import time

import httpx
import pytest

from skactive.datasets import read_cells, write_table

from .._utils._hostile import KINDS, serve_badly

PATIENCE = 240  # seconds; a reply would take six times 60 seconds to be given up


@pytest.fixture
def table(tmp_path):
    """A table of texts with few labels."""
    texts = [f"a {['good', 'bad'][i % 2]} film {i}" for i in range(40)]
    labels = ["good", "bad", "good", "bad"] + [None] * 36
    write_table(tmp_path / "films.csv", {"text": texts, "label": labels})
    return tmp_path / "films.csv"


def finish(process, url):
    httpx.post(f"{url}api/finish", json={}, timeout=60)


def interrupt(process, url):
    process.send_signal(signal.SIGINT)


def terminate(process, url):
    process.send_signal(signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "end"),
    [
        ("says nothing", finish),
        ("says nothing", interrupt),
        ("a byte of a header", terminate),
    ],
)
def test_label_ends_although_its_machine_is_silent(table, tiny_bert, kind, end):
    with serve_badly(KINDS[kind]) as (host, connections):
        command = ["-m", "skactive", "label", table, "--text", "text", "--label"]
        command += ["label", "--model", tiny_bert, "--no-browser", "--no-fine-tuning"]
        command += ["--machine", f"http://{host}", "--machine-model", "tiny"]
        process = subprocess.Popen(
            [sys.executable, *command], stderr=subprocess.PIPE, text=True
        )
        said = []
        try:
            for line in process.stderr:
                said.append(line)
                if "label at " in line:
                    url = line.split("label at ")[1].strip()
                if "writes the labeled table" in line:
                    while not connections:
                        time.sleep(0.1)
                    end(process, url)
                if "the model is in" in line:
                    written = time.monotonic()
            assert process.wait(PATIENCE) == 0, said
        finally:
            process.kill()
    assert time.monotonic() - written < 60, said
    assert table.with_name("films.labeled.csv").exists()
    cells, _, _ = read_cells(table.with_name("films.labeled.csv"))
    assert set(cells["label_source"]) == {"given", "model"}
