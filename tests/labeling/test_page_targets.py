"""The page with several classes per text, and with numbers, in a real browser."""

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner

from ._helpers import find_violations, text_of
from .conftest import TEXTS

pytestmark = pytest.mark.browser
CLASSES = ["joy", "love", "anger"]
SEVERAL = {"classes": CLASSES, "multi_label": True, "refit": False}


def _checked(page):
    """Return the names that have a check mark."""
    code = """
return [...document.querySelectorAll(".classes [aria-checked=true] .name")]
"""
    return page.driver.execute_script(f"{code}.map((name) => name.textContent)")


def _answer(page, *keys):
    """Press keys that answer; return the text that was answered."""
    before = page.wait()
    page.press(*keys)
    page.until(lambda: page.item != before)
    return before


def _labels(page):
    session = page.desk.session
    return {text_of(session, id): label for id, label in session.labels.items()}


def test_keys_check_classes_and_enter_saves(open_page):
    page = open_page(session=SEVERAL)
    page.wait()
    group = page.all(".classes")[0]
    assert group.get_attribute("role") == "group"
    assert {x.get_attribute("role") for x in page.all(".classes button")} == {
        "checkbox"
    }
    assert _checked(page) == []
    page.press("3", "1")
    page.until(lambda: _checked(page) == ["joy", "anger"])
    assert page.text(".chosen") == "joy + anger"
    page.press("3")
    page.until(lambda: _checked(page) == ["joy"])
    expected = {_answer(page, "2", Keys.ENTER): ["joy", "love"]}
    assert _checked(page) == []  # nothing is checked for the next text
    text = page.item
    page.press(Keys.ENTER)
    page.until(lambda: "Press Enter again" in page.text(".chosen"))
    assert page.item == text
    expected[_answer(page, Keys.ENTER)] = []
    page.press("1", "2", Keys.ESCAPE)
    page.until(lambda: _checked(page) == [])
    expected[_answer(page, "3", Keys.ENTER)] = ["anger"]
    assert {text: sorted(x) for text, x in _labels(page).items()} == {
        text: sorted(names) for text, names in expected.items()
    }
    counts = [entry["count"] for entry in page.desk.state()["classes"]]
    assert counts == [1, 1, 1]


@pytest.mark.slow
def test_the_second_enter_must_follow_the_first(open_page):
    page = open_page(session=SEVERAL)
    text = page.wait()
    page.press(Keys.ENTER, "1", "1", Keys.ENTER)
    page.until(lambda: "Press Enter again" in page.text(".chosen"))
    assert page.item == text
    assert _labels(page) == {}


@pytest.mark.slow
def test_check_boxes_by_focus_and_by_mouse(open_page):
    page = open_page(session=SEVERAL)
    page.wait()
    while "joy" not in page.focus or "love" in page.focus:
        page.press(Keys.TAB)
    page.press(Keys.SPACE, Keys.ARROW_DOWN, Keys.SPACE)
    page.until(lambda: _checked(page) == ["joy", "love"])
    text = _answer(page, Keys.ENTER)
    assert _labels(page) == {text: ["joy", "love"]}
    text = page.item
    page.all(".classes button")[2].click()
    page.driver.find_element(By.CSS_SELECTOR, ".save button").click()
    page.until(lambda: page.item != text)
    assert _labels(page)[text] == ["anger"]


@pytest.mark.slow
def test_correct_several_classes(open_page):
    page = open_page(session=SEVERAL)
    text = _answer(page, "1", "2", Keys.ENTER)
    page.press("u")
    page.until(lambda: page.item == text)
    assert _checked(page) == []  # an answer that was undone is none
    _answer(page, "1", "3", Keys.ENTER)
    page.open("History")
    page.until(lambda: page.all(".entry"))
    assert "joy + anger" in page.text(".entry")
    page.all(".entry")[0].click()
    page.until(lambda: page.text(".mode"))
    page.until(lambda: _checked(page) == ["joy", "anger"])
    page.press("1", Keys.ENTER)
    page.until(lambda: not page.text(".mode"))
    assert _labels(page) == {text: ["anger"]}


@pytest.mark.slow
def test_find_several_of_many_classes(open_page):
    classes = [f"intent_{i}" for i in range(40)]
    page = open_page(session={**SEVERAL, "classes": classes})
    page.wait()
    page.press("/")
    page.type("intent 33")
    page.press(Keys.ENTER)
    page.until(lambda: page.text(".chosen") == "intent_33")
    page.type("intent 7")
    page.press(Keys.ENTER)
    page.until(lambda: page.text(".chosen") == "intent_7 + intent_33")
    text = _answer(page, Keys.ENTER)
    assert _labels(page) == {text: ["intent_7", "intent_33"]}


def _several_learner():
    model = OneVsRestClassifier(LogisticRegression(C=100))
    return ActiveLearner(make_pipeline(TfidfVectorizer(), model), random_state=0)


@pytest.mark.slow
def test_accept_the_predicted_set(open_page):
    page = open_page(session={**SEVERAL, "refit": True}, learner=_several_learner())
    for id, text in enumerate(TEXTS[:20]):
        names = ["joy", "love"] if "good" in text else ["anger"]
        page.desk.answer(id, names, "other")
    page.desk.session.refit()
    page.driver.refresh()
    text = page.wait()
    page.until(lambda: "Prediction:" in page.text(".guess"))
    names = ["joy", "love"] if "good" in text else ["anger"]
    assert " + ".join(names) in page.text(".guess")
    assert _checked(page) == []
    page.press("3" if "good" in text else "1", Keys.SPACE)  # something is checked
    page.until(lambda: "Press Enter to save" in page.text(".chosen"))
    page.press(Keys.ESCAPE)
    _answer(page, Keys.SPACE)
    assert sorted(_labels(page)[text]) == sorted(names)


@pytest.fixture
def numbers():
    """A learner of numbers."""
    model = make_pipeline(TfidfVectorizer(), Ridge())
    return ActiveLearner(model, strategy="random", batch_size=4, random_state=0)


def test_type_numbers(open_page, numbers):
    page = open_page(session={"classes": None, "refit": False}, learner=numbers)
    page.wait()
    assert page.classes == []
    assert not page.text(".classes")
    first = page.item
    page.type("x")
    page.press(Keys.ENTER)
    page.until(lambda: page.text(".chosen") == "Type a number.")
    first = _answer(page, "2", ".", "5", Keys.ENTER)
    page.type("1e")
    page.press(Keys.ENTER)
    page.until(lambda: page.text(".chosen") == "1e is not a number.")
    page.press(Keys.ESCAPE)
    second = _answer(page, "-", "1", Keys.ENTER)
    assert _labels(page) == {first: 2.5, second: -1.0}


@pytest.mark.slow
def test_accept_a_predicted_number(open_page, numbers):
    page = open_page(session={"classes": None, "refit": True}, learner=numbers)
    for id in range(12):
        page.desk.answer(id, 3.0, "other")
    page.desk.session.refit()
    page.driver.refresh()
    page.wait()
    page.until(lambda: "Prediction: 3" in page.text(".guess"))
    text = _answer(page, Keys.SPACE)
    assert _labels(page)[text] == pytest.approx(3.0)
    ActionChains(page.driver).send_keys("?").perform()
    page.until(lambda: "type the number" in page.text("dialog"))


@pytest.mark.slow
def test_long_names_fit_on_a_phone(open_page):
    classes = [f"a class with a name that is longer than a line {i}" for i in range(12)]
    page = open_page(session={**SEVERAL, "classes": classes})
    page.wait()
    resize = "Emulation.setDeviceMetricsOverride"
    size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd(resize, size)
    try:
        code = """
const buttons = [...document.querySelectorAll(".classes button")];
return buttons.every((button) => button.scrollHeight <= button.clientHeight);
"""
        assert page.driver.execute_script(code)
        assert page.driver.find_element(By.CSS_SELECTOR, ".save button").is_displayed()
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.slow
@pytest.mark.parametrize("target", ["several", "numbers"])
def test_accessibility_of_other_targets(open_page, axe, numbers, target):
    options = {"session": SEVERAL}
    if target == "numbers":
        given = {"classes": None, "refit": False}
        options = {"session": given, "learner": numbers}
    page = open_page(**options)
    page.wait()
    for keys in ["12" if target == "several" else "5", "?", Keys.ESCAPE]:
        page.press(*keys)
        assert find_violations(page, axe) == []
