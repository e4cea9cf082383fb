"""The page in a real browser, by keyboard: the issue's scenario and its faults."""

import csv
import itertools
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from ._helpers import Page

pytestmark = pytest.mark.browser
TOKEN = "a-token-for-the-tests"
KEYS = {"disaster": "1", "other": "2"}


class Served:
    """A server in a process of its own, on one port and with one token."""

    def __init__(self, folder, port):
        self.command = [sys.executable, Path(__file__).with_name("_serve.py")]
        self.command += [folder, str(port), TOKEN]
        self.port, self.process = port, None
        self.url = f"http://127.0.0.1:{port}/{TOKEN}/"

    def start(self):
        self.process = subprocess.Popen(self.command)
        while True:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", self.port)):
                    return self
            assert self.process.poll() is None
            time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()


def _label_by_keyboard(page, served, truth, n):
    """Label n texts with everything that goes wrong; return the answers typed."""
    typed = {}

    def answer(n):
        for _ in range(n):
            text = page.until(lambda: page.item)
            page.go(KEYS[truth[text]])
            typed[text] = truth[text]

    answer(n // 4)
    text = page.item  # a wrong key, taken back
    page.go("1" if truth[text] == "other" else "2")
    page.press("u")
    page.until(lambda: page.item == text)
    answer(1)
    skipped = page.item
    page.go("s")
    answer(n // 4)
    served.kill()
    kept = 0
    while page.item:  # the text on the screen and what was fetched before
        answer(1)
        kept += 1
    assert f"{kept} answer" in page.text(".fault")
    served.start()
    page.until(lambda: not page.text(".fault") and page.item)
    answer(n // 4)
    before = page.item  # an earlier answer is corrected
    page.open("History")
    page.until(lambda: len(page.all(".entry")) > 2)
    page.press(Keys.TAB, Keys.TAB, Keys.TAB, Keys.ENTER)
    page.until(lambda: page.text(".mode"))
    corrected = page.item
    typed[corrected] = "other" if typed[corrected] == "disaster" else "disaster"
    page.press(KEYS[typed[corrected]])
    page.until(lambda: page.item == before and not page.text(".mode"))
    answer(n - len(typed))
    assert skipped not in typed
    page.open("Finish")
    page.press(Keys.ENTER)
    page.until(lambda: "You can close this page" in page.text(".fault"))
    return typed


@pytest.mark.parametrize(
    "n",
    [20, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.shared_data])],
)
def test_label_by_keyboard_with_a_killed_server(
    request, browser, tmp_path, free_port, n
):
    if n == 20:
        words = itertools.product(["flood", "song"], ["in the north", "by the sea"])
        truth = {
            f"a {what} {where}, number {i}": "disaster" if what == "flood" else "other"
            for i in range(15)
            for what, where in words
        }
        truth |= {f"plain text {i}": "other" for i in range(40)}
    else:
        frame = request.getfixturevalue("shared_data")("disaster_tweets/train")
        frame = frame.drop_duplicates("text").iloc[:2000]
        names = frame["label"].map({1: "disaster", 0: "other"})
        truth = dict(zip(frame["text"], names, strict=True))
    texts = json.dumps(list(truth))
    (tmp_path / "texts.json").write_text(texts, encoding="utf-8")
    served = Served(tmp_path, free_port).start()
    try:
        page = Page(browser, served.url)
        typed = _label_by_keyboard(page, served, truth, n)
        assert served.process.wait(30) == 0
    finally:
        served.kill()
    with open(tmp_path / "labels.csv", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    stored = {row["text"].removeprefix("'"): row["label"] for row in rows}
    assert len(rows) == n
    assert stored == {text.removeprefix("'"): label for text, label in typed.items()}
