"""Groups of similar texts, and searches by pattern and meaning, in a browser."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner

from ._helpers import find_violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WORDS = ["market money shares", "team match goal", "computer space software"]
TEXTS = [f"{WORDS[i % 3]} number{i}" for i in range(90)]
FRONT = HashingVectorizer(n_features=2**10)
LEARNER = ActiveLearner(make_pipeline(FRONT, LogisticRegression()), random_state=0)


def _open_search(page):
    page.open("Search")
    return page.until(lambda: page.all("dialog[open] input[type=search]"))[0]


def _choose(page, name, value):
    field = page.all(f"dialog select[aria-label='{name}']")[0]
    field.find_element(By.XPATH, f".//option[.='{value}']").click()


def test_a_theme_is_labeled_at_once_with_a_new_class(open_page, axe):
    page = open_page(TEXTS, LEARNER, {"classes": ["yes", "no"]})
    page.wait()
    _open_search(page)
    page.move_to("Themes")
    page.press(Keys.ENTER)
    page.until(lambda: page.all(".themes summary"))
    assert len(page.all(".themes summary")) == 12
    page.press(Keys.ENTER)
    box = page.until(lambda: page.all(".themes details[open] .ticks input"))[0]
    shown = len(page.all(".themes details[open] .ticks input"))
    assert find_violations(page, axe) == []
    box.click()
    field = page.all(".themes details[open] input[type=text]")[0]
    field.send_keys("sport", Keys.ENTER)
    page.until(lambda: page.desk.state()["n_labeled"] == shown - 1)
    assert set(page.desk.session.labels.values()) == {"sport"}
    page.until(lambda: len(page.all(".themes details[open] .ticks input")) <= 1)
    undo = page.desk.state()["undo"]
    assert (undo["event"], undo["n_items"]) == ("tell", shown - 1)


def test_search_by_pattern_and_by_meaning(open_page):
    page = open_page(TEXTS, LEARNER, {"classes": ["yes", "no"]})
    page.wait()
    query = _open_search(page)
    _choose(page, "How", "Pattern")
    query.send_keys("number1[0-2]$")
    page.until(lambda: "3 texts" in page.text("dialog [role=status]"))
    page.until(lambda: len(page.all("dialog .rows mark")) == 3)
    assert page.text("dialog .rows mark") in ("number10", "number11", "number12")
    query.send_keys("(")
    page.until(lambda: "regular expression" in page.text("dialog [role=status]"))
    query.clear()
    _choose(page, "How", "Meaning")
    query.send_keys("goal match")
    page.until(lambda: "texts" in page.text("dialog [role=status]"))
    page.until(lambda: page.all("dialog .rows .excerpt"))
    assert all("team" in row.text for row in page.all("dialog .rows .excerpt")[:20])
    while page.all("dialog[open]"):  # the first one empties the field
        page.press(Keys.ESCAPE)
    _open_search(page)
    assert page.all("dialog select[aria-label='How']")[0].get_attribute("value") == (
        '"meaning"'
    )
