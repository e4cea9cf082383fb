"""A labeling page in a real browser, driven by its keys."""

import logging
import time
from contextlib import contextmanager

from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

TOKEN = "a-token-for-the-tests"


class Page:
    """The page at an address, in the current window of a driver."""

    def __init__(self, driver, url):
        self.driver = driver
        driver.get(url)
        self.wait()

    def until(self, condition, seconds=300):
        """Wait until a condition holds, and return what it returns."""
        end = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < end, self.all("body")[0].text
            time.sleep(0.02)
        return value

    def press(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def type(self, text):
        ActionChains(self.driver).send_keys(text).perform()

    def chord(self, modifier, key):
        """Press a key together with Shift or Control."""
        actions = ActionChains(self.driver).key_down(modifier).send_keys(key)
        actions.key_up(modifier).perform()

    def go(self, key):
        """Press a key that leads to another text; return the text before."""
        before = self.wait()
        self.press(key)
        try:
            self.until(lambda: self.item != before, 60)
        except AssertionError:  # a text that came late takes no key for 400 ms
            self.press(key)
            self.until(lambda: self.item != before)
        return before

    def wait(self):
        """Return the text to label, which may still be on its way."""
        return self.until(lambda: self.item)

    def open(self, name):
        """Press a button of the tools by the keyboard; on a phone, in the menu."""
        if self.text(".menu[aria-expanded=false]"):
            self.move_to("Menu")
            self.press(Keys.ENTER)
            self.move_to(name, lambda: self.press(Keys.TAB))
        else:
            self.move_to(name)
        self.press(Keys.ENTER)
        self.until(lambda: self.all("dialog[open]"))

    def move_to(self, name, step=None):
        """Move the focus to the button of a name."""
        for _ in range(30):
            if self.focus.startswith(name):
                break
            (step or (lambda: self.chord(Keys.SHIFT, Keys.TAB)))()
        assert self.focus.startswith(name)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, f"{selector}")

    def text(self, selector):
        """Return the text of the first element that is shown, or ""."""
        code = """
const elements = [...document.querySelectorAll(arguments[0])];
return elements.find((element) => element.checkVisibility())?.textContent ?? "";
"""
        return self.driver.execute_script(code, selector)

    @property
    def item(self):
        """The text to label, or None."""
        code = """
const parts = document.querySelectorAll(".text > p:not(.note)");
return parts.length ? [...parts].map((part) => part.textContent).join("|") : null;
"""
        return self.driver.execute_script(code)

    @property
    def focus(self):
        return self.driver.execute_script("return document.activeElement.textContent")

    @property
    def classes(self):
        """The names of the classes that are shown."""
        code = "return [...document.querySelectorAll('.classes .name')]"
        return self.driver.execute_script(f"{code}.map((name) => name.textContent)")


def find_violations(page, axe):
    """Return what axe-core finds on the page, list of rule and elements."""
    if page.driver.execute_script("return typeof axe") == "undefined":
        page.driver.execute_script(axe)
    return page.driver.execute_async_script("""
const done = arguments[0];
axe.run().then(({ violations }) => done(violations.map(
  ({ id, nodes }) => [id, nodes.map((node) => node.failureSummary + node.html)])));
""")


def text_of(session, id):
    """Return the text of an item."""
    pool = session._core.state.pool
    return pool.texts(pool.positions([id]))[0]


class _Listener(logging.Handler):
    """Passes what a project logs to a function."""

    def __init__(self, say):
        super().__init__()
        self._say = say

    def emit(self, record):
        self._say(record.getMessage())


@contextmanager
def listening(say):
    """Call `say` with each message that a project logs, but for those of progress."""
    log, listener = logging.getLogger("skactive.project"), _Listener(say)
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(listener)
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.setLevel(level)


def train(page):
    """Answer twelve texts of the fixtures, and show the page with their model."""
    for id in range(40, 52):
        text = page.desk.item(id)["text"]
        page.desk.answer(id, "yes" if "good" in text else "no", "other")
    page.desk.session.refit()
    page.driver.refresh()
    page.wait()
