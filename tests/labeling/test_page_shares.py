"""Shares of classes on the page, the switch for random texts, and what Finish says."""

import time

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner

from ._helpers import find_violations
from .conftest import TEXTS
from .test_shares import FRONT

pytestmark = pytest.mark.browser


def answer(page, n):
    """Answer n texts in the name of the page, and return their ids."""
    client, ids = next(reversed(page.desk._leases._seen)), []
    for _ in range(n):
        item = page.desk.next(client, n_queries=1)[0]
        said = ("no", "yes")["good" in item["text"]]
        page.desk.answer(item["id"], said, client)
        ids.append(item["id"])
        while page.desk.session._core.models.training:
            time.sleep(0.01)
    return ids


def estimate(page, n):
    page.desk._quality.compute(n)
    page.until(lambda: page.desk.quality()["n_labels"] >= n)


def boxes(page):
    """Return the left end and the width of each bar of a share."""
    code = """
return [...document.querySelectorAll(".shares .range")].map(
  (bar) => [bar.x.baseVal.value, bar.width.baseVal.value]);
"""
    return np.array(page.driver.execute_script(code))


def test_shares_narrow_and_the_switch_draws_at_random(open_page, axe):
    page = open_page(session={"audit_every": 4})
    page.open("Quality")
    page.until(lambda: "estimate after 10 more random texts" in page.text(".estimate"))
    assert not page.all(".shares")
    assert "At most about" in page.text(".quality section")
    page.press(Keys.ESCAPE)
    answer(page, 20)
    estimate(page, 20)
    page.driver.refresh()
    page.wait()
    page.open("Quality")
    page.until(lambda: len(boxes(page)) == 2)
    shares = [entry["share"] for entry in page.desk.quality()["classes"]]
    expected = [[300 * low, 300 * (high - low)] for _, low, high in shares]
    np.testing.assert_allclose(boxes(page), expected, atol=0.01)
    share, low, high = (round(100 * x) for x in shares[0])
    words = f"{share} % ({low}\u2013{high})"
    assert page.text(".shares td:last-child") == words
    assert find_violations(page, axe) == []
    before = boxes(page)[:, 1].max()
    on_switch = "return document.activeElement.matches('.quality section + .line input"
    while not page.driver.execute_script(f"{on_switch}')"):
        page.press(Keys.TAB)
    page.press(Keys.SPACE)
    page.until(lambda: page.desk.state()["random_only"])
    page.until(lambda: "random texts only" in page.text(".foot"))
    page.until(lambda: page.driver.execute_script(f"{on_switch}:checked')"))
    page.press(Keys.ESCAPE)
    assert {*answer(page, 30)} <= page.desk.session._core.state.audited.keys()
    estimate(page, 50)
    page.open("Quality")
    page.until(lambda: len(boxes(page)) == 2)
    page.until(lambda: boxes(page)[:, 1].max() < before)


def test_shares_of_several_classes_and_none_of_numbers(open_page):
    model = make_pipeline(FRONT, OneVsRestClassifier(LogisticRegression()))
    learner = ActiveLearner(model, batch_size=4, random_state=0)
    session = {"multi_label": True, "audit_every": 4, "classes": ["good", "film"]}
    page = open_page(TEXTS, learner, session)
    page.open("Quality")
    why = "Estimate after 10 more random texts. At most about"
    page.until(lambda: why in page.text(".quality section"))
    page.press(Keys.ESCAPE)
    page = open_page(session={"audit_every": None})
    page.open("Quality")
    page.until(lambda: page.all(".sentence"))
    assert not page.all(".quality section")


def test_finish_says_how_good_it_is_what_waits_and_how_long_it_takes(open_page, axe):
    minutes = [4.6]
    page = open_page(session={"audit_every": 4}, forecast=lambda pace: minutes[0])
    answer(page, 3)
    client = next(reversed(page.desk._leases._seen))
    page.desk.skip(page.desk.next(client)[0]["id"], client)
    page.desk.flag(page.desk.next(client)[0]["id"])
    page.driver.refresh()
    page.wait()
    page.until(lambda: "1 flagged" in page.text(".facts, .foot"))
    page.open("Finish")
    said = (
        "Too early to tell: estimate after 7 more random texts. "
        "Finishing takes about 5 minutes."
    )
    page.until(lambda: page.text("dialog [role=status]") == said)
    assert "Still waiting: 1 skipped, 1 flagged." in page.text("dialog")
    assert find_violations(page, axe) == []
    page.press(Keys.ESCAPE)
    minutes[0] = None
    page.open("Finish")
    page.until(lambda: page.text("dialog [role=status]").strip().endswith("texts."))
    page.press(Keys.ESCAPE)
    sources = {"given": 0, "person": 6, "model": 54}
    page.server.ending = lambda: {"sources": sources, "n_labeled": 3, "done": True}
    page.until(
        lambda: "They also label 3 copies of these texts." in page.text(".ending")
    )
    assert "Left as they are: 1 skipped, 1 flagged." in page.text(".ending")
    # After a reload, the page knows what the ending says only.
    shown = {"n_labeled": 3, "n_skipped": 2, "n_flagged": 0, "n_doubtful": 0}
    page.server.ending = lambda: {"sources": sources, "done": True, **shown}
    page.driver.refresh()
    page.until(lambda: "Left as they are: 2 skipped." in page.text(".ending"))


def test_the_first_number_of_the_curve_is_not_drawn_over_the_last(open_page):
    page = open_page(session={"audit_every": 2})
    for curve, shown in (([60, 125], 2), ([110, 125], 1)):
        page.desk._quality._curve = [[n, 0.5, [0.4, 0.6]] for n in curve]
        page.open("Quality")
        texts = ".curve text:nth-last-of-type(-n+2)"
        page.until(lambda: page.all(".curve"))
        words = [x.text for x in page.all(texts) if "%" not in x.text]
        assert len(words) == shown
        assert words[-1] == "125 labels"
        page.press(Keys.ESCAPE)


def test_the_guide_shows_the_shares(open_page):
    page = open_page(session={"audit_every": 2})
    answer(page, 20)
    estimate(page, 20)
    page.driver.set_window_size(1300, 800)
    try:
        page.driver.refresh()
        page.wait()
        page.until(lambda: "%" in page.text(".guide .note"))
        assert page.text(".guide .note").split(" · ")[0].endswith("labels")
    finally:
        page.driver.set_window_size(1000, 900)
