""" "Check" while a model of 151 classes is trained."""

import re
import time

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skactive import ActiveLearner, make_text_classifier

pytestmark = [pytest.mark.browser, pytest.mark.slow]
N_CLASSES, N_TEXTS, N_LABELED = 151, 3000, 450
SECONDS = 60  # 2.5 to 4.6 at a load of 5 on two cores; this one may be busier
PATIENCE = 600


@pytest.fixture
def texts():
    """Texts of two words of their class and four of any."""
    rng = np.random.default_rng(0)
    words = rng.integers(400, size=(N_TEXTS, 4))
    classes = np.arange(N_TEXTS) % N_CLASSES
    return [
        f"topic{c} subject{c} {' '.join(map('w{}'.format, row))}"
        for c, row in zip(classes, words, strict=True)
    ]


def _embed(texts):
    """Return features as large as those of a small sentence encoder."""
    return HashingVectorizer(n_features=384).transform(texts).toarray()


def test_the_list_is_there_soon_after_the_model(open_page, texts, record_property):
    _, classifier = make_text_classifier(adapt=False).steps[-1]
    model = make_pipeline(FunctionTransformer(_embed), classifier)
    learner = ActiveLearner(model, strategy="margin", batch_size=5, random_state=0)
    names = [f"intent_{i}" for i in range(N_CLASSES)]
    page = open_page(texts, learner, session={"classes": names})
    desk, session = page.desk, page.desk.session
    labels = {
        id: names[(id + 7 * (id % 20 == 3)) % N_CLASSES] for id in range(N_LABELED)
    }

    session.tell(list(labels), list(labels.values()), unasked=True)
    session.ask(1)  # waits for the first model
    newest = session.newest_model.learner
    start = time.monotonic()
    session.tell(N_LABELED, names[N_LABELED % N_CLASSES], unasked=True)
    session.ask(1)
    assert session._core.models.training  # the computer has two things to do
    for button in page.all("nav button"):
        if button.text.startswith("Check"):
            button.click()
    page.until(lambda: page.text(".mode"), SECONDS)
    page.until(lambda: not desk.check()["computing"], SECONDS)
    record_property("seconds", round(time.monotonic() - start, 1))
    pattern = r"1 of (\d+)You said (\S+)\. A model .* says (\S+), \d+ %"
    match = re.match(pattern, page.text(".mode"))
    assert int(match[1]) > 5
    assert match[2] != match[3]
    assert not page.text(".fault")
    page.until(lambda: session.newest_model.learner is not newest, PATIENCE)
