"""A desk over a few texts, with a model that needs no download."""

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.labeling import Desk

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

    def open_desk(texts=TEXTS, learner=learner, session=(), **options):
        close()
        given = {"classes": ["yes", "no"], "refit": "background", **dict(session)}
        opened.append(LabelingSession(learner, texts, tmp_path / "s", **given))
        opened.insert(0, Desk(opened[0], **options))
        return opened[0]

    yield open_desk
    close()


@pytest.fixture
def desk(open_desk):
    return open_desk()
