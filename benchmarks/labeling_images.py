"""Draw the pictures of the labeling page for docs/images, from invented texts.

    python benchmarks/labeling_images.py            # writes docs/images/labeling_*.png
    python benchmarks/labeling_images.py --smoke    # writes them to a temporary folder

It needs Chromium and its driver.
"""

import argparse
import itertools
import shutil
import tempfile
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver import ActionChains
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.labeling import Desk
from skactive.labeling._server import LabelingServer

ROOT = Path(__file__).resolve().parents[1]

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


def make_intents():
    """Return 77 names of intents."""
    verbs = ["lost", "order", "activate", "cancel", "change", "track", "verify"]
    nouns = ["card", "pin", "transfer", "check", "top_up", "account", "refund"]
    nouns += ["limit", "address", "phone", "fee"]
    return [f"{verb}_{noun}" for verb, noun in itertools.product(verbs, nouns)]


class Camera:
    """A browser that saves what it shows."""

    def __init__(self, folder):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        options.add_argument("--headless=new")
        options.add_argument("--no-sandbox")
        options.add_argument("--disable-dev-shm-usage")
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        self.driver, self.folder = webdriver.Chrome(options, service), folder

    def set(self, width, height, scale=1, scheme="light"):
        """Set the size in CSS pixels, the zoom and the color scheme."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale}
        metrics["mobile"] = False
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        execute = self.driver.execute_cdp_cmd
        execute("Emulation.setDeviceMetricsOverride", metrics)
        execute("Emulation.setEmulatedMedia", {"features": features})

    def press(self, *keys):
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()
            time.sleep(0.4)

    def save(self, name):
        time.sleep(0.5)
        path = Path(self.folder, f"labeling_{name}.png")
        self.driver.save_screenshot(str(path))
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def open_desk(texts, classes, folder, n_known, label, multi_label=False, **options):
    """Return a desk whose model was trained on the first answers."""
    last = LogisticRegression(C=30)
    if multi_label:
        last = OneVsRestClassifier(last)
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), last)
    learner = ActiveLearner(model, batch_size=4, random_state=0)
    session = LabelingSession(
        learner,
        texts,
        folder,
        refit="background",
        annotator="ann",
        classes=classes,
        multi_label=multi_label,
    )
    desk = Desk(session, **options)
    for _ in range(n_known):
        (item,) = desk.next("author", n=1)
        desk.answer(item["id"], label(item), "author", seconds=3.2)
    if n_known:
        session.refit()
        for item in desk.next("old", n=6):  # chosen by an older model
            desk.skip(item["id"], "old")
    return desk


def draw(camera, folder):
    truth = make_texts()
    mistakes = itertools.cycle([False] * 8 + [True])
    desk = open_desk(
        list(truth),
        list(EVENTS),
        Path(folder, "tweets"),
        64,
        lambda item: "storm" if next(mistakes) else truth[item["text"]],
        goal=200,
        source="messages.csv",
        descriptions=ABOUT,
    )
    time.sleep(3)  # the estimate
    with LabelingServer(desk) as server:
        camera.set(1000, 720)
        camera.driver.get(server.url)
        camera.save("light")
        camera.set(1000, 720, scheme="dark")
        camera.save("dark")
        camera.set(360, 790, 2)
        camera.save("phone")
        camera.set(640, 480, 2)
        camera.save("zoom")
        camera.set(1000, 720)
        camera.press("?")
        camera.save("help")
        camera.driver.get("about:blank")
    close(desk)
    draw_several(camera, folder)
    intents = make_intents()
    starts = ["How do I", "I want to", "Please help me to", "Is it possible to"]
    truth = {
        f"{start} {name.replace('_', ' my ', 1).replace('_', '-')}?": name
        for start, name in itertools.product(starts, intents)
    }
    desk = open_desk(
        list(truth),
        intents,
        Path(folder, "questions"),
        230,
        lambda item: truth[item["text"]],
        source="questions.csv",
        goal=300,
    )
    with LabelingServer(desk) as server:
        camera.driver.get(server.url)
        camera.set(1000, 840)
        time.sleep(3)
        camera.press("/", *"card")
        camera.save("classes")
        camera.driver.get("about:blank")
    close(desk)


def draw_several(camera, folder):
    """Draw the page with several classes per text."""
    truth = make_reviews()
    desk = open_desk(
        list(truth),
        list(TOPICS),
        Path(folder, "reviews"),
        60,
        lambda item: truth[item["text"]],
        multi_label=True,
        source="reviews.csv",
        goal=120,
    )
    with LabelingServer(desk) as server:
        camera.set(1000, 720)
        camera.driver.get(server.url)
        time.sleep(1)
        shown = camera.driver.find_element("css selector", ".text p").text
        camera.press(*(str(list(TOPICS).index(topic) + 1) for topic in truth[shown]))
        camera.save("multi")
        camera.driver.get("about:blank")
    close(desk)


def close(desk):
    desk.close()
    desk.session.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="change no file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = folder if args.smoke else ROOT / "docs" / "images"
        camera = Camera(target)
        try:
            draw(camera, folder)
        finally:
            camera.driver.quit()


if __name__ == "__main__":
    main()
