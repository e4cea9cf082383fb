"""The look of the page: its layout, hues, first screen, last answers and end."""

import re
import time

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

from skactive.labeling._server import PAGE, LabelingServer
from skactive.labeling._start import StartDesk
from skactive.project import Project

from .._tables._helpers import write_columns
from ._helpers import TOKEN, Page, find_violations, train

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ABOUT = {"yes": {"description": "a good film", "examples": ["what a joy"]}}


@pytest.fixture
def view(window):
    """Set the size of the window in CSS pixels, the scheme, and the kind of pointer."""

    def view(width, height, scheme="light", touch=False):
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        do = window.execute_cdp_cmd
        do("Emulation.setDeviceMetricsOverride", {**size, "mobile": touch})
        do("Emulation.setTouchEmulationEnabled", {"enabled": touch})
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        do("Emulation.setEmulatedMedia", {"features": features})

    yield view
    window.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    window.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def _box(page, selector):
    """Return the left, top, right and bottom of the first element that is shown."""
    code = """
const all = [...document.querySelectorAll(arguments[0])];
const box = all.find((element) => element.checkVisibility()).getBoundingClientRect();
return [box.left, box.top, box.right, box.bottom];
"""
    return page.driver.execute_script(code, selector)


def _excess(page):
    """Return how far the page is wider and higher than the window."""
    code = """
const { scrollWidth, scrollHeight } = document.documentElement;
return [scrollWidth - innerWidth, scrollHeight - innerHeight];
"""
    return page.driver.execute_script(code)


# Layout -------------------------------------------------------------------------------

SIZES = [(1300, 900), (390, 844), (2560, 1440)]


@pytest.mark.parametrize(("size", "n_words"), zip(SIZES, (250, 150, 300), strict=True))
def test_the_text_grows_and_the_answers_stay_at_the_bottom(
    open_page, view, size, n_words
):
    page = open_page(["a few words", "word " * 3000, "w " * n_words], n_labels=20)
    view(*size)
    boxes, answers = {}, set()
    for _ in range(3):
        text = page.wait()
        boxes[len(text)] = _box(page, ".card")
        answers.add(tuple(_box(page, ".classes")))
        assert max(_excess(page)) <= 0
        page.go("s")
    assert len(answers) == 1
    ((_, top, _, bottom),) = answers
    assert bottom > 0.7 * size[1]
    heights = {n: box[3] - box[1] for n, box in boxes.items()}
    short, middle, long = (heights[n] for n in sorted(heights))
    assert short < middle < long
    assert short < 0.25 * size[1]  # a short text is in no large box
    assert long > 0.45 * size[1]  # a long one takes what there is
    assert all(0 <= top - box[3] < 0.1 * size[1] for box in boxes.values())


def test_the_class_that_is_predicted_has_the_tint(open_page):
    page = open_page()
    assert not page.all(".predicted")
    train(page)
    text = page.item
    (button,) = page.all(".predicted")
    name = "yes" if "good" in text else "no"
    assert name in button.text
    assert re.search(r"\d+ %\s+Space", button.text)
    other = page.all(".classes button:not(.predicted)")[0]
    color = "background-color"
    assert button.value_of_css_property(color) != other.value_of_css_property(color)
    page.all(".foot input")[0].click()  # predictions are hidden
    page.until(lambda: not page.all(".predicted"))
    share = "return getComputedStyle(arguments[0]).getPropertyValue('--share').trim()"
    assert page.driver.execute_script(share, page.all(".classes button")[0]) == "0"


def test_a_phone_has_one_menu_no_key_caps_and_large_targets(open_page, view, axe):
    long = "a class with a long name that nobody cuts off"
    names = ["yes", "no", long, *(f"class_{i}" for i in range(4))]
    page = open_page(session={"classes": names}, n_labels=20)
    page.go("1")
    view(390, 844, touch=True)
    page.driver.refresh()
    page.wait()
    page.until(lambda: page.text(".recent"))
    assert max(_excess(page)) <= 0
    code = """
return [...document.querySelectorAll("kbd")].filter((kbd) => kbd.checkVisibility())
"""
    assert page.driver.execute_script(code) == []
    (menu,) = page.all(".menu")
    shown = [*page.all(".classes button"), *page.all(".actions button"), menu]
    assert min(button.size["height"] for button in shown) >= 44
    name = page.all(".classes .name")[2]
    assert name.text == long
    clipped = "return arguments[0].scrollWidth - arguments[0].clientWidth"
    assert page.driver.execute_script(clipped, name) <= 0
    assert not page.text("nav")
    assert not page.text(".foot")
    menu.click()
    page.until(lambda: page.text("nav") and page.text(".foot"))
    tools = [*page.all("nav button"), *page.all(".foot button")]
    assert min(x.size["height"] for x in tools if x.is_displayed()) >= 44
    assert find_violations(page, axe) == []
    next(x for x in tools if x.text == "History").click()
    page.until(lambda: page.all("dialog[open]"))
    assert not page.text("nav")
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog[open]"))
    page.press("?")
    page.until(lambda: page.all("dialog .keys"))
    assert page.all("dialog .keys kbd")[0].is_displayed()  # a keyboard may be there


def test_a_guide_beside_the_text_on_a_wide_window(open_page, view, axe):
    page = open_page(descriptions=ABOUT)
    view(1300, 900)
    assert "a good film" in page.text(".guide")
    assert "what a joy" in page.text(".guide")
    assert _box(page, ".guide")[0] >= _box(page, ".card")[2]
    page.go("1")
    page.until(lambda: "yes1 label" in page.text(".guide"))
    assert find_violations(page, axe) == []
    (button,) = (x for x in page.all("nav button") if x.text == "Guide")
    assert button.get_attribute("aria-expanded") == "true"
    button.click()
    page.until(lambda: not page.text(".guide"))
    page.driver.refresh()  # it is remembered
    page.wait()
    assert not page.text(".guide")
    view(1000, 900)
    assert "Guide" not in [x.text for x in page.all("nav button")]  # ? has the same


def test_other_columns_are_beside_the_text(open_page, view, axe):
    columns = {"author": "A <b>", "link": "https://example.org/a?b=1"}
    page = open_page(columns=lambda id: columns)
    view(1300, 900)
    assert page.text(".columns dd") == "A <b>"
    (link,) = page.all(".columns a")
    assert link.get_attribute("href") == columns["link"]
    assert link.get_attribute("rel") == "noreferrer"
    assert _box(page, ".columns")[0] >= _box(page, ".text")[2]
    assert find_violations(page, axe) == []
    view(390, 844)
    assert _box(page, ".columns")[1] >= _box(page, ".text")[3]


def test_what_the_encoder_does_not_read_is_marked(open_page, axe):
    text = "🙂 a smile, and a rest"
    page = open_page([text] * 1 + ["x y", "z"])
    page.desk._reader.count = lambda text: 7 if len(text) > 9 else None
    page.driver.refresh()
    while page.wait() != text:
        assert not page.text(".unread")
        page.go("1")
    assert page.text(".unread") == text[7:]
    assert page.item == text  # the mark is no part of the text
    assert find_violations(page, axe) == []


# The last answers ---------------------------------------------------------------------


def _strip(page):
    code = "return [...document.querySelectorAll('.recent button')]"
    return page.driver.execute_script(f"{code}.map((entry) => entry.innerText)")


def test_the_last_answers_are_corrected_by_click_and_by_arrows(open_page):
    page = open_page()
    seen = [page.go(key) for key in "12s1212"]
    page.until(lambda: len(_strip(page)) == 7)
    shown = _strip(page)
    assert [row.split("\n")[1] for row in shown] == seen
    said = ["yes", "no", "skipped", *["yes", "no"] * 2]
    assert [row.split("\n")[0] for row in shown] == said
    before = page.wait()
    page.all(".recent button")[5].click()
    page.until(lambda: page.item == seen[5])
    assert "Labeled yes" in page.text(".mode")
    page.press("2")
    page.until(lambda: page.item == before)
    page.until(lambda: _strip(page)[-1].startswith("no"))
    page.press(Keys.ARROW_UP, Keys.ARROW_UP, Keys.ENTER)
    page.until(lambda: page.item == seen[6])
    page.press(Keys.ESCAPE)
    page.until(lambda: page.item == before)
    page.press(Keys.ARROW_UP, Keys.ARROW_DOWN)
    assert page.driver.switch_to.active_element.get_attribute("class") == "text"
    answers = page.desk._state.answers
    labels = [page.desk.session.labels[x] for x in page.desk._state.latest(answers)[:2]]
    assert labels == ["no", "no"]


def test_where_the_model_said_something_else(open_page):
    page = open_page()
    train(page)
    name = page.text(".predicted .name")
    page.go(" ")
    page.until(lambda: _strip(page)[-1].startswith(name))
    assert "the model said" not in _strip(page)[-1]
    name = page.text(".predicted .name")
    page.go("2" if name == "yes" else "1")
    page.until(lambda: f"the model said {name}" in _strip(page)[-1].replace("\n", " "))
    page.all(".foot input")[0].click()
    page.until(lambda: page.text(".guess") == "Predictions are hidden.")
    page.all(".text")[0].click()
    page.go("1")
    page.until(lambda: "the model said" not in page.text(".recent"))


# The first screen and the end ---------------------------------------------------------


@pytest.fixture
def start(window, tmp_path, monkeypatch, request):
    """The first screen over a table without labels; what it chose goes to `chosen`."""
    columns = {"text": [f"film {i}" for i in range(9)]}
    if name := getattr(request, "param", None):  # the only class of the table
        columns["label"] = [name, *[None] * 8]
    write_columns(tmp_path / "films.csv", columns)
    project, chosen = Project(tmp_path / "films.csv", "text", "label"), []

    def refuse(project, kind, classes, n_labels):
        chosen.append((kind, classes, n_labels))
        raise ValueError("not today")

    monkeypatch.setattr(Project, "begin", refuse)
    with LabelingServer(StartDesk(project), token=TOKEN) as server:
        page = Page.__new__(Page)
        page.driver, page.chosen = window, chosen
        window.get(server.url)
        page.until(lambda: page.text("form"))
        yield page
    window.get_log("browser")


@pytest.mark.parametrize(
    "scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"]
)
@pytest.mark.parametrize("size", [(1300, 900), (390, 844), (640, 450)])
def test_the_first_screen_has_no_violation(start, view, axe, size, scheme):
    view(*size, scheme)
    start.type("good: worth seeing\nbad\n")
    start.until(lambda: len(start.all(".names li")) == 2)
    for name, kind in ("tone", ""), ("urgency", "A n"):
        assert find_violations(start, axe) == []
        assert _excess(start)[0] <= 0
        start.move_to("Add a question", lambda: start.press(Keys.TAB))
        start.press(Keys.ENTER)
        start.type(f"{name}{Keys.TAB}{kind}")
    start.all(".start .primary")[0].click()
    start.until(lambda: "at least two classes for tone" in start.text(".warning"))
    assert find_violations(start, axe) == []
    assert _excess(start)[0] <= 0


@pytest.mark.parametrize("start", ["law: civil, old"], indirect=True)
def test_a_class_of_the_table_keeps_its_colons_and_commas(start):
    start.chord(Keys.CONTROL, "a")
    start.type("law: civil, old: about courts\nlaw: all others\nsport, arts")
    names = ["law: civil, old", "law", "sport", "arts"]
    start.until(lambda: [x.text for x in start.all(".names li")] == names)
    start.all(".start .primary")[0].click()
    start.until(lambda: start.chosen)
    about = dict(zip(names, ["about courts", "all others", "", ""], strict=True))
    assert start.chosen.pop() == ("single-label", about, 200)


def test_the_first_screen_by_keyboard(start):
    page = start
    assert page.driver.switch_to.active_element.tag_name == "textarea"
    assert "film 0" in page.text(".samples")
    page.type("good: worth seeing, twice" + Keys.ENTER)
    page.press(Keys.ENTER)
    page.until(lambda: "at least two classes" in page.text(".warning"))
    page.type("bad" + Keys.ENTER)
    page.press(Keys.ENTER)  # an empty line starts
    page.until(lambda: page.text(".warning") == "not today")
    expected = {"good": "worth seeing, twice", "bad": ""}
    assert page.chosen.pop() == ("single-label", expected, 200)
    page.chord(Keys.SHIFT, Keys.TAB)
    page.press(Keys.ARROW_DOWN)
    page.press(*[Keys.TAB] * 3)
    page.chord(Keys.CONTROL, "a")
    page.type("no" + Keys.ENTER)
    page.until(lambda: "The goal is a number" in page.text(".warning"))
    page.chord(Keys.CONTROL, "a")
    page.type("50" + Keys.ENTER)
    page.until(lambda: page.chosen)
    assert page.chosen.pop() == ("multi-label", expected, 50)
    page.all(".start [value=regression]")[0].click()
    assert not page.all(".start textarea")[0].is_displayed()
    page.all(".start .primary")[0].click()
    page.until(lambda: page.chosen)
    assert page.chosen.pop() == ("regression", {}, 50)


RESULT = {
    "n_labeled": 3,
    "command": "skactive label films.csv --text text --label label",
    "file": "films.labeled.csv",
    "sources": {"given": 0, "person": 3, "model": 0},
    "classes": [
        {"name": n, "given": 0, "person": 1, "model": 0} for n in ("yes", "no")
    ],
    "steps": [
        {"name": "Writing the labels", "past": True, "share": None, "seconds": 0},
        {"name": "Fine-tuning the encoder", "past": False, "share": 0.4, "seconds": 3},
    ],
}
DONE = RESULT | {
    "done": True,
    "error": None,
    "model": "films.skactive/model",
    "predict": "skactive predict films.skactive/model NEW_FILE",
    "accuracy": "About 85 % of the rest is predicted right (67-94 %).",
    "classes": [
        {"name": n, "given": 0, "person": 1, "model": 9} for n in ("yes", "no")
    ],
}


@pytest.mark.parametrize(
    "scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"]
)
def test_the_end_shows_what_is_written(open_page, view, axe, scheme):
    page = open_page(noise=["ERR_", "Failed to load", "503"])
    view(1300, 900, scheme)
    results = [RESULT]
    page.go("1")
    page.open("Finish")
    page.server.ending = lambda: results[-1]
    page.press(Keys.ENTER)
    page.until(lambda: "40 %" in page.text(".steps"))
    page.driver.refresh()  # it is shown to everybody
    page.until(lambda: "40 %" in page.text(".steps"))
    assert page.text(".ending h2") == "Writing the result …"
    assert "Leave the program running" in page.text(".ending")
    for selector in ("nav", ".classes", ".actions", ".text", ".recent", ".foot input"):
        assert not page.text(selector), selector  # nothing dead looks alive
    assert find_violations(page, axe) == []
    page.press("1", " ", "u", "s")
    assert len(page.desk.session.labels) == 1
    results.append(DONE)
    page.until(lambda: page.text(".ending h2") == "Finished")
    for words in (DONE["file"], DONE["predict"], DONE["command"], DONE["accuracy"]):
        assert words in page.text(".ending")
    rows = [row.text for row in page.all(".ending tbody tr")]
    assert rows == ["yes 1 0 9", "no 1 0 9", "All 3 0 0"]
    assert find_violations(page, axe) == []
    view(390, 844, scheme)
    assert _excess(page)[0] <= 0
    assert find_violations(page, axe) == []
    page.all(".ending button")[0].click()
    page.until(lambda: page.text("[role=status].sr") == "Copied.")
    page.server.stop()  # the program ends, and the page stays
    time.sleep(0.7)
    assert page.text(".ending h2") == "Finished"
    assert not page.text(".fault")


def test_the_same_command_brings_the_page_back(open_page):
    page = open_page(noise=["ERR_", "Failed to load", "503"])
    page.go("1")
    page.open("Finish")
    page.server.ending = lambda: DONE
    page.press(Keys.ENTER)
    page.until(lambda: page.text(".ending h2") == "Finished")
    page.server.stop()
    port = page.server.port
    with LabelingServer(page.desk, port=port, token=TOKEN):
        page.until(lambda: not page.text(".ending") and page.text(".classes"))
        page.go("2")
        assert sorted(page.desk.session.labels.values()) == ["no", "yes"]


def test_an_error_in_the_end_is_shown(open_page):
    page = open_page(noise=["ERR_", "Failed to load", "503"])
    error = {"done": False, "error": "the disk is full"}
    page.open("Finish")
    page.server.ending = lambda: RESULT | error
    page.press(Keys.ENTER)
    page.until(lambda: page.text(".ending h2") == "The result is not complete")
    assert "the disk is full" in page.text(".ending")


# The stylesheet -----------------------------------------------------------------------

# From linear RGB to what people with the three kinds of color blindness see, after
# Machado, Oliveira and Fernandes (2009), severity 1.
BLIND = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# From linear RGB to Oklab.
LMS = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
LAB = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]


def _read_hues(theme):
    css = (PAGE / "labeling.css").read_text(encoding="utf-8")
    pairs = re.findall(r"--hue-\d: light-dark\(#(\w{6}), #(\w{6})\)", css)
    rgb = np.array([list(bytes.fromhex(pair[theme])) for pair in pairs]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("eyes", [None, *BLIND])
def test_hues_differ_also_for_the_color_blind(theme, eyes):
    rgb = _read_hues(theme)
    assert len(rgb) == 8
    if eyes:
        rgb = np.clip(rgb @ np.transpose(BLIND[eyes]), 0, 1)
    lab = np.cbrt(rgb @ np.transpose(LMS)) @ np.transpose(LAB)
    apart = np.linalg.norm(lab[:, None] - lab[None], axis=2)
    apart[np.diag_indices(8)] = np.inf
    assert apart[:4, :4].min() > 0.15  # the first ones are far apart
    assert apart.min() > 0.08
