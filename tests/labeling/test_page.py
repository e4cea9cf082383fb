"""The page in a real browser, by keyboard: the issue's scenario and its faults."""

import csv
import errno
import itertools
import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from skactive.labeling._server import PAGE, LabelingServer

from ..conftest import SKACTIVE
from ._helpers import TOKEN, Page, find_violations, text_of

pytestmark = pytest.mark.browser
KEYS = {"disaster": "1", "other": "2"}


class Served:
    """A command that serves the page, which is killed and started again."""

    def __init__(self, command, port):
        self.command, self.port, self.process = [sys.executable, *command], port, None

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
            text = page.wait()
            page.go(KEYS[truth[text]])
            typed[text] = truth[text]

    answer(n // 4)
    text = page.wait()  # a wrong key, taken back
    page.go("1" if truth[text] == "other" else "2")
    page.press("u")
    page.until(lambda: page.item == text)
    answer(1)
    skipped = page.go("s")
    answer(n // 4)
    page.wait()
    served.kill()
    kept = 0
    while page.item:  # the text on the screen and what was fetched before
        answer(1)
        kept += 1
    assert f"{kept} answer" in page.text(".fault")
    served.start()
    page.until(lambda: not page.text(".fault"))
    answer(n // 4)
    before = page.wait()  # an earlier answer is corrected
    page.open("History")
    page.until(lambda: len(page.all(".entry")) > 2)
    page.press(Keys.ENTER)  # takes the first
    page.until(lambda: page.text(".mode"))
    corrected = page.item
    typed[corrected] = "other" if typed[corrected] == "disaster" else "disaster"
    page.press(KEYS[typed[corrected]])
    page.until(lambda: page.item == before and not page.text(".mode"))
    answer(n - len(typed))
    assert skipped not in typed
    page.open("Finish")
    assert "Finish now? It ends for everyone" in page.text("dialog")
    page.press(Keys.ENTER)
    page.until(lambda: f"{n} labels by people are stored" in page.text(".ending"))
    return typed


@pytest.mark.slow
def test_label_by_keyboard_with_a_killed_server(window, tmp_path, free_port):
    truth = {
        f"a {what} {where}, number {i}": name
        for what, name in (("flood", "disaster"), ("song", "other"))
        for where in ("in the north", "by the sea")
        for i in range(25)
    }
    (tmp_path / "texts.json").write_text(json.dumps(list(truth)), encoding="utf-8")
    script = Path(__file__).with_name("_serve.py")
    served = Served([script, tmp_path, str(free_port), TOKEN], free_port).start()
    try:
        page = Page(window, f"http://127.0.0.1:{free_port}/{TOKEN}/")
        typed = _label_by_keyboard(page, served, truth, 20)
        assert served.process.wait(600) == 0
    finally:
        served.kill()
    rows = _read_csv(tmp_path / "labels.csv")
    assert {row["text"]: row["label"] for row in rows} == typed
    assert len(rows) == 20


def _read_csv(path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.weights
@pytest.mark.parametrize(("n_given", "n"), [(20, 60), (0, 24)])
def test_label_tweets_with_the_command(
    window, shared_data, minilm, tmp_path, free_port, n_given, n
):
    frame = shared_data("disaster_tweets/train").drop_duplicates("text").iloc[:300]
    frame = frame[["text", "label"]].reset_index(drop=True)
    frame["label"] = frame["label"].map({1: "disaster", 0: "other"})
    truth = dict(zip(frame["text"], frame["label"], strict=True))
    given = frame.iloc[:n_given]
    frame.loc[n_given:, "label"] = None
    table = tmp_path / "tweets.csv"
    frame.to_csv(table, index=False)
    command = [*SKACTIVE, "label", table, "--text", "text", "--label", "label"]
    command += ["--n-labels", str(n), "--port", str(free_port)]
    # Training the encoder on 80 labels takes minutes where other tests run as well.
    command += ["--no-browser", "--no-fine-tuning", "--no-adapt"]
    if n_given:
        command += ["--classes", "disaster,other"]
    served = Served(command, free_port).start()
    try:
        address = tmp_path / "tweets.skactive" / "page.json"
        while not address.exists():
            time.sleep(0.05)
        token = json.loads(address.read_text())["token"]
        page = Page.__new__(Page)
        page.driver = window
        window.get(f"http://127.0.0.1:{free_port}/{token}/")
        if not n_given:  # the first screen comes first
            page.until(lambda: page.text(".samples"))
            page.type(f"disaster: it is reported{Keys.ENTER}other{Keys.ENTER}")
            page.press(Keys.ENTER)
        page.until(lambda: page.item)  # the texts are encoded first
        typed = _label_by_keyboard(page, served, truth, n)
        page.until(lambda: page.text(".ending h2") == "Finished")
        assert "tweets.labeled.csv" in page.text(".ending")
        assert served.process.wait(600) == 0
    finally:
        served.kill()
    rows = _read_csv(tmp_path / "tweets.labeled.csv")
    people = {r["text"]: r["label"] for r in rows if r["label_source"] == "person"}
    assert people == typed
    known = {r["text"]: r["label"] for r in rows if r["label_source"] == "given"}
    assert list(known.values()) == list(given["label"])
    assert [row["text"] for row in rows] == list(frame["text"])


# Everything below runs a server in this process, over the desk of the fixtures.


def _labels(page):
    """Return the stored labels by text."""
    session = page.desk.session
    return {text_of(session, id): label for id, label in session.labels.items()}


HTML = "<img src=x onerror='document.title=\"hacked\"'><script>hacked=1</script> &amp;"
RTL = "שלום עולם, זה טקסט"


@pytest.mark.slow
def test_texts_and_names_are_shown_as_text(open_page):
    long = "word " * 20_000
    texts = [HTML, RTL, long, "a\nb", "__proto__", "e\u0301 東京 \u202e x"]
    page = open_page(texts, session={"classes": ["__proto__", "constructor", HTML]})
    assert page.classes == ["__proto__", "constructor", HTML]
    seen, places = [], set()
    for key in itertools.islice(itertools.cycle("123"), len(texts)):
        text = page.wait()
        seen.append(text)
        direction = (
            "return getComputedStyle(document.querySelector('.text p')).direction"
        )
        expected = "rtl" if text == RTL else "ltr"
        assert page.driver.execute_script(direction) == expected
        places.add(str(page.all(".classes button")[0].rect))
        page.press(key)
        page.until(lambda before=text: page.item != before)
    assert sorted(seen) == sorted(texts)
    assert len(places) == 1  # whatever the length of the text
    labels = itertools.cycle(["__proto__", "constructor", HTML])
    assert _labels(page) == dict(zip(seen, labels, strict=False))
    assert page.driver.title != "hacked"
    assert page.driver.execute_script("return typeof hacked") == "undefined"
    page.open("History")
    page.until(lambda: len(page.all(".entry")) == len(texts))
    assert page.text(".entry .excerpt")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "keys"), [([0, 1], "10"), ([False, True], "21"), ([5, 2], "25")]
)
def test_numbers_and_bools_are_classes(open_page, classes, keys):
    page = open_page(session={"classes": classes})
    for key in keys:
        page.go(key)
    assert [(type(x), x) for x in page.desk.session.labels.values()] == [
        (type(x), x) for x in classes[::-1]
    ]


def test_pairs_of_texts_are_both_shown(open_page):
    page = open_page([(f"question {i}", f"answer {i}") for i in range(5)])
    question, answer = page.item.split("|")
    assert question.replace("question", "answer") == answer


@pytest.mark.slow
def test_a_full_disk_is_shown_and_answers_are_kept_until_they_are_stored(open_page):
    page = open_page(noise=["507"])
    session, typed = page.desk.session, {}
    tell = session._core.answers.tell

    def fail(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    session._core.answers.tell = fail
    for key in "12":
        typed[page.go(key)] = {"1": "yes", "2": "no"}[key]
    assert "No space left on device" in page.text(".fault")
    assert "2 answers kept in this browser" in page.text(".fault")
    assert session.labels == {}
    page.driver.refresh()  # the answers are in the storage of the browser
    page.until(lambda: "2 answers kept" in page.text(".fault"))
    session._core.answers.tell = tell
    page.until(lambda: len(session.labels) == 2 and not page.text(".fault"))
    assert _labels(page) == typed
    assert page.wait() not in typed
    assert page.driver.execute_script("return localStorage.length") <= 2


def test_an_answer_that_is_refused_is_said_and_asked_again(open_page):
    page = open_page(noise=["400"])
    text, desk = page.item, page.desk
    tell = desk.session._core.answers.tell

    def fail(*args, **kwargs):
        raise ValueError("not this label")

    desk.session._core.answers.tell = fail
    page.press("1")
    page.until(lambda: "not this label" in page.text(".warning"))
    assert page.item == text
    desk.session._core.answers.tell = tell
    page.go("1")
    assert _labels(page) == {text: "yes"}


def test_a_lost_connection_is_shown_at_once_and_comes_back(open_page):
    page = open_page(noise=["ERR_", "Failed to load"])
    page.server.stop()
    page.until(lambda: "was stopped" in page.text(".fault"))
    assert "All answers are stored" in page.text(".fault")
    port = page.server.port
    with LabelingServer(page.desk, port=port, token=TOKEN):
        page.until(lambda: not page.text(".fault"))
        text = page.item
        page.go("1")
        assert _labels(page) == {text: "yes"}


@pytest.mark.slow
def test_two_tabs_and_two_people_never_get_the_same_text(open_page):
    page = open_page(session={"annotator": "ann"})
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("window")
    Page(page.driver, page.server.url)
    second = page.driver.current_window_handle
    _set_annotator(page, "bob")
    seen = []
    for turn in range(10):
        page.driver.switch_to.window(second if turn % 2 else first)
        seen.append(page.go("1"))
    assert len(set(seen)) == 10
    given = [next(iter(given)) for given in page.desk.session.answers.values()]
    assert sorted(given) == ["ann"] * 5 + ["bob"] * 5
    page.driver.switch_to.window(first)
    page.until(lambda: "10 labels" in page.text(".done"))


def _set_annotator(page, name):
    page.all(".foot button")[1].send_keys(Keys.ENTER)
    page.until(lambda: page.all("dialog[open] input"))
    page.chord(Keys.CONTROL, "a")
    page.type(name + Keys.ENTER)
    page.until(lambda: name in page.text(".foot") and page.item)


@pytest.mark.slow
def test_the_text_of_a_closed_tab_is_given_to_another(open_page):
    page = open_page()
    text = page.item
    page.driver.get("about:blank")
    page.until(lambda: not page.desk._leases._owners)
    Page(page.driver, page.server.url)
    assert page.item == text


@pytest.mark.slow
def test_an_undo_that_came_too_late_is_said(open_page):
    page = open_page(noise=["409"])
    page.go("1")
    undo = page.desk.undo
    page.desk.undo = lambda seq, client, annotator=None: undo(
        seq - 1, client, annotator
    )
    page.press("u")
    page.until(lambda: "Something else was answered" in page.text(".warning"))
    assert page.desk.state()["n_labeled"] == 1


def test_undo_of_several_answers_and_of_a_skip(open_page):
    page = open_page()
    seen = []
    for key in ("1", "s", "2"):
        seen.append(page.go(key))
    for text in reversed(seen):
        page.press(Keys.ARROW_LEFT)
        page.until(lambda text=text: page.item == text)
    page.until(lambda: "0 labels" in page.text(".done"))
    page.press("u")
    page.until(lambda: "nothing to undo" in page.text("[role=status]"))
    assert page.item == seen[0]
    page.go(Keys.ARROW_RIGHT)
    assert page.desk.state()["n_skipped"] == 1


def _train(page):
    shown = {item["id"] for item in page.desk.next(next(iter(page.desk._leases._seen)))}
    for text, label in (("good", "yes"), ("bad", "no")):
        for item in page.desk.search(f"{text} film", n_items=12)["items"]:
            if item["id"] not in shown:
                page.desk.answer(item["id"], label, "other")
    page.desk.session.refit()


@pytest.mark.slow
def test_space_accepts_the_prediction_unless_it_is_hidden(open_page):
    page = open_page()
    assert "No prediction yet" in page.text(".guess")
    page.press(" ")
    page.until(lambda: "no prediction to accept" in page.text("[role=status]"))
    _train(page)
    page.go("s")
    page.go("s")
    text, predicted = page.wait(), page.text(".predicted .name")
    assert predicted == ("yes" if "good" in text else "no")
    assert re.search(r"predicted \d+ %Space$", page.text(".predicted"))
    assert not page.text(".guess")  # nothing is said twice
    text = page.go(" ")
    assert _labels(page)[text] == predicted
    page.all(".foot input")[0].send_keys(" ")
    page.until(lambda: page.text(".guess") == "Predictions are hidden.")
    assert "%" not in page.text(".classes")
    page.all(".text")[0].click()
    n, text = len(page.desk.session.labels), page.item
    page.press(" ")
    page.until(lambda: "no prediction to accept" in page.text("[role=status]"))
    page.driver.refresh()  # it is remembered
    page.wait()
    assert page.text(".guess") == "Predictions are hidden."
    assert (page.item, len(page.desk.session.labels)) == (text, n)


def test_space_accepts_a_suggestion(open_page):
    page = open_page(suggestions=dict.fromkeys(range(60), "no"))
    text = page.item
    assert "Suggestion: no" in page.text(".guess")
    page.go(" ")
    assert _labels(page) == {text: "no"}
    page.until(lambda: "agree with 1 of 1" in page.text(".foot"))


INTENTS = [f"{verb}_{noun}" for verb in ("lost", "order", "activate", "cancel",
    "change", "track", "verify") for noun in ("card", "pin", "transfer", "cheque",
    "top_up", "account", "refund", "limit", "address", "phone", "fee")]  # fmt: skip


@pytest.mark.slow
def test_typing_finds_a_class_among_77(open_page):
    page = open_page(session={"classes": INTENTS})
    assert len(page.classes) == 77
    text = page.wait()
    page.press("/")
    page.type("top cancel")
    page.until(lambda: page.classes == ["cancel_top_up"])
    page.go(Keys.ENTER)
    assert _labels(page) == {text: "cancel_top_up"}
    assert len(page.classes) == 77
    page.press("/")
    page.type("card")
    page.until(lambda: len(page.classes) == 7)
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    chosen = page.driver.execute_script(
        "return document.activeElement.querySelector('.name').textContent"
    )
    text = page.go(Keys.ENTER)
    assert _labels(page)[text] == chosen
    page.press("/")
    page.type("zzz")
    page.until(lambda: page.text("main p.nomatch") == "No class matches.")
    page.press(Keys.ENTER, Keys.ESCAPE)
    page.until(lambda: len(page.classes) == 77)
    assert len(page.desk.session.labels) == 2


@pytest.mark.slow
def test_a_key_that_is_held_answers_once(open_page):
    page = open_page()
    text = page.item
    for repeat in (False, True, True, True):
        event = {"type": "keyDown", "key": "1", "text": "1", "autoRepeat": repeat}
        page.driver.execute_cdp_cmd("Input.dispatchKeyEvent", event)
    page.until(lambda: page.item != text)
    time.sleep(0.3)
    assert _labels(page) == {text: "yes"}


@pytest.mark.slow
def test_other_layouts_work(open_page):
    page = open_page()
    event = {"type": "keyDown", "key": "\u044b", "code": "KeyS", "text": "\u044b"}
    before = page.wait()
    page.driver.execute_cdp_cmd("Input.dispatchKeyEvent", event)
    page.until(lambda: page.item != before)
    assert len(page.desk.session.skipped) == 1


@pytest.mark.slow
def test_the_classes_are_a_group_of_radio_buttons(open_page):
    page = open_page(session={"classes": ["a", "b", "c"]})
    text = page.wait()
    page.press(Keys.TAB)
    while page.driver.switch_to.active_element.get_attribute("role") != "radio":
        page.press(Keys.TAB)
    page.press(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_UP)
    assert "c" in page.focus
    page.press(" ")  # chooses what has the focus, not the prediction
    page.until(lambda: page.item != text)
    assert _labels(page) == {text: "c"}
    assert page.driver.switch_to.active_element.get_attribute("class") == "text"


def test_flag_and_note(open_page):
    page = open_page()
    text = page.wait()
    page.press("f")
    page.until(lambda: page.all("[aria-pressed=true]"))
    page.press("n")
    page.until(lambda: page.all("dialog[open] textarea"))
    page.type("u1 /? unclear")
    page.chord(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: page.all("button.set"))
    session = page.desk.session
    assert [text_of(session, id) for id in session.flags] == [text]
    assert list(session.notes.values()) == ["u1 /? unclear"]
    assert page.item == text
    assert session.labels == {}


@pytest.mark.slow
def test_classes_are_added_and_one_is_renamed_and_merged(open_page):
    page = open_page()
    page.go("1")
    page.open("Classes")
    page.type(" YES" + Keys.ENTER)
    page.until(lambda: "already a class yes" in page.text("dialog .warning"))
    page.chord(Keys.CONTROL, "a")
    page.type("unclear" + Keys.ENTER)
    page.until(lambda: "unclear" in page.text("dialog .meanings"))
    page.until(lambda: page.text("[role=status]") == "Added the class unclear.")
    assert not page.text("dialog .warning")
    page.type("spam" + Keys.ENTER)  # the field is empty, and no key of the page acts
    page.until(lambda: "spam" in page.text("dialog .meanings"))
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog[open]"))
    assert page.classes == ["yes", "no", "unclear", "spam"]
    assert page.desk.session.notes == {}
    assert page.desk.session.skipped == []
    page.all(".text")[0].click()
    page.go("3")
    page.open("Classes")
    page.all("dialog [aria-label='Edit unclear']")[0].click()
    page.chord(Keys.SHIFT, Keys.TAB)  # from the description to the name
    page.chord(Keys.CONTROL, "a")
    page.type("no")
    page.until(lambda: "become one" in page.text("dialog .edit .note"))
    page.press(Keys.ENTER)
    page.until(lambda: page.classes == ["yes", "no", "spam"])
    assert page.text("[role=status]") == "Renamed unclear to no."
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog[open]"))
    page.all(".text")[0].click()
    assert sorted(page.desk.session.labels.values()) == ["no", "yes"]
    page.press("u")
    page.until(lambda: page.classes == ["yes", "no", "unclear", "spam"])
    page.until(lambda: page.text("[role=status]") == "The new name no was taken back.")
    assert sorted(page.desk.session.labels.values()) == ["unclear", "yes"]


@pytest.mark.slow
def test_an_added_class_is_undone_and_an_empty_one_deleted(open_page):
    page = open_page(noise=["400"])
    page.go("1")
    for name in ("offensiv", "spam"):
        page.desk.add_class(name)
    page.until(lambda: len(page.classes) == 4)
    page.press("u")
    page.until(lambda: page.classes == ["yes", "no", "offensiv"])
    words = "The class spam was removed again."
    page.until(lambda: page.text("[role=status]") == words)
    page.open("Classes")
    page.all("dialog [aria-label='Edit yes']")[0].click()
    assert not page.all("dialog [aria-label='Delete yes']")
    page.press(Keys.ESCAPE)  # it ends the editing only
    page.all("dialog [aria-label='Edit offensiv']")[0].click()
    page.all("dialog [aria-label='Delete offensiv']")[0].click()
    page.until(lambda: page.classes == ["yes", "no"])
    assert "offensiv" not in page.text("dialog .meanings")
    page.all("dialog [aria-label='Edit no']")[0].click()
    page.all("dialog [aria-label='Delete no']")[0].click()
    page.until(lambda: "must leave two classes" in page.text("dialog .warning"))
    page.press(Keys.ESCAPE, Keys.ESCAPE)
    page.until(lambda: not page.all("dialog[open]"))
    page.all(".text")[0].click()
    page.press("u")
    page.until(lambda: page.classes == ["yes", "no", "offensiv"])
    assert len(page.desk.session.labels) == 1


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["good, bad ", f"good{Keys.ENTER}bad{Keys.ENTER}"])
def test_a_page_without_classes_asks_for_them_first(open_page, typed):
    page = open_page(session={"classes": None})
    page.until(lambda: "Which classes?" in page.text("form"))
    assert page.driver.switch_to.active_element.tag_name == "textarea"
    assert not page.text(".guess")
    assert not page.text(".actions")
    page.type("u")
    page.press(Keys.ENTER)
    page.press(Keys.BACKSPACE, Keys.BACKSPACE)
    page.type(typed + Keys.ENTER)
    page.until(lambda: page.classes == ["good", "bad"])
    assert page.desk.session.known_classes == ["good", "bad"]
    assert not page.text("form")
    assert page.driver.switch_to.active_element.get_attribute("class") == "text"
    page.go("2")
    assert list(page.desk.session.labels.values()) == ["bad"]


@pytest.mark.slow
def test_one_class_is_not_enough(open_page, axe):
    page = open_page(session={"classes": None})
    page.desk.add_class("good")
    page.desk.answer(3, "good", "other")
    page.driver.refresh()
    page.until(lambda: "Which classes?" in page.text("form"))
    page.all(".text")[0].click()
    page.press("1", " ", "s", "f", "n", "/")  # there is nothing to act on
    page.all("form .primary")[0].click()
    page.until(lambda: "at least two classes" in page.text(".warning"))
    assert find_violations(page, axe) == []
    session = page.desk.session
    assert (session.labels, session.skipped, session.flags) == ({3: "good"}, [], [])
    page.all("form textarea")[0].click()
    page.type("bad" + Keys.ENTER)
    page.press(Keys.ENTER)
    page.until(lambda: page.classes == ["good", "bad"])


@pytest.mark.slow
def test_space_after_a_dialog_that_the_mouse_opened(open_page):
    page = open_page(suggestions=dict.fromkeys(range(60), "no"))
    for name in ("History", "Classes"):
        (button,) = (one for one in page.all("nav button") if one.text == name)
        button.click()
        page.until(lambda: page.all("dialog[open]"))
        page.press(Keys.ESCAPE)
        page.until(lambda: not page.all("dialog[open]"))
        page.go(" ")
    assert list(page.desk.session.labels.values()) == ["no", "no"]
    page.open("History")  # by the keyboard
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog[open]"))
    assert page.focus == "History"


@pytest.mark.slow
def test_what_a_screen_reader_hears(open_page):
    page = open_page()

    def hear(key, words):
        page.press(key)
        page.until(lambda: page.text("[role=status]") == words)
        assert page.text("[role=status]") == words

    hear("f", "Flagged.")
    hear("f", "The flag was removed.")
    page.press("n")
    page.until(lambda: page.all("dialog[open] textarea"))
    page.type("why")
    page.chord(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: page.text("[role=status]") == "The note was saved.")
    page.go("s")
    hear("u", "The text is not skipped any more.")
    page.go("1")
    hear("u", "The answer yes was taken back.")
    page.until(lambda: not page.text("[role=status]"))  # an old message is no news


@pytest.mark.slow
@pytest.mark.usefixtures("emulation")
@pytest.mark.parametrize("size", [(1300, 900), (390, 844)])
def test_many_classes_leave_no_blank_page(open_page, size):
    page = open_page(session={"classes": [f"class_of_intents_{i}" for i in range(151)]})
    _resize(page, *size)
    page.wait()
    code = "return document.documentElement.scrollHeight"
    assert page.driver.execute_script(code) <= 1.35 * size[1]


@pytest.mark.slow
def test_search_shows_how_many_there_are(open_page):
    page = open_page()
    page.open("Search")
    page.type("film")
    page.until(lambda: page.text("dialog .note").startswith("20 of 60 texts"))
    assert len(page.all(".entry")) == 20
    for n in (40, 60):
        (more,) = (one for one in page.all("dialog button") if one.text == "More")
        more.click()
        page.until(lambda n=n: len(page.all(".entry")) == n)
    assert page.text("dialog .note").startswith("60 texts")


def test_without_a_goal_there_is_no_bar(open_page):
    assert not open_page().all(".done .bar")[0].is_displayed()
    page = open_page(n_labels=10)
    assert page.all(".done .bar")[0].is_displayed()
    page.go("1")
    page.until(lambda: page.all(".bar[aria-valuenow='10']"))


@pytest.mark.slow
def test_hover_does_not_look_like_focus(open_page):
    page = open_page()
    button = page.all(".classes button")[0]
    before = button.value_of_css_property("border-color")
    ActionChains(page.driver).move_to_element(button).perform()
    assert button.value_of_css_property("border-color") == before


@pytest.mark.slow
def test_search_finds_a_text_that_can_be_labeled(open_page):
    page = open_page()
    shown = page.item
    page.open("Search")
    page.type("NUMBER 57")
    page.until(lambda: len(page.all(".entry")) == 1)
    page.press(Keys.ENTER)  # takes the first
    page.until(lambda: page.item.endswith("number 57"))
    assert "not labeled" in page.text(".mode")
    page.press("2")
    page.until(lambda: page.item == shown)
    assert page.desk.session.labels == {57: "no"}


def test_a_slow_reply_is_no_lost_connection(open_page):
    page = open_page()
    page.driver.execute_script("AbortSignal.timeout = () => AbortSignal.abort("
        "new DOMException('slow', 'TimeoutError'))")  # fmt: skip
    page.open("History")
    page.until(lambda: "the program is busy" in page.text(".warning"))
    assert not page.text(".fault")


@pytest.mark.slow
def test_help_shows_keys_and_classes(open_page):
    about = {"description": "a good film", "examples": ["what a joy"]}
    page = open_page(descriptions={"yes": about})
    page.press("?")
    page.until(lambda: "a good film" in page.text("dialog"))
    assert "what a joy" in page.text("dialog")
    # Nothing is to be accepted, or undone.
    first = ["12", "/", "S→", "F", "N", "E", "?"]
    assert _read_keys(page) == first
    page.press("1", Keys.ESCAPE)
    page.until(lambda: not page.all("dialog[open]"))
    assert page.desk.session.labels == {}
    _train(page)
    for _ in range(3):
        page.go("1")
    while page.wait() and page.text(
        ".guess"
    ):  # nothing of the model is shown with a blind text
        page.go("1")
    page.press("?")
    page.until(lambda: page.text("dialog"))
    more = ["Space", "S→", "U←BackspaceCtrl+Z", "F", "N", "E", "W", "A"]
    assert _read_keys(page) == ["12", "/", *more, "↑", "?"]


def _read_keys(page):
    """Return the keys of each row of the help."""
    code = "return [...document.querySelectorAll('.keys dt')].map((x) => x.textContent)"
    return page.driver.execute_script(code)


@pytest.mark.slow
def test_the_last_text(open_page):
    page = open_page(["a b", "c d", "e f"])
    for key in "121":
        page.go(key)
    page.until(lambda: page.text(".text") == "No text is left to label.")
    page.press("1", " ", "f", "n")
    assert len(page.desk.session.labels) == 3


def test_the_seconds_of_an_answer_are_measured(open_page):
    begun = time.monotonic()
    page = open_page()
    time.sleep(0.5)
    page.go("1")
    (id,) = page.desk.session.labels
    most = time.monotonic() - begun + 0.1  # another clock, and rounded
    assert 0.4 <= page.desk.session._core.state.answers[id].seconds <= most


def _resize(page, width, height, scale=1):
    """Set the size of the window in CSS pixels; zoom is fewer of them."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": scale}
    metrics["mobile"] = False
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def _emulate(page, **features):
    features = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.fixture
def emulation(window):
    yield
    window.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.slow
@pytest.mark.usefixtures("emulation")
@pytest.mark.parametrize(
    ("scheme", "size"),
    [
        ("dark", (360, 740)),
        ("light", (360, 740)),
        ("light", (1000, 900)),
        ("dark", (640, 450)),
    ],
)
def test_there_is_no_violation_of_accessibility(open_page, axe, scheme, size):
    classes = ["yes", "no", *(f"a class of a longer name {i}" for i in range(10))]
    about = {"description": "a good film", "examples": ["what a joy"]}
    page = open_page(
        session={"classes": classes},
        n_labels=20,
        suggestions=dict.fromkeys(range(60), "no"),
        descriptions={"yes": about},
        noise=["ERR_", "Failed to load"],
    )
    _train(page)
    page.go("1")
    page.go(Keys.ARROW_RIGHT)
    page.wait()
    _resize(page, *size)
    _emulate(page, prefers_color_scheme=scheme)
    code = "return getComputedStyle(document.querySelector('.skactive')).colorScheme"
    assert page.driver.execute_script(code) == "light dark"
    assert find_violations(page, axe) == []
    page.press("?")
    page.until(lambda: page.all("dialog[open]"))
    assert find_violations(page, axe) == []
    for name in ("History", "Classes", "Search", "Finish"):
        page.press(Keys.ESCAPE)
        page.until(lambda: not page.all("dialog[open]"))
        page.open(name)
        assert find_violations(page, axe) == []
    page.press(Keys.ESCAPE)
    page.server.stop()
    page.until(lambda: page.text(".fault"))
    assert find_violations(page, axe) == []


@pytest.mark.slow
@pytest.mark.usefixtures("emulation")
@pytest.mark.parametrize("size", [(1280, 900), (640, 450), (360, 740), (320, 600)])
def test_nothing_is_cut_off(open_page, size):
    page = open_page(["w" * 3000, "x y", "z"], session={"classes": [HTML, *INTENTS]})
    _resize(page, *size)
    page.wait()
    code = "return document.documentElement.scrollWidth - innerWidth"
    assert page.driver.execute_script(code) <= 0
    for button in page.all(".actions button"):
        assert button.rect["x"] + button.rect["width"] <= size[0]
    page.open("Classes")
    dialog = page.all("dialog")[0]
    code = "return arguments[0].scrollWidth - arguments[0].clientWidth"
    assert page.driver.execute_script(code, dialog) <= 0


@pytest.mark.slow
@pytest.mark.usefixtures("emulation")
def test_the_switch_of_light_and_dark_is_remembered(open_page):
    page = open_page()
    _emulate(page, prefers_color_scheme="light")

    def read_color():
        (root,) = page.all(".skactive")
        return root.value_of_css_property("background-color")

    light = read_color()
    for theme in ("light", "dark"):
        page.all(".foot button")[0].click()
        assert f"Theme: {theme}" in page.text(".foot")
    assert read_color() != light
    page.driver.refresh()
    page.wait()
    assert read_color() != light


def test_nothing_moves():
    css = (PAGE / "labeling.css").read_text(encoding="utf-8")
    assert not any(word in css for word in ("transition", "animation", "@keyframes"))
