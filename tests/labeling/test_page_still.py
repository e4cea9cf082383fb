"""A still page: what arrives while a person answers moves nothing; keys and panels."""

import itertools

import pytest
from selenium.webdriver.common.keys import Keys

from skactive.labeling._server import LabelingServer
from skactive.session._commands import COMMANDS

from ._helpers import TOKEN, Page, find_violations
from ._scripted import LINES, LONG, ScriptedDesk

pytestmark = [pytest.mark.browser, pytest.mark.slow]
THREE = ["World", "Sports", "Business"]
LONGEST = "balance_not_updated_after_cheque_or_cash_deposit"
VERBS = ("lost", "order", "activate", "cancel", "change", "track", "verify")
NOUNS = ("card", "pin", "transfer", "cheque", "top_up", "account", "refund", "limit")
INTENTS = [
    LONGEST,
    *map("_".join, itertools.product(VERBS, NOUNS)),
    *map("own {}".format, range(20)),
]
MANY = INTENTS + [f"intent_{i}" for i in range(74)]
EMOTIONS = ["disappointment", *(f"feeling{i}" for i in range(27))]
SIX = ["admiration", "amusement", "anger", "annoyance", "approval", "caring"]
MODEL = {"n_labels": 3, "training": False, "adapted": 0, "encoded": 1, "error": None}
ESTIMATE = (
    "about 79 % of the rest is predicted right (53-92 %); about 40 more texts " * 2
)
EVENTS = {
    5: {"model": MODEL | {"n_labels": 0, "training": True, "encoded": 0.17}},
    10: {"model": MODEL},
    15: {"estimate": ESTIMATE},
    20: {"n_doubtful": 3},
    25: {"suggestions": {"compared": 9, "agreed": 8, "low": 0.5, "high": 0.9}},
    30: {"model": MODEL | {"training": True, "adapted": 25, "error": "no memory " * 9}},
    35: {"estimate": "", "n_skipped": 12},
    40: {"n_doubtful": 120, "n_labels": 45},  # the goal is reached
}
SIZES = {
    "laptop": (1280, 720),
    "low": (1366, 625),
    "wide": (2560, 1440),
    "phone": (390, 844),
    "zoom": (640, 360),
}


@pytest.fixture
def show(window):
    """Show the page of a scripted desk in a window of a size."""
    servers, do = [], window.execute_cdp_cmd

    def show(desk, size="laptop", scheme="light"):
        width, height = SIZES[size]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1}
        metrics["mobile"] = size == "phone"
        do("Emulation.setDeviceMetricsOverride", metrics)
        do("Emulation.setTouchEmulationEnabled", {"enabled": metrics["mobile"]})
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        do("Emulation.setEmulatedMedia", {"features": features})
        servers.append(LabelingServer(desk, token=TOKEN).start())
        page = Page(window, servers[-1].url)
        page.desk = desk
        page.until(lambda: page.text(".done"))
        return page

    yield show
    for server in servers:
        server.stop()
    do("Emulation.clearDeviceMetricsOverride", {})
    do("Emulation.setTouchEmulationEnabled", {"enabled": False})
    do("Emulation.setEmulatedMedia", {"features": []})


PARTS = (".card", ".text p", ".guess", ".classes", ".actions", ".foot", ".foot label",
    ".theme", ".estimate", "nav")  # fmt: skip


def _measure(page):
    """Return left, top and bottom of all that should stay."""
    code = """
return Object.fromEntries(arguments[0].flatMap((selector) => {
  const element = document.querySelector(selector);
  if (!element?.checkVisibility()) return [];
  const { left, top, bottom } = element.getBoundingClientRect();
  return [[selector, selector === ".text p" ? [left, top] : [left, top, bottom]]];
}));
"""
    return page.driver.execute_script(code, PARTS)


def _is_still(before, after):
    """Whether everything is where it was, within a pixel."""
    moved = {
        name: (place, after.get(name))
        for name, place in before.items()
        if name not in after
        or max(abs(x - y) for x, y in zip(place, after[name], strict=True)) > 1
    }
    assert moved == {}
    return True


def _answer(page):
    """Answer by the first class; wait until all of it is shown."""
    before, n = page.wait(), len(page.desk.answers) + 1
    page.press("1", *[Keys.ENTER] * (page.desk.target == "multi-label"))
    page.until(lambda: page.item != before)
    wanted = page.desk.state()["n_labels"]
    page.until(lambda: page.text(".done").startswith(f"{n} of {wanted}"))


# Places -------------------------------------------------------------------------------

CASES = [
    *((THREE, size, "single-label") for size in SIZES),
    (INTENTS, "laptop", "single-label"),
    (EMOTIONS, "low", "multi-label"),
    (EMOTIONS, "laptop", "multi-label"),
    (MANY, "wide", "single-label"),
    (INTENTS, "phone", "single-label"),
]


@pytest.mark.parametrize(("names", "size", "target"), CASES)
def test_nothing_moves_between_fifty_answers(show, names, size, target):
    offered = ["feeling3"] if target == "multi-label" else None
    desk = ScriptedDesk(names, LINES[:3], EVENTS, target, suggestion=offered)
    page = show(desk, size)
    first = _measure(page)
    assert {".card", ".classes", ".actions"} <= first.keys()
    for _ in range(50):
        _answer(page)
        assert _is_still(first, _measure(page)), len(desk.answers)
    if size != "phone" and size != "zoom":
        assert page.text(".badge").strip().startswith("120")
        assert "no memory" in page.text(".foot")


@pytest.mark.parametrize(
    ("names", "size", "target"),
    [
        (INTENTS, "laptop", "single-label"),
        (MANY, "laptop", "single-label"),
        (INTENTS, "low", "single-label"),
        (EMOTIONS, "laptop", "multi-label"),
        (INTENTS, "phone", "single-label"),
    ],
)
def test_the_text_has_five_lines_before_the_classes_take_room(
    show, names, size, target
):
    page = show(ScriptedDesk(names, [LONG, "good"], target=target), size)
    code = """
const text = document.querySelector(".text"), style = getComputedStyle(text);
const height = text.clientHeight - 2 * parseFloat(style.paddingTop);
return height / parseFloat(style.lineHeight);
"""
    assert page.driver.execute_script(code) > 4.9
    page.go("1") if target == "single-label" else _answer(page)
    assert page.driver.execute_script(code) > 4.9  # a short one leaves them free


def test_a_search_of_a_class_moves_nothing(show):
    page = show(ScriptedDesk(INTENTS, events={0: {"model": MODEL}}))
    first = _measure(page)
    for typed in ("c", "ard", "zzz"):
        page.type(typed)
        assert _is_still(first, _measure(page))
    page.until(lambda: page.text("main p.nomatch") == "No class matches.")
    page = show(ScriptedDesk(THREE))
    first = _measure(page)
    page.press("/")
    page.type("Spo")
    page.until(lambda: page.classes == ["Sports"])
    assert _is_still(first, _measure(page))


@pytest.mark.parametrize("size", ["laptop", "low", "wide"])
def test_a_new_row_of_classes_moves_nothing(show, size):
    page = show(ScriptedDesk(THREE), size)
    first = _measure(page)
    for n in range(4, 10):
        page.desk.add_class(f"class {n}")
        page.until(lambda n=n: len(page.classes) == n)
        assert _is_still(first, _measure(page))


@pytest.mark.parametrize("names", [INTENTS, EMOTIONS])
def test_names_are_on_one_line_and_whole_in_the_title(show, names):
    target = "multi-label" if names is EMOTIONS else "single-label"
    page = show(ScriptedDesk(names, events={0: {"model": MODEL}}, target=target))
    code = """
return [...document.querySelectorAll(".classes .name")].map((x) =>
  [x.textContent, x.title, x.clientHeight, x.scrollWidth > x.clientWidth]);
"""
    rows = page.driver.execute_script(code)
    assert len({height for _, _, height, _ in rows}) == 1
    assert all(title == f"{name}: what is about {name}" for name, title, _, _ in rows)
    assert {name for name, _, _, is_cut in rows if is_cut} <= {LONGEST}


@pytest.mark.parametrize("size", ["phone", "zoom"])
def test_nothing_is_cut_where_there_is_little_room(show, size):
    events = {0: {"model": MODEL}}
    page = show(ScriptedDesk(SIX, events=events, target="multi-label"), size)
    code = """
return [...document.querySelectorAll(".source, .classes .name")].map((x) =>
  [x.scrollWidth > x.clientWidth, x.getClientRects()[0].height]);
"""
    shown = page.driver.execute_script(code)
    assert len(shown) == 7
    assert not any(is_cut for is_cut, _ in shown)
    assert len({height for _, height in shown[1:]}) == 1  # no word is broken


@pytest.mark.parametrize("size", ["laptop", "zoom"])
@pytest.mark.parametrize("names", [SIX, EMOTIONS])
def test_what_is_suggested_is_not_cut(show, names, size):
    events = {0: {"model": MODEL, "suggestions": {"compared": 0, "leads": True}}}
    options = {"target": "multi-label", "suggestion": names[:1]}
    page = show(ScriptedDesk(names, events=events, **options), size)
    code = """
return [...document.querySelectorAll(".guess button")].map((x) =>
  [x.className, x.scrollWidth - x.clientWidth, x.clientHeight]);
"""
    (first, cut, height), (_, cut_too, height_too) = page.driver.execute_script(code)
    assert (first, cut) == ("suggestion", 0)  # only the tiles name what is predicted
    assert cut_too == 0 or names is EMOTIONS
    assert max(height, height_too) < (70 if size == "zoom" else 45)


def test_three_or_four_classes_are_in_sight_at_a_zoom_of_200_percent(show):
    for names in (THREE, [*THREE, "Sci/Tech"]):
        page = show(ScriptedDesk(names, LINES[1:2]), "zoom")
        code = "return arguments[0].getBoundingClientRect().bottom"
        bottoms = [page.driver.execute_script(code, x) for x in page.all(".classes *")]
        assert max(bottoms) <= SIZES["zoom"][1]


# Notes, classes and columns -----------------------------------------------------------


def _bottom(page, selector, side="bottom"):
    code = "return document.querySelector(arguments[0]).getBoundingClientRect()"
    return page.driver.execute_script(f"{code}[arguments[1]]", selector, side)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["Note", "Classes"])
def test_a_note_and_the_classes_open_under_the_text(show, name, size):
    page = show(ScriptedDesk(THREE, LINES), size)
    text, before = page.item, _bottom(page, ".card", "top")
    if name == "Note":
        page.press("n")
    else:
        page.open("Classes")
    page.until(lambda: page.all("dialog[open]"))
    if size != "zoom":  # where the field comes into sight
        assert abs(_bottom(page, ".card", "top") - before) <= 1
    assert _bottom(page, "dialog", "top") >= _bottom(page, ".card")
    page.type("1s")  # no key of the page acts
    assert (page.item, page.desk.answers) == (text, [])
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog[open]"))
    page.all(".text")[0].click()
    page.go("1")


def test_a_note_belongs_to_the_text_that_it_was_written_at(show):
    page = show(ScriptedDesk(THREE))
    _answer(page)
    page.press("n")
    page.until(lambda: page.all("dialog[open] textarea"))
    page.type("odd")
    page.driver.execute_script("document.querySelector('.recent button').click()")
    page.until(lambda: page.text(".mode"))
    assert not page.all("dialog[open]")
    assert page.desk.notes == {}
    page.press("n")
    page.until(lambda: page.all("dialog[open] textarea"))
    page.type("even")
    page.chord(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: page.desk.notes == {0: "even"})


def test_one_column_is_a_line_under_the_text_and_more_are_beside_it(show):
    page = show(ScriptedDesk(THREE, columns={"id": "17"}))
    assert _bottom(page, ".columns", "top") >= _bottom(page, ".text") - 1
    assert _bottom(page, ".text", "right") > _bottom(page, ".card", "right") - 3
    assert _bottom(page, ".columns", "height") < 50
    page = show(ScriptedDesk(THREE, columns={"id": "17", "by": "Ann"}))
    assert _bottom(page, ".columns", "left") >= _bottom(page, ".text", "right") - 1
    page = show(ScriptedDesk(THREE, columns={"id": "17", "by": "Ann"}), "phone")
    assert _bottom(page, ".columns", "height") < 60


def test_the_ring_of_the_text_is_around_its_card(show):
    page = show(ScriptedDesk(THREE, columns={"id": "17", "by": "Ann"}))
    page.all(".text")[0].click()
    page.press(Keys.SHIFT)  # the keyboard is used
    card, text = page.all(".card")[0], page.all(".text")[0]
    with_focus = card.value_of_css_property("border-color")
    assert text.value_of_css_property("outline-style") == "none"
    page.driver.execute_script("document.activeElement.blur()")
    assert card.value_of_css_property("border-color") != with_focus


def test_the_begin_of_a_long_text_says_where_the_model_stops(show):
    page = show(ScriptedDesk(THREE, [LONG, "good"], read=900))
    words = f"The model reads the first 900 of {len(LONG):,} characters."
    assert page.text(".text .cut") == words
    assert page.item == LONG
    assert page.all(".text .unread")
    _answer(page)
    assert not page.text(".text .cut")  # all of it is read


def test_the_size_of_the_text_is_remembered(show):
    page = show(ScriptedDesk(THREE))
    size = "return getComputedStyle(document.querySelector('.text')).fontSize"
    before = float(page.driver.execute_script(size)[:-2])
    page.all(".foot button")[2].click()
    assert page.text(".foot").count("Text size: 125 %") == 1
    page.driver.refresh()
    page.wait()
    assert float(page.driver.execute_script(size)[:-2]) == pytest.approx(1.25 * before)


def test_the_page_shows_one_number_for_one_text(show):
    page = show(ScriptedDesk(THREE, events={0: {"model": MODEL}}, suggestion="World"))
    assert "60 %" in page.text(".predicted")
    page.press("w")  # the newest model says 30 %
    page.until(lambda: "30 %" in page.text("dialog"))
    assert "30 %" in page.text(".predicted")


def test_a_class_that_was_renamed_keeps_its_number(open_page):
    page = open_page(session={"refit": False})
    for id in range(40, 52):
        name = "yes" if id % 2 else "no"
        page.desk.answer(id, name, "other")
    page.desk.session.refit()
    page.go("s")
    while not page.text(".predicted"):  # drawn at random
        page.go("s")
    share = page.text(".predicted .share")
    page.desk.edit_class(page.text(".predicted .name"), new="perhaps")
    page.until(lambda: page.text(".predicted .name") == "perhaps")
    assert page.text(".predicted .share") == share


def test_a_warning_of_a_slow_reply_goes_with_the_next_reply(show):
    page = show(ScriptedDesk(THREE))
    page.driver.execute_script(
        "window.kept = AbortSignal.timeout; AbortSignal.timeout = () => "
        "AbortSignal.abort(new DOMException('slow', 'TimeoutError'))"
    )
    page.open("History")
    page.until(lambda: "the program is busy" in page.text(".warning"))
    page.press(Keys.ESCAPE)
    page.driver.execute_script("AbortSignal.timeout = window.kept")
    page.go("1")
    page.until(lambda: not page.text(".warning"))
    assert [label for _, label in page.desk.answers] == [THREE[0]]


# Dialogs ------------------------------------------------------------------------------


def test_close_is_in_sight_below_many_classes(show):
    page = show(ScriptedDesk(INTENTS))
    page.open("Classes")
    page.until(lambda: page.driver.execute_script(
        "return document.querySelector('dialog').scrollTop > 500"
    ))  # fmt: skip
    assert _bottom(page, "dialog .title button") < _bottom(page, "dialog") - 60
    edges = _bottom(page, "dialog", "top"), _bottom(page, "dialog .title", "top")
    assert abs(edges[0] - edges[1]) <= 1  # nothing is seen above it


def test_a_list_has_one_scroll_bar_at_a_zoom_of_200_percent(show):
    page = show(ScriptedDesk(THREE), "zoom")
    for _ in range(6):
        _answer(page)
    page.open("History")
    page.until(lambda: page.all(".rows li"))
    code = """
return [...document.querySelectorAll("dialog, dialog *")].filter((x) =>
  x.scrollHeight > x.clientHeight + 1 && getComputedStyle(x).overflowY === "auto"
).map((x) => x.tagName);
"""
    assert page.driver.execute_script(code) == ["DIALOG"]


def test_why_names_a_word_once_and_says_what_the_marks_mean(show, axe):
    desk = ScriptedDesk(THREE, ["rain rain sun " * 200], {0: {"model": MODEL}})
    words = [[0, 0, 4, 0.2], [0, 5, 9, 0.1], [0, 10, 13, -0.1]]
    explain = desk.explain
    desk.explain = lambda id: explain(id) | {"words": words}
    page = show(desk)
    page.press("w")
    page.until(lambda: page.text("dialog .why"))
    assert page.text("dialog p[role=status]").count("rain") == 1
    assert "underlined words against it" in page.text("dialog .note")
    assert find_violations(page, axe) == []  # the text can be scrolled by keys


# Keys ---------------------------------------------------------------------------------


def test_backspace_undoes(show):
    page = show(ScriptedDesk(THREE))
    text = page.item
    _answer(page)
    page.press(Keys.BACKSPACE)
    page.until(lambda: page.item == text)
    assert page.desk.answers == []


def test_space_is_explained_once_to_those_who_expect_it_to_skip(show):
    page = show(ScriptedDesk(THREE, events={0: {"model": MODEL}}))
    page.go(" ")
    words = "Space accepted the prediction. S skips a text, and Backspace undoes."
    page.until(lambda: words in page.text(".warning"))
    page.go("1")
    page.until(lambda: not page.text(".warning"))
    page.go(" ")
    page.until(lambda: len(page.desk.answers) == 3)
    assert not page.text(".warning")


@pytest.mark.parametrize("names", [THREE, INTENTS])
@pytest.mark.parametrize("leads", [False, True])
def test_the_better_source_has_space_and_the_other_one_a_key(show, names, leads):
    machine = {"compared": 9, "agreed": 8, "low": 0.5, "high": 0.9, "leads": leads}
    events = {0: {"model": MODEL, "suggestions": machine}}
    page = show(ScriptedDesk(names, events=events, suggestion=names[2]))
    other = "*" if names is INTENTS else "M"
    key = "Space" if leads else other
    assert page.text(".guess") == f"{key}Suggestion: {names[2]}"
    if names is THREE:
        assert page.text(".predicted .share kbd") == (other if leads else "Space")
    predicted = page.text(".predicted .name")
    page.go(" ")
    page.go(other.lower())
    said = [label for _, label in page.desk.answers]
    assert said[0] == (names[2] if leads else predicted)
    assert said[1] == (names[1] if leads else names[2])


def test_the_page_has_its_keys_from_the_list_of_the_desk(show):
    flag = ("x", "x", "x", "put a flag on it")
    page = show(ScriptedDesk(THREE, commands=COMMANDS | {"flag": flag}))
    assert page.text(".actions").count("xFlag") == 1
    page.press("f")
    page.press("x")
    page.until(lambda: page.desk.flags == {0})
    page.press("?")
    page.until(lambda: "put a flag on it" in page.text("dialog"))


# Accessibility ------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_state_has_a_violation(show, axe, size, scheme):
    machine = {"compared": 9, "agreed": 8, "low": 0.5, "high": 0.9, "leads": True}
    events = {0: {"model": MODEL, "estimate": ESTIMATE, "suggestions": machine}}
    options = {"suggestion": "Sports", "columns": {"id": "17"}, "read": 3}
    page = show(
        ScriptedDesk(THREE, events=events, n_doubtful=3, **options), size, scheme
    )
    for _ in range(3):
        page.go(" ")
    assert find_violations(page, axe) == []
    for key in ("n", "?"):
        page.press(key)
        page.until(lambda: page.all("dialog[open]"))
        assert find_violations(page, axe) == []
        page.press(Keys.ESCAPE)
        page.until(lambda: not page.all("dialog[open]"))
    page.press("/")
    page.type("zz")
    page.until(lambda: page.text("main p.nomatch"))
    assert find_violations(page, axe) == []
    page = show(ScriptedDesk(INTENTS, events=events, target="multi-label",
        suggestion=INTENTS[:2]), size, scheme)  # fmt: skip
    assert find_violations(page, axe) == []
