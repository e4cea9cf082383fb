"""The codebook on the page: edited in place, fed by a key, the same for the model."""

import pytest
from selenium.webdriver.common.keys import Keys

from skactive.labeling._server import PAGE

from .._tables._helpers import CODEBOOKS
from ._helpers import find_violations, train

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ABOUT = {"yes": {"description": "a good film", "examples": ["what a joy", "superb"]}}


@pytest.fixture
def open_wide(open_page):
    """Open a page that is wide enough for the guide, or of another size and scheme."""
    pages = []

    def open_wide(size=(1280, 720), scheme="light", **options):
        page = open_page(**{"descriptions": ABOUT, **options})
        pages.append(page)
        size = {"width": size[0], "height": size[1], "deviceScaleFactor": 1}
        do = page.driver.execute_cdp_cmd
        do("Emulation.setDeviceMetricsOverride", {**size, "mobile": False})
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        do("Emulation.setEmulatedMedia", {"features": features})
        page.driver.refresh()
        page.wait()
        return page

    yield open_wide
    for page in pages:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def classes(page):
    return page.desk.state()["classes"]


def said(page):
    return [(x["name"], x["description"]) for x in classes(page)]


def edit(page, name, root=".guide"):
    """Open the form of a class by the keyboard; the focus is in it."""
    (button,) = page.all(f"{root} [aria-label='Edit {name}']")
    page.driver.execute_script("arguments[0].focus()", button)
    page.press(Keys.ENTER)
    page.until(lambda: page.text(f"{root} .edit"))


def test_the_page_reads_classes_as_files_are_read(window):
    source = (PAGE / "labeling.js").read_text(encoding="utf-8")
    code = """
const [source, cases, done] = arguments;
import(URL.createObjectURL(new Blob([source], { type: "text/javascript" }))).then(
  ({ parseClasses }) => done(cases.map(([text, known]) => [...parseClasses(text, known)]
    .map(([name, { description, examples }]) => [name, description, ...examples]))));
"""
    cases = [[text, known] for text, known, _ in CODEBOOKS]
    found = window.execute_async_script(code, source, cases)
    for (text, _, expected), read in zip(CODEBOOKS, found, strict=True):
        assert [tuple(parts) for parts in read] == expected, text


def test_a_class_is_edited_in_the_guide(open_wide):
    page = open_wide()
    before = page.wait()
    edit(page, "no")
    page.type("dull, or worse" + Keys.ENTER + "no joy")  # a new line
    page.chord(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: said(page)[1] == ("no", "dull, or worse\nno joy"))
    page.until(lambda: not page.text(".guide .edit"))
    assert page.driver.switch_to.active_element.get_attribute("class") == "text"
    assert page.text("[role=status]") == "Changed no."
    edit(page, "yes")
    page.chord(Keys.CONTROL, "a")
    page.type("good 1u" + Keys.TAB + " It makes one laugh.")  # no key of the page acts
    page.driver.switch_to.active_element.send_keys(Keys.TAB)
    page.press(Keys.ENTER)  # removes the first example
    page.until(lambda: len(page.all(".guide .edit li")) == 1)
    (place,) = page.all(".guide select")
    place.send_keys("2")
    page.all(".guide .edit .primary")[0].click()
    page.until(lambda: [x["name"] for x in classes(page)] == ["no", "good 1u"])
    page.until(lambda: page.classes == ["no", "good 1u"])
    good = classes(page)[1]
    assert good["description"] == "a good film It makes one laugh."
    assert (good["examples"], good["key"]) == (["superb"], "2")
    assert page.item == before
    assert page.desk.session.labels == {}
    page.press("u")  # name, words and place at once
    words = "The new name good 1u was taken back."
    page.until(lambda: page.text("[role=status]") == words)
    page.press("u")
    page.until(lambda: said(page) == [("yes", "a good film"), ("no", "")])
    words = "The change of no was taken back."
    page.until(lambda: page.text("[role=status]") == words)
    assert "no joy" not in page.text(".guide")


def test_keys_answer_again_after_a_class_was_added_in_the_guide(open_wide):
    page = open_wide()
    field = page.all(".guide > form input")[0]
    field.send_keys("odd: neither", Keys.ENTER)
    page.until(lambda: "odd" in page.classes)
    page.until(lambda: page.driver.switch_to.active_element == page.all(".text")[0])
    field.send_keys("od", Keys.ESCAPE)
    page.go("3")
    page.until(lambda: list(page.desk.session.labels.values()) == ["odd"])


def test_what_is_typed_stays_while_others_answer(open_wide):
    page = open_wide()
    edit(page, "no")
    page.type("dull")
    page.desk.answer(40, "yes", "other")
    page.desk.edit_class("yes", description="fine")
    page.until(lambda: "1 label" in page.text(".done"))
    page.type(" films")
    page.all(".guide .edit .primary")[0].click()
    page.until(lambda: said(page) == [("yes", "fine"), ("no", "dull films")])
    page.until(lambda: "fine" in page.text(".guide"))
    assert "1 label" in page.text(".guide .meanings")
    edit(page, "no")
    page.type(" and more")
    page.press(Keys.ESCAPE)  # nothing is changed
    page.until(lambda: not page.text(".guide .edit"))
    assert said(page)[1] == ("no", "dull films")


def test_a_key_makes_the_text_an_example(open_wide):
    page = open_wide()
    text = page.wait()
    page.press("e")
    page.until(lambda: page.text(".actions [aria-pressed=true]"))
    assert "becomes an example" in page.text("[role=status]")
    page.go("2")
    page.until(lambda: classes(page)[1]["taken"] == [text])
    page.until(lambda: text in page.text(".guide"))
    assert not page.text(".actions [aria-pressed=true]")
    page.go("2")  # the next one is none
    page.press("u")
    page.until(lambda: len(page.desk.session.labels) == 1)
    assert classes(page)[1]["taken"] == [text]
    words = "The answer no was taken back."
    page.until(lambda: page.text("[role=status]") == words)
    page.press(Keys.ARROW_UP, Keys.ENTER)  # an answered text, by the same key
    page.until(lambda: page.text(".mode"))
    for n in (0, 1):
        page.press("e")
        page.until(lambda n=n: page.text(".guide").count(text) == n)
        assert classes(page)[1]["taken"] == [text] * n
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.text(".mode"))
    for n in (0, 1):  # the key twice, then the answer with its example
        page.press("u")
        page.until(lambda n=n: page.text(".guide").count(text) == n)
    page.press("u")
    page.until(lambda: page.desk.session.labels == {})
    assert classes(page)[1]["taken"] == []


def test_an_example_is_the_part_that_is_selected(open_wide):
    page = open_wide(texts=["one two three"] + [f"x {i}" for i in range(9)])
    while page.wait() != "one two three":
        page.go("s")
    code = """
const node = document.querySelector(".text p").firstChild;
getSelection().setBaseAndExtent(node, 4, node, 7);
"""
    page.driver.execute_script(code)
    page.press("e")
    page.go("1")
    page.until(lambda: classes(page)[0]["taken"])
    assert classes(page)[0]["taken"] == ["two"]


def test_new_classes_have_the_syntax_of_the_first_screen(open_wide):
    page = open_wide(session={"classes": ["law: civil", "no"]}, descriptions=None)
    page.open("Classes")
    for typed, names in [
        ("sport: games, and more", 3),
        ("arts, news", 5),
        ("law: all others", 6),
    ]:
        page.type(typed + Keys.ENTER)
        page.until(lambda names=names: len(classes(page)) == names)
        page.until(
            lambda: page.driver.switch_to.active_element.get_attribute("value") == ""
        )
    page.type("law: civil" + Keys.ENTER)
    page.until(lambda: "already a class law: civil" in page.text("dialog .warning"))
    page.chord(Keys.CONTROL, "a")
    page.type("law: civil: of courts" + Keys.ENTER)  # new words for it
    page.until(lambda: said(page)[0] == ("law: civil", "of courts"))
    assert said(page)[1:] == [
        ("no", ""),
        ("sport", "games, and more"),
        ("arts", ""),
        ("news", ""),
        ("law", "all others"),
    ]
    page.until(lambda: not page.text("dialog .warning"))


def test_a_renamed_class_keeps_its_share(open_wide):
    page = open_wide()
    train(page)
    name = page.text(".predicted .name")
    share = page.text(".predicted .share span")
    edit(page, name)
    page.driver.execute_script(
        "document.querySelector('.edit input').focus();"
        "document.querySelector('.edit input').select()"
    )
    page.type("better" + Keys.ENTER)
    page.until(lambda: page.text(".predicted .name") == "better")
    assert page.text(".predicted .share span") == share


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 720), (390, 844)])
def test_the_forms_have_no_violation(open_wide, axe, size, scheme):
    long = "a class of a long name that is longer than a line of the guide"
    page = open_wide(size, scheme, session={"classes": ["yes", "no", long]})
    page.press("e")
    root = ".guide"
    if size[0] < 1000:
        page.open("Classes")
        root = "dialog"
    edit(page, "yes", root)
    assert find_violations(page, axe) == []
    page.all(f"{root} .edit li button")[0].click()
    edit_box = page.all(f"{root} .edit")[0]
    code = "return arguments[0].scrollWidth - arguments[0].clientWidth"
    assert page.driver.execute_script(code, edit_box) <= 0
    code = "return document.documentElement.scrollWidth - innerWidth"
    assert page.driver.execute_script(code) <= 0
