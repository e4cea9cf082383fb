"""What the page offers beside one text after another: lists, modes and dialogs."""

import re
import threading
import time

import pytest
from selenium.webdriver.common.keys import Keys

from skactive.session import _doubts
from skactive.session._queue import Queue

from ._helpers import find_violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MANY = [
    f"{a}_{b}" for a in ("card", "loan", "cash") for b in ("lost", "new", "old", "fee")
]


def _is_good(page, id):
    return "good" in page.desk.item(id)["text"]


def _teach(page, n=24, wrong=(), names=("no", "yes")):
    """Answer texts, some wrongly, train a model, and wait for the doubtful answers."""
    client = next(iter(page.desk._leases._seen))
    shown = {item["id"] for item in page.desk.next(client)}
    for id in [id for id in range(30, 60) if id not in shown][:n]:
        page.desk.answer(id, names[_is_good(page, id) != (id in wrong)], "other")
    page.desk.session.refit()
    page.desk.version()
    page.until(lambda: not page.desk.check()["computing"])


def _press_button(page, name):
    """Press a button of the tools or the actions by the keyboard."""
    page.move_to(name)
    page.press(Keys.ENTER)


def _read_all(page, selector):
    """Return the texts of all elements at one moment."""
    code = "return [...document.querySelectorAll(arguments[0])]"
    return page.driver.execute_script(f"{code}.map((x) => x.textContent)", selector)


def _wait_for_dialog(page, selector):
    page.until(lambda: page.all(f"dialog[open] {selector}"))


def test_doubtful_answers_one_after_another(open_page, axe):
    page = open_page()
    _teach(page, wrong=(32, 33, 34))
    shown, items = page.item, page.desk.check()["items"]
    assert len(items) == page.desk.state()["n_doubtful"] >= 3
    page.until(lambda: page.text("nav .badge").strip().startswith(str(len(items))))
    _press_button(page, "Check")
    said = "You said {}. A model trained without this answer says {}, {:.0f} %."
    for place, item in enumerate(items, start=1):
        page.until(lambda item=item: page.item == item["text"])
        p = int(100 * item["probability"] + 0.5)
        words = said.format(item["label"], item["prediction"], p)
        assert page.text(".mode .what") == f"{place} of {len(items)}{words}"
        if place == 1:
            assert find_violations(page, axe) == []
        # The first is kept, the second corrected by its key, the others left.
        page.press(
            {1: Keys.ENTER, 2: "2" if item["label"] == "yes" else "1"}.get(place, "s")
        )
    page.until(lambda: page.item == shown)
    assert not page.text(".mode")
    kept, corrected = items[0], items[1]
    page.until(lambda: page.desk.session.labels[corrected["id"]] != corrected["label"])
    assert page.desk.session.labels[kept["id"]] == kept["label"]
    for item in (kept, corrected):
        assert page.desk.item(item["id"])["way"] == "review"
    rest = {item["id"] for item in page.desk.check()["items"]}
    assert rest == {item["id"] for item in items[2:]}
    page.until(lambda: page.text("nav .badge").strip().startswith(str(len(rest))))
    _press_button(page, "Check")
    page.until(lambda: page.item == items[2]["text"])
    page.press(Keys.ESCAPE)
    page.until(lambda: page.item == shown)


def test_undo_in_the_review_shows_the_answer_again(open_page):
    page = open_page()
    _teach(page, wrong=(32, 33))
    items = page.desk.check()["items"]
    _press_button(page, "Check")
    page.until(lambda: page.item == items[0]["text"])
    page.press(Keys.ENTER)
    page.until(lambda: page.item == items[1]["text"])
    page.press("u")
    page.until(lambda: page.item == items[0]["text"])
    assert "said" in page.text(".mode")
    page.press(Keys.ENTER)
    page.until(lambda: page.item == items[1]["text"])


def test_the_review_begins_by_itself(open_page, monkeypatch):
    page = open_page()
    page.open("Check")
    assert "from the first model on" in page.text("dialog")
    page.press(Keys.ESCAPE)
    go_on, find = threading.Event(), _doubts.find_doubtful
    monkeypatch.setattr(
        _doubts, "find_doubtful", lambda core: go_on.wait(60) and find(core)
    )
    for id in range(20):
        page.desk.answer(id, "yes" if id % 2 or id == 12 else "no", "other")
    page.desk.session.refit()
    page.open("Check")
    page.until(lambda: "Looking for doubtful answers" in page.text("dialog"))
    go_on.set()
    page.until(lambda: "A model trained without this answer" in page.text(".mode"))
    assert not page.all("dialog[open]")
    assert not page.text(".fault")


def test_of_many_classes_digits_take_the_likely_and_letters_search(open_page, axe):
    page = open_page(session={"classes": MANY})
    _teach(page, names=("loan_new", "cash_fee"))
    for id in (0, 1, 2):  # another class that the model has seen
        page.desk.answer(id, "card_old", "other")
    page.desk.session.refit()
    page.until(
        lambda: page.driver.execute_script(
            "return document.querySelectorAll('.classes .predicted').length"
        )
    )
    best = page.classes[0]
    assert best in ("loan_new", "cash_fee")
    assert len(page.classes) == len(MANY)
    assert _read_all(page, ".classes kbd") == list("123456789")
    first = page.go("1")
    assert page.desk.history()["items"][0]["label"] == best
    assert page.desk.history()["items"][0]["text"] == first
    page.type("old")  # S, U, F and N are letters as well
    page.until(lambda: len(page.classes) == 3)
    assert page.classes[0] == "card_old"  # seen by the model
    assert find_violations(page, axe) == []
    page.go(Keys.ENTER)
    assert page.desk.history()["items"][0]["label"] == "card_old"
    page.until(lambda: page.text(".filter") == "" and len(page.classes) == len(MANY))
    page.type("s")
    page.until(lambda: "loan_lost" in page.classes)
    third = page.classes[2]
    page.go("3")
    assert page.desk.history()["items"][0]["label"] == third
    predicted = page.text(".predicted .name")
    page.go(" ")
    assert page.desk.history()["items"][0]["label"] == predicted
    n = len(page.desk.session.labels)
    skipped = page.go(Keys.ARROW_RIGHT)
    assert len(page.desk.session.skipped) == 1
    page.press(Keys.ARROW_LEFT)
    page.until(lambda: page.item == skipped)
    page.chord(Keys.CONTROL, "z")
    page.until(lambda: len(page.desk.session.labels) == n - 1)
    page.press(".")
    page.until(lambda: page.desk.session.flags)
    page.press(",")
    _wait_for_dialog(page, "textarea")
    page.press(Keys.ESCAPE)


def test_several_of_many_classes_are_checked_by_digits_and_search(open_page):
    page = open_page(session={"classes": MANY, "multi_label": True})
    page.wait()
    page.type("loan")
    page.until(lambda: len(page.classes) < len(MANY))
    page.press(Keys.ENTER)
    page.until(lambda: page.text(".chosen") == "loan_lost")
    page.press("1")
    page.until(lambda: " + " in page.text(".chosen"))
    page.go(Keys.ENTER)
    (label,) = page.desk.session.labels.values()
    assert len(label) == 2


def test_names_break_only_between_words(open_page):
    page = open_page(session={"classes": MANY})
    page.wait()
    code = "return document.querySelector('.classes .name').innerHTML"
    assert re.fullmatch(r"[a-z]+_<wbr>[a-z]+", page.driver.execute_script(code))


@pytest.fixture
def shows_all(monkeypatch):
    """Show predictions of the texts that the audit can draw, too."""
    monkeypatch.setattr(Queue, "find_blind", lambda self, ids: [False] * len(ids))


def test_a_text_of_the_audit_is_answered_without_help(open_page):
    page = open_page(session={"audit_every": 1})
    _teach(page)
    page.go("s")
    assert page.text(".guess") == "Drawn at random: you answer without help."
    assert not page.all(".answer.predicted")
    for key in "aw ":
        page.press(key)
        page.until(
            lambda key=key: (
                ("no prediction" if key == " " else "without help")
                in page.text("[role=status]")
            )
        )
    assert not page.all("dialog[open]")


def test_many_similar_texts_at_once(shows_all, open_page, axe):
    page = open_page(session={"audit_every": 4})
    _teach(page)
    page.go("s")
    page.press("a")
    _wait_for_dialog(page, ".ticks li")
    texts = _read_all(page, ".ticks li span:first-of-type")
    n, label = len(texts), page.text("dialog .primary").split(" as ")[1]
    assert n > 2
    assert f"{n} texts like this one that the model takes for {label}" in (
        page.text("dialog")
    )
    assert find_violations(page, axe) == []
    before = dict(page.desk.session.labels)
    page.press(Keys.ARROW_DOWN, " ")  # the second is wrong
    assert page.text("dialog .primary") == f"Save {n - 1} as {label}"
    page.press(Keys.ENTER)
    page.until(lambda: not page.all("dialog[open]"))
    new = {id: x for id, x in page.desk.session.labels.items() if id not in before}
    said = {page.desk.item(id)["text"]: x for id, x in new.items()}
    assert said == dict.fromkeys([texts[0], *texts[2:]], label)
    assert {page.desk.item(id)["way"] for id in new} == {"bulk"}
    assert not {*new} & {*page.desk.session.audited}
    page.go("1")  # and on with one text after another


def test_without_a_model_nothing_is_similar_or_explained(open_page):
    page = open_page(noise=["Failed to load"])
    page.wait()
    for key in "aw":
        page.press(key)
        page.until(lambda: "there is no prediction yet" in page.text("dialog"))
        page.press(Keys.ESCAPE)
        page.until(lambda: not page.all("dialog[open]"))
    assert not page.text(".warning")


def test_why_marks_the_words_and_shows_labeled_texts(open_page, axe):
    page = open_page()
    _teach(page)
    page.go("s")
    text = page.item
    page.press("w")
    _wait_for_dialog(page, ".why")
    assert page.text(".why") == text
    assert page.text(".why mark.strong") == text.split()[0]
    assert re.search(rf"Without {text.split()[0]}: \d+ %", page.text("dialog"))
    assert find_violations(page, axe) == []
    entries = page.all("dialog .entry")
    assert len(entries) == 3
    assert "similarity " in entries[0].text
    neighbor = page.text("dialog .entry .excerpt")
    entries[0].click()
    page.until(lambda: page.item == neighbor)


def test_html_in_a_text_is_explained_as_text(open_page):
    texts = [
        f"<b onclick='x'>{'good' if i % 2 else 'bad'}</b> & 👍🏽 film {i}"
        for i in range(60)
    ]
    page = open_page(texts)
    _teach(page)
    page.press("w")
    _wait_for_dialog(page, ".why")
    assert page.text(".why") == page.item
    assert not page.all(".why b")
    page.press(Keys.ESCAPE)
    page.open("Search")
    page.type("👍🏽 FILM 31")
    page.until(lambda: page.text(".entry mark") == "👍🏽 film 31")
    assert not page.all(".entry .excerpt b")


@pytest.mark.slow
def test_how_good_it_is_and_more_of_a_class(open_page, axe):
    page = open_page(session={"audit_every": 2})
    page.open("Quality")
    page.until(lambda: "Too early to tell" in page.text(".sentence"))
    assert "Label 10 more of" in page.text(".quality")
    page.press(Keys.ESCAPE)

    def has_points(n):  # an estimate begins after ten labels or more
        client = next(iter(page.desk._leases._seen))
        for item in page.desk.next(client, n_queries=1):
            page.desk.answer(item["id"], ("no", "yes")["good" in item["text"]], client)
        time.sleep(0.0 if len(page.desk.session.labels) < 20 else 1.0)
        return len(page.desk.quality()["curve"]) >= n

    page.until(lambda: has_points(2))
    page.open("Quality")
    page.until(lambda: page.text(".sentence") == page.desk.quality()["sentence"])
    assert page.all(".quality svg.curve polyline")
    assert page.text(".quality tbody th") == "yes"
    assert find_violations(page, axe) == []
    page.driver.refresh()  # the curve is the server's
    page.wait()
    page.open("Quality")
    page.until(lambda: page.all(".quality svg.curve polyline"))
    found = page.desk.more("yes")["items"]
    # In one step, as the table is written anew when the estimate changes.
    code = """
const buttons = [...document.querySelectorAll(".quality td button")];
const found = buttons.filter((button) => button.textContent.includes("of yes"));
found.forEach((button) => button.click());
return found.length;
"""
    assert page.driver.execute_script(code) == 1
    page.until(lambda: page.item == found[0]["text"])
    assert f"1 of {len(found)}The model takes this text for yes." in page.text(".mode")
    page.press("1")
    page.until(lambda: page.item == found[1]["text"])
    page.until(lambda: page.desk.item(found[0]["id"])["way"] == "more")
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.text(".mode"))


def test_matches_are_marked_filtered_and_taken_by_enter(open_page, axe):
    page = open_page(
        [*(f"{'x ' * 60}number {i} of the films" for i in range(40)), "odd"]
    )
    for id in range(4):
        page.desk.answer(
            id, ("no", "yes")[id % 2], "other", annotator="ann" if id == 3 else None
        )
    page.desk.flag(2)
    page.open("Search")
    page.type("Number 3")
    page.until(lambda: len(page.all(".entry")) == 11)
    assert page.text(".entry mark") == "number 3"
    assert page.text(".entry .excerpt").startswith("… ")
    assert len(page.all(".entry")) == len(page.all(".entry mark"))
    assert page.text(".entry .note").strip() == "ann" or page.all(".entry > b")
    page.press(Keys.TAB, "yes")  # the class
    page.until(lambda: len(page.all(".entry")) == 1)
    page.press(Keys.HOME)
    page.until(lambda: len(page.all(".entry")) == 11)
    page.press(Keys.TAB, "Not")
    page.until(lambda: len(page.all(".entry")) == 10)
    assert {entry.text.split("\n")[0] for entry in page.all(".entry")} == {
        "not labeled"
    }
    assert find_violations(page, axe) == []
    page.chord(Keys.SHIFT, Keys.TAB)
    page.chord(Keys.SHIFT, Keys.TAB)
    page.press(Keys.ENTER)
    page.until(lambda: "number 30 " in page.item)
    page.press(Keys.ESCAPE)
    page.open("History")
    page.until(lambda: len(page.all(".entry")) == 4)
    page.press(Keys.TAB, Keys.TAB, "ann")
    page.until(lambda: len(page.all(".entry")) == 1)
    assert "yes ann" in page.text(".entry")
    page.press(Keys.HOME, Keys.TAB, "Flag")
    page.until(
        lambda: "⚑ flagged" in page.text(".entry") and len(page.all(".entry")) == 1
    )


def test_nothing_is_found_by_enter_where_nothing_is(open_page):
    page = open_page()
    shown = page.item
    page.open("Search")
    page.type(
        "zzz",
    )
    page.press(Keys.ENTER)
    page.until(lambda: page.text("dialog .note") == "Nothing found.")
    page.press(Keys.ESCAPE)
    assert page.item == shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "size", "more"),
    [
        ("light", (1300, 900), []),
        ("dark", (390, 844), []),
        ("dark", (1300, 900), MANY),
        ("light", (390, 844), MANY),
    ],
)
def test_modes_and_dialogs_are_accessible(
    shows_all, open_page, axe, scheme, size, more
):
    page = open_page(session={"classes": ["no", "yes", *more], "audit_every": 2})
    _teach(page, wrong=(32, 33, 34))
    page.desk._quality.compute(24)
    do = page.driver.execute_cdp_cmd
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1}
    do("Emulation.setDeviceMetricsOverride", {**metrics, "mobile": False})
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    do("Emulation.setEmulatedMedia", {"features": features})
    keys = "-+" if more else "wa"
    try:
        for key, selector in zip(keys, (".why", ".ticks li"), strict=True):
            page.press(key)
            _wait_for_dialog(page, selector)
            assert _problems(page, axe) == []
            page.press(Keys.ESCAPE)
            page.until(lambda: not page.all("dialog[open]"))
        for name, selector in (("Quality", "td"), ("History", ".entry")):
            page.open(name)
            _wait_for_dialog(page, selector)
            assert _problems(page, axe) == []
            page.press(Keys.ESCAPE)
            page.until(lambda: not page.all("dialog[open]"))
    finally:
        do("Emulation.clearDeviceMetricsOverride", {})
        do("Emulation.setEmulatedMedia", {"features": []})


def _problems(page, axe):
    """Return what is not accessible, and whether a dialog is wider than it shows."""
    code = """
const dialog = document.querySelector("dialog");
return dialog.scrollWidth > dialog.clientWidth ? ["too wide"] : [];
"""
    return find_violations(page, axe) + page.driver.execute_script(code)


def test_the_next_text_is_shown_before_the_rest(open_page):
    page = open_page()
    page.until(lambda: page.text(".done > span") == "0 labels")
    page.driver.execute_script("""
new MutationObserver(() => {
  window.seen = document.querySelector(".done > span").textContent;
}).observe(document.querySelector(".text"), { childList: true });
""")
    page.go("1")
    assert page.driver.execute_script("return seen") == "0 labels"
    page.until(lambda: page.text(".done > span") == "1 label")
