"""The page with several questions of each text, driven by its keys."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.labeling._server import LabelingServer
from skactive.labeling._start import StartDesk
from skactive.project import Project
from skactive.session import Screens, read_labels

from .._tables._helpers import write_columns
from ._helpers import TOKEN, Page, find_violations

pytestmark = pytest.mark.slow
WORDS = ["law", "art", "war"]
TEXTS = [
    f"{'good' if i % 2 else 'bad'} {WORDS[i % 3]} with {i % 4} numbers and {i}"
    for i in range(60)
]
ASKED = {"topic": WORDS, "tone": ["bad", "good"], "urgency": None}


def key(name, text):
    """Return the keys that answer a question."""
    if name == "urgency":
        return [text.split()[3], Keys.ENTER]
    return [str(ASKED[name].index(text.split()[name == "topic"]) + 1)]


@pytest.fixture
def open_questions(window, tmp_path):
    opened = []

    def open_questions(only_if=()):
        screens = Screens()
        for name, classes in ASKED.items():
            ends = Ridge() if classes is None else LogisticRegression()
            strategy = "lcmd" if classes is None else "margin"
            model = make_pipeline(TfidfVectorizer(), ends)
            learner = ActiveLearner(model, strategy, batch_size=5, random_state=0)
            options = {"refit": "background", "audit_every": 10, "classes": classes}
            session = LabelingSession(learner, TEXTS, tmp_path / name, **options)
            more = {"n_labels": 30, "only_if": dict(only_if).get(name)}
            desk = screens.open_desk(name, session, source="t.csv", **more)
            opened[:0] = [desk, session]
        opened.insert(0, LabelingServer(screens.desks["topic"], token=TOKEN).start())
        page = Page(window, opened[0].url)
        page.desks = screens.desks
        return page

    yield open_questions
    log = [entry["message"] for entry in window.get_log("browser")]
    for thing in opened:
        getattr(thing, "stop", None) or thing.close
        (thing.stop if hasattr(thing, "stop") else thing.close)()
    assert log == []


def active(page):
    return page.text(".question[aria-current] b")


def labels(page):
    return {name: desk.session.labels for name, desk in page.desks.items()}


def answer_text(page, skipped=lambda text: ()):
    """Answer the questions of a text by keys; return the text and the keys."""
    text, pressed = page.wait(), 0
    for name in [name for name in ASKED if name not in skipped(text)]:
        page.until(lambda name=name: active(page) == name, 20)
        assert page.item == text
        keys = key(name, text)
        n = page.desks[name].state()["n_labeled"]
        page.press(*keys)
        page.until(lambda n=n, name=name: page.desks[name].state()["n_labeled"] > n, 20)
        pressed += len(keys)
    page.until(lambda: page.item not in (None, text), 20)
    return text, pressed


def test_a_text_and_its_questions_by_keys(open_questions, tmp_path):
    page = open_questions()
    code = "return [...document.querySelectorAll('.question')].map((x) => x.innerText)"
    page.until(lambda: len(page.driver.execute_script(code)) == 3)
    shown = page.driver.execute_script(code)
    assert [text.split("\n")[0] for text in shown] == [*ASKED]
    assert page.classes == WORDS
    done = [answer_text(page) for _ in range(12)]
    assert len({text for text, _ in done}) == 12
    assert sum(n for _, n in done) / 12 == 4  # one each, and Enter after the number
    for name in ("topic", "tone"):
        assert {TEXTS[i]: x for i, x in read_labels(tmp_path / name).items()} == {
            text: text.split()[name == "topic"] for text, _ in done
        }
    numbers = read_labels(tmp_path / "urgency")
    assert {TEXTS[i]: x for i, x in numbers.items()} == {
        text: float(text.split()[3]) for text, _ in done
    }
    assert page.text(".done span") == "topic: 12 of 30"


def test_one_goes_back_by_a_click_or_by_undo(open_questions):
    page = open_questions()
    text = page.wait()
    page.press("1")
    page.until(lambda: active(page) == "tone")
    assert page.classes == ["bad", "good"]
    page.all(".question")[0].click()  # back to topic
    page.until(lambda: active(page) == "topic")
    page.until(lambda: page.all('.classes [aria-checked="true"]'))
    page.press("2")
    page.until(lambda: active(page) == "tone")
    assert [*labels(page)["topic"].values()] == ["art"]
    page.press("1")
    page.until(lambda: active(page) == "urgency")
    page.press(Keys.BACKSPACE)
    page.until(lambda: active(page) == "tone")
    page.until(lambda: not labels(page)["tone"])
    page.press("2")
    page.until(lambda: active(page) == "urgency")
    page.press("3", Keys.ENTER)
    page.until(lambda: page.item not in (None, text))
    page.until(lambda: active(page) == "topic")
    page.press(Keys.BACKSPACE)
    page.until(lambda: page.item == text)
    page.until(lambda: active(page) == "urgency")
    said = page.all(".question")
    assert [x.find_elements(By.CSS_SELECTOR, ".said") != [] for x in said] == [
        True,
        True,
        False,
    ]
    page.all(".question")[1].click()
    page.until(lambda: active(page) == "tone")
    page.press("s")  # the tone has an answer: only the open one is skipped
    page.until(lambda: page.item not in (None, text))
    assert {name: len(each) for name, each in labels(page).items()} == {
        "topic": 1,
        "tone": 1,
        "urgency": 0,
    }
    assert len(page.desks["urgency"].session.skipped) == 1


def test_dialogs_name_the_question_and_act_on_it(open_questions):
    page = open_questions()
    text = page.wait()
    page.press("1")
    page.until(lambda: active(page) == "tone")
    page.open("Search")
    assert page.text("dialog h2") == "Search: tone"
    page.type(text)
    page.until(lambda: page.all(".rows .entry"))
    page.press(Keys.ENTER)
    page.until(lambda: page.text(".mode"))
    assert active(page) == "tone"
    page.press("2")
    page.until(lambda: [*labels(page)["tone"].values()] == ["good"])
    page.until(lambda: not page.text(".mode") and active(page) == "urgency")


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_accessible(open_questions, axe, size, theme, tmp_path):
    page = open_questions()
    driver = page.driver
    emulate = {"width": size[0], "height": size[1], "mobile": False}
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"deviceScaleFactor": 1, **emulate}
    )
    try:
        answer_text(page)
        if theme == "dark":
            driver.execute_script("document.documentElement.dataset.theme = 'dark'")
            driver.execute_script(
                "document.querySelector('.skactive').dataset.theme = 'dark'"
            )
        code = "return document.querySelector('.card').getBoundingClientRect().bottom"
        places = []
        for name in ASKED:
            page.until(lambda name=name: active(page) == name)
            places.append(driver.execute_script(code))
            assert find_violations(page, axe) == []
            driver.save_screenshot(str(tmp_path / f"{size[0]}-{theme}-{name}.png"))
            page.press(*key(name, page.item))
        wide = "return document.documentElement.scrollWidth - innerWidth"
        assert driver.execute_script(wide) <= 0
        assert max(places) - min(places) <= 2  # the text stays where it is
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_question_that_depends_opens_with_the_answer(open_questions):
    page = open_questions(only_if={"tone": ("topic", "law")})
    others = lambda text: () if " law " in text else ("tone",)  # noqa: E731
    texts = [answer_text(page, others)[0] for _ in range(9)]
    law = [TEXTS.index(text) for text in texts if " law " in text]
    assert 0 < len(law) < 9
    assert {*labels(page)["tone"]} == {*law}
    assert {*labels(page)["urgency"]} == {*map(TEXTS.index, texts)}


@pytest.fixture
def first_screen(window, tmp_path, tiny_bert):
    """The first screen over a table without labels, with a tiny encoder."""
    write_columns(tmp_path / "t.csv", {"text": TEXTS})
    options = {"model": tiny_bert, "max_length": 16, "adapt": False}
    project = Project(tmp_path / "t.csv", "text", "label", **options)
    with LabelingServer(StartDesk(project), token=TOKEN) as server:
        page = Page.__new__(Page)
        page.driver, page.project = window, project
        window.get(server.url)
        page.until(lambda: page.text("form"))
        yield page
        assert window.get_log("browser") == []
        if project.begun is not None:
            project.begun.close()


def _add(page):
    page.move_to("Add a question", lambda: page.press(Keys.TAB))
    page.press(Keys.ENTER)


def test_three_questions_begin_on_the_first_screen(first_screen):
    page = first_screen
    page.type(", ".join(WORDS))
    assert not page.all(".naming input")[0].is_displayed()
    _add(page)
    page.type(f"tone{Keys.TAB * 3}bad: not liked{Keys.ENTER}good")
    _add(page)
    page.type(f"urgency{Keys.TAB}A n")  # a number has no classes
    assert not page.all(".further textarea")[1].is_displayed()
    (name,) = page.all(".naming input")
    assert name.get_attribute("value") == "label"
    name.clear()
    name.send_keys("topic", Keys.ENTER)
    code = "return [...document.querySelectorAll('.question')].map((x) => x.innerText)"
    page.until(lambda: len(page.driver.execute_script(code)) == 3)
    shown = page.driver.execute_script(code)
    assert [text.split("\n")[0] for text in shown] == [*ASKED]
    page.desks = page.project.begun.desk.desks
    answer_text(page)
    for name, desk in page.desks.items():
        ((id, label),) = desk.session.labels.items()
        said = TEXTS[id].split()
        urgency = float(said[3])
        assert label == {"topic": said[1], "tone": said[0], "urgency": urgency}[name]
    about = page.desks["tone"].state()["classes"][0]
    assert (about["name"], about["description"]) == ("bad", "not liked")


def test_what_is_wrong_with_a_question_is_said_at_its_field(first_screen):
    page = first_screen
    page.type("law, art")
    for _ in range(2):
        _add(page)
    focused = "return document.activeElement.closest('fieldset').textContent"
    for typed, message in (
        ("", "Type a name for question 2."),
        ("Label", "Type another name for question 2: question 1 is called label, too."),
        ("a:b", "Type a name without a colon for question 2."),
        ("tone", "Type at least two classes for tone."),
    ):
        field = page.all(".further input")[0]
        field.clear()
        field.send_keys(typed, Keys.ENTER)
        page.until(lambda message=message: page.text(".start .warning") == message)
        assert "Question 2" in page.driver.execute_script(focused)
    field = page.all(".further textarea")[0]
    field.send_keys("good, bad", Keys.CONTROL + Keys.ENTER)
    page.until(lambda: page.text(".start .warning").endswith("for question 3."))
    page.move_to("Remove", lambda: page.press(Keys.TAB))
    page.press(Keys.ENTER)
    assert page.text(".further legend") == "Question 2"
    assert page.focus == "Add a question"
    page.chord(Keys.SHIFT, Keys.TAB)  # to the classes of the last question
    page.chord(Keys.SHIFT, Keys.TAB)
    page.press(Keys.ENTER)
    assert not page.all(".further")
    page.all(".start .primary")[0].click()
    page.until(lambda: page.item)
    assert isinstance(page.project.begun, Project)  # one question, as ever
    assert page.project.begun.label == "label"
