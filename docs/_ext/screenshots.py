"""Pictures of the labeling page, taken by the build in Chromium, from invented texts.

A page of the site runs a command, answers texts, and shows what the browser shows:

    from screenshots import label

    label("skactive label mail.csv --text text --label topic", n=12, answer=topics.get)

`site_needs` names these functions, so that a build without Chromium ends at once.
The picture of the README is made by `python docs/_ext/screenshots.py`.
"""

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from IPython.display import Image, display
from site_needs import find_browser
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.labeling._server import LabelingServer
from skactive.session import Desk

ROOT = Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 1200, 720

EVENTS = {
    "flood": ["The river is over its banks", "Water stands in the cellars"],
    "fire": ["Smoke rises above the pine forest", "Flames reach the old barn"],
    "storm": ["The storm tore down the power lines", "Roofs flew across the street"],
    "no disaster": ["This concert was an absolute blast", "My inbox is flooded again"],
}
PLACES = ["near the mill", "south of the station", "along the coast", "in our village"]
ENDS = [
    "and the road to the north stays closed until tomorrow.",
    "says the fire brigade; nobody is hurt.",
    "as our neighbor told us an hour ago.",
    "and everybody talks about it.",
    "so please take the other road.",
]
ABOUT = {
    "flood": {
        "description": "Water where it should not be.",
        "examples": ["The main street is under water."],
    },
    "fire": "Fires of houses, forests and fields.",
    "storm": "Wind, hail and lightning with damage.",
    "no disaster": "Everything else, and figures of speech.",
}


def make_texts():
    """Return invented texts with their classes, dict."""
    return {
        f"{start} {place}, {end}": name
        for (name, starts), place, end in itertools.product(
            EVENTS.items(), PLACES, ENDS
        )
        for start in starts
    }


TOPICS = {
    "food": ["The soup came cold", "The bread is fresh every morning"],
    "service": ["the waiter forgot us twice", "the staff is friendly"],
    "price": ["and it costs too much", "and we paid less than expected"],
    "place": ["in a loud room", "on a terrace above the river"],
}


def make_reviews():
    """Return invented texts with their list of topics, dict."""
    reviews = {}
    for number, picks in enumerate(itertools.product((None, 0, 1), repeat=4)):
        parts = [
            (topic, TOPICS[topic][pick])
            for topic, pick in zip(TOPICS, picks, strict=True)
            if pick is not None
        ]
        text = ", ".join(part for _, part in parts) or "We came back"
        for day in ("Monday", "Friday"):
            reviews[f"{text[0].upper()}{text[1:]}. {day}, table {number}."] = [
                topic for topic, _ in parts
            ]
    return reviews


def show_several_classes():
    """Show a picture of the page that asks for several classes per text."""
    display(draw(draw_several_classes))


def draw(scene):
    """Return the picture of a scene, a function of a camera and a new folder."""
    with (
        warnings.catch_warnings(),
        open_camera() as camera,
        tempfile.TemporaryDirectory() as folder,
    ):
        warnings.simplefilter("ignore", UserWarning)  # of models of very few labels
        return scene(camera, Path(folder, "data"))


def label(command, *, n=0, answer=None, wait=None, start=None, finish=False):
    """Run a command of skactive that opens the page, and show a picture of the page.

    Parameters
    ----------
    command : str
        `skactive label ...`. The same command continues in the next picture.
    n : int
        Number of texts to answer first.
    answer : callable
        Returns the class of a text that the page shows. Its key is pressed.
    wait : str
        Text to wait for on the page.
    start : list of str
        Lines to type on the first screen. It is shown, and Start is pressed.
    finish : bool
        Whether to press Finish after the picture, show the end as well, and print what
        the command prints.
    """
    with open_camera() as camera, run_page(command) as (url, process, log):
        camera.open(url)
        if start:
            camera.until(lambda: camera.text(".samples"))
            camera.press(*"\n".join(start), pause=0)
            display(camera.take())
            camera.driver.find_element("css selector", ".start .primary").click()
            camera.until(lambda: camera.text(".text > p:not(.note)"))
        for i in range(n):
            if i == 3:  # a person is slower than the encoder
                camera.until(lambda: "of the texts read" not in camera.text("body"))
            camera.answer(answer)
        if wait:
            camera.until(lambda: wait in camera.text("body"))
        display(camera.take())
        if finish:
            camera.finish()
            camera.until(lambda: camera.text(".ending h2") == "Finished", 240)
            display(camera.take())
            process.wait(timeout=60)
            printed = re.sub(r"http\S+", "http://127.0.0.1:...", log.read_text())
            print(printed.replace(f"{Path.cwd()}{os.sep}", ""), end="")
            if process.returncode:
                raise RuntimeError(f"{command!r} failed")


def run(command, n_lines=None):
    """Run a command of skactive and print what it prints, or its first lines."""
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = done.stdout.splitlines()
    if n_lines is not None and len(lines) > n_lines:
        lines[n_lines:] = ["..."]
    print(*lines, sep="\n")
    done.check_returncode()


@contextmanager
def run_page(command):
    """Run a command in the background until its page is there; stop it in the end."""
    program, *arguments = shlex.split(command)
    if program != "skactive":
        raise ValueError(f"command must be one of skactive, got {command!r}.")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "skactive", *arguments, "--no-browser"],
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            end = time.monotonic() + 60
            while not (found := re.search(r"http://\S+", log.read_text())):
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"{command!r}: {log.read_text()}")
                time.sleep(0.1)
            yield found.group(), process, log
        finally:
            process.kill()
            process.wait()


@contextmanager
def open_camera():
    """Open a Camera and close its browser in the end."""
    camera = Camera()
    try:
        yield camera
    finally:
        camera.driver.quit()


class Camera:
    """A browser that shows the labeling page and takes pictures of it."""

    def __init__(self):
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = find_browser()
        for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage"):
            options.add_argument(f"--{argument}")
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        self.driver = webdriver.Chrome(options, service)

    def open(self, url):
        """Open the page and wait for its text."""
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1}
        size["mobile"] = False
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(url)
        self.until(lambda: self.text(".text > p:not(.note)") or self.text(".samples"))

    def until(self, condition, seconds=180):
        """Wait until a condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(self.text("body"))
            time.sleep(0.05)

    def text(self, selector):
        code = "return document.querySelector(arguments[0])?.textContent ?? ''"
        return self.driver.execute_script(code, selector)

    def press(self, *keys, pause=0.3):
        from selenium.webdriver import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()
            time.sleep(pause)

    def answer(self, answer):
        """Press the key of the class that `answer` returns for the text."""
        self.until(lambda: self.text(".text > p:not(.note)"))
        text = self.text(".text > p:not(.note)")
        code = """return Object.fromEntries(
[...document.querySelectorAll(".classes button")].map((button) =>
  [button.querySelector(".name").textContent, button.querySelector("kbd").textContent]
))"""
        keys = self.driver.execute_script(code)
        self.press(keys[str(answer(text))].lower())
        self.until(lambda: self.text(".text > p:not(.note)") != text)

    def finish(self):
        """Press Finish, twice: on the page and in the dialog."""
        for selector in ("nav .finish", "dialog .primary"):
            self.driver.find_element("css selector", selector).click()
            time.sleep(0.3)

    def take(self):
        """Return a picture of what the browser shows."""
        time.sleep(0.5)
        return Image(self.driver.get_screenshot_as_png(), width=WIDTH)


@contextmanager
def open_page(
    camera, texts, classes, folder, n_known, answer, several=False, **options
):
    """Open the page over a session whose model was trained on the first answers."""
    last = LogisticRegression(C=30)
    if several:
        last = OneVsRestClassifier(last)
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), last)
    with ExitStack() as stack:
        session = LabelingSession(
            ActiveLearner(model, batch_size=4, random_state=0),
            texts,
            folder,
            refit="background",
            annotator="ann",
            classes=classes,
            multi_label=several,
        )
        stack.enter_context(closing(session))
        desk = stack.enter_context(closing(Desk(session, **options)))
        for _ in range(n_known):
            (item,) = desk.next("author", n_queries=1)
            desk.answer(item["id"], answer(item["text"]), "author", seconds=3.2)
        session.refit()
        for item in desk.next("old", n_queries=6):  # chosen by an older model
            desk.answer(item["id"], answer(item["text"]), "old", seconds=3.2)
        server = stack.enter_context(LabelingServer(desk))
        camera.open(server.url)
        try:
            yield camera
        finally:
            camera.driver.get("about:blank")


def draw_one_class(camera, folder):
    truth = make_texts()
    mistakes = itertools.cycle([False] * 8 + [True])
    with open_page(
        camera,
        list(truth),
        list(EVENTS),
        folder,
        64,
        lambda text: "storm" if next(mistakes) else truth[text],
        n_labels=200,
        source="messages.csv",
        descriptions=ABOUT,
    ):
        camera.until(lambda: camera.text(".estimate"))
        return camera.take()


def draw_several_classes(camera, folder):
    truth = make_reviews()
    with open_page(
        camera,
        list(truth),
        list(TOPICS),
        folder,
        60,
        truth.get,
        several=True,
        source="reviews.csv",
        n_labels=120,
    ):
        topics = truth[camera.text(".text p")]
        camera.press(*(str(list(TOPICS).index(topic) + 1) for topic in topics))
        return camera.take()


if __name__ == "__main__":
    picture = ROOT / "docs" / "images" / "labeling_light.png"
    picture.write_bytes(draw(draw_one_class).data)
