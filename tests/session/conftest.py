"""A small pool and sessions over it."""

import functools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, LabelingSession
from skactive._storage._fingerprint import collect_versions

collect_once = functools.cache(collect_versions)


@pytest.fixture(autouse=True)
def versions(monkeypatch):
    """Read the versions of the installed packages once: each reading takes 10 ms."""
    monkeypatch.setattr("skactive.session._manifest.collect_versions", collect_once)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    X = rng.normal(size=(60, 5)) + 2.0 * np.eye(3, 5)[y]
    return X, np.array(["ham", "spam", "eggs"])[y]


@pytest.fixture
def learner():
    return ActiveLearner(
        LogisticRegression(), strategy="margin", batch_size=4, random_state=0
    )


@pytest.fixture
def open_session(learner, data, tmp_path):
    """Open the one session of a test, again and again; each is closed at its end."""
    opened = []

    def open_session(X=None, folder=None, learner=learner, **options):
        X = data[0] if X is None else X
        opened.append(LabelingSession(learner, X, folder or tmp_path / "s", **options))
        return opened[-1]

    yield open_session
    for session in opened:
        session.close()
