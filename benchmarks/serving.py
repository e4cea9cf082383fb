"""Requests per second, latency and memory of `skactive serve` on the loopback.

    SKACTIVE_DATA=.../data python benchmarks/serving.py
    python benchmarks/serving.py --smoke    # seconds, for CI

A model is trained on 200 texts of AG News and saved, and `skactive serve` is started
with it in a process of its own. Clients with one text per request, each with a
connection that it keeps, send --requests requests in all, with 1, 8 and 64 clients one
after another. The resident memory of the server is read before and after each run, and
then around --long requests of 8 clients. The clients run on the same cores.

--model FOLDER serves that one instead, such as one that `skactive export` wrote.

Options:
    --model FOLDER     of a model; by default one is trained
    --requests 2000
    --long 20000
Smoke: --requests 64 --long 64
"""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter

import numpy as np
from _harness import minilm, parse, table
from learning_curves import load

from skactive import make_text_classifier, save

TOKEN = "the-token-of-this-benchmark"


def train(folder, args):
    """Save a recommended classifier; return its folder and texts to predict."""
    X, y, X_test, _ = load("docstrings" if args.smoke else "ag_news", 700, 1000)
    if args.model is not None:
        return args.model, X_test
    model = make_text_classifier(minilm(), adapt=False)
    model.fit(list(X[:200]), y[:200])
    return save(model, folder / "model", bundle=True), X_test


def memory(process):
    """Return the resident memory of a process in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def ask(port, texts, seconds, n_requests):
    """Send requests one after another, and append the seconds of each."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for i in range(n_requests):
        start = perf_counter()
        body = json.dumps({"texts": [texts[i % len(texts)]]})
        connection.request("POST", "/predict", body, headers)
        response = connection.getresponse()
        content = json.loads(response.read())
        assert response.status == 200, content
        seconds.append(perf_counter() - start)
    connection.close()


def load_test(process, port, texts, n_clients, n_requests):
    """Return a row of the table."""
    before, seconds = memory(process), []
    each = n_requests // n_clients
    clients = [
        threading.Thread(target=ask, args=(port, texts[k::n_clients], seconds, each))
        for k in range(n_clients)
    ]
    start = perf_counter()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    took = perf_counter() - start
    assert len(seconds) == each * n_clients, "a client failed"
    median, late = 1000 * np.percentile(seconds, [50, 99])
    shown = f"{len(seconds) / took:.0f}", f"{median:.1f}", f"{late:.1f}"
    megabytes = f"{before:.0f}", f"{memory(process):.0f}"
    return [n_clients, f"{len(seconds):,}", *shown, *megabytes]


def main():
    args = parse(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        model, texts = train(Path(folder), args)
        command = [sys.executable, "-m", "skactive", "serve", model]
        process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"SKACTIVE_TOKEN": TOKEN},
        )
        try:
            lines, port = [], None
            while port is None and (line := process.stderr.readline()):
                lines.append(line)
                port = re.search(r"http://127.0.0.1:(\d+)/predict", line)
            assert port is not None, "".join(lines)
            port = int(port[1])
            threading.Thread(target=process.stderr.read, daemon=True).start()
            rows = [
                load_test(process, port, texts, n, args.requests) for n in (1, 8, 64)
            ]
            rows.append(load_test(process, port, texts, 8, args.long))
        finally:
            process.terminate()
            process.wait()
    head = ["clients", "requests", "requests per second", "median ms", "p99 ms"]
    print(*table([*head, "MB before", "MB after"], rows), sep="\n")


if __name__ == "__main__":
    main()
