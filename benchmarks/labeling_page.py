"""How long a person waits: for the first text, and from a key to the next text.

    python benchmarks/labeling_page.py          # 10,000 and 100,000 rows, 200 answers
    python benchmarks/labeling_page.py --first 5  # the first text only, no Chromium
    python benchmarks/labeling_page.py --smoke  # 300 rows, 5 answers, for CI

`skactive label` runs on a CSV file of docstrings, and Chromium shows its page. Seconds
are from the start of the command, and from that of the server, to the first text. Then
keys are pressed at a pace. The time from the event of a key to the first frame that
shows the next text is read in the page; it includes the fsync of the answer. Meanwhile
the command encodes the texts and trains. The state of the page tells how long after a
model the list of doubtful answers is there, and how long after 25, 50 or 100 labels an
encoder that has learned from them is in use. For comparison, the time of a bare fsync
of a line of the same length in the same folder is shown, and the load of the machine.

With `--first`, the classes are named as on the first screen of the page, in the calls
that a browser makes. Seconds of the wall and of the processors that the server used are
from the call that names them to the reply with the first text, and to that with the
next one, after an answer.

Options:
    --rows 10000 100000
    --answers 200
    --pace 0.5           seconds per answer
    --first N            runs for the first text only
Smoke: --rows 300 --answers 5
"""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import numpy as np
from _harness import parse
from selenium import webdriver
from selenium.webdriver import ActionChains

from skactive.datasets import load_docstrings

WATCH = """
window.times = [];
let pressed = 0;
document.addEventListener("keydown", (event) => { pressed = event.timeStamp; }, true);
new MutationObserver(() => {
  if (!pressed || !document.querySelector(".text > p:not(.note)")) return;
  const start = pressed;
  pressed = 0;
  requestAnimationFrame(() => times.push(performance.now() - start));
}).observe(document.querySelector(".text"), { childList: true });
"""
SHOWN = "return Boolean(document.querySelector('.text > p:not(.note)'))"


def write_table(path, n, seed=0):
    """Write a CSV file of n texts: docstrings with a number, so that all differ."""
    texts, _ = load_docstrings(return_X_y=True)
    rng = np.random.default_rng(seed)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "topic"])
        for i, pick in enumerate(rng.integers(len(texts), size=n)):
            writer.writerow([f"{texts[pick][:300]} ({i})", ""])


def open_browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for option in ("headless=new", "no-sandbox", "disable-dev-shm-usage"):
        options.add_argument(f"--{option}")
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    return webdriver.Chrome(options, service)


def wait_for(driver, seconds=120):
    end = time.monotonic() + seconds
    while not driver.execute_script(SHOWN):
        if time.monotonic() > end:
            raise TimeoutError(driver.find_element("tag name", "body").text)
        time.sleep(0.01)


@contextmanager
def open_server(n_rows, *options):
    """Label a table of `n_rows`; yield the process, its address and the folder."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table.csv")
        write_table(table, n_rows)
        command = [sys.executable, "-m", "skactive", "label", str(table), *options]
        command += ["--text", "text", "--label", "topic", "--no-browser"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            lines = iter(process.stderr.readline, "")
            url = next(line for line in lines if "http://" in line).split()[-1]
            yield process, url, folder
        finally:
            process.kill()
            process.wait()


def measure_first(n_rows, n_runs):
    """Print the seconds from the names of the classes to the first text."""
    every = []
    for run in range(n_runs):
        with open_server(n_rows) as (process, url, _):
            call = Caller(url, process.pid)
            for name in ("", "labeling.js", "labeling.css"):
                urlopen(url + name).read()
            stream = urlopen(f"{url}events")  # a page listens to changes
            call("state")
            classes = {"code": "how to write programs", "data": "", "other": ""}
            start = call.clocks()
            call("begin", kind="single-label", classes=classes)
            item = call("next", client="tab", n_queries=2)[0]
            first = call.clocks() - start
            answer = {"id": item["id"], "label": "code", "client": "tab"}
            start = call.clocks()
            call("answer", **answer, seconds=1.0)
            call("next", client="tab", n_queries=2)
            every.append([*first, *(call.clocks() - start)])
            stream.close()
        wall, used, next_wall, next_used = every[-1]
        print(
            f"{n_rows:>8,} rows, run {run + 1}: first text {wall:.2f} s after the "
            f"classes were named, {used:.2f} s of processors; next text "
            f"{next_wall:.2f} s, {next_used:.2f} s; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    wall, used, *_ = np.median(every, axis=0)
    print(f"{n_rows:>8,} rows, median: {wall:.2f} s, {used:.2f} s of processors")


class Caller:
    """Calls of the page of a server, and its clocks."""

    def __init__(self, url, pid):
        self._url, self._stat = url, Path(f"/proc/{pid}/stat")

    def __call__(self, method, **arguments):
        with urlopen(f"{self._url}api/{method}", json.dumps(arguments).encode()) as got:
            return json.load(got)

    def clocks(self):
        """Return seconds of the wall, and of processors that the server used."""
        times = self._stat.read_text().rpartition(")")[2].split()[11:13]
        used = sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
        return np.array([time.perf_counter(), used])


def measure(driver, n_rows, n_answers, pace):
    options = "--classes", "a,b,c", "--n-labels", str(n_answers)
    start = time.perf_counter()
    with open_server(n_rows, *options) as (_, url, folder):
        serving = time.perf_counter()
        driver.get(url)
        wait_for(driver)
        first = time.perf_counter()
        waits, learned, stopped = [], {}, threading.Event()
        args = (url, waits, learned, stopped)
        watcher = threading.Thread(target=watch_list, args=args)
        watcher.start()
        times = press_keys(driver, n_answers, pace)
        stopped.set()
        watcher.join()
        fsync = time_fsync(folder)
    median, high = np.percentile(times, [50, 99])
    print(
        f"{n_rows:>8,} rows: first text after {first - start:.1f} s, "
        f"{first - serving:.1f} s after the server; key to next text "
        f"{median:.0f} ms (median), {high:.0f} ms (99th percentile) of {len(times)}; "
        f"doubtful answers {np.median(waits or [np.nan]):.1f} s after their model "
        f"(median), {max(waits, default=np.nan):.1f} s (longest) of {len(waits)}; "
        f"encoders in use after {learned} s; "
        f"bare fsync {fsync:.1f} ms; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def watch_list(url, waits, learned, stopped):
    """Append the seconds from each model to a list that is as new as the model.

    And note those from so many labels to an encoder that has learned from them.
    """
    newest, came, listed, reached = 0, 0.0, 0, {}
    while not stopped.wait(0.25):
        with urlopen(f"{url}api/state", b"{}") as reply:
            state = json.load(reply)
        n, now = state["model"]["n_labels"], time.perf_counter()
        for point in (25, 50, 100, 200):
            if state["n_labeled"] >= point:
                reached.setdefault(point, now)
        if adapted := state["model"].get("adapted"):
            learned.setdefault(adapted, round(now - reached[adapted]))
        if listed == newest and n > newest:
            newest, came = n, now
        if newest > listed and (state["n_checked"] or 0) >= newest:
            waits.append(now - came)
            listed = newest


def press_keys(driver, n, pace):
    """Return the milliseconds from each key to the next text."""
    driver.execute_script(WATCH)
    rng = np.random.default_rng(0)
    for done in range(1, n + 1):
        wait_for(driver)
        key = str(rng.integers(1, 4))
        ActionChains(driver).send_keys(key).perform()
        time.sleep(pace)
        while driver.execute_script("return times.length") < done:
            time.sleep(0.01)
    return driver.execute_script("return times")


def time_fsync(folder, repeats=50):
    """Return the median milliseconds of a write and fsync of a line."""
    times, line = [], b"x" * 200 + b"\n"
    handle = os.open(Path(folder, "bare"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(repeats):
        start = time.perf_counter()
        os.write(handle, line)
        os.fsync(handle)
        times.append(time.perf_counter() - start)
    os.close(handle)
    return 1000 * float(np.median(times))


def main():
    args = parse(__doc__)
    if args.first:
        for n in args.rows:
            measure_first(n, args.first)
        return
    driver = open_browser()
    try:
        for n in args.rows:
            measure(driver, n, args.answers, args.pace)
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
