"""A desk over a few texts, with a model that needs no download."""

import os
import shutil
import socket
from pathlib import Path

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.annotators import ColumnAnnotator
from skactive.labeling._server import LabelingServer
from skactive.session import Desk

from ..conftest import absent
from ._helpers import TOKEN, Page

TEXTS = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(60)]


@pytest.fixture
def texts():
    return list(TEXTS)


@pytest.fixture
def learner():
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    return ActiveLearner(model, batch_size=4, random_state=0)


@pytest.fixture
def open_desk(learner, tmp_path):
    """Open a desk over the one session of a test; the last one is closed at its end."""
    opened = []

    def close():
        for thing in opened:
            thing.close()
        opened.clear()

    def open_desk(
        texts=TEXTS, learner=learner, session=(), suggestions=None, **options
    ):
        close()
        given = {"classes": ["yes", "no"], "refit": "background", **dict(session)}
        opened.append(LabelingSession(learner, texts, tmp_path / "s", **given))
        if suggestions:
            labels = [suggestions.get(i) for i in range(len(texts))]
            opened[0].annotate(ColumnAnnotator(texts, labels))
        opened.insert(0, Desk(opened[0], **options))
        return opened[0]

    yield open_desk
    close()


@pytest.fixture
def desk(open_desk):
    return open_desk()


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window; its own driver, nothing is downloaded."""
    from selenium import webdriver

    driver = shutil.which("chromedriver")
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    if not driver or not binary:
        absent("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for option in ("headless=new", "no-sandbox", "disable-dev-shm-usage"):
        options.add_argument(f"--{option}")
    options.add_argument("--window-size=1000,900")
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield browser
    browser.quit()


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def axe():
    """The accessibility rules of axe-core, a file that npm provides."""
    default = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
    path = Path(os.environ.get("SKACTIVE_AXE", default))
    if not path.exists():
        absent("axe-core is not installed and SKACTIVE_AXE does not name its file")
    return path.read_text(encoding="utf-8")


@pytest.fixture
def window(browser):
    """A new window; what it and the others of a test stored is erased at the end."""
    first = browser.current_window_handle
    browser.switch_to.new_window("window")
    browser.get_log("browser")
    yield browser
    for handle in browser.window_handles:
        if handle != first:
            browser.switch_to.window(handle)
            browser.execute_script("if (origin != 'null') localStorage.clear()")
            browser.close()
    browser.switch_to.window(first)


@pytest.fixture
def open_page(window, open_desk):
    """Open the page of a desk; the browser may log nothing but the words of `noise`."""
    servers, allowed = [], []

    def open_page(*args, noise=(), **options):
        desk = open_desk(*args, **options)
        servers.append(LabelingServer(desk, token=TOKEN).start())
        allowed.extend(noise)
        page = Page(window, servers[-1].url)
        page.desk, page.server = desk, servers[-1]
        return page

    yield open_page
    log = [entry["message"] for entry in window.get_log("browser")]
    for server in servers:
        server.stop()
    assert [line for line in log if not any(word in line for word in allowed)] == []
