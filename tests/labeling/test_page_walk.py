"""Lists become queues: filters that stay, old answers after a new class, many rows."""

from datetime import timedelta

import pytest
from selenium.webdriver.common.keys import Keys
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.session import _queue

from ._helpers import find_violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WORDS = {
    "Business": "market money shares",
    "Sports": "team match goal",
    "Sci/Tech": "computer space software",
}
TEXTS = [f"{[*WORDS.values()][i % 3]} number {i}" for i in range(90)]
OLD = ["Business", "Sports"]
MODEL = make_pipeline(TfidfVectorizer(), LogisticRegression(class_weight="balanced"))
LEARNER = ActiveLearner(MODEL, batch_size=4, random_state=0)


def _truth(text):
    return next(name for name, words in WORDS.items() if words in text)


def _answer(desk, ids, names=WORDS, **options):
    """Answer texts; where the class does not exist yet, with the first one."""
    for id in ids:
        truth = _truth(TEXTS[id])
        label = truth if truth in names else "Business"
        desk.answer(id, label, "other", **options)


def _wait_for_model(page):
    page.desk.session.refit()
    page.desk.version()
    page.until(lambda: not page.desk.check()["computing"])


def _open_with_a_new_class(open_page, n=26, n_new=9, **session):
    """Answer n texts, add Sci/Tech, and answer some more; return page and old ids."""
    page = open_page(TEXTS, LEARNER, {"classes": OLD, **session})
    page.wait()
    client = next(iter(page.desk._leases._seen))
    waiting = {item["id"] for item in page.desk.next(client)}
    ids = [id for id in range(30, 90) if id not in waiting]
    _answer(page.desk, ids[:n], OLD)
    page.desk.add_class("Sci/Tech")
    _answer(page.desk, ids[n : n + n_new])
    _wait_for_model(page)
    return page, ids[:n]


def _press_line(page, words):
    """Press the button of the line about a new class; return what the line says."""
    page.until(lambda: words in page.text(".older"))
    line = page.text(".older")
    page.move_to(words)
    page.press(Keys.ENTER)
    page.until(lambda: page.text(".mode .place"))
    return line


def _entries(page):
    return page.driver.execute_script(
        "return [...document.querySelectorAll('dialog .entry .excerpt')]"
        ".map((one) => one.textContent)"
    )


def test_old_answers_after_a_new_class_are_corrected_by_one_key_each(open_page, axe):
    page, old = _open_with_a_new_class(open_page)
    wrong = [id for id in old if _truth(TEXTS[id]) == "Sci/Tech"]
    older = page.until(lambda: page.desk.state()["older"])
    assert older["n_likely"] >= len(wrong) >= 8
    n_business = [page.desk.session.labels[id] for id in old].count("Business")
    assert older["n_items"] == n_business
    page.until(lambda: page.all(".older:not([hidden]) button"))
    assert find_violations(page, axe) == []
    shown = page.item
    line = _press_line(page, "Look through them")
    assert line.startswith(
        f"{n_business} Business answers are older than Sci/Tech."
        f"Look through them, the {older['n_likely']} that the model takes for it first"
    )
    n_actions = 1  # the button; to move there by Tab is what a click is for others
    assert not page.text(".older")
    for _ in range(older["n_likely"]):
        mode = page.text(".mode .what")
        assert "You said Business. A model trained without this answer says Sci" in mode
        is_wrong = _truth(page.item) == "Sci/Tech"
        before = page.text(".mode .place")
        page.press("3" if is_wrong else Keys.ENTER)
        n_actions += 1
        page.until(lambda before=before: page.text(".mode .place") != before)
    assert page.text(".mode .place") == f"{older['n_likely'] + 1} of {n_business}"
    page.press(Keys.ESCAPE)
    page.until(lambda: page.item == shown)
    page.until(lambda: page.desk.session.labels[wrong[0]] == "Sci/Tech")
    assert {page.desk.session.labels[id] for id in wrong} == {"Sci/Tech"}
    assert page.desk.item(wrong[0])["way"] == "review"
    assert n_actions / len(wrong) <= 1.25
    page.until(lambda: page.desk.state()["older"] is None)
    page.until(lambda: not page.text(".older"))
    # The last one can be taken back.
    last = page.desk.history(n_items=1)["items"][0]
    page.press("u")
    page.until(lambda: page.item == last["text"])
    assert page.desk.session.labels[last["id"]] == "Business"


def test_a_changed_description_offers_what_the_model_would_change(open_page):
    page = open_page(TEXTS, LEARNER, {"classes": OLD})
    _answer(page.desk, [id for id in range(30, 90) if id % 3 < 2], OLD)
    wrong = [30, 33]
    for id in wrong:
        page.desk.answer(id, "Sports", "other")
    page.desk.edit_class("Business", description="all about money")
    _wait_for_model(page)
    line = _press_line(page, "Look through them, the 2 that the model would change")
    assert "Sports answers are older than the description of Business." in line
    assert TEXTS.index(page.item) in wrong
    page.press(Keys.ESCAPE)
    page.move_to("Not now")
    page.press(Keys.ENTER)
    page.until(lambda: not page.text(".older"))


def test_likely_ones_are_changed_in_the_list(open_page):
    page, old = _open_with_a_new_class(open_page)
    wrong = [id for id in old if _truth(TEXTS[id]) == "Sci/Tech"]
    page.until(lambda: page.text(".older"))
    page.open("History")
    page.until(lambda: len(page.all(".entry")) == 20)
    page.all("select[aria-label=Fits]")[0].send_keys("May")
    page.until(lambda: len(page.all(".entry")) == len(wrong))
    page.all(".bulk input")[0].send_keys(" ")
    page.all(".bulk select")[0].send_keys("Sci")
    page.until(lambda: page.all(".bulk .primary:not([disabled])"))
    page.all(".bulk .primary")[0].send_keys(Keys.ENTER)
    page.until(lambda: page.desk.session.labels[wrong[0]] == "Sci/Tech")
    assert {page.desk.session.labels[id] for id in wrong} == {"Sci/Tech"}


def test_before_a_model_knows_the_class_all_older_answers_are_offered(open_page):
    page = open_page(TEXTS, session={"classes": OLD})
    _answer(page.desk, range(40, 50), OLD)
    _wait_for_model(page)
    page.open("Classes")
    page.type("Sci/Tech")
    page.press(Keys.ENTER)
    page.until(lambda: page.desk.state()["older"])
    page.press(Keys.ESCAPE)
    shown = page.item
    line = _press_line(page, "Look through them")
    assert line.startswith("10 answers are older than Sci/Tech.")
    assert page.text(".mode .place") == "1 of 10"
    assert page.item == TEXTS[49]  # the latest first
    page.press(Keys.ESCAPE)
    page.until(lambda: page.item == shown)
    page.move_to("Not now")
    page.press(Keys.ENTER)
    page.until(lambda: not page.text(".older"))


def test_texts_of_the_audit_are_behind_the_likely_ones_and_without_help(open_page):
    page, old = _open_with_a_new_class(open_page, n=40, audit_every=3)
    blind = set(filter(page.desk.session.is_blind, old))
    older = page.desk.state()["older"]
    hidden = [id for id in blind if page.desk.session.labels[id] == "Business"]
    assert older["n_likely"] >= 1
    assert older["n_blind"] == len(hidden) >= 1
    said = f"takes for it and {len(hidden)} drawn at random"
    page.until(lambda: said in page.text(".older"))
    assert said in _press_line(page, "Look through them")
    for _ in range(older["n_likely"]):
        assert "A model trained without this answer" in page.text(".mode")
        page.go(Keys.ENTER)
    for place in range(len(hidden)):
        assert page.text(".mode .what").endswith("You said Business.")
        assert page.text(".guess") == "Drawn at random: you answer without help."
        assert not page.all(".classes .predicted")
        assert TEXTS.index(page.item) in blind
        if place < len(hidden) - 1:
            page.go(Keys.ENTER)


def test_a_filter_is_a_queue_and_stays(open_page, axe):
    page = open_page(TEXTS, session={"classes": OLD})
    _answer(page.desk, range(30, 80), OLD)
    page.desk.flag(40)
    shown = page.item
    page.open("History")
    page.type("number 4")
    page.until(lambda: len(page.all(".entry")) == 10)
    page.press(Keys.TAB, "Sports")
    page.until(lambda: 0 < len(page.all(".entry")) < 10)
    texts = _entries(page)
    assert find_violations(page, axe) == []
    page.move_to("Go through these", lambda: page.press(Keys.TAB))
    assert page.focus == f"Go through these {len(texts)}"
    page.press(Keys.ENTER)
    page.until(lambda: page.item == texts[0])
    assert page.text(".mode .what").startswith(f"1 of {len(texts)}You said Sports.")
    page.go(Keys.ENTER)  # keeps it
    assert page.desk.history(n_items=1)["items"][0]["text"] == texts[0]
    page.go("1")  # corrects it
    page.go("s")
    assert page.item == texts[3]
    page.press("u")
    page.until(lambda: page.item == texts[1])
    assert page.desk.session.labels[TEXTS.index(texts[1])] == "Sports"
    page.press(Keys.ESCAPE)
    page.until(lambda: page.item == shown)
    page.open("History")
    page.until(lambda: sorted(_entries(page)) == sorted(texts))
    values = page.driver.execute_script(
        "return [...document.querySelectorAll("
        "'dialog :is(input[type=search], select)')].map((field) => field.value)"
    )
    assert values[:2] == ["number 4", '"Sports"']


def test_a_text_that_comes_again_is_like_any_other(open_page, monkeypatch):
    monkeypatch.setattr(_queue, "_REPEAT_AFTER", timedelta(hours=-1))
    page = open_page(TEXTS[:12], LEARNER, {"classes": OLD, "repeat": 1.0})
    page.wait()
    seen = []
    while page.item not in seen:
        seen.append(page.item)
        page.go("1")
    assert page.text(".mode") == ""
    assert not page.all(".classes .given, .classes .predicted")
    id = TEXTS.index(page.item)
    page.go("2")
    page.until(lambda: page.desk.quality()["repeats"])
    assert page.desk.session.labels[id] == "Business"
    page.open("Quality")
    page.until(lambda: "Texts that came again: 0 %" in page.text("dialog"))


def test_the_place_in_a_list_stays(open_page):
    page = open_page(TEXTS, session={"classes": OLD})
    _answer(page.desk, range(30, 90), OLD)
    page.open("History")
    page.until(lambda: len(page.all(".entry")) == 20)
    page.all(".rows + button")[0].click()
    page.until(lambda: len(page.all(".entry")) == 40)
    script = page.driver.execute_script
    script("document.querySelector('.rows').scrollTop = 700")
    place = "return document.querySelector('.rows').scrollTop"
    page.until(lambda: script(f"{place} === 700 && document.querySelector('.rows')"))
    script("document.querySelectorAll('.entry')[25].focus({ preventScroll: true })")
    page.press(Keys.ENTER)
    page.until(lambda: page.text(".mode"))
    page.press(Keys.ESCAPE)
    page.open("History")
    page.until(lambda: len(page.all(".entry")) == 40)
    page.until(lambda: script(place) > 0, 10)
    assert script(place) == 700


def test_texts_without_a_label_can_be_gone_through(open_page):
    page = open_page(TEXTS, session={"classes": OLD})
    page.wait()
    page.open("Search")
    page.type("number 7")
    page.until(lambda: len(page.all(".entry")) == 11)
    page.move_to("Go through these", lambda: page.press(Keys.TAB))
    page.press(Keys.ENTER)
    page.until(lambda: page.text(".mode .place") == "1 of 11")
    assert "This text is not labeled." in page.text(".mode")
    first = page.go(Keys.ENTER)  # nothing to keep
    second = page.go("2")
    page.until(lambda: page.desk.session.labels)
    assert page.desk.session.labels == {TEXTS.index(second): "Sports"}
    assert page.desk.item(TEXTS.index(second))["way"] is None
    assert first not in page.desk.session.skipped


def test_several_rows_are_changed_at_once_and_taken_back_at_once(open_page, axe):
    page = open_page(TEXTS, session={"classes": OLD})
    _answer(page.desk, range(30, 50), OLD)
    before, n_events = dict(page.desk.session.labels), page.desk.state()["seq"]
    page.open("History")
    page.until(lambda: len(page.all(".rows input")) == 20)
    rows = page.all(".rows input")
    chosen = [0, 2, 3]
    for place in chosen:
        rows[place].send_keys(" ")
    page.until(lambda: page.text(".bulk .primary") == "Change 3")
    assert find_violations(page, axe) == []
    page.all(".bulk select")[0].send_keys("Sports")
    page.until(lambda: not page.all(".bulk .primary[disabled]"))
    page.all(".bulk .primary")[0].send_keys(Keys.ENTER)
    ids = [49 - place for place in chosen]
    after = {**before, **dict.fromkeys(ids, "Sports")}
    page.until(lambda: page.desk.session.labels == after)
    page.until(lambda: "Undo takes all of it back" in page.text("dialog .note"))
    assert page.desk.state()["seq"] == n_events + 1
    changed = [id for id in ids if before[id] != "Sports"]
    assert {page.desk.item(id)["way"] for id in changed} == {"bulk"}
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog[open]"))
    page.press("u")
    page.until(lambda: page.desk.session.labels == before)


def test_excerpts_end_between_words_and_only_the_list_scrolls(open_page):
    long = [f"{'market money shares ' * 40}number {i}" for i in range(60)]
    page = open_page(long, session={"classes": OLD})
    for id in range(30):
        page.desk.answer(id, OLD[id % 2], "other")
    page.desk.session.refit()
    page.open("History")
    page.until(lambda: len(page.all(".entry")) == 20)
    assert all(
        text.endswith(("market …", "money …", "shares …")) for text in _entries(page)
    )
    scrolling = page.driver.execute_script("""
return [...document.querySelectorAll("dialog, dialog *")]
  .filter((one) => /auto|scroll/.test(getComputedStyle(one).overflowY)
    && one.scrollHeight > one.clientHeight + 1)
  .map((one) => one.className);
""")
    assert scrolling == ["list rows"]
    bottom = page.driver.execute_script(
        "return document.querySelector('.rows + button').getBoundingClientRect().bottom"
        " - document.querySelector('dialog').getBoundingClientRect().bottom"
    )
    assert bottom <= 0
